"""Memory of every way to cut a layer into units, and the largest units that fit.

Source: docs/memory-levels.md, "Schemes".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from ai8xtools.software.memory import ALIGNMENT, aligned
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.values import frozen


class Weights(enum.StrEnum):
    """Where a layer's weights are while it is computed.

    Those of some filters at a time are copied for every band of rows (ROWS_OUTER), or once, with
    all rows read again for the next filters (WEIGHTS_OUTER).
    """

    IN_PLACE = "in_place"
    RESIDENT = "resident"
    ROWS_OUTER = "rows_outer"
    WEIGHTS_OUTER = "weights_outer"

    @property
    def filters_outer(self) -> bool:
        """Whether all rows are read again for each group of filters."""
        return {
            Weights.IN_PLACE: False, Weights.RESIDENT: False, Weights.ROWS_OUTER: False,
            Weights.WEIGHTS_OUTER: True,
        }[self]  # fmt: skip


class Scheme(enum.StrEnum):
    """How memory is used: by whole layers, or cut in the order in which `first` takes them.

    In a single memory layers are RESIDENT, or those that follow each other ask for ROWS.
    """

    RESIDENT = "resident"
    ROWS = "rows"
    PIXELS = "pixels"
    PLANES = "planes"
    PLANES_L2 = "planes_l2"
    ROW_TILES = "row_tiles"
    PLANE_TILES = "plane_tiles"
    ROW_CHAIN = "row_chain"
    CHAIN = "chain"

    @property
    def unit(self) -> type[Cut] | None:
        """What is computed at a time, None for everything."""
        match self:
            case Scheme.RESIDENT:
                return None
            case Scheme.ROWS | Scheme.ROW_TILES | Scheme.ROW_CHAIN:
                return Rows
            case Scheme.PIXELS:
                return Pixels
            case Scheme.PLANES | Scheme.PLANES_L2 | Scheme.PLANE_TILES:
                return Planes
            case Scheme.CHAIN:
                return Channels
            case _:
                assert_never(self)

    @property
    def by_rows(self) -> bool:
        """Whether steps in a single memory ask each other for rows."""
        return self in SINGLE and self.unit is not None


SINGLE = (Scheme.RESIDENT, Scheme.ROWS)
"""Those of a single memory, in the order in which they are tried."""


@frozen(kw_only=True)
class Room:
    """What a layer may use: bytes of L1 and L2, and how.

    Buffers are multiples of `align` bytes. `dma`: copies arrive while something is computed.
    `in_place`: weights can be read where they are. `scratch` bytes are a kernel's own. `reads`,
    `writes`: the input is in L1, the output is made in its place there, without buffers.
    """

    l1: int
    l2: int
    align: int = ALIGNMENT
    dma: bool
    in_place: bool
    scratch: int
    reads: bool
    writes: bool

    def pair(self, size: int) -> int:
        """Return the bytes of two buffers."""
        return 2 * aligned(size, self.align)


@frozen(kw_only=True)
class Rows:
    """Bands of `band` output rows, `columns` wide, for `filters` filters at a time.

    `memory` in bytes; `traffic` in bytes of inputs and weights, None for tiles and for weights in
    place.
    """

    weights: Weights
    band: int
    filters: int
    columns: int
    tiles: int
    memory: int
    traffic: int | None = None


@frozen(kw_only=True)
class Pixels:
    """`count` pixels at a time, of which `filters` output channels."""

    weights: Weights
    count: int
    filters: int
    memory: int


@frozen(kw_only=True)
class Planes:
    """An input channel at a time, into the sums of `filters` outputs of `rows` by `columns`.

    `in_l2`: the sums are in the second memory.
    """

    filters: int
    rows: int
    columns: int
    memory: int
    in_l2: bool = False


@frozen(kw_only=True)
class Channels:
    """A channel at a time through layers that do not mix channels, in one piece of memory.

    The input of a layer begins at `place` of it, the result at `result`; `memory` in bytes.
    """

    place: int
    result: int
    memory: int


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number of 1 to `limit` that fits, 0 if none does; fewer always fit too."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def resident_memory(layer: Geometry, room: Room) -> int:
    """Return the bytes of a whole layer: input, output, weights and scratch."""
    data = 0 if room.reads else layer.sources * aligned(layer.input_bytes, room.align)
    data += 0 if room.writes else aligned(layer.output_bytes, room.align)
    weights = 0 if room.in_place else aligned(layer.weight_bytes, room.align)
    return data + weights + room.scratch


def resident(layer: Geometry, room: Room) -> Rows | None:
    """Return the whole layer, None if it does not fit."""
    memory = resident_memory(layer, room)
    if memory > room.l1:
        return None
    weights = Weights.IN_PLACE if room.in_place else Weights.RESIDENT
    return Rows(weights=weights, band=layer.out_size[0], filters=layer.filters,
                columns=layer.out_size[1], tiles=1, memory=memory)  # fmt: skip


def row_memory(
    layer: Geometry, room: Room, band: int, columns: int, weights: int, filters: int
) -> int:
    """Return the bytes of bands of rows with buffers of `weights` bytes."""
    total = weights + room.scratch
    if not room.reads:
        row = layer.tile_columns(columns) * layer.channels * layer.in_bytes
        pitch = aligned(row, room.align) if room.dma else row
        ring = layer.ring_rows(band, ahead=room.dma) * pitch
        total += layer.sources * aligned(ring, room.align)
    if not room.writes or filters < layer.filters or columns < layer.out_size[1]:
        total += room.pair(band * columns * filters * layer.out_bytes)
    return total


def rows(layer: Geometry, room: Room, columns: int | None = None) -> Rows | None:
    """Return the bands of rows that fit, of the whole width or of tiles; None if none do."""
    width = columns or layer.out_size[1]
    tiles = -(-layer.out_size[1] // width)
    whole = aligned(layer.weight_bytes, room.align)
    everything = 0 if room.in_place else whole
    memory = row_memory(layer, room, 1, width, everything, layer.filters)
    if memory <= room.l1:
        if room.in_place:
            return Rows(weights=Weights.IN_PLACE, band=1, filters=layer.filters, columns=width,
                        tiles=tiles, memory=memory)  # fmt: skip
        traffic = layer.input_bytes + layer.weight_bytes if tiles == 1 else None
        return Rows(weights=Weights.RESIDENT, band=1, filters=layer.filters, columns=width,
                    tiles=tiles, memory=memory, traffic=traffic)  # fmt: skip
    if room.in_place:
        return None
    candidates = [*_streamed_rows(layer, room, width, tiles)]
    if not candidates:
        return None
    traffic, best = min(candidates, key=lambda one: one[0])
    return replace(best, traffic=traffic) if tiles == 1 else best


def _streamed_rows(
    layer: Geometry, room: Room, width: int, tiles: int
) -> Iterator[tuple[int, Rows]]:
    """Yield what fits with weights of some filters at a time, with its traffic in bytes."""

    def outer(band: int, filters: int) -> int:
        buffers = room.pair(layer.bytes_of_filters(filters))
        return row_memory(layer, room, band, width, buffers, layer.filters)

    def inner(filters: int) -> int:
        buffers = room.pair(layer.bytes_of_filters(filters))
        return row_memory(layer, room, 1, width, buffers, filters)

    height, data, weights = layer.out_size[0], layer.input_bytes, layer.weight_bytes
    band = largest(lambda count: outer(count, 1) <= room.l1, height)
    if band:
        enough = (g for g in range(1, band) if weights * -(-height // g) < data)
        band = next(enough, band)
        filters = _filters(layer, lambda count: outer(band, count) <= room.l1)
        yield weights * -(-height // band) + data, Rows(
            weights=Weights.ROWS_OUTER, band=band, filters=filters, columns=width, tiles=tiles,
            memory=outer(band, filters),
        )  # fmt: skip
    filters = _filters(layer, lambda count: inner(count) <= room.l1)
    if filters:
        yield weights + -(-layer.filters // filters) * data, Rows(
            weights=Weights.WEIGHTS_OUTER, band=1, filters=filters, columns=width, tiles=tiles,
            memory=inner(filters),
        )  # fmt: skip


def _filters(layer: Geometry, fits: Callable[[int], bool]) -> int:
    """Return the largest number of filters that fits and that weights can be cut into."""
    count = largest(fits, layer.filters)
    if count == layer.filters:
        return count
    return count // layer.filter_step * layer.filter_step


def row_tiles(layer: Geometry, room: Room) -> Rows | None:
    """Return bands of rows in the fewest columns of tiles that fit; None if none do."""
    return next(filter(None, (rows(layer, room, width) for width in _cuts(layer))), None)


def _cuts(layer: Geometry) -> Iterator[int]:
    """Yield the columns of a tile, for 2, 3, ... tiles."""
    width = layer.out_size[1]
    return (-(-width // tiles) for tiles in range(2, width + 1))


def plane_memory(layer: Geometry, room: Room, cut: Planes) -> int:
    """Return the bytes of L1 for planes of these sizes."""
    rows = layer.ring_rows(cut.rows, ahead=False)
    plane = rows * layer.tile_columns(cut.columns) * layer.in_bytes
    sums = 0 if cut.in_l2 else 4 * cut.filters * layer.sum_size(cut.rows, cut.columns)
    weights = 0 if room.in_place else room.pair(layer.bytes_of_planes(cut.filters))
    return room.pair(plane) + sums + weights


def planes(layer: Geometry, room: Room, *, in_l2: bool = False) -> Planes | None:
    """Return the tallest planes that fit, of the whole width; None if none do."""
    height = layer.out_size[0]
    heights = [height]
    while heights[-1] > 1:
        heights.append(-(-heights[-1] // 2))
    candidates = (_planes(layer, room, rows, layer.out_size[1], in_l2) for rows in heights)
    return next(filter(None, candidates), None)


def plane_tiles(layer: Geometry, room: Room) -> Planes | None:
    """Return single rows of planes in the fewest tiles that fit; None if none do."""
    candidates = (_planes(layer, room, 1, width, False) for width in _cuts(layer))
    return next(filter(None, candidates), None)


def _planes(layer: Geometry, room: Room, rows: int, columns: int, in_l2: bool) -> Planes | None:
    def sized(filters: int) -> Planes:
        return Planes(filters=filters, rows=rows, columns=columns, memory=0, in_l2=in_l2)

    def fits(filters: int) -> bool:
        sums = 4 * filters * layer.sum_size(rows, columns)
        return plane_memory(layer, room, sized(filters)) <= room.l1 and (
            not in_l2 or sums <= room.l2
        )

    filters = largest(fits, layer.filters)
    if not filters:
        return None
    memory = plane_memory(layer, room, sized(filters))
    return Planes(filters=filters, rows=rows, columns=columns, memory=memory, in_l2=in_l2)


def pixels(layer: Geometry, room: Room) -> Pixels | None:
    """Return the most pixels that fit, for a pointwise layer; None if none do."""
    if not layer.pointwise:
        return None
    total = layer.pixels
    whole = 0 if room.in_place else aligned(layer.weight_bytes, room.align)
    in_fours = largest(
        lambda n: pixel_memory(layer, room, 4 * n, layer.filters, whole) <= room.l1, total // 4
    )
    few = (n for n in (2, 1) if n <= total)
    fits = (n for n in few if pixel_memory(layer, room, n, layer.filters, whole) <= room.l1)
    count = 4 * in_fours or next(fits, 0)
    if count and (room.in_place or count >= 4 or (total < 4 and count == min(total, 2))):
        weights = Weights.IN_PLACE if room.in_place else Weights.RESIDENT
        memory = pixel_memory(layer, room, count, layer.filters, whole)
        return Pixels(weights=weights, count=count, filters=layer.filters, memory=memory)
    return None if room.in_place else _streamed_pixels(layer, room)


def pixel_memory(layer: Geometry, room: Room, count: int, filters: int, weights: int) -> int:
    """Return the bytes of units of `count` pixels with buffers of `weights` bytes."""
    data = 0 if room.reads else layer.sources * room.pair(count * layer.channels * layer.in_bytes)
    if not room.writes or filters < layer.filters:
        data += room.pair(count * layer.filters * layer.out_bytes)
    return data + weights + room.scratch


def _streamed_pixels(layer: Geometry, room: Room) -> Pixels | None:
    """Return few pixels with the weights of some filters at a time."""
    for count in (4, 2, 1):
        if count > layer.pixels:
            continue

        def memory(filters: int, count: int = count) -> int:
            buffers = room.pair(layer.bytes_of_filters(filters))
            return pixel_memory(layer, room, count, layer.filters, buffers)

        filters = _filters(layer, lambda some: memory(some) <= room.l1)
        if filters:
            return Pixels(weights=Weights.WEIGHTS_OUTER, count=count, filters=filters,
                          memory=memory(filters))  # fmt: skip
    return None


Cut = Rows | Pixels | Planes | Channels


def cuts_of(layer: Geometry, room: Room) -> dict[Scheme, Cut | None]:
    """Return what fits in each way but chains; tiles only where the untiled way does not."""
    cuts: dict[Scheme, Cut | None] = dict.fromkeys(Scheme)
    cuts[Scheme.RESIDENT] = resident(layer, room)
    cuts[Scheme.ROWS] = rows(layer, room)
    cuts[Scheme.PIXELS] = pixels(layer, room)
    cuts[Scheme.PLANES] = planes(layer, room)
    if cuts[Scheme.ROWS] is None:
        cuts[Scheme.ROW_TILES] = row_tiles(layer, room)
    if cuts[Scheme.PLANES] is None and room.l2:
        cuts[Scheme.PLANES_L2] = planes(layer, room, in_l2=True)
    if cuts[Scheme.PLANES] is None and cuts[Scheme.PLANES_L2] is None:
        cuts[Scheme.PLANE_TILES] = plane_tiles(layer, room)
    return cuts


def first(layer: Geometry, room: Room) -> Scheme | None:
    """Return the first way that fits, by memory alone; None if none does."""
    cuts = cuts_of(layer, room)
    return next((way for way in Scheme if cuts[way] is not None), None)


def smallest(layer: Geometry, room: Room, *, by_planes: bool) -> int:
    """Return the least bytes of L1 with which some way fits; `by_planes`: planes are possible."""
    least, step = [resident_memory(layer, room)], min(layer.filter_step, layer.filters)
    weights = [(0 if room.in_place else aligned(layer.weight_bytes, room.align), layer.filters)]
    if not room.in_place:
        some = room.pair(layer.bytes_of_filters(step))
        weights += [(some, layer.filters), (some, step)]
    for columns in (1, layer.out_size[1]):
        least += [row_memory(layer, room, 1, columns, *one) for one in weights]
        plane = Planes(filters=1, rows=1, columns=columns, memory=0)
        least += [plane_memory(layer, room, plane)] if by_planes else []
    if by_planes and 4 * layer.sum_size(1, layer.out_size[1]) <= room.l2:
        least.append(plane_memory(layer, room, replace(plane, in_l2=True)))
    if layer.pointwise:
        least += [pixel_memory(layer, room, 1, layer.filters, some) for some, _ in weights]
    return min(least)
