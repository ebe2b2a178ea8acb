"""Random single-word faults, and how they are explained: `python -m tests.emulator.explained`.

The faults are those of `tests.emulator.faults`. An explanation is right if it names the layer in
which the results of the accelerator first depart, and the word that was damaged as the cause. Then
numbers in cnn_unload() are damaged, in C that is compiled: right is cnn_unload() with the first
byte of the result that differs for any of some random inputs, or one before it. Status 1 if less
than 99 % are right.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import io
import re
import resource
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands import targets
from ai8xtools.commands.emulate.explaining import of_results
from ai8xtools.commands.emulate.simulation import synthesized_again
from ai8xtools.commands.explain.explanation import Explanation, ReferenceRun, explained
from ai8xtools.commands.loader.origin import rebuilt
from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.firmware.repeated import data_places
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
from tests.networks.deployed import (
    BY_FILE,
    Deployed,
    with_random_weights,
    with_weights_at_random,
)

_NUMBER = re.compile(r"(?<![\w.])(?:0x[0-9a-f]+|\d+)(?=u?\b)")
_BYTE = re.compile(r"as byte (\d+) of the result")


def names(memory: Memory, explanation: Explanation, damage: Fault) -> bool:
    """Whether the cause is the damaged word."""
    cause = explanation.cause
    if cause is None or cause.kind != damage.kind:
        return False
    return any(departure.address(memory) == damage.address for departure in cause.departures)


def project_of(deployed: Deployed, folder: Path) -> Path:
    """Write the project of a description with random weights."""
    checkpoint, _ = with_random_weights(deployed, folder)
    np.save(folder / "sample.npy", deployed.integers())
    words = ["--device", deployed.chip.name, "--config-file", deployed.path, "--checkpoint-file",
             checkpoint, "--sample-input", str(folder / "sample.npy"), "--prefix", "net",
             "--test-dir", str(folder)]  # fmt: skip
    words += ["--fifo"] * deployed.fifo
    words += ["--avg-pool-rounding"] * deployed.encoding.average_rounding
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert targets.main("ai8xize.py", words) == 0
    return folder / "net"


def damaged_unloading(code: str, random: np.random.Generator) -> str:
    """Return C in which a bit of a number in cnn_unload() is another one."""
    start = code.index("int cnn_unload(")
    end = code.index("\n}\n", start)
    some = [number for number in _NUMBER.finditer(code, start, end)
            if "//" not in code[code.rfind("\n", 0, number.start()) : number.start()]]  # fmt: skip
    number = some[int(random.integers(len(some)))]
    value = int(number[0], 0)
    bits = 17 if number[0].startswith("0x") else max(value.bit_length(), 1)
    new = value ^ 1 << int(random.integers(bits))
    text = f"{new:#x}" if number[0].startswith("0x") else str(new)
    return code[: number.start()] + text + code[number.end() :]


def first_wrong_byte(network: NetworkAlone, addresses: NDArray[np.int64]) -> int | None:
    """Return the first byte of the result that another one is delivered for, of random inputs."""
    random = np.random.default_rng(7)
    wrong: set[int] = set()
    for _ in range(3):
        network.run(random.integers(-128, 128, network.input_shape))
        memory = network.board.accelerator.memory
        places = data_places(memory, addresses - memory.addresses.apb_base)
        found = network.unloaded(len(addresses), fill=0)
        wrong |= set(np.flatnonzero(found != memory.data_bytes[places]).tolist())
    return min(wrong, default=None)


def unloading(name: str, faults: int, seed: int, count: Counter[tuple[str, str]]) -> None:
    """Damage the unloading of a network."""
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as place:
        project = project_of(BY_FILE[name], Path(place))
        reference = ReferenceRun(rebuilt(synthesized_again(project), project))
        code = (project / "cnn.c").read_text()
        for _ in range(faults):
            (project / "cnn.c").write_text(damaged_unloading(code, random))
            said, truth, network = "", None, None
            gc.collect()  # a core takes a gigabyte of addresses
            try:
                network = NetworkAlone(project)
                said = of_results(network, reference)
                truth = first_wrong_byte(network, delivered(reference.result.program))
            except EmulatorError as error:
                if error.code == "E811":
                    count["unloading", "does not compile"] += 1
                    continue
                right = "cnn_unload()" in error.message or "cnn_unload()" in said
            else:
                byte = _BYTE.search(said)
                right = "cnn_unload()" in said and (byte is None or truth is None
                                                    or int(byte[1]) <= truth)  # fmt: skip
                right = right or (truth is None and not said)
            count["unloading", "explained"] += 1
            count["unloading", "layer right"] += right
            count["unloading", "word right"] += right
            count["unloading", "changes nothing"] += truth is None and not said
            if not right:
                print(f"{name}: unloading: {truth}: {said}", flush=True)


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
        unloading(name, args.faults // len(KINDS), seed, count)
        print(name, flush=True)
    for (kind, said), number in sorted(count.items()):
        print(f"{number:5} {kind}: {said}")
    total = sum(n for (_, said), n in count.items() if said == "explained")
    parts = [sum(n for (_, said), n in count.items() if said == f"{what} right")
             for what in ("layer", "word")]  # fmt: skip
    return int(min(parts) < REQUIRED * total)


if __name__ == "__main__":
    sys.exit(main())
