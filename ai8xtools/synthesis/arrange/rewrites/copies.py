"""Copies of data that two readers need in different places.

An operand of a combination, or a part of a join of several passes, leaves words free for the
others. Who reads it elsewhere needs it without these gaps, unless the chip can skip them.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.arrange.graph import Reading, channels_of, pass_places, reading, sources
from ai8xtools.synthesis.arrange.links import Role
from ai8xtools.synthesis.arrange.rewrites.edit import inserted, unique_name
from ai8xtools.synthesis.arrange.tensors import last_reader
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping.hardware import hardware_for
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Operator
from ai8xtools.values import frozen
from device import Chip
from device.channels import passes


@frozen
class Conflict:
    """A source (by its place) that a layer cannot read where it is, and why."""

    reader: Layer
    place: int
    reason: str


def with_copies(
    network: Network, fixed: Layout, chip: Chip
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network with the copies that it needs, and a notice of each."""
    notices: list[Diagnostic] = []
    while conflict := next(_conflicts(network, chip), None):
        owner = sources(network, conflict.reader)[conflict.place]
        copy = _copy(network, owner, conflict.reader)
        notices.append(_notice(conflict, copy))
        index = conflict.reader.index
        network, fixed = inserted(network, fixed, copy, index, {index: conflict.place})
    return network, fixed, tuple(notices)


def _notice(conflict: Conflict, copy: Layer) -> Diagnostic:
    """Data that one layer reads with gaps and another one without has to be there twice."""
    return conflict.reader.diagnostic(
        "N425",
        f"'{copy.name}' copies what is read here: {conflict.reason}",
        ("in_sequences", "op"),
        severity=Severity.NOTICE,
    )


def _copy(network: Network, owner: int, reader: Layer) -> Layer:
    """Return a layer that passes a source on, unchanged."""
    if owner == NETWORK_INPUT:
        name, dim = "input", network.first.in_dim
    else:
        source = network.layer(owner)
        name, dim = source.name or f"layer{owner}", source.out_dim
    channels = channels_of(network, owner)
    return Layer(
        index=reader.index,
        name=unique_name(network, f"{name}_copy"),
        place=reader.place,
        operator=Operator.NONE,
        in_channels=channels,
        out_channels=channels,
        in_dim=dim,
        pooled_dim=dim,
        out_dim=dim,
        sources=(owner,),
    )


def roles_wanted(network: Network, layer: Layer) -> dict[int, Role]:
    """Return the roles that a layer's sources need, by their place among them."""
    match way := reading(network, layer):
        case Reading.OPERANDS:
            count = len(sources(network, layer))
            return {i: Role(count, i) for i in range(count)}
        case Reading.PASS_BY_PASS:
            count = passes(layer.in_channels)
            places = pass_places(network, layer)
            return {i: Role(count, number) for i, (number, _) in enumerate(places)}
        case Reading.ALONE | Reading.SIDE_BY_SIDE:
            return {}
        case _:
            assert_never(way)


def _conflicts(network: Network, chip: Chip) -> Iterator[Conflict]:
    """Yield what has to be copied, in the order of execution."""
    roles: dict[int, tuple[Role, Layer]] = {}
    for layer in network.executed():
        read = sources(network, layer)
        for place, role in roles_wanted(network, layer).items():
            reason = _obstacle(network, chip, layer, place, role, roles)
            if reason is not None:
                yield Conflict(layer, place, reason)
            roles.setdefault(read[place], (role, layer))


def _obstacle(
    network: Network,
    chip: Chip,
    layer: Layer,
    place: int,
    role: Role,
    roles: dict[int, tuple[Role, Layer]],
) -> str | None:
    """Return why a source cannot leave words free for the others; None if it can."""
    read = sources(network, layer)
    owner = read[place]
    if owner == NETWORK_INPUT:
        return "the input is loaded without gaps"
    if owner == DATA_BUFFER:
        return "a rolling buffer has no gaps"
    source = network.layer(owner)
    if owner in read[:place]:
        return f"{source} is read twice"
    if source.buffer_shift or source.buffer_insert or hardware_for(source, None).leading_bytes:
        return f"{source} writes without gaps"
    if owner in roles:
        earlier, other = roles[owner]
        if earlier != role or not _taking_turns(network, owner, other, layer):
            return f"{source} is also read by {other}, with other gaps"
    for reader in network.executed():
        if owner in sources(network, reader) and not _can_skip(network, chip, reader, owner):
            return f"{source} is also read by {reader}, without gaps"
    return None


def _can_skip(network: Network, chip: Chip, reader: Layer, owner: int) -> bool:
    """Whether a layer reads a source with gaps anyway, or can skip them."""
    if roles_wanted(network, reader):
        return True
    plain = reading(network, reader).alone and not reader.flatten
    return plain and chip.has_read_gap and passes(channels_of(network, owner)) == 1


def _taking_turns(network: Network, owner: int, first: Layer, second: Layer) -> bool:
    """Whether the words that a source leaves free are used by one combination after the other."""
    position = {index: i for i, index in enumerate(network.order)}
    before, after = sources(network, first), sources(network, second)
    for a, b in zip(before, after, strict=False):
        if owner in (a, b) or a == b:
            continue
        done = last_reader(network, a)
        if b < 0 or done >= position[b]:
            return False
    return len(before) == len(after)
