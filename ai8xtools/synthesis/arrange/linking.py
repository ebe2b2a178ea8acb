"""What layers tie together: operands, parts of joins, and data that no kernel moves.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ai8xtools.synthesis.arrange.graph import Reading, pass_places, reading, refusal
from ai8xtools.synthesis.arrange.links import Distances, Offsets, Role, TiedError, TiedLayerError
from ai8xtools.synthesis.arrange.values import StoredTensor, Tie
from ai8xtools.synthesis.network import Layer, Network
from device.channels import passes
from device.chip import GROUPS, PROCESSORS, PROCESSORS_PER_GROUP
from device.masks import lowest_bit


class Links:
    """The ties of a network's tensors while they are gathered."""

    def __init__(self, count: int) -> None:
        self.distances = Distances(count)
        self.offsets = Offsets(count)
        self.joins: list[tuple[int, ...]] = []
        self.reasons: list[Tie] = []

    def tie(self, first: int, second: int, distance: int, reason: str) -> None:
        """Let a tensor stand at a distance behind another one; raise TiedError if it cannot."""
        self.distances.tie(first, second, distance)
        self.reasons.append(Tie(first, second, reason))


def link_sources(
    network: Network,
    layer: Layer,
    parts: tuple[int, ...],
    tensors: tuple[StoredTensor, ...],
    links: Links,
) -> None:
    """Tie the sources of a layer to each other; a sum or join that cannot be raises."""
    try:
        match way := reading(network, layer):
            case Reading.ALONE:
                pass
            case Reading.OPERANDS:
                if len({tensors[part].pattern for part in parts}) > 1:
                    raise TiedError
                first, *others = parts
                for part in others:
                    links.tie(first, part, 0, f"{layer} combines them")
                links.offsets.join({p: Role(len(parts), i) for i, p in enumerate(parts)})
            case Reading.SIDE_BY_SIDE:
                links.offsets.join(dict.fromkeys(parts, Role()))
                links.joins.append(parts)
            case Reading.PASS_BY_PASS:
                places = pass_places(network, layer)
                count = passes(layer.in_channels)
                first, *_ = parts
                for part, (_, place) in zip(parts, places, strict=True):
                    links.tie(first, part, place, f"{layer} joins them as passes")
                links.offsets.join(
                    {p: Role(count, e) for p, (e, _) in zip(parts, places, strict=True)}
                )
            case _:
                assert_never(way)
    except TiedError:
        raise TiedLayerError(
            refusal(
                layer,
                "what it reads would have to stand in two places at once",
                ("in_sequences", "eltwise", "op"),
                "Copy one of the sources with 1x1 kernels (copy_channels).",
            ),
            layer.index,
        ) from None


def tie_result(
    network: Network,
    layer: Layer,
    parts: tuple[int, ...],
    result: int,
    tensors: tuple[StoredTensor, ...],
    links: Links,
) -> StoredTensor:
    """Tie a result to what is read if no kernel moves it; return it in the lanes it gets."""
    if layer.has_weights and not layer.depthwise:
        return tensors[result]
    try:
        if reading(network, layer).shares_pass:
            return _tie_parts(layer, parts, result, tensors, links)
        first, *_ = parts
        source = tensors[first]
        if not (layer.depthwise or _is_packed(source)):
            raise TiedError
        links.tie(first, result, 0, f"{layer} leaves them in their processors")
        return _in_lanes(tensors[result], source.pattern, source.starts)
    except TiedError:
        raise TiedLayerError(
            refusal(
                layer,
                "the result stays in the processors of what is read, where something else has to "
                "stand",
                ("in_sequences", "op"),
                "Put a convolution in between.",
            ),
            layer.index,
        ) from None


def _in_lanes(result: StoredTensor, pattern: int, starts: tuple[int, ...]) -> StoredTensor:
    if result.pattern.bit_count() != pattern.bit_count():
        raise TiedError
    return replace(result, pattern=pattern, starts=starts)


def _is_packed(tensor: StoredTensor) -> bool:
    """Whether the lanes of each group are neighbours, wherever the tensor begins."""
    for start in tensor.starts:
        for group in range(GROUPS):
            lanes = tensor.pattern << start >> PROCESSORS_PER_GROUP * group & 0xFFFF
            if lanes and (lanes >> lowest_bit(lanes)) & (lanes >> lowest_bit(lanes)) + 1:
                return False
    return True


def _tie_parts(
    layer: Layer,
    parts: tuple[int, ...],
    result: int,
    tensors: tuple[StoredTensor, ...],
    links: Links,
) -> StoredTensor:
    """Tie the parts of a join that are passed on together.

    Channels that leave lanes out in front of the next part keep these gaps when they are convolved
    depth-wise. When they pass through, those of a group close up: then all of them stand in one
    group, or what comes behind a gap begins in the next one.
    """
    if any(tensors[part].span > tensors[part].width for part in parts):
        raise TiedError
    places, total = _places(parts, tensors, 4)
    starts = tuple(range(0, PROCESSORS - total + 1, 4))
    pattern = sum(tensors[p].pattern << place for p, place in zip(parts, places, strict=True))
    gaps = bool(pattern & pattern + 1)
    if gaps and not layer.depthwise:
        if total <= PROCESSORS_PER_GROUP:
            unit = PROCESSORS_PER_GROUP
            starts = tuple(s for s in starts if s % unit + total <= unit)
            pattern = tensors[result].pattern
        else:
            places, total = _places(parts, tensors, PROCESSORS_PER_GROUP)
            starts = tuple(range(0, PROCESSORS - total + 1, PROCESSORS_PER_GROUP))
            pattern = sum(
                tensors[p].pattern << place for p, place in zip(parts, places, strict=True)
            )
    if not starts:
        raise TiedError
    first, *_ = parts
    for part, place in zip(parts, places, strict=True):
        links.tie(first, part, place, f"{layer} passes them on together")
    links.tie(first, result, 0, f"{layer} leaves them in their processors")
    if gaps:
        return replace(tensors[result], pattern=pattern, starts=starts)
    return tensors[result]


def _places(
    parts: tuple[int, ...], tensors: tuple[StoredTensor, ...], unit: int
) -> tuple[list[int], int]:
    """Return where parts begin behind each other, and their end; behind a gap at a unit."""
    places, end = [], 0
    for part in parts:
        if end % 4:
            end = -(-end // unit) * unit
        places.append(end)
        end += tensors[part].width
    return places, end
