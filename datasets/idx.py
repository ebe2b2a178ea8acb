"""Collections in the IDX format: MNIST and those that follow it.

Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ai8xtools.reading import ForeignFileError, open_file
from datasets.downloads import Download, fetch
from datasets.errors import ANEW, DatasetError

SIZE = (28, 28)
MAX_BYTES = 640 << 20
"""The images of MNIST have 47 MB, those of EMNIST by class 547 MB."""
CLASSES = 10
_AXES = 3
_MAX_LABELS = 1 << 21
_PARTS = {True: "train", False: "t10k"}


def read_collection(
    name: str, address: str, digests: dict[str, str], folder: Path, train: bool
) -> tuple[Tensor, Tensor]:
    """Return images uint8 [N, 1, 28, 28] and labels int64 [N] of `folder`/`name`/raw.

    Files may be compressed or not; one that is missing is downloaded from below `address`, where
    `digests` gives the digest of each compressed file.
    """
    raw = folder / name / "raw"
    names = [f"{_PARTS[train]}-{part}-ubyte" for part in ("images-idx3", "labels-idx1")]
    image_path, label_path = (
        find(raw, name) or fetch(Download(f"{address}{name}.gz", digests[f"{name}.gz"]), raw)
        for name in names
    )
    return read_pair(image_path, label_path, CLASSES)


def read_pair(
    image_path: Path, label_path: Path, classes: int, remedy: str = ANEW
) -> tuple[Tensor, Tensor]:
    """Return images uint8 [N, 1, 28, 28] and labels int64 [N] of two files that belong together.

    Raises DatasetError, with this remedy, when they do not or are damaged.
    """
    try:
        labels = read_idx(label_path)
        images = read_idx(image_path, (label_path, labels.numel()))
        _check(images, labels, image_path, label_path, classes)
    except DatasetError as exc:
        exc.remedy = remedy
        raise
    return images.unsqueeze(1), labels.long()


def find(folder: Path, name: str) -> Path | None:
    """Return the file `name` or `name`.gz in `folder`, whichever exists."""
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def read_idx(path: Path, labels: tuple[Path, int] | None = None) -> Tensor:
    """Read a file in the IDX format of bytes, compressed or not, as a uint8 tensor.

    Raises DatasetError when it is damaged. Of images whose number differs from that of their
    `labels`, a file and how many it holds, no more than the header is unpacked.
    """
    try:
        with open_file(path, MAX_BYTES) as stream:
            file = gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream
            shape = _shape(file.read(4 + 4 * _AXES), path)
            file.seek(4 + 4 * len(shape))
            if labels is not None and shape[0] not in (0, labels[1]):
                raise _damaged(labels[0], f"it holds {labels[1]} labels for {shape[0]} images")
            size = math.prod(shape)
            data = file.read(size + 1)
    except ForeignFileError as exc:
        raise _damaged(path, str(exc.strerror)) from exc
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise _damaged(path, f"the compressed data is damaged ({exc})") from exc
    if len(data) != size:
        held = "more" if len(data) > size else f"{len(data)} values"
        raise _damaged(path, f"it holds {held}, its header says {'x'.join(map(str, shape))}")
    return torch.from_numpy(np.frombuffer(data, np.uint8).reshape(shape).copy())


def _shape(header: bytes, path: Path) -> list[int]:
    """Return what the first bytes of a file say of its shape; DatasetError for no possible one."""
    if len(header) < 4 or header[:3] != b"\0\0\x08":
        raise _damaged(path, "it does not begin as an IDX file of bytes")
    axes = header[3]
    if not 1 <= axes <= _AXES:
        raise _damaged(path, f"its header says {axes} axes; images have 3, labels 1")
    if len(header) < 4 + 4 * axes:
        raise _damaged(path, "it ends within its header")
    shape = [int.from_bytes(header[n : n + 4], "big") for n in range(4, 4 + 4 * axes, 4)]
    stated = "x".join(map(str, shape))
    limit = MAX_BYTES if axes > 1 else _MAX_LABELS
    if math.prod(n or 1 for n in shape) > limit:
        raise _damaged(path, f"its header says {stated}, the limit is {limit} values")
    return shape


def _damaged(path: Path, what: str) -> DatasetError:
    return DatasetError("E613", what, str(path), ANEW)


def _check(
    images: Tensor, labels: Tensor, image_path: Path, label_path: Path, classes: int
) -> None:
    """Raise DatasetError unless these are images of the right size and their labels."""
    if images.shape[1:] != SIZE or len(images) == 0:
        shape = "x".join(map(str, images.shape))
        raise _damaged(
            image_path, f"its shape is {shape}; it must be Nx{SIZE[0]}x{SIZE[1]}, N from 1"
        )
    if labels.ndim != 1 or len(images) != len(labels):
        shape = "x".join(map(str, labels.shape))
        raise _damaged(label_path, f"it holds {shape} labels for {len(images)} images")
    if labels.max() >= classes:
        largest = int(labels.max())
        raise _damaged(label_path, f"it holds the label {largest}; labels are 0 to {classes - 1}")
