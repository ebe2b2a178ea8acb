"""CIFAR-10 and CIFAR-100, from small batches in their format."""

from __future__ import annotations

import hashlib
import os
import pickle
import tarfile
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datasets.cifar import CIFAR10, CIFAR100, Collection, collection_loader, read_batch
from datasets.downloads import Download
from datasets.errors import DatasetError

COUNT = 6


def _write(folder: Path, collection: Collection) -> np.ndarray[Any, Any]:
    """Write all batches of a collection; return the images of the last one, the test batch."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True)
    images = np.zeros(0)
    for name in (*collection.train, *collection.test):
        images = rng.integers(0, 256, (COUNT, 3072), dtype=np.uint8)
        batch = {"data": images, collection.labels: list(range(COUNT)), "filenames": ["a"] * COUNT}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return images


@pytest.mark.parametrize("collection", [CIFAR10, CIFAR100], ids=lambda c: c.folder)
def test_batches_become_images_and_labels(
    collection: Collection, args: Namespace, tmp_path: Path
) -> None:
    images = _write(tmp_path / collection.folder / collection.inner, collection)
    train, test = collection_loader(collection)((str(tmp_path), args))
    assert train is not None
    assert test is not None
    assert len(train) == COUNT * len(collection.train)
    assert torch.equal(test.images, torch.from_numpy(images.reshape(-1, 3, 32, 32)))
    x, targets = train.batch(torch.arange(4))
    assert (x.shape, x.dtype) == ((4, 3, 32, 32), torch.float32)
    assert torch.equal(targets, torch.arange(4))
    assert float(x.abs().max()) <= 1
    assert torch.equal(x * 128, (x * 128).round())


def test_integers_and_one_test_image(integers: Namespace, tmp_path: Path) -> None:
    images = _write(tmp_path / "CIFAR10" / CIFAR10.inner, CIFAR10)
    train, test = collection_loader(CIFAR10)((str(tmp_path), integers), load_train=False)
    assert train is None
    assert test is not None
    assert len(test) == 1
    expected = ((images[0].reshape(3, 32, 32) / 255 - 0.5) * 256).round().clip(-128, 127)
    assert np.array_equal(test[0][0].numpy(), expected)


def test_a_missing_folder_is_downloaded_and_unpacked(
    args: Namespace, tmp_path: Path, serve: Callable[..., str]
) -> None:
    server = tmp_path / "server"
    _write(server / CIFAR10.inner, CIFAR10)
    archive = server / "cifar-10-python.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(server / CIFAR10.inner, CIFAR10.inner)
    digest = hashlib.md5(archive.read_bytes()).hexdigest()
    here = replace(CIFAR10, archive=Download(serve(server) + archive.name, digest))
    data = (str(tmp_path / "data"), args)
    train, _ = collection_loader(here)(data)
    assert train is not None
    assert len(train) == 5 * COUNT
    assert (tmp_path / "data" / "CIFAR10" / CIFAR10.inner / "test_batch").is_file()


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch executed",)


def _good() -> dict[str, Any]:
    return {"data": np.zeros((2, 3072), np.uint8), "labels": [0, 1]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(_good(), 2)[:-50], "Error"),
        (b"", "CheckpointError"),
        (b"<html>", "CheckpointError"),
        (pickle.dumps({**_good(), "more": _Evil()}, 2), r"object (posix|nt)\.system"),
        (pickle.dumps({**_good(), "data": np.zeros((2, 3072), object)}, 2), "array of type O"),
        (pickle.dumps({**_good(), "data": np.zeros((2, 3072), np.float32)}, 2), "type f4"),
        (pickle.dumps({**_good(), "data": np.zeros((2, 3000), np.uint8)}, 2), "ValueError"),
        (pickle.dumps({"labels": [1]}, 2), "KeyError"),
        (pickle.dumps([1, 2], 2), "TypeError"),
        (pickle.dumps({**_good(), "labels": [0]}, 2), "1 labels for 2 images"),
        (pickle.dumps({"data": np.zeros((0, 3072), np.uint8), "labels": []}, 2), "CheckpointError"),
        (pickle.dumps({**_good(), "labels": [0, 10]}, 2), "labels 0 to 10; they are 0 to 9"),
        (pickle.dumps({**_good(), "labels": [-1, 1]}, 2), "labels -1 to 1"),
        (pickle.dumps({**_good(), "labels": ["a", "b"]}, 2), "ValueError"),
        (b"\x80\x02)" + b"2\x86" * 40 + b".", "TypeError"),
        (b"\x80\x02}(" + b")" + b"2\x86" * 40 + b"Nu.", "CheckpointError"),
        (b"\x80\x02N" + b"\x85" * 900_000 + b".", "TypeError"),
    ],
)  # fmt: skip
def test_what_is_no_batch_is_refused_and_never_executed(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=message) as info:
        read_batch(path, "labels", 10)
    assert info.value.code == "E613"
    assert info.value.place == str(path)
    assert not (tmp_path / "executed").exists()


def test_missing_file_of_a_collection_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the file is missing") as info:
        read_batch(tmp_path / "data_batch_3", "labels", 10)
    assert (info.value.code, info.value.place) == ("E620", str(tmp_path / "data_batch_3"))
    assert "Delete the folder" in info.value.remedy


def test_records_name_the_classes() -> None:
    from datasets import cifar

    ten, hundred = cifar.datasets
    assert (ten["name"], hundred["name"]) == ("CIFAR10", "CIFAR100")
    assert ten["input"] == hundred["input"] == (3, 32, 32)
    assert len(hundred["output"]) == 100
    assert list(hundred["output"]) == sorted(hundred["output"])
    assert callable(ten["loader"])
