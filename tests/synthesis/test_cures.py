"""Remedies of constraints, followed to the letter: the complaint goes, and none comes in its place.

The networks are those of test_check.py, each of which breaks one constraint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Severity
from ai8xtools.synthesis.parse.keys import LAYOUT_KEYS
from device import MAX78000, MAX78002, Chip
from device.masks import lowest_bit
from tests.synthesis.arranged import arranged
from tests.synthesis.networks import build, describe, sample, weights
from tests.synthesis.stages import check
from tests.synthesis.test_check import CONV, PLAIN, VIOLATIONS, Violation

Layers = list[dict[str, Any]]
_VALUE = r"(-?[0-9][0-9a-fx.]*[0-9a-f]|-?[0-9])"
_LAYER = r"layer (\d+)(?: \(\w+\))?"
_OF_KEY = (
    "The nearest valid value is", "This output fits at", "For example",
    "Use output processors .* example", "Fill .* example",
)  # fmt: skip
LEAVE_OUT = "Leave out processors, offsets and gaps of all layers"


def number(text: str) -> int:
    """Return a number or a mask."""
    return int(text.replace(".", ""), 0)


def followed(remedy: str, key: str, index: int, layers: Layers) -> Layers | None:
    """Return the layers with a remedy for one of them; None if it is no plain instruction."""
    changed = [dict(layer) for layer in layers]
    own = changed[index]
    if found := re.match(rf"Use (\w+): {_VALUE} in {_LAYER}", remedy):
        value, name = found[2], found[1]
        parts = re.findall(rf"(?:(\w+): {_VALUE} in )?{_LAYER}", remedy)
        for other, stated, number_of in parts:
            name, value = other or name, stated or value
            changed[int(number_of)][name] = number(value)
    elif found := re.match(
        rf"(?:Use|Add) (\w+): {_VALUE} (?:in|to) the layers that are (?:joined|combined)", remedy
    ):
        for source in _sources(own):
            changed[source][found[1]] = number(found[2])
    elif found := re.match(rf"(?:Use|The highest) (\w+)(?::| that fits is) {_VALUE}\.$", remedy):
        own[found[1]] = number(found[2])
    elif found := re.match(rf"(?:{'|'.join(_OF_KEY)}) {_VALUE}", remedy):
        own[key] = number(found[1])
    elif found := re.match(rf"The inputs are written to {_VALUE}\.", remedy):
        own["processors"] = number(found[1])
    elif remedy == "Begin the output processors at a multiple of 4.":
        mask = number(str(own["output_processors"]))
        own["output_processors"] = mask >> lowest_bit(mask) % 4
    elif re.match(r"Remove the key|Remove the activation|Use one of \d, or leave the key", remedy):
        del own[key]
    elif found := re.search(r"or remove '(\w+)'\.$", remedy):
        del own[found[1]]
    else:
        return None
    return changed


def _sources(layer: dict[str, Any]) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", str(layer["in_sequences"]))]


def plain_instructions() -> Iterator[Any]:
    """Yield each violation with a remedy that can be followed, and the layers with it."""
    for n, case in enumerate(VIOLATIONS):
        for index, key, message, remedy in case.found:
            layers = followed(remedy or "", key or "output_processors", index, case.layers)
            if layers is not None:
                yield pytest.param(case, index, message, layers, id=f"{case.code}-{n}-{key}")


def said(case: Violation, folder: Path) -> set[tuple[str, str]]:
    """Return codes and messages of what is said about a network."""
    try:
        found: tuple[Diagnostic, ...] = tuple(check(case.network(folder), consequences=True))
    except DiagnosticError as exc:
        found = exc.diagnostics
    return {(d.code, d.message) for d in found if d.severity != Severity.NOTICE}


@pytest.mark.parametrize(("case", "index", "message", "layers"), [*plain_instructions()])
def test_the_cure_ends_the_complaint_and_brings_no_other(
    tmp_path: Path, case: Violation, index: int, message: str, layers: Layers
) -> None:
    before = said(case, tmp_path)
    after = said(replace(case, layers=layers), tmp_path)
    complaint = (case.code, f"layer {index}: {message}")
    assert complaint in before and complaint not in after
    assert {code for code, _ in after} <= {code for code, _ in before}, layers


def test_many_remedies_are_plain_instructions() -> None:
    assert len(list(plain_instructions())) >= 40


NEWER = [
    pytest.param(case, f"layer {index}: {message}", id=f"{case.code}-{n}-{key}")
    for n, case in enumerate(VIOLATIONS)
    for index, key, message, remedy in case.found
    if "MAX78002" in (remedy or "")
]


@pytest.mark.parametrize(("case", "message"), NEWER)
def test_the_other_chip_has_what_it_is_said_to_have(
    tmp_path: Path, case: Violation, message: str
) -> None:
    assert message not in {text for _, text in said(replace(case, chip=MAX78002), tmp_path)}


def apart(count: int, first: int = 0x1000, step: int = 0x1000) -> Layers:
    """Return layers of which the last one combines the others, which stand apart."""
    branches = [
        {**CONV, "out_offset": first + step * i, "in_sequences": "input", "write_gap": count - 1}
        for i in range(count)
    ]
    own = {**PLAIN, "op": "add", "operands": count, "in_sequences": str([*range(count)])}
    return [*branches, {**own, "in_offset": first, "out_offset": 0x6000}]


def complaints(folder: Path, layers: Layers, chip: Chip) -> list[Diagnostic]:
    """Return what is said about convolutions of three channels and what combines them."""
    kernels = [weights(3, 3, 3, 3, seed=i) // 8 for i in range(len(layers) - 1)]
    network, _ = build(folder, describe(*layers), sample(3, 4, 4), kernels, chip=chip)
    return [d for d in check(network, consequences=True) if d.severity != Severity.NOTICE]


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_operands_that_stand_apart_are_interleaved_by_one_remedy(
    tmp_path: Path, count: int, chip: Chip
) -> None:
    layers = apart(count)
    before = complaints(tmp_path, layers, chip)
    assert {d.code for d in before} == {"W366"}
    (remedy,) = {d.remedy for d in before}
    changed = followed(remedy or "", "", count, layers)
    assert changed is not None
    assert complaints(tmp_path, changed, chip) == []
    assert [x["out_offset"] for x in changed[:count]] == [0x1000 + 4 * i for i in range(count)]


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_an_operand_with_another_reader_is_left_to_the_loader(tmp_path: Path, chip: Chip) -> None:
    layers: Layers = [
        {**CONV, "out_offset": 0x2000, "write_gap": 1},
        {**CONV, "out_offset": 0x4000, "in_offset": 0x2000, "write_gap": 1},
        {**PLAIN, "op": "add", "in_sequences": "[1, 0]", "in_offset": 0x4000, "out_offset": 0},
    ]
    before = complaints(tmp_path, layers, chip)
    remedies = {d.code: d.remedy or "" for d in before}
    assert LEAVE_OUT in remedies["W366"]
    wanted = "Use read_gap: 1." if chip.has_read_gap else LEAVE_OUT
    assert remedies["W363"].startswith(wanted)
    bare = [{key: x[key] for key in x.keys() - LAYOUT_KEYS} for x in layers]
    kernels = [weights(3, 3, 3, 3, seed=i) // 8 for i in range(2)]
    found = arranged(tmp_path, *bare, shape=(3, 4, 4), kernels=kernels, chip=chip)
    assert not [code for code in found.codes if code[0] in "EW" and code != "W150"]
