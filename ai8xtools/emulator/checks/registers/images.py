"""Images that layers hand on: whether another value of a register makes them fit."""

from __future__ import annotations

import copy

from ai8xtools.emulator.checks.finding import WrongField
from ai8xtools.emulator.checks.registers.facts import LayerFacts
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.layer import decode_layer


def fits_better(facts: LayerFacts, wrong: WrongField) -> bool:
    """Tell whether a layer fits those that feed it and read it better with the expected value.

    Copies of registers in groups that a layer does not use have no effect. But where they agree
    with each other and not with the registers in use, and images fit with their value only, those
    in use are wrong.
    """
    memory, layer = copy.copy(facts.memory), facts.config.layer
    register = memory.chip.layer_registers[wrong.register]
    address = memory.addresses.apb_base
    address += memory.chip.layer_address(facts.config.base_group, layer, wrong.register)
    word = register.by_name[wrong.field].set(memory.registers.get(address, 0), wrong.expected)
    memory.registers = {**memory.registers, address: word}
    return _misfits(facts, decode_layer(memory, layer)) < _misfits(facts, facts.config)


def _misfits(facts: LayerFacts, config: LayerConfig) -> int:
    """Return how many of the layers before and behind use another size than the layer."""
    writers = [layer for layer in facts.before if layer.start.word == config.input.read_word]
    readers = [layer for layer in facts.behind if layer.input.read_word == config.start.word]
    pairs = [(writer, config) for writer in writers[-1:]]
    pairs += [(config, reader) for reader in readers[:1]]
    return sum(_written(writer) != _read(reader) for writer, reader in pairs)


def _written(config: LayerConfig) -> int:
    """Words of the output in a data memory instance."""
    return config.output_size[0] * config.output_size[1] * config.output.passes


def _read(config: LayerConfig) -> int:
    """Words of the input in a data memory instance."""
    return config.input.size[0] * config.input.size[1] * config.input.passes
