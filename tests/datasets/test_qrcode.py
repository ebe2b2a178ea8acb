"""Made-up pictures with QR codes."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import qrcode
from datasets.errors import DatasetError
from datasets.qrcode import projection

pytest.importorskip("segno")


def _load(name: str, data: Path, args: Namespace) -> tuple[Any, Any]:
    loader: Any = next(r["loader"] for r in qrcode.datasets if r["name"] == name)
    found: tuple[Any, Any] = loader((str(data), args))
    return found


@pytest.mark.parametrize("name", [r["name"] for r in qrcode.datasets])
def test_pictures_follow_from_their_numbers(name: str, tmp_path: Path, args: Namespace) -> None:
    train, test = _load(name, tmp_path, args)
    again, _ = _load(name, tmp_path, args)
    assert torch.equal(train[7][0], again[7][0])
    assert not torch.equal(train[7][0], train[8][0])
    assert not torch.equal(train[7][0], test[7][0])
    for x, target in (test[i] for i in range(10)):
        boxes, labels = target[0], target[-1]
        assert x.shape == (3, 120, 160)
        assert float(x.abs().max()) <= 1
        assert 0 <= float(boxes.min()) <= float(boxes.max()) <= 1
        assert bool((boxes[:, 2:] > boxes[:, :2]).all())
        assert labels.tolist() == len(boxes) * [1]
        if name.endswith("160_120"):
            assert len(target) == 2
            continue
        corners = target[1].view(-1, 4, 2)
        torch.testing.assert_close(corners.amin(1), boxes[:, :2])
        torch.testing.assert_close(corners.amax(1), boxes[:, 2:])


def test_codes_are_between_their_corners(tmp_path: Path, args: Namespace) -> None:
    """The three finders of a code are dark in the middle with a light ring, the fourth corner is
    not; found by bringing the corners back to a square."""
    _, test = _load("qrcode_160_120_kpts", tmp_path, args)
    rights = 0
    for index in range(12):
        x, (_, points, _) = test[index]
        corners = points[0].view(4, 2).numpy() * [160, 120]
        if corners[:, 0].max() - corners[:, 0].min() < 60:
            continue
        side = 210
        square = np.array([[0, 0], [side, 0], [side, side], [0, side]])
        pixels = ((x.mean(0).numpy() + 1) * 127).astype(np.uint8)
        flat = Image.fromarray(pixels).transform(
            (side, side), Image.Transform.PERSPECTIVE, tuple(projection(square, corners)),
            Image.Resampling.BILINEAR,
        )  # fmt: skip
        values = np.asarray(flat).astype(int)
        modules = [21, 25, 29]  # on a side of codes of so few letters
        rights += any(_has_finders(values, side / m) for m in modules)
    assert rights >= 3


def _has_finders(values: np.ndarray[Any, np.dtype[np.int64]], module: float) -> bool:
    places = [3.5 * module, len(values) - 3.5 * module]
    for row, column in ((0, 0), (0, 1), (1, 0)):
        y, x = places[row], places[column]
        middle = values[int(y), int(x)]
        ring = [values[int(y + dy * 2 * module), int(x + dx * 2 * module)]
                for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0))]  # fmt: skip
        if min(ring) - middle < 20:
            return False
    return True


def test_own_pictures_are_the_ground(tmp_path: Path, args: Namespace) -> None:
    (tmp_path / "qrcode").mkdir()
    Image.new("RGB", (50, 50), (0, 0, 255)).save(tmp_path / "qrcode" / "blue.png")
    x, (boxes, _) = _load("qrcode_160_120", tmp_path, args)[1][0]
    outside = x[:, 0, 0] if float(boxes[0, 0]) > 0.1 else x[:, 0, -1]
    assert float(outside[2] - outside[0]) > 0.3


def test_pictures_that_are_missing_or_damaged_are_named(tmp_path: Path, args: Namespace) -> None:
    (tmp_path / "qrcode").mkdir()
    with pytest.raises(DatasetError, match="no pictures"):
        _load("qrcode_160_120", tmp_path, args)
    (tmp_path / "qrcode" / "a.png").write_bytes(b"no picture")
    with pytest.raises(DatasetError, match="no picture"):
        _load("qrcode_160_120", tmp_path, args)[1][0]


def test_integers_and_the_first_picture_only(tmp_path: Path, integers: Namespace) -> None:
    _, test = _load("qrcode_160_120", tmp_path, integers)
    assert len(test) == 1
    x = test[0][0]
    assert torch.equal(x, x.round().clamp(-128, 127))
    with pytest.raises(IndexError):
        test[1]
