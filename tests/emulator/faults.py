"""Random single-word faults, and what the answer file tells of them: `python -m
tests.emulator.faults`.

Each fault changes one word that a generated project writes: a register, a word of `weights.h`, a
bias or a word of the input; half of them in one bit. The words reach the accelerator as the C
writes them. What the answer file tells is compared with the runs of the accelerator with and
without the fault. Prints a table for docs/emulator.md; status 1 if less than 99 % are found.
"""

from __future__ import annotations

import argparse
import copy
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ai8xtools.answer import Answer
from ai8xtools.emulator import Accelerator, EmulatorError, NetworkRun, Writes
from ai8xtools.emulator.comparison.layers import compare_layers
from ai8xtools.emulator.comparison.words import compare_words
from ai8xtools.emulator.comparison.wrong import WrongWord
from ai8xtools.synthesis.answer import build_answer
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.words import final_registers, phase_words
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES
from tests.networks.deployed import DEPLOYED, Deployed, with_random_weights

NETWORKS = (
    "digits-chw-ai85", "mnist-chw-ai85", "mnist-hwc-ai85", "mnist-extrasmall-chw-ai85",
    "mnist-mixed-chw-ai85", "autoencoder-ai85", "kws20-v1-ai85", "kws20-v3-ai85",
    "kws20-nas-ai85", "cifar10-hwc-ai85",
)  # fmt: skip
KINDS = ("register", "kernel", "bias", "input")
REQUIRED = 0.99
SECONDS = 20
"""Longest run of an accelerator with a wrong register."""
MEMORY_BYTES = 4 << 30
"""What it may take; registers can describe images of thousands of rows and columns."""


@dataclass(frozen=True)
class Fault:
    """A word that is written wrongly: writes that follow the right ones, and where it is."""

    kind: str
    writes: Writes
    address: int
    wanted: int


@dataclass(frozen=True)
class Subject:
    """A network whose words are damaged: program, answer, and the accelerator without a fault."""

    name: str
    program: Program
    answer: Answer
    accelerator: Accelerator
    run: NetworkRun


def subject(deployed: Deployed, folder: Path) -> Subject:
    """Return a network with random weights, ready to be damaged."""
    checkpoint, _ = with_random_weights(deployed, folder)
    result = deployed.synthesized(folder, checkpoint)
    answer = build_answer(result, deployed.file, 1, 0, fixed_input=False)
    accelerator = loaded_accelerator(result)
    run = copy.deepcopy(accelerator).run()
    assert compare_layers(run, answer).first is None
    assert not compare_words(accelerator.memory, answer).wrong
    return Subject(deployed.file, result.program, answer, accelerator, run)


def loaded_accelerator(result: Synthesis) -> Accelerator:
    """Return an accelerator to which all words of a program have been written."""
    accelerator = Accelerator(result.chip)
    rows: list[tuple[int, int, int]] = []
    for words in phase_words(result.program).values():
        rows += [(4, address, value) for address, value in words.words.items()]
        rows += [(4, address, value) for address, value in words.control]
        rows += [(4, a, value) for a, values in words.pushes.items() for value in values]
    accelerator.write(Writes.of(rows))
    return accelerator


def damaged(random: np.random.Generator, value: int, bits: int) -> int:
    """Return another value: one bit inverted, or all bits new."""
    if random.integers(2):
        return value ^ 1 << int(random.integers(bits))
    new = int(random.integers(1 << bits))
    return new if new != value else value ^ 1


def fault(kind: str, program: Program, random: np.random.Generator) -> Fault:
    """Return a random fault of a kind."""
    if kind == "register":
        registers = list(final_registers(program).items())
        address, (value, _) = registers[int(random.integers(len(registers)))]
        return _plain(kind, address, value, damaged(random, value, 32))
    if kind == "bias":
        biases = [(b.address + 4 * i, int(v)) for b in program.biases for i, v in
                  enumerate(b.values)]  # fmt: skip
        address, value = biases[int(random.integers(len(biases)))]
        return _plain(kind, address, value, damaged(random, value, 8))
    if kind == "input":
        inputs = [(b.address, b.words) for b in program.inputs]
        number = int(random.integers(sum(len(words) for _, words in inputs)))
        for start, words in inputs:
            if number < len(words):
                value = int(words[number])
                return _plain(kind, start + 4 * number, value, damaged(random, value, 32))
            number -= len(words)
    return _kernel(program, random)


def _plain(kind: str, address: int, value: int, new: int) -> Fault:
    return Fault(kind, Writes.of([(4, address, new)]), address, value)


