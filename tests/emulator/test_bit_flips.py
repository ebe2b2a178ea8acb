"""A sample of `make measure WHAT=bit-flips`, and registers that only streams and FIFOs use."""

from __future__ import annotations

import random

import pytest

from ai8xtools.emulator import Accelerator, LayerFinding, run_loader
from ai8xtools.emulator.checks.finding import Severity
from ai8xtools.emulator.checks.registers import check_registers
from device import CHIPS, Chip
from device.chip import INSTANCES
from tests.emulator.trees import generate
from tools.bit_flips import CheckedNetwork, Verdict, all_flips, judge_all, streaming_words

FLIPS = 100


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> CheckedNetwork:
    """The network of the digits, which uses three groups."""
    project = generate(tmp_path_factory.mktemp("made") / "digits")
    record = run_loader(project, "MAX78000")
    return CheckedNetwork(record.chip, record.bus.writes())


def test_flipped_bits_are_told(digits: CheckedNetwork) -> None:
    flips = random.Random(4).sample(list(all_flips(digits)), FLIPS)
    assert {flip.group for flip in flips} == {0, 1, 2}
    counts, silent = judge_all(digits, flips)
    assert silent == []
    named = sum(row[Verdict.NAMED] for row in counts.values())
    assert named >= 0.9 * FLIPS


@pytest.fixture(scope="module", params=CHIPS, ids=lambda chip: chip.name)
def streams(request: pytest.FixtureRequest) -> Accelerator:
    """An accelerator with three streaming layers and the words of a FIFO."""
    chip: Chip = request.param
    accelerator = Accelerator(chip)
    accelerator.write(streaming_words(chip))
    assert findings(accelerator) == []
    return accelerator


def findings(accelerator: Accelerator) -> list[LayerFinding]:
    """Return what is wrong with the registers of the layers."""
    return list(check_registers(accelerator.memory, accelerator.planned_layers()))


def changed(accelerator: Accelerator, address: int, change: int) -> list[LayerFinding]:
    """Return what is said of a register whose word is inverted in some bits, for a moment."""
    registers = accelerator.memory.registers
    word = registers.get(address, 0)
    registers[address] = word ^ change
    try:
        return findings(accelerator)
    finally:
        registers[address] = word


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize(
    ("register", "field"),
    [("STREAM1", "start"), ("STREAM2", "delta1"), ("STREAM2", "delta2"), ("FMAX", "words")],
)
def test_values_of_streams_are_told(
    register: str, field: str, layer: int, streams: Accelerator
) -> None:
    """Smaller values are errors, larger ones if the ring buffer does not fit, else notes."""
    memory = streams.memory
    for group in streams.planned_layers()[layer].used_groups:
        address = memory.addresses.apb_base + memory.chip.layer_address(group, layer, register)
        known = memory.chip.layer_registers[register].by_name[field]
        value = memory.register(layer, register, group)[field]
        for bit in range(known.width):
            found = changed(streams, address, 1 << bit + known.low)
            words = [f for f in found if f.wrong and f.wrong.register == register]
            own = [f.wrong for f in words if f.wrong and f.wrong.group == group]
            assert [(w.expected, w.actual) for w in own if w.field == field][:1] == [
                (value, value ^ 1 << bit)
            ]
            if value ^ 1 << bit < value:
                assert words[0].severity is Severity.ERROR


def test_no_layer_streams_before_the_first(streams: Accelerator) -> None:
    """The first layer takes its input from a FIFO, whatever the chip."""
    memory = streams.memory
    address = memory.addresses.apb_base + memory.chip.layer_address(0, 0, "STREAM2")
    found = changed(streams, address, 1)
    errors = [str(finding) for finding in found if finding.severity is Severity.ERROR]
    assert any("passes_before: expected 0, found 1" in error for error in errors)


def test_ring_buffers_share_no_memory(streams: Accelerator) -> None:
    memory, second = streams.memory, streams.planned_layers()[1]
    address = memory.addresses.apb_base + memory.chip.layer_address(0, 0, "RPTR_BASE")
    found = changed(streams, address, second.input.read_word)
    (error,) = [str(finding) for finding in found if finding.severity is Severity.ERROR]
    assert "ring buffer of layer 0" in error
    assert "ring buffer of layer 1" in error


def test_words_that_a_small_input_never_reaches_are_free(streams: Accelerator) -> None:
    """A ring buffer that is larger than the input takes no more than the input."""
    memory, first, second = streams.memory, *streams.planned_layers()[:2]
    rows, columns = first.input.size
    before = second.input.read_word - rows * columns
    base, chip = memory.addresses.apb_base, memory.chip
    pointer, size = (
        base + chip.layer_address(0, 0, register) for register in ("RPTR_BASE", "FMAX")
    )
    known = memory.registers[size]
    memory.registers[size] = rows * columns + 1
    try:
        texts = [str(finding) for finding in changed(streams, pointer, before)]
        assert not any("share data memory" in text for text in texts)
        (text,) = [
            str(f) for f in changed(streams, pointer, before + 1) if f.severity is Severity.ERROR
        ]
        assert f"words 0x{before + 1:x} to 0x{second.input.read_word:x}" in text
    finally:
        memory.registers[size] = known


def test_output_begins_in_an_instance(streams: Accelerator) -> None:
    memory = streams.memory
    address = memory.addresses.apb_base + memory.chip.layer_address(0, 0, "WPTR_BASE")
    beyond = INSTANCES * memory.chip.write_pointer_words
    assert any(finding.severity is Severity.ERROR for finding in changed(streams, address, beyond))


def test_frame_size_is_told(streams: Accelerator) -> None:
    memory = streams.memory
    address = memory.addresses.apb_base + memory.chip.control_address(0, "IFRM")
    assert memory.registers[address] == 8 * 32
    for bit in range(17):
        (found,) = changed(streams, address, 1 << bit)
        assert found.severity is Severity.ERROR
        assert f"IFRM (0x{address:08x}) size: expected 256, found {256 ^ 1 << bit}" in str(found)
