"""Channels that are zero are added where a pass has to be full.

Parts of a join of several passes stand within one pass each, a flattened map fills its passes, and
so do the inputs of narrow weights. The layers that make such a map get outputs with weights of
zero; where that is not possible, 1x1 kernels copy the map, or a part of it.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Severity
from ai8xtools.synthesis.arrange.graph import (
    Reading,
    channels_of,
    pass_places,
    reading,
    sources,
)
from ai8xtools.synthesis.arrange.rewrites.copying import CopiedPart, copied
from ai8xtools.synthesis.arrange.rewrites.zero_outputs import makers, with_zero_outputs
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.values import frozen
from device.channels import channels_per_pass, passes
from device.chip import PROCESSORS, PROCESSORS_PER_INSTANCE

_STEPS = 256
"""At most so many layers are filled or added."""


@frozen
class Need:
    """What a layer needs of its sources: the parts of each, and why."""

    reader: Layer
    parts: tuple[tuple[CopiedPart, ...], ...]
    reason: str


def with_filled_passes(
    network: Network, fixed: Layout
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network in which passes are full where they have to be, and a notice of each."""
    notices: list[Diagnostic] = []
    for _ in range(_STEPS):
        met = (_met(network, fixed, need, notices) for need in _needs(network))
        changed = next((one for one in met if one is not None), None)
        if changed is None:
            break
        network, fixed = changed
    return network, fixed, tuple(notices)


def _needs(network: Network) -> Iterator[Need]:
    """Yield what is needed, in the order of execution."""
    for layer in network.executed():
        need = _need_of(network, layer)
        if need is not None:
            yield need


def _need_of(network: Network, layer: Layer) -> Need | None:
    counts = [channels_of(network, s) for s in sources(network, layer)]
    match way := reading(network, layer):
        case Reading.SIDE_BY_SIDE:
            return _side_by_side(layer, counts)
        case Reading.PASS_BY_PASS:
            return _pass_by_pass(network, layer, counts)
        case Reading.ALONE | Reading.OPERANDS:
            return _full(layer, counts)
        case _:
            assert_never(way)


def _pass_by_pass(network: Network, layer: Layer, counts: Sequence[int]) -> Need | None:
    """Each part stands in one pass."""
    try:
        pass_places(network, layer)
    except DiagnosticError:
        text = " + ".join(map(str, counts))
        return Need(layer, packed(counts), f"{layer} joins {text} channels")
    total = sum(counts)
    if not _must_be_full(layer, total):
        return None
    missing = passes(total) * channels_per_pass(total) - total
    *others, last = counts
    whole = [(CopiedPart(0, count, count),) for count in others]
    whole.append((CopiedPart(0, last, last + missing),))
    return Need(layer, tuple(whole), _why_full(layer, total))


def _side_by_side(layer: Layer, counts: Sequence[int]) -> Need | None:
    """Parts begin at multiples of 4; a layer that passes data on leaves no gaps."""
    *others, last = counts
    whole = [*map(_up, others), last]
    if sum(whole) > PROCESSORS:
        text = " + ".join(map(str, counts))
        return Need(layer, packed(counts), f"{layer} joins {text} channels")
    if (layer.has_weights and not layer.depthwise) or whole == list(counts):
        return None
    parts = ((CopiedPart(0, count, full),) for count, full in zip(counts, whole, strict=True))
    return Need(layer, tuple(parts), f"{layer} passes joined channels on")


def _full(layer: Layer, counts: Sequence[int]) -> Need | None:
    """A flattened map fills its passes, and so do the inputs of narrow weights."""
    count = layer.in_channels
    regular = all(c == count for c in counts) and not layer.channel_skip
    if not regular or not _must_be_full(layer, count):
        return None
    full = passes(count) * channels_per_pass(count)
    return Need(layer, ((CopiedPart(0, count, full),),) * len(counts), _why_full(layer, count))


def _must_be_full(layer: Layer, channels: int) -> bool:
    """Whether a layer needs full passes and does not have them."""
    if channels == passes(channels) * channels_per_pass(channels) or layer.depthwise:
        return False
    narrow = layer.weights is not None and abs(layer.weight_bits) < 8
    return layer.flatten or narrow


def _why_full(layer: Layer, channels: int) -> str:
    what = "flattens" if layer.flatten else f"has {abs(layer.weight_bits)}-bit weights for"
    return f"{layer} {what} {channels} channels"


