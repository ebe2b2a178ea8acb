"""MNIST: 60000 and 10000 grey images of handwritten digits, 28x28 (spec/training.md 5.2)."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from datasets.errors import DatasetError
from datasets.images import ImageDataset, RandomAffine
from datasets.torchvision_access import download

_FILES = {True: "train", False: "t10k"}
_SIZE = (28, 28)
_CLASSES = 10
_DISTORTION = RandomAffine(degrees=10, shear=5, pixels=2)


def _find(folder: Path, name: str) -> Path | None:
    """Return the file `name` or `name`.gz in `folder`, whichever exists."""
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def read_idx(path: Path) -> torch.Tensor:
    """Read a file in the IDX format of bytes, compressed or not, as a uint8 tensor.

    Raises DatasetError when it is damaged.
    """
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise _damaged(path, f"the compressed data is damaged ({exc})") from exc
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise _damaged(path, "it does not begin as an IDX file of bytes")
    first = 4 + 4 * data[3]
    shape = np.frombuffer(data[4:first], dtype=">u4").astype(int)
    if len(shape) != data[3] or len(data) - first != np.prod(shape):
        raise _damaged(path, f"it holds {len(data)} bytes, not what its header says")
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=first).reshape(shape).copy())


def _damaged(path: Path, what: str) -> DatasetError:
    return DatasetError("E613", what, str(path), "Delete the file, so that it is downloaded again.")


def _read(folder: Path, train: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images uint8 [N, 1, 28, 28] and labels int64 [N]; download what is missing."""
    names = [f"{_FILES[train]}-{part}-ubyte" for part in ("images-idx3", "labels-idx1")]
    raw = folder / "MNIST" / "raw"
    if any(_find(raw, name) is None for name in names):
        try:
            download("MNIST", folder)
        except (OSError, RuntimeError, ImportError) as exc:
            raise DatasetError(
                "E612",
                f"MNIST is not there and cannot be downloaded ({str(exc).splitlines()[0]})",
                str(raw),
                f"Put {names[0]}.gz and {names[1]}.gz there, or name another folder with --data.",
            ) from exc
    paths = [_find(raw, name) or raw / name for name in names]
    images, labels = map(read_idx, paths)
    _check(images, labels, *paths)
    return images.unsqueeze(1), labels.long()


def _check(images: torch.Tensor, labels: torch.Tensor, image_path: Path, label_path: Path) -> None:
    """Raise DatasetError unless these are images of MNIST's size and their labels."""
    if images.shape[1:] != _SIZE or len(images) == 0:
        shape = "x".join(map(str, images.shape))
        raise _damaged(
            image_path, f"its shape is {shape}; it must be Nx{_SIZE[0]}x{_SIZE[1]}, N from 1"
        )
    if labels.ndim != 1 or len(images) != len(labels):
        shape = "x".join(map(str, labels.shape))
        raise _damaged(label_path, f"it holds {shape} labels for {len(images)} images")
    if labels.max() >= _CLASSES:
        largest = int(labels.max())
        raise _damaged(label_path, f"it holds the label {largest}; labels are 0 to {_CLASSES - 1}")


def mnist_get_datasets(
    data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[ImageDataset | None, ImageDataset | None]:
    """Return training and test set; the former is turned, sheared and shifted at random."""
    folder, args = Path(data[0]), data[1]
    train = ImageDataset(*_read(folder, True), args, augment=_DISTORTION) if load_train else None
    test = ImageDataset(*_read(folder, False), args).as_test_set(args) if load_test else None
    return train, test


datasets = [
    {
        "name": "MNIST",
        "input": (1, *_SIZE),
        "output": tuple(map(str, range(_CLASSES))),
        "loader": mnist_get_datasets,
    }
]
