"""AISegment: portraits and their mattes, from made-up pictures."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import aisegment
from datasets.errors import DatasetError

COUNT = 20


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Pictures that grow brighter downwards; the person is the lower half."""
    rows = np.linspace(0, 255, 160).astype(np.uint8)[:, None].repeat(120, 1)
    picture = Image.fromarray(rows).convert("RGB")
    matte = np.zeros((160, 120, 4), np.uint8)
    matte[80:, :, 3] = 1  # hardly visible, but not transparent
    for kind, name in (("clip_img", "clip_00"), ("matting", "matting_00")):
        folder = tmp_path / "AISegment" / kind / "18" / name
        folder.mkdir(parents=True)
        for number in range(COUNT):
            if kind == "clip_img":
                picture.save(folder / f"{number}.jpg")
            else:
                Image.fromarray(matte).save(folder / f"{number}.png")
    (tmp_path / "AISegment" / "clip_img" / "18" / "clip_00" / "._0.jpg").write_text("macOS")
    return tmp_path


def _loaded(name: str, data: Path, args: Namespace) -> tuple[Any, Any]:
    loader: Any = next(r for r in aisegment.datasets if r["name"] == name)["loader"]
    return loader((str(data), args))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("AISegment_80", (3, 80, 80)),
        ("AISegment_352", (48, 88, 88)),
        ("AISegment_352_memory", (48, 88, 88)),
    ],
)
def test_records_tell_what_items_are(
    name: str, shape: tuple[int, ...], data: Path, args: Namespace
) -> None:
    record = next(r for r in aisegment.datasets if r["name"] == name)
    assert (record["input"], record["output"]) == (shape, (0, 1))
    train, test = _loaded(name, data, args)
    assert len(train) + len(test) == 3 * COUNT
    assert 0 < len(test) < len(train)
    assert not set(train.pairs) & set(test.pairs)
    x, target = train[0]
    side = 352 if shape[0] > 3 else 80
    assert (x.shape, x.dtype) == (shape, torch.float32)
    assert (target.shape, target.dtype) == ((side, side), torch.int64)
    assert torch.equal(x * 128, (x * 128).round().clamp(-128, 127))


def test_squares_move_down_the_picture(data: Path, integers: Namespace) -> None:
    train, test = _loaded("AISegment_80", data, integers)
    assert len(test) == 1
    background = []
    for number, (top, bottom) in enumerate(((0, 120), (20, 140), (40, 160))):
        x, target = train[number]
        assert abs(float(x[0, 0].mean()) + 128 - top / 160 * 255) < 4
        assert abs(float(x[0, -1].mean()) + 128 - bottom / 160 * 255) < 4
        background.append(int(target[:, 0].sum()))
        assert target.unique().tolist() == [0, 1]
        assert bool((target[0] == 1).all())
    assert background == [53, 40, 27]


@pytest.mark.parametrize(
    ("fault", "code"),
    [("missing", "E620"), ("size", "E625"), ("damaged", "E613"), ("empty", "E620"), ("no", "E620")],
)
def test_faults_are_named(fault: str, code: str, data: Path, args: Namespace) -> None:
    matte = data / "AISegment" / "matting" / "18" / "matting_00" / "0.png"
    clips = data / "AISegment" / "clip_img"
    place = matte
    if fault == "missing":
        matte.unlink()
    elif fault == "size":
        Image.new("RGBA", (120, 159)).save(matte)
    elif fault == "damaged":
        matte.write_bytes(matte.read_bytes()[:60])
    else:
        clips.rename(data / "elsewhere")
        place = clips
        if fault == "empty":
            clips.mkdir()
    with pytest.raises(DatasetError) as info:
        train, test = _loaded("AISegment_80", data, args)
        for dataset in (train, test):
            for pair, _ in enumerate(dataset.pairs):
                dataset[3 * pair]
    assert (info.value.code, info.value.place) == (code, str(place))
