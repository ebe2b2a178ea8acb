"""Prove the recorded words of all known answers: `python -m tests.emulator.proofs`.

The words of a case reach the accelerator, its description and checkpoint the network; its results
are where the recorded cnn_unload() reads them. Prints the cases that are not proven, with the
reason, and how many are; the exit status is 1 if one has wrong words without a known reason.
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
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.proof.comparison import Question, compare
from ai8xtools.commands.emulate.simulation import Simulation
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator import Accelerator
from ai8xtools.emulator.firmware.repeated import data_places
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.words.recording import read_words
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.synthesis.program import Program
from tests.emulator.known_answers import EXCEPTIONS, chip_of


def delivered(program: Program) -> NDArray[np.int64]:
    """Return the addresses of the bytes that cnn_unload() of a program delivers."""
    parts = []
    for layer in program.unload:
        for piece in layer.pieces:
            pixels = piece.address + piece.stride_bytes * np.arange(layer.pixels)
            lanes = np.array(piece.lanes)
            if layer.width == 32:
                words = pixels[:, None] + 4 * lanes
                parts.append((words[..., None] + np.arange(4)).reshape(-1))
            else:
                parts.append((lanes[:, None] + pixels).reshape(-1))
    return np.concatenate(parts)


def question(accelerator: Accelerator, simulation: Simulation, addresses: NDArray[np.int64]
             ) -> Question:  # fmt: skip
    """Ask whether an accelerator computes a network, with its results at addresses of bytes."""
    memory = accelerator.memory
    places = data_places(memory, addresses - memory.addresses.apb_base)
    return Question(simulation, NetworkBatch(accelerator, places), memory)


def proof_of(case: Path, data: dict[str, object]) -> tuple[str, float, float]:
    """Return what becomes of a known answer, and the seconds of a run and of the proof."""
    words = [str(word) for word in data["args"]]  # type: ignore[attr-defined]
    options = parse(["--test-dir", "out", "--prefix", "net", *words])
    source = options.config_file
    network, *_ = examine(source, options.chip, options.resolve, options.encode)
    recording = read_words(case / "golden.npz")
    accelerator = Accelerator(chip_of(recording.writes.address))
    accelerator.write(recording.writes)
    begin = time.process_time()
    Accelerator.run(_copy(accelerator, recording))
    ran = time.process_time() - begin
    with np.load(case / "golden.npz") as archive:
        if "unload" not in archive:
            return "no cnn_unload()", ran, 0
        addresses = archive["unload"].astype(np.int64)
    if not addresses.all() or (addresses >= 0xF0000000).any():
        return "cnn_unload() does more than to copy bytes", ran, 0
    asked = question(
        accelerator, Simulation("", network, options.encode.average_rounding), addresses
    )
    begin = time.process_time()
    found = compare(asked)
    proof = time.process_time() - begin
    if not len(found.wrong):
        return "proven", ran, proof
    return f"WRONG: {len(found.wrong)} bytes, {found.layer}", ran, proof


def _copy(accelerator: Accelerator, recording: object) -> Accelerator:
    other = Accelerator(accelerator.memory.chip)
    other.memory = accelerator.memory.snapshot()
    return other


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kat", type=Path, default=Path("../shared/kat"), metavar="DIR")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="GLOB")
    args = parser.parse_args()
    count: Counter[str] = Counter()
    times: list[tuple[float, float, str]] = []
    home = Path.cwd()
    for path in sorted(args.kat.resolve().glob("cases/*/case.json")):
        data = json.loads(path.read_text())
        name = path.parent.name
        if data["kind"] != "image" or not any(fnmatch(name, p) for p in args.patterns):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for target, stored in data["inputs"].items():
                file, source = Path(folder) / target, path.parent / stored
                file.parent.mkdir(parents=True, exist_ok=True)
                content = source.read_bytes()
                file.write_bytes(lzma.decompress(content) if source.suffix == ".xz" else content)
            os.chdir(folder)
            try:
                result, ran, proof = proof_of(path.parent, data)
            except ToolError as error:
                result, ran, proof = str(getattr(error, "message", error))[:160], 0, 0
            finally:
                os.chdir(home)
        times.append((proof, ran, name))
        if result.startswith("WRONG"):
            result, shown = "WRONG" if name not in EXCEPTIONS else "known", result
            print(f"{name}: {shown}", EXCEPTIONS.get(name, ""), flush=True)
        count[result] += 1
    for result, number in count.most_common():
        print(f"{number:4} {result}")
    for proof, ran, name in sorted(times, reverse=True)[:5]:
        print(f"{name}: {proof:.2f} s, one run {ran:.2f} s")
    return int(count["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
