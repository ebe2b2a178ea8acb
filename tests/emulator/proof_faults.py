"""Faults in single words, and what a proof says of them: `python -m tests.emulator.proof_faults`.

As `tests.emulator.faults`, with faults of what cnn_unload() reads in place of those of the input.
What is proven in spite of a fault has to deliver the same for random and extreme inputs, and what
is refuted something else for the input that is shown. Status 1 if one does not.
"""

from __future__ import annotations

import argparse
import copy
import resource
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.firmware.repeated import data_places
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.program import Program
from tests.emulator.faults import (
    MEMORY_BYTES,
    NETWORKS,
    SECONDS,
    fault,
    loaded_accelerator,
    out_of_time,
)
from tests.emulator.proofs import judged
from tests.networks.deployed import BY_FILE, with_weights_at_random

KINDS = ("register", "kernel", "bias", "unloading")
INPUTS = 200


def moved(addresses: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return the addresses of the result with one bit wrong in those of a few values."""
    first = int(random.integers(len(addresses)))
    changed = addresses.copy()
    changed[first : first + 4] ^= 1 << int(random.integers(15))
    return changed


def images(shape: Sequence[int]) -> NDArray[np.int8]:
    """Return random and extreme inputs."""
    random = np.random.default_rng(99)
    some = random.integers(-128, 128, (INPUTS, *shape)).astype(np.int8)
    some[::2] = random.choice([-128, 127], (INPUTS // 2, *shape))
    some[:2] = [[[[-128]]], [[[127]]]]
    return some


def verdict(memory: Memory, subject: Subject, addresses: NDArray[np.int64]) -> str:
    """Return what the proof says, and whether that is so."""
    signal.alarm(3 * SECONDS)
    try:
        found = judged(memory, subject.network, addresses, rounding=subject.rounding)
        differs = True
        if found.example is None:
            changed = batch_of(memory, addresses)
            differs = changed.shape != subject.inputs.shape[1:] or bool(
                (changed.run(subject.inputs) != subject.right).any()
            )
    except (EmulatorError, MemoryError, TimeoutError) as error:
        return f"refused: {error.code if isinstance(error, EmulatorError) else repr(error)}"
    finally:
        signal.alarm(0)
    if found.example is not None:
        return "refuted"
    if found.findings:
        return "wrong registers" + (", and a result changes" if differs else "")
    if found.reasons:
        return "NEITHER, though a result changes" if differs else "neither"
    return "WRONG: proven, though a result changes" if differs else "equivalent"


def batch_of(memory: Memory, addresses: NDArray[np.int64]) -> NetworkBatch:
    """Return the network in a memory, with results at addresses."""
    accelerator = Accelerator(memory.chip)
    accelerator.memory = memory
    return NetworkBatch(accelerator, data_places(memory, addresses - memory.addresses.apb_base))


@dataclass(frozen=True)
class Subject:
    """A network, and what it delivers for some inputs."""

    network: Network
    rounding: bool
    inputs: NDArray[np.int8]
    right: NDArray[np.uint8]


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=200, help="of each network")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, out_of_time)
    count: Counter[tuple[str, str]] = Counter()
    for seed, name in enumerate(args.networks):
        result = with_weights_at_random(name)
        program: Program = result.program
        whole, places = loaded_accelerator(result), delivered(program)
        batch = batch_of(whole.memory, places)
        inputs = images(batch.shape)
        rounding = BY_FILE[name].encoding.average_rounding
        subject = Subject(result.network, rounding, inputs, batch.run(inputs))
        random = np.random.default_rng(seed)
        for number in range(args.faults):
            kind = KINDS[number % len(KINDS)]
            if kind == "bias" and not program.biases:
                kind = "kernel"
            accelerator, addresses = copy.deepcopy(whole), places
            if kind == "unloading":
                addresses = moved(places, random)
            else:
                damage = fault(kind, program, random)
                try:
                    accelerator.write(damage.writes)
                except EmulatorError:
                    count[kind, "refused: write"] += 1
                    continue
            said = verdict(accelerator.memory, subject, addresses)
            if said.startswith(("NEITHER", "WRONG", "neither")):
                place = "" if kind == "unloading" else f" at {damage.address:#x}"
                print(f"{name}: {kind}{place}: {said}", flush=True)
            count[kind, said] += 1
        print(name, flush=True)
    for (kind, said), number in sorted(count.items()):
        print(f"{number:5} {kind}: {said}")
    return int(any(said.startswith("WRONG") for _, said in count))


if __name__ == "__main__":
    sys.exit(main())
