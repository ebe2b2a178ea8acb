"""The values of --summary.

Source: docs/training.md, "Instead of a run".
"""

from __future__ import annotations

import csv
import io

from torch import Tensor, nn

from ai8xtools.checkpoint import atomic
from ai8xtools.reading import tables
from ai8xtools.training.export.counting import (
    Effort,
    Sparsity,
    count_effort,
    count_zeros,
    dimensions,
)
from ai8xtools.training.options import TrainingOptions

SPARSITY_FILE = "weights_sparsity.csv"


def summarize(model: nn.Module, example: Tensor, options: TrainingOptions) -> str:
    """Return the table or text that is asked for, or write a file and return where it is."""
    kind, name = options.summary, options.summary_filename
    assert kind is not None
    if kind.startswith("onnx"):
        from ai8xtools.training.export.onnx_file import write_onnx

        return write_onnx(model, example, f"{name}.onnx", simplify=kind == "onnx_simplified")
    if kind.startswith("png"):
        from ai8xtools.training.export.drawing import draw

        return draw(model, example, f"{name}.png", kind)
    if kind == "sparsity":
        return _sparsity(count_zeros(model))
    if kind == "compute":
        return _compute(count_effort(model, example))
    return str(model) if kind == "model" else _modules(model)


def _sparsity(sparsities: list[Sparsity]) -> str:
    """Return the table of sparsities, and write it as weights_sparsity.csv."""
    head = ["parameter", "shape", "volume", "sparse volume", "sparsity level"]
    rows = [
        [one.name, dimensions(one.shape), one.volume, one.nonzero, f"{one.percent:.4f}"]
        for one in sparsities
    ]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    atomic.write_bytes(SPARSITY_FILE, text.getvalue().encode())
    volume = sum(one.volume for one in sparsities)
    zeros = volume - sum(one.nonzero for one in sparsities)
    table = tables.table(rows, head, "outline", numbers=True, floatfmt=".4f")
    total = f"Total sparsity: {100 * zeros / max(1, volume):.2f} %"
    return f"{table}\n{total}\nSaved the table as {SPARSITY_FILE}"


def _compute(efforts: list[Effort]) -> str:
    """Return the table of efforts with its total."""
    head = [
        "Name", "Type", "Attrs", "IFM", "IFM volume", "OFM", "OFM volume", "Weights volume", "MACs",
    ]  # fmt: skip
    rows = [
        [
            one.name, one.kind, one.attributes,
            dimensions(one.input_shape), one.input_shape.numel(),
            dimensions(one.output_shape), one.output_shape.numel(),
            one.weights, one.macs,
        ]
        for one in efforts
    ]  # fmt: skip
    total = sum(one.macs for one in efforts)
    return f"{tables.table(rows, head, 'outline', numbers=True, intfmt=',')}\nTotal MACs: {total:,}"


def _modules(model: nn.Module) -> str:
    """Return the table of modules that hold no others."""
    rows = [
        [name, type(module).__name__]
        for name, module in model.named_modules()
        if not next(module.children(), None)
    ]
    return tables.table(rows, ["Name", "Type"], "outline", numbers=True)
