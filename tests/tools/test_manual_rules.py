"""Firmware could be written from docs/hardware: its rules give the words of the network loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.program import Program, Write
from device import CHIPS, Chip
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.test_random_networks import encoded, known_counterexamples, trying
from tests.tools.manual_rules import LayerRules, Quantities
from tools.manual.examples import streaming_example


def differences(
    network: MappedNetwork, placement: Placement, program: Program
) -> Iterator[tuple[str, bool]]:
    """Yield each register with the chip's name, and whether it is 0; fail where words differ."""
    chip = program.chip
    steps = (step for block in program.configure for step in block.steps)
    words = {s.address - program.apb_base: s.value for s in steps if isinstance(s, Write)}
    nowhere = (None,) * 4
    layers = [
        Quantities(
            layer,
            chip,
            layer is network.first,
            placement.kernels[layer.index].first,
            placement.biases[layer.index].offsets if layer.index in placement.biases else nowhere,
        )
        for layer in network.layers
    ]
    resets = 0  # layers inserted in front of average pooling behind an element-wise layer
    for number, layer in enumerate(network.layers):
        rules = LayerRules(network, layers, number)
        previous = network.predecessor(layer)
        combined = previous is not None and previous.operands > 1
        resets += chip.name == "MAX78002" and layer.pooling.average and combined
        for group in network.groups_used:
            for name, fields in rules.registers(group).items():
                register = chip.layer_registers[name]
                word = words.get(chip.layer_address(group, layer.index + resets, name), 0)
                told = f"{layer} group {group} {name}: manual {fields}, loader "
                assert word == register.pack(**fields), told + str(register.unpack(word))
                yield f"{chip.name} {name}", word == 0


def test_rules_of_the_manual_give_the_registers_of_random_networks(tmp_path: Path) -> None:
    seen: set[str] = set()

    @trying(60)
    @known_counterexamples
    @given(drawn=random_networks())
    def compare(drawn: RandomNetwork) -> None:
        network, placement, _, program = encoded(drawn, tmp_path)
        compared = differences(network, placement, program)
        seen.update(name for name, is_zero in compared if not is_zero)

    compare()
    rare = {"NXTLYR", "STREAM1", "STREAM2", "FMAX"}
    assert seen >= {f"{c.name} {name}" for c in CHIPS for name in c.layer_registers.keys() - rare}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.name)
def test_rules_of_the_manual_give_the_registers_of_streams(chip: Chip) -> None:
    done = streaming_example(chip).run()
    network = map_network(done.network, done.placement.layout, chip)
    compared = list(differences(network, done.placement, done.program))
    assert (f"{chip.name} STREAM2", False) in compared and (f"{chip.name} FMAX", False) in compared
