"""Values that no layer of a chip takes, told as early as values that cannot be read.

Their constraints come behind sizes and weights. Where these cannot be told, such a value would not
be named; a huge padding would even pass for the cause of other complaints, or hide them.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.check.operators import padding_limit
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.parse import Description, LayerDescription, Reading, position
from ai8xtools.synthesis.parse.keys import LAYER_KEYS
from ai8xtools.synthesis.parse.kinds import Integer, Pair
from ai8xtools.synthesis.parse.rules import kernel, operation


def with_judged_padding(reading: Reading) -> Reading:
    """Return what was read with a complaint about each padding beyond what a chip has.

    Its layer has the default instead, which is what was probably meant.
    """
    layers, problems, meant = [], [], dict(reading.meant)
    for layer, found in zip(reading.description.layers, reading.of_layers, strict=True):
        complaint = _complaint(layer)
        if complaint is not None:
            entry = layer.entries["pad"]
            meant[entry.place] = ("pad", replace(entry, value=(1, 1)))
            kept = {key: value for key, value in layer.entries.items() if key != "pad"}
            layer, found = replace(layer, entries=kept), (*found, complaint)
        layers.append(layer)
        problems.append(found)
    description = replace(reading.description, layers=tuple(layers))
    known = dict.fromkeys((*reading.problems, *(p for found in problems for p in found)))
    return replace(
        reading,
        description=description,
        problems=tuple(sorted(known, key=position)),
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


def beyond_all_limits(description: Description, known: Set[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield values that no operator takes on any chip, in lines without a `known` error."""
    lines = {d.place.line for d in known if d.place is not None and d.severity.is_error}
    for layer in description.layers:
        for key in ("output_shift", "dilation", "out_offset"):
            if key not in layer or layer.place_of(key).line in lines:
                continue
            value, (low, high) = layer.get(key), _LIMITS[key]
            value = max(value) if isinstance(value, tuple) else value
            if low <= value <= high:
                continue
            message = f"'{key}' is {value}, the limits are {low} and {high}"
            remedy = f"The nearest valid value is {min(max(value, low), high)}."
            if key == "output_shift":
                yield layer.error("E301", message, key, remedy=remedy)
            elif key == "dilation":
                yield layer.error("E312", message, key, remedy=remedy)
            else:
                yield layer.error("E340", message, key, remedy=remedy)


def _limits() -> Iterator[tuple[str, tuple[int, int]]]:
    for key in LAYER_KEYS:
        if isinstance(key.limits, Integer | Pair):
            low, high = key.limits.low, key.limits.high
            assert low is not None and high is not None
            yield key.name, (low, high)


_LIMITS = dict(_limits())
