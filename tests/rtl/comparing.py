"""What a test for RTL simulation writes, beside what the embedded project of the network does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from ai8xtools.emulator import AddressMap, Effect
from ai8xtools.emulator.words.writes import effect_of
from ai8xtools.synthesis.program import ExpectedOutput
from device import Chip
from device.chip import DEFAULT_APB_BASE
from tools.rtl_program import PHASES, TestProgram, read_data_images, read_kernel_images

SHOWN = 10


class Written(Protocol):
    """What a function wrote: words by address, ordered control writes, pushes by FIFO."""

    words: Mapping[int, int]
    control: Sequence[tuple[int, int]]
    pushes: Mapping[int, Sequence[int]]


def wanted_of(embedded: Mapping[str, Written]) -> dict[str, Effect]:
    """Return what each function of a test must write, by what those of the project write.

    `cnn_configure` of a test also loads the input and starts the network.
    """
    found = {}
    for phase in PHASES:
        names = [phase]
        if phase == "cnn_configure":
            names += ["load_input", "cnn_start"]
        parts = [embedded[name] for name in names if name in embedded]
        words: dict[int, int] = {}
        control: list[tuple[int, int]] = []
        pushes: dict[int, Sequence[int]] = {}
        for part in parts:
            words |= part.words
            control += [(address, value) for address, value in part.control]
            pushes |= {address: list(values) for address, values in part.pushes.items()}
        found[phase] = Effect(words, control, pushes)
    return found


def found_in(
    program: TestProgram, chip: Chip, apb_base: int = DEFAULT_APB_BASE
) -> dict[str, Effect]:
    """Return what each function of a compiled test writes."""
    addresses = AddressMap(chip, apb_base)
    return {phase: effect_of(writes, addresses) for phase, writes in program.phases().items()}


def differences(found: Mapping[str, Effect], wanted: Mapping[str, Effect]) -> list[str]:
    """List the words in which two sets of functions differ."""
    return [line for phase in PHASES for line in _of_phase(phase, found[phase], wanted[phase])]


def _of_phase(phase: str, found: Effect, wanted: Effect) -> Iterator[str]:
    for address in sorted(found.words.keys() | wanted.words.keys()):
        pair = found.words.get(address), wanted.words.get(address)
        if pair[0] != pair[1]:
            yield f"{phase}: 0x{address:08x} holds {pair[0]}, not {pair[1]}"
    if [*found.control] != [*wanted.control]:
        yield f"{phase}: control writes {found.control}, not {wanted.control}"
    pushes = [{a: list(v) for a, v in part.pushes.items()} for part in (found, wanted)]
    if pushes[0] != pushes[1]:
        yield f"{phase}: pushes differ"


def image_differences(
    folder: Path,
    chip: Chip,
    embedded: Mapping[str, Written],
    expected: ExpectedOutput,
    apb_base: int = DEFAULT_APB_BASE,
) -> list[str]:
    """List what differs between the images of a test and the words of the embedded project."""
    data = {a: int(w, 16) for a, w in read_data_images(folder / "data", chip, apb_base).items()}
    kernels = {}
    for address, digits in read_kernel_images(folder / "masks", chip, apb_base).items():
        for i, part in enumerate((digits[:2], digits[2:10], digits[10:])):
            kernels[address + 4 * i] = int(part, 16)
    stored = {a: w for a, w in embedded["cnn_load_weights"].words.items() if a % 16 != 12}
    answer = {a: _bits(d) for a, d in
              read_data_images(folder / "data-expected", chip, apb_base).items()}  # fmt: skip
    columns = (expected.addresses, expected.masks, expected.values)
    wanted = {a: (v, m) for a, m, v in zip(*(c.tolist() for c in columns), strict=True)}
    found = []
    pairs = (
        ("data", data, dict(embedded["load_input"].words)),
        ("masks", kernels, stored),
        ("data-expected", answer, wanted),
    )
    for name, one, other in pairs:
        wrong = [a for a in one.keys() | other.keys() if one.get(a) != other.get(a)]
        found += [f"{name}: 0x{a:08x}: {one.get(a)}, not {other.get(a)}" for a in wrong[:SHOWN]]
    return found


def _bits(digits: str) -> tuple[int, int]:
    """Return value and mask of eight digits, of which some are X."""
    mask = "".join("0" if d == "X" else "f" for d in digits)
    return int(digits.replace("X", "0"), 16), int(mask, 16)


def expected_of(arrays: Mapping[str, np.ndarray]) -> ExpectedOutput:
    """Return the known answer of a recorded trace, without words that need not be compared."""
    names = ("expected_addr", "expected_mask", "expected_value")
    surplus = int(np.sum(arrays.get("expected_optional", np.zeros(0))))
    count = len(arrays[names[0]]) - surplus
    return ExpectedOutput(*(arrays[name][:count].astype(np.uint32) for name in names))
