"""What can be chosen about quantization."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.arithmetic import LARGEST, Float32s
from ai8xtools.values import frozen

WEIGHT_BITS = (1, 2, 4, 8)


class ClipMethod(enum.StrEnum):
    """How a layer's range is found when it was trained without regard to quantization.

    These are the methods of other tools; they multiply the weights by the range they find. To
    keep what a network computes, use calibration.
    """

    AVGMAX = "AVGMAX"
    MAX = "MAX"
    STDDEV = "STDDEV"
    SCALE = "SCALE"


@frozen
class LayerIntegers:
    """The integers that calibration chose for one layer.

    `weights` are of `bits` bits, `bias` of 8 bits whatever the weights have (None without bias);
    both times 2^`shift`, the output shift, are 2^(bits-1) times the trained values. Source of the
    widths: docs/hardware/arithmetic.md.
    """

    bits: int
    shift: int
    weights: Float32s
    bias: Float32s | None


@frozen
class Calibration:
    """What calibration found: integers by layer (without the prefix `module.`), and notes.

    Layers that are not among them are quantized as without calibration. The notes go into `extras`.
    `constant` are tensors that the network has and its checkpoint need not have.
    """

    layers: Mapping[str, LayerIntegers]
    notes: Mapping[str, Any] = field(default_factory=dict)
    constant: Mapping[str, Any] = field(default_factory=dict)


@frozen
class QuantizationOptions:
    """Choices for one checkpoint.

    clip_method: None scales each layer by a power of two, as quantization-aware training does.
    scale, stddev: parameters of SCALE and STDDEV.
    default_bits: weight bits of layers for which neither `layer_bits` nor the checkpoint has any.
    layer_bits: weight bits by position of the weight tensor; None within leaves that one open,
        tensors beyond the end stay as they are. None instead of the list: no preference.
    calibration: integers chosen before, in place of rounding.

    Raises InputError E701 (bits) or E516 (scale, stddev) on values out of range.
    """

    clip_method: ClipMethod | None = None
    scale: float = 0.85
    stddev: float = 2.0
    default_bits: int | None = None
    layer_bits: Sequence[int | None] | None = None
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        for name, value in (("--scale", self.scale), ("--stddev", self.stddev)):
            if not 0 < value <= LARGEST:
                raise InputError(
                    "E516", f"{value} is not usable; it must be above 0, at most 2^60", name
                )
        if self.default_bits is not None:
            check_bits(self.default_bits, "--qat-weight-bits")
        for index, bits in enumerate(self.layer_bits or ()):
            if bits is not None:
                check_bits(bits, f"weight tensor {index} of the network description")


def check_bits(bits: float, where: str) -> int:
    """Return `bits` as an integer; raise InputError E701 unless it is 1, 2, 4 or 8."""
    if bits not in WEIGHT_BITS:
        if where.startswith("-"):
            raise InputError("E701", f"{bits:g} weight bits; possible are 1, 2, 4 and 8", where)
        raise InputError("E701", f"{where}: {bits:g} weight bits; possible are 1, 2, 4 and 8")
    return int(bits)
