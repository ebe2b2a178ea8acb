"""Words of known answers beside ours, in words: `python -m tests.emulator.compared_projects`.

For every N-th case (`--step`) the words recorded from the vendor's tool are compared with those
that we generate, as --compare-project does; then with one difference of each kind planted in them.
Prints what is told wrongly; the exit status is 1 if a difference is told where there is none, if
one is not told or not by its kind, or if it is unexplained.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ai8xtools.answer import LayerAnswer
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.differences.comparing import word_differences
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words
from ai8xtools.synthesis.answer import build_answer
from ai8xtools.synthesis.pipeline import synthesize
from device.chip import STREAM_REGISTERS
from tests.emulator.faults import loaded_accelerator
from tests.emulator.known_answers import chip_of
from tests.emulator.proofs import images, inputs_of


def register(words: LoadedWords, random: np.random.Generator) -> Subject | None:
    """Change a bit of a field in a register of a layer that is executed."""
    memory, layer = words.memory, int(random.choice([*words.layers]))
    group = int(random.choice(words.layers[layer].used_groups))
    names = [*memory.chip.layer_registers]
    if layer >= memory.chip.max_streaming_layers:
        names = [name for name in names if name not in STREAM_REGISTERS]
    name = str(random.choice(names))
    address = memory.addresses.apb_base + memory.chip.layer_address(group, layer, name)
    fields = memory.chip.layer_registers[name].fields
    field = fields[int(random.integers(len(fields)))]
    memory.registers[address] = memory.registers.get(address, 0) ^ 1 << field.low
    return Subject.REGISTERS


def kernel(words: LoadedWords, random: np.random.Generator) -> Subject | None:
    """Invert a bit of a kernel byte that is not zero."""
    memory = words.memory
    places = np.argwhere(memory.kernels)
    if not len(places):
        return None
    memory.kernels[tuple(places[random.integers(len(places))])] ^= 1 << int(random.integers(8))
    return Subject.KERNELS


def bias(words: LoadedWords, random: np.random.Generator) -> Subject | None:
    """Change a bias that is not zero."""
    memory = words.memory
    places = np.argwhere(memory.bias)
    if not len(places):
        return None
    memory.bias[tuple(places[random.integers(len(places))])] ^= 1
    return Subject.BIASES


def pixel(words: LoadedWords, random: np.random.Generator) -> Subject | None:
    """Change a byte of the input, in data memory or in a FIFO."""
    memory = words.memory
    if memory.pushes:
        queue = memory.pushes[int(random.choice([*memory.pushes]))]
        queue[int(random.integers(len(queue)))] ^= 1 << int(random.integers(8))
        return Subject.INPUT
    first = next(iter(words.layers.values()))
    places = input_bytes(first, memory.data_bytes.shape[1])
    number = int(random.integers(places[0].size))
    place = int(places[0].flat[number]), int(places[1].flat[number])
    memory.data_bytes[place] ^= 1 << int(random.integers(8))
    return Subject.INPUT


def order(words: LoadedWords, random: np.random.Generator) -> Subject | None:
    """Leave out a control write."""
    del words.memory.control[int(random.integers(len(words.memory.control)))]
    return Subject.ORDER


PLANTS = (register, kernel, bias, pixel, order)


def copied(memory: Memory) -> Memory:
    """Return a memory in which all can be changed."""
    other = memory.snapshot()
    other.control = [*memory.control]
    return other


def compared(
    path: Path, words: list[str], seed: tuple[int, int]
) -> Iterator[tuple[str, list[Difference], bool]]:
    """Yield what is compared, what is told, and whether that is right."""
    options = parse(["--test-dir", "out", "--prefix", "net", *words])
    result = synthesize(options.config_file, options.chip, options.resolve, options.encode)
    answer = build_answer(result, "", 1, 0, fixed_input=options.project.fixed_input)
    answers: dict[int, LayerAnswer] = {layer.number: layer for layer in answer.layers}
    ours = LoadedWords.of(
        loaded_accelerator(result).memory, has_input=not options.project.fixed_input
    )
    recording = read_words(path.parent / "golden.npz")
    memory = Memory(chip_of(recording.writes.address))
    memory.write(recording.writes)
    result = [*word_differences(LoadedWords.of(memory, has_input=True), ours, answers)]
    yield "as it is", result, not result
    for number, plant in enumerate(PLANTS):
        random = np.random.default_rng((*seed, number))
        other = LoadedWords.of(copied(memory), has_input=True)
        subject = plant(other, random)
        if subject is None:
            continue
        result = [*word_differences(LoadedWords.of(other.memory, has_input=True), ours, answers)]
        subjects = {one.subject for one in result}
        yield plant.__name__, result, subject in subjects and Subject.UNEXPLAINED not in subjects


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kat", type=Path, default=Path("../shared/kat"), metavar="DIR")
    parser.add_argument("--step", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="GLOB")
    args = parser.parse_args()
    cases = list(images(args.kat, args.patterns))[:: args.step]
    if not cases:
        print(f"error: {args.kat} has no cases {' '.join(args.patterns)}", file=sys.stderr)
        return 1
    counted: Counter[tuple[str, bool]] = Counter()
    for number, (path, case) in enumerate(cases):
        if path.parent.name.startswith("opt-zero-unused"):
            continue  # the option destroys the registers of the last layer
        with inputs_of(path, case) as words:
            try:
                for what, result, right in compared(path, words, (args.seed, number)):
                    counted[what, right] += 1
                    if not right:
                        texts = "; ".join(f"{one.subject.value}: {one.text}" for one in result[:3])
                        print(f"{path.parent.name}, {what}: {texts or 'nothing'}")
            except ToolError as error:
                counted["not compared", False] += 1
                print(f"{path.parent.name}: {error}")
    for what in ("as it is", *(plant.__name__ for plant in PLANTS)):
        print(
            f"  {what:12} {counted[what, True]:4} of {counted[what, True] + counted[what, False]}"
        )
    print(f"{len(cases)} known answers, {counted['not compared', False]} not compared")
    return 1 if any(not right for _, right in counted) else 0


if __name__ == "__main__":
    sys.exit(main())
