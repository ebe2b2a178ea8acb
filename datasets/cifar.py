"""CIFAR-10 and CIFAR-100: 50000 and 10000 colour images, 32x32.

The files are pickles. They are read with an interpreter that knows dictionaries, lists, numbers and
arrays of bytes; whatever else a file asks for is refused by name, nothing of it is executed.
Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ai8xtools.checkpoint import CheckpointError, ClassReference
from ai8xtools.checkpoint.known_objects import Constructor, NumberType
from ai8xtools.checkpoint.unpickler import Unpickler
from ai8xtools.reading import read_bytes
from datasets.downloads import Download, fetch, unpack
from datasets.errors import ANEW_FOLDER, REPLACE, DatasetError
from datasets.images import ImageDataset, RandomCrop, image_loader
from datasets.parts import Loader

_SIZE = (3, 32, 32)
_MAX_FILE_BYTES = 256 << 20
"""The largest file of CIFAR has 155 MB."""


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


@dataclass(slots=True)
class _Array:
    """Takes the place of an array in a pickle: shape, type and bytes arrive after it."""

    state: tuple[Any, ...] = ()

    def values(self) -> np.ndarray[Any, Any]:
        """Return the array; raises ValueError unless its elements are bytes in C order."""
        if len(self.state) != 5:
            raise ValueError("an array without content")
        _, shape, kind, columns_first, content = self.state
        name = kind.code if isinstance(kind, NumberType) else "O"
        if name != "u1" or columns_first:
            raise ValueError(f"an array of type {name}")
        raw = content.encode("latin1") if isinstance(content, str) else content
        if not isinstance(raw, bytes) or not isinstance(shape, tuple):
            raise ValueError("an array without bytes or shape")
        if not all(type(size) is int and 0 <= size <= len(raw) for size in shape):
            raise ValueError("an array of an impossible shape")
        return np.frombuffer(raw, np.uint8).reshape(shape)


@dataclass(frozen=True, slots=True)
class _OtherType:
    """Takes the place of a type of elements that no picture has."""


def _number_type(arguments: tuple[Any, ...]) -> Any:
    name = arguments[0] if arguments and isinstance(arguments[0], str) else ""
    return NumberType(name.lstrip("|<>=")) if name else _OtherType()


def _encode(arguments: tuple[Any, ...]) -> bytes:
    """Take the place of the function by which Python 3 stores bytes in old protocols."""
    if not arguments or not isinstance(arguments[0], str):
        raise ValueError("bytes that are no text")
    return arguments[0].encode("latin1")


def _array(_arguments: tuple[Any, ...]) -> _Array:
    """Take the place of NumPy's function that makes an array."""
    return _Array()


_ARRAY_CLASS = ClassReference("numpy", "ndarray")
_KNOWN: Mapping[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): Constructor("_reconstruct", _array),
    ("numpy._core.multiarray", "_reconstruct"): Constructor("_reconstruct", _array),
    ("numpy", "ndarray"): _ARRAY_CLASS,
    ("numpy", "dtype"): Constructor("dtype", _number_type),
    ("_codecs", "encode"): Constructor("encode", _encode),
}


class _Unpickler(Unpickler):
    """Reads pickles of plain containers and arrays of bytes; nothing in them is executed."""

    names = _KNOWN
    most_bytes = _MAX_FILE_BYTES

    def attach(self, target: Any, state: Any) -> None:
        """Keep what an array holds; the state of a type does not matter for bytes."""
        if isinstance(target, _Array) and isinstance(state, tuple):
            target.state = state
        elif not isinstance(target, NumberType | _OtherType):
            raise TypeError


def _content(value: Any, labels: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return images and labels of a batch; nothing in it is of a known type yet."""
    if not isinstance(value, dict):
        raise TypeError("no dictionary")
    images, targets = value["data"], value[labels]
    if not isinstance(images, _Array):
        raise TypeError("no array of images")
    if not isinstance(targets, list) or not all(
        type(n) is int and abs(n) < 1 << 31 for n in targets
    ):
        raise ValueError("labels are whole numbers")
    return images.values().reshape(-1, *_SIZE), np.array(targets, dtype=np.int64)


def read_batch(path: Path, labels: str, classes: int) -> tuple[Tensor, Tensor]:
    """Read one file: images uint8 [N, 3, 32, 32] and the list `labels` as int64 [N].

    Raises DatasetError: E620 when it is missing, E613 when it is damaged or holds something else.
    """
    if not path.exists():
        raise DatasetError("E620", "the file is missing", str(path), ANEW_FOLDER)
    data = read_bytes(path, _MAX_FILE_BYTES)
    try:
        images, targets = _content(_Unpickler(data).run(), labels)
    except (CheckpointError, ValueError, TypeError, KeyError) as exc:
        raise DatasetError(
            "E613", f"it is no batch of CIFAR: {type(exc).__name__}: {exc}", str(path), REPLACE
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


def collection_loader(collection: Collection) -> Loader[ImageDataset]:
    """Return the loader of a collection, whose training images are shifted by up to 4 pixels and
    mirrored."""
    return image_loader(partial(_read, collection), crop=RandomCrop(4, mirror=True))


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
        "loader": collection_loader(collection),
    }
    for collection in (CIFAR10, CIFAR100)
]
