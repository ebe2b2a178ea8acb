"""CIFAR-10 and CIFAR-100: 50000 and 10000 colour images, 32x32.

The files are pickles. They are read with an interpreter that knows dictionaries, lists, numbers and
arrays of bytes; whatever else a file asks for is refused by name, nothing of it is executed.
Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datasets.downloads import Download, fetch, unpack
from datasets.errors import ANEW_FOLDER, REPLACE, DatasetError
from datasets.images import ImageDataset, RandomCrop, train_and_test

_SIZE = (3, 32, 32)


@dataclass(frozen=True, slots=True)
class Collection:
    """Where a collection stands (below `folder`/`inner`) and what its files are called."""

    folder: str
    inner: str
    archive: Download
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: str
    names: tuple[str, ...]


class _Array:
    """Takes the place of an array in a pickle: keeps the shape, the type's name and the bytes."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.dtype, self.columns_first, self.content = state

    def values(self) -> np.ndarray[Any, Any]:
        """Return the array; raises ValueError unless its elements are bytes in C order."""
        if self.dtype.name not in ("u1", "|u1") or self.columns_first:
            raise ValueError(f"an array of type {self.dtype.name}")
        content = self.content
        raw = content.encode("latin1") if isinstance(content, str) else content
        return np.frombuffer(raw, np.uint8).reshape(self.shape)


class _Dtype:
    """Takes the place of the type of an array's elements."""

    def __init__(self, name: str, *_rest: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment do not matter for bytes."""


def _reconstruct(*_arguments: Any) -> _Array:
    """Take the place of NumPy's function that makes an array."""
    return _Array()


def _encode(text: str, *_encoding: Any) -> bytes:
    """Take the place of the function by which Python 3 stores bytes in old protocols."""
    return text.encode("latin1")


_KNOWN: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    """Reads pickles of plain containers and arrays of bytes."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in of what a file asks for."""
        if (module, name) not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _KNOWN[module, name]


def read_batch(path: Path, labels: str, classes: int) -> tuple[Tensor, Tensor]:
    """Read one file: images uint8 [N, 3, 32, 32] and the list `labels` as int64 [N].

    Raises DatasetError: E620 when it is missing, E613 when it is damaged or holds something else.
    """
    if not path.exists():
        raise DatasetError("E620", "the file is missing", str(path), ANEW_FOLDER)
    with path.open("rb") as file:
        try:
            content = _Unpickler(file, encoding="latin1").load()
            images = content["data"].values().reshape(-1, *_SIZE)
            targets = np.array(content[labels], dtype=np.int64)
        except OSError:
            raise
        except Exception as exc:  # a damaged pickle can raise anything
            raise DatasetError(
                "E613",
                f"it is no batch of CIFAR: {type(exc).__name__}: {exc}",
                str(path),
                REPLACE,
            ) from exc
    if targets.shape != (len(images),) or not len(images):
        raise DatasetError(
            "E613",
            f"it holds {targets.size} labels for {len(images)} images",
            str(path),
            REPLACE,
        )
    if targets.min() < 0 or targets.max() >= classes:
        raise DatasetError(
            "E613",
            f"it holds labels {targets.min()} to {targets.max()}; they are 0 to {classes - 1}",
            str(path),
            REPLACE,
        )
    return torch.from_numpy(images.copy()), torch.from_numpy(targets)


def _read(collection: Collection, data_folder: str, train: bool) -> tuple[Tensor, Tensor]:
    """Return images and labels of one part; download and unpack what is missing."""
    folder = Path(data_folder) / collection.folder
    files = collection.train if train else collection.test
    inner = folder / collection.inner
    if not inner.is_dir():
        unpack(fetch(collection.archive, folder), inner, collection.inner)
    classes = len(collection.names)
    parts = [read_batch(inner / name, collection.labels, classes) for name in files]
    images, labels = (torch.cat(part) for part in zip(*parts, strict=True))
    return images, labels


def cifar_get_datasets(
    collection: Collection,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
) -> tuple[ImageDataset | None, ImageDataset | None]:
    """Return training and test set; the former is shifted by up to 4 pixels and mirrored."""
    return train_and_test(
        partial(_read, collection, data[0]),
        data[1],
        (load_train, load_test),
        crop=RandomCrop(4, mirror=True),
    )


CIFAR10 = Collection(
    "CIFAR10",
    "cifar-10-batches-py",
    Download(
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
    ),
    tuple(f"data_batch_{number}" for number in range(1, 6)),
    ("test_batch",),
    "labels",
    ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
)
CIFAR100 = Collection(
    "CIFAR100",
    "cifar-100-python",
    Download(
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
    ),
    ("train",),
    ("test",),
    "fine_labels",
    tuple(
        """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
        butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
        crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo
        keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain
        mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain
        plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
        skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
        television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman
        worm""".split()  # noqa: SIM905 - a hundred quotes would not help
    ),
)

datasets = [
    {
        "name": collection.folder,
        "input": _SIZE,
        "output": collection.names,
        "loader": partial(cifar_get_datasets, collection),
    }
    for collection in (CIFAR10, CIFAR100)
]
