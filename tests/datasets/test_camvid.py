"""CamVid: squares of pictures and the classes of their pixels, from made-up scenes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import ai8x
from datasets import camvid
from datasets.errors import DatasetError
from datasets.images import fold_batch

BLOCK = 40  # pixels of one class, in both directions


def _colour(index: int) -> tuple[int, int, int]:
    return (index * 7, 255 - index, index * 3)


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A picture [720, 960, 3] and the classes of its pixels [720, 960]."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 32, (720 // BLOCK, 960 // BLOCK)).repeat(BLOCK, 0).repeat(BLOCK, 1)
    classes[:BLOCK, :BLOCK] = 32  # None: a colour that is not in the table
    picture = rng.integers(0, 256, (72, 96, 3), dtype=np.uint8).repeat(10, 0).repeat(10, 1)
    return picture, classes


def _store(folder: Path, scene: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    picture, classes = scene
    colours = np.array([*map(_colour, range(32)), (1, 2, 3)], np.uint8)
    for part, count in (("train", 2), ("test", 1)):
        (folder / part).mkdir(parents=True)
        (folder / f"{part}_labels").mkdir()
        for number in range(count):
            Image.fromarray(np.roll(picture, number, 0)).save(folder / part / f"{number}.png")
            labels = Image.fromarray(colours[classes])
            labels.save(folder / f"{part}_labels" / f"{number}_L.png", compress_level=1)
    rows = [",".join(map(str, (n, *_colour(i)))) for i, n in enumerate(camvid.CLASSES[:32])]
    (folder / "class_dict.csv").write_text("\n".join(["name,r,g,b", *rows]))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, scene: Any) -> Path:
    folder = tmp_path_factory.mktemp("data")
    _store(folder / "CamVid", scene)
    return folder


def _record(name: str) -> dict[str, Any]:
    return next(r for r in camvid.datasets if r["name"] == name)


@pytest.mark.parametrize(
    ("name", "shape", "train", "test"),
    [
        ("CamVid_s80_c33", (3, 80, 80), 11 * 15, 11 * 15),
        ("CamVid_s80_c3", (3, 80, 80), 11 * 15, 11 * 15),
        ("CamVid_s352_c33", (48, 88, 88), 3 * 4, 2 * 3),
        ("CamVid_s352_c3", (48, 88, 88), 3 * 4, 2 * 3),
    ],
)
def test_records_tell_what_batches_are(
    name: str, shape: tuple[int, ...], train: int, test: int, data: Path, args: Namespace
) -> None:
    record = _record(name)
    three = name.endswith("_c3")
    assert record["input"] == shape
    assert record["output"] == ((0, 1, 2, 3) if three else camvid.CLASSES)
    assert len(camvid.CLASSES) == 33
    assert record.get("weight") == ((1, 1, 1, 0.14 if "s80" in name else 1) if three else None)
    loader: Callable[..., Any] = record["loader"]
    train_set, test_set = loader((str(data), args))
    assert (len(train_set), len(test_set)) == (2 * train, test)
    x, targets = train_set.batch(torch.tensor([0, len(train_set) - 1]))
    side = shape[1] * record["fold_ratio"]
    assert (x.shape, x.dtype) == ((2, *shape), torch.float32)
    assert (targets.shape, targets.dtype) == ((2, side, side), torch.int64)
    assert torch.equal(x * 128, (x * 128).round().clamp(-128, 127))


def test_squares_stand_where_they_should(data: Path, scene: Any, integers: Namespace) -> None:
    integers.truncate_testset = False
    picture, classes = scene
    _, test = _record("CamVid_s352_c33")["loader"]((str(data), integers), load_train=False)
    for index, (top, left) in enumerate((t, n) for t in (0, 352) for n in (0, 298, 596)):
        x, target = test[index]
        part = (slice(top, top + 352), slice(left, left + 352))
        expected = torch.from_numpy(picture[part].astype(np.float32) - 128).permute(2, 0, 1)
        assert torch.equal(ai8x.unfold_batch(x[None], 4)[0], expected)
        assert np.array_equal(target.numpy(), classes[part])
    assert test[0][1][0, 0] == 32
    integers.truncate_testset = True
    _, test = _record("CamVid_s352_c3")["loader"]((str(data), integers), load_train=False)
    assert len(test) == 1
    three = torch.tensor([{4: 0, 21: 1, 26: 2}.get(c, 3) for c in range(33)])
    assert torch.equal(test[0][1], three[torch.from_numpy(classes[:352, :352])])


def test_folding_a_batch_is_folding_each_image() -> None:
    images = torch.rand(3, 3, 8, 12)
    assert torch.equal(fold_batch(images, 4), torch.stack([ai8x.fold(4)(i) for i in images]))
    assert torch.equal(fold_batch(images, 1), images)


def test_pictures_are_prepared_again_when_files_change(
    scene: Any, args: Namespace, tmp_path: Path
) -> None:
    folder = tmp_path / "CamVid"
    _store(folder, scene)
    loader = _record("CamVid_s352_c33")["loader"]
    _, test = loader((str(tmp_path), args), load_train=False)
    cached = (folder / "processed" / "test.pt").stat().st_mtime_ns
    loader((str(tmp_path), args), load_train=False)
    assert (folder / "processed" / "test.pt").stat().st_mtime_ns == cached
    assert [p.name for p in (folder / "processed").iterdir()] == ["test.pt"]
    for source in ((folder / "train" / "1.png"), (folder / "train_labels" / "1_L.png")):
        source.rename(str(source).replace("train", "test"))
    _, more = loader((str(tmp_path), args), load_train=False)
    assert len(more) == 2 * len(test)


def _break(folder: Path, fault: str) -> Path:
    """Damage one thing in a data folder and return the path that the message must name."""
    labels, image = folder / "test_labels" / "0_L.png", folder / "test" / "0.png"
    table = folder / "class_dict.csv"
    match fault:
        case "missing label":
            labels.unlink()
            return labels
        case "missing table":
            table.unlink()
            return table
        case "other table":
            table.write_text("red;green\n1;2\n")
            return table
        case "short table":
            table.write_text("\n".join(table.read_text().splitlines()[:-1]))
            return table
        case "size":
            Image.new("RGB", (960, 719)).save(image)
            return image
        case "label size":
            Image.new("RGB", (96, 72)).save(labels)
            return labels
        case "label colours":
            Image.new("RGB", (960, 720), (9, 9, 9)).save(labels)
            return labels
        case "damaged":
            image.write_bytes(image.read_bytes()[:3000])
            return image
    image.unlink()
    return image.parent


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("missing label", "E620", "missing"),
        ("missing table", "E620", "missing"),
        ("empty", "E620", "no pictures"),
        ("other table", "E613", "no table of name, r, g, b"),
        ("short table", "E625", "no colour for Wall"),
        ("size", "E625", "960x719 pixels; it must have 960x720"),
        ("label size", "E625", "96x72 pixels"),
        ("label colours", "E625", "not in class_dict.csv"),
        ("damaged", "E613", "cannot be read"),
    ],
)
def test_faults_are_named(
    fault: str, code: str, message: str, scene: Any, args: Namespace, tmp_path: Path
) -> None:
    folder = tmp_path / "CamVid"
    _store(folder, scene)
    place = _break(folder, fault)
    with pytest.raises(DatasetError, match=message) as info:
        _record("CamVid_s80_c3")["loader"]((str(tmp_path), args), load_train=False)
    assert (info.value.code, info.value.place) == (code, str(place))
    processed = folder / "processed"
    assert not processed.exists() or list(processed.iterdir()) == []
