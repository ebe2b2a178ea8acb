"""The entries of a layer besides its weights, in the two generations of QAT.

Source: docs/checkpoints.md, "The second generation of QAT".
"""

from __future__ import annotations

import torch
from torch import nn

THRESHOLD, FINAL_SCALE, CLAMP = "activation_threshold", "final_scale", "clamp_activation"
ADDED = (THRESHOLD, FINAL_SCALE, CLAMP)
"""Parameters that the second generation has and the first has not."""
RANGE = "range_exponent"
"""Parameter of layers whose weights have a range of their own, 2^range_exponent, and whose bias has
8 bits outside of it; that of others is the largest magnitude of weights and bias."""
BOOKKEEPING = (
    "output_shift", THRESHOLD, FINAL_SCALE, "weight_bits", "bias_bits",
    "quantize_activation", CLAMP, "adjust_output_shift", "shift_quantile", RANGE,
)  # fmt: skip
"""The bookkeeping parameters of a layer in the order of the checkpoint."""


def exponent(value: float, device: torch.device | None = None) -> nn.Parameter:
    """Return an untrained exponent of a power of two, float32 of shape ()."""
    return nn.Parameter(torch.tensor(value, dtype=torch.float32, device=device), False)
