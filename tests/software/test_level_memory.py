"""Memory of layers that are cut: windows, rings and buffers counted one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from ai8xtools.software.graph import Convolution
from ai8xtools.software.plan.buffers import buffers_of, ring_bytes, widest
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import _reach
from ai8xtools.software.plan.schemes import (
    Pixels,
    Planes,
    Room,
    Rows,
    Scheme,
    Weights,
    cuts_of,
    first,
    largest,
    pixels,
    plane_memory,
    plane_tiles,
    planes,
    resident_memory,
    row_memory,
    row_tiles,
    rows,
    smallest,
)
from ai8xtools.software.plan.task import Level, Task
from tests.software.random_geometry import small_layers

LAYERS = [*small_layers(3, 60)]
ROOMS = [
    Room(
        l1=0, l2=l2, align=align, dma=dma, in_place=in_place, scratch=scratch,
        reads=False, writes=False,
    )
    for l2, align, dma, in_place, scratch in (
        (0, 4, True, True, 0), (0, 4, True, False, 12), (96, 8, False, False, 0),
        (0, 1, False, True, 5), (4096, 4, True, False, 3),
    )
]  # fmt: skip


def _under(place: int, reach: int, apart: int, size: int) -> set[int]:
    """Return the pixels of a line under a window, `apart` from each other."""
    return {n for n in range(size) if place <= n * apart < place + reach}


def test_a_window_reaches_to_its_last_tap() -> None:
    for window, dilation in product(product(range(1, 5), repeat=2), repeat=2):
        last = [max(range(0, w * d, d)) for w, d in zip(window, dilation, strict=True)]
        assert _reach(window, dilation) == (last[0] + 1, last[1] + 1)


def test_rows_and_columns_that_are_needed_are_those_under_the_window() -> None:
    for layer in LAYERS:
        (height, width), apart = layer.in_size, layer.spread
        for y in range(layer.out_size[0]):
            seen = _under(y * layer.stride[0] - layer.pad[0], layer.reach[0], apart[0], height)
            begin, end = layer.needed(y)
            assert {*range(begin, end)} == seen
            assert 0 <= begin <= end <= height
        for x in range(layer.out_size[1]):
            place = x * layer.stride[1] - layer.pad[1]
            begin, end = layer.needed_columns(x, 1)
            assert {*range(begin, end)} == _under(place, layer.reach[1], apart[1], width)
            assert 0 <= begin <= end <= width
        for x, count in _spans(layer.out_size[1]):
            ends = layer.needed_columns(x, 1)[0], layer.needed_columns(x + count - 1, 1)[1]
            assert layer.needed_columns(x, count) == ends


def _spans(size: int) -> Iterator[tuple[int, int]]:
    return ((x, count) for x in range(size) for count in range(1, size - x + 1))


def test_rings_hold_every_band_and_with_copies_on_the_way_the_next() -> None:
    for layer in LAYERS:
        height = layer.out_size[0]
        for band, ahead in product(range(1, height + 1), (False, True)):
            ring = layer.ring_rows(band, ahead=ahead)
            most = 1
            for y in range(0, height, band):
                last = min(y + band * (1 + ahead), height) - 1
                most = max(most, layer.needed(last)[1] - layer.needed(y)[0])
            assert most <= ring <= max(layer.in_size[0], 1)
            assert ring == most or layer.spread[0] == 1


def test_rings_and_tiles_of_large_images_have_no_more_than_is_needed() -> None:
    for layer in LAYERS:
        tall = replace(layer, in_size=(90, 90), out_size=(14, 14), pad=(0, 0))
        for band, ahead in product(range(1, 5), (False, True)):
            rows_ = range(0, 14 - 2 * band, band)
            most = max(
                tall.needed(y + band * (1 + ahead) - 1)[1] - tall.needed(y)[0] for y in rows_
            )
            if not ahead or layer.spread[0] > 1 or layer.stride[0] == 1:
                assert tall.ring_rows(band, ahead=ahead) in (most, max(most, 1))
            widths = (tall.needed_columns(x, min(band, 14 - x)) for x in range(0, 14, band))
            assert tall.tile_columns(band) == max(max(end - x for x, end in widths), 1)


def test_sums_and_weights_are_counted_one_by_one() -> None:
    for layer in LAYERS:
        for band, columns in product(range(1, 5), repeat=2):
            touched = [
                {n * step + k for n in range(count) for k in range(window)}
                for count, step, window in zip(
                    (band, columns), layer.sum_stride, layer.sum_window, strict=True
                )
            ]
            assert layer.sum_size(band, columns) == (max(touched[0]) + 1) * (max(touched[1]) + 1)
        for count in range(1, layer.filters + 1):
            groups = {number // layer.filter_step for number in range(count)}
            bits = len(groups) * layer.filter_step * layer.filter_bits
            assert 0 <= 8 * layer.bytes_of_filters(count) - bits < 8
            plane = count * layer.filter_bits / layer.channels
            assert 0 <= 8 * layer.bytes_of_planes(count) - plane < 8


def test_a_layer_is_pointwise_where_each_result_needs_the_pixel_in_its_place() -> None:
    for layer in small_layers(4, 600):
        same = layer.in_size == layer.out_size
        here = all(layer.needed(y) == (y, y + 1) for y in range(layer.out_size[0])) and all(
            layer.needed_columns(x, 1) == (x, x + 1) for x in range(layer.out_size[1])
        )
        if layer.pointwise:
            assert same and here
        elif same and here:
            assert max(*layer.reach, *layer.pad, *layer.stride, *layer.spread) > 1


def _up(size: int, to: int) -> int:
    while size % to:
        size += 1
    return size


def _row_bytes(
    layer: Geometry, room: Room, band: int, columns: int, weights: int, filters: int
) -> int:
    """Return what bands of rows take: rings, two buffers of results, weights, scratch."""
    pixel = layer.channels * layer.in_bytes
    pitch = layer.tile_columns(columns) * pixel
    pitch = _up(pitch, room.align) if room.dma else pitch
    total = weights + room.scratch
    for _ in range(0 if room.reads else layer.sources):
        total += _up(layer.ring_rows(band, ahead=room.dma) * pitch, room.align)
    whole = filters == layer.filters and columns == layer.out_size[1]
    for _ in range(0 if room.writes and whole else 2):
        total += _up(band * columns * filters * layer.out_bytes, room.align)
    return total


def _pixel_bytes(layer: Geometry, room: Room, count: int, filters: int, weights: int) -> int:
    total = weights + room.scratch
    for _ in range(0 if room.reads else 2 * layer.sources):
        total += _up(count * layer.channels * layer.in_bytes, room.align)
    for _ in range(0 if room.writes and filters == layer.filters else 2):
        total += _up(count * layer.filters * layer.out_bytes, room.align)
    return total


def _plane_bytes(layer: Geometry, room: Room, cut: Planes) -> int:
    plane = layer.ring_rows(cut.rows, ahead=False) * layer.tile_columns(cut.columns)
    total = 2 * _up(plane * layer.in_bytes, room.align)
    total += 0 if cut.in_l2 else 4 * cut.filters * layer.sum_size(cut.rows, cut.columns)
    return total + 2 * (0 if room.in_place else _up(layer.bytes_of_planes(cut.filters), room.align))


@pytest.mark.parametrize("room", ROOMS)
def test_whole_layers_take_their_data_weights_and_scratch_memory(room: Room) -> None:
    for layer, reads, writes in product(LAYERS[:40], (False, True), (False, True)):
        some = replace(room, reads=reads, writes=writes)
        image = layer.in_size[0] * layer.in_size[1] * layer.channels
        result = layer.out_size[0] * layer.out_size[1] * layer.filters * layer.out_bytes
        total = room.scratch + (0 if room.in_place else _up(layer.weight_bytes, room.align))
        total += 0 if reads else layer.sources * _up(image, room.align)
        assert resident_memory(layer, some) == total + (0 if writes else _up(result, room.align))


def _rooms(layer: Geometry, room: Room) -> Iterator[Room]:
    """Yield rooms of several sizes, up to that of the whole layer."""
    most = resident_memory(layer, room) + 60
    for share, (reads, writes) in product(
        (1, 2, 3, 4, 6), ((False, False), (True, False), (True, True))
    ):
        yield replace(room, l1=most * share // 6, reads=reads, writes=writes)


def _possible_filters(layer: Geometry) -> list[int]:
    return [*range(layer.filter_step, layer.filters, layer.filter_step), layer.filters]


def _check_rows(layer: Geometry, room: Room, width: int, found: Rows | None) -> None:
    """See that bands of rows are there if any fit, and that no more would fit."""
    stored = 0 if room.in_place else _up(layer.weight_bytes, room.align)
    one = _row_bytes(layer, room, 1, width, stored, layer.filters)
    assert row_memory(layer, room, 1, width, stored, layer.filters) == one
    if one <= room.l1:
        assert found is not None and (found.band, found.filters) == (1, layer.filters)
        assert found.weights is (Weights.IN_PLACE if room.in_place else Weights.RESIDENT)
        assert found.memory == one
        if not room.in_place and width == layer.out_size[1]:
            assert found.traffic == layer.input_bytes + layer.weight_bytes
        return
    if room.in_place:
        assert found is None
        return
    height, data = layer.out_size[0], layer.input_bytes

    def buffers(filters: int) -> int:
        return 2 * _up(layer.bytes_of_filters(filters), room.align)

    outer = {
        (band, filters): layer.weight_bytes * -(-height // band) + data
        for band, filters in product(range(1, height + 1), _possible_filters(layer))
        if _row_bytes(layer, room, band, width, buffers(filters), layer.filters) <= room.l1
    }
    inner = {
        filters: layer.weight_bytes + -(-layer.filters // filters) * data
        for filters in _possible_filters(layer)
        if _row_bytes(layer, room, 1, width, buffers(filters), filters) <= room.l1
    }
    if found is None:
        assert not outer and not inner
        return
    if found.weights is Weights.ROWS_OUTER:
        traffic = layer.weight_bytes * -(-height // found.band) + data
        assert traffic <= max(min(outer.values()), 2 * data)
        assert traffic <= min(inner.values(), default=traffic)
        most = max(filters for band, filters in outer if band == found.band)
        assert found.filters == most
        memory = _row_bytes(layer, room, found.band, width, buffers(most), layer.filters)
        assert found.memory == memory
    else:
        assert found.weights is Weights.WEIGHTS_OUTER and found.band == 1
        traffic = min(inner.values())
        assert found.filters == max(inner)
        memory = _row_bytes(layer, room, 1, width, buffers(found.filters), found.filters)
        assert found.memory == memory
    if width == layer.out_size[1]:
        assert found.traffic == traffic


@pytest.mark.parametrize("room", ROOMS)
def test_bands_of_rows_are_those_of_an_exhaustive_search(room: Room) -> None:
    for layer in LAYERS:
        for some in _rooms(layer, room):
            _check_rows(layer, some, layer.out_size[1], rows(layer, some))
            tiled = row_tiles(layer, some)
            widths = (-(-layer.out_size[1] // n) for n in range(2, layer.out_size[1] + 1))
            fitting = [width for width in widths if rows(layer, some, width) is not None]
            assert (tiled is None) == (not fitting)
            if tiled is not None:
                assert tiled.columns == fitting[0]
                assert tiled.tiles == -(-layer.out_size[1] // tiled.columns)
                assert tiled.traffic is None
                _check_rows(layer, some, tiled.columns, tiled)


@pytest.mark.parametrize("room", ROOMS)
def test_planes_are_the_tallest_with_the_most_filters_that_fit(room: Room) -> None:
    for layer in LAYERS:
        for some in _rooms(layer, room):
            for in_l2 in (False, True):
                _check_planes(layer, some, planes(layer, some, in_l2=in_l2), in_l2)
            tiled = plane_tiles(layer, some)
            if tiled is not None:
                assert tiled.rows == 1 and tiled.columns < layer.out_size[1] and not tiled.in_l2
                assert tiled.memory == _plane_bytes(layer, some, tiled) <= some.l1
                assert not _more_filters(layer, some, tiled)
            elif layer.out_size[1] > 1:
                least = Planes(filters=1, rows=1, columns=1, memory=0)
                assert _plane_bytes(layer, some, least) > some.l1


def _fits(layer: Geometry, room: Room, cut: Planes) -> bool:
    sums = 4 * cut.filters * layer.sum_size(cut.rows, cut.columns)
    return _plane_bytes(layer, room, cut) <= room.l1 and (not cut.in_l2 or sums <= room.l2)


def _more_filters(layer: Geometry, room: Room, cut: Planes) -> bool:
    more = replace(cut, filters=cut.filters + 1)
    return cut.filters < layer.filters and _fits(layer, room, more)


def _check_planes(layer: Geometry, room: Room, found: Planes | None, in_l2: bool) -> None:
    height, width = layer.out_size
    least = Planes(filters=1, rows=1, columns=width, memory=0, in_l2=in_l2)
    assert (found is None) != _fits(layer, room, least)
    if found is None:
        return
    assert (found.in_l2, found.columns) == (in_l2, width)
    assert found.memory == _plane_bytes(layer, room, found) == plane_memory(layer, room, found)
    assert _fits(layer, room, found) and not _more_filters(layer, room, found)
    if found.rows < height:
        assert not _fits(layer, room, replace(found, filters=1, rows=min(2 * found.rows, height)))


@pytest.mark.parametrize("room", ROOMS)
def test_units_of_pixels_are_the_largest_that_fit(room: Room) -> None:
    met = set()
    for layer in LAYERS:
        for some in _rooms(layer, room):
            found = pixels(layer, some)
            if not layer.pointwise:
                assert found is None
                continue
            met.add(_check_pixels(layer, some, found))
    assert len(met) > 1


def _check_pixels(layer: Geometry, room: Room, found: Pixels | None) -> str:
    total, stored = layer.pixels, 0 if room.in_place else _up(layer.weight_bytes, room.align)

    def fits(count: int) -> bool:
        return _pixel_bytes(layer, room, count, layer.filters, stored) <= room.l1

    def buffers(filters: int) -> int:
        return 2 * _up(layer.bytes_of_filters(filters), room.align)

    counts = [n for n in (*range(4, total + 1, 4), 2, 1) if n <= total and fits(n)]
    streamed = {
        (count, filters)
        for count, filters in product((4, 2, 1), _possible_filters(layer))
        if count <= total
        and _pixel_bytes(layer, room, count, layer.filters, buffers(filters)) <= room.l1
    }
    if found is None:
        assert not counts or not room.in_place
        assert room.in_place or not streamed
        return "none"
    if found.weights is Weights.WEIGHTS_OUTER:
        assert not room.in_place
        assert found.count == max(count for count, _ in streamed)
        assert found.filters == max(some for count, some in streamed if count == found.count)
        memory = _pixel_bytes(layer, room, found.count, layer.filters, buffers(found.filters))
        assert found.memory == memory
        return "streamed"
    assert found.weights is (Weights.IN_PLACE if room.in_place else Weights.RESIDENT)
    assert (found.count, found.filters) == (max(counts), layer.filters)
    assert found.memory == _pixel_bytes(layer, room, found.count, layer.filters, stored)
    return "whole"


@pytest.mark.parametrize("room", ROOMS)
def test_the_smallest_memory_is_enough_and_no_way_takes_less(room: Room) -> None:
    for layer, reads, writes in product(LAYERS[:40], (False, True), (False, True)):
        some = replace(room, reads=reads, writes=writes)
        least = smallest(layer, some, by_planes=True)
        assert first(layer, replace(some, l1=least)) is not None
        assert least == 0 or first(layer, replace(some, l1=least - 1)) is None


@pytest.mark.parametrize("room", ROOMS)
def test_the_first_way_is_the_first_that_fits(room: Room) -> None:
    for layer in LAYERS[1::3]:
        for some in _rooms(layer, room):
            found = cuts_of(layer, some)
            order = [way for way in Scheme if found[way] is not None]
            assert (order[:1] == [Scheme.RESIDENT]) == (resident_memory(layer, some) <= some.l1)
            assert first(layer, some) == next(iter(order), None)
            assert found[Scheme.ROWS] is None or found[Scheme.ROW_TILES] is None
            wide = (found[Scheme.PLANES], found[Scheme.PLANES_L2], found[Scheme.PLANE_TILES])
            assert sum(cut is not None for cut in wide) <= 1
            if not any(wide):
                least = Planes(filters=1, rows=1, columns=1, memory=0)
                assert layer.out_size[1] == 1 or _plane_bytes(layer, some, least) > some.l1


def test_largest_number_that_fits() -> None:
    for limit, most in product(range(12), range(-1, 14)):
        tried: list[int] = []

        def fits(number: int, most: int = most, tried: list[int] = tried) -> bool:
            tried.append(number)
            return number <= most

        assert largest(fits, limit) == max(0, min(limit, most))
        assert all(1 <= number <= limit for number in tried)


def _plane_units(layer: Geometry, cut: Planes) -> Iterator[tuple[int, int]]:
    """Yield the pixels of an input channel and the filters of each unit, in their order."""
    height, width = layer.out_size
    for x, y in product(range(0, width, cut.columns), range(0, height, cut.rows)):
        first, end = layer.needed_columns(x, min(cut.columns, width - x))
        under = [layer.needed(row) for row in range(y, min(y + cut.rows, height))]
        rows = max(end for _, end in under) - min(first for first, _ in under)
        for one in range(0, layer.filters, cut.filters):
            for _ in range(layer.channels):
                yield rows * (end - first), min(cut.filters, layer.filters - one)


def test_planes_take_turns_in_two_buffers_as_large_as_the_largest_of_each() -> None:
    free: Any = None  # what is computed does not matter to the memory
    told = set()
    for layer, band, columns in product(LAYERS[::4], (1, 3), (1, 4)):
        taps = layer.kernel[0] * layer.kernel[1]
        for filters, in_l2 in product(range(1, layer.filters + 1), (False, True)):
            cut = Planes(filters=filters, rows=band, columns=columns, memory=0, in_l2=in_l2)
            step = Convolution(
                source=0, target=1, layer=0, name="", place=free, in_size=layer.in_size,
                weights=np.zeros((layer.filters, layer.channels, *layer.kernel), np.int8),
                start=free, out_size=layer.out_size, input=free, output=free,
            )  # fmt: skip
            task = Task(
                index=0, step=step, layer=layer, scheme=Scheme.PLANES, cut=cut, in_place=False
            )
            units = [*_plane_units(layer, cut)]
            wanted = {"sums": 4 * filters * layer.sum_size(band, columns)}
            for turn in range(2):
                wanted[f"input {turn}"] = max((n for n, _ in units[turn::2]), default=0)
                wanted[f"input {turn}"] *= layer.in_bytes
                wanted[f"weights {turn}"] = max((n * taps for _, n in units[turn::2]), default=0)
            found = {name: (size, level) for _, name, size, level in buffers_of(task, {})}
            assert found == {
                name: (-(-size // 4) * 4, Level.L2 if in_l2 and name == "sums" else Level.L1)
                for name, size in wanted.items() if size
            }  # fmt: skip
            told.add((wanted["weights 0"] > wanted["weights 1"] > 0, layer.filters % filters > 0))
    assert {(True, True), (False, True), (False, False)} <= told


def _ring_ends(task: Task, layer: Geometry, columns: int) -> Iterator[int]:
    """Yield where each input row that is needed ends in the ring, if rows take turns."""
    row = widest(layer, columns) * layer.channels * layer.in_bytes
    for y in range(layer.needed(layer.out_size[0] - 1)[1]):
        there = task.input_bytes - y * layer.row_bytes
        yield y % task.slots * task.pitch + min(row, there)


def test_a_ring_ends_where_the_last_of_its_rows_ends_also_if_the_last_pixels_are_missing() -> None:
    step: Any = None  # what is computed does not matter to the ring
    met = set()
    for layer in LAYERS[1::3]:
        missing = range(0, layer.row_bytes, layer.channels * layer.in_bytes)
        for band, ahead, less in product(range(1, layer.out_size[0] + 1), (True, False), missing):
            for columns in {layer.out_size[1], -(-layer.out_size[1] // 2)}:
                cut = Rows(weights=Weights.IN_PLACE, band=band, filters=layer.filters,
                           columns=columns, tiles=1, memory=0)  # fmt: skip
                task = Task(index=0, step=step, layer=layer, scheme=Scheme.ROWS, cut=cut,
                            ahead=ahead, pixels=layer.pixels,
                            input_bytes=layer.input_bytes - less)  # fmt: skip
                if ends := [*_ring_ends(task, layer, columns)]:
                    assert ring_bytes(task) == (max(ends) if widest(layer, columns) else 0)
                    met.add((task.slots < layer.in_size[0], less > 0, max(ends) != ends[-1]))
    assert len(met) > 5
