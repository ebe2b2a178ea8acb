"""Known answers of cmsis-software-nn through programs that call Arm's functions.

The outputs were compared with the simulation before; here the C has to give them, on this computer
with sanitizers and on the emulated Cortex-M0+ and M4, by the functions that are known.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ai8xtools.software.cmsis.build import planned_calls
from ai8xtools.software.graph import Convolution, Pool, PoolKind
from ai8xtools.software.lower import lower
from ai8xtools.synthesis.network import Network
from tests.software.calls import files_of_calls, passes_on, profile_of
from tests.software.compiled import SANITIZED, passed, run_project

CORES = ("cortex-m0plus", "cortex-m4")


def wrong_calls(network: Network, file: Path) -> Iterator[str]:
    """Yield what is wrong with the programs of a network whose known answers are in a file."""
    yield from wrong_functions(network, file)
    files = files_of_calls(network)
    every = replace(
        network, layers=tuple(replace(layer, is_output=True) for layer in network.layers)
    )
    for what, made in (("output", files), ("every layer", files_of_calls(every))):
        with tempfile.TemporaryDirectory() as folder:
            result = run_project(made, Path(folder), SANITIZED)
        if not passed(result):
            yield f"calls, {what}: {result.stdout[-200:]}{result.stderr[-400:]}"
    for core in CORES:
        if not passes_on(network, core):
            yield f"calls on {core}: other outputs"


def wrong_functions(network: Network, file: Path) -> Iterator[str]:
    """Yield where another function is called than is known; averages are always ours."""
    known = {entry["layer"]: entry for entry in json.loads(file.read_text())["layers"]}
    made = planned_calls(lower(network), profile_of("cortex-m4"))
    for step in made.graph.steps:
        entry = known[step.layer]
        match step:
            case Convolution():
                wanted = entry["function"]
            case Pool():
                wanted = None if step.kind is not PoolKind.MAX else entry["pool_function"]
            case _:
                continue
        found = made.function_of(step)
        if found != wanted:
            yield f"{step.name}: {found} is called, {wanted} is known"
