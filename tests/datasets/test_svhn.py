"""SVHN: house numbers and the boxes of their digits, from made-up pictures."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import svhn
from datasets.boxes import collate
from datasets.errors import DatasetError

h5py = pytest.importorskip("h5py")

Digit = tuple[float, float, float, float, float]  # left, top, width, height, label
HOUSES: dict[str, list[Digit]] = {
    "1.png": [(40, 20, 20, 40, 2), (62, 20, 18, 40, 10)],
    "2.png": [(5, 5, 10, 20, 7)],
}


def _annotate(path: Path, houses: dict[str, list[Digit]]) -> None:
    """Write digitStruct.mat as MATLAB does: references, except for a single digit."""
    with h5py.File(path, "w") as file:
        names, boxes = [], []
        for number, (name, digits) in enumerate(houses.items()):
            text = np.array([[ord(c)] for c in name], np.uint16)
            names.append(file.create_dataset(f"names/{number}", data=text).ref)
            group = file.create_group(f"boxes/{number}")
            for column, field in enumerate(("left", "top", "width", "height", "label")):
                values = [np.array([[digit[column]]]) for digit in digits]
                if len(values) == 1:
                    group.create_dataset(field, data=values[0])
                    continue
                pointers = [
                    [file.create_dataset(f"ai8xtools/values/{number}/{field}/{i}", data=value).ref]
                    for i, value in enumerate(values)
                ]
                empty = np.zeros((0, 1), h5py.ref_dtype)
                group.create_dataset(
                    field, data=np.array(pointers, h5py.ref_dtype) if pointers else empty
                )
            boxes.append(group.ref)
        for key, references in (("name", names), ("bbox", boxes)):
            pointers = np.array([[r] for r in references], h5py.ref_dtype)
            file.create_dataset(f"digitStruct/{key}", data=pointers)


def _store(folder: Path) -> None:
    for part in ("train", "test"):
        (folder / part).mkdir(parents=True)
        for number, name in enumerate(HOUSES):
            picture = np.full((100, 120, 3), 40 + number, np.uint8)
            for left, top, width, height, label in HOUSES[name]:
                box = (slice(int(top), int(top + height)), slice(int(left), int(left + width)))
                picture[box] = 200 + label
            Image.fromarray(picture).save(folder / part / name)
        _annotate(folder / part / "digitStruct.mat", HOUSES)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    _store(tmp_path / "SVHN")
    return tmp_path


def _loaded(name: str, data: Path, args: Namespace) -> tuple[Any, Any]:
    loader: Any = next(r for r in svhn.datasets if r["name"] == name)["loader"]
    return loader((str(data), args))


def test_boxes_follow_their_digits(data: Path, args: Namespace) -> None:
    args.act_mode_8bit = True
    train, test = _loaded("SVHN_74", data, args)
    assert (len(train), len(test)) == (2, 2)
    images, objects = train.batch(torch.tensor([1, 0]))
    assert (images.shape, images.dtype) == ((2, 3, 74, 74), torch.float32)
    assert [labels.tolist() for _, labels in objects] == [[7], [2, 10]]
    for image, (boxes, labels) in zip(images, objects, strict=True):
        assert boxes.dtype == torch.float32
        assert float(boxes.min()) >= 0
        assert float(boxes.max()) <= 1
        for box, label in zip(boxes * 74, labels, strict=True):
            column, row = (int((box[i] + box[i + 2]) / 2) for i in range(2))
            assert int(image[0, row, column]) == 200 + int(label) - 128
            outside = min(int(box[2]) + 3, 73)
            assert int(image[0, row, outside]) != 200 + int(label) - 128


def test_records_and_one_class(data: Path, integers: Namespace) -> None:
    digits, simplified = svhn.datasets
    assert (digits["name"], simplified["name"]) == ("SVHN_74", "SVHN_74_simplified")
    assert digits["input"] == simplified["input"] == (3, 74, 74)
    assert digits["output"] == tuple(range(1, 11))
    assert simplified["output"] == (1,)
    assert digits["collate"] is collate
    _, test = _loaded("SVHN_74_simplified", data, integers)
    assert len(test) == 1
    assert test[0][1][1].tolist() == [1, 1]


def test_items_become_batches_with_lists(data: Path, args: Namespace) -> None:
    train, _ = _loaded("SVHN_74", data, args)
    images, objects = collate([train[0], train[1]])
    again, same = train.batch(torch.tensor([0, 1]))
    assert torch.equal(images, again)
    assert [len(labels) for _, labels in objects] == [2, 1]
    for one, other in zip(objects, same, strict=True):
        assert all(map(torch.equal, one, other))


@pytest.mark.parametrize(
    ("boxes", "width", "height", "expected"),
    [
        ([[40, 20, 80, 60]], 120, 100, (34, 14, 52)),  # 30 % larger, same middle
        ([[0, 0, 10, 20]], 120, 100, (0, 0, 26)),  # shifted into the picture
        ([[100, 80, 120, 100]], 120, 100, (94, 74, 26)),
        ([[10, 0, 90, 90]], 120, 100, (0, 0, 100)),  # as much as there is
        ([[0, 30, 120, 60]], 120, 50, (0, -15, 120)),  # leaves the picture
        ([[1.5, 2.5, 5.5, 6.5], [3, 3, 9, 5]], 50, 50, (0, 0, 10)),
    ],
)
def test_the_square_is_in_the_picture_if_it_can_be(
    boxes: list[list[float]], width: int, height: int, expected: tuple[int, int, int]
) -> None:
    assert svhn.square(np.array(boxes, float), width, height) == expected


def test_pictures_are_prepared_once(data: Path, args: Namespace) -> None:
    _loaded("SVHN_74", data, args)
    processed = data / "SVHN" / "processed"
    times = [p.stat().st_mtime_ns for p in sorted(processed.iterdir())]
    _loaded("SVHN_74_simplified", data, args)
    assert [p.stat().st_mtime_ns for p in sorted(processed.iterdir())] == times
    _annotate(data / "SVHN" / "test" / "digitStruct.mat", dict([*HOUSES.items()][:1]))
    _, test = _loaded("SVHN_74", data, args)
    assert len(test) == 1


@pytest.mark.parametrize(
    ("houses", "code", "message"),
    [
        ({"1.png": [(0, 0, 0, 5, 1)]}, "E625", "1.png must have digits"),
        ({"1.png": [(0, 0, 5, 5, 11)]}, "E625", r"labels \[11.0\]"),
        ({"1.png": []}, "E625", "it has 0"),
        ({"../1.png": [(0, 0, 5, 5, 1)]}, "E613", "no name of a picture"),
        (b"\x89HDF\r\n\x1a\n", "E613", "no table of house numbers"),
        (b"", "E613", "no table of house numbers"),
        ({}, "E620", "they name no pictures"),
        (None, "E620", "missing"),
    ],
)
def test_faulty_annotations_are_named(
    houses: Any, code: str, message: str, data: Path, args: Namespace
) -> None:
    path = data / "SVHN" / "test" / "digitStruct.mat"
    path.unlink()
    if isinstance(houses, bytes):
        path.write_bytes(houses)
    elif houses is not None:
        _annotate(path, houses)
    with pytest.raises(DatasetError, match=message) as info:
        _loaded("SVHN_74", data, args)
    assert (info.value.code, info.value.place) == (code, str(path))
    assert "housenumbers" in info.value.remedy


def test_annotations_of_something_else_are_refused(data: Path, args: Namespace) -> None:
    path = data / "SVHN" / "test" / "digitStruct.mat"
    with h5py.File(path, "w") as file:
        file["other"] = 1
    with pytest.raises(DatasetError, match="digitStruct") as info:
        _loaded("SVHN_74", data, args)
    assert (info.value.code, info.value.place) == ("E613", str(path))


def test_a_damaged_picture_is_named_and_nothing_is_left(data: Path, args: Namespace) -> None:
    path = data / "SVHN" / "train" / "2.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DatasetError) as info:
        _loaded("SVHN_74", data, args)
    assert (info.value.code, info.value.place) == ("E613", str(path))
    assert list((data / "SVHN" / "processed").iterdir()) == []
