"""Files of a user's are read as what they are, or refused by name: every kind of its contents."""

from __future__ import annotations

import io
import itertools
import json
import re
import struct
import sys
import zlib
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ai8xtools.commands.emulate.inputs import read_inputs
from datasets.errors import DatasetError
from datasets.own import pictures, sounds
from datasets.own.arrays import as_bytes, read_archive
from datasets.own.preparation import Preparation, read_sound
from datasets.own.sets import OwnData, load, open_data
from datasets.own.settings import USUAL, DataSettings
from datasets.own.tables import Table, read_table

EVERY = np.arange(1 << 16).reshape(256, 256)
LEVELS = np.arange(256, dtype=np.uint8).reshape(16, 16)
LINE = np.eye(16, dtype=bool)
ARGS = Namespace(act_mode_8bit=True, truncate_testset=False)


def notes_of(read: Callable[[Any], Any]) -> tuple[Any, str]:
    """Return what is read, and what is told of it."""
    told: list[str] = []
    found = read(lambda note, _path: told.append(note))
    return found, "; ".join(told)


def loaded(name: str, **settings: Any) -> tuple[OwnData, Any]:
    kind, _, path = name.partition(":")
    chosen = DataSettings(**settings).over(USUAL)
    data = open_data(kind, path, chosen)
    return data, load(data, chosen, ARGS, (False, True))[1]


def refusal(read: Callable[[], Any]) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        read()
    assert caught.value.remedy
    return caught.value


