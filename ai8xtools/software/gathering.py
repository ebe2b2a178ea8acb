"""How a layer's operands stand in the tensors of its sources.

Sources are joined and cut as arrays of channels, rows and columns; tensors hold pixels. The place
of every value is followed through what happens to it, and runs of places become pieces to copy.
Source: docs/hardware/arithmetic.md, "Combining operands".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.software.graph import Int64, Piece, Tensor
from ai8xtools.synthesis.network import Layer
from ai8xtools.values import frozen

SPAN = 1 << 40
"""Places of the values of different tensors are at least this far apart."""


@frozen
class Part:
    """A tensor that a layer reads: its number and shape."""

    tensor: int
    channels: int
    rows: int
    columns: int


def whole(part: Part, layer: Layer) -> bool:
    """Whether a tensor is an operand as it stands, rows and columns perhaps counted anew."""
    pixels = layer.in_dim[0] * layer.in_dim[1]
    return part.channels == layer.in_channels and part.rows * part.columns == pixels


def pieces_of(
    parts: Sequence[Part], layer: Layer, skip: int | None
) -> Iterator[tuple[tuple[Piece, ...], int]]:
    """Yield the pieces and the channels of each operand; places in bytes of int8 tensors."""
    places = _joined([_places(part) for part in parts])
    if skip is not None:
        places = places[skip:][: layer.operands * layer.in_channels]
    before, after = layer.in_crop
    places = places[:, before : places.shape[1] - after]
    for operand in np.split(places, layer.operands):
        image = operand.reshape(-1, *layer.in_dim)
        yield pieces(image.transpose(1, 2, 0).reshape(-1)), len(image)


def _places(part: Part) -> Int64:
    """Return where each value stands: [channel, row, column]."""
    size = part.rows * part.columns * part.channels
    places = part.tensor * SPAN + np.arange(size, dtype=np.int64)
    return places.reshape(part.rows, part.columns, part.channels).transpose(2, 0, 1)


def _joined(parts: Sequence[Int64]) -> Int64:
    if len(parts) == 1:
        return parts[0]
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def pieces(places: Int64, width: int = 1) -> tuple[Piece, ...]:
    """Return what copies the values of `width` bytes at these places one after the other; those
    below 0 are left out.
    """
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    starts = np.concatenate(([0], cuts))
    lengths = np.diff(np.concatenate((starts, [len(places)])))
    kept = places[starts] >= 0
    runs = _evenly_spaced(places[starts][kept], starts[kept], lengths[kept])
    return tuple(
        Piece(run.source, width * run.from_start, width * run.from_step, width * run.to_start,
              width * run.to_step, width * run.length, run.count)
        for whole in runs
        for run in (_one_by_one(whole) if whole.from_step < 0 else [whole])
    )  # fmt: skip


def _one_by_one(piece: Piece) -> Iterator[Piece]:
    """Yield the runs of a piece, whose distances C counts without a sign."""
    for number in range(piece.count):
        yield replace(piece, from_start=piece.from_start + number * piece.from_step, from_step=0,
                      to_start=piece.to_start + number * piece.to_step, to_step=0,
                      count=1)  # fmt: skip


def is_by_rows(pieces: Sequence[Piece], tensors: Mapping[int, Tensor], target: Tensor) -> bool:
    """Whether row y of a target needs row y of its sources only, with a run for each pixel."""
    size, pixel = (target.rows, target.columns), target.channels * target.bytes_per_value
    return target.rows > 1 and all(
        (tensors[piece.source].rows, tensors[piece.source].columns) == size
        and piece.count == target.pixels
        and piece.to_step == pixel
        and piece.from_step == tensors[piece.source].row_bytes // target.columns
        and piece.from_start + piece.length <= piece.from_step
        and piece.to_start + piece.length <= piece.to_step
        for piece in pieces
    )


def _evenly_spaced(places: Int64, starts: Int64, lengths: Int64) -> Iterator[Piece]:
    """Put runs of the same length and distance together; runs of other pieces may lie between."""
    period = _period(places, starts, lengths)
    for first in range(period):
        where, to, length = places[first::period], starts[first::period], lengths[first::period]
        position = 0
        while position < len(where):
            count = _alike(where[position:], to[position:], length[position:])
            source, offset = divmod(int(where[position]), SPAN)
            steps = (0, 0)
            if count > 1:
                steps = (
                    int(where[position + 1] - where[position]),
                    int(to[position + 1] - to[position]),
                )
            yield Piece(source, offset, steps[0], int(to[position]), steps[1],
                        int(length[position]), count)  # fmt: skip
            position += count


def _period(places: Int64, starts: Int64, lengths: Int64) -> int:
    """Return after how many runs the same tensor and length come again."""
    kinds = np.stack((places // SPAN, lengths))
    for period in range(1, min(len(starts), 65)):
        if np.array_equal(kinds[:, period:], kinds[:, :-period]) and _even(places, period):
            return period
    return 1


def _even(places: Int64, period: int) -> bool:
    steps = places[period:] - places[:-period]
    return all(len(set(steps[first::period].tolist())) <= 1 for first in range(period))


def _alike(places: Int64, starts: Int64, lengths: Int64) -> int:
    """Return how many runs from the first on have one length and one distance."""
    if len(places) < 2:
        return len(places)
    same = (
        (np.diff(places) == places[1] - places[0])
        & (np.diff(starts) == starts[1] - starts[0])
        & (lengths[1:] == lengths[0])
        & (places[1] // SPAN == places[0] // SPAN)
    )
    wrong = np.flatnonzero(~same)
    return int(wrong[0]) + 1 if len(wrong) else len(places)
