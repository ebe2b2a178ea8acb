"""Weights of few bits in the forward pass, gradients as if they were not quantized.

The levels are those of `quantization.lowbit`, to which trained weights are exported.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import torch
from torch import Tensor

from ai8xtools.quantization.lowbit import ENCODINGS, TRAINING_ONLY, Encoding

_UNROUNDED = 2048.0
"""What stands for the clip scalar where weights are not rounded: sums of many bits, as others."""


def integer_weights(weight: Tensor, clip: Tensor, encoding: Encoding, fine: bool) -> Tensor:
    """Return the integers that the engine multiplies by, float32 of the shape of the weights.

    `fine` takes the table of NF4 and NF2 for activations of four bits. The gradient is that of the
    weights times what a clip scalar of one stands for.
    """
    unit = _unit(encoding, fine)
    scale = unit / (weight.detach().abs().mean() if encoding.name == "Ternary" else clip)
    soft = weight * scale
    with torch.no_grad():
        hard = _levels(weight.detach(), clip, encoding, fine)
    return hard + (soft - soft.detach())  # exactly the integers


def unit_of(encoding: Encoding, fine: bool) -> float:
    """Return the integer that the clip scalar stands for."""
    return _unit(encoding, fine)


def _unit(encoding: Encoding, fine: bool) -> float:
    match encoding.name:
        case "NF4" | "NF2":
            return float((encoding.table if fine else encoding.values)[-1])
        case "Binary" | "BinarySym" | "Ternary":
            return 1.0
        case "2bitsym" | "4bitsym" | "5bitsym":
            return float(1 << encoding.bits)
        case "FP130":
            return 128.0
        case "None":
            return _UNROUNDED
        case _:
            return float(1 << (encoding.bits - 1))


def _levels(weight: Tensor, clip: Tensor, encoding: Encoding, fine: bool) -> Tensor:
    """Return the integer of each weight."""
    half = float(1 << max(encoding.bits - 1, 0))
    match encoding.name:
        case "Binary":
            return torch.where(weight - weight.double().mean().float() >= 0, 1.0, -1.0)
        case "BinarySym":
            return torch.where(weight >= 0, 1.0, -1.0)
        case "Ternary":
            mean = weight.abs().double().mean().float()
            return (weight * (1 / torch.where(mean > 0, mean, 1.0))).round().clamp(-1, 1)
        case "2bitsym" | "4bitsym" | "5bitsym":
            return 2 * (weight * (half / clip) - 0.5).round().clamp(-half, half - 1) + 1
        case "4bit":
            return (weight * (half / clip) - 0.01).round().clamp(-half, half - 1)
        case "sint4" | "8bit":
            return (weight * (half / clip)).round().clamp(-half, half - 1)
        case "None":
            return weight * (_UNROUNDED / clip)
        case "FP130":
            magnitude = (weight * (128 / clip)).abs()
            power = torch.frexp(magnitude)[1].sub(1).clamp(0, 7)
            return torch.where(weight < 0, -1.0, 1.0) * torch.exp2(power.float())
        case _:
            table = encoding.table if fine else encoding.values
            return weight.new_tensor(table)[_nearest(weight / clip, encoding)]


def _nearest(scaled: Tensor, encoding: Encoding) -> Tensor:
    """Return the index of the nearest level, the first one on a tie."""
    levels = torch.tensor(encoding.levels, dtype=torch.float64, device=scaled.device)
    return torch.bucketize(scaled.double(), (levels[1:] + levels[:-1]) / 2)


def encoding_of(name: str) -> Encoding:
    """Return an encoding by its name, `BinaryBalanced` of older files included; else KeyError."""
    return (ENCODINGS | TRAINING_ONLY)["Binary" if name == "BinaryBalanced" else name]
