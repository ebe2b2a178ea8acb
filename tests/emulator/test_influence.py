"""Kernel bits of which PASS says that they had no influence: inverted, they change no result."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ai8xtools.emulator import Accelerator, NetworkAlone, Writes
from ai8xtools.emulator.decode.config import ActivationFunction, Output, WritePointer
from ai8xtools.emulator.influence.kernels import KernelInfluence, kernel_influence
from ai8xtools.emulator.influence.tolerance import Tolerance, of_sums
from ai8xtools.emulator.machine.arithmetic import finish
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.words import phase_words
from tests.emulator.by_hand import one_by_one
from tests.emulator.conftest import Emulate
from tests.emulator.trees import c_files, generate
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.stages import encode, place, simulate


def influence(memory: Memory, results: list[int]) -> tuple[KernelInfluence, Callable[..., bool]]:
    """Return what is found for a network about to run, and whether a change leaves its results."""

    accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
    accelerator.memory = memory.snapshot()
    run = accelerator.run()
    words = accelerator.data_words()
    right = [words[address] for address in results]

    def unchanged(processor: int, column: int, byte: int, value: int) -> bool:
        changed = memory.snapshot()
        changed.kernels[processor, column, byte] = value
        changed.kernel_version += 1
        accelerator.memory = changed
        NetworkBatch(accelerator).run_in(changed)
        words = accelerator.data_words()
        return [words[address] for address in results] == right

    return kernel_influence(memory.snapshot(), run, results), unchanged


def loaded(program: Program) -> Memory:
    """Return the memory of an accelerator with everything that a program writes."""
    rows: list[tuple[int, int, int]] = []
    for phase, words in phase_words(program).items():
        if phase != "cnn_enable":
            rows += [(4, address, value) for address, value in words.words.items()]
            rows += [(4, address, value) for address, value in words.control]
            rows += [(4, a, value) for a, values in words.pushes.items() for value in values]
    memory = Memory(program.chip, program.apb_base)
    memory.write(Writes.of(rows))
    return memory


@pytest.mark.parametrize("seed", range(6))
def test_bits_of_one_layer_are_counted_if_and_only_if_they_change_nothing(seed: int) -> None:
    """Every bit, on values so small that many sums end just where a result changes."""
    random = np.random.default_rng(seed)
    image = random.integers(-3 * (seed % 2), 4, (4, 1, 2))
    field = ({}, {"absolute": 1}, {})[seed % 3]
    words = one_by_one(image, random.integers(-128, 128, (4, 4)), post=field,
                       lctl={"relu": int(seed % 3 == 2)})  # fmt: skip
    memory = Memory(words.chip)
    memory.write(Writes.of(words.rows))
    base = memory.addresses.apb_base + words.chip.data_address(0, 4 * 0x800)
    found, unchanged = influence(memory, [base, base + 4])
    for *place_, bit in np.argwhere(found.used).tolist():
        value = int(memory.kernels[tuple(place_)])
        assert bool(found.idle[*place_, bit]) == unchanged(*place_, value ^ 1 << bit)
        if found.idle_bytes[tuple(place_)]:
            assert all(unchanged(*place_, other) for other in (value ^ 0x80, 0x80, 0x7F))


@settings(
    max_examples=max(1, round(12 * float(os.environ.get("AI8X_PROPERTIES", "1")))),
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
    ],
)  # fmt: skip
@given(drawn=random_networks())
def test_bits_and_bytes_that_are_counted_change_no_result(
    tmp_path: Path, drawn: RandomNetwork
) -> None:
    """Whatever the layers do, and wherever their kernels are."""
    network, _ = drawn.build(tmp_path)
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=drawn.rounding)
    options = EncodeOptions(average_rounding=drawn.rounding)
    program = encode(network, placement, activations, options)
    memory = loaded(program)
    found, unchanged = influence(memory, program.expected.addresses.tolist())
    random = np.random.default_rng(1)
    bits = np.argwhere(found.idle)
    for *place_, bit in bits[random.permutation(len(bits))[:4]].tolist():
        assert unchanged(*place_, int(memory.kernels[tuple(place_)]) ^ 1 << bit), (place_, bit)
    every = np.argwhere(found.idle_bytes)
    for place_ in every[random.permutation(len(every))[:4]].tolist():
        assert unchanged(*place_, int(random.integers(256))), place_


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    return generate(tmp_path_factory.mktemp("made") / "digits")


def test_nearly_all_bits_without_influence_are_counted(digits: Path) -> None:
    network = NetworkAlone(digits)
    run = network.run()
    assert network.sample_memory is not None
    results = sorted(network.compared)
    found, unchanged = influence(network.sample_memory, results)
    assert len(run.layers) == 4
    bits = np.argwhere(found.used)
    chosen = bits[np.random.default_rng(2).permutation(len(bits))[:100]].tolist()
    kernels = network.sample_memory.kernels
    idle = [
        bool(found.idle[*place, bit])
        for *place, bit in chosen
        if unchanged(*place, int(kernels[tuple(place)]) ^ 1 << bit)
    ]
    assert len(idle) > 10
    assert sum(idle) >= 0.9 * len(idle)


@pytest.mark.parametrize("activation", ActivationFunction)
@pytest.mark.parametrize("shift", [-2, 0, 3, 7, 8])
def test_sums_go_as_far_as_their_outputs_may(activation: ActivationFunction, shift: int) -> None:
    """And, but for the second way to the same value of Abs, no further."""
    nowhere = (WritePointer(0, 0),) * 4
    output = Output(1, 1, 0, False, shift, activation, (None,) * 4, nowhere)
    limit = 140 << max(7 - shift, 0)
    sums = np.unique(np.linspace(-limit, limit, 700).astype(np.int64)).astype(np.float64)
    right = finish(sums, output)
    for up, down in itertools.product((0, 1, 130, np.inf), repeat=2):
        allowed = Tolerance(np.full(sums.shape, up), np.full(sums.shape, down))
        found = of_sums(sums, allowed, output)

        low, high = right - down, right + up
        for way, sign in ((found.up, 1), (found.down, -1)):
            assert (way >= 0).all()
            reach = np.minimum(way, 4 * limit)
            for part in (1, 0.5, 0.1):
                value = finish(sums + sign * np.floor(part * reach), output)
                assert ((low <= value) & (value <= high)).all()
            ends = np.isfinite(way)
            if activation is not ActivationFunction.ABS:
                value = finish(sums + sign * (reach + 1), output)[ends]
                assert ((value < low[ends]) | (value > high[ends])).all()


SENTENCE = r"PASS on one sample; at least ([\d,]+) of ([\d,]+) kernel bytes and ([\d,]+) of ([\d,]+) kernel bits had no influence on it \("  # noqa: E501


def test_verdict_without_an_answer_file_says_what_it_rests_on(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "other")
    lines = [run(folder, *options)[1].splitlines()[-1] for options in ((), ("--accelerator-only",))]
    found = [re.match(SENTENCE, line) for line in lines]
    assert all(found)
    groups = {match.groups() for match in found if match}
    assert len(groups) == 1  # with and without its program
    idle_bytes, every_byte, idle_bits, every_bit = (int(n.replace(",", "")) for n in groups.pop())
    assert 8 * every_byte == every_bit
    assert 0 < 8 * idle_bytes < idle_bits < every_bit
    assert "on one sample" not in run(digits)[1]
    assert re.search(SENTENCE, run(digits, "--no-answer")[1])
