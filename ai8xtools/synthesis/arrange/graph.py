"""What each layer reads, and how the parts of it come together.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

import enum
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network
from device.channels import channels_per_pass, passes


class Reading(enum.StrEnum):
    """How a layer's sources come together."""

    ALONE = "one source"
    OPERANDS = "operands of a combination"
    SIDE_BY_SIDE = "channels side by side in one pass"
    PASS_BY_PASS = "channels of one pass after those of another"

    @property
    def alone(self) -> bool:
        """Whether there is one source only."""
        match self:
            case Reading.ALONE:
                return True
            case Reading.OPERANDS | Reading.SIDE_BY_SIDE | Reading.PASS_BY_PASS:
                return False
            case _:
                assert_never(self)

    @property
    def shares_pass(self) -> bool:
        """Whether several sources stand in one pass."""
        match self:
            case Reading.SIDE_BY_SIDE:
                return True
            case Reading.ALONE | Reading.OPERANDS | Reading.PASS_BY_PASS:
                return False
            case _:
                assert_never(self)

    @property
    def tied(self) -> bool:
        """Whether sources stand in the same processors, a word apart."""
        match self:
            case Reading.OPERANDS | Reading.PASS_BY_PASS:
                return True
            case Reading.ALONE | Reading.SIDE_BY_SIDE:
                return False
            case _:
                assert_never(self)


def refusal(layer: Layer, message: str, keys: str | tuple[str, ...], remedy: str) -> Diagnostic:
    """Return the refusal of a layer that cannot be arranged, whatever its places are."""
    return layer.diagnostic("E420", message, keys, remedy)


def sources(network: Network, layer: Layer) -> tuple[int, ...]:
    """Return what a layer reads: layers by index, NETWORK_INPUT or DATA_BUFFER."""
    if layer.sources is not None:
        return layer.sources
    previous = network.predecessor(layer)
    return (NETWORK_INPUT if previous is None else previous.index,)


def channels_of(network: Network, owner: int) -> int:
    """Return the channels of the sample, of the buffer or of a layer's result."""
    if owner == NETWORK_INPUT:
        return network.first.in_channels
    if owner == DATA_BUFFER:
        assert network.buffer is not None
        return network.buffer.channels
    return network.layer(owner).out_channels


def pixels_of(network: Network, owner: int) -> int:
    """Return the pixels of the sample, of the buffer or of a layer's result."""
    if owner == NETWORK_INPUT:
        rows, columns = network.first.in_dim
    elif owner == DATA_BUFFER:
        assert network.buffer is not None
        rows, columns = network.buffer.entries, network.buffer.width
    else:
        rows, columns = network.layer(owner).out_dim
    return rows * columns


def reading(network: Network, layer: Layer) -> Reading:
    """Return how a layer's sources come together; raise DiagnosticError for what has no form."""
    read = sources(network, layer)
    if len(read) == 1:
        if layer.combination and read != (NETWORK_INPUT,):
            raise DiagnosticError(
                refusal(
                    layer,
                    f"{layer.operands} operands of one source cannot be arranged",
                    ("operands", "in_sequences"),
                    "Name each operand in 'in_sequences', or state the places of all layers.",
                )
            )
        return Reading.ALONE
    if layer.combination:
        if len(read) == layer.operands:
            return Reading.OPERANDS
        raise DiagnosticError(
            refusal(
                layer,
                f"{len(read)} sources for {layer.operands} operands cannot be arranged",
                ("in_sequences", "operands"),
                "Join the sources in a layer before.",
            )
        )
    if len({pixels_of(network, s) for s in read}) > 1 or layer.in_channels != sum(
        channels_of(network, s) for s in read
    ):
        raise DiagnosticError(
            refusal(
                layer,
                "sources whose pixels are joined cannot be arranged",
                ("in_sequences", "in_dim"),
                "State the places of all layers.",
            )
        )
    return Reading.SIDE_BY_SIDE if layer.in_channels <= 64 else Reading.PASS_BY_PASS


def pass_places(network: Network, layer: Layer) -> tuple[tuple[int, int], ...]:
    """Return pass and first channel within it of each part that a layer joins.

    Raises DiagnosticError if a part crosses from one pass into the next.
    """
    share, places, first = channels_per_pass(layer.in_channels), [], 0
    for owner in sources(network, layer):
        count = channels_of(network, owner)
        number, place = divmod(first, share)
        if passes(count) > 1 or place + count > share or place % 4:
            raise DiagnosticError(_crossing(network, layer, owner, share))
        places.append((number, place))
        first += count
    return tuple(places)


def _crossing(network: Network, layer: Layer, owner: int, share: int) -> Diagnostic:
    """The channels of a pass stand next to each other, those of the next pass behind them."""
    what = "the input" if owner < 0 else f"those of {network.layer(owner)}"
    counts = " + ".join(str(channels_of(network, s)) for s in sources(network, layer))
    return refusal(
        layer,
        f"{counts} channels are joined, {passes(layer.in_channels)} passes of {share}; "
        f"{what} do not stand in one pass",
        ("in_sequences", "op"),
        f"Join parts that fill passes of {share} channels, in multiples of 4.",
    )
