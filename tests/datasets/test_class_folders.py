"""ImageNet and its relatives, from made-up pictures."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import ai8x
from datasets import imagenet
from datasets.class_folders import centre_cut
from datasets.errors import DatasetError
from datasets.parts import loader

FEW = 3


def _picture(path: Path, value: int, size: tuple[int, int] = (90, 60)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ramp = np.linspace(0, 255, size[0]).astype(np.uint8)[None].repeat(size[1], 0)
    Image.fromarray(np.stack([ramp, np.full_like(ramp, value), ramp.T.copy().T], -1)).save(path)


def _few(name: str, folder: str = "ImageNet") -> Any:
    """Return the loader of a set, of three classes."""
    record = next(r for r in imagenet.datasets if r["name"] == name)
    size = record["input"][1]  # type: ignore[index]
    standard = not name.endswith("_plain")
    return loader(imagenet.photographs, (folder, "ImageNet"), FEW, size, standard)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for part in ("train", "val"):
        for number in range(FEW):
            _picture(tmp_path / "ImageNet" / part / f"n{number}" / "a.JPEG", 80 * number)
        _picture(tmp_path / "ImageNet" / part / "n0" / "b.png", 0)
    return tmp_path


def test_folders_are_classes(data: Path, args: Namespace) -> None:
    train, test = _few("ImageNet")((str(data), args))
    for dataset in (train, test):
        assert [dataset[i][1] for i in range(len(dataset))] == [0, 0, 1, 2]
        assert dataset[3][0].shape == (3, 112, 112)
        assert float(dataset[3][0].abs().max()) <= 1


def test_colours_are_brought_to_mean_and_deviation(data: Path, integers: Namespace) -> None:
    _, test = _few("ImageNet50", "ImageNet50")((str(data), integers), load_train=False)
    assert len(test) == 1
    x = test[0][0]
    assert x.shape == (3, 224, 224)
    green = round(((0 / 255 - 0.456) / 0.224 - 0.5) * 256)
    assert set(x[1].flatten().tolist()) == {max(-128, green)}
    assert x[0, 0, 0] == -128
    assert x[0, 0, -1] == 127


@pytest.mark.parametrize(("name", "level"), [("ImageNet", -128), ("ImageNet_plain", -48)])
def test_colours_stay_as_they_are_in_the_plain_sets(
    data: Path, integers: Namespace, name: str, level: int
) -> None:
    """The vendor's tool standardizes colours until September 2024, and not since then."""
    _picture(data / "ImageNet" / "val" / "n0" / "0.png", 80)
    _, test = _few(name)((str(data), integers), load_train=False)
    assert set(test[0][0][1].flatten().tolist()) == {level}


def test_middle_is_cut_out(tmp_path: Path) -> None:
    _picture(tmp_path / "a.png", 7, (200, 100))
    cut = centre_cut(tmp_path / "a.png", 40, 50)  # 200x100 becomes 100x50
    assert cut.shape == (3, 40, 40)
    assert abs(int(cut[0, 0, 0]) - 30 * 255 / 99) < 3
    assert abs(int(cut[0, 0, -1]) - 69 * 255 / 99) < 3


def test_mosaic_belongs_to_its_picture(
    data: Path, integers: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        imagenet, "_samples", lambda folder, _names, _classes, _training: _samples(folder, "val")
    )
    _, test = imagenet.bayer_get_datasets((str(data), integers), load_train=False)
    assert test is not None
    mosaic, picture = test[0]
    assert (mosaic.shape, picture.shape) == ((4, 64, 64), (3, 128, 128))
    seen = ai8x.unfold_batch(mosaic[None], 2)[0, 0]
    assert torch.equal(seen[::2, ::2], picture[1, ::2, ::2])
    assert torch.equal(seen[::2, 1::2], picture[2, ::2, 1::2])
    assert torch.equal(seen[1::2, ::2], picture[0, 1::2, ::2])


def _samples(folder: str, part: str) -> list[tuple[Path, int]]:
    return [(Path(folder) / "ImageNet" / part / "n1" / "a.JPEG", 0)]


@pytest.mark.parametrize(("name", "needed"), [("ImageNet", 1000), ("ImageNet50", 50)])
def test_missing_and_surplus_folders_are_named(
    name: str, needed: int, data: Path, args: Namespace, tmp_path: Path
) -> None:
    loader: Any = next(r["loader"] for r in imagenet.datasets if r["name"] == name)
    with pytest.raises(DatasetError, match=f"it has 3 folders; it must have {needed}") as info:
        loader((str(data), args))
    assert "image-net.org" in str(info.value.remedy)
    with pytest.raises(DatasetError, match="missing"):
        loader((str(tmp_path / "absent"), args))
