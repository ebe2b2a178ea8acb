"""Faults in single numbers of C, and what a proof says: `make measure WHAT=software-proof-faults`.

Numbers in weights, biases, tables, addresses of the arena, sizes of rings, parameters of kernels,
and all others in functions. With --operators the networks are graphs of operators. What is proven
in spite of a fault has to deliver the same for random and extreme inputs, and what is refuted
something else for the input that is shown. Status 1 if one does not.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

import ai8xtools.commands.proof.counterexample as search
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.commands.proof.software import (
    CompiledQuestion,
    ProgramQuestion,
    judge_program,
    unknown_kernels,
)
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.software.plan.plan import Scheme
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.understand import understand
from tests.networks.deployed import DEPLOYED, with_random_weights
from tests.software.against_simulation import files_of
from tests.software.forced_schemes import forced_files
from tests.software.graphs import GRAPHS, operator_question, project_of
from tests.software.networks import random_network
from tests.software.operators import NETWORKS, network_of
from tests.software.same_on_cores import CORES

KINDS = ("weight", "bias", "address", "ring", "parameter", "function")
OF_STEPS = ("weight", "bias", "address", "ring", "step", "function", "table")
"""Of graphs of operators."""
SUBJECTS = ("digits-chw-ai85", "conv1d, dilated", "digits-chw-ai85", "groups", "autoencoder-ai85",
            "digits-chw-ai85", "16 operands", "digits-chw-ai85", "or, xor",
            "rolling buffer", "planes", "chain")  # fmt: skip
_LEVELS = ("planes", "chain")
"""Ways through memory levels."""
INPUTS, SECONDS, SEARCH_SECONDS = 200, 10.0, 5.0
_ARRAY = re.compile(r"#define (WEIGHTS|BIAS|ELEMENTS)_[\d_]+ \{(.*?)\}", re.DOTALL)
_KINDS = {"WEIGHTS": "weight", "BIAS": "bias", "ELEMENTS": "table"}
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?=u?\b)")
_IMAGES = re.compile(r"cnn_images\[\] = \{\n(.*?)\n\};", re.DOTALL)
_STRUCTURE = re.compile(
    r"static const nn_(?:conv|pool|layer|planes|link|channels) \w+(?:\[\])? = \{(.*?)\};", re.DOTALL
)
_STEP = re.compile(r"^CNN_STEP void \w+\(.*?\n\{(.*?)^\}", re.DOTALL | re.MULTILINE)
_ADDRESS = re.compile(r"\b(?:cnn_arena|cnn_output) \+ (\d+)")


@dataclass(frozen=True)
class Place:
    """A number in a file, and the least and greatest one of its array."""

    file: str
    start: int
    old: str
    ends: tuple[int, int]

    def changed(self, random: np.random.Generator) -> str:
        """Return another number that the type holds."""
        value, (low, high) = int(self.old), self.ends
        if low >= 0 and high < 128 and self.file == "cnn.c":
            new = value ^ 1 << int(random.integers(max(value.bit_length(), 1) + 1))
            return str(new if random.random() < 0.5 else value + int(random.choice([-1, 1])))
        bits = 8 if low >= -128 and high < 256 else 32
        new = (value ^ 1 << int(random.integers(bits))) & (1 << bits) - 1
        signed = low < 0 or high < 1 << bits - 1
        return str(new - (1 << bits) if signed and new >= 1 << bits - 1 else new)


def places(files: Mapping[str, str]) -> Mapping[str, list[Place]]:
    """Return the numbers of each kind."""
    found: dict[str, list[Place]] = {kind: [] for kind in (*KINDS, *OF_STEPS)}
    for match in _ARRAY.finditer(files["weights.h"]):
        found[_KINDS[match[1]]] += _numbers("weights.h", files, *match.span(2))
    code, taken = files["cnn.c"], set()
    for kind, pattern in (("ring", _IMAGES), ("parameter", _STRUCTURE), ("step", _STEP),
                          ("address", _ADDRESS)):  # fmt: skip
        for match in pattern.finditer(code):
            some = _numbers("cnn.c", files, *match.span(1))
            found[kind] += [replace(one, ends=(0, 0)) for one in some]
            taken |= {one.start for one in some}
    names = ("static void", "CNN_STEP void", "int cnn_init(")
    functions = [code.index(name) for name in names if name in code]
    body = min(functions, default=len(code))
    found["function"] = [
        replace(one, ends=(0, 0)) for one in _numbers("cnn.c", files, body, len(code))
        if one.start not in taken and not _in_comment(code, one.start)
    ]  # fmt: skip
    return found


def _numbers(file: str, files: Mapping[str, str], start: int, end: int) -> list[Place]:
    some = list(_NUMBER.finditer(files[file], start, end))
    ends = min((int(n[0]) for n in some), default=0), max((int(n[0]) for n in some), default=0)
    return [Place(file, number.start(), number[0], ends) for number in some]


def _in_comment(code: str, place: int) -> bool:
    return code.rfind("/*", 0, place) > code.rfind("*/", 0, place)


def question_of(
    files: Mapping[str, str], folder: Path, core: str, network: Network | Graph
) -> ProgramQuestion:
    """Write and compile a program."""
    for name, text in files.items():
        (folder / name).write_text(text)
    if isinstance(network, Graph):
        return operator_question(folder, core, network)
    image = compile_plain(folder, ARCHITECTURES[core]).image
    return CompiledQuestion(Reference.of("", network, average_rounding=False), image, SECONDS)


def agrees(question: ProgramQuestion) -> bool:
    """Tell whether the program computes random and extreme inputs as the network does."""
    random = np.random.default_rng(99)
    shape = question.reference.sample.shape
    for number in range(INPUTS):
        drawn = random.choice([-128, 127], shape) if number % 2 else (
            random.integers(-128, 128, shape)
        )  # fmt: skip
        image = np.full(shape, (-128, 0, 127)[number]) if number < 3 else drawn
        (found,), _ = question.run([image])
        outputs = question.reference.outputs_for(image)
        if (found != question.reference.result(outputs, question.orders)).any():
            return False
    return True


def verdict(files: Mapping[str, str], core: str, network: Network | Graph) -> str:
    """Return what the proof says, and whether that is so."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            question = question_of(files, folder, core, network)
        except EmulatorError as error:
            return f"does not compile ({error.code})"
        try:
            found = judge_program(question, unknown_kernels(folder))
        except EmulatorError as error:
            return f"cannot be executed ({error.code})"
        if found.example is not None:
            return "refuted"
        right = agrees(question)
        if found.proven:
            return "equivalent" if right else "WRONG: proven, though a result changes"
        return f"neither: {found.reasons[0]}" if right else "NEITHER, though a result changes"


