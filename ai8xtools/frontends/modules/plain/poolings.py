"""Pooling of a traced network: modules, functions, means and maxima over the whole map.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.kinds import Kind, Step, path_of, value_of
from ai8xtools.frontends.modules.tracing import Node

Shape = tuple[int, ...]


def pooling_function(
    node: Node, name: str, taken: tuple[int, ...], given: tuple[int, ...]
) -> Step | Refusal | None:
    """Return the step of a pooling function or of a mean over the whole map; None for others."""
    if name in ("mean", "amax"):
        return _over_map(node, name == "mean", taken, given)
    if "pool" not in name:
        return None
    fourth = "dilation" if "max" in name else "ceil_mode"
    names = ["kernel_size", "stride", "padding", fourth]
    if "adaptive" in name:
        names = ["output_size"]
    stated = dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)
    given_arguments = {key: value_of(value) for key, value in stated.items()}
    return pooling(node, name.replace("_", ""), given_arguments, taken, given)


def pooling(
    node: Node,
    name: str,
    arguments: Mapping[str, Any],
    taken: tuple[int, ...],
    given: tuple[int, ...],
    module: Any = None,
) -> Step | Refusal | None:
    """Return the step of a pooling, None for kinds that are not known here."""
    average = "avg" in name
    if name.rstrip("123d") not in ("maxpool", "avgpool", "adaptiveavgpool", "adaptivemaxpool"):
        return None
    if "adaptive" in name:
        if any(size % out for size, out in zip(taken[1:], given[1:], strict=True)):
            change = f"{times(taken[1:])} to {times(given[1:])}"
            return Refusal(
                path_of(node), f"windows of different sizes ({change})",
                "Choose an output size that divides the input's, such as 1.",
            )  # fmt: skip
        window = tuple(size // out for size, out in zip(taken[1:], given[1:], strict=True))
        stride, dilation, padding = window, _each(1, taken), _each(0, taken)
    else:
        window = _each(arguments["kernel_size"], taken)
        stride = _each(arguments.get("stride") or window, taken)
        padding = _each(arguments.get("padding") or 0, taken)
        dilation = _each(arguments.get("dilation") or 1, taken)
    if any(padding) and set(padding) != {1}:
        return Refusal(
            path_of(node), f"its padding is {times(padding)}, pooling has none on the accelerator",
            "Use padding=0, such as a window of 2 with stride 2, or padding=1.",
        )  # fmt: skip
    divided_by = arguments.get("divisor_override")
    if average and divided_by and divided_by != math.prod(window):
        return Refusal(path_of(node), f"its average divides by {divided_by}, not by its window",
                       "Remove divisor_override.")  # fmt: skip
    if average and any(padding) and not arguments.get("count_include_pad", True):
        return Refusal(path_of(node), "its average leaves out the padding",
                       "Use count_include_pad=True, or padding=0.")  # fmt: skip
    fitting = tuple(
        (size + 2 * p - d * (w - 1) - 1) // s + 1
        for size, w, s, d, p in zip(taken[1:], window, stride, dilation, padding, strict=True)
    )
    if fitting != given[1:]:
        return Refusal(
            path_of(node), f"ceil_mode makes {times(given[1:])} of what is {times(fitting)}",
            "Use ceil_mode=False.",
        )  # fmt: skip
    if set(window) == {1} and fitting == taken[1:]:
        return Step(node, Kind.PASSING, taken, given, module)
    settings = {"average": average, "window": window, "stride": stride, "dilation": dilation,
                "padding": padding}  # fmt: skip
    return Step(node, Kind.POOLING, taken, given, module, settings)


def _over_map(node: Node, average: bool, taken: Shape, given: Shape) -> Step | Refusal:
    """Return the step of a mean or maximum over a whole map.

    That of one axis has nothing to do where a second one follows for the other axis.
    """
    axes, whole = _axes(node), set(range(2, len(taken) + 1))
    before, behind = node.args[0], next(iter(node.users), None)
    if _completes(before, node):
        taken = tuple(before.args[0].meta["shape"][1:])
    elif behind is not None and _completes(node, behind):
        return Step(node, Kind.PASSING, taken, taken)
    elif axes != whole or not axes:
        what, how = ("averages", "mean") if average else ("takes maxima over", "amax")
        return Refusal(
            path_of(node), f"it {what} other axes than rows and columns",
            f"Average all of them: x.{how}((2, 3))." if average else f"Use x.{how}((2, 3)).",
        )  # fmt: skip
    one = (1,) * len(taken[1:])
    none = (0,) * len(one)
    settings = {"average": average, "window": taken[1:], "stride": one, "dilation": one,
                "padding": none}  # fmt: skip
    return Step(node, Kind.POOLING, taken, given, None, settings)


def _axes(node: Node) -> set[int]:
    """Return the axes over which a node goes, from 0."""
    dims = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    count = len(node.args[0].meta["shape"])
    return {d % count for d in (dims if isinstance(dims, list | tuple) else [dims])
            if isinstance(d, int)}  # fmt: skip


def _completes(first: Node, second: Node) -> bool:
    """Return whether a node goes over the rows that another one leaves of the same function over
    the columns, or the other way round, and nothing else reads those.
    """
    if first.target != second.target or set(first.users) != {second} or not first.args:
        return False
    shape = getattr(first.args[0], "meta", {}).get("shape") or ()
    if len(shape) != 4 or len(_axes(first)) != 1:
        return False
    (ahead,) = _axes(first)
    kept = len(first.meta["shape"]) == len(shape)
    behind = {axis + (not kept and axis >= ahead) for axis in _axes(second)}
    return behind | {ahead} == {2, 3}


def _each(value: Any, taken: tuple[int, ...]) -> tuple[int, ...]:
    """Return a value for each axis of a map."""
    axes = len(taken) - 1
    if isinstance(value, int):
        return (value,) * axes
    found = tuple(value)
    return found * axes if len(found) == 1 else found
