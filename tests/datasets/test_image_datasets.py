"""Reading data sets and preparing their batches."""

from __future__ import annotations

import gzip
import hashlib
import struct
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from datasets import emnist, fashionmnist, idx, mnist, torchvision_access
from datasets.digits import digits_get_datasets
from datasets.errors import DatasetError
from datasets.images import ImageDataset, RandomAffine, RandomCrop, image_loader

ARGS = Namespace(act_mode_8bit=False, truncate_testset=False)


def _idx(values: torch.Tensor) -> bytes:
    """Return a uint8 tensor in the IDX format."""
    header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return header + values.numpy().tobytes()


def _store(folder: Path, packed: bool, name: str = "MNIST") -> torch.Tensor:
    """Write a small MNIST, or one of the same format, and return its images."""
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    images = torch.randint(0, 256, (7, 28, 28), dtype=torch.uint8)
    labels = torch.arange(7, dtype=torch.uint8)
    for part in ("train", "t10k"):
        for name, values in (("images-idx3", images), ("labels-idx1", labels)):
            data = _idx(values)
            file = raw / f"{part}-{name}-ubyte{'.gz' if packed else ''}"
            file.write_bytes(gzip.compress(data) if packed else data)
    return images


@pytest.mark.parametrize("packed", [True, False])
def test_mnist_is_read_packed_and_unpacked(packed: bool, tmp_path: Path) -> None:
    images = _store(tmp_path, packed)
    train, test = mnist.mnist_get_datasets((str(tmp_path), ARGS))
    assert train is not None
    assert test is not None
    assert torch.equal(test.images[:, 0], images)
    x, target = test[3]
    expected = ((images[3] / 255 - 0.5) * 256).round().clamp(-128, 127) / 128
    assert torch.equal(x[0], expected)
    assert int(target) == 3
    assert train.batch(torch.tensor([0, 1]))[0].shape == (2, 1, 28, 28)


def test_fashionmnist_is_shifted_and_mirrored(tmp_path: Path) -> None:
    images = _store(tmp_path, packed=True, name="FashionMNIST")
    train, test = fashionmnist.fashionmnist_get_datasets((str(tmp_path), ARGS))
    assert train is not None
    assert test is not None
    assert torch.equal(test.images[:, 0], images)
    assert train.crop == RandomCrop(4, mirror=True)
    assert train.batch(torch.arange(7))[0].shape == (7, 1, 28, 28)
    assert len(fashionmnist.datasets[0]["output"]) == 10


@pytest.mark.parametrize("split", emnist.SPLITS)
def test_splits_of_emnist_are_upright(split: str, tmp_path: Path) -> None:
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    images = torch.randint(0, 256, (4, 28, 28), dtype=torch.uint8)
    count = len(emnist.SPLITS[split])
    labels = torch.tensor([0, 1, count - 2, count - 1], dtype=torch.uint8)
    for part in ("train", "test"):
        for kind, values in (("images-idx3", images), ("labels-idx1", labels)):
            (raw / f"emnist-{split.lower()}-{part}-{kind}-ubyte").write_bytes(_idx(values))
    _, test = emnist.split_loader(split)((str(tmp_path), ARGS), False)
    assert test is not None
    assert torch.equal(test.images[:, 0], images.transpose(1, 2))
    assert test.targets.tolist() == [0, 1, count - 2, count - 1]


def test_missing_and_damaged_files_of_emnist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="emnist-letters-test-images-idx3-ubyte"):
        emnist.split_loader("LETTERS")((str(tmp_path), ARGS), False)
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for kind, values in (("images-idx3", torch.zeros(1, 28, 28)), ("labels-idx1", torch.ones(1))):
        values[-1:] = 47
        (raw / f"emnist-balanced-test-{kind}-ubyte").write_bytes(_idx(values.byte()))
    with pytest.raises(DatasetError, match="holds the label 47; labels are 0 to 46"):
        emnist.split_loader("BALANCED")((str(tmp_path), ARGS), False)


