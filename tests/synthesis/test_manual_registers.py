"""Every field of every layer register is what the manual of the hardware says, for random layers.

The manual's rules are in `manual.py`; nothing of the code under test is used there.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.encode.layers import layer_blocks
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.writer import RegisterWriter
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement, Stream
from ai8xtools.synthesis.place.streams import place_streams
from ai8xtools.synthesis.program import Write
from device import MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE
from tests.synthesis.manual import (
    RESET,
    RESET_AS_BEHIND,
    Facts,
    layer_fields,
    needs_reset,
    next_layer,
    stream,
)
from tests.synthesis.random_mapped import random_network, random_placement
from tests.synthesis.stages import encoding

NETWORKS = 150


def written(network: MappedNetwork, placement: Placement, options: EncodeOptions) -> dict[int, int]:
    """Return the words of the layer registers by address."""
    numbering = Numbering.of(network.network, network.chip, options.place.repeat_layers)
    writer = RegisterWriter(network.chip, options.apb_base, write_zeros=False)
    blocks = layer_blocks(network, placement, writer, numbering, options)
    steps = [s for block in blocks for s in block.steps if isinstance(s, Write) and not s.skipped]
    found = {s.address: s.value for s in steps}
    assert len(found) == len(steps)
    return found


def options_of(rng: Random, network: MappedNetwork) -> EncodeOptions:
    """Return options that change layer registers, most of them as usual."""
    changes: dict[str, Any] = {}
    for name in ("start", "rollover", "delta1", "delta2"):
        if rng.random() < 0.1:
            changes[f"override_{name}"] = rng.randint(0, 31)
    for name in ("start", "delta1", "delta2"):
        if rng.random() < 0.2:
            changes[f"increase_{name}"] = rng.randint(0, 5)
    changes["pipeline"] = rng.choice([None, True, False])
    if network.chip is MAX78002:
        changes |= {"fifo_go": rng.random() < 0.2, "link_layer": rng.random() < 0.1}
    changes["repeat_layers"] = rng.choice([1, 1, 3])
    if network.streams or network.input_port.is_fifo:  # their registers are few
        changes["repeat_layers"] = 1
    changes["apb_base"] = rng.choice([DEFAULT_APB_BASE, 0x60000000])
    return encoding(**changes)


def wanted(
    network: MappedNetwork, placement: Placement, options: EncodeOptions
) -> Iterator[tuple[int, int, str, dict[str, int]]]:
    """Yield hardware layer, group, register and fields, as the manual has them."""
    number = 0
    for _ in range(options.place.repeat_layers):
        for layer in network.network.layers:
            reset = needs_reset(network, layer.index)
            number += reset
            for group in network.groups_used:
                fields = layer_fields(network, placement, layer.index, group, options)
                if network.chip is MAX78002:
                    fields["NXTLYR"] = next_layer(network, layer.index, options)
                for name, values in fields.items():
                    yield number + network.order[0], group, name, values
                if reset and group == network.groups_used[0]:
                    behind = {name: fields.get(name, {}) for name in RESET_AS_BEHIND}
                    for name, values in (RESET | behind).items():
                        yield number + network.order[0] - 1, group, name, values
            number += 1


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_every_field_is_what_the_manual_says(chip: Chip) -> None:
    """All addresses are looked at: what the manual does not name is zero."""
    rng = Random(f"registers of {chip.name}")
    used: set[tuple[str, str]] = set()
    for _ in range(NETWORKS):
        network = random_network(rng, chip)
        options = options_of(rng, network)
        streams = place_streams(network, options.place.streams)
        placement = random_placement(
            rng, network, streams, {x.index: Facts(network, x.index) for x in network.layers}
        )
        try:
            words = written(network, placement, options)
        except DiagnosticError:  # a value is beyond its field
            continue
        for number, group, name, fields in wanted(network, placement, options):
            address = options.apb_base + chip.layer_address(group, number, name)
            register, word = chip.layer_registers[name], words.pop(address, 0)
            used |= {(name, field) for field in fields}
            found = {k: v for k, v in register.unpack(word).items() if v}
            assert found == fields, (name, group, number, network.layers, network.order)
        if network.input_port.is_fifo:
            rows, columns = network.network.layers[0].in_dim
            planar = network.layout.layers[0].channels_first
            frame = -(-rows * columns // 4) if planar else rows * columns
            for group in network.groups_used:
                address = options.apb_base + chip.control_address(group, "IFRM")
                assert words.pop(address) == frame
        assert not words
    every = {(r.name, k) for r in chip.layer_registers.values() for k in r.by_name}
    never = {("POST", k) for k in ("tcalc", "calcx4", "depthwise") if chip is MAX78000}
    assert every - used == never


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_streams_start_and_move_as_the_manual_says(chip: Chip) -> None:
    """More of them: where rows and columns differ, few layers tell the rules apart."""
    rng = Random(f"streams of {chip.name}")
    seen: dict[str, int] = dict.fromkeys(("layers", "one column", "planar", "ahead"), 0)
    for _ in range(700):
        network = random_network(rng, chip, streams=True)
        options = options_of(rng, network).place.streams
        found = place_streams(network, options)
        for index in network.order:
            facts = Facts(network, index)
            fed = facts.first and network.input_port.is_fifo
            wanted = stream(facts, options) if facts.layout.streaming or fed else (0, 0, 0, 0)
            wanted = wanted if facts.layout.streaming else (wanted[0], 0, 0, 0)
            place, ahead = found.pop(index, Stream()), facts.layout.read_ahead
            assert (place.start, place.delta1, place.delta2, place.rollover) == wanted
            seen["layers"] += facts.layout.streaming
            seen["one column"] += facts.layout.streaming and facts.columns == 1
            seen["planar"] += facts.layout.streaming and facts.layout.channels_first
            seen["ahead"] += chip is MAX78000 or (ahead and facts.layout.streaming)
        assert not found
    assert min(seen.values()) > 50
