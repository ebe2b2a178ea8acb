"""A network of ai8x layers becomes a description."""

from __future__ import annotations

from torch import Tensor, nn

import ai8x
from device import Chip
from diagnostics.errors import InputError
from frontends.layers import refuse, times
from frontends.modules.tracing import trace
from frontends.modules.walk import Walk
from frontends.text import ModelDescription, description_text


def describe(
    model: nn.Module, example: Tensor, chip: Chip, *, name: str, arch: str, dataset: str
) -> ModelDescription:
    """Return the description of a network for inputs like `example` [1, C, ...].

    The network is changed: batch normalization is fused. `name` is the network's in messages,
    `arch` what its checkpoints say. Raises InputError E647 for a data flow that cannot be traced,
    E650 for a network without a layer, E670 naming each node that the chip cannot compute.
    """
    ai8x.fuse_bn_layers(model)
    walk = Walk(model.eval(), trace(model, example), chip)
    refuse(walk.refusals, name)
    if not walk.entries:
        raise InputError(
            "E650", "the network has no layer that the accelerator computes", name,
            "Build it from the layers of ai8x, or import a network of PyTorch's: --import.",
        )  # fmt: skip
    shape = tuple(example.shape[1:])
    title = f"{arch}: input {times(shape)}. Made from the model; processors and offsets are open."
    text = description_text(walk.entries, arch=arch, dataset=dataset, title=title)
    nodes = tuple(entry.node for entry in walk.entries)
    return ModelDescription(text, name, nodes, shape, tuple(walk.left))
