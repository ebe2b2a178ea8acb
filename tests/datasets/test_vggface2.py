"""Faces of VGGFace2, from made-up pictures and tables."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import vggface2
from datasets.errors import DatasetError
from datasets.vggface2 import similarity

BOX = (50, 40, 80, 100)
MARKS = (80, 75, 120, 75, 100, 95, 85, 115, 115, 115)


def _load(name: str, data: Path, args: Namespace, **wanted: bool) -> tuple[Any, Any]:
    loader: Any = next(r["loader"] for r in vggface2.datasets if r["name"] == name)
    found: tuple[Any, Any] = loader((str(data), args), **wanted)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "VGGFace-2"
    (folder / "bb_landmark").mkdir(parents=True)
    for part in ("train", "test"):
        boxes, marks = ["NAME_ID,X,Y,W,H"], ["NAME_ID,P1X,P1Y,..."]
        for identity in range(2):
            for number in range(6):
                name = f"n{identity:06}/{number:04}_01"
                _picture(folder / part / f"{name}.jpg")
                boxes.append(f'"{name}",{",".join(map(str, BOX))}')
                marks.append(f'"{name}",{",".join(map(str, MARKS))}')
        for kind, lines in (("bb", boxes), ("landmark", marks)):
            path = folder / "bb_landmark" / f"loose_{kind}_{part}.csv"
            path.write_text("\n".join(lines) + "\n")
    return tmp_path


def _picture(path: Path) -> None:
    """Write a picture whose red grows to the right and whose green grows downwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    x, y = np.meshgrid(np.arange(200), np.arange(180))
    pixels = np.stack([x, y, np.full_like(x, 90)], -1).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=100, subsampling=0)


def test_faces_are_cut_out_and_aligned(data: Path, args: Namespace) -> None:
    train, test = _load("VGGFace2_FaceID", data, args)
    assert (len(train), len(test)) == (12, 12)
    x, label = test[0]
    assert x.shape == train[0][0].shape == (6, 112, 112)
    assert label.shape == (1,)
    pixels = (x * 128 + 128).round()
    margin = 50 - 0.1 * 80
    assert abs(float(pixels[0, 50, 0]) - margin) < 4  # red is the column
    assert abs(float(pixels[0, 50, 111]) - (margin + 96)) < 4
    # the eyes of the aligned face are where the template has them
    for (column, row), mark in zip(((38, 52), (74, 52)), ((80, 75), (120, 75)), strict=True):
        assert abs(float(pixels[3, row, column]) - mark[0]) < 5
        assert abs(float(pixels[4, row, column]) - mark[1]) < 5


def test_larger_faces_are_of_the_same_kind(data: Path, integers: Namespace) -> None:
    _, test = _load("VGGFace2_FaceID_160_120", data, integers, load_train=False)
    assert len(test) == 1
    assert test[0][0].shape == (6, 160, 120)


def test_similarity_brings_points_to_others() -> None:
    points = np.random.default_rng(1).uniform(0, 100, (5, 2))
    turn = np.array([[0.6, -0.8], [0.8, 0.6]]) * 1.7
    matrix = similarity(points, points @ turn.T + [3, -4])
    np.testing.assert_allclose(matrix, [[*turn[0], 3], [*turn[1], -4]], atol=1e-9)


def test_identities_are_divided(data: Path, args: Namespace) -> None:
    train, test = _load("VGGFace2_FaceID_dr", data, args)
    assert len(train) + len(test) == 12
    assert not {f.path for f in train.faces} & {f.path for f in test.faces}
    assert train[0][0].shape == (3, 112, 112)
    assert {train[i][1] for i in range(len(train))} == {0, 1}


def test_boxes_are_parts_of_the_picture(data: Path, args: Namespace) -> None:
    train, test = _load("VGGFace2_FaceDetection", data, args)
    x, (boxes, labels) = test[0]
    assert x.shape == (3, 224, 168)
    torch.testing.assert_close(boxes, torch.tensor([[50 / 200, 40 / 180, 130 / 200, 140 / 180]]))
    assert labels.tolist() == [1]
    torch.manual_seed(0)
    for x, ((box,), _) in (train[0] for _ in range(8)):
        left, _, right, _ = (round(float(side), 4) for side in box)
        mirrored = float(x[0, 100, 0]) > float(x[0, 100, -1])  # red grows to the right
        assert (left, right) == ((0.35, 0.75) if mirrored else (0.25, 0.65))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("loose_bb_test.csv", None, "the table of the faces is missing"),
        ("loose_bb_test.csv", "NAME\nn000000/0000_01,1,2,3", "has no 4 numbers"),
        ("loose_bb_test.csv", "NAME\nn000000/0000_01,1,2,3,nan", "has no 4 numbers"),
        ("loose_bb_test.csv", "NAME\n../x,1,2,3,4", "is no name of a picture"),
        ("loose_bb_test.csv", "NAME\nn000000/9999_01,1,2,3,4", "the picture of a face is missing"),
        ("loose_bb_test.csv", "NAME\nn000000/0000_01,1,2,0,4", "has a box of"),
        ("loose_bb_test.csv", "NAME\n", "have no faces"),
        ("loose_landmark_test.csv", "NAME\n", "has no landmarks"),
    ],
)
def test_faults_are_named(
    file: str, text: str | None, message: str, data: Path, args: Namespace
) -> None:
    path = data / "VGGFace-2" / "bb_landmark" / file
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(DatasetError, match=message) as info:
        _load("VGGFace2_FaceID", data, args, load_train=False)
    assert "Oxford" in str(info.value.remedy)
