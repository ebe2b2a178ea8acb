"""Comparing what we read with what torch reads, and making files by hand."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import torch

from ai8xtools.checkpoint import ClassReference


def tensors_equal_to_torch(ours: Any, theirs: Any, where: str = "") -> int:
    """Assert equal types, order, dtypes, shapes and values; return the number of tensors."""
    if isinstance(theirs, torch.Tensor):
        expected = theirs.detach().numpy()
        assert isinstance(ours, np.ndarray), where
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape), where
        assert np.array_equal(ours, expected), where
        return 1
    if isinstance(theirs, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs), where
        return sum(tensors_equal_to_torch(ours[k], theirs[k], f"{where}.{k}") for k in theirs)
    if isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs) and len(ours) == len(theirs), where
        pairs = zip(ours, theirs, strict=True)
        return sum(tensors_equal_to_torch(a, b, where) for a, b in pairs)
    if isinstance(theirs, type):
        assert ours == ClassReference(theirs.__module__, theirs.__name__), where
    else:
        assert type(ours) is type(theirs) and ours == theirs, where
    return 0


def zip_container(
    pickle: bytes, *, root: str = "archive", compress: bool = False, **entries: bytes
) -> bytes:
    """Return a zip checkpoint of a pickle and entries (storage `0` is passed as `data_0`)."""
    buffer = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(f"{root}/data.pkl", pickle)
        for name, content in entries.items():
            archive.writestr(f"{root}/{name.replace('_', '/')}", content)
        archive.writestr(f"{root}/version", "3\n")
    return buffer.getvalue()


def text(value: str) -> bytes:
    """Return the instruction that pushes a text."""
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def integer(value: int) -> bytes:
    """Return the instruction that pushes an integer."""
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def tensor(count: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    """Return the instructions that push a float32 tensor on storage 0 with `count` elements."""

    def sizes(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(map(integer, values)) + b"t"

    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage")
        + b"ctorch\nFloatStorage\n"
        + text("0")
        + text("cpu")
        + integer(count)
        + b"tQ"
        + integer(offset)
        + sizes(shape)
        + sizes(strides)
        + b"\x89}tR"
    )


def checkpoint_pickle(extra: bytes = b"N", weight: bytes = tensor(1, 0, (1,), (1,))) -> bytes:
    """Return the pickle of a checkpoint whose state_dict holds `weight`; `extra` is one entry."""
    state = text("state_dict") + b"}(" + text("a.weight") + weight + b"u"
    return b"\x80\x02}(" + state + text("extra") + extra + b"u."
