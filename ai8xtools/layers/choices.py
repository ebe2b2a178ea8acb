"""The steps of a layer that follow from its state (the table of docs/layers.md, "The steps of a
layer").
"""

from __future__ import annotations

from typing import Any, assert_never

from torch import nn

from ai8xtools.layers.chips import Dev, chosen_chip
from ai8xtools.layers.elementary import (
    AvgPoolFloor,
    Clamp,
    Empty,
    FloorQat,
    Quantize,
    Round,
    RoundQat,
)
from ai8xtools.layers.parts import PoolingKind

WIDE_LIMIT = 2.0**15
"""Wide results of a network in training have this magnitude at most."""
WIDE_BITS = 15
"""Wide results of a network in training are multiples of 2^-14."""


def activation_clamp(chip: Dev) -> Clamp:
    """Return the limits of 8-bit data, as integers in simulation and as fractions otherwise."""
    return Clamp(-128.0, 127.0) if chip.simulate else Clamp(-1.0, 127 / 128)


def quantize_clamp(
    wide: bool,
    quantize_activation: bool = False,
    clamp_activation: bool = True,
    weight_bits: Any = 8,
    *,
    chip: Dev | None = None,
) -> tuple[nn.Module, nn.Module]:
    """Return how the results of an operator are rounded and limited; simulation always limits."""
    chip = chip or chosen_chip()
    if not (clamp_activation or chip.simulate):
        quantize, _ = quantize_clamp(wide, quantize_activation, True, weight_bits, chip=chip)
        return quantize, Empty()
    if wide:
        limit = 2.0 ** (chip.FULL_ACC_BITS - (1 if chip.simulate else WIDE_BITS))
        clamp = Clamp(-limit, limit - 1)
        bits = 9 - int(weight_bits) if chip.simulate else WIDE_BITS
    else:
        clamp, bits = activation_clamp(chip), chip.ACTIVATION_BITS
    if chip.simulate or quantize_activation:
        return Quantize(bits, chip=chip), clamp
    return Empty(), clamp


def quantize_clamp_pool(
    pooling: str | None,
    quantize_activation: bool = False,
    clamp_activation: bool = True,
    *,
    chip: Dev | None = None,
) -> tuple[nn.Module, nn.Module]:
    """Return how the results of pooling ("Max", "Avg" or None) are rounded and limited."""
    kind = None if pooling is None else PoolingKind(pooling)
    match kind:
        case None | PoolingKind.MAX:
            return Empty(), Empty()
        case PoolingKind.AVERAGE:
            pass
        case _:
            assert_never(kind)
    chip = chip or chosen_chip()
    if chip.simulate:
        quantize: nn.Module = Round() if chip.round_avg else AvgPoolFloor()
    elif quantize_activation:
        quantize = RoundQat() if chip.round_avg else FloorQat()
    else:
        quantize = Empty()
    clamped = clamp_activation or chip.simulate
    return quantize, activation_clamp(chip) if clamped else Empty()


def quantize_clamp_parameters(
    weight_bits: Any, bias_bits: Any, *, chip: Dev | None = None
) -> tuple[nn.Module, nn.Module, nn.Module, nn.Module]:
    """Return how weights and bias are rounded, and how weights and bias are limited.

    Bits of 0 or None leave floating-point parameters as they are. In simulation narrow weights are
    brought to the scale of 8-bit weights, the bias to that of their products.
    """
    chip = chip or chosen_chip()
    bits, bias = int(weight_bits or 0), int(bias_bits or 0)
    if chip.simulate:
        narrow = chip.WEIGHT_BITS - bits
        weights = Quantize(1 - narrow, chip=chip)
        return weights, Quantize(1 - narrow, -narrow, chip=chip), Empty(), Empty()
    return (
        Quantize(bits, chip=chip) if bits else Empty(),
        Quantize(bias, chip=chip) if bias else Empty(),
        _fraction_clamp(bits),
        _fraction_clamp(bias),
    )


def _fraction_clamp(bits: int) -> nn.Module:
    """Return the limits of signed fractions of `bits` bits."""
    return Clamp(-1.0, 1.0 - 2.0 ** (1 - bits)) if bits else Empty()
