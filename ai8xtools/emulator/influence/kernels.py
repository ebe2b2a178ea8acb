"""Which bits of the kernels had no influence on the results for one sample.

A bit of a kernel changes the sums of one output by a multiple of the values that it meets. How far
these sums may depart is known from the results backwards (`tolerance`); where every sum stays
within, the bit has no influence: inverted, it leaves the results as they are. What is found is a
lower bound, for about the price of a few inferences.
Source: docs/emulator.md, "One sample".
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.locations import unread_slots
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.influence.tolerance import Floats, Tolerance, of_image, of_operands, of_sums
from ai8xtools.emulator.machine.accelerator import Accelerator, NetworkRun
from ai8xtools.emulator.machine.arithmetic import Values, convolve, padded, prepare
from ai8xtools.emulator.machine.batch import LayerStep, NetworkBatch
from ai8xtools.emulator.machine.kernels import KERNELS_PER_BYTE, kernel_places
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import DATA, INSTANCES_PER_GROUP
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SQUARINGS = 6
"""Exponents: the root of a sum of powers is little more than the maximum."""
_SLACK = 1 + 1e-9
_FAR = 2.0**15
"""More than any change of a kernel moves a sum: less than 2^8 times a value of at most 2^7."""


@frozen
class KernelInfluence:
    """What is known of bits in the kernel memory, [processor, column, byte, bit].

    Layers multiply with those that are `used`; `idle` are those of them that have no influence,
    each for itself. `idle_bytes` [processor, column, byte] may have any value.
    """

    used: Flags
    idle: Flags
    idle_bytes: Flags

    @property
    def bytes(self) -> tuple[int, int]:
        """How many bytes have no influence, and how many there are."""
        return int(self.idle_bytes.sum()), int(self.used.any(axis=-1).sum())

    @property
    def bits(self) -> tuple[int, int]:
        """How many bits have no influence, and how many there are."""
        return int(self.idle.sum()), int(self.used.sum())


def kernel_influence(memory: Memory, run: NetworkRun, results: Iterable[int]) -> KernelInfluence:
    """Return what of the kernels has no influence on words of data memory after a run.

    `memory` is that of the accelerator before the run, `results` are addresses of words. Raises
    EmulatorError (E860): as NetworkBatch, or the run was not of what stood in the memory.
    """
    accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
    accelerator.memory = memory
    batch = NetworkBatch(accelerator, _places(memory, results))
    steps = list(batch.traced(memory))
    if not np.array_equal(steps[-1][2][..., 0], run.layers[-1].output):
        raise EmulatorError("E860", "the program changes data between the layers")
    spaces = [Tolerance.free((size,)) for size in batch.sizes]
    spaces[0].limit(batch.result_positions, np.zeros(1), np.zeros(1))
    marks = _Marks(memory)
    for number in reversed(range(len(steps))):
        step, operands, _ = steps[number]
        tolerance = _of_outputs(spaces[step.target], step)
        if step.parameters is not None:
            following = steps[number + 1][0].config if number + 1 < len(steps) else None
            image = prepare(operands, step.config, rounding=step.rounding)
            tolerance = of_sums(_sums(image, step), tolerance, step.config.output)
            reach = _reach(padded(image, step.config).astype(np.float64), tolerance, step.config)
            for way in reach:
                way[_may_move_biases(step, following)] = 1
            marks.add(step, reach)
            tolerance = of_image(tolerance, _magnitudes(step), step.config)
        inputs = of_operands(operands, tolerance, step.config.input)
        if step.reads is not None:
            inputs = inputs.shaped(*step.reads.shape)
            spaces[step.source].limit(step.reads, inputs.up, inputs.down)
    return marks.result()


def _places(memory: Memory, results: Iterable[int]) -> tuple[Integers, Integers]:
    """Return data memory instances and offsets of the bytes of words."""
    addresses = np.array(sorted(results), np.int64)
    group, area, offset = memory.addresses.split(addresses)
    unit, rest = np.divmod(offset, memory.chip.instance_stride)
    chosen = area == DATA
    instance = (group * INSTANCES_PER_GROUP + unit)[chosen]
    return np.repeat(instance, 4), (rest[chosen, None] + np.arange(4)).reshape(-1)


def _of_outputs(space: Tolerance, step: LayerStep) -> Tolerance:
    """Return the tolerance of what a layer wrote; nothing depends on what was there before."""
    output = step.config.output
    count = step.writes.size // (4 if output.wide else 1)
    places = step.writes.reshape(count, -1)
    result = Tolerance(space.up[places].min(axis=1), space.down[places].min(axis=1))
    space.up[places] = space.down[places] = np.inf
    result = result.free_or_none() if output.wide else result
    return result.shaped(-1, *step.config.output_size, 1)


def _sums(image: Values, step: LayerStep) -> Floats:
    """Return the sums of a layer, [output, row, column, 1]."""
    assert step.parameters is not None
    sums: Floats = convolve(image, step.parameters.kernels, step.config).astype(np.float64)
    sums += step.parameters.bias[:, None, None, None]
    return sums


def _magnitudes(step: LayerStep) -> Floats:
    """Return the sum of the magnitudes of the kernels of each output."""
    assert step.parameters is not None
    kernels = step.parameters.kernels.astype(np.float64)
    return np.asarray(np.abs(kernels).reshape(len(kernels), -1).sum(axis=1))


def _reach(values: Floats, sums: Tolerance, config: LayerConfig) -> tuple[Floats, Floats]:
    """Return for each kernel the part of a tolerance that it uses up when it changes by one.

    The first array is for a larger kernel, the second for a smaller one: the largest quotient of a
    value of the padded image and of the tolerance of the sum it goes into. It may be a little too
    large. A change of less than its reciprocal leaves every result as it is.
    """
    # whole numbers go no further than their limit as long as they are below it and a half
    up, down = (np.where(way < _FAR, 1 / (way + 0.5), 0)[..., 0] for way in (sums.up, sums.down))
    rows, columns = config.output_size
    positive, negative = np.maximum(values, 0)[..., 0], np.maximum(-values, 0)[..., 0]
    more, less = [], []
    for i, j in np.ndindex(config.kernels.shape):
        place = slice(None), slice(i, i + rows), slice(j, j + columns)
        rising, falling = positive[place], negative[place]
        if config.kind.sums_channels:
            more.append(np.maximum(_largest(up, rising), _largest(down, falling)))
            less.append(np.maximum(_largest(down, rising), _largest(up, falling)))
        else:
            more.append(np.maximum(up * rising, down * falling).max(axis=(1, 2)))
            less.append(np.maximum(down * rising, up * falling).max(axis=(1, 2)))
    shape = *more[0].shape, *config.kernels.shape
    return np.stack(more, axis=-1).reshape(shape), np.stack(less, axis=-1).reshape(shape)


def _largest(factors: Floats, values: Floats) -> Floats:
    """Return the largest products of [output, row, column] and [channel, row, column], or more.

    Returns [output, channel].
    """
    if not values.any():
        return np.zeros((len(factors), len(values)))
    one, two = (part.reshape(len(part), -1).copy() for part in (factors, values))
    for _ in range(_SQUARINGS):
        one *= one
        two *= two
    return np.asarray((one @ two.T) ** (0.5**_SQUARINGS) * _SLACK)


def _may_move_biases(step: LayerStep, following: LayerConfig | None) -> Flags:
    """Tell of which outputs a single byte may decide whether they have kernels at all.

    Biases leave out outputs without kernels that the next layer does not read.
    """
    assert step.parameters is not None
    kernels = step.parameters.kernels
    few = np.count_nonzero(kernels.reshape(len(kernels), -1), axis=1) <= KERNELS_PER_BYTE
    if not step.config.kind.sums_channels:
        return np.zeros(len(kernels), np.bool_)
    return np.asarray(
        few & np.tile(unread_slots(step.config, following), step.config.output.passes)
    )


class _Marks:
    """What becomes known of the bits in the kernel memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._binary = bool(memory.control_register("CTL")["binary"])
        self._bits = np.unpackbits(memory.kernels.reshape(-1), bitorder="little")
        self._used, self._moving, self._shared = (
            np.zeros(len(self._bits), np.bool_) for _ in range(3)
        )
        self._reach = np.zeros(memory.kernels.size)

    def add(self, step: LayerStep, reach: tuple[Floats, Floats]) -> None:
        """Note the bits of the kernels of a layer, of which each uses up a part of a tolerance."""
        config = step.config
        if config.kernels.bypass:
            return
        bits = config.kernels.bits
        places = kernel_places(self._memory, config).reshape(-1)
        there = places > 0
        first = (places[there] - 1) * bits
        more, less = (way.reshape(-1)[there] for way in reach)
        furthest = np.zeros((2, len(first)))
        new = np.zeros_like(self._used)
        for bit in range(bits):
            number = first + bit
            new[number] = True
            rises = self._bits[number] == (bit == bits - 1)  # the highest bit counts as negative
            change = 2**bit * (2 if self._binary and bits == 1 else 1)
            self._moving[number[change * np.where(rises, more, less) >= 1]] = True
            furthest += change * np.stack([rises, ~rises])
        np.add.at(self._reach, first // 8, np.maximum(furthest[0] * more, furthest[1] * less))
        self._shared |= self._used & new  # by several layers: too much to follow
        self._used |= new

    def result(self) -> KernelInfluence:
        """Return what is known now."""
        shape = *self._memory.kernels.shape, 8
        used, moving, shared = (
            part.reshape(shape) for part in (self._used, self._moving, self._shared)
        )
        within = self._reach.reshape(shape[:-1]) < 1
        return KernelInfluence(
            used, used & ~moving & ~shared, used.any(axis=-1) & within & ~shared.any(axis=-1)
        )