@pytest.mark.parametrize(("split", "last"), [("BALANCED", 46), ("LETTERS", 26)])
def test_files_of_another_split_of_emnist_are_refused(
    split: str, last: int, tmp_path: Path
) -> None:
    raw = tmp_path / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for kind, values in (("images-idx3", torch.zeros(9, 28, 28)), ("labels-idx1", torch.arange(9))):
        (raw / f"emnist-{split.lower()}-test-{kind}-ubyte").write_bytes(_idx(values.byte()))
    with pytest.raises(DatasetError, match=f"end at 8, those of {split} at {last}") as refused:
        emnist.split_loader(split)((str(tmp_path), ARGS), False)
    assert "gzip.zip" in str(refused.value.remedy), "these files are not downloaded"


def test_missing_files_are_downloaded(tmp_path: Path, serve: Callable[..., str]) -> None:
    _store(tmp_path / "server", packed=True)
    source = tmp_path / "server" / "MNIST" / "raw"
    digests = {p.name: hashlib.md5(p.read_bytes()).hexdigest() for p in source.iterdir()}
    loader = image_loader(partial(idx.read_collection, "MNIST", serve(source), digests))
    _, test = loader((str(tmp_path / "data"), ARGS), load_train=False)
    assert test is not None
    assert len(test) == 7
    raw = tmp_path / "data" / "MNIST" / "raw"
    assert sorted(p.name for p in raw.iterdir()) == [
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ]


def test_without_network_the_missing_file_is_named(tmp_path: Path) -> None:
    read = partial(idx.read_collection, "MNIST", "http://127.0.0.1:9/", mnist.DIGESTS)
    with pytest.raises(DatasetError) as info:
        image_loader(read)((str(tmp_path), ARGS))
    assert info.value.code == "E612"
    assert info.value.place == str(tmp_path / "MNIST/raw/train-images-idx3-ubyte.gz")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (bytes((0, 0, 8, 255)) + bytes(8), "255 axes"),
        (bytes((0, 0, 8, 3)) + b"\xff" * 12, "the limit is"),
        (bytes((0, 0, 8, 1)) + b"\0\0\0\1" + bytes(9 << 20), "more, its header says 1"),
    ],
)
def test_idx_headers_that_lie_are_refused_before_unpacking(
    header: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(header))
    with pytest.raises(DatasetError) as info:
        idx.read_idx(path)
    assert info.value.place == str(path)
    assert message in info.value.message


@pytest.mark.parametrize("fault", ["cut", "header", "magic", "gzip"])
def test_damaged_idx_files_are_refused(fault: str, tmp_path: Path) -> None:
    good = _idx(torch.zeros(3, 4, 4, dtype=torch.uint8))
    content = {
        "cut": good[:-1],
        "header": good[:9],
        "magic": b"x" + good,
        "gzip": gzip.compress(good)[:-9],
    }[fault]
    path = tmp_path / ("a.gz" if fault == "gzip" else "a")
    path.write_bytes(content)
    with pytest.raises(DatasetError) as info:
        idx.read_idx(path)
    assert info.value.place == str(path)
    assert fault != "cut" or "holds 47 values, its header says 3x4x4" in info.value.message


@pytest.mark.parametrize(
    ("images", "labels", "file", "message"),
    [
        ((3, 14, 14), [0, 1, 2], "images-idx3", "3x14x14; it must be Nx28x28"),
        ((3, 784), [0, 1, 2], "images-idx3", "3x784"),
        ((0, 28, 28), [], "images-idx3", "0x28x28"),
        ((3, 28, 28), [0, 1], "labels-idx1", "2 labels for 3 images"),
        ((3, 28, 28), [0, 10, 2], "labels-idx1", "the label 10; labels are 0 to 9"),
    ],
)
def test_files_that_are_not_mnist_are_named(
    images: tuple[int, ...], labels: list[int], file: str, message: str, tmp_path: Path
) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(_idx(torch.zeros(images).byte()))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(_idx(torch.tensor(labels).byte()))
    with pytest.raises(DatasetError) as info:
        mnist.mnist_get_datasets((str(tmp_path), ARGS))
    assert info.value.code == "E613"
    assert info.value.place == str(raw / f"train-{file}-ubyte")
    assert message in info.value.message