def subjects() -> Iterator[tuple[str, Network]]:
    """Yield networks with names: some in networks/ with random weights, and one per operator."""
    deployed = {one.file: one for one in DEPLOYED}
    for name in SUBJECTS:
        if name == "chain":  # the first random network has one that goes channel by channel
            yield name, random_network(0)
            continue
        if name in NETWORKS:
            yield name, network_of(NETWORKS[name])
            continue
        one = deployed["digits-chw-ai85" if name in _LEVELS else name]
        with tempfile.TemporaryDirectory() as place:
            checkpoint, _ = with_random_weights(one, Path(place))
            options = one.resolving(Path(place), checkpoint)
            yield name, understand(one.path, one.chip, options)[0]


def operator_graphs() -> Iterator[tuple[str, Graph]]:
    """Yield graphs of operators with names."""
    for name, make in GRAPHS.items():
        yield name, make()


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=60, help="of each network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("networks", nargs="*", default=SUBJECTS)
    parser.add_argument("--operators", action="store_true", help="graphs of operators")
    args = parser.parse_args()
    kinds = OF_STEPS if args.operators else KINDS
    count: Counter[tuple[str, str]] = Counter()
    for number, (name, network) in enumerate(operator_graphs() if args.operators else subjects()):
        if name not in args.networks and not args.operators:
            continue
        random = np.random.default_rng([args.seed, number])
        core, scheme = list(CORES)[number % len(CORES)], list(Scheme)[number // 2 % 2]
        if isinstance(network, Graph):
            files = project_of(network, CORES[core], scheme)
        elif name in _LEVELS:
            files, core = forced_files(network, name), "cortex-m4"
        else:
            files = files_of(network, core, scheme)
        known, began = places(files), time.process_time()
        for fault in range(args.faults):
            kind = kinds[fault % len(kinds)]
            some = known[kind] or known["function"] or known["parameter"]
            place = some[int(random.integers(len(some)))]
            new, text = place.changed(random), files[place.file]
            changed = text[: place.start] + new + text[place.start + len(place.old) :]
            with patch.object(search, "_SECONDS", SEARCH_SECONDS):
                said = verdict({**files, place.file: changed}, core, network)
            if said.startswith(("neither", "NEITHER", "WRONG")):
                line = text.count("\n", 0, place.start) + 1
                at = f"{place.file}:{line}: {place.old} -> {new}"
                print(f"{name}, {core}, {scheme}: {at}: {said}", flush=True)
            count[kind, said.split(":")[0]] += 1
        print(f"{name}: {time.process_time() - began:.0f} s", flush=True)
    for (kind, said), times in sorted(count.items()):
        print(f"{times:5} {kind}: {said}")
    return int(any(said.isupper() or said.startswith(("WRONG", "NEITHER")) for _, said in count))


if __name__ == "__main__":
    sys.exit(main())
