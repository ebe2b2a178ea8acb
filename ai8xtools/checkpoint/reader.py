"""Reading a checkpoint file: container, top-level entries, and the checks every user needs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint.containers import read_container
from ai8xtools.checkpoint.errors import CheckpointError, reading
from ai8xtools.checkpoint.known_objects import printable
from ai8xtools.checkpoint.values import Array, Checkpoint, Value
from ai8xtools.reading import ForeignFileError, read_bytes

MAX_FILE_BYTES = 1 << 30
MAX_NAME = 250


def read_checkpoint(path: str | os.PathLike[str], *, bare: bool = False) -> Checkpoint:
    """Read a checkpoint file without torch and without executing anything from it.

    With `bare` a file that is a state_dict itself is taken, too.

    Arrays are read-only views of the file's bytes. `state_dict` holds only tensors, all finite, and
    printable names. Raises CheckpointError with `place` = path: E501 unreadable, E502 another kind
    of file, E503 damaged, E504 names foreign objects, E505 exceeds a limit, E506 lacks or misuses
    an entry, E507 NaN or infinity.
    Source: docs/checkpoints.md.
    """
    try:
        data = _file_bytes(Path(path))
    except CheckpointError as exc:
        exc.place = str(path)
        raise
    return parse_checkpoint(data, str(path), bare=bare)


def parse_checkpoint(data: bytes, place: str, *, bare: bool = False) -> Checkpoint:
    """Return what the bytes of a checkpoint file hold; raises what `read_checkpoint` does."""
    try:
        root, container = read_container(data)
        if bare and _is_state(root):
            root = {"state_dict": root}
        checkpoint = Checkpoint(_entries(root), container)
        for name, tensor in checkpoint.state_dict.items():
            _check_finite(name, tensor)
    except CheckpointError as exc:
        exc.place = place
        raise
    return checkpoint


def refuse_integers(checkpoint: Checkpoint, place: str | None = None) -> None:
    """Raise CheckpointError E707 for a network of 16 or 8 bits: nothing trains or quantizes it."""
    if checkpoint.network is not None:
        error = CheckpointError(
            "E707",
            "the checkpoint holds a network that is quantized to 16 or 8 bits",
            remedy="Name the trained one; ai8xize.py --device MCU makes a project of this one.",
        )
        error.place = place
        raise error


def _file_bytes(path: Path) -> bytes:
    with reading():
        try:
            return read_bytes(path, MAX_FILE_BYTES)
        except ForeignFileError as exc:
            if exc.size is None:
                raise
            limit = MAX_FILE_BYTES >> 30
            raise CheckpointError("E505", f"the file is larger than {limit} GiB") from None


def _entries(root: Value) -> dict[str, Value]:
    """Check the top level: text keys, a state_dict of named tensors, sensible companions."""
    if not isinstance(root, dict):
        raise _misused("a checkpoint is a dictionary", root)
    for key in root:
        _check_name(key)
    state = root.get("state_dict")
    if state is None:
        raise _without_state(root)
    if not isinstance(state, dict):
        raise _misused("state_dict is a dictionary of tensors", state)
    for name, tensor in state.items():
        _check_name(name)
        if not isinstance(tensor, np.ndarray):
            raise _misused(f"{name} in state_dict is a tensor", tensor)
    for key, kind in (("epoch", int), ("arch", str), ("extras", dict)):
        if not isinstance(root.get(key), kind | None):
            raise _misused(f"{key} is of type {kind.__name__}", root[key])
    arch = root.get("arch")
    if arch is not None and (len(arch) > MAX_NAME or not arch.isprintable()):
        raise CheckpointError("E506", f"arch is {printable(arch)!r}; names are short, plain text")
    return dict(root)


def _without_state(root: dict[str, Value]) -> CheckpointError:
    """Return the error about a file without state_dict, which names what seems to be one."""
    what = (
        "the file holds no state_dict"
        if root
        else "the file is an empty dictionary, without a weight"
    )
    remedy = 'Save {"state_dict": model.state_dict(), "epoch": 0, "arch": "NAME"}.'
    inside = next((key for key, value in root.items() if _is_state(value)), None)
    if _is_state(root):
        what += ", it is one itself"
        remedy += " quantize.py with --model FILE:CLASS and --import, or with --device Q15, takes "
        remedy += "that of an ordinary PyTorch network as it is."
    elif inside is not None:
        what += f"; {printable(inside)!r} seems to be one"
    return CheckpointError("E506", what, remedy=remedy)


def _is_state(root: Value) -> bool:
    """Return whether a file holds tensors by name and nothing else."""
    return (
        isinstance(root, dict)
        and bool(root)
        and all(isinstance(value, np.ndarray) for value in root.values())
    )


def _check_name(name: Value) -> None:
    """Names reach terminals and comments of generated sources: keep them on one line."""
    if not isinstance(name, str) or not name.isprintable():
        shown = printable(str(name))
        raise CheckpointError("E506", f"the file uses {shown!r} as a name; names are plain text")


def _check_finite(name: str, tensor: Array) -> None:
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        raise CheckpointError(
            "E507",
            f"{name} holds values that are not finite numbers (NaN or infinity)",
            remedy="Training diverged: train again with a smaller learning rate.",
        )


def _misused(rule: str, value: Value) -> CheckpointError:
    kind = "tensor" if isinstance(value, np.ndarray) else type(value).__name__
    return CheckpointError("E506", f"{rule}; this file has a value of type {kind} there")
