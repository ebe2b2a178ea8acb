"""A network of ai8x layers becomes a description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.accelerator.walk import Walk
from ai8xtools.frontends.layers import at_line, refuse, times, wide_data
from ai8xtools.frontends.modules.door import Door
from ai8xtools.frontends.modules.tracing import lines_of
from ai8xtools.frontends.text import ModelDescription, description_text
from device import Chip


def stand_in(model: nn.Module, bits: Mapping[str, int]) -> Checkpoint:
    """Return random integers of the shapes of a network's weights, always the same ones.

    `bits` are widths by layer, 8 elsewhere.
    """
    random = np.random.default_rng(0)
    state: dict[str, NDArray[Any]] = {}
    for name, layer in model.named_modules():
        if not isinstance(layer, ai8x.QuantizationAwareModule) or layer.op is None:
            continue
        width = bits.get(name, 8)
        limit = 1 << width - 1
        shape = tuple(layer.op.weight.shape)
        weights = random.integers(-limit, limit, shape)
        state[f"{name}.op.weight"] = weights.astype(np.float32)
        state[f"{name}.weight_bits"] = np.array([width], np.float32)
        if layer.op.bias is not None:
            shift = 1 << width - 1
            values = random.integers(1, 100, tuple(layer.op.bias.shape)) * shift
            state[f"{name}.op.bias"] = values.astype(np.float32)
    return Checkpoint({"state_dict": state, "arch": None, "epoch": 0, "extras": {}})


def is_describable(model: nn.Module, example: Tensor, chip: Chip) -> bool:
    """Return whether layers of the chip stand for all that a network computes, as far as its data
    flow can be traced for inputs like `example` [1, C, ...]. One in which layers read
    sums of 32 bits counts as well: a description refuses it.
    """
    try:
        door = Door(model.eval(), example, whole=True)
    except InputError:
        return True
    refusals = _walked(door, chip).refusals
    return not refusals or any(one.sums for one in refusals)


def _walked(door: Door, chip: Chip) -> Walk:
    """Return the layers of a network, and what no layer stands for."""
    walk = Walk(door.graph, chip, door.names)
    remedy = "Leave out wide=True, which is for results of the network."
    walk.refusals += wide_data(walk.entries, remedy)
    return walk


def describe(
    model: nn.Module,
    example: Tensor,
    chip: Chip,
    *,
    name: str,
    arch: str,
    dataset: str,
    frames: int | None = None,
    margins: Mapping[str, int] = MappingProxyType({}),
) -> ModelDescription:
    """Return the description of a network for inputs like `example` [1, C, ...].

    A network that takes series of frames is described for one like `example`; `frames` is their
    number, else the least that the network takes. `margins` are those of early exits, by layer.
    Batch normalization is fused in the network.
    `name` is the network's in messages, `arch` what its checkpoints say. Raises InputError E647 for
    a data flow that cannot be traced, E650 for a network without a layer, E670 naming each node
    that the chip cannot compute.
    """
    ai8x.fuse_bn_layers(model)
    door = Door(model.eval(), example, frames, whole=True)
    walk, lines = _walked(door, chip), lines_of(model, door.traced)
    refuse(walk.refusals, name, lines=lines)
    if not walk.entries:
        raise InputError(
            "E650", "the network has no layer that the accelerator computes", name,
            "Build it from the layers of ai8x, or import a network of PyTorch's: --import.",
        )  # fmt: skip
    for entry in walk.entries:
        if entry.node in margins:
            entry.keys["exit_margin"] = margins[entry.node]
    shape = tuple(example.shape[1:])
    title = f"{arch}: input {times(shape)}. Made from the model; processors and offsets are open."
    text = description_text(walk.entries, arch=arch, dataset=dataset, title=title,
                            buffer=walk.buffer)  # fmt: skip
    nodes = tuple(at_line(entry.node, entry.node, lines) for entry in walk.entries)
    notes = () if walk.buffer is None else (
        f"The network takes {walk.buffer.entries} frames; each inference adds one. Their features "
        f"stay in the buffer '{walk.buffer.name}', which --zero-sram clears before the first.",
    )  # fmt: skip
    return ModelDescription(text, name, nodes, shape, tuple(walk.left), notes)
