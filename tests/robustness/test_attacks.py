"""Attacks made by hand: each ends in a refusal or a success, soon, and never in a defect (E009)."""

from __future__ import annotations

import os
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic
from tests.robustness.mistakes import POLICY, Mistake, said
from tests.robustness.starts import CHECKPOINT, DESCRIPTION, SAMPLE, own_starts

STARTS = {start.name: start for start in own_starts()}
START = STARTS["mnist (trained)"]
TEXT = START.files[DESCRIPTION].decode()
SECONDS = 5.0
ANCHORS = "[&x0 [1, 1, 1, 1, 1, 1, 1, 1], " + ", ".join(
    f"&x{n} [{', '.join([f'*x{n - 1}'] * 8)}]" for n in range(1, 30)
) + "]"  # fmt: skip
VALUES = {
    "billion laughs": ANCHORS,
    "itself": "&a [*a]",
    "huge integer": "9" * 5000,
    "huge hexadecimal": "0x" + "f" * 5000,
    "huge exponent": "1e999999999",
    "infinity": ".inf",
    "not a number": ".nan",
    "timestamp": "2026-13-45",
    "date": "2026-01-01",
    "sexagesimal": "190:20:30",
    "octal": "0o17",
    "old octal": "017",
    "binary": "!!binary aGVsbG8=",
    "set": "!!set {a, b}",
    "ordered map": "!!omap [a: 1]",
    "python": "!!python/object/apply:os.system ['true']",
    "boolean tag": "!!bool maybe",
    "integer tag": "!!int ''",
    "float tag": "!!float x",
    "deep list": "[" * 2000 + "]" * 2000,
    "deep mapping": "{a: " * 500 + "1" + "}" * 500,
    "key that is a list": "{[1, 2]: 3}",
    "key that is a mapping": "{{a: 1}: 3}",
    "key that is null": "{null: 3}",
    "merge": "{<<: 3}",
    "merge of itself": "&m {<<: *m}",
    "surrogate": '"\\ud800"',
    "escape codes": '"\\e[2J\\e]0;x\\a"',
    "zero byte": '"\\0"',
    "line separator": '"a\\Lb"',
    "direction": '"\\u202eabc"',
    "long text": "x" * 200_000,
    "long plain key": "{" + "k" * 100_000 + ": 1}",
    "many keys": "{" + ", ".join(f"k{n}: {n}" for n in range(9000)) + "}",
    "value tag": "=",
    "empty": "",
    "block": "|\n    text\n    more",
    "document end": "1\n---\narch: other",
    "alias of nothing": "*nobody",
    "percent": "%YAML",
    "tilde": "~",
}
BYTES = {
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-32": TEXT.encode("utf-32"),
    "Latin-1": b"# gr\xfc\xdfe\n" + TEXT.encode(),
    "zeros": bytes(100_000),
    "line ends of Windows": TEXT.replace("\n", "\r\n").encode(),
    "line ends of old Macs": TEXT.replace("\n", "\r").encode(),
    "nothing": b"",
    "newlines": b"\n" * (10 << 20),
    "ten megabytes of layers": b"layers:\n" + b"  - {op: Conv2d}\n" * 600_000,
    "ten megabytes of a comment": TEXT.encode() + b"#" * (10 << 20),
    "ten megabytes of brackets": b"[" * (10 << 20),
    "three megabytes of brackets": b"[" * (3 << 20),
    "three megabytes of colons": b"a: " * (1 << 20),
    "three megabytes of quotes": b"'" * (3 << 20),
    "three megabytes of anchors": b"".join(b"&a%d " % n for n in range(400_000)),
    "tabs": b"\t" * 1000,
}


def quick(work: Callable[[], list[Diagnostic]]) -> list[Diagnostic]:
    """Do what ends soon; return what it says."""
    start = time.process_time()
    found = work()
    assert time.process_time() - start < SECONDS
    for d in found:
        said_of = f"{d.message}{d.remedy}"
        assert d.code != "E009", said_of
        assert len(d.message) < 4000 and "\x1b" not in said_of and "\x00" not in said_of
    return found


@pytest.mark.parametrize("key", ["pad", "processors", "op", "name", "arch"])
@pytest.mark.parametrize("value", VALUES)
def test_value_in_a_description(tmp_path: Path, value: str, key: str) -> None:
    line = next(x for x in TEXT.split("\n") if x.strip(" -").startswith(f"{key}:"))
    text = TEXT.replace(line, f"{line.partition(':')[0]}: {VALUES[value]}", 1)
    files = {**START.files, DESCRIPTION: text.encode("utf-8", "surrogatepass")}
    quick(lambda: said(Mistake("", "", START.args, files), tmp_path))


@pytest.mark.parametrize("content", BYTES)
def test_bytes_of_a_description(tmp_path: Path, content: str) -> None:
    files = {**START.files, DESCRIPTION: BYTES[content]}
    quick(lambda: said(Mistake("", "", START.args, files), tmp_path))