# ------------------------------------------------------------------------------------- pictures


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(values: Any, bits: int = 8, color: int = 0, extra: bytes = b"") -> bytes:
    """A PNG of samples [H, W] or [H, W, C] with chunks before the pixels."""
    rows = []
    for row in np.asarray(values).reshape(len(values), -1).astype(np.uint16):
        samples = (row[:, None] >> np.arange(bits - 1, -1, -1)) & 1
        rows.append(b"\0" + np.packbits(samples.astype(np.uint8).ravel()).tobytes())
    head = struct.pack(">IIBBBBB", np.shape(values)[1], len(values), bits, color, 0, 0, 0)
    packed = zlib.compress(b"".join(rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", packed)
            + chunk(b"IEND", b""))  # fmt: skip


def tiff(
    values: Any, bits: int, white: int = 1, form: int = 1, data: bytes = b"", planes: int = 1
) -> bytes:
    """A grey TIFF; form 1: whole numbers, 2: with a sign, 3: fractions; white is 0 or 1."""
    types = {8: "u1", 16: "<u2", 32: "<f4" if form == 3 else "<u4"}
    data = data or np.asarray(values).astype(types[bits]).tobytes()
    h, w = np.shape(values)
    tags = ((256, w), (257, h), (258, bits), (259, 1), (262, white), (273, 8 + 6 + 12 * 11),
            (277, 1), (278, h), (279, len(data)), (284, planes), (339, form))  # fmt: skip
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


def saved(image: Any, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(out, kind, **options)
    return out.getvalue()


def seen(path: Path, content: bytes, mode: str = "L") -> tuple[Any, str]:
    path.write_bytes(content)
    image, told = notes_of(lambda tell: pictures.read(path, mode, tell))
    return np.asarray(image).astype(int), told


def twelve_bits() -> bytes:
    values = np.arange(4096)
    bits = (values[:, None] >> np.arange(11, -1, -1)) & 1
    packed = np.packbits(bits.astype(np.uint8).ravel()).tobytes()
    return tiff(values.reshape(64, 64), 12, data=packed)


DEEP = {
    "png": (png(EVERY, 16), EVERY / 257, "1/257"),
    "png of colours": (png(np.dstack([EVERY] * 3), 16, 2), EVERY / 257, "1/257"),
    "png over nothing": (png(np.dstack([EVERY, EVERY * 0 + 65535]), 16, 4), EVERY / 257, "1/257"),
    "tiff": (tiff(EVERY, 16), EVERY / 257, "1/257"),
    "white is zero": (tiff(EVERY, 16, 0), 255 - EVERY / 257, "1/257"),
    "12 bits": (twelve_bits(), np.arange(4096).reshape(64, 64) * 255 / 4095, "4095"),
    "fractions": (tiff(EVERY / 65535, 32, form=3), EVERY / 257, "255"),
    "pgm": (b"P5 256 256 65535 " + EVERY.astype(">u2").tobytes(), EVERY / 257, "1/257"),
    "pgm of 10 bits": (b"P5 256 4 1023 " + EVERY[:4].astype(">u2").tobytes(),
                       EVERY[:4] * 255 / 1023, "1/257"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_every_level_of_deep_samples_is_scaled_by_their_type(tmp_path: Path, name: str) -> None:
    content, wanted, told = DEEP[name]
    found, notes = seen(tmp_path / "x.png", content)
    assert np.abs(found - wanted).max() <= (1 if "colours" in name or "nothing" in name else 0.51)
    assert told in notes


@pytest.mark.parametrize(
    "content",
    [
        tiff(EVERY, 32), tiff(EVERY, 16, form=2), tiff(LEVELS, 8, form=2),
        tiff(LEVELS, 8, 0, planes=2), tiff(LEVELS, 32, form=3),
        tiff(LEVELS / 255 - 0.5, 32, form=3), tiff(np.where(LINE, np.nan, 0.5), 32, form=3),
        png(LEVELS, extra=chunk(b"gAMA", bytes(4))), saved(Image.new("LAB", (4, 4)), "TIFF"),
        png(np.dstack([EVERY] * 3), 16, 2, chunk(b"tRNS", bytes(6))), b"GIF89a and more",
        saved(LEVELS, "PCX"), b"version https://git-lfs.github.com/spec/v1",
    ],
    ids=["32 bits", "signed", "signed bytes", "planes", "0..255", "-0.5..0.5", "nan", "gamma 0",
         "CIELAB", "key of 16 bits", "gif", "another kind", "pointer"],
)  # fmt: skip
def test_pictures_of_unknown_meaning_are_refused(tmp_path: Path, content: bytes) -> None:
    error = refusal(lambda: seen(tmp_path / "x.png", content))
    damaged = content[:3] in (b"GIF", b"\n\5\1", b"ver")
    assert error.code == ("E613" if damaged else "E617")
    assert str(error.place) == str(tmp_path / "x.png")


KEYS = {
    "1 bit": (png(LINE, 1, extra=chunk(b"tRNS", b"\0\0")), [128, 255]),
    "2 bits": (png(LINE * 3, 2, extra=chunk(b"tRNS", b"\0\3")), [0, 128]),
    "4 bits": (png(LINE * 15, 4, extra=chunk(b"tRNS", b"\0\x0f")), [0, 128]),
    "8 bits": (png(LINE * 9, extra=chunk(b"tRNS", b"\0\x09")), [0, 128]),
    "16 bits": (png(LINE * 2570, 16, extra=chunk(b"tRNS", b"\x0a\x0a")), [0, 128]),
    "colour": (png(np.dstack([LINE * 7] * 3), 8, 2, chunk(b"tRNS", b"\0\7\0\7\0\7")), [0, 128]),
    "palette": (png(LINE, 8, 3, chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", b"\xff\0")), [0, 128]),
    "grey and alpha": (png(np.dstack([LINE * 0, LINE * 255]), 8, 4), [128, 0]),
    "colour and alpha": (png(np.dstack([LINE * 255] * 4), 8, 6), [128, 255]),
    "a half": (png(np.dstack([LINE * 255, LINE * 128]), 8, 4), [128, 192]),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_what_is_transparent_shows_middle_grey(tmp_path: Path, name: str) -> None:
    content, (around, line) = KEYS[name]
    found, told = seen(tmp_path / "x.png", content)
    assert np.abs(found - np.where(LINE, line, around)).max() <= 1 and "transparency" in told


def test_a_picture_that_the_ground_swallows_is_refused(tmp_path: Path) -> None:
    grey = png(np.dstack([LINE * 0 + 128, LINE * 255]), 8, 4)
    assert "nothing of it is seen" in refusal(lambda: seen(tmp_path / "x.png", grey)).message
    empty = png(np.dstack([LINE * 0, LINE * 0]), 8, 4)
    assert (seen(tmp_path / "x.png", empty)[0] == 128).all()


@pytest.mark.parametrize(("bits", "gamma"), [(8, 1.0), (16, 1.0), (8, 0.8), (8, 1 / 2.2)])
def test_the_gamma_of_a_png_is_applied(tmp_path: Path, bits: int, gamma: float) -> None:
    marks = chunk(b"gAMA", struct.pack(">I", round(gamma * 100_000)))
    values = LEVELS.astype(int) * (257 if bits == 16 else 1)
    found, told = seen(tmp_path / "x.png", png(values, bits, extra=marks))
    assert np.abs(found - 255 * (LEVELS / 255) ** (1 / (2.2 * gamma))).max() <= 0.6
    assert ("gamma" in told) == (gamma != 1 / 2.2)
    found, told = seen(tmp_path / "x.png", png(values, bits, extra=marks + chunk(b"sRGB", b"\0")))
    assert np.array_equal(found, LEVELS) and "gamma" not in told


TURNS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud, 5: np.transpose,
    6: lambda a: np.rot90(a, -1), 7: lambda a: np.rot90(a, 2).T, 8: np.rot90,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG", "PNG of 16 bits"])
def test_pictures_are_turned_upright(tmp_path: Path, kind: str) -> None:
    values = np.arange(12, dtype=np.uint16).reshape(3, 4) * 20
    given = values * 257 if "16" in kind else values.astype(np.uint8)
    every: dict[str, dict[str, Any]] = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100}}
    options = every.get(kind, {})
    for number, turn in TURNS.items():
        exif = Image.Exif()
        exif[274] = number
        found, _ = seen(tmp_path / "x", saved(given, kind.split()[0], exif=exif, **options))
        assert np.abs(found - turn(values.astype(int))).max() <= 3
        with pictures.opened(tmp_path / "x") as image:
            assert pictures.size_of(image) == found.shape


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "PNG", "WEBP"])
def test_of_several_pictures_the_first_is_read_and_told(tmp_path: Path, kind: str) -> None:
    frames = [Image.fromarray(a) for a in (LEVELS, 255 - LEVELS)]
    options = {"lossless": True} if kind == "WEBP" else {}
    for count, several in ((1, False), (2, True)):
        content = saved(frames[0], kind, save_all=True, append_images=frames[1:count], **options)
        found, told = seen(tmp_path / "x", content)
        assert np.array_equal(found, LEVELS) and ("first" in told) == several


def test_pixels_of_16_bits_have_no_deep_samples(tmp_path: Path) -> None:
    pixels = (LEVELS.astype("<u2") >> 3)[::-1].tobytes()  # blue of 5 bits
    masks = struct.pack("<3I", 0xF800, 0x7E0, 0x1F)
    head = struct.pack("<IiiHHIIiiII", 40, 16, 16, 1, 16, 3, len(pixels), 0, 0, 0, 0) + masks
    start = struct.pack("<2sIII", b"BM", 14 + len(head) + len(pixels), 0, 14 + len(head))
    (tmp_path / "x.bmp").write_bytes(start + head + pixels)
    found, told = notes_of(lambda tell: pictures.read(tmp_path / "x.bmp", "RGB", tell))
    assert not told and abs(np.asarray(found)[:, :, 2].astype(int) - LEVELS).max() < 8


def test_what_pictures_are_is_told_in_one_line(tmp_path: Path) -> None:
    for part, name in itertools.product(("train", "test"), "ab"):
        folder = tmp_path / part / name
        folder.mkdir(parents=True)
        (folder / "deep.png").write_bytes(png(LEVELS.astype(int) * 257, 16))
        (folder / "flat.png").write_bytes(png(LEVELS))
        (folder / "photo.heic").write_bytes(b"ftypheic")
    others, line = loaded(f"folder:{tmp_path}")[0].notes
    assert "4 .heic" in others
    assert re.search(r"4 pictures, 2 classes \(a, b\), 3x16x16; 2 with 16 bits", line)


# --------------------------------------------------------------------------------------- sounds

TONE = (0.9 * np.sin(np.arange(300) * 0.1)).astype(np.float32)


def wave(
    data: bytes, tag: int, bits: int, *, tracks: int = 1, long: bool = False,
    block: int | None = None, before: bytes = b"", size: int | None = None,
) -> bytes:  # fmt: skip
    """A WAVE file, with the extensible header if it is `long`."""
    block = tracks * -(-bits // 8) if block is None else block
    form = struct.pack("<HHIIHH", 0xFFFE if long else tag, tracks, 16000, 0, block, bits)
    if long:
        form += struct.pack("<HHIH", 22, bits, 0, tag) + sounds._GUID
    body = b"fmt " + struct.pack("<I", len(form)) + form + before
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def whole(samples: Any, width: int) -> bytes:
    levels = np.round(np.asarray(samples, float) * ((1 << 8 * width - 1) - 1)).astype("<i4")
    if width == 1:
        return (levels + 128).astype(np.uint8).tobytes()
    return levels.reshape(-1, 1).view(np.uint8)[:, :width].tobytes()


FORMS = [(1, 8), (1, 12), (1, 16), (1, 20), (1, 24), (1, 32), (3, 32), (3, 64)]


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(("tag", "bits"), FORMS)
def test_sounds_of_every_form_are_read(tmp_path: Path, tag: int, bits: int, long: bool) -> None:
    width = -(-bits // 8)
    data = TONE.astype(f"<f{width}").tobytes() if tag == 3 else whole(TONE, width)
    odd = b"LIST" + struct.pack("<I", 5) + b"INFOx\0"
    for content in (wave(data, tag, bits, long=long), wave(data, tag, bits, before=odd)):
        (tmp_path / "x.wav").write_bytes(content)
        sound = sounds.read(tmp_path / "x.wav")
        assert (sound.rate, sound.bits, sound.samples.shape) == (16000, bits, (300, 1))
        np.testing.assert_allclose(sound.samples[:, 0], TONE, atol=1.5 / (1 << 8 * width - 1))


def test_every_cut_of_a_sound_is_refused(tmp_path: Path) -> None:
    content = wave(whole(TONE[:20], 3), 1, 24, long=True)
    path = tmp_path / "x.wav"
    for end in range(len(content)):
        path.write_bytes(content[:end])
        error = refusal(lambda: sounds.read(path))
        assert (error.code, str(error.place)) == ("E613", str(path))


FOUR = bytes(4)
LOUD = np.array([0, np.nan, 0, 32767], np.float32)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (wave(FOUR, 7, 8), "(mu-law)"), (wave(FOUR, 17, 4, block=1), "(ADPCM)"),
        (wave(FOUR, 1234, 16), "(form 1234)"), (wave(FOUR, 3, 16), "16 bits"),
        (wave(FOUR, 1, 16, tracks=0), "0 tracks"), (wave(FOUR, 1, 24, block=2), "24 bits"),
        (wave(bytes(5), 1, 16), "cut"), (wave(FOUR, 1, 16, size=0xFFFFFFFF), "4 are there"),
        (wave(LOUD.tobytes(), 3, 32), "sample 1 is nan"),
        (wave(LOUD[2:].tobytes(), 3, 32), "sample 1 is 32767"),
        (b"RIFX" + wave(FOUR, 1, 16)[4:], "no WAV"), (b"version https://git-lfs.github.com/spec/v1",
                                                      "LFS"),
    ],
)  # fmt: skip
def test_sounds_of_unknown_meaning_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.wav").write_bytes(content)
    error = refusal(lambda: sounds.read(tmp_path / "x.wav"))
    unread = said.startswith(("(", "sample"))
    assert error.code == ("E617" if unread else "E613") and said in error.message


def test_a_sound_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "flac.wav"
    soundfile.write(str(path), np.zeros((200, 2)), 16000, format="FLAC")
    assert sounds.read(path).samples.shape == (200, 2)
    monkeypatch.setattr(sounds, "MAX_SAMPLES", 399)
    assert "400 samples" in refusal(lambda: sounds.read(path)).message


def test_what_is_done_to_a_sound_is_told(tmp_path: Path) -> None:
    how = Preparation("sound", (128, 2, 1), rate=16000)
    path = tmp_path / "x.wav"
    loud = np.stack([TONE, TONE * 1.5], 1)
    path.write_bytes(wave(loud.tobytes(), 3, 32, tracks=2))
    parts, told = notes_of(lambda tell: read_sound(path, how, tell))
    assert "tracks" in told and "cut off" in told
    wanted = (np.clip(loud.mean(1)[:128], -1, 1) + 1) * 128
    assert np.abs(parts[0][:, 0, 0] - wanted).max() <= 1
    plain = wave(TONE.tobytes(), 3, 32)
    list_chunk = b"LIST" + struct.pack("<I", 5) + b"INFOx\0"
    for rest, more in ((b"", False), (list_chunk * 2, False), (list_chunk[:-1], False),
                       (bytes(99), False), (TONE.tobytes(), True), (list_chunk[:-3], True),
                       (list_chunk + plain[36:], True), (list_chunk + b"x", True)):  # fmt: skip
        path.write_bytes(plain + rest)
        told = notes_of(lambda tell: read_sound(path, how, tell))[1]
        assert ("header" in told) == more and bool(told) == more


# --------------------------------------------------------------------------------------- tables

ROWS = [((1.5, 20, -3), "cat"), ((2.5, 40, 6), "dog"), ((10, 30, 0.25), "cat"), ((4, 6, -9), "dog")]
HEAD = ("height", "weight", "angle")


def table(path: Path, text: str | bytes, label: str | None = None) -> Table:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, label)


@pytest.mark.parametrize("text", ["a,b,c,\n1,2,x,\n3,4,y,\n", "1;2;x;\n3;4;y;\n" * 2])
def test_a_separator_at_the_end_of_each_line_makes_no_column(tmp_path: Path, text: str) -> None:
    found = table(tmp_path / "x.csv", text)
    assert found.features[:2].tolist() == [[1, 2], [3, 4]] and found.labels[:2] == ("x", "y")


def test_a_table_means_the_same_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    choices = itertools.product(
        ",;\t| ", (False, True), (None, HEAD, ("2019", "2020", "x")), ("", '"'), ("\n", "\r\n"),
        ("utf-8", "utf-8-sig", "utf-16"), (None, "animal"),
    )  # fmt: skip
    for sep, comma, head, quote, end, code, label in choices:
        if (sep == "," and comma) or (head != HEAD and bool(head) != bool(label)):
            continue
        lines: list[tuple[str, ...]]
        lines = [] if head is None else [("animal", *head) if label else (*head, "animal")]
        for numbers, name in ROWS:
            cells = tuple(str(n).replace(".", "," if comma else ".") for n in numbers)
            lines.append((name, *cells) if label else (*cells, name))
        text = "".join(sep.join(f"{quote}{c}{quote}" for c in line) + end for line in lines)
        found = table(path, text.encode(code), label)
        assert np.array_equal(found.features, [numbers for numbers, _ in ROWS]), text
        assert found.labels == tuple(name for _, name in ROWS)
        assert bool(found.titles) == (head is not None) == ("titles in line 1" in found.form)
        assert ("decimal commas" in found.form) == comma


BODY = "1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n"


@pytest.mark.parametrize("cell", ["", " ", "nan", "inf", "-inf", "NA", "?", "1_000", "٤٢", "1e39",
                                  "0x10", "1e", "1 000", "5%", "1,5", '"1,5"', "abc"])  # fmt: skip
@pytest.mark.parametrize("line", [1, 2, 4])
def test_cells_that_are_no_numbers_are_named(tmp_path: Path, cell: str, line: int) -> None:
    """In the first line, too: it is a row, not titles."""
    lines = BODY.splitlines()
    lines[line - 1] = f"9,{cell},cat"
    error = refusal(lambda: table(tmp_path / "x.csv", "\n".join(lines)))
    assert error.code == "E684"
    if cell != "1,5":  # that is one cell more
        assert str(error.place) == f"{tmp_path / 'x.csv'}:{line}" and "column 1" in error.message


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("2019,2020,animal\n" + BODY, None, "column titles or data?"),
        ("1,2x,mouse\n" + BODY, None, "column titles or data?"),
        ("1,cat\n2,dog\n3,\n4,cat\n", None, "the label in column 1 is missing"),
        ("cat,1,-3\ndog,2,6\ncat,3,0.25\n", None, "the last column has fractions (0.25)"),
        ("a,b,c\n1,2,30\n3,4,20\n5,6,10\n", None, "another number in each row"),
        ("1,2,1\n3,4,1.0\n5,6,0\n", None, "spelled differently"),
        ("1,5;2,5;cat\n1;3;cat\n1.5;3;dog\n", None, "line 3 a number is 1.5"),
        ("a,b,b\n" + BODY, "b", "2 columns 'b'"), ("a,b,c\n" + BODY, "d", "no columns 'd'"),
        (BODY, "cat", "may be a column"), ("c,0,9\n0,2,3\n1,4,5\n", "0", "may be a column"),
        ('1,"2,cat\n3,4,dog\n', None, "no CSV file"), ("1\n2\n", None, "one column"),
        (b"1,2,k\xe4se\n3,4,dog\n", None, "UTF-8"), ("x,y,z\n", None, "no rows"),
        (BODY + "9,9,NaN\n", None, "the label in column 2 is 'NaN'"),
        ("id,kind\n1,cat\n2,dog\n3,cat\n", None, "no column is left"),
    ],
)  # fmt: skip
def test_tables_that_may_mean_several_things_are_refused(
    tmp_path: Path, text: str | bytes, label: str | None, message: str
) -> None:
    error = refusal(lambda: table(tmp_path / "x.csv", text, label))
    assert error.code == "E684" and message in error.message


