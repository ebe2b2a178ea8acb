"""Kernels, pads, windows and sections of operators, as keys of a description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ai8xtools.frontends.graph.execute import turned
from ai8xtools.frontends.graph.nodes import Node, shape_of
from ai8xtools.frontends.graph.operators import (
    Array,
    Conv,
    ConvTranspose,
    Gemm,
    Pad,
    Pads,
    Pool,
    Reduce,
    Reduction,
    Resize,
    Shape,
    Slice,
)
from ai8xtools.frontends.layers import Refusal, short, times
from ai8xtools.frontends.windows import MOST_POOLED, stages
from ai8xtools.values import frozen


@frozen
class LayerSpec:
    """The operator of a description with its keys, the shape of the result, and decimations.

    `weights` are the kernels that it has then. `padded`: pooling takes a border of one zero.
    `first` are keys of poolings before that of `keys`, where a large window takes several.
    """

    op: str
    keys: dict[str, Any]
    shape: Shape
    weights: Array | None = None
    before: int = 1
    after: int = 1
    padded: bool = False
    first: tuple[dict[str, Any], ...] = ()


def step_of(node: Node, operator: Slice) -> int | Refusal:
    """Return the step of a section that keeps every n-th row and column."""
    shape = node.inputs[0].shape
    whole = tuple(-(-n // s) for n, s in zip(shape, operator.step, strict=True))
    steps = set(operator.step[2:])
    cut = any(operator.start) or operator.count != whole or operator.step[:2] != (1, 1)
    if not cut and len(steps) == 1:
        return steps.pop()
    why = f"it cuts {times(node.shape[1:])} out of {times(shape[1:])}"
    if node.shape[1:2] != shape[1:2]:
        return Refusal(node.place, why, "Use a convolution for each part of the channels.")
    return Refusal(node.place, why, "Use less padding before it, and one step for both axes.")


def zeros(node: Node, operator: Pad) -> tuple[int, tuple[int, int]] | Refusal:
    """Return the border of zeros that a Pad puts around a map, and those beside its channels."""
    if operator.mode != "constant" or operator.value:
        return Refusal(node.place, "the accelerator pads with zeros",
                       "Pad with zeros: mode='constant'.")  # fmt: skip
    batch, beside, *sides = operator.pads
    around = {n for pair in sides for n in pair}
    if any(batch) or len(around) > 1:
        shown = times([pair[end] for end in (0, 1) for pair in operator.pads[1:]])
        return Refusal(node.place, f"its padding is {shown}, the chip pads all sides alike",
                       "Use the same padding on all sides.")  # fmt: skip
    return max(around, default=0), beside


def doubles(operator: Resize, shape: Shape) -> bool:
    """Return whether a Resize repeats each pixel of [N, C, H, W] in 2x2."""
    factors = (1, 1, 2, 2)
    return len(shape) == len(factors) and operator.places == tuple(
        tuple(i // factor for i in range(n * factor))
        for n, factor in zip(shape, factors, strict=True)
    )


_AXES = ("samples", "channels", "rows", "columns")


def why_not_resized(operator: Resize, shape: Shape) -> tuple[str, str]:
    """Return why no layer stands for a Resize of data of a shape, and what to use instead."""
    axes = _AXES if len(shape) == len(_AXES) else (*_AXES[:2], *["values"] * (len(shape) - 2))
    whole = zip(axes, map(list, operator.places), shape, strict=True)
    changed = [(name, places, n) for name, places, n in whole if places != [*range(n)]]
    names = " and ".join(dict.fromkeys(name for name, _, _ in changed))
    if any(len(places) == n or places != sorted(places) for _, places, n in changed):
        shown = ", ".join(map(str, changed[0][1][:_SHOWN]))
        more = ", ..." if len(changed[0][1]) > _SHOWN else ""
        return (f"it takes {names} in an order of its own: {shown}{more}",
                "Leave their order, or compute this part in the application.")  # fmt: skip
    first = next(axis for axis in range(3) if axis == 2 or names.startswith(axes[axis]))
    made = tuple(map(len, operator.places))
    return (f"it makes {times(made[first:])} of {times(shape[first:])}",
            "Use mode='nearest' with scale_factor=2, or ConvTranspose2d.")  # fmt: skip


_SHOWN = 4


def operator(node: Node, weights: Array) -> LayerSpec | Refusal:
    """Return what a Conv, ConvTranspose or Gemm is in a description."""
    match node.operator:
        case Gemm():
            if len(node.shape) != 2:
                why = f"it works on the last axis of {times(node.inputs[0].shape[1:])}"
                return Refusal(node.place, why, "Flatten the data before it.")
            return LayerSpec("Linear", {}, node.shape[1:], weights)
        case ConvTranspose() as back:
            return _transposed(node, back, weights)
        case Conv() as forward:
            return _convolution(node, forward, weights)
        case _:
            raise TypeError(f"{node.name} has no weights")


def _convolution(node: Node, conv: Conv, weights: Array) -> LayerSpec | Refusal:
    kernel, axes = weights.shape[2:], weights.ndim - 2
    keys = _kernel_keys(node, kernel, conv.strides, conv.pads, conv.dilations, conv.groups)
    if isinstance(keys, Refusal):
        return keys
    if axes == 2 and kernel[0] not in (1, 3):
        count = {5: "two", 7: "three"}.get(kernel[0], "several")
        even = "" if kernel[0] % 2 else ", or pad one side by one more, as padding='same' does"
        return Refusal(node.place, f"its kernel is {times(kernel)}",
                       f"Use {count} 3x3 convolutions, which reach as far{even}.")  # fmt: skip
    pointwise = kernel[0] == 1 and not keys["pad"]
    before, after = (conv.strides[0], 1) if pointwise else (1, conv.strides[0])
    sizes = tuple(n + sum(p) - d * (k - 1) for n, p, d, k in
                  zip(node.inputs[0].shape[2:], conv.pads, conv.dilations, kernel, strict=True)
                  ) if after > 1 else node.shape[2:]  # fmt: skip
    return LayerSpec(f"Conv{axes}d", keys, (len(weights), *sizes), weights, before, after)


def _kernel_keys(
    node: Node, kernel: Shape, strides: Shape, pads: Pads, dilations: Shape, groups: int
) -> dict[str, Any] | Refusal:
    """Return size, padding, dilation and groups of a kernel; the chip has one for all axes."""
    if len(kernel) not in (1, 2):
        return Refusal(node.place, f"its kernel is {times(kernel)}", "Use images or series.")
    if len(set(kernel)) > 1:
        count = -(-(max(kernel) - 1) // 2)
        more = f"; {count} of them, or fewer with pooling in between, reach as far"
        return Refusal(node.place, f"its kernel is {times(kernel)}",
                       f"Use a 3x3 kernel{more if count > 1 else ''}.")  # fmt: skip
    dilations = tuple(d if k > 1 else 1 for d, k in zip(dilations, kernel, strict=True))
    for name, values in (("stride", strides), ("dilation", dilations)):
        if len(set(values)) > 1:
            return Refusal(node.place, f"its {name} is {times(values)}",
                           f"Use one {name} for both axes.")  # fmt: skip
    sides = [p[0] for p in pads] + [p[1] for p in pads]
    if len(set(sides)) > 1 or min(sides) < 0:
        return Refusal(node.place, f"its padding is {times(sides)}, the chip pads all sides alike",
                       "Use the same padding on all sides.")  # fmt: skip
    size = kernel[0] if len(kernel) == 1 else times(kernel)
    keys: dict[str, Any] = {"kernel_size": size, "pad": sides[0]}
    if dilations[0] > 1:
        if len(kernel) > 1:
            return Refusal(node.place, f"its dilation is {times(dilations)}",
                           "Use dilation=1, and pool.")  # fmt: skip
        keys["dilation"] = dilations[0]
    return keys | ({"groups": groups} if groups > 1 else {})


def _transposed(node: Node, back: ConvTranspose, weights: Array) -> LayerSpec | Refusal:
    """Return a transposed convolution; one of stride 1 is a convolution turned around, and one
    that writes 2x2 pixels for each without overlaps has kernels with a row and column of zeros.
    """
    kernel, ones = weights.shape[2:], {*back.strides, *back.dilations, back.groups} == {1}
    if ones and not any(back.output_padding):
        pads = tuple((k - 1 - b, k - 1 - e) for k, (b, e) in zip(kernel, back.pads, strict=True))
        if min(map(min, pads)) >= 0:
            plain = Conv(back.strides, pads, back.dilations)
            return _convolution(node, plain, turned(weights, 1))
    keys = _kernel_keys(node, kernel, back.strides, back.pads, back.dilations, back.groups)
    if isinstance(keys, Refusal):
        return keys
    padding = back.output_padding
    if kernel == back.strides == (2, 2) and not any(map(any, back.pads)) and not any(padding):
        weights, padding = np.pad(weights, ((0, 0), (0, 0), (1, 0), (1, 0))), (1, 1)
        keys |= {"kernel_size": "3x3", "pad": 1}
    if weights.shape[2:] != (3, 3) or set(back.strides) != {2} or set(padding) != {1}:
        return Refusal(
            node.place, f"its kernel is {times(kernel)}, its stride {times(back.strides)}, "
            f"its output_padding {times(padding)}",
            "Use kernel 3x3, strides 2, pads 1, output_padding 1, or kernel 2x2, strides 2.",
        )  # fmt: skip
    return LayerSpec("ConvTranspose2d", keys, node.shape[1:], weights)


def pooling(node: Node, pool: Pool | Reduce) -> LayerSpec | Refusal:
    """Return the keys of a pooling and the shape behind it."""
    shape = node.inputs[0].shape[1:]
    axes, average, padded = len(shape) - 1, False, False
    if isinstance(pool, Reduce):
        average = pool.reduction is Reduction.MEAN
        if not average and pool.reduction is not Reduction.MAX:
            return Refusal(node.place, f"the accelerator has no {node.name}")
        if set(pool.axes) < set(range(2, axes + 2)):
            return Refusal(node.place, "it reduces some of the axes of a map",
                           "Average rows and columns, or take the maximum of both.")  # fmt: skip
        if pool.axes != tuple(range(2, axes + 2)):
            return Refusal(node.place, "it averages other axes than rows and columns" if average
                           else "it takes maxima over other axes than rows and columns",
                           "Average all of them." if average else "Take all of them.")  # fmt: skip
        window, strides, dilations = shape[1:], (1,) * axes, (1,) * axes
    else:
        average, window, strides = pool.average, pool.window, pool.strides
        dilations, sides = pool.dilations, {n for pair in pool.pads for n in pair}
        if sides not in ({0}, {1}):
            shown = times([p[0] for p in pool.pads] + [p[1] for p in pool.pads])
            return Refusal(node.place, f"its padding is {shown}",
                           "Pool with no padding, or with 1 on all sides.")  # fmt: skip
        padded = sides == {1}
        if average and padded and not pool.counted:
            return Refusal(node.place, "its average leaves out the padding",
                           "Use count_include_pad=1, or no padding.")  # fmt: skip
        plain = Pool(average, window, strides, pool.pads, dilations)
        if pool.ceil and shape_of(plain, [node.inputs[0].shape]) != node.shape:
            return Refusal(node.place, "ceil_mode keeps incomplete windows",
                           "Leave ceil_mode out.")  # fmt: skip
    settings = {"window": window, "stride": strides, "dilation": dilations,
                "padding": (int(padded),) * axes}  # fmt: skip
    parts = stages(settings, shape)
    if any(max(*part["window"], *part["stride"]) > MOST_POOLED for part in parts):
        return Refusal(node.place, f"its window is {times(window)}, its stride {times(strides)}; "
                       f"at most {MOST_POOLED} are possible",
                       "Pool in several steps, or use a size that divides into such.")  # fmt: skip
    keys = [_pool_keys("avg_pool" if average else "max_pool", part) for part in parts]
    return LayerSpec("", keys[-1], node.shape[1:], padded=padded, first=tuple(keys[:-1]))


def _pool_keys(name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    keys = {name: short(part["window"]), "pool_stride": short(part["stride"])}
    if set(part["dilation"]) != {1}:
        keys["pool_dilation"] = short(part["dilation"])
    return keys