def _up(count: int) -> int:
    """Return a count with zeros up to a multiple of 4."""
    return -(-count // PROCESSORS_PER_INSTANCE) * PROCESSORS_PER_INSTANCE


def packed(counts: Sequence[int]) -> tuple[tuple[CopiedPart, ...], ...]:
    """Return the parts of joined sources so that none crosses from one pass into the next.

    All passes are equally full. Sources of more than 64 channels come in several parts; others do
    where that takes fewer passes and all are copied anyway.
    """
    rows = _rows(_evenly(counts)), _rows(_at_borders(counts))
    return min((_filled_up(counts, r) for r in rows), key=_cost)


Row = list[tuple[int, int, int]]
"""What stands in a pass: source, first channel, count."""


def _cost(parts: Sequence[Sequence[CopiedPart]]) -> tuple[int, int]:
    """Return how many copies parts need, and how many channels they become."""
    copies = sum(len(row) for row in parts if len(row) > 1)
    return copies, sum(part.filled for row in parts for part in row)


def _evenly(counts: Sequence[int]) -> list[list[int]]:
    """Return the channels of the parts of each source: few and equal ones."""
    sizes = []
    for count in counts:
        size = _up(-(-count // passes(count)))
        sizes.append([min(size, count - first) for first in range(0, count, size)])
    return sizes


def _at_borders(counts: Sequence[int]) -> list[list[int]]:
    """Return the channels of the parts of each source, divided where a pass ends."""
    share, begin = channels_per_pass(sum(counts)), 0
    sizes: list[list[int]] = []
    for count in counts:
        borders = [b - begin for b in range(0, begin + count, share) if b > begin]
        sizes.append([b - a for a, b in pairwise((0, *borders, count))])
        begin += count
    return sizes


def _rows(pieces: Sequence[Sequence[int]]) -> list[Row]:
    """Return what stands in each pass, one part behind the other."""
    rows: list[Row] = [[]]
    for source, sizes in enumerate(pieces):
        first = 0
        for size in sizes:
            taken = sum(_up(count) for _, _, count in rows[-1])
            if taken + _up(size) > PROCESSORS:
                rows.append([])
            rows[-1].append((source, first, size))
            first += size
    return rows


def _filled_up(counts: Sequence[int], rows: Sequence[Row]) -> tuple[tuple[CopiedPart, ...], ...]:
    """Return the parts with the zeros that make all passes equally full."""
    share = max(sum(_up(count) for _, _, count in row) for row in rows)
    least = PROCESSORS * (len(rows) - 1) // len(rows)
    share = max(share, _up(least + 1))
    parts: list[list[CopiedPart]] = [[] for _ in counts]
    for row in rows:
        room = share
        for number, (source, first, count) in enumerate(row):
            filled = room if number == len(row) - 1 else _up(count)
            parts[source].append(CopiedPart(first, count, filled))
            room -= filled
    return tuple(map(tuple, parts))


def _met(
    network: Network, fixed: Layout, need: Need, notices: list[Diagnostic]
) -> tuple[Network, Layout] | None:
    """Fill the first pass that is not full; None if nothing can be done about it."""
    for place, parts in enumerate(need.parts):
        whole = channels_of(network, sources(network, need.reader)[place])
        if parts == (CopiedPart(0, whole, whole),):
            continue
        if len(parts) == 1:
            filled = _filled(network, fixed, need, place, notices)
            if filled is not None:
                return filled, fixed
        return copied(network, fixed, need.reader, place, parts, need.reason, notices)
    return None


def _filled(
    network: Network, fixed: Layout, need: Need, place: int, notices: list[Diagnostic]
) -> Network | None:
    """Let the layers that make a source deliver zeros behind it."""
    owner, (part,) = sources(network, need.reader)[place], need.parts[place]
    made_by = makers(network, owner)
    if made_by is None:
        return None
    missing = part.filled - part.count
    changed = with_zero_outputs(network, fixed, dict.fromkeys(made_by, missing))
    if changed is None or channels_of(changed, owner) != part.filled:
        return None
    for index in made_by:
        notices.append(
            network.layer(index).diagnostic(
                "N427",
                f"{missing} outputs that are zero are added: {need.reason}",
                ("out_channels", "op"),
                severity=Severity.NOTICE,
            )
        )
    return changed