@pytest.mark.parametrize(
    ("reader", "key"),
    [("qat", "start_epoch"), ("schedule", "policies"), ("search", "kd_params"), ("objects", "nms")],
)
def test_values_of_policies(tmp_path: Path, reader: str, key: str) -> None:
    for value in VALUES.values():
        content = f"{key}: {value}".encode("utf-8", "surrogatepass")
        mistake = Mistake("", "", (), {POLICY: content}, reader=reader)
        quick(lambda mistake=mistake: said(mistake, tmp_path))  # type: ignore[misc]


@pytest.mark.parametrize("content", BYTES)
def test_bytes_of_a_policy(tmp_path: Path, content: str) -> None:
    mistake = Mistake("", "", (), {POLICY: BYTES[content]}, reader="qat")
    assert quick(lambda: said(mistake, tmp_path))


def _npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data


SAMPLES = {
    "objects": _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 28, 28)}\n", b"N."),
    "negative": _npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 28, 28)}\n"),
    "huge": _npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': (1, {1 << 62}, 4)}}\n"),
    "product of zero": _npy(f"{{'descr': '<i8', 'fortran_order': False, 'shape': (0, {1 << 62})}}"),
    "many axes": _npy("{'descr': '|i1', 'fortran_order': False, 'shape': (" + "1, " * 200 + ")}"),
    "code": _npy("{'descr': __import__('os').system('true'), 'shape': (1,)}"),
    "deep header": _npy("(" * 9000),
    "structured": _npy("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,)}"),
    "version 9": _npy("{}", version=b"\x09\x00"),
    "long header": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "Fortran order": _npy(
        "{'descr': '<i8', 'fortran_order': True, 'shape': (1, 28, 28)}\n", bytes(8 * 784)
    ),
    "big endian": _npy(
        "{'descr': '>i8', 'fortran_order': False, 'shape': (1, 28, 28)}\n", bytes(8 * 784)
    ),
    "text": b"1 2 3\n",
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(tmp_path: Path, name: str) -> None:
    files = {**START.files, SAMPLE: SAMPLES[name]}
    found = quick(lambda: said(Mistake("", "", START.args, files), tmp_path))
    assert bool(found) == (name not in ("Fortran order", "big endian"))


@pytest.mark.parametrize("option", ["--config-file", "--checkpoint-file", "--sample-input"])
@pytest.mark.parametrize(
    "place", ["pipe", "folder", "/dev/zero", "/dev/null", "loop", "a\x00b", ""]
)
def test_special_files(tmp_path: Path, option: str, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    args = list(START.args)
    args[args.index(option) + 1] = place
    assert quick(lambda: said(Mistake("", "", tuple(args), dict(START.files)), tmp_path))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--prefix", "\x1b[2J"), ("--prefix", "a\nb"), ("--prefix", "../../x"), ("--prefix", ""),
        ("--prefix", "x" * 5000), ("--board-name", "\u202ex"), ("--timer", "9" * 5000),
        ("--timer", "٣"), ("--apb-base", "0x" + "f" * 100), ("--apb-base", "1e9"),
        ("--weight-start", "-" + "9" * 30), ("--input-offset", "nan"), ("--test-dir", "\x07"),
        ("--config-file", "\x1b]0;x\x07.yaml"), ("--device", "\x1b[31m"), ("--no-bias", "1,,2"),
        ("--no-bias", "9" * 400), ("--streaming-layers", "0-99999999999"), ("--boost", "-1.-1"),
        ("--start-layer", str(1 << 70)), ("--input-split", str(1 << 40)), ("--output-width", "٨"),
    ],
)  # fmt: skip
def test_values_of_options(tmp_path: Path, option: str, value: str) -> None:
    args = (*START.args, option, value)
    quick(lambda: said(Mistake("", "", args, dict(START.files)), tmp_path))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_picture_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    from datasets.errors import DatasetError
    from datasets.image_files import opened

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(10 << 20))
    parts = [_chunk(b"IHDR", header), _chunk(b"IDAT", data), _chunk(b"IEND", b"")]
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DatasetError), opened(path) as image:
        image.convert("RGB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


@pytest.mark.parametrize("claimed", [0, 1, 0xFFFFFFFF])
def test_sound_that_claims_any_length_is_refused_or_short(tmp_path: Path, claimed: int) -> None:
    from datasets.audio import read_recording
    from datasets.errors import DatasetError

    form = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)
    body = b"WAVE" + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", claimed)
    path = tmp_path / "a.wav"
    path.write_bytes(b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + body + bytes(100))
    try:
        assert np.asarray(read_recording(path)).size < 1000
    except DatasetError as refused:
        assert refused.code in ("E613", "E620", "E625")


def test_checkpoint_of_any_bytes_between_its_parts(tmp_path: Path) -> None:
    data = START.files[CHECKPOINT]
    rng = np.random.default_rng(3)
    for _ in range(40):
        at, size = rng.integers(len(data)), int(rng.choice((1, 4, 30)))
        changed = data[:at] + rng.bytes(size) + data[at + size :]
        files = {**START.files, CHECKPOINT: changed}
        quick(lambda files=files: said(Mistake("", "", START.args, files), tmp_path))  # type: ignore[misc]
