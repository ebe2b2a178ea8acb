"""Clips of Kinetics, from made-up pictures and a made-up video."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import kinetics
from datasets.errors import DatasetError
from datasets.kinetics import CLASSES, kinetics_get_datasets

SIZE = 24


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinetics, "_SIZE", SIZE)
    monkeypatch.setattr(kinetics, "_SHIFT", 2)


def _clip(folder: Path, frames: int, first: int = 0) -> None:
    """Write pictures whose red is their number."""
    folder.mkdir(parents=True)
    for number in range(frames):
        pixels = np.zeros((SIZE, SIZE + 8, 3), np.uint8)
        pixels[..., 0] = first + number
        Image.fromarray(pixels).save(folder / f"{number:03}.png")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for part in ("train", "test"):
        for number, name in enumerate(CLASSES):
            _clip(tmp_path / "Kinetics" / "raw" / part / name / "a", 50, 20 * number)
    return tmp_path


def test_items_are_pairs_of_folded_frames(data: Path, args: Namespace) -> None:
    train, test = kinetics_get_datasets((str(data), args))
    assert train is not None
    assert test is not None
    assert (len(train), len(test)) == (5, 15)
    assert [test[i][1] for i in range(0, 15, 3)] == [0, 1, 2, 3, 4]
    for index, first in ((0, 0), (1, 17), (2, 34), (3, 20)):
        x = test[index][0]
        assert x.shape == (15, 96, SIZE // 4, SIZE // 4)
        reds = (x[:, 0, 0, 0] * 128 + 128).round()  # 8-bit values of even height lose one
        assert float((reds - torch.arange(first, first + 15)).abs().max()) <= 1
        assert torch.equal(x[1:, :48], x[:-1, 48:])
    assert train[4][0].shape == (15, 96, SIZE // 4, SIZE // 4)


def test_frames_are_prepared_once_and_anew_when_files_change(data: Path, args: Namespace) -> None:
    kinetics_get_datasets((str(data), args), load_train=False)
    prepared = data / "Kinetics" / "processed" / "test.pt"
    before = prepared.stat().st_mtime_ns
    kinetics_get_datasets((str(data), args), load_train=False)
    assert prepared.stat().st_mtime_ns == before
    _clip(data / "Kinetics" / "raw" / "test" / "other" / "b", 51)
    _, test = kinetics_get_datasets((str(data), args), load_train=False)
    assert test is not None
    assert len(test) == 18


def test_videos_are_decoded(data: Path, integers: Namespace) -> None:
    av = pytest.importorskip("av")
    path = data / "Kinetics" / "raw" / "test" / CLASSES[0] / "0.mp4"
    with av.open(str(path), "w") as video:
        stream = video.add_stream("mpeg4", rate=25)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for number in range(60):
            pixels = np.full((64, 64, 3), 4 * number, np.uint8)
            video.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        video.mux(stream.encode())
    _, test = kinetics_get_datasets((str(data), integers), load_train=False)
    assert test is not None
    assert len(test) == 1
    x = test[0][0] + 128
    assert float(x[0].mean()) < 12
    assert abs(float(x[-1, 48:].mean()) - 4 * 15 * 59 / 49) < 12


def test_what_is_wrong_is_named(data: Path, args: Namespace) -> None:
    raw = data / "Kinetics" / "raw" / "train"
    (raw / "squat" / "short").mkdir()
    _clip(raw / "squat" / "short" / "x", 3)
    (raw / "squat" / "short" / "x").rename(raw / "squat" / "y")
    (raw / "squat" / "short").rmdir()
    with pytest.raises(DatasetError, match="it has 3 frames; 50 are needed"):
        kinetics_get_datasets((str(data), args))
    assert not (data / "Kinetics" / "processed" / "train.pt").exists()
    broken = raw / "other" / "z.mp4"
    broken.write_bytes(b"no video")
    for file in (raw / "squat" / "y").iterdir():
        file.unlink()
    (raw / "squat" / "y").rmdir()
    pytest.importorskip("av")
    with pytest.raises(DatasetError, match="the video cannot be read"):
        kinetics_get_datasets((str(data), args))
    with pytest.raises(DatasetError, match="missing") as info:
        kinetics_get_datasets((str(data / "absent"), args))
    assert "kinetics-dataset" in str(info.value.remedy)
