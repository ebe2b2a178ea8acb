"""Shapes, sections, borders and enlargement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Concat,
    Foreign,
    Pad,
    Reshape,
    Resize,
    Shape,
    Slice,
    Transpose,
    cropped,
    repeated,
)
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles


@handles("Reshape")
def _reshape(call: Call) -> Node:
    stated, taken = call.integers(1, "shape"), call.data.shape
    if stated is None:
        raise UnknownError("its shape is not known")
    sizes = [taken[i] if n == 0 and not call.get("allowzero", 0) else n
             for i, n in enumerate(stated)]  # fmt: skip
    if call.batch > 1 and sizes and sizes[0] == call.batch and call.data.constant is None:
        sizes[0] = 1
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(taken) // rest if rest else 0
    return call.make(Reshape(tuple(sizes)), call.data)


@handles("Flatten")
def _flatten(call: Call) -> Node:
    shape = call.data.shape
    axis = call.get("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return call.make(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.data)


@handles("Squeeze", "Unsqueeze")
def _squeeze(call: Call) -> Node:
    stated, shape = call.integers(1, "axes"), call.data.shape
    if call.name == "Squeeze":
        gone = {a % len(shape) for a in stated} if stated else {
            i for i, n in enumerate(shape) if n == 1 and (i or call.data.constant is not None)
        }  # fmt: skip
        if any(shape[axis] != 1 for axis in gone):
            raise UnknownError("it takes away an axis of more than one element")
        sizes = tuple(n for i, n in enumerate(shape) if i not in gone)
        return call.make(Reshape(sizes), call.data)
    rank = len(shape) + len(stated or ())
    result = list(shape)
    for axis in sorted(a % rank for a in stated or ()):
        result.insert(axis, 1)
    return call.make(Reshape(tuple(result)), call.data)


@handles("Transpose")
def _transpose(call: Call) -> Node:
    order = tuple(call.get("perm") or range(len(call.data.shape))[::-1])
    return call.make(Transpose(order), call.data)


@handles("Concat")
def _concat(call: Call) -> Node:
    parts = [call.input(number) for number in range(len(call.inputs))]
    if all(one.constant is not None and not one.shape for one in parts):
        parts = [call.make(Reshape((1,)), one) for one in parts]
    if len(parts) == 1:
        return parts[0]
    return call.make(Concat(call.get("axis", 1) % len(parts[0].shape)), *parts)


@handles("Slice")
def _slice(call: Call) -> Node:
    shape = call.data.shape
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    if starts is None or ends is None:
        raise UnknownError("what it cuts is not known")
    axes = call.integers(3, "axes") or tuple(range(len(starts)))
    steps = call.integers(4, "") or (1,) * len(starts)
    ranges = [range(n) for n in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        n = shape[axis]
        first, last = start, end
        if step < 0:
            last = None if end < -n else end  # type: ignore[assignment]
        ranges[axis] = range(n)[first:last:step]
    return _cut(call, ranges)


def _cut(call: Call, ranges: Sequence[range]) -> Node:
    if list(map(len, ranges)) == list(call.data.shape) and all(r.step == 1 for r in ranges):
        return call.data
    if not all(map(len, ranges)) and call.data.constant is None:
        raise UnknownError("it leaves nothing of its data")
    operator = Slice(tuple(r.start for r in ranges), tuple(r.step for r in ranges),
                     tuple(map(len, ranges)))  # fmt: skip
    return call.make(operator, call.data)


@handles("Split")
def _split(call: Call) -> list[Node]:
    shape, axis = call.data.shape, call.get("axis", 0)
    count = len(call.node.outputs)
    sizes = call.integers(1, "split") or (-(-shape[axis] // count),) * count
    parts, at = [], 0
    for size in sizes:
        ranges = [range(n) for n in shape]
        ranges[axis] = range(shape[axis])[at : at + size]
        parts.append(_cut(call, ranges))
        at += size
    return parts


@handles("Gather")
def _gather(call: Call) -> Node:
    shape, axis = call.data.shape, call.get("axis", 0) % len(call.data.shape)
    index = call.constant(1)
    if index is None or index.ndim > 1:
        raise UnknownError("its indices have several axes")
    chosen = [int(n) % shape[axis] for n in index.ravel()]
    step = chosen[1] - chosen[0] if len(chosen) > 1 else 1
    if chosen != [chosen[0] + step * n for n in range(len(chosen))] or step == 0:
        places = (*(tuple(range(n)) for n in shape[:axis]), tuple(chosen))
        return call.make(
            Resize((*places, *(tuple(range(n)) for n in shape[axis + 1 :]))), call.data
        )
    ranges = [range(n) for n in shape]
    ranges[axis] = range(chosen[0], chosen[0] + step * len(chosen), step)
    cut = _cut(call, ranges)
    if index.ndim:
        return cut
    return call.make(Reshape((*shape[:axis], *shape[axis + 1 :])), cut)


@handles("Expand", "Tile")
def _repeat(call: Call) -> Node:
    data, stated = call.data, call.integers(1) or ()
    if call.name == "Tile":
        shape = tuple(n * m for n, m in zip(data.shape, stated, strict=True))
    else:
        shape = np.broadcast_shapes(data.shape, stated)
    if shape == data.shape:
        return data
    if shape[:1] != (1,) and data.constant is None:
        raise UnknownError("it repeats the batch", "Let operators broadcast.")
    if len(shape) > len(data.shape):
        data = call.make(Reshape((*(1,) * (len(shape) - len(data.shape)), *data.shape)), data)
    return call.make(repeated(data.shape, shape), data)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@handles("Pad")
def _pad(call: Call) -> Node:
    flat, count = call.integers(1, "pads") or (), len(call.data.shape)
    value = call.constant(2, "value")
    axes = call.integers(3) or tuple(range(count))
    stated = [(0, 0)] * count
    for number, axis in enumerate(axes):
        stated[axis] = (flat[number], flat[len(axes) + number])
    pads = tuple(stated)
    data = call.data
    if min(map(min, pads)) < 0:
        cut, pads = cropped(data.shape, pads)
        if min(cut.count) < 1:
            raise UnknownError("it leaves nothing of its data")
        data = call.make(cut, data)
    mode = _MODES[call.get("mode", "constant")]
    if not any(map(any, pads)):
        return data
    return call.make(Pad(pads, 0.0 if value is None else float(value), mode), data)


@handles("DepthToSpace")
def _depth_to_space(call: Call) -> Node:
    size, (batch, channels, rows, columns) = call.get("blocksize"), call.data.shape
    outputs = channels // size**2
    if call.get("mode", "DCR") == "DCR":
        parts, order = (batch, size, size, outputs, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (batch, outputs, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    apart = call.make(Transpose(order), call.make(Reshape(parts), call.data))
    return call.make(Reshape((batch, outputs, rows * size, columns * size)), apart)


@handles("SpaceToDepth")
def _space_to_depth(call: Call) -> Node:
    size, (batch, channels, rows, columns) = call.get("blocksize"), call.data.shape
    parts = (batch, channels, rows // size, size, columns // size, size)
    order = (0, 3, 5, 1, 2, 4) if call.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    apart = call.make(Transpose(order), call.make(Reshape(parts), call.data))
    return call.make(Reshape((batch, channels * size**2, rows // size, columns // size)), apart)


@handles("Resize", "Upsample")
def _resize(call: Call) -> Node:
    mode = call.get("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise UnknownError(
            f"it interpolates by mode {mode}", "Use mode='nearest', or ConvTranspose."
        )
    shape, sizes = call.data.shape, None
    if call.name == "Upsample" or len(call.inputs) == 2:
        scales = call.constant(1, "scales")
    else:
        scales, sizes = call.constant(2), call.integers(3)
    axes = call.get("axes", tuple(range(len(shape))))
    factors, lengths = [1.0] * len(shape), list(shape)
    for number, axis in enumerate(axes):
        if sizes:
            lengths[axis] = sizes[number]
            factors[axis] = sizes[number] / shape[axis]
        elif scales is not None and scales.size:
            factors[axis] = float(np.asarray(scales).ravel()[number])
            lengths[axis] = math.floor(shape[axis] * factors[axis])
        else:
            raise UnknownError("its sizes are not known")
    if call.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnknownError("it keeps the aspect ratio", "State the sizes themselves.")
    if call.batch > 1 and sizes and lengths[0] == call.batch:
        lengths[0], factors[0] = 1, 1.0
    old = call.name == "Upsample" or call.opset < 11
    along = "asymmetric" if old else call.get("coordinate_transformation_mode", "half_pixel")
    rounding = "floor" if old else call.get("nearest_mode", "round_prefer_floor")
    if mode == "linear":
        return _interpolated(call, tuple(lengths), factors, along)
    places = tuple(
        tuple(range(n)) if factor == 1 and m == n else _nearest(n, m, factor, along, rounding)
        for n, m, factor in zip(shape, lengths, factors, strict=True)
    )
    return call.make(Resize(places), call.data)


def _interpolated(call: Call, shape: Shape, factors: Sequence[float], along: str) -> Node:
    """Return data that is interpolated, if the sizes alone say how."""
    exact = [n * f for n, f in zip(call.data.shape, factors, strict=True)] == [*shape]
    usual = along in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    if not exact or not usual or call.get("antialias", 0):
        raise UnknownError("it interpolates by mode linear in a form that is not known here",
                           "Use mode='nearest', or ConvTranspose.")  # fmt: skip
    remedy = "Use mode='nearest', or ConvTranspose."
    operator = Foreign("Resize by mode linear", shape, remedy, "linearinterpolation",
                       (("coordinates", along),))  # fmt: skip
    return call.make(operator, call.data)


def _nearest(n: int, m: int, factor: float, along: str, rounding: str) -> Shape:
    """Return which of `n` elements each of `m` is."""
    i = np.arange(m, dtype=np.float64)
    match along:
        case "half_pixel":
            x = (i + 0.5) / factor - 0.5
        case "pytorch_half_pixel":
            x = (i + 0.5) / factor - 0.5 if m > 1 else i * 0
        case "asymmetric":
            x = i / factor
        case "align_corners":
            x = i * ((n - 1) / (m - 1)) if m > 1 else i * 0
        case _:
            raise UnknownError(f"its coordinates are by {along}", "Use half_pixel or asymmetric.")
    match rounding:
        case "round_prefer_floor":
            index = np.ceil(x - 0.5)
        case "round_prefer_ceil":
            index = np.floor(x + 0.5)
        case "floor":
            index = np.floor(x)
        case "ceil":
            index = np.ceil(x)
        case _:
            raise UnknownError(f"it rounds by {rounding}", "Use floor.")
    return tuple(int(n) for n in np.clip(index, 0, n - 1))
