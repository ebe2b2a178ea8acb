"""What torch.save writes is read back equal, whatever the layout of file and tensors."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.checkpoint import ClassReference, read_checkpoint
from tests.checkpoint.compare import (
    checkpoint_pickle,
    tensors_equal_to_torch,
    zip_container,
)

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


def saved(path: Path, *, legacy: bool = False, **entries: Any) -> Path:
    entries.setdefault("state_dict", collections.OrderedDict(w=torch.ones(1)))
    torch.save(entries, path, _use_new_zipfile_serialization=not legacy)
    return path


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    tensor = torch.randint(0, 100, shape, generator=generator).to(draw(st.sampled_from(DTYPES)))
    if tensor.dim() > 1 and draw(st.booleans()):
        tensor = tensor.transpose(0, 1)
    if tensor.dim() and draw(st.booleans()):
        tensor = tensor[::2]
    return tensor


scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text()
values = st.recursive(
    tensors() | scalars.filter(lambda value: value == value),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(0, 300), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=8)


@given(st.dictionaries(names, tensors(), max_size=4), values, st.booleans())
@settings(max_examples=150, deadline=None)
def test_random_checkpoint_reads_as_torch_reads_it(
    folder: Path, state: dict[str, torch.Tensor], other: Any, legacy: bool
) -> None:
    path = saved(folder / "random.pth", legacy=legacy, state_dict=state, other=other, epoch=3)
    checkpoint = read_checkpoint(path)
    assert checkpoint.container == ("legacy" if legacy else "zip")
    tensors_equal_to_torch(dict(checkpoint.entries), torch.load(path, weights_only=True))


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_may_share_a_storage(tmp_path: Path, legacy: bool) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    state = {"all": base, "row": base[2], "column": base[:, 1], "end": base.flatten()[20:]}
    path = saved(tmp_path / "a.pth", legacy=legacy, state_dict=state)
    tensors_equal_to_torch(read_checkpoint(path).state_dict, state)


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    weights = torch.randn(5, 3).bfloat16()
    state = read_checkpoint(saved(tmp_path / "a.pth", state_dict={"w": weights})).state_dict
    assert state["w"].dtype == np.float32
    assert np.array_equal(state["w"], weights.float().numpy())


def test_arrays_are_views_that_cannot_be_changed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pth", state_dict={"w": torch.randn(100)})
    with pytest.raises(ValueError, match="read-only"):
        read_checkpoint(path).state_dict["w"][0] = 1


def test_big_endian_file_gives_native_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(
        zip_container(
            checkpoint_pickle(), data_0=np.array([1.5], ">f4").tobytes(), byteorder=b"big"
        )
    )
    tensor = read_checkpoint(path).state_dict["a.weight"]
    assert tensor[0] == 1.5 and tensor.dtype.isnative


@pytest.mark.parametrize("compress", [False, True])
def test_any_root_and_compressed_entries_are_accepted(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "a.pth"
    content = np.array([2.5], "<f4").tobytes()
    pickle = checkpoint_pickle()
    path.write_bytes(zip_container(pickle, root="some name", compress=compress, data_0=content))
    assert read_checkpoint(path).state_dict["a.weight"].tolist() == [2.5]


def test_module_state_keeps_order_and_loses_metadata(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(4, 5))
    path = saved(tmp_path / "a.pth", state_dict=module.state_dict(), epoch=7, arch="net")
    checkpoint = read_checkpoint(path)
    assert list(checkpoint.state_dict) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert (checkpoint.epoch, checkpoint.arch, checkpoint.extras) == (7, "net", {})
    assert checkpoint.masks is None


def test_training_state_is_read_and_the_optimizer_class_stays_a_name(tmp_path: Path) -> None:
    module = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(3)).sum().backward()
    optimizer.step()
    path = saved(
        tmp_path / "a.pth",
        state_dict=module.state_dict(),
        optimizer_state_dict=optimizer.state_dict(),
        optimizer_type=type(optimizer),
        parameter=torch.nn.Parameter(torch.ones(2)),
        number=np.float64(1.25),
        size=torch.Size([2, 3]),
    )
    entries = read_checkpoint(path).entries
    assert entries["optimizer_type"] == ClassReference("torch.optim.adam", "Adam")
    tensors_equal_to_torch(entries["optimizer_state_dict"], optimizer.state_dict())
    assert entries["parameter"].tolist() == [1, 1]
    assert (entries["number"], entries["size"]) == (1.25, (2, 3))


def test_published_files_read_as_torch_reads_them(shared: Path) -> None:
    files = sorted((shared / "checkpoints").rglob("*.pth.tar"))
    with torch.serialization.safe_globals([torch.optim.SGD, torch.optim.Adam]):
        compared = [
            tensors_equal_to_torch(
                dict(read_checkpoint(file).entries),
                torch.load(file, map_location="cpu", weights_only=True),
            )
            for file in files
        ]
    assert len(files) == 47 and sum(compared) == 2060
