"""Kernels as layers multiply with them, decoded once for as long as the memory keeps them."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig, Output
from ai8xtools.emulator.decode.weights import layer_kernels
from ai8xtools.emulator.machine.arithmetic import Floats, exact_type
from ai8xtools.emulator.state.memory import Memory

Integers = NDArray[np.int64]
KERNELS_PER_BYTE = 8
"""Of one bit each."""


class KernelValues:
    """The kernels of a layer: int64 [output, channel, row, column].

    Those of a depth-wise layer are [channel, row, column]. `used` tells of each output whether any
    of its kernels is not zero. Binary kernels never are, so that what fills the last byte cannot be
    distinguished from kernels: so many outputs at the end as are `uncertain` count as not used.
    """

    def __init__(self, values: Integers, uncertain: int) -> None:
        self.values = values
        flat = values.reshape(len(values), -1)
        self.used: NDArray[np.bool_] = np.any(flat, axis=1, keepdims=True)[:, 0]
        if uncertain:
            self.used[-uncertain:] = False
        self._magnitudes = np.abs(flat).sum(axis=1)
        self._floats: dict[type, Floats] = {}

    def exact_type(self, bias: Integers, output: Output) -> type[np.float32] | type[np.float64]:
        """Return the type in which sums with these biases are exact."""
        return exact_type(self._magnitudes, bias, output)

    def as_type(self, kind: type[np.float32] | type[np.float64]) -> Floats:
        """Return the values in a type."""
        if kind not in self._floats:
            self._floats[kind] = self.values.astype(kind)
        return self._floats[kind]


class DecodedKernels:
    """Decoded kernels by layer; they are forgotten when kernels are written."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._cache: dict[tuple[LayerConfig, bool, bool], KernelValues] = {}

    def of(
        self, memory: Memory, config: LayerConfig, modes: Mapping[str, int], *, quad: bool
    ) -> KernelValues:
        """Return the kernels of a layer with `modes`, the fields of CTL.

        Raises EmulatorError (E832) if kernels lie behind the memory.
        """
        if memory.kernel_version != self._version:
            self._cache.clear()
            self._version = memory.kernel_version
        binary = bool(modes["binary"])
        key = config, binary, quad
        if key not in self._cache:
            values = _ordered(memory, config, binary=binary, quad=quad)
            self._cache[key] = KernelValues(values, _uncertain(config) if binary else 0)
        return self._cache[key]


def kernel_places(memory: Memory, config: LayerConfig) -> Integers:
    """Return the place of each kernel of a layer, in the form of its values.

    Places are numbers of as many bits as a kernel has, counted from 1 on, through all bytes of the
    kernel memory, from the lowest bits of each byte on; 0 where a kernel is in no byte.
    """
    per_byte, base = 8 // config.kernels.bits, 2**config.kernels.bits
    shape = memory.kernels.shape
    slots = shape[1] * shape[2] * per_byte  # of each processor
    numbers = np.arange(1, 1 + slots).reshape(-1, per_byte)
    marked, places, unit = copy.copy(memory), np.zeros(1, np.int64), 1
    while unit <= slots:
        digits = (numbers // unit % base * base ** np.arange(per_byte)).sum(axis=1)
        marked.kernels = np.broadcast_to(digits.astype(np.uint8).reshape(shape[1:]), shape)
        places = places + unit * (_ordered(marked, config, binary=False, quad=False) % base)
        unit *= base
    # all processors have the same layout; they stand beside each other in each pass
    channel = np.arange(places.shape[1 if config.kind.sums_channels else 0])
    first = slots * np.array(config.processors)[channel % len(config.processors)]
    return np.where(places > 0, places + first[:, None, None], 0)


def _uncertain(config: LayerConfig) -> int:
    """Return how many outputs of a layer with binary kernels may have none."""
    if config.kernels.bits != 1:
        return 0
    if not config.kind.sums_channels:
        return len(config.processors)
    return config.output.slots if config.output.passes > 1 else KERNELS_PER_BYTE - 1


def _ordered(memory: Memory, config: LayerConfig, *, binary: bool, quad: bool) -> Integers:
    """Return the kernels in the order of the channels: passes outside, processors inside."""
    stored = layer_kernels(memory, config, binary=binary, quad=quad)
    if not config.kind.sums_channels:
        return stored[:, 0].swapaxes(0, 1).reshape(-1, *config.kernels.shape)
    ordered = stored.transpose(1, 2, 0, 3, 4)
    return ordered.reshape(len(ordered), -1, *config.kernels.shape)