def test_digits_are_divided_without_overlap() -> None:
    train, test = digits_get_datasets(("unused", ARGS))
    assert train is not None
    assert test is not None
    assert (len(train), len(test)) == (1437, 360)
    assert train.images.shape[1:] == (1, 8, 8)
    again, _ = digits_get_datasets(("unused", ARGS))
    assert again is not None
    assert torch.equal(again.images, train.images)


def test_integers_are_128_times_the_fractions() -> None:
    images = torch.randint(0, 256, (4, 1, 8, 8), dtype=torch.uint8)
    integers = ImageDataset(images, torch.zeros(4), Namespace(act_mode_8bit=True))
    fractions = ImageDataset(images, torch.zeros(4), Namespace(act_mode_8bit=False))
    every = torch.arange(4)
    assert torch.equal(integers.batch(every)[0], fractions.batch(every)[0] * 128)


def test_truncated_test_set_has_one_image() -> None:
    args = Namespace(act_mode_8bit=False, truncate_testset=True)
    train, test = digits_get_datasets(("unused", args))
    assert train is not None
    assert test is not None
    assert (len(train), len(test)) == (1437, 1)


def test_distortion_without_freedom_changes_nothing() -> None:
    images = torch.rand(3, 1, 8, 8)
    torch.testing.assert_close(RandomAffine(0, 0, 0)(images), images, rtol=0, atol=1e-5)


def test_shifts_stay_within_their_limit() -> None:
    torch.manual_seed(0)
    images = torch.zeros(200, 1, 15, 15)
    images[:, 0, 7, 7] = 1
    moved = RandomAffine(0, 0, 2)(images)
    places = torch.arange(15.0)
    rows = (moved.sum((1, 3)) * places).sum(1)
    assert 1.5 < float((rows - 7).abs().max()) <= 2.001


def test_crops_are_windows_of_the_framed_image() -> None:
    torch.manual_seed(0)
    images = torch.randint(1, 256, (300, 3, 6, 5), dtype=torch.uint8)
    cropped = RandomCrop(2, mirror=True)(images)
    assert cropped.dtype == torch.uint8
    framed = torch.nn.functional.pad(images, (2,) * 4)
    seen = set()
    for image, window in zip(framed, cropped, strict=True):
        places = [
            (top, left, mirrored)
            for top in range(5)
            for left in range(5)
            for mirrored in (False, True)
            if torch.equal(_window(image, top, left, mirrored), window)
        ]
        assert len(places) == 1
        seen.update(places)
    assert len(seen) == 50  # every shift, mirrored or not, occurs


def _window(image: torch.Tensor, top: int, left: int, mirrored: bool) -> torch.Tensor:
    window = image[:, top : top + 6, left : left + 5]
    return window.flip(2) if mirrored else window


def test_augmentation_follows_the_seed() -> None:
    images = torch.randint(0, 256, (20, 1, 8, 8), dtype=torch.uint8)
    augmented = ImageDataset(
        images, torch.zeros(20), ARGS, augment=RandomAffine(9, 9, 1), crop=RandomCrop(2, True)
    )
    batches = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        batches.append(augmented.batch(torch.arange(20))[0])
    assert torch.equal(batches[0], batches[1])
    assert not torch.equal(batches[0], batches[2])


def test_torchvision_can_be_imported_beside_this_torch() -> None:
    assert torchvision_access.torchvision().datasets.MNIST
