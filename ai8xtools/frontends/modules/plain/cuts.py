"""Limits, sections and borders of data in a traced network, as far as layers stand for them.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import nn

from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.kinds import Kind, Step, path_of, value_of
from ai8xtools.frontends.modules.tracing import Node

Shape = tuple[int, ...]


def limits(
    node: Node,
    name: str,
    taken: Shape,
    given: Shape,
    found: tuple[float | None, float | None] | None = None,
) -> Step | Refusal:
    """Return the step of a limit to 0 from below, which is ReLU; refuse others.

    `found` are the limits; without them they are the arguments of the function.
    """
    if found is None:
        stated = [*node.args[1:], None, None]
        low = node.kwargs.get("min", node.kwargs.get("min_val", stated[0]))
        high = node.kwargs.get("max", node.kwargs.get("max_val", stated[1]))
        usual = (-1, 1) if name == "hardtanh" else (None, None)
        found = (usual[0] if low is None else low, usual[1] if high is None else high)
    low, high = found
    if low == 0 and high is None:
        return Step(node, Kind.RELU, taken, given)
    if (low, high) == (0, 1):
        return Refusal(path_of(node), "the accelerator has no limit of its own at 1",
                       "Use ReLU: the chip limits results at 1 by itself.")  # fmt: skip
    if name == "Hardtanh":
        return Refusal(path_of(node), "the accelerator has no Hardtanh",
                       "Leave it out: the chip limits results to -1..1 by itself.")  # fmt: skip
    ends = "..".join("" if end is None else str(end) for end in (low, high))
    return Refusal(path_of(node), f"it limits data to {ends}",
                   "Use ReLU, or leave it out: the chip limits results to -1..1.")  # fmt: skip


def section(node: Node, taken: Shape, given: Shape) -> Step | Refusal:
    """Return the step of an index that keeps all data, or every n-th pixel; refuse others."""
    index = value_of(node.args[1])
    parts = index if isinstance(index, tuple) else (index,)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        filled = (slice(None),) * (len(taken) + 2 - len(parts))
        parts = (*parts[:at], *filled, *parts[at + 1 :])
    if given == taken[:1] == (math.prod(taken),) and all(
        part == 0 or part == slice(None) for part in parts
    ):
        return Step(node, Kind.RESHAPING, taken, given)  # the only pixel of each channel
    slices = all(isinstance(part, slice) and not part.start for part in parts)
    steps = [part.step if isinstance(part, slice) and isinstance(part.step, int) else 1
             for part in parts]  # fmt: skip
    steps += [1] * (len(taken) + 1 - len(steps))
    if slices and given == taken:
        return Step(node, Kind.PASSING, taken, given)
    strides = set(steps[2:])
    whole = tuple((n - 1) // s + 1 for n, s in zip(taken, steps[1:], strict=True))
    if slices and len(strides) == 1 and steps[:2] == [1, 1] and whole == given:
        ones = (1,) * len(steps[2:])
        settings = {"average": False, "window": ones, "stride": tuple(steps[2:]), "dilation": ones,
                    "padding": (0,) * len(ones)}  # fmt: skip
        return Step(node, Kind.POOLING, taken, given, None, settings)
    why = f"it cuts {times(given)} out of {times(taken)}"
    if given[:1] != taken[:1]:
        return Refusal(path_of(node), why, "Use a convolution for each part of the channels.")
    if len(given) < len(taken):
        return Refusal(path_of(node), why,
                       "Average instead, such as x.mean(2), or flatten all of it.")  # fmt: skip
    return Refusal(path_of(node), why, "Use less padding in the layer before it.")


def border(
    node: Node,
    stated: Mapping[str, Any],
    taken: Shape,
    given: Shape,
    module: nn.Module | None = None,
) -> Step | Refusal:
    """Return the step of zeros around a map or beside its channels; refuse others."""
    pads = value_of(stated["pad"])
    pads = (pads,) * 2 * (len(taken) - 1) if isinstance(pads, int) else tuple(pads)
    path = path_of(node)
    if any(not isinstance(n, int) for n in pads):
        return Refusal(path, "its padding depends on data", "Use a fixed padding.")
    if not any(pads):
        return Step(node, Kind.PASSING, taken, given, module)
    value = value_of(stated.get("value")) or 0
    if stated.get("mode", "constant") != "constant" or value != 0:
        return Refusal(path, "the accelerator pads with zeros", "Use mode='constant', value=0.")
    around, beside = pads[: 2 * (len(taken) - 1)], pads[2 * (len(taken) - 1) :]
    if min(pads) < 0:
        return Refusal(path, f"it cuts {times(given)} out of {times(taken)}",
                       "Use less padding in the layer before it.")  # fmt: skip
    if len(set(around)) > 1 or (around and len(around) < 2 * (len(taken) - 1)):
        return Refusal(path, f"its padding is {times(around)}, the chip pads all sides alike",
                       "Use the same padding on all sides.")  # fmt: skip
    if any(beside[2:]) or len(taken) < 2:
        return Refusal(path, "it pads the batch or a vector", "Use more outputs of the layer.")
    settings = {"border": around[0], "channels": (*beside, 0, 0)[:2]}
    return Step(node, Kind.BORDER, taken, given, module, settings)
