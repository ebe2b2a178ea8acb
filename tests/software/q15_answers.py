"""Known answers of formats of 16 and 8 bits: from floating-point data to integers, in Python and C.

Source: the README of the known answers, "Power-of-two per-tensor quantization".
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.quantization.q15.execute import execute, quantize_input, wrapped
from ai8xtools.quantization.q15.floating import compute, measure
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder, Weighted
from ai8xtools.quantization.q15.network import QuantizedNetwork, quantize_network
from ai8xtools.software.q15.emit import Sample, emit
from tests.software.compiled import SANITIZED, passed, run_project

Arrays = dict[str, NDArray[Any]]
_FLOAT64 = 2.0**-48
"""By how much sums of float64 in another order may differ, relative to the largest product."""
CORES = ("cortex-m0plus", "cortex-m4")
_WEIGHTS = re.compile(r"w\d*$")


def q15_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each case of a folder with what is wrong with it."""
    for file in sorted(folder.glob("*.json")):
        case, arrays = read_case(file)
        wrong = [*differences(case, arrays, quantized(case, arrays))]
        with tempfile.TemporaryDirectory() as name:
            wrong += c_differences(case, arrays, Path(name), CORES)
        yield f"q15 {file.stem}", wrong


def read_case(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the description and the arrays of a case."""
    with np.load(file.with_suffix(".npz")) as content:
        return json.loads(file.read_text()), dict(content)


def quantized(case: dict[str, Any], arrays: Arrays) -> QuantizedNetwork:
    """Return the network of a case, quantized by its own samples."""
    graph = graph_of(case, arrays)
    ranges = measure(graph, [samples_of(case, arrays)]).largest
    return quantize_network(graph, ranges, ranges, case["bits"], Guard(case["guard"]))


def samples_of(case: dict[str, Any], arrays: Arrays) -> NDArray[np.float64]:
    """Return the samples as [N, C, H, W]."""
    channels, rows, columns = (*case["in_shape_CHW"], 1, 1)[:3]
    return arrays["x"].reshape(-1, channels, rows, columns).astype(np.float64)


def layers_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the layers of a case; a single layer has keys of its own."""
    if "layers" in case:
        layers: list[dict[str, Any]] = case["layers"]
        return layers
    layer = dict(case, op=case["kind"])
    return [layer]


def graph_of(case: dict[str, Any], arrays: Arrays) -> Graph:
    """Return the floating-point network of a case."""
    builder = GraphBuilder(case["in_shape_CHW"])
    tensor = 0
    single = "layers" not in case
    for number, layer in enumerate(layers_of(case)):
        suffix = "" if single else str(number)
        name = f"{layer['op']}{suffix}"
        if layer["op"] in ("conv", "fc"):
            weights, bias = arrays[f"w{suffix}"], arrays[f"b{suffix}"]
            if layer["op"] == "fc":
                tensor = builder.linear(name, tensor, weights, bias)
            else:
                stride, padding = _pair(layer["stride"]), _pair(layer["pad"])
                tensor = builder.convolution(name, tensor, weights, bias, stride, padding)
            if layer["relu"]:
                tensor = builder.clip(f"{name}_relu", tensor, 0, float("inf"))
        else:
            window, stride = _pair(layer["k"]), _pair(layer["stride"])
            tensor = builder.pool(name, tensor, layer["op"] == "avgpool", window, stride)
    return builder.finished(tensor)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def differences(case: dict[str, Any], arrays: Arrays, network: QuantizedNetwork) -> Iterator[str]:
    """Yield which formats, integers and results are not those of the case."""
    graph = network.graph
    single = "layers" not in case
    weighted = [step for step in graph.steps if isinstance(step, Weighted)]
    numbers = [n for n, layer in enumerate(layers_of(case)) if layer["op"] in ("conv", "fc")]
    inputs = quantize_input(network, samples_of(case, arrays))
    overflows: list[int] = []
    maps = execute(
        network, inputs, lambda _, sums: overflows.append(int((wrapped(sums) != sums).sum()))
    )
    yield from _unequal("x_q", inputs, arrays["x_q"])
    for step, number in zip(weighted, numbers, strict=True):
        suffix = "" if single else str(number)
        layer, known = network.layers[step.target], layers_of(case)[number]
        for key in ("kx", "kw", "kb", "ko", "bias_lshift", "out_rshift", "guard_bits"):
            if getattr(layer.formats, key) != known[key]:
                yield f"{step.name}: {key} is {getattr(layer.formats, key)}, not {known[key]}"
        yield from _unequal("weights", layer.weights, arrays["w_q" if single else f"wq{suffix}"])
        yield from _unequal("bias", layer.bias, arrays["b_q" if single else f"bq{suffix}"])
        result = maps[graph.activated(step.target)]
        yield from _unequal("result", result, arrays["y_q" if single else f"y{suffix}"])
    yield from _checks_of_kind(case, arrays, network, maps, overflows)


def _checks_of_kind(
    case: dict[str, Any],
    arrays: Arrays,
    network: QuantizedNetwork,
    maps: list[NDArray[np.int64]],
    overflows: list[int],
) -> Iterator[str]:
    """Yield what else is not as known: of a layer its bound, of a network its errors."""
    exact = compute(network.graph, samples_of(case, arrays))[network.graph.output]
    fraction = network.fractions[network.graph.output]
    found = maps[network.graph.output].transpose(0, 3, 1, 2) * 2.0**-fraction
    error = float(np.abs(found - exact).max())
    largest = [np.abs(arrays[k]).max() for k in arrays if k == "x" or _WEIGHTS.match(k)]
    tolerance = _FLOAT64 * max(float(np.prod(largest[:2])), float(np.abs(exact).max()))
    if abs(error - case["max_abs_err"]) > tolerance:
        yield f"the largest error is {error}, not {case['max_abs_err']}"
    if "layers" not in case:
        (layer,) = network.layers.values()
        if layer.formats.bound != case["acc_bound"]:
            yield f"the bound is {layer.formats.bound}, not {case['acc_bound']}"
        if sum(overflows) != case["acc_overflows"]:
            yield f"{sum(overflows)} sums wrap around, not {case['acc_overflows']}"
        return
    for number, layer in enumerate(case["layers"]):
        if "pool" in layer["op"]:
            step = next(s for s in network.graph.steps if s.name == f"{layer['op']}{number}")
            yield from _unequal(step.name, maps[step.target], arrays[f"y{number}"])


def _unequal(what: str, found: NDArray[Any], known: NDArray[Any]) -> Iterator[str]:
    if not np.array_equal(found.reshape(-1), known.reshape(-1)):
        wrong = (
            int((found.reshape(-1) != known.reshape(-1)).sum()) if found.size == known.size else -1
        )
        yield f"{what}: {wrong} of {known.size} values differ"


def fails_on_core(files: Mapping[str, str], core: str, folder: Path) -> Iterator[str]:
    """Yield what is wrong with a project on an emulated core."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    run = run_plain(compile_plain(folder, ARCHITECTURES[core]))
    if not run.passed:
        yield f"the C differs on {core}: {run.text[-300:]}"


def c_differences(
    case: dict[str, Any], arrays: Arrays, folder: Path, cores: Sequence[str] = ()
) -> Iterator[str]:
    """Yield what is wrong with the program in C of a case, run on each of its samples.

    The first is run on emulated `cores`, too.
    """
    network = quantized(case, arrays)
    inputs = quantize_input(network, samples_of(case, arrays))
    outputs = execute(network, inputs)[network.graph.output]
    for number, (given, made) in enumerate(zip(inputs, outputs, strict=True)):
        files = emit(network, Sample(given, made), "known", "known answers")
        result = run_project(files, folder / str(number), SANITIZED)
        if not passed(result):
            yield f"the C differs for sample {number}: {result.stdout[-300:]}{result.stderr[:900]}"
            return
        if number == 0:
            for core in cores:
                yield from fails_on_core(files, core, folder / core)
