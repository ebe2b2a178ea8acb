"""Prove words that are right: `python -m tests.emulator.proofs [--networks]`.

Those that ai8xize.py gives for the descriptions in networks/, with random weights, or the recorded
words of the known answers: the words reach the accelerator, description and checkpoint the
network; results are where cnn_unload() reads them. Prints what is not proven, with the reason, and
how much is; the exit status is 1 if words count as wrong without a known reason.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.commands.proof.judgement import Judgement, judge
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator import Accelerator
from ai8xtools.emulator.firmware.repeated import data_places
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.pipeline import examine
from tests.emulator.faults import loaded_accelerator
from tests.emulator.known_answers import EXCEPTIONS, chip_of
from tests.networks.deployed import DEPLOYED, Deployed, with_random_weights

_VIRTUAL = 0xF0000000
"""Addresses that stand for reads of a transposing port."""


def judged(
    memory: Memory, network: Network, addresses: NDArray[np.int64], *, rounding: bool
) -> Judgement:
    """Judge what a memory is loaded with, sample included; results are at addresses of bytes."""
    reference = Reference.of("", network, average_rounding=rounding)
    places = data_places(memory, addresses - memory.addresses.apb_base)
    return judge(reference, memory, places, has_sample=True)


@dataclass(frozen=True)
class Result:
    """What becomes of words, and the seconds of processor time of one run and of the proof."""

    text: str
    run: float = 0
    proof: float = 0


def result_of(
    memory: Memory, network: Network, addresses: NDArray[np.int64], *, rounding: bool
) -> Result:
    """Prove what an accelerator is loaded with."""
    accelerator = Accelerator(memory.chip)
    accelerator.memory = memory.snapshot()
    times = [time.process_time()]
    accelerator.run()
    times.append(time.process_time())
    found = judged(memory, network, addresses, rounding=rounding)
    times.append(time.process_time())
    text = "proven"
    if not found.proven:
        findings = [str(finding) for finding in found.findings]
        text = f"{'WRONG' if found.example else 'refused'}: {[*found.reasons, *findings]}"
    return Result(text, *np.diff(times).tolist())


def of_network(deployed: Deployed, folder: Path) -> Result:
    """Prove the words of a description with random weights."""
    checkpoint, _ = with_random_weights(deployed, folder)
    result = deployed.synthesized(folder, checkpoint)
    memory = loaded_accelerator(result).memory
    rounding = deployed.encoding.average_rounding
    return result_of(memory, result.network, delivered(result.program), rounding=rounding)


def of_known_answer(case: Path, words: list[str]) -> Result:
    """Prove the recorded words of a known answer, whose inputs are in the current folder."""
    options = parse(["--test-dir", "out", "--prefix", "net", *words])
    network, *_ = examine(options.config_file, options.chip, options.resolve, options.encode)
    recording = read_words(case / "golden.npz")
    accelerator = Accelerator(chip_of(recording.writes.address))
    accelerator.write(recording.writes)
    with np.load(case / "golden.npz") as archive:
        if "unload" not in archive:
            return Result("no cnn_unload()")
        addresses = archive["unload"].astype(np.int64)
    if not addresses.all() or (addresses >= _VIRTUAL).any():
        return Result("cnn_unload() does more than to copy bytes")
    rounding = options.encode.average_rounding
    return result_of(accelerator.memory, network, addresses, rounding=rounding)


@contextmanager
def inputs_of(path: Path, case: dict[str, Any]) -> Iterator[list[str]]:
    """Make a folder with the inputs of a known answer the current one; yields its command line."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        for target, stored in case["inputs"].items():
            file, source = Path(scratch) / target, path.parent / stored
            file.parent.mkdir(parents=True, exist_ok=True)
            content = source.read_bytes()
            file.write_bytes(lzma.decompress(content) if source.suffix == ".xz" else content)
        os.chdir(scratch)
        try:
            yield [str(word) for word in case["args"]]
        finally:
            os.chdir(home)


def images(folder: Path, patterns: list[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files of cases with words whose names match, and what they say."""
    for path in sorted(folder.resolve().glob("cases/*/case.json")):
        case = json.loads(path.read_text())
        if case["kind"] == "image" and any(fnmatch(path.parent.name, p) for p in patterns):
            yield path, case


def known_answers(folder: Path, patterns: list[str]) -> Iterator[tuple[str, Result]]:
    """Yield names of cases that match, and what becomes of them."""
    for path, case in images(folder, patterns):
        with inputs_of(path, case) as words:
            try:
                yield path.parent.name, of_known_answer(path.parent, words)
            except ToolError as error:
                yield path.parent.name, Result(str(getattr(error, "message", error)))


def networks(patterns: list[str]) -> Iterator[tuple[str, Result]]:
    """Yield names of descriptions that match, and what becomes of them."""
    for deployed in DEPLOYED:
        if any(fnmatch(deployed.file, pattern) for pattern in patterns):
            with tempfile.TemporaryDirectory() as folder:
                yield deployed.file, of_network(deployed, Path(folder))


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", action="store_true", help="those of networks/")
    parser.add_argument("--kat", type=Path, default=Path("../shared/kat"), metavar="DIR")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="GLOB")
    args = parser.parse_args()
    results = []
    for name, result in (networks if args.networks else partial(known_answers, args.kat))(
        args.patterns
    ):
        known = EXCEPTIONS.get(name, "") if result.text != "proven" else ""
        print(f"{name}: {result.text} {known} (run {result.run:.2f} s, proof {result.proof:.2f} s)",
              flush=True)  # fmt: skip
        results.append("known to be wrong" if known else result.text.split(":")[0])
    for text, count in Counter(results).most_common():
        print(f"{count:4} {text}")
    return int("WRONG" in results or not results)


if __name__ == "__main__":
    sys.exit(main())
