"""The integers of a network that has been trained, as quantize.py makes them without options."""

from __future__ import annotations

import torch
from torch import Tensor

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.quantization import (
    QuantizationOptions,
    fuse_batchnorm,
    normalized_layers,
    quantize_checkpoint,
    refuse_foreign,
)


def integers_of(path: str) -> dict[str, Tensor]:
    """Return the tensors of the quantized checkpoint; InputError where there are none."""
    checkpoint = read_checkpoint(path)
    refuse_foreign(checkpoint, "be quantized")
    if normalized_layers(checkpoint):
        checkpoint = fuse_batchnorm(checkpoint, None)
    quantized = quantize_checkpoint(checkpoint, QuantizationOptions()).checkpoint
    return {
        name.removeprefix("module."): torch.from_numpy(tensor.copy())
        for name, tensor in quantized.state_dict.items()
    }