def test_titles_that_are_alike_or_missing_lose_no_column(tmp_path: Path) -> None:
    for head in ("a,a,a", ",b,c", "cat,cat,cat"):
        found = table(tmp_path / "x.csv", f"{head}\n{BODY}", "2")
        assert found.features.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


@pytest.mark.parametrize("title", ["", "Id", "Unnamed: 0", "index"])
@pytest.mark.parametrize("first", [0, 1])
def test_what_numbers_the_rows_is_no_feature(tmp_path: Path, title: str, first: int) -> None:
    rows = BODY.splitlines()
    for order in ([0, 1, 2, 3], [2, 0, 1, 3], [0, 1, 2, 4]):
        lines = [f"{n + first},{row}" for n, row in zip(order, rows, strict=True)]
        found = table(tmp_path / "x.csv", "\n".join([f"{title},a,b,kind", *lines]))
        assert found.features.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
        assert f"numbers the rows: {title or '(no title)'}" in found.form
    tests = tmp_path / "tests.csv"
    tests.write_text(f"{title},a,b,kind\n900,1,2,cat\n3,3,4,dog\n")
    assert read_table(tests, None, found).features.shape == (2, 2)
    for cells in ("1 1 2 3", "1 2 3 9", "1.5 2 3 4", "-1 0 1 2"):
        lines = [f"{cell},{row}" for cell, row in zip(cells.split(), rows, strict=True)]
        found = table(tmp_path / "x.csv", "\n".join([f"{title},a,b,kind", *lines]))
        assert found.features.shape == (4, 3)


