"""What layers tie together: operands, parts of joins, and data that no kernel moves.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from device.channels import passes
from diagnostics import DiagnosticError
from synthesis.arrange.graph import Reading, pass_places, reading, refusal
from synthesis.arrange.links import Distances, Offsets, Role, TiedError
from synthesis.arrange.values import Tensor, Tie
from synthesis.network import Layer, Network


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
    tensors: tuple[Tensor, ...],
    links: Links,
) -> None:
    """Tie the sources of a layer to each other; a sum or join that cannot be raises."""
    try:
        match reading(network, layer):
            case Reading.ALONE:
                pass
            case Reading.OPERANDS:
                if len({tensors[part].pattern for part in parts}) > 1:
                    raise TiedError
                for part in parts[1:]:
                    links.tie(parts[0], part, 0, f"{layer} combines them")
                links.offsets.join({p: Role(len(parts), i) for i, p in enumerate(parts)})
            case Reading.SIDE_BY_SIDE:
                links.offsets.join(dict.fromkeys(parts, Role()))
                links.joins.append(parts)
            case Reading.PASS_BY_PASS:
                places = pass_places(network, layer)
                count = passes(layer.in_channels)
                for part, (_, place) in zip(parts, places, strict=True):
                    links.tie(parts[0], part, place, f"{layer} joins them as passes")
                links.offsets.join(
                    {p: Role(count, e) for p, (e, _) in zip(parts, places, strict=True)}
                )
    except TiedError:
        raise DiagnosticError(
            refusal(
                layer,
                "what it reads would have to stand in two places at once",
                ("in_sequences", "eltwise", "op"),
                "Copy one of the sources with a Passthrough layer.",
            )
        ) from None


def tie_result(
    network: Network,
    layer: Layer,
    parts: tuple[int, ...],
    result: int,
    tensors: tuple[Tensor, ...],
    links: Links,
) -> None:
    """Data that no kernel moves stays in its processors."""
    if layer.has_weights and not layer.depthwise:
        return
    try:
        if reading(network, layer) is Reading.SIDE_BY_SIDE:
            place = 0
            if any(tensors[part].span > tensors[part].width for part in parts):
                raise TiedError
            for part in parts:
                links.tie(parts[0], part, place, f"{layer} passes them on together")
                place += tensors[part].span
        alone = tensors[parts[0]].pattern == tensors[result].pattern
        if not alone and reading(network, layer) is not Reading.SIDE_BY_SIDE:
            raise TiedError
        links.tie(parts[0], result, 0, f"{layer} leaves them in their processors")
    except TiedError:
        raise DiagnosticError(
            refusal(
                layer,
                "the result stays in the processors of what is read, where something else has to "
                "stand",
                ("in_sequences", "op"),
                "Put a convolution in between.",
            )
        ) from None
