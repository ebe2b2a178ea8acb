"""Known answers of software networks through the project's Python and C: `make software-kat`.

A folder of known answers has a folder for each set. Sets that the
project does not know are named; they do not fail.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution, Pool, StepGraph, sources_of
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.synthesis.network import Activation, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.simulate import simulate
from tests.software.calls_answers import wrong_calls
from tests.software.compiled import passed, run_project
from tests.software.container_cores import cases_everywhere
from tests.software.fixed_answers import fixed_cases
from tests.software.lanes_answers import lanes_cases
from tests.software.lowbit_answers import bitnet_cases, lowact_cases
from tests.software.oracle.whole import Executor
from tests.software.planner_answers import level_cases
from tests.software.q15_answers import q15_cases

Arrays = dict[str, NDArray[Any]]
Case = tuple[str, list[str]]
"""The name of a case and what is wrong with it."""
_OPERATORS = {
    "conv1d": Operator.CONV1D,
    "conv2d": Operator.CONV2D,
    "linear": Operator.LINEAR,
}


def read_network(file: Path) -> tuple[Network, Arrays]:
    """Return the network of a case of cmsis-software-nn, and its arrays."""
    case = json.loads(file.read_text())
    with np.load(file.with_suffix(".npz")) as content:
        arrays = dict(content)
    layers = tuple(_layer(entry, arrays) for entry in case["layers"])
    channels, rows, columns = case["layers"][0]["dims_chw"][0]
    image = arrays["input"].reshape(rows, columns, channels).transpose(2, 0, 1)
    order = tuple(range(len(layers)))
    network = Network(
        arch=case["name"],
        layers=layers,
        order=order,
        simulated=order,
        sample=image.astype(np.int64),
    )
    return network, arrays


def _layer(entry: dict[str, Any], arrays: Arrays) -> Layer:
    index, operator = entry["layer"], _OPERATORS[entry["op"]]
    given, *_, made = entry["dims_chw"]
    pooling = Pooling()
    if pool := entry.get("pool"):
        pooling = Pooling(
            tuple(pool["kernel"]), tuple(pool["stride"]), average=pool["type"] == "avg"
        )
    pooled = entry["dims_chw"][1] if pool else given
    kernel = tuple(entry["kernel"])
    wide = entry["output_width"] == 32
    return Layer(
        index=index,
        operator=operator,
        in_channels=given[0],
        out_channels=made[0],
        in_dim=(given[1], given[2]),
        pooling=pooling,
        pooled_dim=(pooled[1], pooled[2]),
        kernel=kernel,
        pad=tuple(entry["pad"]),
        out_dim=(made[1], made[2]),
        activation=Activation.RELU if entry["relu"] else None,
        weight_bits=8,
        shift=0 if wide else entry["output_shift"],
        output_width=32 if wide else 8,
        flatten=entry["flatten"],
        weights=_weights(arrays[f"weights_{index}"], made[0], kernel, pooled, entry["flatten"]),
        bias=arrays[f"bias_{index}"].astype(np.int64) if f"bias_{index}" in arrays else None,
    )


def _weights(
    flat: NDArray[Any], filters: int, kernel: tuple[int, ...], pooled: list[int], flatten: bool
) -> NDArray[np.int8]:
    """Return weights in the order of a network: filter, channel, row, column."""
    if flatten:  # columns stand in the order of pixels
        images = flat.reshape(filters, pooled[1], pooled[2], pooled[0]).transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images).reshape(filters, -1, 1, 1).astype(np.int8)
    ordered = flat.reshape(filters, *kernel, -1).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(ordered).astype(np.int8)


def cmsis_cases(folder: Path) -> Iterator[Case]:
    """Yield the networks: every layer and every output in Python and C, in all schemes."""
    for file in sorted(folder.glob("*.json")):
        network, arrays = read_network(file)
        yield file.stem, [*_wrong(network, arrays), *wrong_calls(network, file)]


def _wrong(network: Network, arrays: Arrays) -> Iterator[str]:
    found = simulate(network, average_rounding=False).outputs
    for layer in network.layers:
        if not np.array_equal(_pixels(found[layer.index]), arrays[f"layer_{layer.index}"]):
            yield f"{layer}: the simulation differs"
    if not np.array_equal(_pixels(found[network.order[-1]]), arrays["output"]):
        yield "the output of the simulation differs"
    marked = tuple(replace(layer, is_output=True) for layer in network.layers)
    for shown in (network, replace(network, layers=marked)):
        expected = [arrays[f"layer_{layer.index}"] for layer in shown.outputs()]
        for scheme in SINGLE:
            made = plan(fuse(lower(shown)), CORES["cortex-m0plus"], scheme)
            made.validate()
            yield from _wrong_plan(shown, made, expected)


def _wrong_plan(network: Network, made: Plan, expected: list[NDArray[Any]]) -> Iterator[str]:
    got = Executor(made).run(network.sample)
    for layer, values, wanted in zip(network.outputs(), got, expected, strict=True):
        if not np.array_equal(_pixels(values), wanted):
            yield f"{layer}, {made.scheme}: the executor differs"
    shapes = [(layer.out_channels, *layer.out_dim) for layer in network.outputs()]
    outputs = tuple(
        wanted.reshape(*shape[1:], shape[0]).transpose(2, 0, 1).astype(np.int64)
        for wanted, shape in zip(expected, shapes, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        files = emit(made, Sample(network.sample, outputs), network.arch, "")
        result = run_project(files, Path(folder))
    if not passed(result):
        yield f"{made.scheme}: C: {result.stdout[-200:]}{result.stderr[-400:]}"


def _pixels(values: NDArray[Any]) -> NDArray[Any]:
    return values.transpose(1, 2, 0).reshape(-1)


def planner_cases(folder: Path) -> Iterator[Case]:
    """Yield the networks of rows.json, plain and pooled: no ring takes more; then memory levels."""
    rows = folder / "rows.json"
    known = json.loads(rows.read_text()) if rows.is_file() else {}
    for name, answers in known.items():
        file = folder.parent / "cmsis-software-nn" / f"{name}.json"
        if not file.is_file():
            yield f"rows {name}", [f"{file} is not there"]
            continue
        plain = lower(read_network(file)[0])
        wrong = [*_larger(plain, answers["rows"], f"{name}, pooling apart")]
        wrong += _larger(fuse(plain), answers["rows_pooling_fused"], f"{name}, pooling fused")
        yield f"rows {name}", wrong
    yield from level_cases(folder)


def _larger(graph: StepGraph, known: dict[str, Any], name: str) -> Iterator[str]:
    """Yield which rings of a plan, or all of them together, take more than is known."""
    made = plan(graph, CORES["cortex-m0plus"], Scheme.ROWS)
    made.validate()
    limit = known["total"]
    print(f"  {name}: {made.data_bytes:,} bytes of rings, maps and sums (known: {limit:,}), "
          f"{made.arena_bytes:,} with scratch and alignment")  # fmt: skip
    if made.data_bytes > limit:
        yield f"{name}: {made.data_bytes} bytes are more than {limit}"
    kinds = {"conv": Convolution, "pool": Pool}
    for stage in known["stages"]:
        if not stage["rows"]:  # pooled by the convolution in front of it
            continue
        step = next(
            s for s in graph.steps
            if s.layer == stage["layer"] and isinstance(s, kinds[stage["op"]])
        )  # fmt: skip
        block = next((made.block_of(source) for source in sources_of(step)), None)
        if block is not None and block.size > stage["bytes"]:
            yield f"{name}, {block.name}: {block.size} bytes are more than {stage['bytes']}"


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "bitnet": bitnet_cases,
    "cmsis-software-nn": cmsis_cases,
    "container": cases_everywhere,
    "fixed": fixed_cases,
    "lanes": lanes_cases,
    "lowact": lowact_cases,
    "planner": planner_cases,
    "q15": q15_cases,
}


def main() -> int:
    """Check all sets of a folder; the exit status is 1 if a case differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    if not folder.is_dir():
        print(f"error: {folder} is not a folder; make software-kat KAT_SOFTWARE=DIR")
        return 1
    failed = total = 0
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        check = SETS.get(path.name)
        if check is None:
            print(f"{path.name}: unknown set, left out")
            continue
        cases = list(check(path))
        wrong = [(name, lines) for name, lines in cases if lines]
        for name, lines in wrong:
            print(*(f"  {name}: {line}" for line in lines), sep="\n")
        print(f"{path.name}: {len(cases) - len(wrong)} of {len(cases)}")
        failed, total = failed + len(wrong), total + len(cases)
    print(f"{total} cases, {failed} failures")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
