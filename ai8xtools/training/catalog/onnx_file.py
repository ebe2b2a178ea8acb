"""Networks that are ONNX graphs in floating point, as networks of ai8x layers.

Source: docs/own-models.md, "A graph of ONNX".
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.frontends.layers import refuse
from ai8xtools.frontends.modules.plain.network import import_operators
from ai8xtools.frontends.onnx.door import input_shape, read_fractions
from ai8xtools.training.catalog.discovery import LAYER_KEYWORDS, ModelEntry
from ai8xtools.training.catalog.imported import with_notes


def is_graph(name: str) -> bool:
    """Return whether a name is that of an ONNX file."""
    return name.lower().endswith(".onnx")


def graph_model(path: str) -> ModelEntry:
    """Return the entry of the network that a graph is.

    Raises CheckpointError for a file that cannot be read, InputError E678 for an input whose size
    is not fixed, when it is made E670 naming each node that the chip cannot compute.
    """
    graph = read_graph(path)
    shape = input_shape(graph, path)

    def make(**keywords: Any) -> nn.Module:
        whole = shape if len(shape) > 1 else (*shape, 1, 1)  # as data sets give features
        operators, refusals, notes = read_fractions(graph, whole)
        refuse(refusals, path)
        layer_keywords = {k: keywords[k] for k in LAYER_KEYWORDS if keywords.get(k)}
        imported = import_operators(operators, path, layer_keywords)
        return with_notes(replace(imported, notes=(*notes, *imported.notes)))

    return ModelEntry(Path(path).stem.lower(), make, 1, 1 if len(shape) == 2 else 2)
