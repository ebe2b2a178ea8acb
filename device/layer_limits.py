"""Limits of the chips for the layers of a network in training.

The limits of a chip are derived from its `Chip`. AI84 is the predecessor of the family: networks
can be trained for it, but the other tools do not support it.
Source: docs/layers.md, "The chip and the arithmetic of a run" and "Parameters and their limits".
"""

from __future__ import annotations

from collections.abc import Callable

from ai8xtools.values import frozen
from device.chip import PROCESSORS, Chip
from device.family import known_chips

Choice = range | tuple[int, ...]


@frozen
class LayerLimits:
    """The limits of one chip; `number` is what ai8x.set_device takes."""

    number: int
    name: str
    weight_depth: int
    """Kernel columns of the processor with the largest kernel memory."""
    weight_inputs: int
    max_channels: int
    max_pool: int
    max_average_pool: int
    max_pool_dilation: int
    pool_step: int
    """Pooling windows are multiples of this number of pixels."""
    accumulator_bits: int
    wide_bits: int
    conv2d_kernels: Choice
    conv1d_kernels: Choice
    conv1d_strides: Choice
    """Strides of a Conv1d without pooling."""
    conv1d_padding: Choice
    conv1d_padded_channels: int | None
    """Maximum number of input channels of a padded Conv1d; None: no limit."""
    activations: tuple[str, ...]
    has_linear: bool
    has_transposed: bool
    has_depthwise: bool
    rounds_averages: bool
    """Average pooling can round to nearest."""


AI84 = LayerLimits(
    number=84,
    name="AI84",
    weight_depth=128,
    weight_inputs=64,
    max_channels=1024,
    max_pool=16,
    max_average_pool=4,
    max_pool_dilation=1,
    pool_step=2,
    accumulator_bits=8,
    wide_bits=8,
    conv2d_kernels=(3,),
    conv1d_kernels=(9,),
    conv1d_strides=(3,),
    conv1d_padding=(0, 3, 6),
    conv1d_padded_channels=None,
    activations=("ReLU",),
    has_linear=False,
    has_transposed=False,
    has_depthwise=False,
    rounds_averages=False,
)


def limits_of(chip: Chip) -> LayerLimits:
    """Return the limits that follow from a chip."""
    return LayerLimits(
        number=chip.die,
        name=chip.name,
        weight_depth=chip.kernel_columns_first,
        weight_inputs=256,
        max_channels=chip.max_channels,
        max_pool=chip.max_pool,
        max_average_pool=chip.max_pool,
        max_pool_dilation=chip.max_pool_dilation,
        pool_step=1,
        accumulator_bits=30,
        wide_bits=15,
        conv2d_kernels=(1, 3),
        conv1d_kernels=range(1, 10),
        conv1d_strides=(1,),
        conv1d_padding=(0, 1, 2),
        conv1d_padded_channels=None if chip.pads_series_of_passes else PROCESSORS,
        activations=("ReLU", "Abs"),
        has_linear=True,
        has_transposed=True,
        has_depthwise=chip.has_depthwise,
        rounds_averages=True,
    )


def known_limits() -> tuple[LayerLimits, ...]:
    """Return the limits of all chips that networks can be trained for, by ascending number."""
    limits = (AI84, *map(limits_of, known_chips()))
    return tuple(sorted(limits, key=lambda one: one.number))


def trainable_names(fact: Callable[[LayerLimits], bool]) -> tuple[str, ...]:
    """Return the names of the chips that satisfy a condition."""
    return tuple(limits.name for limits in known_limits() if fact(limits))
