#!/usr/bin/env python3
"""Compute what the accelerator of a simulated chip would: the open test bench calls this.

FOLDER holds registers.txt (width, address and value of each write) and memories_<run>.txt (kind,
index and value of each entry), as rtl/bench/silicon.svh writes them when the network starts for the
first time (run 0) or again. Writes results.txt: the number of cycles and of errors, then index and
value of each word of data memory. Errors are registers that are wrong in any group that a layer
uses, whatever the result; they are printed. With one-shot each run computes one layer more of what
the memories held at the first; what is written into them between the runs is not seen then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ai8xtools.diagnostics import run
from ai8xtools.emulator import Accelerator, EmulatorError, Writes
from ai8xtools.emulator.report.cycles import STARTUP_CYCLES, network_cycles
from device import Chip, chip_named
from device.chip import DEFAULT_APB_BASE


def register_writes(folder: Path) -> Iterator[tuple[int, int, int]]:
    """Yield the writes to registers, in order."""
    for line in (folder / "registers.txt").read_text(encoding="utf-8").splitlines():
        size, address, value = line.split()
        yield int(size), int(address, 16), int(value, 16)


def memory_writes(file: Path, chip: Chip, apb_base: int) -> Iterator[tuple[int, int, int]]:
    """Yield what the memories hold as writes; digits that are unknown become 0."""
    for line in file.read_text(encoding="utf-8").splitlines():
        kind, text, digits = line.split()
        index, digits = int(text), digits.lower().replace("x", "0")
        if kind == "d":
            yield 4, apb_base + data_address(chip, index), int(digits, 16)
        elif kind == "b":
            group, place = divmod(index, chip.bias_bytes)
            yield 4, apb_base + chip.bias_address(group, place), int(digits, 16)
        else:
            processor, column = divmod(index, chip.kernel_columns_first)
            address = apb_base + chip.kernel_address(processor, column)
            for i, word in enumerate((digits[:2], digits[2:10], digits[10:], "0")):
                yield 4, address + 4 * i, int(word, 16)


def data_address(chip: Chip, index: int) -> int:
    """Return the byte offset of a word, counted over all data memories."""
    instance, word = divmod(index, chip.instance_bytes // 4)
    return chip.data_address(instance, 4 * word)


def results(folder: Path, chip: Chip, apb_base: int, number: int) -> tuple[str, list[str]]:
    """Execute the network or, with one-shot, its next layer.

    Returns the text of results.txt and what is wrong with registers.
    """
    accelerator = Accelerator(chip, apb_base)
    accelerator.write(Writes.of([*register_writes(folder)]))
    one_shot = accelerator.memory.control_register("CTL")["one_shot"]
    memories = folder / f"memories_{0 if one_shot else number}.txt"
    accelerator.write(Writes.of([*memory_writes(memories, chip, apb_base)]))
    run = accelerator.start()
    for _ in range(number if one_shot else 0):
        run = accelerator.start()
    layers = network_cycles(accelerator.memory, [layer.config for layer in run.layers])
    if one_shot:
        layers = layers[-1:]
    cycles = STARTUP_CYCLES + sum(layer.estimate for layer in layers)
    places = {
        apb_base + data_address(chip, index): index
        for index in range(16 * chip.instance_bytes // 4)
    }
    lines = [f"{places[a]} {v:08x}\n" for a, v in accelerator.data_words().items()]
    errors = [str(error) for error in run.errors]
    return f"{cycles} {len(errors)}\n{''.join(lines)}", errors


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=chip_named, required=True)
    parser.add_argument("--apb-base", type=lambda text: int(text, 0), default=DEFAULT_APB_BASE)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", type=int, nargs="?", default=0)
    args = parser.parse_args()
    try:
        text, errors = results(args.folder, args.device, args.apb_base, args.run)
    except EmulatorError as error:
        print(f"error: {error}")
        return 1
    for line in errors:
        print(f"ERROR: {line}")
    (args.folder / "results.txt").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
