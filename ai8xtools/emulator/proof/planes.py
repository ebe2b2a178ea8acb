"""The kernel that computes a layer an input channel at a time: its parameters, and what it reads.

Written from the comments in nn_levels.h and nn_levels.c of a project, without what cuts layers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.proof.dataflow import Dataflow, overlap
from ai8xtools.emulator.proof.kernels import Convolution, Parameters, Read, departure
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Span = tuple[int, int]

_LAYER = struct.Struct("<I4xI24x3I20H4B")
_LAYER_FIELDS = (
    "conv", "pool", "pixel_bytes", "out_pixel_bytes", "filters", "rows", "columns", "out_rows",
    "out_columns", "reach_rows", "reach_columns", "stride_rows", "stride_columns", "pad_rows",
    "pad_columns", "spread_rows", "spread_columns", "window_rows", "window_step", "window_stride",
    "pool_rows", "pool_columns", "pool_stride_rows", "pool_stride_columns", "windows", "sources",
    "pooled", "average", "rounded",
)  # fmt: skip
_RUN = struct.Struct("<8I2H2B")
_WORD = 4
_LARGEST = 1 << 24


def layer_at(address: int, read: Read) -> Mapping[str, int]:
    """Read the parameters of a layer, `nn_layer`, by name."""
    return dict(zip(_LAYER_FIELDS, _LAYER.unpack(read(address, _LAYER.size)), strict=True))


def refuse_overlaps(spans: Sequence[Span]) -> None:
    """Raise EmulatorError if two pieces of memory, address and size, have bytes in common."""
    for one, other in combinations(spans, 2):
        if overlap(*one, *other):
            raise departure(f"a layer has two things at address 0x{max(one[0], other[0]):08x}")


@frozen
class Unit:
    """Output rows and columns that are computed together, each a first one and a count, and the
    input rows and columns that are there meanwhile, each a first one and an end.
    """

    rows: Span
    columns: Span
    there: tuple[Span, Span]

    @property
    def plane_bytes(self) -> int:
        """Bytes of an input channel."""
        (top, bottom), (left, right) = self.there
        return (bottom - top) * (right - left)


@frozen(slots=False)
class Planes:
    """The parameters of a layer in planes, `nn_planes`, with those of its layer by name."""

    layer: Mapping[str, int]
    conv: Parameters
    inputs: Span
    buffers: Span
    sums: int
    stored: int
    filters: int
    band: int
    columns: int
    planar_in: int
    planar_out: int

    @classmethod
    def at(cls, address: int, read: Read) -> Planes:
        """Read the structures; raises EmulatorError if the kernel does not compute them."""
        at, one, two, first, second, *rest = _RUN.unpack(read(address, _RUN.size))
        layer = layer_at(at, read)
        conv = Parameters.at(layer["conv"], read)
        planes = cls(layer, conv, (one, two), (first, second), *rest)
        planes._refuse_unsuited()
        return planes

    def _refuse_unsuited(self) -> None:
        layer, conv = self.layer, self.conv
        results = layer["out_rows"] * layer["out_columns"] * layer["filters"]
        if not 0 < results <= _LARGEST or not (self.filters and self.band and self.columns):
            raise departure("planes without results, or without an end")
        if (
            layer["filters"] != conv.filters
            or layer["out_pixel_bytes"] != conv.filters * self.width
        ):
            raise departure("planes of other filters than those of their convolution")
        if layer["spread_rows"] != 1 or layer["spread_columns"] != 1:
            raise departure("planes of a transposed convolution")
        if layer["pooled"] and conv.wide:
            raise departure("planes pool sums of 32 bits")
        if self.sums % _WORD:
            raise departure("memory is not aligned")

    @property
    def width(self) -> int:
        """Bytes of a result."""
        return _WORD if self.conv.wide else 1

    @property
    def input_bytes(self) -> int:
        """Bytes of the image that is read."""
        return self.layer["rows"] * self.layer["columns"] * self.conv.channels

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """All units, column by column."""
        return tuple(self._units())

    def _units(self) -> Iterator[Unit]:
        height, width = self.layer["out_rows"], self.layer["out_columns"]
        for column in range(0, width, self.columns):
            columns = column, min(self.columns, width - column)
            for row in range(0, height, self.band):
                rows = row, min(self.band, height - row)
                there = self._needed("rows", rows), self._needed("columns", columns)
                if not self.planar_out and columns[1] != width and rows[1] != 1:
                    raise departure("planes of parts of several rows, pixel by pixel")
                yield Unit(rows, columns, there)

    def _needed(self, name: str, results: Span) -> Span:
        """Return first and end of the input rows or columns under the windows of results."""
        stride, reach, pad = (self.layer[f"{one}_{name}"] for one in ("stride", "reach", "pad"))
        top = results[0] * stride - pad
        end = min(max(sum(results) * stride - stride + reach - pad, 0), self.layer[name])
        return min(max(top, 0), end), end

    def summed(self, name: str, results: Span) -> Span:
        """Return the first and the count of the rows or columns of sums that become results."""
        stride = self.layer[f"pool_stride_{name}"]
        return results[0] * stride, (results[1] - 1) * stride + self.layer[f"pool_{name}"]

    def places(self, unit: Unit) -> Integers:
        """Return where the image is read for each sum, counted from its first byte: [row of sums,
        column of sums, row of the kernel, column, channel]; -1 for zeros.
        """
        layer, conv = self.layer, self.conv
        (row, rows), (column, columns) = (
            self.summed(*one) for one in (("rows", unit.rows), ("columns", unit.columns))
        )
        y = (row + np.arange(rows))[:, None] * layer["window_stride"] - layer["pad_rows"]
        y = (y + np.arange(conv.kernel_rows) * conv.dilation)[:, None, :, None]
        x = (column + np.arange(columns))[:, None] * conv.stride - conv.pad
        x = (x + np.arange(conv.kernel_columns) * conv.dilation)[None, :, None]
        (top, bottom), (left, right) = unit.there
        inside = (y >= top) & (y < bottom) & (x >= left) & (x < right)
        pixel = (y * layer["columns"] + x)[..., None]
        channels = np.arange(conv.channels)
        if self.planar_in:
            places = pixel + channels * layer["rows"] * layer["columns"]
        else:
            places = pixel * conv.channels + channels
        return np.where(inside[..., None], places, -1)

    @property
    def groups(self) -> list[Span]:
        """First filter and count of those that are computed together."""
        every = self.conv.filters
        return [
            (first, min(self.filters, every - first)) for first in range(0, every, self.filters)
        ]

    def convolution(self, read: Read) -> Convolution:
        """Return what is computed of the values at `places`."""
        conv, taps = self.conv, self.conv.taps
        stored = np.frombuffer(read(self.stored, conv.filters * conv.inputs), np.int8)
        weights = np.empty((conv.filters, taps, conv.channels), np.int64)
        for first, count in self.groups:
            some = stored[first * conv.inputs :][: count * conv.inputs]
            each = some.reshape(conv.channels, count, taps)
            weights[first : first + count] = each.transpose(1, 2, 0)
        start = np.frombuffer(read(conv.start_at, 4 * conv.filters), "<i4").astype(np.int64)
        return Convolution(conv, weights.reshape(1, conv.filters, -1), start, (), 0)

    def scratch(self) -> list[Span]:
        """Return address and size of each piece of memory that the kernel uses for itself.

        Planes and weights of units take turns in two buffers; the next ones arrive while those of
        a unit are used.
        """
        inputs, weights, sums, number = [0, 0], [0, 0], 0, 0
        for unit in self.units:
            rows, columns = self.summed("rows", unit.rows), self.summed("columns", unit.columns)
            for _, count in self.groups:
                sums = max(sums, _WORD * count * rows[1] * columns[1])
                for turn in {(number + n) % 2 for n in range(min(self.conv.channels, 2))}:
                    inputs[turn] = max(inputs[turn], unit.plane_bytes)
                    weights[turn] = max(weights[turn], count * self.conv.taps)
                number += self.conv.channels
        spans = [*zip(self.inputs, inputs, strict=True), (self.sums, sums)]
        if self.buffers[0]:
            spans += zip(self.buffers, weights, strict=True)
        return [span for span in spans if span[1]]


def follow_planes(flow: Dataflow, planes: Planes, conv: Convolution, image: int, out: int) -> None:
    """Tell a data flow what the kernel computes of an image at an address, and where it goes to.

    Raises EmulatorError if two pieces of its memory have bytes in common.
    """
    layer, width, filters = planes.layer, planes.width, conv.filters
    pixels, scratch = layer["out_rows"] * layer["out_columns"], planes.scratch()
    weights = planes.stored, filters * planes.conv.inputs
    results = out, pixels * filters * width
    refuse_overlaps([(image, planes.input_bytes), results, weights, *scratch])
    for unit in planes.units:
        places = planes.places(unit)
        sums = np.stack([
            flow.compute(conv, _read(flow, image, row), filters, width).reshape(-1, filters)
            for row in places
        ])  # fmt: skip
        values = _pooled(flow, layer, sums) if layer["pooled"] else sums
        row, column = unit.rows[0], unit.columns[0]
        if planes.planar_out:
            for filter_, y in np.ndindex(filters, len(values)):
                at = (filter_ * layer["out_rows"] + row + y) * layer["out_columns"] + column
                flow.write(out + at * width, values[y, :, filter_], width)
        else:
            at = (row * layer["out_columns"] + column) * filters
            flow.write(out + at * width, values.reshape(-1), width)
    for span in scratch:
        flow.forget(*span)


def _read(flow: Dataflow, image: int, places: Integers) -> Integers:
    return flow.read(np.where(places < 0, -1, image + places)).reshape(len(places), -1)


def _pooled(flow: Dataflow, layer: Mapping[str, int], sums: Integers) -> Integers:
    """Return pooled values [row, column, filter] of those of all sums."""
    size = layer["pool_rows"], layer["pool_columns"]
    windows = np.lib.stride_tricks.sliding_window_view(sums, size, axis=(0, 1))
    windows = windows[:: layer["pool_stride_rows"], :: layer["pool_stride_columns"]]
    found = pooled_values(flow, layer, windows.reshape(-1, size[0] * size[1]))
    return found.reshape(windows.shape[:3])


def pooled_values(flow: Dataflow, layer: Mapping[str, int], windows: Integers) -> Integers:
    """Return the numbers of pooled values of a layer for the values in windows [window, value]."""
    count = windows.shape[1]
    if layer["average"]:
        return flow.compute(("average", count, bool(layer["rounded"])), windows)
    return flow.compute(("max", count), windows)
