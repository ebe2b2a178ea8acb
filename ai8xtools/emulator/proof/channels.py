"""The kernel that takes a channel at a time through layers that do not mix channels, in place.

Written from the comments in nn_levels.h and nn_levels.c of a project, without what cuts layers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.proof.dataflow import Dataflow
from ai8xtools.emulator.proof.kernels import (
    Convolution,
    Parameters,
    PoolParameters,
    Read,
    departure,
)
from ai8xtools.emulator.proof.planes import Span, layer_at, pooled_values, refuse_overlaps
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

_RUN, _LINK = struct.Struct("<4I2H"), struct.Struct("<6IH2x")
_LARGEST = 1 << 24


@frozen(slots=False)
class Link:
    """A layer of a chain: its parameters by name, and where its image and its results are in the
    memory of the chain. The weights of a convolution are copied from `stored` unless that is 0.
    """

    layer: Mapping[str, int]
    conv: Parameters | None
    pool: PoolParameters | None
    weights: int
    stored: int
    buffer: int
    place: int
    result: int
    taps: int

    @classmethod
    def at(cls, address: int, read: Read, channels: int) -> Link:
        """Read the structures; raises EmulatorError if the kernel does not compute them."""
        layer_address, *rest = _LINK.unpack(read(address, _LINK.size))
        layer, conv, pool = layer_at(layer_address, read), None, None
        if layer["conv"]:
            conv = Parameters.at(layer["conv"], read)
        else:
            pool = PoolParameters.at(layer["pool"], read)
        link = cls(layer, conv, pool, *rest)
        results = layer["out_rows"] * layer["out_columns"]
        if not 0 < results * channels <= _LARGEST:
            raise departure(f"a chain has {results} results of {channels} channels")
        if conv is not None and (
            conv.wide or conv.channels != channels or conv.filters != channels
            or conv.taps != link.taps
        ):  # fmt: skip
            raise departure("a convolution in a chain mixes channels, or has sums of 32 bits")
        if link.stored and link.weights != link.buffer:
            raise departure("weights of a chain are not read where they are copied to")
        return link

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the image."""
        return self.layer["rows"], self.layer["columns"]

    @property
    def results(self) -> int:
        """Results of a channel."""
        return self.layer["out_rows"] * self.layer["out_columns"]

    def windows(self) -> Integers:
        """Return which values of a channel's image each result is made of, [result, value of the
        pooling, tap]; -1 for zeros.
        """
        layer, conv, pool = self.layer, self.conv, self.pool
        y, x = (np.arange(layer[name]) for name in ("out_rows", "out_columns"))
        if pool is not None:
            rows = y[:, None] * layer["window_stride"] + np.arange(pool.rows) * layer["window_step"]
            columns = x[:, None] * pool.stride + np.arange(pool.columns) * pool.dilation
            places = self._places(rows[:, None, :, None], columns[None, :, None, :])
            return places.reshape(self.results, -1, 1)
        assert conv is not None
        height, width = (layer["pool_rows"], layer["pool_columns"]) if layer["pooled"] else (1, 1)
        rows = y[:, None] * layer["stride_rows"] - layer["pad_rows"]
        rows = rows + np.arange(height) * layer["window_stride"]
        rows = rows[..., None] + np.arange(conv.kernel_rows) * conv.dilation
        columns = x[:, None] * layer["stride_columns"] - layer["pad_columns"]
        columns = columns + np.arange(width) * conv.stride
        columns = columns[..., None] + np.arange(conv.kernel_columns) * conv.dilation
        places = self._places(rows[:, None, :, None, :, None], columns[None, :, None, :, None])
        return places.reshape(self.results, height * width, -1)

    def _places(self, rows: Integers, columns: Integers) -> Integers:
        height, width = self.shape
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        if self.pool is not None and not inside.all():
            raise departure("pooling in a chain reads beyond its image")
        return np.where(inside, rows * width + columns, -1)

    def convolution(self, read: Read) -> Convolution:
        """Return the convolution of all channels, each a group."""
        assert self.conv is not None
        count = self.conv.channels
        stored = read(self.stored or self.weights, count * self.taps)
        weights = np.frombuffer(stored, np.int8).astype(np.int64)
        start = np.frombuffer(read(self.conv.start_at, 4 * count), "<i4").astype(np.int64)
        return Convolution(self.conv, weights.reshape(count, 1, self.taps), start, (), 0)


@frozen(slots=False)
class Chain:
    """The parameters of `nn_channels`: layers, and the memory in which a channel goes through."""

    links: tuple[Link, ...]
    work: Span
    channels: int
    ahead: int

    @classmethod
    def at(cls, address: int, read: Read) -> Chain:
        """Read the structures; raises EmulatorError if the kernel does not compute them."""
        links, first, second, channels, count, ahead = _RUN.unpack(read(address, _RUN.size))
        if not count or ahead > 1:
            raise departure(f"a chain of {count} layers, {ahead} channels ahead")
        some = (Link.at(links + number * _LINK.size, read, channels) for number in range(count))
        return cls(tuple(some), (first, second), channels, ahead)

    @property
    def size(self) -> int:
        """Bytes of the memory in which a channel goes through."""
        return max(
            max(link.place + link.shape[0] * link.shape[1], link.result + link.results)
            for link in self.links
        )

    def scratch(self) -> list[Span]:
        """Return address and size of each piece of memory that the kernel uses for itself."""
        works = self.work[: min(1 + self.ahead, self.channels)]
        buffers = [(link.buffer, self.channels * link.taps) for link in self.links if link.stored]
        return [*((work, self.size) for work in works), *buffers]


def follow_chain(
    flow: Dataflow, chain: Chain, convolutions: Mapping[int, Convolution], image: int, out: int
) -> None:
    """Tell a data flow what the kernel computes of an image at an address, and where it goes to.

    `convolutions` are those of links, by number. Raises EmulatorError if two pieces of its memory
    have bytes in common.
    """
    count, first, last = chain.channels, chain.links[0], chain.links[-1]
    values, scratch = first.shape[0] * first.shape[1], chain.scratch()
    stored = [(link.stored or link.weights, count * link.taps) for link in chain.links if link.conv]
    refuse_overlaps([(image, values * count), (out, last.results * count), *scratch, *stored])
    work = flow.unknown(chain.size * count).reshape(-1, count)
    pixels = image + np.arange(values * count).reshape(-1, count)
    work[first.place : first.place + values] = flow.read(pixels)
    for number, link in enumerate(chain.links):
        places = link.windows()
        inside = places >= 0
        held = np.where(inside, places + link.place, 0)
        numbers = np.where(inside[..., None], work[held], 0)
        lost = inside & (held >= link.result)
        lost &= held < link.result + np.arange(link.results)[:, None, None]
        numbers[lost] = flow.unknown(int(lost.sum()) * count).reshape(-1, count)
        if link.conv is None:
            windows = numbers[:, :, 0]
        else:
            taps = numbers.reshape(-1, link.taps * count)
            sums = flow.compute(convolutions[number], taps, count)
            windows = sums.reshape(link.results, -1, count)
        results = windows[:, 0]
        if link.conv is None or link.layer["pooled"]:
            each = windows.swapaxes(1, 2).reshape(-1, windows.shape[1])
            results = pooled_values(flow, link.layer, each).reshape(-1, count)
        work[link.result : link.result + link.results] = results
    flow.write(out, results.reshape(-1))
    for span in scratch:
        flow.forget(*span)
