"""Flip each bit of each layer register of each group in use, and see what the emulator says.

Works on the words of generated projects: they are compiled once, then only registers change. Every
flip must be reported and the verdict be FAIL, or it must be one of those that provably have no
effect (`WITHOUT_EFFECT`); the exit status is 1 if one is silent.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics import run
from ai8xtools.emulator import Accelerator, EmulatorError, LayerFinding, Writes, run_loader
from ai8xtools.emulator.checks.registers import UNKNOWN_BITS, check_layer, layer_facts
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.synthesis.words import phase_words
from device import CHIPS, Chip
from device.chip import DEFAULT_APB_BASE, STREAM_REGISTERS, WORD_BYTES
from device.registers import Register
from tools.manual.examples import streaming_example

WORD_BITS = 32


class Verdict(Enum):
    """What becomes of a flip; the values head the columns of the table."""

    NAMED = "named"
    """Reported with layer, group, register, field, expected and found value."""
    REPORTED = "reported"
    """The verdict is FAIL for another reason: an error elsewhere, or a wrong result."""
    WITHOUT_EFFECT = "without effect"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Flip:
    """A bit of a layer register in one group.

    `field` is empty where the register has none; else it begins at bit `low`.
    """

    layer: int
    group: int
    register: str
    field: str
    low: int
    bit: int


def _one_window(config: LayerConfig, _rises: bool) -> bool:
    return config.input.pooled == (1, 1)


def _one_pixel(config: LayerConfig, _rises: bool) -> bool:
    return config.output_size == (1, 1) and config.output.passes == 1


def _unpooled(config: LayerConfig, _rises: bool) -> bool:
    return not config.input.pooling


def _wide(config: LayerConfig, _rises: bool) -> bool:
    return config.output.wide


def _never(_config: LayerConfig, _rises: bool) -> bool:
    return False


def _later(config: LayerConfig, rises: bool) -> bool:
    return rises and bool(config.ring_words)


def _reads_fifo(config: LayerConfig, _rises: bool) -> bool:
    return config.layer == 0 and bool(config.ring_words)


def _one_pooled_row(config: LayerConfig, _rises: bool) -> bool:
    return config.input.pool[0] == 1


def _one_pass(config: LayerConfig, _rises: bool) -> bool:
    return config.input.passes == 1


_LATER = "the layer starts or advances later, as options of the loader ask for"
WITHOUT_EFFECT: dict[tuple[str, str], tuple[Callable[[LayerConfig, bool], bool], str]] = {
    ("POST", "shift"): (_wide, "32-bit output is not shifted"),
    ("POST", "shift_right"): (_wide, "32-bit output is not shifted"),
    ("STRIDE", "stride"): (_one_window, "there is one window, and no step to a second"),
    ("LCTL", "max_pool"): (_unpooled, "nothing is pooled"),
    ("LCTL2", "write_step"): (_one_pixel, "there is one pixel, and no step to a second"),
    ("STREAM1", "start"): (_later, _LATER),
    ("STREAM1", "fifo_go"): (_later, "--fifo-go: the layer still waits for its data"),
    ("STREAM2", "delta1"): (_later, _LATER),
    ("STREAM2", "delta2"): (_later, _LATER),
    ("FMAX", "words"): (_later, "a larger ring buffer, as --override-rollover gives it"),
    ("RPTR_BASE", "word"): (_reads_fifo, "data comes from the FIFO; the ring buffer fits there"),
    ("PRCNT", "dilation"): (_one_pooled_row, "windows have one row, and no step to a second"),
    ("LCTL", "read_ahead"): (_one_pass, "data is fetched earlier, in the same order"),
}
"""Fields that have no effect in some layers, when that is so (with a bit that is set), and why."""


class CheckedNetwork:
    """A network whose registers can be changed and that can be run again and again."""

    def __init__(self, chip: Chip, writes: Writes, apb_base: int = DEFAULT_APB_BASE) -> None:
        self._accelerator = Accelerator(chip, apb_base)
        self._accelerator.write(writes)
        self.memory = memory = self._accelerator.memory
        self._data, self._written = memory.data.copy(), memory.data_written.copy()
        self._registers = dict(memory.registers)
        self._pushes = {address: list(words) for address, words in memory.pushes.items()}
        run = self._accelerator.run()
        self.findings = run.findings
        last = run.layers[-1]
        self._result = last.place.instance[:, None], last.words % memory.data.shape[1]
        self._expected = memory.data[self._result].copy()
        self.reset()
        self.layers = self.decoded()

    def reset(self) -> None:
        """Undo runs and flips."""
        memory = self.memory
        memory.registers = dict(self._registers)
        memory.data[:], memory.data_written[:] = self._data, self._written
        memory.pushes = {address: list(words) for address, words in self._pushes.items()}

    def flip(self, flip: Flip) -> bool:
        """Invert a bit; return whether it is set then."""
        memory = self.memory
        address = memory.addresses.apb_base
        address += memory.chip.layer_address(flip.group, flip.layer, flip.register)
        word = memory.registers[address] = memory.registers.get(address, 0) ^ 1 << flip.bit
        return bool(word >> flip.bit & 1)

    def decoded(self) -> list[LayerConfig]:
        """Return the layers that take part, in order."""
        configs: list[LayerConfig] = []
        number: int | None = self.memory.control_register("LCNT_MAX")["first"]
        while number is not None and number not in {config.layer for config in configs}:
            if number >= self.memory.chip.max_layers:
                break
            configs.append(decode_layer(self.memory, number))
            number = configs[-1].next_layer
        return [config for config in configs if any(config.enabled)]

    def run(self) -> tuple[list[LayerFinding], bool]:
        """Run the network; return the findings, and whether the result is as without flips."""
        findings = self._accelerator.run().findings
        return findings, bool(np.array_equal(self.memory.data[self._result], self._expected))


def all_flips(network: CheckedNetwork) -> Iterator[Flip]:
    """Yield every bit of every layer register of every group that a layer uses."""
    chip = network.memory.chip
    for config in network.layers:
        for group in config.used_groups:
            for name, register in chip.layer_registers.items():
                if name in STREAM_REGISTERS and config.layer >= chip.max_streaming_layers:
                    continue
                for bit in range(WORD_BITS):
                    yield Flip(config.layer, group, name, *_field_of(register, bit), bit)


def _field_of(register: Register, bit: int) -> tuple[str, int]:
    """Return the field that holds a bit and where it begins."""
    fields = (f for f in register.fields if f.low <= bit < f.low + f.width)
    return next(((f.name, f.low) for f in fields), ("", 0))


def judge(network: CheckedNetwork, flip: Flip) -> Verdict:
    """Flip a bit and tell what the emulator says; the network is as before afterwards."""
    config = next(layer for layer in network.layers if layer.layer == flip.layer)
    findings: list[LayerFinding] = []
    rises = network.flip(flip)
    try:
        layers = layer_facts(network.memory, network.decoded())
        changed = (facts for facts in layers if facts.config.layer == flip.layer)
        findings = [finding for facts in changed for finding in check_layer(facts)]
        failed = any(finding.is_error for finding in findings)
        if not (failed and any(_names(finding, flip) for finding in findings)):
            findings, right = network.run()
            failed = not right or any(f.is_error for f in findings)
    except EmulatorError:
        failed = True
    finally:
        network.reset()
    if failed:
        named = any(_names(finding, flip) for finding in findings)
        return Verdict.NAMED if named else Verdict.REPORTED
    applies, _ = WITHOUT_EFFECT.get((flip.register, flip.field), (_never, ""))
    return Verdict.WITHOUT_EFFECT if applies(config, rises) else Verdict.SILENT


def _names(finding: LayerFinding, flip: Flip) -> bool:
    """Tell whether a finding is about the bit, and says what its field was and is."""
    wrong = finding.wrong
    if wrong is None or finding.layer != flip.layer:
        return False
    place = wrong.group, wrong.register, wrong.field
    if place != (flip.group, flip.register, flip.field or UNKNOWN_BITS):
        return False
    return wrong.actual ^ wrong.expected == 1 << flip.bit - flip.low


Counts = dict[str, Counter[Verdict]]


def judge_all(network: CheckedNetwork, flips: Iterable[Flip]) -> tuple[Counts, list[Flip]]:
    """Judge flips; return how many there are of each verdict by register, and the silent ones."""
    counts: Counts = defaultdict(Counter)
    judged: dict[Verdict, list[Flip]] = defaultdict(list)
    for flip in flips:
        verdict = judge(network, flip)
        counts[flip.register][verdict] += 1
        judged[verdict].append(flip)
    return counts, judged[Verdict.SILENT]


def table(counts: Counts) -> Iterator[str]:
    """Yield the lines of a table: registers, bits, and verdicts."""
    heads = ("register", "bits", *(verdict.value for verdict in Verdict))
    yield "".join(f"{head:>{_WIDTH}}" for head in heads)
    total: Counter[Verdict] = sum(counts.values(), Counter())
    for name, row in [*counts.items(), ("total", total)]:
        numbers = (sum(row.values()), *(row[verdict] for verdict in Verdict))
        yield f"{name:>{_WIDTH}}" + "".join(f"{number:{_WIDTH},}" for number in numbers)


_WIDTH = 16


def _networks(projects: Iterable[Path], device: str) -> Iterator[tuple[str, CheckedNetwork]]:
    """Yield the networks of projects, and on each chip three layers that stream from a FIFO."""
    for project in projects:
        record = run_loader(project, device)
        yield str(project), CheckedNetwork(record.chip, record.bus.writes())
    for chip in CHIPS:
        yield f"three streaming layers on {chip.name}", CheckedNetwork(chip, streaming_words(chip))


def streaming_words(chip: Chip) -> Writes:
    """Return what the manual's example of three streaming layers writes, with random data.

    The data of the manual make all results equal, so that wrong addresses change none.
    """
    example, random = streaming_example(chip), np.random.default_rng(0)
    sample = random.integers(-128, 128, example.sample.shape)
    weights = [random.integers(-24, 25, kernels.shape) for kernels in example.weights]
    rows = []
    result = replace(example, sample=sample, weights=weights).run()
    for words in phase_words(result.program).values():
        rows += [(WORD_BYTES, address, value) for address, value in words.words.items()]
        rows += [(WORD_BYTES, to, value) for to, values in words.pushes.items() for value in values]
        rows += [(WORD_BYTES, address, value) for address, value in words.control]
    return Writes.of(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="MAX78000", metavar="NAME")
    parser.add_argument("projects", nargs="*", type=Path, metavar="PROJECT_DIR")
    args = parser.parse_args(arguments)
    all_silent = []
    for name, network in _networks(args.projects, args.device):
        counts, silent = judge_all(network, all_flips(network))
        print(f"{name}:", *table(counts), sep="\n", flush=True)
        print(*(f"silent: {flip}" for flip in silent), sep="\n")
        all_silent += silent
    return 1 if all_silent else 0


if __name__ == "__main__":
    sys.exit(run(main))
