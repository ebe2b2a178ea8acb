"""Recorded traces of the known-answer suite: what the reference tool's firmware wrote to the bus.

Written from the description of the suite alone, so that it shares no mistake with the loader.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from device import Chip, chip_named
from device.chip import GROUPS, PROCESSORS

CASES = Path(__file__).resolve().parents[3] / "shared" / "kat" / "cases"
PHASES = (
    "cnn_enable",
    "cnn_init",
    "cnn_load_weights",
    "cnn_load_bias",
    "cnn_configure",
    "load_input",
    "cnn_start",
)
APB_BASE = 0x50000000
FIFO_DATA = (*(APB_BASE + 8 + 4 * i for i in range(4)), 0x400C0410)
POWER = tuple(0x40005800 + 4 * i for i in range(4))
FAST_FIFO_CONTROL = (0x400C0400, 0x400C0408)
ALWAYS_ON = 0x50001000


def names(kind: str) -> list[str]:
    """Return the names of the cases of a kind (`image` or `reject`); none without the suite."""
    found = sorted(path.parent.name for path in CASES.glob("*/case.json"))
    return [name for name in found if name.startswith("reject-") == (kind == "reject")]


@dataclass
class Phase:
    """Final words by address, ordered control writes, and pushes of each FIFO."""

    words: dict[int, int] = field(default_factory=dict)
    control: list[tuple[int, int]] = field(default_factory=list)
    pushes: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A case of the suite."""

    folder: Path
    args: tuple[str, ...]
    inputs: dict[str, str]
    setup: dict[str, str]
    forbidden: tuple[str, ...]
    chip: Chip

    @staticmethod
    def load(name: str) -> Case:
        """Read the description of a case."""
        folder = CASES / name
        found = json.loads((folder / "case.json").read_text())
        return Case(
            folder,
            tuple(found["args"]),
            found["inputs"],
            found.get("setup", {}),
            tuple(found.get("forbidden", ())),
            chip_named(found["device"]),
        )

    def unpack(self, target: Path) -> None:
        """Put the inputs of the case, and what exists beforehand, into a folder."""
        for name, stored in self.inputs.items():
            data = (self.folder / stored).read_bytes()
            write(target / name, lzma.decompress(data) if stored.endswith(".xz") else data)
        for name, text in self.setup.items():
            write(target / name, text.encode())

    def golden(self) -> dict[str, Any]:
        """Return the recorded arrays."""
        with np.load(self.folder / "golden.npz") as arrays:
            return dict(arrays)


def write(path: Path, data: bytes) -> None:
    """Write a file into folders that are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def phases(golden: dict[str, Any], chip: Chip) -> dict[str, Phase]:
    """Sort the recorded writes of phases 0 to 6 by what they do."""
    ordered = {APB_BASE, ALWAYS_ON, *POWER, *FAST_FIFO_CONTROL}
    for group in range(GROUPS):
        for register in ("CTL", "SRAM_TEST"):
            ordered.add(APB_BASE + chip.control_address(group, register))
    found = {name: Phase() for name in PHASES}
    kernels = _KernelPort(chip)
    columns = (golden[name].tolist() for name in ("phase", "size", "addr", "value"))
    for number, size, address, value in zip(*columns, strict=True):
        if number >= len(PHASES):
            continue
        phase = found[PHASES[number]]
        if kernels.takes(address, size, value, phase.words):
            continue
        if address in FIFO_DATA:
            phase.pushes.setdefault(address, []).append(value)
        elif address in ordered:
            phase.control.append((address, value))
        else:
            _merge(phase.words, address, size, value)
    return found


def _merge(words: dict[int, int], address: int, size: int, value: int) -> None:
    """Store 1, 2 or 4 bytes of a little-endian word."""
    shift = 8 * (address % 4)
    mask = (1 << 8 * size) - 1 << shift
    words[address & ~3] = words.get(address & ~3, 0) & ~mask | value << shift


class _KernelPort:
    """Decodes the packed transfer of kernels into the words of plain transfer."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.processors = {
            (APB_BASE + chip.kernel_address(p)) // chip.kernel_stride: p for p in range(PROCESSORS)
        }
        self.column = 0
        self.processor: int | None = None
        self.stream = b""

    def takes(self, address: int, size: int, value: int, words: dict[int, int]) -> bool:
        """Return whether a write belongs to a packed transfer, and decode it."""
        processor = self.processors.get(address // self.chip.kernel_stride)
        if processor is None:
            return False
        if size == 1 and address % 4 == 1:
            # A byte written to address|1 opens a run at column (address - base) / 4.
            self.processor, self.stream = processor, b""
            self.column = (address % self.chip.kernel_stride) // 4
            return True
        if self.processor is None:
            return False
        self.stream += value.to_bytes(4, "big")
        while len(self.stream) >= 9:
            at = APB_BASE + self.chip.kernel_address(self.processor, self.column)
            for part, (first, last) in enumerate(((0, 1), (1, 5), (5, 9))):
                words[at + 4 * part] = int.from_bytes(self.stream[first:last], "big")
            self.stream, self.column = self.stream[9:], self.column + 1
        return True
