"""Damaged containers in Python and C: `make measure WHAT=container-fuzz`.

Every byte of three files is damaged in every way; then thousands of files are cut off or changed,
most of them under right checksums, and every field of five is one more and one less. The C reader
runs with sanitizers in memory of exactly the size of the file; it has to say what Python says, and
to compute the same outputs where the file is accepted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from ai8xtools.software.container.pack import seal_checksums
from ai8xtools.software.container.records import HEADER_BYTES, LAYER_BYTES, TENSOR_BYTES
from tests.software.container_answers import check_of
from tests.software.container_fields import neighbours, planned
from tests.software.containers import KINDS, RECIPES, made
from tests.software.nnb_in_c import build_driver, computed, statuses

_THREE = ("convolutions", "windows", "packed")
_SEALED = 0.8
_BATCH = 1000


def damaged(random: np.random.Generator, blob: bytes) -> bytes:
    """Return a file cut off, or with some fields of its tables changed."""
    if random.random() < 0.1:
        return blob[: random.integers(0, len(blob))]
    changed = bytearray(blob)
    tables = int.from_bytes(blob[0x28:0x2C], "little")
    for _ in range(random.integers(1, 4)):
        place = _place(random, blob, tables, len(blob))
        if random.random() < 0.5:
            changed[place] ^= 1 << random.integers(0, 8)
        else:
            changed[place] = random.choice([0, 1, 2, 0x7F, 0x80, 0xFF, random.integers(0, 256)])
    if random.random() < _SEALED:
        changed = bytearray(seal_checksums(bytes(changed)))
    return bytes(changed)


def _place(random: np.random.Generator, blob: bytes, tables: int, size: int) -> int:
    """Return a byte of the header, of a tensor, of a layer, or any."""
    tensors, layers = (int.from_bytes(blob[at : at + 4], "little") for at in (0x18, 0x1C))
    layer_table = int.from_bytes(blob[0x24:0x28], "little")
    match random.integers(0, 9):
        case 0:
            return int(random.integers(0, HEADER_BYTES))
        case 1 | 2 | 3:
            return int(HEADER_BYTES + random.integers(0, TENSOR_BYTES * tensors))
        case 4 | 5 | 6:
            return int(layer_table + random.integers(0, LAYER_BYTES * layers))
        case 7 if layer_table + LAYER_BYTES * layers < tables:  # inputs and programs
            return int(random.integers(layer_table + LAYER_BYTES * layers, tables))
        case _:
            return int(random.integers(tables, size))


def every_byte(program: Path, folder: Path) -> int:
    """Damage every byte of three files; return how many damaged files are accepted."""
    wrong = 0
    for recipe in _THREE:
        blob = made(recipe)
        accepted, _, tried = statuses(program, [blob], folder, "bytes", "255")[0].split()
        missed = 0
        for place in range(len(blob)):
            for mask in range(1, 256):
                changed = bytearray(blob)
                changed[place] ^= mask
                missed += check_of(bytes(changed)) is None
        print(f"{recipe}: {len(blob)} bytes, {tried} damaged files, accepted in C {accepted}, "
              f"in Python {missed}", flush=True)  # fmt: skip
        wrong += int(accepted) + missed
    return wrong


def mutations(program: Path, folder: Path, count: int, seed: int) -> int:
    """Open and run damaged files in both; return how many differ in status or output."""
    random = np.random.default_rng(seed)
    intact = [made(recipe, kind, 5) for recipe in RECIPES for kind in KINDS]
    intact += [planned(blob) for blob in intact]
    files = (damaged(random, intact[number % len(intact)]) for number in range(count))
    return compared(program, folder, "damaged files", files)


def fields(program: Path, folder: Path) -> int:
    """Change every field a little; return how many files differ in status or output."""
    wrong = 0
    for recipe in RECIPES:
        for name, blob in (("", made(recipe)), (", planned", planned(made(recipe)))):
            wrong += compared(program, folder, f"{recipe}{name}", neighbours(blob))
    return wrong


def compared(program: Path, folder: Path, title: str, files: Iterable[bytes]) -> int:
    """Open and run files in both, and say how it went; return how many differ."""
    names: Counter[str] = Counter()
    wrong = ran = 0
    rest = iter(files)
    while blobs := [*islice(rest, _BATCH)]:
        found = statuses(program, blobs, folder, "run")
        for blob, line in zip(blobs, found, strict=True):
            names[line.split()[0]] += 1
            ran += line.startswith("ok ") and line != "ok large"
            wrong += line != computed(blob)
    print(f"{title}: {names.total()} files, {ran} run, {wrong} with another status or output in C "
          "than in Python", flush=True)  # fmt: skip
    print("  " + ", ".join(f"{name} {number}" for name, number in names.most_common()))
    return wrong


def main() -> int:
    """Damage files; the exit status is 1 if one is accepted or told differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build_driver(folder)
        wrong = mutations(program, folder, args.count, args.seed)
        wrong += fields(program, folder) + every_byte(program, folder)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
