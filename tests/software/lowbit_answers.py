"""Known answers of low-bit networks through the project's Python and C."""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import (
    BY_IDENTIFIER,
    ENCODINGS,
    Encoding,
    encode,
    pack,
    statistics,
    unpack,
)
from ai8xtools.software.lowbit.emit import Samples, emit
from ai8xtools.software.lowbit.engine import Run, multiplied, run
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Rule, Windows
from ai8xtools.software.lowbit.requantize import requantize

Arrays = dict[str, NDArray[Any]]
_ULP = 2.0**-23
_TRACE = """
#include <stdint.h>
#include <string.h>
static unsigned char kept[1 << 18];
static unsigned used;
static void keep(const int32_t *values, unsigned count)
{
    memcpy(kept + used, values, 4 * count);
    used += 4 * count;
}
#define LOWBIT_SEEN(name, values, count) keep(values, count)
#include "lowbit.c"
unsigned take(unsigned char *out)
{
    unsigned count = used;
    memcpy(out, kept, count);
    used = 0;
    return count;
}
"""


def read_case(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what a case says, and its arrays."""
    with np.load(file.with_suffix(".npz")) as content:
        return json.loads(file.read_text()), dict(content)


def compiled(
    network: LowBitNetwork, inputs: NDArray[np.int8], folder: Path, compress: bool = False
) -> Iterator[tuple[NDArray[np.int32], int]]:
    """Yield all sums and the class that the C computes of each input; undefined steps end it."""
    for name, text in emit(network, Samples(inputs[:1]), "known answer", compress).items():
        (folder / name).write_text(text)
    (folder / "trace.c").write_text(_TRACE)
    subprocess.run(
        ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-fsanitize=undefined",
         "-fno-sanitize-recover", "-fPIC", "-shared", "-o", "trace.so", "trace.c"],
        cwd=folder, check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(folder / "trace.so"))
    buffer = ctypes.create_string_buffer(1 << 18)
    for values in inputs:
        found = library.Inference(np.ascontiguousarray(values).ctypes.data_as(ctypes.c_void_p))
        count = library.take(buffer)
        yield np.frombuffer(buffer.raw[:count], np.int32), found


def same_in_c(
    network: LowBitNetwork, inputs: NDArray[np.int8], compress: bool = False
) -> Iterator[str]:
    """Yield what differs between Python and C."""
    expected = run(network, inputs)
    with tempfile.TemporaryDirectory() as folder:
        computed = compiled(network, inputs, Path(folder), compress)
        for number, (sums, found) in enumerate(computed):
            wanted = np.concatenate([one.sums[number].reshape(-1) for one in expected.layers])
            if not np.array_equal(sums, wanted) or found != expected.classes[number]:
                yield f"input {number}: the C differs"


def bitnet_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the exported networks: codes, words, statistics, every layer, every class."""
    with np.load(folder / "inputs.npz") as content:
        inputs = content["x"]
    for file in sorted(folder.glob("*.json")):
        case, arrays = read_case(file)
        yield file.stem, [*_wrong_layers(case, arrays), *_wrong_network(case, arrays, inputs)]


def exported_network(case: dict[str, Any], arrays: Arrays) -> LowBitNetwork:
    """Return the network of a case of bitnet."""
    convolutions = [entry for entry in case["layers"] if entry["kind"] == "conv"]
    pools = [entry["id"] for entry in case["layers"] if entry["kind"] not in ("conv", "fc")]
    stem, inputs = None, 256
    if convolutions:
        numbers = [entry["id"] for entry in convolutions]
        kernels = [arrays[f"L{number}_weights"].reshape(-1, 3, 3) for number in numbers]
        stem = DepthwiseChain(tuple(numbers), tuple(kernels), tuple(pools[:2]))  # type: ignore[arg-type]
        inputs = 4 * stem.channels
    layers = []
    for entry in case["layers"]:
        if entry["kind"] == "fc":
            number, outputs = entry["id"], entry["outgoing_weights"]
            layers.append(Dense(number, BY_IDENTIFIER[entry["bitperweight"]], inputs, outputs,
                                arrays[f"L{number}_weights"]))  # fmt: skip
            inputs = outputs
    return LowBitNetwork(stem, tuple(layers), Rule(), Rule())


def _wrong_network(case: dict[str, Any], arrays: Arrays, inputs: NDArray[np.int8]) -> Iterator[str]:
    network = exported_network(case, arrays)
    found = run(network, inputs)
    for layer in found.layers:
        activations = requantize(layer.sums, Rule()).values
        if not np.array_equal(layer.sums, arrays[f"out32_{layer.name}"]):
            yield f"{layer.name}: the sums differ"
        if not np.array_equal(activations, arrays[f"out8_{layer.name}"]):
            yield f"{layer.name}: the activations differ"
    if not np.array_equal(found.classes, arrays["pred"]):
        yield "the classes differ"
    yield from same_in_c(network, inputs)


def _wrong_layers(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    entries = [entry for entry in case["layers"] if entry["kind"] in ("conv", "fc")]
    for place, entry in enumerate(entries):
        name, words = f"L{entry['id']}", arrays[f"L{entry['id']}_weights"]
        encoding = _encoding_of(entry)
        weights, clip = arrays.get(f"w{place}"), arrays.get(f"s{place}")
        if entry["kind"] == "conv":
            codes = None
            if weights is not None and clip is not None:
                codes = encode(weights, float(clip), encoding)
                if not np.array_equal(np.array(encoding.values)[codes].reshape(-1), words):
                    yield f"{name}: the kernels differ"
        else:
            inputs = entry["incoming_weights"] if weights is None else weights.shape[1]
            codes = unpack(words, inputs, encoding)
            if not np.array_equal(pack(codes, encoding), words):
                yield f"{name}: the words differ"
            made = (
                codes if weights is None else encode(weights, float(arrays[f"s{place}"]), encoding)
            )
            if not np.array_equal(made, codes):
                yield f"{name}: the codes differ"
        if codes is not None and "stats" in case:
            yield from _wrong_statistics(name, codes, encoding, case["stats"][place])


def _encoding_of(entry: dict[str, Any]) -> Encoding:
    if entry["kind"] == "conv":
        return ENCODINGS["8bit"]
    return ENCODINGS.get(entry.get("quant_type", "")) or BY_IDENTIFIER[entry["bitperweight"]]


def _wrong_statistics(
    name: str, codes: NDArray[np.int64], encoding: Encoding, known: dict[str, Any]
) -> Iterator[str]:
    """Compare to 1e-9; the deviation to the last place of float32, whose sum depends on its order.

    A binary weight that is equal to the mean counts as a third level there, and as the code that is
    stored here.
    """
    if encoding.name == "Binary" and 0.0 in known["values"]:
        return
    found = statistics(codes, encoding)
    pairs = [
        (found.least, known["min"]), (found.greatest, known["max"]), (found.mean, known["mean"]),
        (found.entropy_bits, known["entropy_bits"]),
        (found.capacity_percent, known["code_capacity_percent"]),
        *zip(found.values, known["values"], strict=True),
        *zip(found.percent, known["percent"], strict=True),
    ]  # fmt: skip
    if max(abs(one - other) for one, other in pairs) > 1e-9:
        yield f"{name}: the statistics differ"
    if abs(found.deviation - known["std"]) > _ULP * known["std"]:
        yield f"{name}: the deviation differs"


def lowact_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield product tables, packed codes, requantized sums and networks of windows."""
    with np.load(folder.parent / "bitnet" / "inputs.npz") as content:
        inputs = content["x"]
    for file in sorted(folder.glob("*.json")):
        case, arrays = read_case(file)
        match case["kind"]:
            case "table":
                wrong = _wrong_table(case, arrays)
            case "pack":
                wrong = _wrong_codes(case, arrays)
            case "requant":
                wrong = _wrong_scales(case, arrays)
            case "windows":
                wrong = _wrong_windows(case, arrays, inputs[: case["inputs"]])
            case kind:
                wrong = iter([f"unknown kind {kind!r}"])
        yield file.stem, [*wrong]


def _wrong_table(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    encoding = ENCODINGS[case["encoding"]]
    layer = Dense(0, encoding, case["n_in"], case["n_out"], arrays["words"])
    if not np.array_equal(np.outer(np.arange(-8, 16), encoding.table), arrays["table"]):
        yield "the product table differs"
    values = arrays["x"].astype(np.int64)
    if not np.array_equal(multiplied(layer, values, fine=True), arrays["acc"]):
        yield "the sums differ"
    if values.min() >= -128 and case["input"] == "int8":
        network = LowBitNetwork(None, (layer,), Rule(), Rule(), fine=True)
        yield from same_in_c(network, arrays["x"].astype(np.int8))


def _wrong_codes(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    encoding = ENCODINGS[case["encoding"]]
    codes = encode(arrays["w"], case["s"], encoding)
    if not np.array_equal(codes, arrays["codes"]):
        yield "the codes differ"
    if not np.array_equal(np.array(encoding.table)[codes], arrays["values"]):
        yield "the values differ"
    if not np.array_equal(pack(codes, encoding), arrays["words"]):
        yield "the words differ"


def rule_of(case: dict[str, Any], group: int = 1) -> Rule:
    """Return the rule that a case names."""
    name, rounds, limit = case["rule"], bool(case["round"]), case["q"]
    if name.startswith("recip"):
        return Rule("reciprocal", int(name[5:]), rounds, limit, group)
    return Rule("max" if name == "max" else "shift", 0, rounds, limit, group)


def _wrong_scales(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    found = requantize(arrays["acc"], rule_of(case, case["group"]))
    pairs = {
        "y": found.values, "m": found.greatest, "shift": found.shift, "factor": found.factor,
    }  # fmt: skip
    yield from (
        f"{name} differs"
        for name, values in pairs.items()
        if not np.array_equal(values, arrays[name])
    )


def windowed_network(case: dict[str, Any], arrays: Arrays) -> LowBitNetwork:
    """Return the network of a case of windows."""
    encoding, count = ENCODINGS[case["encoding"]], case["windows"]
    stem, inputs = None, 256
    if case["stride"]:
        inputs, rows = 64, []
        for place, outputs in enumerate(case["stem"]):
            names = [f"s{place}"]
            if not case["shared"]:
                names = [f"s{place}_{window}" for window in range(count)]
            rows.append(tuple(Dense(place, encoding, inputs, outputs, arrays[f"words_{name}"])
                              for name in names))  # fmt: skip
            inputs = outputs
        stem = Windows(case["stride"], tuple(rows), bool(case["shared"]))
        inputs *= count
    layers = []
    for place, outputs in enumerate([*case["head"], arrays[f"acc_h{len(case['head'])}"].shape[1]]):
        layers.append(Dense(place, encoding, inputs, outputs, arrays[f"words_h{place}"]))
        inputs = outputs
    group = count if case.get("shared_scale") else 1
    return LowBitNetwork(stem, tuple(layers), rule_of(case), rule_of(case, group), fine=True)


def _wrong_windows(case: dict[str, Any], arrays: Arrays, inputs: NDArray[np.int8]) -> Iterator[str]:
    network = windowed_network(case, arrays)
    found: Run = run(network, inputs)
    front = len(found.layers) - len(network.layers)
    for place, layer in enumerate(found.layers):
        name = f"s{place}" if place < front else f"h{place - front}"
        if not np.array_equal(
            layer.sums.reshape(arrays[f"acc_{name}"].shape), arrays[f"acc_{name}"]
        ):
            yield f"{name}: the sums differ"
        known = arrays.get(f"y_{name}")
        if known is not None and not np.array_equal(layer.activations, known):
            yield f"{name}: the activations differ"
    if not np.array_equal(found.classes, arrays["pred"]):
        yield "the classes differ"
    yield from same_in_c(network, inputs)
