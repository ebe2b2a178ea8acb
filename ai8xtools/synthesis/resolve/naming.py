"""Which tensors of a weights file belong to which layer: by name where the description has one.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.facts import HINT
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.resolve.tensors import OF_ANOTHER_LAYER

_PARALLEL = "module."
"""Checkpoints of networks that were trained on several devices have this in front of names."""


def paired(
    layers: Sequence[LayerDescription],
    names: Sequence[Collection[str]],
    place: Place,
    problems: list[Diagnostic],
) -> list[tuple[LayerDescription, int]]:
    """Return layers with the position of their tensor in the file, in the order of the file.

    `names` are those of each weight tensor's layer. Layers with the key `weights` take the tensor
    of that name, or get a complaint; the others take what is left, in order.
    """
    problems += counted(layers, len(names), str(place))
    position = {
        name.removeprefix(_PARALLEL): number
        for number, spellings in enumerate(names)
        for name in spellings
    }
    if not any("weights" in layer for layer in layers):
        problems += _shifted(layers, names, position, place)
        return list(zip(layers, range(len(names)), strict=False))
    named = [layer for layer in layers if "weights" in layer]
    pairs = []
    for layer in named:
        tensor = layer.get("weights").removeprefix(_PARALLEL)
        if tensor in position:
            pairs.append((layer, position[tensor]))
        else:
            problems.append(_unknown(layer, list(position), place))
    taken = {number for _, number in pairs}
    rest = (number for number in range(len(names)) if number not in taken)
    others = (layer for layer in layers if "weights" not in layer)
    return sorted([*pairs, *zip(others, rest, strict=False)], key=lambda pair: pair[1])


def counted(layers: Sequence[LayerDescription], count: int, file: str) -> list[Diagnostic]:
    """Return the hint that a file has tensors for more layers than the description."""
    if not layers or len(layers) >= count:
        return []
    return [
        replace(
            layers[0].error(
                "N246",
                f"{file} has tensors for {count} layers, {len(layers)} layers here take some",
                remedy="A layer may be missing: its tensors go to the layer behind it.",
                effects=HINT,
            ),
            severity=Severity.NOTICE,
        )
    ]


def _shifted(
    layers: Sequence[LayerDescription],
    names: Sequence[Collection[str]],
    position: Mapping[str, int],
    place: Place,
) -> list[Diagnostic]:
    """Return a hint about the first layer that has the name of other tensors than it takes."""
    for number, layer in enumerate(layers[: len(names)]):
        meant = position.get(layer.name or "", number)
        if meant == number:
            continue
        taken = min(names[number], key=len)
        behind = meant > number
        hint = layer.error(
            "N245",
            f"takes the tensors of '{taken}', which come next in {place}; those of "
            f"'{layer.name}' come {'later' if behind else 'earlier'}",
            "name",
            remedy=f"Add the layer '{taken}', which is missing in front of this one; or name the "
            f"tensors that are meant: weights: {layer.name}."
            if behind
            else "Remove the layer that stands twice; or name the tensors that are meant: "
            f"weights: {layer.name}.",
        )
        return [replace(hint, severity=Severity.NOTICE, effects=HINT)]
    return []


def _unknown(layer: LayerDescription, names: Sequence[str], place: Place) -> Diagnostic:
    name = layer.get("weights")
    near = closest(name, names)
    return layer.error(
        "E240",
        f"'weights' is {name}, but {place} holds no weights of this name",
        "weights",
        remedy=f"Did you mean '{near}'?"
        if near
        else "Use the checkpoint of this network, or remove the key to take tensors in order.",
        effects=OF_ANOTHER_LAYER,
    )