@pytest.mark.parametrize("kind", ["csv", "csv:parts", "npz", "npz:parts", "pictures", "series"])
def test_samples_are_called_by_their_place(tmp_path: Path, kind: str) -> None:
    """Each holds the number of its row, line or place in the array."""
    numbers, classes = np.arange(40), np.arange(40) % 2
    if kind.startswith("csv"):
        text = "".join(f"{n + (n > 19)},{n % 3},c{n % 2}\n" + "\n" * int(n == 19) for n in numbers)
        place = tmp_path if kind == "csv:parts" else tmp_path / "test.csv"
        for name in ("train.csv", "test.csv"):
            (tmp_path / name).write_text(text)
        before, after, first = str(tmp_path / "test.csv") + ":", "", 1
    else:
        place = tmp_path / "x.npz"
        size = {"pictures": (40, 1, 1), "series": (40, 1)}.get(kind, (40, 1))
        x = numbers.reshape(size) * np.ones((3, 3) if kind == "pictures" else (3,))
        x = x.astype(np.uint8) if kind == "pictures" else x
        halves = {"x_train": x, "y_train": classes, "x_test": x, "y_test": classes}
        np.savez(place, **(halves if kind == "npz:parts" else {"x": x, "y": classes}))
        before, after, first = f"{place}: x{'_test' * (kind == 'npz:parts')}[", "]", 0
    name = f"{'npz' if kind == 'pictures' else kind.partition(':')[0]}:{place}"
    data, _ = loaded(name)
    samples, _, names = data.read(False)
    said = [int(n.removeprefix(before).removesuffix(after)) - first for n in names]
    held = np.asarray(samples, float).reshape(len(said), -1)[:, 0]
    assert len(said) == (40 if "parts" in kind else 8)
    step = np.polyfit(said, held, 1)
    assert np.abs(np.polyval(step, said) - held).max() <= 1 and step[0] > 0.5


