"""The network description of a model (--yaml-template)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import atomic
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies import qat
from device import MAX78000, Chip, chip_of_die

Complete = Callable[[nn.Module, Tensor, Chip, TrainingOptions], tuple[str, int]]
"""Returns the description of a network with all places, as the network loader chooses them, and the
number of its layers; raises ToolError for what has none."""


def write_template(
    model: nn.Module,
    example: Tensor,
    policy: dict[str, Any] | None,
    options: TrainingOptions,
    complete: Complete,
) -> str:
    """Write the layers of the network as a description, and return a line about it.

    Batch normalization is fused. The bits of weights are those of the checkpoint that fills the
    network, if it was trained with quantization, else the policy's. Raises ToolError, and writes
    nothing, for a network that cannot be followed, that no layers stand for, or that does not fit.
    """
    assert options.yaml_template is not None
    ai8x.fuse_bn_layers(model)
    if policy is not None and not qat.begun(model):
        ai8x.initiate_qat(model, policy, export=True)
    chip = chip_of_die(options.device) or MAX78000
    text, layers = complete(model, example, chip, options)
    atomic.write_bytes(options.yaml_template, text.encode())
    return f"Saved {layers} layers as {options.yaml_template}; nothing is left to fill in"
