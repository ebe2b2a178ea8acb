"""Decoding is the inverse of packing, and checks name the field that was damaged."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ai8xtools.emulator.checks.finding import WrongField
from ai8xtools.emulator.checks.registers import GROUP_RULES, RULES, check_registers, layer_facts
from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts
from ai8xtools.emulator.checks.registers.groups import OWN_FIELDS, registers_of
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, Chip
from tests.emulator.packing import Made, drawn, kinds_of, pack, set_field, start

Place = tuple[str, str]

DETERMINED = {
    ("ONED", "time_slots"), ("ONED", "elementwise_convolution"), ("WPTR_TOFFS", "words"),
    ("WPTR_MOFFS", "words"), ("LCTL", "always"), ("LCTL", "pool"), ("TPTR", "first"),
    ("TPTR", "last"), ("POST", "one_by_one"),
    ("ENA", "kernels"), ("STREAM1", "start"), ("STREAM1", "fifo_go"), ("FMAX", "words"),
    ("STREAM2", "passes_before"), ("STREAM2", "delta1"), ("STREAM2", "delta2"),
    ("NXTLYR", "layer"), ("RCNT", "skip"), ("LCTL", "sources"),
}  # fmt: skip
"""Fields of a layer that does not stream that follow from the others."""
ROUNDED = {
    ("RCNT", "last"), ("CCNT", "last"), ("PRCNT", "last"), ("PCCNT", "last"), ("MCNT", "first"),
    ("MCNT2", "first"), ("STRIDE", "words"), ("LCTL2", "last_output"), ("WPTR_BASE", "pointer"),
}  # fmt: skip
"""Fields of which a wrong value may only be told to be no multiple of something, or too large."""
MODES = {
    ("ENA", "processors"), ("POST", "bias_offset"), ("POST", "bias"), ("LCTL", "shift_count"),
    ("POST", "depthwise"), ("POST", "time_slots"), ("LCTL", "sources"), ("ENA", "kernels"),
    ("WPTR_TOFFS", "words"),
}  # fmt: skip
"""Fields that say what the layer is, or what depends on the group."""


def layers(chip: Chip, count: int, seed: int) -> list[tuple[Memory, Made]]:
    """Return memories with the registers of a single layer."""
    draw, made = random.Random(f"{chip.name} {seed}"), []
    for number in range(count):
        kind = kinds_of(chip)[number % len(kinds_of(chip))]
        place = draw.randrange(12) if chip.max_start_layer else 0
        memory, layer = Memory(chip), drawn(draw, chip, place, kind, is_start=True)
        pack(memory, layer)
        start(memory, place, place)
        made.append((memory, layer))
    return made


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_layer_is_decoded_as_it_was_packed_and_nothing_is_said_of_it(chip: Chip) -> None:
    seen = Counter[object]()
    for memory, made in layers(chip, 120, 1):
        config = made.config
        assert decode_layer(memory, config.layer) == config
        assert [str(finding) for finding in check_registers(memory, [config])] == []
        seen[config.kind] += 1
        seen["long"] += config.input.passes > 16
        seen["transposed"] += config.transposed
        seen["conv1d"] += config.conv1d
        seen["several"] += config.input.operands > 1
        seen["wide"] += config.output.wide
        seen["ahead"] += made.read_ahead
        seen["four"] += config.kernels.four_at_once
        seen["bypass"] += config.kernels.bypass
        seen["spread"] += config.broadcast
    lacking = {key for key, count in seen.items() if count < 2}
    assert lacking == (set() if chip.has_depthwise else {"ahead", "four", "bypass", "spread"})


def spoken(memory: Memory, layer: int, place: Place) -> list[tuple[int, Expectation]]:
    """Return what rules expect of a field that has another value, with the group."""
    config = decode_layer(memory, layer)
    (facts,) = layer_facts(memory, [config])
    found = []
    shared = [expected for rule in RULES for expected in rule(facts)]
    for group in config.used_groups:
        own = [e for rule in GROUP_RULES for e in rule(facts, group)]
        for expected in (*own, *shared):
            value = memory.register(layer, expected.register, group).get(expected.field, 0)
            if (expected.register, expected.field) == place and value not in expected.allowed:
                found.append((group, expected))
    return found


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_damaged_field_is_told_and_the_value_before_the_damage_is_right(chip: Chip) -> None:
    draw, told = random.Random(4), Counter[tuple[Place, bool]]()
    for memory, made in layers(chip, 9, 2):
        layer, kept = made.config.layer, dict(memory.registers)
        own = {g: memory.register(layer, "POST", g)["bias"] for g in range(4)}
        for name, register in chip.layer_registers.items():
            if layer >= chip.max_streaming_layers and name in ("STREAM1", "STREAM2", "FMAX"):
                continue
            for field in register.fields:
                place = name, field.name
                right = {g: memory.register(layer, name, g)[field.name] for g in range(4)}
                base = right[made.config.base_group]
                values = {base + 1, base - 1, base ^ 1 << draw.randrange(field.width)}
                for value in sorted(values - {base}):
                    if not 0 <= value < 1 << field.width:
                        continue
                    groups = range(4) if place not in MODES else [made.config.base_group]
                    for group in groups:
                        set_field(memory, layer, group, place, value)
                    if place != ("ENA", "processors") or value:
                        found = spoken(memory, layer, place)
                        told[place, bool(found)] += 1
                        if place not in ROUNDED | MODES:
                            for group, expected in found:
                                assert right[group] in expected.allowed, (expected, base, value)
                    memory.registers = dict(kept)
        assert own == {g: memory.register(layer, "POST", g)["bias"] for g in range(4)}
    for place in DETERMINED:
        register = chip.layer_registers.get(place[0])
        assert told[place, True] or register is None or place[1] not in register.by_name, place
        assert told[place, False] == 0, place


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_field_that_is_damaged_in_one_group_is_named_with_the_value_of_the_others(
    chip: Chip,
) -> None:
    draw, told = random.Random(6), 0
    for memory, made in layers(chip, 7, 3):
        config, layer = made.config, made.config.layer
        if len(config.used_groups) < 2:
            continue
        kept = dict(memory.registers)
        for name, register in registers_of(layer_facts_of(memory, made)).items():
            field = draw.choice(register.fields)
            place = name, field.name
            if place in OWN_FIELDS:
                continue
            group = draw.choice([g for g in config.used_groups if g != config.base_group])
            right = memory.register(layer, name, group)[field.name]
            value = right ^ 1 << draw.randrange(field.width)
            set_field(memory, layer, group, place, value)
            found = [f.wrong for f in check_registers(memory, [decode_layer(memory, layer)])]
            assert WrongField(group, *place, right, value) in found
            told += 1
            address = memory.addresses.apb_base + chip.layer_address(group, layer, name)
            known = {n for f in register.fields for n in range(f.low, f.low + f.width)}
            meaningless = sorted(set(range(32)) - known)
            memory.registers = dict(kept)
            if meaningless:
                bit = draw.choice(meaningless)
                memory.registers[address] = memory.registers.get(address, 0) | 1 << bit
                found = [f.wrong for f in check_registers(memory, [config])]
                assert [(w.group, w.register, w.actual) for w in found if w] == [
                    (group, name, 1 << bit)
                ]
            memory.registers = dict(kept)
    assert told > 20


def layer_facts_of(memory: Memory, made: Made) -> LayerFacts:
    (facts,) = layer_facts(memory, [made.config])
    return facts
