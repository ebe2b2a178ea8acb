"""Mutations of checkpoints: of what they hold, and of the files that hold it."""

from __future__ import annotations

import contextlib
import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ai8xtools.checkpoint import (
    Checkpoint,
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
    write_safetensors,
)
from tests.robustness.arrays import BYTES, ByteMutation, flip_bits, overwrite, reshaped, with_values
from tests.robustness.choice import pick

State = dict[str, NDArray[Any]]
ContentMutation = Callable[[dict[str, Any], State, Generator], object]

_DTYPES = (
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    bool,
)
_COMPANIONS = (0, 1, 2, 3, 4, 8, -1, -8, 16, 99, 1e9, 1e30, -1e30, 0.5, np.nan, np.inf, 1 << 62)


def written(content: Checkpoint, *, safetensors: bool = False) -> bytes:
    """Return the content of a checkpoint's file, as a zip archive or in the safetensors format."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        (write_safetensors if safetensors else write_checkpoint)(path, content)
        return path.read_bytes()


def _read(data: bytes) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.pth.tar"
        path.write_bytes(data)
        return dict(read_checkpoint(path).entries)


def changed_content(data: bytes, rng: Generator) -> bytes:
    """Names, tensors or companions are not those of the network."""
    entries = _read(data)
    state: State = {name: np.array(tensor) for name, tensor in entries["state_dict"].items()}
    entries["state_dict"] = state
    pick(rng, _CONTENT)(entries, state, rng)
    with contextlib.suppress(CheckpointError):  # that format has no place for all of it
        return written(Checkpoint(entries), safetensors=not data.startswith((b"PK", b"\x80")))
    return flip_bits(data, rng)


def changed_pickle(data: bytes, rng: Generator) -> bytes:
    """The pickle within the archive is damaged, the archive is not."""
    if not data.startswith(b"PK"):
        return flip_bits(data, rng)
    parts: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    name = next(name for name in parts if name.endswith("data.pkl"))
    if rng.random() < 0.2:
        name = pick(rng, list(parts))
    parts[name] = pick(rng, (flip_bits, overwrite))(parts[name], rng)
    if rng.random() < 0.1:
        del parts[pick(rng, list(parts))]
    return _archive(parts, pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def bomb(data: bytes, rng: Generator) -> bytes:
    """A small archive that unpacks to very much."""
    if not data.startswith(b"PK"):
        return data + bytes(1 << 20)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    parts[pick(rng, list(parts))] = bytes(64 << 20)
    return _archive(parts, zipfile.ZIP_DEFLATED)


def _archive(parts: dict[str, bytes], compression: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


# -- the content ---------------------------------------------------------------------------------


def _tensor(state: State, rng: Generator, ending: str = "") -> str:
    """Return the name of one of the tensors."""
    names = [name for name in state if name.endswith(ending)] or list(state)
    return pick(rng, names)


def _entry_missing(entries: dict[str, Any], _: State, rng: Generator) -> None:
    del entries[pick(rng, list(entries))]


def _entry_of_another_type(entries: dict[str, Any], _: State, rng: Generator) -> None:
    values: tuple[Any, ...] = (
        None,
        3,
        "text",
        "",
        [1],
        {},
        (),
        1.5,
        np.ones(3),
        b"x",
        True,
        {"a": 1},
        "x" * 100_000,
    )
    entries[pick(rng, ("state_dict", "arch", "epoch", "extras", "new"))] = pick(rng, values)


def _tensor_missing(_: dict[str, Any], state: State, rng: Generator) -> None:
    del state[_tensor(state, rng, pick(rng, ("", "weight", "bits", "shift")))]


def _tensor_more(_: dict[str, Any], state: State, rng: Generator) -> None:
    name = pick(rng, ("x.weight", "weight", "..weight", "a.bn.weight", "\u00e9.op.weight", ".", ""))
    state[name] = pick(rng, (np.ones((4, 4, 3, 3)), np.ones(3), np.ones(()), np.ones((0, 4))))


def _tensor_of_another_name(_: dict[str, Any], state: State, rng: Generator) -> None:
    old = _tensor(state, rng, "weight")
    new = pick(
        rng, ("weight", "a.b.c.weight", "x" * 100_000, "a\nb.op.weight", "*/.op.weight", old)
    )
    renamed = {new if name == old else name: tensor for name, tensor in state.items()}
    state.clear()
    state.update(renamed)


def _tensor_of_another_shape(_: dict[str, Any], state: State, rng: Generator) -> None:
    name = _tensor(state, rng, pick(rng, ("weight", "weight", "bias", "")))
    state[name] = reshaped(state[name], rng)


def _tensor_of_another_type(_: dict[str, Any], state: State, rng: Generator) -> None:
    name = _tensor(state, rng, pick(rng, ("weight", "bias", "")))
    with np.errstate(invalid="ignore"):
        state[name] = state[name].astype(pick(rng, _DTYPES))


def _tensor_of_other_values(_: dict[str, Any], state: State, rng: Generator) -> None:
    name = _tensor(state, rng, pick(rng, ("weight", "bias", "")))
    with np.errstate(invalid="ignore", over="ignore"):
        state[name] = with_values(state[name], rng)


def _companion(_: dict[str, Any], state: State, rng: Generator) -> None:
    layer = _tensor(state, rng, "weight").rsplit(".", 2)[0]
    shape = pick(rng, ((1,), (), (2,), (0,), (1, 1)))
    value = pick(rng, _COMPANIONS)
    dtype = np.float64 if isinstance(value, float) else np.int64
    state[f"{layer}.{pick(rng, ('weight_bits', 'output_shift'))}"] = np.full(shape, value, dtype)


def _other_order(_: dict[str, Any], state: State, rng: Generator) -> None:
    items = list(state.items())
    rng.shuffle(items)
    state.clear()
    state.update(items)


def _very_many(_: dict[str, Any], state: State, __: Generator) -> None:
    state.update({f"layer{n}.op.weight": np.ones((4, 4, 3, 3)) for n in range(3000)})


_CONTENT: tuple[ContentMutation, ...] = (
    _entry_missing, _entry_of_another_type, _tensor_missing, _tensor_more, _tensor_of_another_name,
    _tensor_of_another_shape, _tensor_of_another_shape, _tensor_of_another_type,
    _tensor_of_other_values, _tensor_of_other_values, _companion, _companion, _other_order,
    _very_many,
)  # fmt: skip

MUTATIONS: tuple[ByteMutation, ...] = (
    *BYTES, changed_content, changed_content, changed_content, changed_content, changed_pickle,
    changed_pickle, bomb,
)  # fmt: skip
"""Mutations of checkpoint files; what they hold is changed more often than their bytes."""