def test_windows_of_sounds_are_called_by_their_file(tmp_path: Path) -> None:
    for label in "ab":
        (tmp_path / label).mkdir()
        for n in range(2):
            content = wave(np.zeros(256 * 2, "<i2").tobytes(), 1, 16)
            (tmp_path / label / f"{n}.wav").write_bytes(content)
    data, _ = loaded(f"sounds:{tmp_path}", window=256)
    names = [Path(name).relative_to(tmp_path).as_posix() for name in data.read(False)[2]]
    assert [name.partition(".wav, ")[2] for name in names] == ["window 0", "window 1"] * 2


def test_a_word_above_numbered_classes_is_a_title(tmp_path: Path) -> None:
    numbered = BODY.replace("cat", "0").replace("dog", "1")
    found = table(tmp_path / "x.csv", "2019,2020,kind\n" + numbered)
    assert found.titles == ("2019", "2020", "kind") and found.labels == ("0", "1", "0", "1")
    found = table(tmp_path / "x.csv", "9,9,7\n" + numbered)
    assert not found.titles and found.labels[0] == "7"


def test_a_class_by_number_is_no_title(tmp_path: Path) -> None:
    found = table(tmp_path / "x.csv", "0,1,2\n1,3,4\n0,5,6\n1,7,8\n", "0")
    assert found.labels == ("0", "1", "0", "1") and not found.titles


