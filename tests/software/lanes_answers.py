"""Known answers of the kernels that compute two products at once: flush intervals and buckets.

`kind: flush`: intervals are found from the weights, and the words at each flush follow from the
packed weights. `kind: buckets`: so do the buckets. In both, the kernels in C give the sums.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES, pack_runs
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.registry import Kernel
from tests.software.compiled import SANITIZED, compiler
from tests.software.oracle.lanes import flush_interval
from tools.kernel_layer import Trial, expected, layer, program

Arrays = dict[str, NDArray[Any]]
_FLAGS = {SMALL_LANES: ("-DNN_FOR_CORTEX_M0PLUS",)}
_NIBBLES = 16
_MASK = 0xFFFF_FFFF


def lanes_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each case and what is wrong with it."""
    for file in sorted(folder.glob("*.json")):
        case, arrays = read_case(file)
        yield file.stem, [*wrong_numbers(case, arrays), *wrong_in_c(case, arrays)]


def read_case(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what a case says, and its arrays."""
    with np.load(file.with_suffix(".npz")) as content:
        return json.loads(file.read_text()), dict(content)


def wrong_numbers(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    """Yield what is wrong with what is computed here."""
    match case["kind"]:
        case "flush":
            yield from _wrong_intervals(case, arrays["w"])
            for number, pixels in enumerate(arrays["x"]):
                words = _words(arrays["w"], pixels, case["L"])
                yield from _differs(words, arrays["words"][number], f"words of set {number}")
                yield from _differs(_of_lanes(words), arrays["acc"][number], f"sums, {number}")
        case "buckets":
            packed = BUCKETS.pack(_conv(case, arrays["w"])).values.astype(np.uint8)
            values = packed.reshape(arrays["w"].shape)
            found = {"A": values & 15, "B": values >> 4}
            totals = []
            for name, nibbles in found.items():
                buckets = _buckets(nibbles, arrays["x"], case["flush"])
                yield from _differs(buckets, arrays[name], f"buckets {name}")
                totals.append(buckets)
            yield from _differs(_counted(*totals), arrays["acc"], "sums")
        case kind:
            yield f"a case of the kind {kind!r} is unknown"


def _wrong_intervals(case: dict[str, Any], weights: NDArray[np.int8]) -> Iterator[str]:
    inputs = weights.shape[1]
    low = np.full(inputs, 0 if case["inputs"] == "relu" else -128)
    high = np.full(inputs, 127)
    for key, anywhere in (("L", False), ("L_any", True)):
        # known intervals end with the weights
        found = min(flush_interval(weights, low, high, anywhere=anywhere), max(inputs, 1))
        if found != case[key]:
            yield f"{key} is {found}, not {case[key]}"


def _differs(found: NDArray[Any], known: NDArray[Any], name: str) -> Iterator[str]:
    if not np.array_equal(found, known):
        yield f"{name} differ"


def _pairs(pixels: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return two pixels in one word each, int64 [input]."""
    wide = pixels.astype(np.int64)
    joined: NDArray[np.int64] = wide[0] + (wide[1] << 16)
    return joined


def _words(weights: NDArray[np.int8], pixels: NDArray[np.int8], length: int) -> NDArray[np.int64]:
    """Return the words at each flush, of 32 bits [filter, flush], from packed weights."""
    filters, inputs = weights.shape
    packed = pack_runs(_conv({"inputs": "signed"}, weights)).values.tolist()
    found = []
    while packed:
        found += [packed[: 2 * inputs : 2], packed[1 : 2 * inputs : 2]]
        packed = packed[packed.index(0, 2 * inputs) + 1 :]  # behind the runs
    products = np.array(found[:filters], np.int64) * _pairs(pixels)
    words: NDArray[np.int64] = np.add.reduceat(products, np.arange(0, inputs, length), axis=1)
    return words & _MASK


def _buckets(
    nibbles: NDArray[np.uint8], pixels: NDArray[np.int8], length: int
) -> NDArray[np.int64]:
    """Return the buckets at each flush, of 32 bits [filter, flush, bucket]."""
    here = nibbles[:, :, None] == np.arange(_NIBBLES)
    data = np.where(here, _pairs(pixels)[:, None], 0)
    sums: NDArray[np.int64] = np.add.reduceat(data, np.arange(0, data.shape[1], length), axis=1)
    return sums & _MASK


def _lanes(words: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the numbers of 16 bits in both halves."""
    lower = words.astype(np.uint32).astype(np.uint16).astype(np.int16).astype(np.int64)
    upper = ((words - lower) >> 16).astype(np.uint16).astype(np.int16).astype(np.int64)
    return [lower, upper]


def _of_lanes(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of both pixels, [filter, pixel]."""
    return np.stack([lane.sum(1) for lane in _lanes(words)], axis=1)


def _counted(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of both pixels: each bucket counts as often as its nibble says."""
    times = np.arange(_NIBBLES)
    signed = np.where(times < _NIBBLES // 2, times, times - _NIBBLES)
    lanes = zip(_lanes(low), _lanes(high), strict=True)
    return np.stack(
        [(a * times).sum((1, 2)) + 16 * (b * signed).sum((1, 2)) for a, b in lanes], axis=1
    )


def _conv(case: dict[str, Any], weights: NDArray[np.int8]) -> Convolution:
    """Return the layer of a case: two pixels under 1x1, sums as they are."""
    return layer(
        (1, 2), weights.astype(np.int8)[:, :, None, None], np.zeros(len(weights), np.int64),
        wide=True, signed=case.get("inputs") != "relu", low=-128,
    )  # fmt: skip


def wrong_in_c(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    """Yield which kernels in C do not give the sums, with sanitizers."""
    flush = case["kind"] == "flush"
    sets = arrays["x"] if flush else arrays["x"][None]
    sums = arrays["acc"] if flush else arrays["acc"][None]
    conv = _conv(case, arrays["w"])
    data = [np.ascontiguousarray(pixels[None], np.int8) for pixels in sets]
    for one, known in zip(data, sums, strict=True):
        yield from _differs(expected(conv, one)[0].T, known, "expected sums")
    for kernel in (LANES, SMALL_LANES) if flush else (BUCKETS,):
        told = _told([Trial(conv, kernel, one) for one in data], kernel)
        if told != "*** PASS ***\n":
            yield f"{kernel.source}: {told[-200:]}"


def _told(trials: list[Trial], kernel: Kernel) -> str:
    """Return what a program prints that computes layers on this computer."""
    command = compiler()
    assert command is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in program(trials).items():
            (folder / path).write_text(text)
        built = subprocess.run(
            [*command, "-std=c99", *SANITIZED, *_FLAGS.get(kernel, ()),
             *map(str, folder.glob("*.c")), "-o", str(folder / "main")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            return built.stderr
        run = subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
        return run.stdout + run.stderr
