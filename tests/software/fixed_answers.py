"""Known answers of fixed-point weights: formats, layers and lengths."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.fixed import (
    Division,
    Rule,
    choose_lengths,
    data_magnitude,
    divided,
    divisor,
    fixed_layer,
    q_format,
    summarize,
    weight_magnitude,
)
from ai8xtools.quantization.fixed.length import weight_sqnr_db
from ai8xtools.quantization.formats import to_fixed

Arrays = dict[str, NDArray[Any]]
_TOLERANCE_DB = 1e-9


def fixed_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each file and what is wrong with it."""
    for file in sorted(folder.glob("*.json")):
        case = json.loads(file.read_text())
        arrays: Arrays = {}
        if file.with_suffix(".npz").is_file():
            with np.load(file.with_suffix(".npz")) as content:
                arrays = dict(content)
        check = {"format": _formats, "layer": _layer, "length": _lengths}[case["kind"]]
        yield file.stem, [*check(case, arrays)]


def _formats(case: dict[str, Any], _: Arrays) -> Iterator[str]:
    for row in case["rows"]:
        value, bits = row["value"], row["bits"]
        form = q_format(abs(value), bits)
        found: dict[str, Any] = {
            "integer_bits": form.integer,
            "fraction_bits": form.fraction,
            "q": int(to_fixed(value, form.fraction, bits)),
        }
        for division in Division:
            by = divisor(abs(value), division)
            found |= {f"D_{division}": by, f"q_{division}": int(divided(value, by, bits))}
        yield from _different(found, row, f"{value} in {bits} bits")


def _rule(stated: Any) -> Rule:
    return Rule() if stated == "max" else Rule(stated[0], stated[1])


def _layer(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    x, w, b = (arrays[name].astype(np.float64) for name in "xwb")
    ranges, bits = _rule(case["data_range"]), case["bits"]
    y = x @ w.T + b
    y = np.maximum(y, 0) if case["relu"] else y
    magnitude = weight_magnitude(w, _rule(case["statistic"]))
    in_fraction = q_format(data_magnitude(summarize(x), ranges), bits).fraction
    made = fixed_layer(
        w, b, bits=bits, division=Division(case["div"]), magnitude=magnitude,
        in_fraction=in_fraction,
        out_fraction=q_format(data_magnitude(summarize(y), ranges), bits).fraction,
    )  # fmt: skip
    found: dict[str, Any] = {
        "m": magnitude, "D": made.by, "fx": in_fraction, "fy": made.out_fraction,
        "kb": made.bias_fraction, "shift": made.out_shift, "container_D": made.stored_factor,
    }  # fmt: skip
    if case["weight_k"] is not None:
        found["weight_k"] = made.stored_fraction
    yield from _different(found, case, "layer")
    x_q = to_fixed(x, in_fraction, bits)
    y_q = made.finish(x_q @ made.weights.T, relu=case["relu"])
    assert made.bias is not None
    for name, values in (("x_q", x_q), ("w_q", made.weights), ("b_q", made.bias), ("y_q", y_q)):
        if not np.array_equal(values, arrays[name]):
            yield f"{name} differs"


def _lengths(case: dict[str, Any], arrays: Arrays) -> Iterator[str]:
    weights = [arrays[f"w{number}"] for number in range(len(arrays))]
    ratios = {
        bits: [weight_sqnr_db(w, bits, Division.POWER_OF_TWO) for w in weights] for bits in (8, 16)
    }
    for bits, found in ratios.items():
        stated = [math.inf if v is None else v for v in case[f"sqnr{bits}"]]
        if not np.allclose(found, stated, rtol=0, atol=_TOLERANCE_DB):
            yield f"ratios at {bits} bits: {found}"
    for run in case["runs"]:
        made = choose_lengths(ratios[8], [w.size for w in weights], run["T"], run["flash"])
        shown = {"bytes": made.size_bytes, "fits": made.fits}
        shown |= {"bits": list(made.bits) if made.fits else None}
        yield from _different(shown, {"fits": True} | run, f"{run['T']} dB, {run['flash']} bytes")
        used = run.get("used_T", run["T"])
        if (used is None) != (made.threshold is None) or (
            used is not None and abs(used - made.threshold) > _TOLERANCE_DB  # type: ignore[operator]
        ):
            yield f"threshold {made.threshold}, expected {used}"


def _different(found: dict[str, Any], stated: dict[str, Any], where: str) -> Iterator[str]:
    for name, value in found.items():
        if value != stated[name]:
            yield f"{where}: {name} is {value}, expected {stated[name]}"