def test_tests_have_the_columns_of_the_training(tmp_path: Path) -> None:
    for name, text in (("train", "a,b,kind\n" + BODY), ("test", "9,9,cat\n1,2,dog\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    data, test = loaded(f"csv:{tmp_path}")
    assert len(test) == 2 and "test.csv" in data.notes[0]
    (tmp_path / "test.csv").write_text("b,a,kind\n" + BODY)
    error = refusal(lambda: loaded(f"csv:{tmp_path}"))
    assert "b, a, kind" in error.message and str(error.place).endswith("test.csv:1")


def test_small_differences_of_large_numbers_are_kept(tmp_path: Path) -> None:
    lines = [f"{1_700_000_000 + n},{n % 2}" for n in range(20)]
    (tmp_path / "x.csv").write_text("time,class\n" + "\n".join(lines))
    _, test = loaded(f"csv:{tmp_path / 'x.csv'}", test_share=0.5)
    assert len({float(test[n][0]) for n in range(len(test))}) == len(test)


# --------------------------------------------------------------------------------------- arrays

Y = np.array([0, 1, 0, 1])


def archive(path: Path, x: Any, **more: Any) -> Any:
    np.savez(path, x=x, y=Y, **more)
    return read_archive(path)[0]["x"]


@pytest.mark.parametrize("kind", ["u1", "?", "<u2", ">u2", "<i8", "<f2", ">f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_every_type_are_features(tmp_path: Path, kind: str, order: Any) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 0]])
    np.savez(tmp_path / "x.npz", x_train=np.asarray(values.astype(kind), order=order), y_train=Y,
             x_test=np.asarray(values.astype(kind), order=order), y_test=Y)  # fmt: skip
    data, test = loaded(f"npz:{tmp_path / 'x.npz'}")
    found = [test[n][0].ravel().tolist() for n in range(4)]
    assert found == np.where(values, 127, -128).tolist()
    assert "3 features" in data.notes[0]


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((4, 8, 8), "u2"), ((4, 2, 50), "f4"), ((4, 8, 8, 3), "f4"), ((4, 8, 8), "?"), ((4,), "f4"),
     ((4, 3, 8, 3), "u1"), ((4, 8, 8, 4), "u1"), ((4, 2, 3, 4, 5), "u1"), ((4, 3), "c8")],
)  # fmt: skip
def test_arrays_that_may_be_several_things_are_asked_about(
    tmp_path: Path, shape: tuple[int, ...], kind: str
) -> None:
    archive(tmp_path / "x.npz", np.ones(shape, kind))
    error = refusal(lambda: loaded(f"npz:{tmp_path / 'x.npz'}"))
    assert (error.code, str(error.place)) == ("E685", str(tmp_path / "x.npz"))
    assert "x".join(map(str, ("N", *shape[1:]))) in error.message


def test_channels_are_found_where_one_axis_only_may_have_them(tmp_path: Path) -> None:
    for shape, wanted in (((4, 8, 6, 3), (3, 8, 6)), ((4, 3, 8, 6), (3, 8, 6)),
                          ((4, 8, 6, 1), (1, 8, 6)), ((4, 16, 8, 6), (16, 8, 6))):  # fmt: skip
        x = archive(tmp_path / "x.npz", np.zeros(shape, np.uint8))
        found = as_bytes(tmp_path / "x.npz", x)
        assert found is not None and found.shape[1:] == wanted


def test_numbers_beyond_single_precision_are_named(tmp_path: Path) -> None:
    for value in (1e39, np.inf, np.nan):
        x = np.zeros((4, 3))
        x[2, 1] = value
        np.savez(tmp_path / "x.npz", x_train=np.ones((4, 3)), y_train=Y, x_test=x, y_test=Y)
        assert "x_test[2, 1]" in refusal(lambda: loaded(f"npz:{tmp_path / 'x.npz'}")).message


def test_an_archive_of_two_sets_is_refused(tmp_path: Path) -> None:
    error = refusal(lambda: archive(tmp_path / "x.npz", np.ones((4, 2)), x_test=Y, y_test=Y))
    assert error.code == "E685" and "x_test" in error.message


@pytest.mark.parametrize("x", [np.ones((4, 2)), np.zeros((4, 8, 8), np.uint8)])
def test_arrays_that_are_not_read_are_told(tmp_path: Path, x: Any) -> None:
    archive(tmp_path / "x.npz", x, groups=Y)
    assert "not read: groups" in loaded(f"npz:{tmp_path / 'x.npz'}")[0].notes[0]


@pytest.mark.parametrize("kind", ["folder", "sounds", "csv", "npz"])
def test_a_path_that_leads_nowhere_is_corrected(tmp_path: Path, kind: str) -> None:
    (tmp_path / "shapes").mkdir()
    error = refusal(lambda: loaded(f"{kind}:{tmp_path / 'shaps'}"))
    assert error.code == "E620" and f"did you mean {tmp_path / 'shapes'}?" in str(error.remedy)


# ------------------------------------------------------------------------------------- emulator


def test_the_emulator_reads_files_as_training_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(png(LEVELS.astype(int) * 257, 16))
    for known in (None, Preparation("picture", (1, 16, 16))):
        (found,) = read_inputs(path, (1, 16, 16), known)
        assert np.abs(found[0] - (LEVELS.astype(int) - 128)).max() <= 1
        assert "note" in (said := capsys.readouterr().out) and "16 bits" in said
    (tmp_path / "x.wav").write_bytes(wave(whole(TONE, 3), 1, 24, long=True))
    (found,) = read_inputs(tmp_path / "x.wav", (1, 300, 1))
    assert np.abs(found.ravel() - TONE * 128).max() <= 1


# ------------------------------------------------------------------------------------- yardstick


def test_the_collection_of_strange_files_is_read_right_or_refused(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files and what they hold are those of the yardstick; nothing is wrong in silence."""
    monkeypatch.syspath_prepend(str(shared / "series"))
    judge: ModuleType = __import__("check_files")
    monkeypatch.delitem(sys.modules, "check_files")
    wrong = []
    for number, case in enumerate(json.loads((shared / "series/files.json").read_text())):
        folder = tmp_path / str(number)
        folder.mkdir()
        place, numbers = judge.place_of(case, folder)
        settings = {"window": 2048} if case["kind"] == "sound" else {}
        options = case.get("options", [])
        settings |= {k.strip("-"): v for k, v in zip(options[::2], options[1::2], strict=True)}
        try:
            data, test = loaded(f"{judge.KINDS[case['kind']]}:{place}", **settings)
        except DatasetError as error:
            if case["must"] == "right":
                wrong.append(f"{case['file']}: {error.message}")
            continue
        found = [judge.differs(case, n, test[n][0].numpy()) for n in numbers]
        wrong += [f"{case['file']}: {text}" for text in found if text]
        told = " ".join(data.notes).replace(case["file"], "")
        if case.get("notice") and not re.search(case["notice"], told, re.IGNORECASE):
            wrong.append(f"{case['file']}: only a part is read")
    assert not wrong


@pytest.mark.parametrize("kind", ["csv", "npz", "series"])
def test_other_data_is_scaled_as_that_of_training(tmp_path: Path, kind: str) -> None:
    """Measurements of a smaller range are not stretched to the range that the network knows."""
    x, y = np.random.default_rng(0).normal(size=(40, 2, 9)), np.arange(40) % 2
    files = []
    for n, values in enumerate((x, x / 4)):
        file = tmp_path / f"{n}.npz"
        if kind == "csv":
            file = file.with_suffix(".csv")
            rows = [",".join([*map(str, row), "ab"[n % 2]]) for n, row in enumerate(values[:, 0])]
            file.write_text("\n".join(rows))
        else:
            np.savez(file, x=values if kind == "series" else values[:, 0], y=y)
        files.append(str(file))
    trained = open_data(kind, files[0], USUAL)
    other = open_data(kind, files[1], USUAL, trained.preparation)
    assert other.preparation == trained.preparation
    wide, narrow = (data.read(False)[0].numpy().astype(int) for data in (trained, other))
    assert narrow.std() < 0.5 * wide.std()


def test_other_series_are_completed_to_the_length_of_training(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(12, 2, 600)), np.arange(12) % 2
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.savez(tmp_path / "b.npz", x=x[:, :, :500], y=y)
    np.savez(tmp_path / "c.npz", x=np.repeat(x, 2, 2), y=y)
    trained = open_data("series", str(tmp_path / "a.npz"), USUAL)
    shorter = open_data("series", str(tmp_path / "b.npz"), USUAL, trained.preparation)
    assert shorter.preparation == trained.preparation
    straight = shorter.read(False)[0].reshape(-1, 2, 2, 300).transpose(2, 3).flatten(2)
    wanted = trained.read(False)[0].reshape(-1, 2, 2, 300).transpose(2, 3).flatten(2)
    assert (straight[..., :500] == wanted[..., :500]).all()
    assert (straight[..., 500:] == straight[..., 499:500]).all()
    longer = open_data("series", str(tmp_path / "c.npz"), USUAL, trained.preparation)
    assert longer.preparation != trained.preparation
