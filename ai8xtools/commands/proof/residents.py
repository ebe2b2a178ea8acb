"""Proving networks that are in the accelerator together, in any order of their turns.

Source: docs/proof.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.counterexample import Counterexample
from ai8xtools.commands.proof.judgement import Judgement, judge
from ai8xtools.commands.proof.project import print_judgement, unproven
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.diagnostics import note as note_outcome
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.firmware.repeated import result_places
from ai8xtools.emulator.firmware.residents import Residents, difference
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen

_Places = tuple[NDArray[np.int64], NDArray[np.int64]]


@frozen
class _Start:
    """What the accelerator holds when a network starts, behind what; `differs` says in what that is
    not as at its first start.
    """

    memory: Memory
    behind: str
    differs: str

    @property
    def told(self) -> str:
        """How it differs; empty if it does not."""
        return self.differs and f"behind {self.behind}: {self.differs}"


def prove_residents(
    network: Residents, references: Mapping[str, Reference], file: Path | None = None
) -> bool:
    """Tell whether all networks of a project are computed for every input, and print why.

    `references` are those of the prefixes of functions. Each network is started behind loading and
    behind each of them. If registers, kernels and biases are the same each time, they are so in any
    order of turns. Data memory is unknown. Raises EmulatorError as `project.prove`.
    """
    starts, places = _observed(network, references)
    proven, doubts = True, []
    for prefix, reference in references.items():
        name = prefix.removesuffix("_cnn")
        for start in starts[prefix]:
            judgement = _judged(reference, start, places[prefix])
            if not judgement.proven:
                print(f"{name}:")
                break
            doubts += [f"{name} {start.told}"] if start.told else []
        proven &= print_judgement(judgement, reference, file)
    if proven and doubts:
        raise unproven(f"the networks change each other: {doubts[0]}")
    if proven:
        names = ", ".join(prefix.removesuffix("_cnn") for prefix in references)
        note_outcome(verdict="passed", reason="the networks are computed for every input")
        print(f"PROVEN: each of {names} finds its registers, kernels and biases behind every other")
    return proven


def _turns(prefixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield what is behind each turn, and whose it is: each network behind loading and behind all.

    Behind "loading" they are loaded again.
    """
    for first in prefixes:
        yield "loading", first
        yield first, first
        for other in prefixes:
            if other != first:
                yield first, other
                yield other, first


def _observed(
    network: Residents, references: Mapping[str, Reference]
) -> tuple[Mapping[str, list[_Start]], Mapping[str, _Places]]:
    """Return the starts of each network that differ, and where the bytes of its result are."""
    starts: defaultdict[str, list[_Start]] = defaultdict(list)
    places: dict[str, _Places] = {}
    stopped = False
    for behind, prefix in _turns(network.prefixes):
        if behind == "loading":
            network.load()
            stopped = False
        if stopped:  # what is behind cannot be reached
            continue
        memory = network.begin(prefix, references[prefix].network.sample)
        told = difference(starts[prefix][0].memory, memory) if starts[prefix] else ""
        if told or not starts[prefix]:
            starts[prefix].append(_Start(memory, behind.removesuffix("_cnn"), told))
        try:
            run = network.execute()
        except EmulatorError as error:
            if not told:
                name, behind = prefix.removesuffix("_cnn"), behind.removesuffix("_cnn")
                raise unproven(f"{name} behind {behind}: {error.message}") from None
            stopped = True
            continue
        if prefix not in places:
            found = result_places(network, run)
            if not found.of_program:
                raise unproven(f"{prefix}_unload() does more than to copy bytes")
            places[prefix] = found.instance, found.offset
    return starts, places


def _judged(reference: Reference, start: _Start, places: _Places) -> Judgement:
    """Judge a network that is started."""
    sample, told = reference.network.sample, start.told
    try:
        judgement = judge(reference, start.memory, places, has_sample=True, alone=False)
    except EmulatorError as error:
        stops = Counterexample.stopping(sample, f"the sample, behind {start.behind}", error.message)
        return Judgement((told,), (), stops, "", ())
    example = judgement.example
    if judgement.proven or not told:
        return judgement
    if example is not None:
        example = replace(example, recipe=f"{example.recipe}, behind {start.behind}")
    return replace(judgement, reasons=(told, *judgement.reasons), example=example)