def _kernel(program: Program, random: np.random.Generator) -> Fault:
    """Change one of the packed words; the columns that it is part of are written anew."""
    sizes = np.array([len(block.words) for block in program.kernels])
    block = program.kernels[int(random.choice(len(sizes), p=sizes / sizes.sum()))]
    while True:
        number = int(random.integers(len(block.words)))
        value = int(block.words[number])
        words = block.words.copy()
        words[number] = damaged(random, value, 32)
        count = 4 * len(words) // KERNEL_COLUMN_BYTES
        old, new = (
            np.frombuffer(w.astype(">u4").tobytes(), np.uint8)[: count * KERNEL_COLUMN_BYTES]
            for w in (block.words, words)
        )
        columns = np.unique(np.flatnonzero(old != new) // KERNEL_COLUMN_BYTES)
        if len(columns):  # else the word is padding
            break
    first = program.chip.column_address(block.address)
    rows = []
    for column in columns.tolist():
        raw = new[column * KERNEL_COLUMN_BYTES :][:KERNEL_COLUMN_BYTES].tobytes()
        address = first + column * KERNEL_COLUMN_STRIDE_BYTES
        for part, piece in enumerate((raw[:1], raw[1:5], raw[5:])):
            rows.append((4, address + 4 * part, int.from_bytes(piece, "big")))
    start = first + int(columns[0]) * KERNEL_COLUMN_STRIDE_BYTES
    return Fault("kernel", Writes.of(rows), start, value)


def first_difference(right: NetworkRun, wrong: NetworkRun) -> int | None:
    """Return the first layer that leaves something else in memory, or that is not executed."""
    for number, done in enumerate(right.layers):
        other = wrong.layers[number] if number < len(wrong.layers) else None
        if other is None or other.config.layer != done.config.layer:
            return done.config.layer
        if done.output.shape != other.output.shape or (done.output != other.output).any():
            return done.config.layer
        if done.config.output.wide != other.config.output.wide:
            return done.config.layer
        places = ((done.words, other.words), (done.place.instance, other.place.instance),
                  (done.place.lane, other.place.lane))  # fmt: skip
        if any((one != two).any() for one, two in places):
            return done.config.layer
    return None


def names(word: WrongWord, damage: Fault) -> bool:
    """Whether a message names the word of a fault, with what it should be."""
    return (word.address, word.expected) == (damage.address, damage.wanted)


def judge(subject: Subject, damage: Fault) -> Iterator[str]:
    """Yield what is true of a fault: changed, stopped, detected, layer, word."""
    accelerator = copy.deepcopy(subject.accelerator)
    accelerator.write(damage.writes)
    words = compare_words(accelerator.memory, subject.answer)
    run = None
    signal.alarm(SECONDS)
    try:
        run = accelerator.run()
    except (EmulatorError, MemoryError, TimeoutError):
        yield "stopped"
    finally:
        signal.alarm(0)
    truth = None if run is None else first_difference(subject.run, run)
    if run is not None and truth is None:
        return
    yield "changed"
    comparison = None if run is None else compare_layers(run, subject.answer, accelerator.memory)
    if words.wrong or (comparison and (comparison.first or comparison.missing)):
        yield "detected"
    told = comparison.first.layer.number if comparison and comparison.first else None
    if told is None and comparison and comparison.missing:
        told = comparison.missing[0]
    if truth is not None and told == truth:
        yield "layer"
    if words.wrong and names(words.wrong[0], damage):
        yield "word"


def table(counts: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield the lines of the table for the manual."""
    yield "| fault in | faults | change a layer | do not run to the end | detected | layer right | word right |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|"
    total: Counter[str] = Counter()
    for kind in KINDS:
        total += counts[kind]
    for kind, count in (*counts.items(), ("all", total)):
        ran = count["changed"] - count["stopped"]
        yield (
            f"| {kind} | {count['faults']} | {count['changed']} | {count['stopped']} | "
            f"{count['detected']} of {count['changed']} | {count['layer']} of {ran} | "
            f"{count['word']} of {count['changed']} |"
        )


def measure(faults: int, networks: tuple[str, ...] = NETWORKS) -> dict[str, Counter[str]]:
    """Try as many faults on each network, of all kinds in turn; return the counts by kind."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    by_name = {deployed.file: deployed for deployed in DEPLOYED}
    for seed, name in enumerate(networks):
        with tempfile.TemporaryDirectory() as folder:
            tried = subject(by_name[name], Path(folder))
        random = np.random.default_rng(seed)
        for number in range(faults):
            kinds = [k for k in KINDS if k != "bias" or tried.program.biases]
            kind = kinds[number % len(kinds)]
            damage = fault(kind, tried.program, random)
            found = set(judge(tried, damage))
            counts[kind] += Counter({"faults": 1, **dict.fromkeys(found, 1)})
            if ("changed" in found and not {"detected", "word"} <= found) or (
                "changed" in found and not found & {"stopped", "layer"}
            ):
                print(f"{name}: {kind} 0x{damage.address:08x}: {sorted(found)}", file=sys.stderr)
    return counts


def out_of_time(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="faults for each network (100)")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, out_of_time)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    counts = measure(args.faults)
    print("\n".join(table(counts)))
    total = sum(counts.values(), Counter())
    ran = total["changed"] - total["stopped"]
    shares = (
        total["detected"] / total["changed"],
        total["layer"] / ran,
        total["word"] / total["changed"],
    )
    return 0 if min(shares) >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
