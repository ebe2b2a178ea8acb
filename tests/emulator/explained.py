"""Random single-word faults, and how they are explained: `python -m tests.emulator.explained`.

The faults are those of `tests.emulator.faults`. An explanation is right if it names the layer in
which the results of the accelerator first depart, and the word that was damaged as the cause.
Status 1 if less than 99 % are.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import resource
import signal
import sys
from collections import Counter

import numpy as np

from ai8xtools.commands.explain.explanation import Explanation, ReferenceRun, explained
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from tests.emulator.faults import (
    KINDS,
    MEMORY_BYTES,
    NETWORKS,
    REQUIRED,
    SECONDS,
    Fault,
    fault,
    first_difference,
    loaded_accelerator,
    out_of_time,
)
from tests.networks.deployed import with_weights_at_random


def names(memory: Memory, explanation: Explanation, damage: Fault) -> bool:
    """Whether the cause is the damaged word."""
    cause = explanation.cause
    if cause is None or cause.kind != damage.kind:
        return False
    return any(departure.address(memory) == damage.address for departure in cause.departures)


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="of each network")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, out_of_time)
    count: Counter[tuple[str, str]] = Counter()
    for seed, name in enumerate(args.networks):
        result = with_weights_at_random(name)
        reference, whole = ReferenceRun(result), loaded_accelerator(result)
        random = np.random.default_rng(seed)
        kinds = [kind for kind in KINDS if kind != "bias" or result.program.biases]
        for number in range(args.faults):
            kind = kinds[number % len(kinds)]
            damage = fault(kind, result.program, random)
            accelerator = copy.deepcopy(whole)
            signal.alarm(3 * SECONDS)
            try:
                accelerator.write(damage.writes)
                explanation = explained(reference, accelerator.memory.snapshot())
                run = None
                with contextlib.suppress(EmulatorError):
                    run = accelerator.run()
            except (MemoryError, TimeoutError, EmulatorError):
                count[kind, "cannot be executed"] += 1
                continue
            finally:
                signal.alarm(0)
            truth = None if run is None else first_difference(reference.run, run)
            assert explanation is not None
            said = explanation.first.layer if explanation.first is not None else None
            right = said == truth, names(accelerator.memory, explanation, damage)
            count[kind, "explained"] += 1
            count[kind, "layer right"] += right[0]
            count[kind, "word right"] += right[1]
            if not all(right):
                print(f"{name}: {kind} at {damage.address:#x}: {right} {explanation}", flush=True)
        print(name, flush=True)
    for (kind, said), number in sorted(count.items()):
        print(f"{number:5} {kind}: {said}")
    total = sum(n for (_, said), n in count.items() if said == "explained")
    parts = [sum(n for (_, said), n in count.items() if said == f"{what} right")
             for what in ("layer", "word")]  # fmt: skip
    return int(min(parts) < REQUIRED * total)


if __name__ == "__main__":
    sys.exit(main())
