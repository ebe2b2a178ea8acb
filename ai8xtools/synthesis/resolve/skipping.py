"""Descriptions without their first layers, for working on the rest of a network.

Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.parse import Description, Entry, LayerDescription
from ai8xtools.synthesis.parse.rules import layer_index

_REFERENCES = (
    "in_sequences",
    "next_sequence",
    "simulated_sequence",
    "snoop_sequence",
    "weight_source",
)


def without_first_layers(
    description: Description, count: int, problems: list[Diagnostic]
) -> Description:
    """Return the description without its first `count` layers; the others are counted from 0.

    A layer that refers to one of those left out is a problem.
    """
    if not 0 <= count < len(description.layers):
        problems.append(
            Diagnostic(
                "E225",
                f"leaves out {count} layers, the description has {len(description.layers)}",
                description.layers[-1].place.with_option("--skip-yaml-layers"),
                f"Use a number from 0 to {len(description.layers) - 1}.",
            )
        )
        return description
    if not count:
        return description
    return replace(
        description,
        layers=tuple(
            _renumbered(layer, description, count, problems) for layer in description.layers[count:]
        ),
    )


def _renumbered(
    layer: LayerDescription, whole: Description, count: int, problems: list[Diagnostic]
) -> LayerDescription:
    """Return a layer whose references by number are those behind the layers left out."""
    entries = dict(layer.entries)
    for key in _REFERENCES:
        if key not in layer:
            continue
        value = layer.get(key)
        several = value if isinstance(value, tuple) else (value,)
        indices = (layer_index(reference, whole) for reference in several)
        lost = [i for i in indices if i is not None and 0 <= i < count]
        if lost:
            problems.append(
                layer.error(
                    "E232",
                    f"'{key}' names layer {lost[0]}, which --skip-yaml-layers {count} leaves out",
                    key,
                    remedy="Leave out fewer layers, or name a layer that remains (or input).",
                )
            )
        numbers = tuple(r - count if isinstance(r, int) and r >= 0 else r for r in several)
        moved = numbers if isinstance(value, tuple) else numbers[0]
        entries[key] = Entry(moved, entries[key].place)
    return LayerDescription(layer.place, entries, layer.index - count)
