"""Data of one's own: class folders of pictures and sounds, CSV, npz."""

from __future__ import annotations

import wave
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets.errors import DatasetError
from datasets.image_files import opened as opened_file
from datasets.own.folders import class_files
from datasets.own.preparation import PICTURES, Preparation, integers, read_sound
from datasets.own.sets import LazyPictures, open_data
from datasets.own.settings import USUAL, DataSettings, plain_name
from datasets.own.tables import read_table
from tests.datasets.conftest import opened

INTEGERS = Namespace(act_mode_8bit=True, truncate_testset=False)


def picture(path: Path, size: tuple[int, int] = (10, 8), level: int = 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.arange(3 * size[0] * size[1], dtype=np.int64).reshape(size[1], size[0], 3)
    Image.fromarray(((pixels * 7 + level) % 256).astype(np.uint8)).save(path)
    return path


def pictures(root: Path, classes: tuple[str, ...] = ("cat", "dog"), count: int = 5) -> Path:
    for n, name in enumerate(classes):
        for k in range(count):
            picture(root / name / f"{k}.png", level=40 * n + 9 * k)
    return root


def sound(path: Path, samples: Any, rate: int = 16000, width: int = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    levels = np.round(np.asarray(samples, np.float64) * ((1 << 8 * width - 1) - 1)).astype("<i4")
    raw = levels.reshape(-1, 1).view(np.uint8)[:, :width]
    data = (levels + 128).astype(np.uint8).tobytes() if width == 1 else raw.tobytes()
    with wave.open(str(path), "wb") as file:
        file.setparams((1 if np.ndim(samples) == 1 else 2, width, rate, 0, "NONE", ""))
        file.writeframes(data)
    return path


def test_test_pictures_are_the_same_in_each_run_and_in_no_training(tmp_path: Path) -> None:
    folder = pictures(tmp_path, count=10)
    found = [
        class_files(folder, PICTURES, DataSettings(test_share=0.3, split_seed=seed))
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] and found[0].test != found[2].test
    assert len(found[0].test) == 6 and not {*found[0].test} & {*found[0].train}
    assert [label for _, label in found[0].test] == [0, 1] * 3


@pytest.mark.parametrize("kind", ["folder", "csv", "npz", "series", "groups", "recordings"])
def test_parts_of_the_data_test_each_sample_once(tmp_path: Path, kind: str) -> None:
    """And no part has samples of its own training; of groups, none of its groups."""
    count, place = 23, tmp_path / "data"
    classes, groups = np.arange(count) % 2, np.arange(count) // 3
    if kind == "folder":
        for n in range(count):
            pictures(tmp_path / f"{n}", ("x",), 1)
            (place / "ab"[n % 2]).mkdir(parents=True, exist_ok=True)
            next((tmp_path / f"{n}").rglob("*.png")).rename(place / "ab"[n % 2] / f"{n}.png")
    elif kind == "csv":
        place.write_text("".join(f"{n},{-n},c{n % 2}\n" for n in range(count)))
    elif kind == "recordings":
        for n in range(count):
            (place / "ab"[n % 2]).mkdir(parents=True, exist_ok=True)
            (place / "ab"[n % 2] / f"{n}.csv").write_text("1,2\n3,4\n")
    else:
        x = np.arange(count * 6.0).reshape(count, *((6,) if kind == "npz" else (2, 3)))
        more = {"groups": groups} if kind == "groups" else {}
        place = tmp_path / "data.npz"
        np.savez(place, x=x, y=classes, **more)
    name = {"groups": "series", "recordings": "series"}.get(kind, kind)
    tests = []
    for part in range(4):
        settings = DataSettings(test_share=0.25, test_part=part).over(USUAL)
        data = open_data(name, str(place), settings)
        trained, tested = ({*data.read(training)[2]} for training in (True, False))
        assert trained and tested and not trained & tested
        if kind == "groups":
            numbers = [[int(n.rpartition("[")[2][:-1]) // 3 for n in s] for s in (trained, tested)]
            assert not {*numbers[0]} & {*numbers[1]}
        tests += tested
    assert len(tests) == len({*tests}) == count


def test_parts_are_refused_where_tests_lie_apart(tmp_path: Path) -> None:
    for part in ("train", "test"):
        pictures(tmp_path / "folder" / part, ("a", "b"), 2)
        (tmp_path / f"{part}.csv").write_text("1,2,a\n3,4,b\n" * 3)
    x, y = np.zeros((4, 3)), np.arange(4) % 2
    np.savez(tmp_path / "x.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    for name in ("folder:folder", "csv:", "npz:x.npz", "series:x.npz", "series:"):
        kind, _, path = name.partition(":")
        with pytest.raises(DatasetError, match="tests lie apart"):
            open_data(kind, str(tmp_path / path), DataSettings(test_part=0).over(USUAL))


def test_folders_for_training_and_tests_are_used_as_they_are(tmp_path: Path) -> None:
    pictures(tmp_path / "train", ("b", "a"), 3)
    pictures(tmp_path / "test", ("a", "b"), 2)
    data, train, test = opened(f"folder:{tmp_path}")
    assert data.classes == ("a", "b") and (len(train), len(test)) == (6, 4)


@pytest.mark.parametrize("settings", [{}, {"grayscale": True}, {"resize": (6, 6)},
                                      {"resize": (4, 12), "stretch": True}])  # fmt: skip
def test_a_picture_is_the_same_for_training_and_for_the_emulator(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    folder = pictures(tmp_path)
    data, _, test = opened(f"folder:{folder}", **settings)
    path, label = class_files(folder, PICTURES, USUAL).test[1]
    (wanted,) = data.preparation.inputs_of(path)
    x, target = test[1]
    assert target == label and np.array_equal(wanted, (x * 128).numpy())
    samples, *_ = data.read(False)
    lazy = LazyPictures((path,), data.preparation)[torch.tensor([0])]
    assert torch.equal(lazy[0], samples[1])


def test_integers_are_those_that_ai8x_makes() -> None:
    import ai8x

    every = np.arange(256, dtype=np.uint8)
    wanted = ai8x.normalize(INTEGERS)(torch.from_numpy(every).float().div(255))
    assert np.array_equal(integers(every), wanted.numpy())


def test_pictures_are_cut_in_the_middle(tmp_path: Path) -> None:
    pixels = np.zeros((8, 16, 3), np.uint8)
    pixels[:, 2:14] = 255
    Image.fromarray(pixels).save(tmp_path / "x.png")
    (found,) = Preparation("picture", (1, 4, 4)).inputs_of(tmp_path / "x.png")
    assert (found == 127).all()
    (whole,) = Preparation("picture", (1, 4, 4), stretch=True).inputs_of(tmp_path / "x.png")
    assert whole[0, 0].tolist() != [127] * 4


def test_augmentation_changes_training_pictures_only(tmp_path: Path) -> None:
    folder = pictures(tmp_path, count=8)
    names = ("mirror", "shift", "turn", "light")
    _, train, test = opened(f"folder:{folder}", augment=names)
    _, plain, same = opened(f"folder:{folder}")
    every = torch.arange(4)
    assert torch.equal(test.batch(torch.arange(2))[0], same.batch(torch.arange(2))[0])
    torch.manual_seed(0)
    changed = train.batch(every)[0]
    assert not torch.equal(changed, plain.batch(every)[0])
    assert changed.min() >= -1 and changed.max() < 1


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sounds_of_every_width_are_cut_into_windows(tmp_path: Path, width: int) -> None:
    ramp = np.linspace(-0.9, 0.9, 640)
    how = Preparation("sound", (128, 2, 1))
    parts = read_sound(sound(tmp_path / "x.wav", ramp, width=width), how)
    assert len(parts) == 3  # 2.5 windows: the rest is filled up
    values = np.concatenate([part[:, :, 0].T.reshape(-1) for part in parts])
    np.testing.assert_allclose(values[:640] / 128 - 1, ramp, atol=1.5 / 128)
    assert (values[640:] == 128).all()


def test_sounds_are_resampled_and_tracks_averaged(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    time = np.arange(3200) / 32000
    tone = 0.5 * np.sin(2 * np.pi * 250 * time)
    both = np.stack([tone, tone * 0.5], 1)
    (part,) = read_sound(sound(tmp_path / "x.wav", both, 32000), Preparation("sound", (128, 12, 1)))
    values = part[:, :, 0].T.reshape(-1)[100:1500] / 128 - 1
    wanted = 0.375 * np.sin(2 * np.pi * 250 * np.arange(100, 1500) / 16000)
    np.testing.assert_allclose(values, wanted, atol=0.02)


def test_sounds_train_in_windows(tmp_path: Path) -> None:
    for label, name in enumerate(("low", "high")):
        for k in range(4):
            tone = np.sin(np.arange(600) * (0.05 + label / 2) + k)
            sound(tmp_path / name / f"{k}.wav", tone * 0.5)
    data, train, test = opened(f"sounds:{tmp_path}", window=256, augment=("shift", "light"))
    assert data.preparation.shape == (128, 2, 1) and data.classes == ("high", "low")
    x, labels = train.batch(torch.arange(4))
    assert x.shape == (4, 128, 2) and labels.tolist() == [0, 0, 1, 1]
    assert len(train) == 12 and len(test) == 4


def test_flac_is_read_as_wav(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    samples = np.round(np.sin(np.arange(256)) * 16000) / 32768
    soundfile.write(str(tmp_path / "x.flac"), samples, 16000)
    how = Preparation("sound", (128, 2, 1))
    plain = sound(tmp_path / "x.wav", samples * 32768 / 32767)
    assert np.array_equal(read_sound(tmp_path / "x.flac", how), read_sound(plain, how))


def test_a_table_is_scaled_by_its_extremes_in_training(tmp_path: Path) -> None:
    file = tmp_path / "iris.csv"
    rows = [f"{n},7,{-n / 4},{'even' if n % 2 == 0 else 'odd, 1'!r}" for n in range(20)]
    file.write_text("a,b,c,kind\n" + "\n".join(rows).replace("'", '"') + "\n")
    data, train, test = opened(f"csv:{file}", label="kind")
    assert data.classes == ("even", "odd, 1") and data.preparation.shape == (3, 1, 1)
    x, y = train.batch(torch.arange(len(train)))
    assert x.shape[1:] == (3, 1) and (len(train), len(test)) == (16, 4)
    assert x[:, 0].min() == -1 and x[:, 0].max() == 127 / 128 and not x[:, 1].any()
    assert {len(y), *y.tolist()} == {16, 0, 1}


def test_a_table_without_names_has_its_class_last(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("".join(f"{n},{n * n},{n % 2}\n" for n in range(10)))
    data, train, _ = opened(f"csv:{file}")
    assert data.classes == ("0", "1") and train[0][0].shape == (2, 1)


@pytest.mark.parametrize(
    ("above", "encoding", "separator", "titles"),
    [
        ("# made on Monday, 3 o'clock, by a board, of three\n\n# again\n", "utf-8", ",", ()),
        ("# made on Monday\nu,v,label\n", "utf-8", ",", ("u", "v", "label")),
        ("# made on Monday\n# u,v,label\n", "utf-8", ",", ("# u", "v", "label")),
        ("sep=;\nu;v;label\n", "utf-16", ";", ("u", "v", "label")),
        ('"sep=|"\n# see below\n', "utf-8", "|", ()),
        ("# pump, hall 3\n\nsep=;\nu;v;label\n", "utf-8", ";", ("u", "v", "label")),
        ("# made,by,me\nu,v,label\n", "utf-8", ",", ("u", "v", "label")),
    ],
)
def test_comments_and_separators_above_a_table_are_no_rows(
    tmp_path: Path, above: str, encoding: str, separator: str, titles: tuple[str, ...]
) -> None:
    rows = f"1{separator}2{separator}a\n3{separator}4{separator}b\n"
    rows += rows
    (tmp_path / "x.csv").write_bytes((above + rows).encode(encoding))
    table = read_table(tmp_path / "x.csv", None)
    first = above.count("\n") + 1
    assert table.features.tolist() == [[1, 2], [3, 4]] * 2
    assert table.labels == ("a", "b", "a", "b")
    assert table.numbers == tuple(range(first, first + 4)) and table.titles == titles


@pytest.mark.parametrize("layout", ["NHW", "NHWC", "NCHW"])
def test_arrays_of_bytes_are_pictures(tmp_path: Path, layout: str) -> None:
    shape = {"NHW": (12, 4, 6), "NHWC": (12, 4, 6, 3), "NCHW": (12, 3, 4, 6)}[layout]
    x = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    np.savez(tmp_path / "x.npz", x=x, y=np.arange(12) % 3 + 5)
    data, train, _ = opened(f"npz:{tmp_path / 'x.npz'}")
    assert data.preparation.shape == (1 if layout == "NHW" else 3, 4, 6)
    assert data.classes == ("5", "6", "7") and train[0][0].shape == data.preparation.shape


def test_arrays_for_tests_are_used_as_they_are(tmp_path: Path) -> None:
    x, names = np.random.default_rng(0).random((9, 5)), np.array([-1, 0, 7])
    file = tmp_path / "x.npz"
    np.savez_compressed(
        file, x_train=x[:6], y_train=names[np.arange(6) % 3], x_test=x[6:], y_test=names
    )
    data, train, test = opened(f"npz:{file}")
    assert data.classes == ("-1", "0", "7") and (len(train), len(test)) == (6, 3)
    assert data.preparation.kind == "features"


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def one_class(root: Path) -> str:
    return f"folder:{pictures(root, ('cat',))}"


def empty_class(root: Path) -> str:
    (pictures(root) / "bird").mkdir()
    return f"folder:{root}"


def broken_picture(root: Path) -> str:
    written(pictures(root) / "cat" / "3.png", b"\x89PNG\r\n\x1a\n and more")
    return f"folder:{root}"


def empty_picture(root: Path) -> str:
    written(pictures(root) / "cat" / "3.png", b"")
    return f"folder:{root}"


def odd_name(root: Path) -> str:
    return f"folder:{pictures(root, ('cat', 'do' + chr(27) + 'g'))}"


def unequal(root: Path) -> str:
    picture(pictures(root) / "dog" / "0.png", (12, 8))
    return f"folder:{root}"


def other_classes(root: Path) -> str:
    pictures(root / "train")
    pictures(root / "test", ("cat", "bird"))
    return f"folder:{root}"


def csv(text: str) -> Callable[[Path], str]:
    return lambda root: f"csv:{written(root / 'x.csv', text)}"


def npz(**arrays: Any) -> Callable[[Path], str]:
    def save(root: Path) -> str:
        np.savez(root / "x.npz", **arrays)
        return f"npz:{root / 'x.npz'}"

    return save


def no_sound(root: Path) -> str:
    for name in ("a", "b"):
        for k in range(2):
            written(root / name / f"{k}.wav", b"RIFF" if name == "a" else b"")
    return f"sounds:{root}"


X, Y = np.zeros((4, 3), np.float32), np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("make", "place", "message"),
    [
        (lambda root: f"folder:{root / 'none'}", "none", "the folder is missing"),
        (lambda root: f"folder:{root}", "", "it has no class folders"),
        (one_class, "", "it has only the class folder cat; there must be two [E683]"),
        (empty_class, "bird", "none of the files"),
        (broken_picture, "3.png", "no picture"),
        (empty_picture, "3.png", "the file is empty"),
        (odd_name, "", "cannot be printed"),
        (unequal, "0.png", "has 10x8 [E625]"),
        (other_classes, "test", "bird, dog in one of them only"),
        (no_sound, ".wav", "no WAV file of samples (it ends early)"),
        (csv(""), "x.csv", "the file is empty [E684]"),
        (csv("sep=:\n1:2:a\n"), "x.csv:1", "cells are separated by ':' [E684]"),
        (csv("1,2,a\n# a pause\n3,4,b\n"), "x.csv:2", "the row has 1 cells, the first one 3"),
        (csv("1,\x002,a\n3,4,b\n"), "x.csv:1",
         "it has bytes of value 0, as text in UTF-16 without its byte order mark [E684]"),
        (npz(x=np.full((4, 1), 2**53 + 1, np.uint64), y=np.array([0, 0, 1, 1])), "x.npz",
         "x[0, 0] is 9007199254740993: beyond 2^53 numbers are rounded [E685]"),
        (csv(",,\n,,\n"), "x.csv", "the file is empty [E684]"),
        (csv("0,1,2\n5,6,1\n7,8,0\n"), "x.csv:1", "column titles or data?"),
        (csv("5,6,1,\n7,8,0,\n"), "x.csv:1", "the label in column 3 is missing"),
        (csv("a,b,c\n1,2,x\n1,,y\n"), "x.csv:3", "the cell of column b is missing"),
        (csv("a,b,c\n1,2,x\n1,abc,y\n"), "x.csv:3", "column b is 'abc', no number"),
        (csv("a,b,c\n1,2,x\n1,٣,y\n"), "x.csv:3", "column b is '٣', no number"),
        (csv("a,b,c\n1,2,x\n1,2\n"), "x.csv:3", "the row has 2 cells"),
        (csv("a,b,c\n1,2,x\n1,nan,y\n"), "x.csv:3", "column b is 'nan'"),
        (csv("1,2,x\n1,2,x\n1,3,x\n"), "x.csv", "only the class 'x'"),
        (npz(x=X, y=np.array([0, None, "a", 1], object)), "x.npz", "Python objects"),
        (npz(x=np.array([[object()]] * 4), y=Y), "x.npz", "Python objects"),
        (npz(x=X), "x.npz", "there is no array y [E685]"),
        (npz(x=X[:1], y=Y[:1]), "x.npz", "1 samples for training, 0 for tests"),
        (npz(x=X, y=Y[:3]), "x.npz", "one label for each sample"),
        (npz(x=X[:, :0], y=Y), "x.npz", "x is 4x0: samples without numbers [E685]"),
        (npz(x=X + np.nan, y=Y), "x.npz", "x[0, 0] is not finite"),
        (npz(x=X, y=Y / 2), "x.npz", "labels are float64"),
        (npz(x_train=X, y_train=Y, x_test=X, y_test=Y + 1), "x.npz", "the class 2 of a test"),
        (lambda root: f"npz:{written(root / 'x.npz', b'PK')}", "x.npz", "no archive, or damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_place(
    tmp_path: Path, make: Callable[[Path], str], place: str, message: str
) -> None:
    with pytest.raises(DatasetError) as refusal:
        opened(make(tmp_path))
    found = refusal.value
    assert message in f"{found.message} [{found.code}]" and str(found.place).endswith(place), found
    assert found.remedy


def test_names_of_files_become_names_of_projects() -> None:
    assert plain_name("folder:/tmp/My Ünits/") == "My__nits"
    assert plain_name("csv:data/iris.csv") == "iris" and plain_name("MNIST") == "MNIST"
    assert plain_name("folder:..") == "folder"


def test_pictures_of_too_many_pixels_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    Image.new("1", (10000, 7001)).save(path)
    with (
        pytest.raises(DatasetError, match="10000x7001 pixels, the limit is 70,000,000"),
        opened_file(path),
    ):
        pass
