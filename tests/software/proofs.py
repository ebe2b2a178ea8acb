"""Prove C that is right: `make measure WHAT=software-proofs`.

Networks of networks/ with random weights, random networks, or with --kat DIR known answers of the
accelerator as projects of --device MCU; cores and plans take turns. Prints what is not proven, with
the reason, and the seconds of processor time of one emulated inference and of the proof; status 1
if right C counts as wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ai8xtools.commands import targets
from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.commands.proof.software import CompiledQuestion, judge_program, unknown_kernels
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain
from ai8xtools.software import build
from ai8xtools.software.plan.plan import Scheme
from ai8xtools.software.profile import read_profile
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.understand import understand
from tests.emulator.proofs import images, inputs_of
from tests.networks.deployed import DEPLOYED, with_random_weights
from tests.software.against_simulation import files_of
from tests.software.forced_schemes import forced_files
from tests.software.images import for_microcontroller
from tests.software.networks import random_network
from tests.software.same_on_cores import CORES, written
from tests.software.streams import random_stream

Outcome = tuple[str, str, float, float]
"""Name, what is said, and the seconds of an inference and of the proof."""
_SECONDS = 600.0


def outcome(network: Network, number: int, folder: Path, *, rounding: bool = False) -> Outcome:
    """Prove the C of a network for a core and with a plan by number."""
    core, scheme = list(CORES)[number % 4], list(Scheme)[number // 4 % 2]
    files = files_of(network, core, scheme, rounding=rounding)
    name, *rest = proven(files, network, core, folder, rounding=rounding)
    return f"{name}, {scheme}", *rest


def proven(
    files: Mapping[str, str],
    network: Network,
    core: str,
    folder: Path,
    hop_bytes: int = 0,
    *,
    rounding: bool = False,
) -> Outcome:
    """Prove the files of a network for a core, perhaps of one that takes a hop at a time."""
    folder.mkdir(exist_ok=True)
    project = written(files, folder)
    image = compile_plain(project, ARCHITECTURES[core]).image
    reference = Reference.of("", network, average_rounding=rounding)
    question = CompiledQuestion(reference, image, _SECONDS, hop_bytes=hop_bytes)
    times = [time.process_time()]
    question.run([network.sample])
    times.append(time.process_time())
    found = judge_program(question, unknown_kernels(project))
    times.append(time.process_time())
    told = "proven"
    if not found.proven:
        told = f"{'WRONG' if found.example else 'refused'}: {found.reasons}"
    return core, told, times[1] - times[0], times[2] - times[1]


def networks() -> Iterator[Outcome]:
    """Yield what becomes of networks/ with random weights."""
    for number, deployed in enumerate(DEPLOYED):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            checkpoint, _ = with_random_weights(deployed, folder)
            options = deployed.resolving(folder, checkpoint)
            network = understand(deployed.path, deployed.chip, options)[0]
            rounding = deployed.encoding.average_rounding
            name, *rest = outcome(network, number, folder / "project", rounding=rounding)
            yield f"{deployed.file}, {name}", *rest


def random_streams(count: int) -> Iterator[Outcome]:
    """Yield what becomes of random networks whose windows slide."""
    for seed in range(count):
        with tempfile.TemporaryDirectory() as folder:
            if found := stream(seed, Path(folder)):
                yield found


def stream(
    seed: int, folder: Path, change: Callable[[str], str] = lambda code: code
) -> Outcome | None:
    """Return what becomes of a random stream, whose C may be changed; None if there is none."""
    if made := random_stream(seed):
        network, graph, hop = made
        profile = read_profile(list(CORES.values())[seed % 4])
        profile = profile.resized({"l1": 1 << 20, "flash": 1 << 20})
        sliding = build.streamed(graph, profile, hop, None)
        files = build.emitted(sliding, build.sample_of(network), "stream", "").files
        files["cnn.c"] = change(files["cnn.c"])
        hop_bytes = hop * graph.tensors[graph.input].row_bytes
        name, *rest = proven(files, network, list(CORES)[seed % 4], folder, hop_bytes)
        return f"stream {seed}, hop {hop} of {network.sample.shape}, {name}", *rest
    return None


def random_networks(count: int) -> Iterator[Outcome]:
    """Yield what becomes of random networks of every operator."""
    for seed in range(count):
        with tempfile.TemporaryDirectory() as folder:
            name, *rest = outcome(random_network(seed), seed, Path(folder))
            yield f"random {seed}, {name}", *rest


def random_levels(count: int) -> Iterator[Outcome]:
    """Yield what becomes of random networks in memory levels, in each way that is possible."""
    for seed, scheme in itertools.product(range(count), ("planes", "chain", "rows", "auto")):
        network = random_network(seed)
        with tempfile.TemporaryDirectory() as folder:
            files = forced_files(network, scheme)
            name, *rest = proven(files, network, "cortex-m4", Path(folder))
            yield f"random {seed}, {name}, {scheme}", *rest


def known_answers(folder: Path, step: int) -> Iterator[Outcome]:
    """Yield what emulate.py --prove says of every `step`-th known answer."""
    for number, (path, case) in enumerate(list(images(folder, ["*"]))[::step]):
        scheme = list(Scheme)[number % 2]
        with inputs_of(path, case) as words:
            line = ["--test-dir", "out", "--prefix", "case"]
            line += for_microcontroller(words, scheme, "MCU")
            told, began = io.StringIO(), time.process_time()
            try:
                with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                    if targets.main("ai8xize.py", line) == 0:
                        began = time.process_time()
                        emulate(parse(["out/case", "--prove", "--time-limit", str(_SECONDS)]))
                said = told.getvalue().splitlines()[-1]
            except (DiagnosticError, ToolError) as error:
                said = f"refused: {error}"
            said = {"PROVEN": "proven", "REFUTED": "WRONG"}.get(said.split(":")[0], said)
            yield f"{path.parent.name}, {scheme}", said, 0, time.process_time() - began


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kat", type=Path, metavar="DIR")
    parser.add_argument("--step", type=int, default=10)
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--levels", type=int, default=0, metavar="N", help="in memory levels")
    parser.add_argument("--streams", type=int, default=0, metavar="N", help="random streams")
    args = parser.parse_args()
    found = networks()
    if args.kat is not None:
        found = known_answers(args.kat, args.step)
    elif args.random:
        found = random_networks(args.random)
    elif args.streams:
        found = random_streams(args.streams)
    elif args.levels:
        found = random_levels(args.levels)
    count: Counter[str] = Counter()
    for name, said, run, proof in found:
        if said != "proven" or not (args.random or args.levels):
            print(f"{name}: {said} (run {run:.2f} s, proof {proof:.2f} s)", flush=True)
        count[said.split(":")[0]] += 1
    for said, times in count.most_common():
        print(f"{times:4} {said}")
    return int("WRONG" in count or not count)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
