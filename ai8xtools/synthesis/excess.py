"""Padding that no layer of a chip takes, reported as early as values that cannot be read.

Its constraint comes behind sizes and weights. Where these are unknown, it would not be reported; it
could even hide other complaints, or make them appear wrongly.
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.check.operators import padding_limit
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.parse import LayerDescription, Reading, position
from ai8xtools.synthesis.parse.rules import kernel, operation


def with_judged_padding(reading: Reading) -> Reading:
    """Return what was read with a complaint about each padding beyond what a chip has.

    Its layer has the default instead, which is what was probably meant.
    """
    layers, problems, meant = [], [], dict(reading.meant)
    for layer, complaints in zip(reading.description.layers, reading.of_layers, strict=True):
        complaint = _complaint(layer)
        if complaint is not None:
            entry = layer.entries["pad"]
            meant[entry.place] = ("pad", replace(entry, value=(1, 1)))
            kept = {key: value for key, value in layer.entries.items() if key != "pad"}
            layer, complaints = replace(layer, entries=kept), (*complaints, complaint)
        layers.append(layer)
        problems.append(complaints)
    description = replace(reading.description, layers=tuple(layers))
    unique = dict.fromkeys((*reading.problems, *(p for complaints in problems for p in complaints)))
    return replace(
        reading,
        description=description,
        problems=tuple(sorted(unique, key=position)),
        of_layers=tuple(problems),
        meant=meant,
    )


def _complaint(layer: LayerDescription) -> Diagnostic | None:
    operator: Operator = operation(layer)[0]
    if "pad" not in layer or not operator.convolves:
        return None
    pad, (rows, columns) = max(layer.get("pad")), kernel(layer)
    limit = padding_limit((rows, columns))
    if pad <= limit:
        return None
    return layer.error(
        "E302",
        f"'pad' is {pad}, the limit for a {rows}x{columns} kernel is {limit}",
        "pad",
        remedy=f"The nearest valid value is {limit}.",
        effects=effects(Fact.SIZES),
    )
