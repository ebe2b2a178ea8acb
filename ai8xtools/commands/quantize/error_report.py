"""quantize.py --report: what quantization did to weights, outputs and results, in a file.

Source: docs/quantization.md, "Errors by layer".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.quantize.arguments import QuantizeOptions, ReportOptions
from ai8xtools.quantization import Quantized, TensorReport
from ai8xtools.reading.tables import table

if TYPE_CHECKING:  # they need torch
    from ai8xtools.quantization.bit_search import Step
    from ai8xtools.quantization.layer_errors import NetworkErrors

VERSION = 1
"""Of the JSON; it changes when a key gets another meaning or goes."""


def make_report(
    checkpoint: Checkpoint,
    quantized: Quantized,
    options: QuantizeOptions,
    report: ReportOptions,
    search: Sequence[Any] | None,
) -> str:
    """Return the text of the report; outputs are measured where there are samples for it."""
    measured = None
    if report.samples is not None:
        from ai8xtools.commands.quantize.measuring import measure_errors  # here: it needs torch

        measured = measure_errors(checkpoint, quantized.checkpoint, options.network, report.samples)
    return report_text(report_facts(options, quantized, measured, search), report.path)


def report_facts(
    options: QuantizeOptions,
    quantized: Quantized,
    measured: tuple[str, int, NetworkErrors] | None,
    search: Sequence[Any] | None,
) -> dict[str, Any]:
    """Return what the report says, in the form of its JSON; ratios that are not finite are None.

    `measured` are the name of the data set, the number of samples and the errors on them; `search`
    the steps of the search for widths and the chosen one.
    """
    return {
        "version": VERSION,
        "input": options.network.input,
        "output": options.output,
        "device": options.network.chip.name,
        "tensors": [_tensor(tensor) for tensor in quantized.tensors],
        **(_unmeasured() if measured is None else _measured(*measured)),
        "search": None if search is None else _search(*search),
    }


def report_text(facts: Mapping[str, Any], path: str) -> str:
    """Return the report in the format that the suffix of its file asks for."""
    match Path(path).suffix.lower():
        case ".json":
            return json.dumps(facts, indent=2, allow_nan=False) + "\n"
        case ".html" | ".htm":
            from ai8xtools.writing.templates import render

            return render("quantization/report.html.j2", facts=facts, conclusion=conclusion(facts),
                          curve=_points(facts["search"]), tables=tables(facts),
                          noise=_noise(facts["layers"]))  # fmt: skip
        case _:
            return _plain(facts)


def _noise(layers: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, str]]:
    """Return of each layer its noise as a part of the greatest, and its SNR; without noise 0."""
    powers = [0.0 if one["alone_snr_db"] is None else 10 ** (-one["alone_snr_db"] / 10)
              for one in layers]  # fmt: skip
    most = max(powers, default=0.0) or 1.0
    return [(one["name"], power / most, _ratio(one["alone_snr_db"]))
            for one, power in zip(layers, powers, strict=True)]  # fmt: skip


def conclusion(facts: Mapping[str, Any]) -> str:
    """Return in a few sentences which layer costs accuracy, and which adds most noise."""
    results, samples = facts["results"], facts["samples"]
    if results is None:
        return "Outputs were not measured: add --report-data DATASET or --calibrate DATASET."
    layers = {layer["name"]: layer for layer in facts["layers"]}
    noisiest = layers[facts["noisiest"]]
    noise = (
        f"{noisiest['name']} adds most noise: with no other layer quantized, the results have an "
        f"SNR of {_ratio(noisiest['alone_snr_db'])} dB and {_percent(noisiest['alone_same'])} of "
        f"{samples['count']} samples of {samples['dataset']} keep the result; with all layers "
        f"quantized {_ratio(results['snr_db'])} dB and {_percent(results['same'])}."
    )
    if results["right"] is None:
        return noise
    totals = (
        f"Classified right, of samples that trained the network unless there are only others: "
        f"{_percent(results['trained_right'])} in floating point, "
        f"{_percent(results['right'])} quantized"
    )
    if facts["costliest"] is None:
        return f"No layer alone costs accuracy. {totals}. {noise}"
    right = _percent(layers[facts["costliest"]]["alone_right"])
    return f"{facts['costliest']} costs most accuracy: {right} with it alone. {totals}. {noise}"


def tables(facts: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the tables of the report: title, heads and rows of text."""
    parts = [(
        "Weights and biases",
        ["tensor", "shape", "bits", "shift", "clipped", "SNR/dB"],
        [[t["name"], "×".join(map(str, t["shape"])), str(t["bits"]), str(t["shift"]),
          _percent(t["clipped"]), _ratio(t["snr_db"])] for t in facts["tensors"]],
    )]  # fmt: skip
    if facts["layers"]:
        heads = ["layer", "output SNR/dB", "outputs clipped", "alone: SNR/dB", "alone: same result",
                 "alone: right"]  # fmt: skip
        rows = [[one["name"], _ratio(one["output_snr_db"]), _percent(one["output_clipped"]),
                 _ratio(one["alone_snr_db"]), _percent(one["alone_same"]),
                 "-" if one["alone_right"] is None else _percent(one["alone_right"])]
                for one in facts["layers"]]  # fmt: skip
        parts.append(("Layers; alone: the results when no other layer is quantized", heads, rows))
    if facts["search"]:
        heads = ["", "bytes", "of 8 bits", "SNR/dB", "same result", "bits"]
        rows = [["*" if one["chosen"] else "", str(one["bytes"]), _percent(one["share"]),
                 _ratio(one["snr_db"]), _percent(one["same"]),
                 " ".join(f"{name}:{bits}" for name, bits in one["bits"].items())]
                for one in facts["search"]]  # fmt: skip
        parts.append(("Bits by sensitivity", heads, rows))
    return parts


