"""What we write, torch reads back equal; so do we; and the bytes depend on the content only."""

from __future__ import annotations

import collections
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.checkpoint import (
    Checkpoint,
    CheckpointError,
    ClassReference,
    read_checkpoint,
    write_checkpoint,
)
from ai8xtools.checkpoint.writer import _row_major_strides
from tests.checkpoint.compare import tensors_equal_to_torch

DTYPES = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "?", ">f4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


def read_by_torch(path: Path) -> Any:
    with torch.serialization.safe_globals([torch.optim.SGD, torch.optim.Adam]):
        return torch.load(path, weights_only=True)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    values = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 100, shape)
    array = np.asarray(values, draw(st.sampled_from(DTYPES)))
    return array.T if draw(st.booleans()) else array


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary()
)
values = st.recursive(
    arrays() | scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(0, 300), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abcdef"), arrays(), max_size=4), values)
@settings(max_examples=150, deadline=None)
def test_random_checkpoint_comes_back_equal(
    folder: Path, state: dict[str, np.ndarray], other: Any
) -> None:
    path = folder / "random.pth.tar"
    entries = {"epoch": 1, "state_dict": collections.OrderedDict(state), "other": other}
    write_checkpoint(path, Checkpoint(entries))
    ours = read_checkpoint(path).entries
    tensors_equal_to_torch(dict(ours), read_by_torch(path))
    for name, array in state.items():
        assert np.array_equal(ours["state_dict"][name], array)
        assert ours["state_dict"][name].dtype == array.dtype.newbyteorder("=")


def example() -> Checkpoint:
    return Checkpoint(
        {
            "epoch": 4,
            "state_dict": collections.OrderedDict(
                {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7)}
            ),
            "optimizer_type": ClassReference("torch.optim.adam", "Adam"),
            "extras": {"best_top1": np.float64(99.5), "note": "ä", "count": np.int64(3)},
        }
    )


def test_optimizer_class_and_numpy_numbers(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.pth.tar", example())
    entries = read_by_torch(tmp_path / "a.pth.tar")
    assert entries["optimizer_type"] is torch.optim.Adam
    assert entries["extras"] == {"best_top1": 99.5, "note": "ä", "count": 3}
    assert entries["state_dict"]["n"].shape == ()


def test_same_content_gives_same_bytes_with_aligned_tensors(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_checkpoint(tmp_path / name, example())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    content = (tmp_path / "a").read_bytes()
    assert content.index(np.arange(6, dtype="<f4").tobytes()) % 64 == 0


def test_torch_can_map_the_file_into_memory(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a", example().with_entries(optimizer_type=None))
    mapped = torch.load(tmp_path / "a", weights_only=True, mmap=True)
    assert mapped["state_dict"]["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        object(),
        np.zeros(2, np.uint32),
        np.array(["text"]),
        1 << 200,
        ClassReference("os", "system"),
    ],
)
def test_what_the_format_lacks_is_refused_and_the_old_file_stays(
    tmp_path: Path, value: Any
) -> None:
    path = tmp_path / "a.pth.tar"
    path.write_text("old")
    with pytest.raises(CheckpointError) as caught:
        write_checkpoint(path, example().with_entries(extras={"x": value}))
    assert caught.value.code == "E508" and caught.value.place == str(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_published_files_survive_reading_and_writing(shared: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.pth.tar"
    for file in sorted((shared / "checkpoints").rglob("*.pth.tar")):
        original = read_checkpoint(file)
        write_checkpoint(path, original)
        tensors_equal_to_torch(dict(original.entries), read_by_torch(path))


def test_strides_are_those_of_torch_also_of_empty_tensors() -> None:
    for dimensions in range(4):
        for shape in itertools.product((0, 1, 2, 3), repeat=dimensions):
            assert _row_major_strides(shape) == torch.empty(shape).stride()
