"""Which tensors of a weights file belong to which layer: by name where the description has one.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from diagnostics import Diagnostic, Place
from synthesis.parse import LayerDescription
from synthesis.parse.closest import closest
from synthesis.resolve.tensors import OF_ANOTHER_LAYER

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
    if not any("weights" in layer for layer in layers):
        return list(zip(layers, range(len(names)), strict=False))
    position = {
        name.removeprefix(_PARALLEL): number
        for number, spellings in enumerate(names)
        for name in spellings
    }
    named = [layer for layer in layers if "weights" in layer]
    found = []
    for layer in named:
        wanted = layer.get("weights").removeprefix(_PARALLEL)
        if wanted in position:
            found.append((layer, position[wanted]))
        else:
            problems.append(_unknown(layer, list(position), place))
    taken = {number for _, number in found}
    rest = (number for number in range(len(names)) if number not in taken)
    others = (layer for layer in layers if "weights" not in layer)
    return sorted([*found, *zip(others, rest, strict=False)], key=lambda pair: pair[1])


def _unknown(layer: LayerDescription, known: Sequence[str], place: Place) -> Diagnostic:
    wanted = layer.get("weights")
    near = closest(wanted, known)
    return layer.error(
        "E240",
        f"'weights' is {wanted}, but {place} holds no weights of this name",
        "weights",
        remedy=f"Did you mean '{near}'?"
        if near
        else "Use the checkpoint of this network, or remove the key to take tensors in order.",
        effects=OF_ANOTHER_LAYER,
    )
