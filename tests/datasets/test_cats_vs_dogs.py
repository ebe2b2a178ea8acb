"""Photographs of cats and dogs, from made-up pictures."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import cats_vs_dogs
from datasets.cats_vs_dogs import PictureDataset, cats_vs_dogs_get_datasets
from datasets.errors import DatasetError


def _ramp(width: int, height: int) -> Image.Image:
    """Return a picture whose red grows to the right and whose green grows downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, np.full_like(x, 200)], -1).astype(np.uint8))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for part in ("train", "test"):
        for number, name in enumerate(("cats", "dogs")):
            folder = tmp_path / "cats_vs_dogs" / part / name
            folder.mkdir(parents=True)
            _ramp(400 - 100 * number, 300).save(folder / "1.jpg")
            _ramp(160, 153).convert("L").save(folder / "2.PNG")
            (folder / "readme.txt").write_text("no picture")
    return tmp_path


def test_folders_are_classes(data: Path, args: Namespace) -> None:
    train, test = cats_vs_dogs_get_datasets((str(data), args))
    for dataset in (train, test):
        assert dataset is not None
        assert [dataset[i][1] for i in range(len(dataset))] == [0, 0, 1, 1]
        for x, _ in dataset:  # type: ignore[attr-defined]
            assert (x.shape, x.dtype) == ((3, 128, 128), torch.float32)
            assert torch.equal(x * 128, (x * 128).round().clamp(-128, 127))


def test_test_pictures_are_cut_from_the_middle(data: Path, integers: Namespace) -> None:
    _, test = cats_vs_dogs_get_datasets((str(data), integers), load_train=False)
    assert test is not None
    assert len(test) == 1
    x = test[0][0] + 128
    assert abs(float(x[0, 64, 64]) - 127.5) < 3
    margin = (204 - 128) / 2 / 204 * 256  # 300 to 153 pixels makes 400 to 204
    assert abs(float(x[0, 64, 0]) - margin) < 4
    assert abs(float(x[0, 64, 127]) - (255 - margin)) < 4


def test_views_without_freedom_are_windows(
    data: Path, args: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_TURN", "_SCALE", "_SHIFT"):
        monkeypatch.setattr(cats_vs_dogs, name, 0.0)
    picture = torch.rand(3, 131, 130)
    windows = [
        picture[:, top : top + 128, left : left + 128] for top in range(4) for left in range(3)
    ]
    windows += [window.flip(2) for window in windows]
    for _ in range(20):
        view = cats_vs_dogs._view(picture)
        assert min(float((view - window).abs().max()) for window in windows) < 1e-3


def test_training_views_differ_and_follow_the_seed(data: Path, args: Namespace) -> None:
    train = PictureDataset(data / "cats_vs_dogs" / "train", args, augment=True)
    views = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        views.append(train[0][0])
    assert torch.equal(views[0], views[1])
    assert not torch.equal(views[0], views[2])


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe0 no picture", None])
def test_a_damaged_picture_is_named(content: bytes | None, data: Path, args: Namespace) -> None:
    path = data / "cats_vs_dogs" / "test" / "cats" / "1.jpg"
    path.write_bytes(path.read_bytes()[:2000] if content is None else content)
    _, test = cats_vs_dogs_get_datasets((str(data), args), load_train=False)
    assert test is not None
    with pytest.raises(DatasetError) as info:
        test[0]
    assert (info.value.code, info.value.place) == ("E613", str(path))
    assert "BufferedReader" not in info.value.message


@pytest.mark.parametrize(("empty", "code"), [(False, "E620"), (True, "E620")])
def test_a_folder_without_pictures_is_named(
    empty: bool, code: str, data: Path, args: Namespace
) -> None:
    folder = data / "cats_vs_dogs" / "test" / "dogs"
    for path in folder.iterdir():
        path.unlink()
    if not empty:
        folder.rmdir()
    with pytest.raises(DatasetError) as info:
        cats_vs_dogs_get_datasets((str(data), args))
    assert (info.value.code, info.value.place) == (code, str(folder))
    assert "kaggle" in info.value.remedy
