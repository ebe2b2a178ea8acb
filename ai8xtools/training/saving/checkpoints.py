"""Checkpoints in the interchange format.

Source: docs/training.md, "Files"; docs/checkpoints.md.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import ai8x
from ai8xtools.checkpoint import atomic, read_checkpoint, twin_of
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.generations import (
    ADDED_KEYS,
    has_thresholds,
    is_of_normalization,
    refuse_inconsistent,
)
from ai8xtools.checkpoint.pairs import write_pair
from ai8xtools.checkpoint.reader import parse_checkpoint
from ai8xtools.checkpoint.safetensors import safetensors_bytes
from ai8xtools.frontends.modules.mixed import constant_tensors


@dataclass(frozen=True, slots=True)
class Loaded:
    """Data of a training checkpoint: tensors by name, epoch (None: unknown), optimizer."""

    state: dict[str, Tensor]
    epoch: int | None
    arch: str | None
    optimizer: dict[str, Any] | None
    optimizer_class: str | None  # "SGD", "Adam"
    extras: dict[str, Any]


def read(path: str) -> Loaded:
    """Read a file without executing anything from it; names lose the prefix `module.`.

    Raises CheckpointError when it is missing, damaged or not of the format.
    """
    entries = read_checkpoint(path).entries
    try:
        refuse_inconsistent(entries["state_dict"])
    except CheckpointError as exc:
        exc.place = exc.place or path
        raise
    state = _tensors(entries["state_dict"])
    return Loaded(
        {name.removeprefix("module."): tensor for name, tensor in state.items()},
        entries.get("epoch"),
        entries.get("arch"),
        _tensors(entries.get("optimizer_state_dict")),
        getattr(entries.get("optimizer_type"), "name", None),
        _tensors(entries.get("extras") or {}),
    )


def _tensors(value: Any) -> Any:
    """Return the value with every array as a tensor of its own."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, dict):
        return {key: _tensors(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tensors(item) for item in value]
    return value


def load_into(model: nn.Module, checkpoint: Loaded) -> list[str]:
    """Load the tensors of a checkpoint into the model and return the names that it does not have.

    Batch normalization that was moved into the weights before is removed from the model, a missing
    `shift_quantile` (files of 2020) is 1. Raises RuntimeError when the model cannot be filled;
    `training.network.fitting` checks that before and reports why.
    """
    ai8x.use_thresholds(model, has_thresholds(checkpoint.state))
    if not any(map(is_of_normalization, checkpoint.state)):
        ai8x.fuse_bn_layers(model)
    ai8x.use_ranges(model, checkpoint.state)
    own = model.state_dict()
    state = constant_tensors(model) | dict(checkpoint.state)
    for name in own:
        if name.endswith("shift_quantile"):
            state.setdefault(name, torch.ones(1))
        elif name.rpartition(".")[2] in ADDED_KEYS:
            state.setdefault(name, own[name])
    surplus = [name for name in state if name not in own]
    model.load_state_dict({name: state[name] for name in own if name in state})
    ai8x.update_model(model)
    ai8x.settle_scales(model)
    return surplus


def _plain(value: Any) -> Any:
    """Return the value with every tensor on the CPU and in its usual memory layout."""
    if isinstance(value, Tensor):
        return value.detach().cpu().contiguous()
    if isinstance(value, dict):
        return type(value)((k, _plain(v)) for k, v in value.items())
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def write(
    paths: list[Path],
    epoch: int,
    arch: str,
    model: nn.Module,
    optimizer: Optimizer,
    extras: dict[str, Any],
    safetensors: bool = False,
) -> None:
    """Write the same checkpoint to all `paths`; each file appears completely or not at all.

    With `safetensors`, its twin in that format lies beside each.
    """
    ai8x.settle_quantiles(model)
    state = _plain(model.state_dict())
    content = {
        "epoch": epoch,
        "state_dict": state,
        "arch": arch,
        "optimizer_state_dict": _plain(optimizer.state_dict()),
        "optimizer_type": type(optimizer),
        "compression_sched": {"masks_dict": {name: None for name, _ in model.named_parameters()}},
        "extras": _plain(extras),
    }
    buffer = io.BytesIO()
    torch.save(content, buffer)
    for path in paths:
        write_file(path, buffer.getvalue(), safetensors)


def note(path: Path, changes: dict[str, Any], safetensors: bool) -> None:
    """Add to the extras of a checkpoint that this program wrote; all else stays as it is."""
    with torch.serialization.safe_globals([SGD, Adam, AdamW]):  # its optimizer's class
        content = torch.load(path, weights_only=True)
    content["extras"] |= changes
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_file(path, buffer.getvalue(), safetensors)


def write_file(path: Path, data: bytes, safetensors: bool) -> None:
    """Write a checkpoint from its bytes, and if requested its twin: both or none."""
    if not safetensors:
        atomic.write_bytes(path, data)
        return
    twin = twin_of(path)
    other = safetensors_bytes(twin, parse_checkpoint(data, str(path)))
    write_pair(path, data, twin, other)