def _plain(facts: Mapping[str, Any]) -> str:
    parts = [f"{facts['input']} -> {facts['output']}, {facts['device']}", conclusion(facts)]
    for title, heads, rows in tables(facts):
        parts.append(f"{title}\n\n{table(rows, heads, whole=True)}")
    return "\n\n".join(parts) + "\n"


def _tensor(tensor: TensorReport) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "bits": tensor.bits,
        "shift": tensor.shift,
        "clipped": tensor.clipped / math.prod(tensor.shape),
        "snr_db": _finite(tensor.snr_db),
    }


def _unmeasured() -> dict[str, Any]:
    return {"samples": None, "layers": [], "results": None, "costliest": None, "noisiest": None}


def _measured(dataset: str, count: int, errors: NetworkErrors) -> dict[str, Any]:
    layers = [
        {
            "name": one.name,
            "output_snr_db": _finite(one.output_snr_db),
            "output_clipped": one.output_clipped,
            "alone_snr_db": _finite(one.alone_snr_db),
            "alone_same": one.alone_same,
            "alone_right": one.alone_right,
        }
        for one in errors.layers
    ]
    noisiest = min(errors.layers, key=lambda one: one.alone_snr_db)
    return {
        "samples": {"dataset": dataset, "count": count},
        "layers": layers,
        "results": {
            "snr_db": _finite(errors.snr_db),
            "same": errors.same,
            "right": errors.right,
            "trained_right": errors.trained_right,
        },
        "costliest": costliest(errors),
        "noisiest": noisiest.name,
    }


def costliest(errors: NetworkErrors) -> str | None:
    """Return the layer that classifies least right alone, None where all do as well as before.

    Where the quantized network is better than the trained one, it was trained for its integers: its
    weights in floating point mean nothing, and no layer costs anything.
    """
    before, after = errors.trained_right, errors.right
    if before is None or after is None or after >= before:
        return None
    worst = min(errors.layers, key=lambda one: (one.alone_right or 0.0, one.alone_snr_db))
    return worst.name if (worst.alone_right or 0.0) < before else None


def _search(steps: Sequence[Step], chosen: Step) -> list[dict[str, Any]]:
    return [
        {
            "bytes": step.size_bytes,
            "share": step.size_bytes / steps[0].size_bytes,
            "snr_db": _finite(step.snr_db),
            "same": step.same,
            "bits": dict(step.bits),
            "chosen": step is chosen,
        }
        for step in steps
    ]


def _points(search: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Return the curve of a search: x and y from 0 to 1, and what a point stands for."""
    steps = [one for one in search or () if one["snr_db"] is not None]
    highest = max((one["snr_db"] for one in steps), default=0.0)
    return [
        {"x": one["share"], "y": max(one["snr_db"], 0.0) / max(highest, 1e-9),
         "chosen": one["chosen"], "bytes": one["bytes"], "snr_db": one["snr_db"]}
        for one in steps
    ]  # fmt: skip


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"


def _percent(part: float) -> str:
    return f"{100 * part:.2f} %"
