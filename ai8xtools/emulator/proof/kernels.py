"""The kernels in C that compute convolutions: their parameters and weights as they read them.

Written from the comments on the kernels, without what packs the weights. Numbers in memory are
little-endian. Source: nn.h of a project.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Read = Callable[[int, int], bytes]
"""Returns so many bytes of memory from an address on."""

_LAYOUT = struct.Struct("<4I3Hh5HbbB")
_SLIDE_LAYOUT = struct.Struct("<3I2I2H2I2H5H")
_POOL_LAYOUT = struct.Struct("<I5HB")
_ABSOLUTE, _WIDE, _LIMITED = 1, 2, 4
_OFFSET = 128
_LANE = np.iinfo(np.int16)
_WORD = np.iinfo(np.int32)
_LOWEST = {-128: "none", 0: "relu"}
_LARGEST = 1 << 24
"""Of weights of a convolution, and of values that a call reads: more is no network."""


def departure(reason: str) -> EmulatorError:
    """Return the error for what is not proven, and why."""
    return EmulatorError("E883", reason)


@frozen
class PoolParameters:
    """The parameters of pooling, `nn_pool`."""

    channels: int
    width: int
    rows: int
    columns: int
    stride: int
    dilation: int
    rounded: int

    @classmethod
    def at(cls, address: int, read: Read) -> PoolParameters:
        """Read the structure at an address."""
        return cls(*_POOL_LAYOUT.unpack(read(address, _POOL_LAYOUT.size)))


@frozen
class SlideParameters:
    """The rows of a tensor whose window slides, `nn_slide`."""

    ring: int
    begin: int
    finish: int
    row_bytes: int
    share: int
    data_rows: int
    data_ring: int
    edge_bytes: int
    edge_share: int
    edge_rows: int
    edge_ring: int
    rows: int
    first: int
    end: int
    hop: int
    step: int

    @classmethod
    def at(cls, address: int, read: Read) -> SlideParameters:
        """Read the structure at an address."""
        return cls(*_SLIDE_LAYOUT.unpack(read(address, _SLIDE_LAYOUT.size)))


@frozen
class Parameters:
    """The parameters of a convolution, `nn_conv`."""

    weights_at: int
    start_at: int
    channels: int
    filters: int
    width: int
    groups: int
    flush: int
    pad: int
    kernel_rows: int
    kernel_columns: int
    dilation: int
    spread: int
    stride: int
    right: int
    low: int
    flags: int

    @classmethod
    def at(cls, address: int, read: Read) -> Parameters:
        """Read the structure at an address; raises EmulatorError if no kernel computes it."""
        params = cls(*_LAYOUT.unpack(read(address, _LAYOUT.size)))
        if params.low not in _LOWEST or not -31 <= params.right <= 31:
            raise departure(f"no kernel has a least output of {params.low} or shifts "
                            f"by {params.right}")  # fmt: skip
        if not 0 < params.inputs * params.filters <= _LARGEST or params.dilation == 0:
            raise departure(f"there is no convolution of {params.filters} filters of "
                            f"{params.inputs} inputs")  # fmt: skip
        return params

    @property
    def taps(self) -> int:
        """Places of the kernel."""
        return self.kernel_rows * self.kernel_columns

    @property
    def inputs(self) -> int:
        """Values under the kernel, of all channels."""
        return self.taps * self.channels

    @property
    def wide(self) -> bool:
        """Whether results have 32 bits."""
        return bool(self.flags & _WIDE)

    @property
    def activation(self) -> str:
        """What follows the sum."""
        if self.wide and not self.flags & _LIMITED:
            return "none"
        if self.flags & _ABSOLUTE:
            return "abs" if self.low == 0 else "abs, signed"
        return _LOWEST[self.low]

    def narrowed(self, sums: Integers) -> Integers:
        """Return what becomes of the least and greatest sums [..., 2]."""
        if self.wide:
            return sums
        if self.right >= 0:
            sums = sums >> self.right
        else:
            sums = np.clip(sums, -_OFFSET, _OFFSET - 1) << -self.right
        if self.flags & _ABSOLUTE:
            sizes = np.abs(sums)
            least = np.where(
                (sums[..., :1] <= 0) & (sums[..., 1:] >= 0), 0, sizes.min(-1)[..., None]
            )
            sums = np.concatenate([least, sizes.max(-1)[..., None]], axis=-1)
        return np.clip(sums, self.low, _OFFSET - 1)


@frozen(slots=False)
class Convolution:
    """A convolution as its kernel computes it, equal to itself only.

    `weights` are [group, filter of the group, place of the kernel and channel of the group], and
    `start` is [filter]. The sums of the filters of each of the `runs` are 16-bit numbers at the end
    of every run of inputs, whose lengths follow. `scratch_bytes` are those that the kernel writes
    over.
    """

    parameters: Parameters
    weights: Integers
    start: Integers
    runs: tuple[tuple[slice, Integers], ...]
    scratch_bytes: int

    __hash__, __eq__ = object.__hash__, object.__eq__

    @property
    def filters(self) -> int:
        """Results of a pixel."""
        return len(self.start)

    @property
    def passes_on(self) -> bool:
        """Whether results are the values that are read, in 32 bits."""
        params = self.parameters
        plain = params.activation == "none" and params.wide and self.weights.shape[1:] == (1, 1)
        return plain and bool((self.weights == 1).all()) and not self.start.any()

    @cached_property
    def factors(self) -> NDArray[np.float64]:
        """The weights, [group, input, filter]."""
        return self.weights.swapaxes(1, 2).astype(np.float64)

    def grouped(self, inputs: Integers) -> Integers:
        """Return inputs [pixel, input of all groups] as [group, pixel, input of the group]."""
        groups, _, each = self.weights.shape
        channels = inputs.reshape(len(inputs), self.parameters.taps, groups, -1)
        return channels.transpose(2, 0, 1, 3).reshape(groups, len(inputs), each)

    def bounds(self, inputs: Integers) -> Integers:
        """Return the least and greatest results [pixel and filter, 2] of inputs between such,
        [group, pixel, input, 2]. Raises EmulatorError for sums that may leave 32 bits.
        """
        low = inputs[..., 0].astype(np.float64)
        width = inputs[..., 1] - low
        middle = low @ self.factors
        ends = [middle + width @ part
                for part in (np.minimum(self.factors, 0), np.maximum(self.factors, 0))]  # fmt: skip
        both = np.stack(ends, axis=-1).swapaxes(0, 1).reshape(inputs.shape[1], -1, 2)
        sums = both.astype(np.int64) + self.start[:, None]
        if (sums < _WORD.min).any() or (sums > _WORD.max).any():
            raise departure("its sums may leave 32 bits")
        return self.parameters.narrowed(sums).reshape(-1, 2)

    def refuse_magnitudes(self, limit: int) -> None:
        """Raise EmulatorError if the magnitudes of the weights of a filter reach a limit."""
        if np.abs(self.weights).sum(axis=2).max(initial=0) >= limit:
            raise departure(f"the magnitudes of weights add up to {limit} or more")

    def refuse_long_runs(self, least: Integers, greatest: Integers) -> None:
        """Raise EmulatorError if sums of inputs [input] between these may leave 16 bits."""
        low, high = np.minimum(least, 0), np.maximum(greatest, 0)
        for filters, lengths in self.runs:
            weights = self.weights[0, filters]
            begins = np.cumsum([0, *lengths[:-1]])
            most = np.maximum(weights * low, weights * high)
            fewest = np.minimum(weights * low, weights * high)
            if (np.add.reduceat(most, begins, axis=1) > _LANE.max).any() or (
                np.add.reduceat(fewest, begins, axis=1) < _LANE.min
            ).any():
                raise departure("sums of a run of inputs may leave 16 bits")


def convolution(kernel: str, params: Parameters, read: Read, *, small: bool) -> Convolution:
    """Return what a kernel computes; `small` cores have Armv6-M. Raises EmulatorError."""
    unpack, scratch = KERNELS[kernel]
    weights, runs = unpack(params, read, small)
    if weights.shape[-1] == 0:
        raise departure("a convolution has no inputs")
    filters = weights.shape[0] * weights.shape[1]
    start = np.frombuffer(read(params.start_at, 4 * filters), "<i4").astype(np.int64)
    if unpack is _fours:
        start = _with_neighbors(start, weights[0])
    return Convolution(params, weights, start, tuple(runs), scratch(params, small))


_Runs = list[tuple[slice, Integers]]
_Unpacked = tuple[Integers, _Runs]


def _signed(data: bytes) -> Integers:
    return np.frombuffer(data, np.int8).astype(np.int64)


def _portable(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    groups = params.groups
    if not groups or params.channels % groups or params.filters % groups or not params.spread:
        raise departure(
            f"{groups} groups of {params.channels} channels and {params.filters} filters"
        )
    inputs = params.inputs // groups
    values = _signed(read(params.weights_at, params.filters * inputs))
    return values.reshape(groups, params.filters // groups, inputs), []


def _depthwise(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    fours = -(-params.channels // 4)
    values = _signed(read(params.weights_at, 4 * fours * params.taps)).reshape(
        fours, params.taps, 4
    )
    return values.swapaxes(1, 2).reshape(-1, 1, params.taps)[: params.channels], []


def _by_places(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    values = _signed(read(params.weights_at, params.channels * params.taps))
    return values.reshape(params.taps, params.channels).T[:, None], []


def _nibbles(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    values = _signed(read(params.weights_at, params.filters * params.inputs))
    if params.flush != 2:
        values = ((values & 15) ^ 8) - 8
    return values.reshape(1, params.filters, params.inputs), []


def _in_pairs(data: bytes, pairs: int) -> Integers:
    """Return the weights [filter, input] of groups of so many pairs of filters."""
    values = np.frombuffer(data, np.uint8).reshape(-1, pairs, 4, 2)
    first = values[..., 0].astype(np.int64) - _OFFSET
    both = np.stack([first, values[..., 1].view(np.int8).astype(np.int64)], axis=-1)
    both = both[:, :, [0, 2, 1, 3]]  # which is its own inverse
    return both.transpose(1, 3, 0, 2).reshape(2 * pairs, -1)


def _pairs(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    quads = -(-params.inputs // 4)
    groups = [_in_pairs(read(params.weights_at + 8 * quads * pair, 8 * quads), 1)
              for pair in range(-(-params.filters // 2))]  # fmt: skip
    return _first(np.concatenate(groups), params), []


def _fours(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    at, left, groups = params.weights_at, params.filters, []
    while left > 0:
        pairs = 2 if left > 2 else 1
        size = 8 * pairs * -(-params.inputs // 4)
        groups.append(_in_pairs(read(at, size), pairs))
        at, left = at + size, left - 2 * pairs
    whole = np.concatenate(groups)
    if whole[params.filters :].any() or whole[:, params.inputs :].any():
        raise departure("weights of filters or inputs that there are not, are not zeros")
    return _first(whole, params), []


def _with_neighbors(start: Integers, weights: Integers) -> Integers:
    """Return start [filter], modulo 2**32, with the products of neighboring weights [filter, input]
    that the kernel computes too.
    """
    whole = np.pad(weights, [(0, n % 2) for n in weights.shape])
    neighbors = (whole[1::2, ::2] * whole[1::2, 1::2]).sum(axis=1)
    both: Integers = np.stack([-256 * neighbors, neighbors], axis=1).reshape(-1)
    sums: Integers = start + both[: len(start)]
    return sums.astype(np.int32).astype(np.int64)


def _lanes(params: Parameters, read: Read, small: bool) -> _Unpacked:
    inputs, at, filters = params.inputs, params.weights_at, []
    lists, allowed = (2, range(1, 19)) if small else (1, range(1, 17))
    size = -(-inputs // lists)
    runs: _Runs = []
    for pair in range(-(-params.filters // 2)):
        values = _signed(read(at, 2 * lists * size))
        grid = values.reshape(size, lists, 2).transpose(2, 1, 0)
        filters.append(grid.reshape(2, -1)[:, :inputs])
        at += values.size
        found = []
        for one in range(lists):
            count = min(size, inputs - one * size)
            lengths = _signed(read(at, count + 1))
            lengths = lengths[: _first_of(lengths, 2 if small and one == 0 else 0)]
            if small:  # the place of a run's code, 14 bytes for an input
                ahead, between = np.divmod((lengths & 255) - 4, 14)
                lengths = np.where(between, 0, 18 - ahead)
            if lengths.sum() != count or not set(lengths.tolist()) <= set(allowed):
                raise departure(
                    f"the runs of filters {2 * pair} and {2 * pair + 1} are not its inputs"
                )
            found.append(lengths)
            at += len(lengths) + 1
        runs.append((slice(2 * pair, 2 * pair + 2), np.concatenate(found)))
    return _first(np.concatenate(filters), params), runs


def _words(params: Parameters, read: Read, _small: bool) -> _Unpacked:
    inputs, at, filters = params.inputs, params.weights_at, []
    runs: _Runs = []
    for four in range(-(-params.filters // 4)):
        words = np.frombuffer(read(at, 4 * (2 * inputs + 1)), "<u4")
        place, lengths, weights = 0, [], []
        while words[place] and place + int(words[place]) + 1 < len(words):
            lengths.append(int(words[place]))
            weights.append(words[place + 1 : place + 1 + lengths[-1]])
            place += 1 + lengths[-1]
        if sum(lengths) != inputs:
            raise departure(f"the runs of filters from {4 * four} on are not its inputs")
        data = np.concatenate(weights).view(np.uint8).reshape(inputs, 4)
        filters.append(data[:, [0, 2, 1, 3]].T.astype(np.int64) - _OFFSET)
        runs.append((slice(4 * four, 4 * four + 4), np.array(lengths)))
        at += 4 * (place + 1)
    return _first(np.concatenate(filters), params), runs


def _first_of(values: Integers, wanted: int) -> int:
    return int(np.argmax(values == wanted)) if (values == wanted).any() else len(values)


def _first(values: Integers, params: Parameters) -> Integers:
    return np.ascontiguousarray(values[None, : params.filters, : params.inputs])


def _patch_bytes(params: Parameters, _small: bool) -> int:
    whole = params.kernel_rows == params.kernel_columns == 1 and params.pad == 0
    return 0 if whole and params.channels % 4 == 0 else -(-params.inputs // 4) * 4


def _pairs_bytes(params: Parameters, _small: bool) -> int:
    quads = -(-params.inputs // 4)
    return 16 * quads + (4 * quads if params.channels % 4 else 0)


KERNELS: Mapping[
    str,
    tuple[Callable[[Parameters, Read, bool], _Unpacked], Callable[[Parameters, bool], int]],
] = {
    "nn_conv_c": (_portable, lambda _params, _small: 0),
    "nn_depthwise": (_depthwise, lambda params, _small: 8 * params.taps),
    "nn_depthwise_mve": (_by_places, lambda _params, _small: 0),
    "nn_conv_mve": (_portable, _patch_bytes),
    "nn_conv_nomul": (_nibbles, lambda params, _small: 4 * params.inputs),
    "nn_conv_dsp": (_pairs, _pairs_bytes),
    "nn_conv_dsp_pixel": (_fours, _patch_bytes),
    "nn_conv_lanes": (_lanes, lambda params, small: (4 if small else 8) * params.inputs),
    "nn_conv_pixel": (_words, _patch_bytes),
}
"""By function: how weights are read, and the bytes of scratch memory."""


def pixels_read(params: Parameters, kernel: str, rows: Sequence[int], first: int, count: int
                ) -> Integers:  # fmt: skip
    """Return the addresses [pixel, input] of what is read for `count` results from column `first`
    on, in the order row of the kernel, column, channel; -1 for zeros. `rows` are addresses of rows,
    0 for a row of zeros.
    """
    if not 0 < count * params.inputs <= _LARGEST:
        raise departure(f"a kernel is called for {count} pixels of {params.inputs} inputs")
    spread = params.spread if kernel == "nn_conv_c" else 1
    left = (first + np.arange(count)) * params.stride - params.pad
    place = left[:, None] + np.arange(params.kernel_columns) * params.dilation
    inside = (place >= 0) & (place % spread == 0) & (place // spread < params.width)
    pixel = np.where(inside, place // spread * params.channels, -1)
    base = np.asarray(rows, np.int64)
    at = base[None, :, None, None] + pixel[:, None, :, None] + np.arange(params.channels)
    valid = (base != 0)[None, :, None] & inside[:, None]
    return np.where(valid[..., None], at, -1).reshape(count, -1)
