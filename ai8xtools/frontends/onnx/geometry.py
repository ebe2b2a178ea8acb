"""Kernels, pads, windows and shapes of ONNX nodes, as keys of a description."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.onnx.attributes import refused_attributes
from ai8xtools.frontends.windows import MOST_POOLED, stages
from ai8xtools.values import frozen

Array = NDArray[Any]


@frozen
class Found:
    """The operator of a description with its keys, the shape of the result, and decimations.

    `padded`: pooling takes a border of one zero. `first` are keys of poolings before that of
    `keys`, where a large window takes several.
    """

    op: str
    keys: dict[str, Any]
    given: tuple[int, ...]
    before: int = 1
    after: int = 1
    padded: bool = False
    first: tuple[dict[str, Any], ...] = ()


def channels_last(graph: OnnxGraph) -> bool:
    """Return whether all that reads the input first moves its last axis, the channels, to the
    front.
    """
    axes = len(graph.input_sizes)
    readers = [node for node in graph.nodes if graph.input_name in node.inputs]
    first = (0, axes - 1, *range(1, axes - 1))
    return bool(readers) and all(
        node.operator == "Transpose" and tuple(node.attributes.get("perm", ())) == first
        for node in readers
    )


def cuts_nothing(node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]) -> bool:
    """Return whether a node is a Slice that keeps everything."""
    given = [constants.get(name) for name in node.inputs[1:] if name]
    if node.operator != "Slice" or len(given) < 3 or any(one is None for one in given):
        return False
    starts, ends, axes, *steps = (np.asarray(one).ravel() for one in given)
    whole = (1, *shape)
    return (
        not starts.any()
        and all((step == 1).all() for step in steps)
        and all(end >= whole[axis] for end, axis in zip(ends, axes, strict=True))
    )


def skipped(
    node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]
) -> dict[int, int] | None:
    """Return the steps by axis of a Slice that keeps every n-th row or column; None for others."""
    given = [constants.get(name) for name in node.inputs[1:] if name]
    if node.operator != "Slice" or len(given) < 4 or any(one is None for one in given):
        return None
    starts, ends, axes, steps = (np.asarray(one).ravel().tolist() for one in given)
    whole = (1, *shape)
    fine = not any(starts) and all(
        axis % len(whole) > 1 and step > 0 and end >= whole[axis]
        for end, axis, step in zip(ends, axes, steps, strict=True)
    )
    return {a % len(whole): s for a, s in zip(axes, steps, strict=True)} if fine else None


def zeros(
    node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]
) -> tuple[int, tuple[int, int]] | Refusal:
    """Return the border of zeros that a Pad puts around a map, and those beside its channels."""
    stated = [constants.get(name) for name in node.inputs[1:]]
    pads = stated[0] if stated else node.attributes.get("pads")
    if pads is None or any(one is None and name for one, name in zip(
        stated, node.inputs[1:], strict=True
    )):  # fmt: skip
        return Refusal(node.name, "its padding is not constant", "Use a fixed padding.")
    value = stated[1] if len(stated) > 1 and stated[1] is not None else 0
    if node.attributes.get("mode", "constant") != "constant" or np.any(value):
        return Refusal(node.name, "the accelerator pads with zeros", "Use mode='constant'.")
    axes = stated[2] if len(stated) > 2 else None
    count = len(shape) + 1
    begins, ends = [0] * count, [0] * count
    half = len(pads) // 2
    for i, axis in enumerate(range(count) if axes is None else np.asarray(axes).ravel()):
        begins[int(axis)], ends[int(axis)] = int(pads[i]), int(pads[half + i])
    around = {*begins[2:], *ends[2:]}
    if begins[0] or ends[0] or len(around) > 1 or min(*begins, *ends) < 0:
        said = times((*begins[1:], *ends[1:]))
        return Refusal(node.name, f"its padding is {said}, the chip pads all sides alike",
                       "Use the same padding on all sides.")  # fmt: skip
    return max(around, default=0), (begins[1], ends[1])


def doubles(node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]) -> bool:
    """Return whether a Resize or Upsample repeats each pixel in 2x2."""
    a = node.attributes
    if a.get("mode", "nearest") not in ("nearest", b"nearest") or len(shape) != 3:
        return False
    rounding = str(a.get("nearest_mode", "round_prefer_floor"))
    along = str(a.get("coordinate_transformation_mode", "half_pixel"))
    centred = along in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round")
    if node.operator == "Resize" and not centred and (along, rounding) != ("asymmetric", "floor"):
        return False
    found = [constants.get(name) for name in node.inputs[1:]]
    sizes = [one.ravel().tolist() for one in found if one is not None and one.size == 4]
    return [1, 1, 2, 2] in sizes or [1, shape[0], 2 * shape[1], 2 * shape[2]] in sizes


def as_convolution(node: OnnxNode, weights: Array) -> tuple[OnnxNode, Array]:
    """Return a transposed convolution of stride 1 as a convolution: its kernels are turned around.

    Other nodes are returned as they are.
    """
    a, kernel = node.attributes, weights.shape[2:]
    pads = a.get("pads", (0,) * 2 * len(kernel))
    ones = {*a.get("strides", (1,)), *a.get("dilations", (1,)), a.get("group", 1)}
    plain = a.get("auto_pad", "NOTSET") == "NOTSET" and not any(a.get("output_padding", ()))
    if node.operator != "ConvTranspose" or ones != {1} or not plain or len(set(pads)) > 1:
        return node, weights
    turned = tuple(k - 1 - p for k, p in zip((*kernel, *kernel), pads, strict=True))
    if min(turned) < 0:
        return node, weights
    axes = tuple(range(2, weights.ndim))
    made = replace(node, operator="Conv", attributes={**a, "pads": turned})
    return made, np.flip(weights.swapaxes(0, 1), axes)


def operator(
    node: OnnxNode, weights: Array, shape: tuple[int, ...], border: int = 0
) -> Found | Refusal:
    """Return what a Conv, ConvTranspose, Gemm or MatMul is in a description.

    `border` zeros stand around what it takes, beside its own padding.
    """
    if node.operator in ("Gemm", "MatMul"):
        if len(shape) != 1:
            why = f"it works on the last axis of {times(shape)}"
            return Refusal(node.name, why, "Flatten the data before it.")
        if any(node.attributes.get(factor, 1.0) != 1.0 for factor in ("alpha", "beta")):
            return Refusal(node.name, "it multiplies by alpha or beta", "Fold them into weights.")
        return Found("Linear", {}, (weights.shape[0],))
    axes = weights.ndim - 2
    wrong = refused_attributes(node, axes, weights.shape[2:])
    if wrong is not None:
        return wrong
    strides = node.attributes.get("strides", (1,) * axes)
    dilations = node.attributes.get("dilations", (1,) * axes)
    groups = node.attributes.get("group", 1)
    kernel = weights.shape[2:]
    if axes not in (1, 2) or len(set(kernel)) > 1 or len(set(strides)) > 1:
        why = f"its kernel is {times(kernel)}, its stride {times(strides)}"
        return Refusal(node.name, why, "Use square kernels and strides of images or series.")
    pads = tuple(p + border for p in _pads(node, shape[1:], kernel, strides, dilations))
    if len(set(pads)) > 1:
        return Refusal(
            node.name, f"its padding is {times(pads)}, the chip pads all sides alike",
            "Use the same padding on all sides.",
        )  # fmt: skip
    keys: dict[str, Any] = {
        "kernel_size": kernel[0] if axes == 1 else times(kernel), "pad": pads[0],
    }  # fmt: skip
    if set(dilations) != {1}:
        keys["dilation"] = dilations[0]
    if groups > 1:
        keys["groups"] = groups
    if node.operator == "ConvTranspose":
        return _transposed(node, weights, shape, strides, keys)
    if axes == 2 and kernel[0] not in (1, 3):
        count = {5: "two", 7: "three"}.get(kernel[0], "several")
        return Refusal(node.name, f"its kernel is {times(kernel)}",
                       f"Use {count} 3x3 convolutions, which reach as far.")  # fmt: skip
    sizes = tuple(
        size + 2 * pads[0] - d * (k - 1)
        for size, k, d in zip(shape[1:], kernel, dilations, strict=True)
    )
    stride = strides[0]
    pointwise = kernel[0] == 1 and not pads[0]
    if pointwise:
        sizes = tuple((size - 1) // stride + 1 for size in sizes)
    op = "Conv1d" if axes == 1 else "Conv2d"
    before, after = (stride, 1) if pointwise else (1, stride)
    return Found(op, keys, (weights.shape[0], *sizes), before, after)


def _transposed(
    node: OnnxNode,
    weights: Array,
    shape: tuple[int, ...],
    strides: Sequence[int],
    keys: dict[str, Any],
) -> Found | Refusal:
    padding = node.attributes.get("output_padding", (0,) * len(strides))
    if enlarges_simply(node, weights):
        keys |= {"kernel_size": "3x3", "pad": 1}
        weights, padding = widened(weights), (1, 1)
    if weights.shape[2:] != (3, 3) or set(strides) != {2} or set(padding) != {1}:
        return Refusal(
            node.name, f"its kernel is {times(weights.shape[2:])}, its stride {times(strides)}, "
            f"its output_padding {times(padding)}",
            "Use kernel 3x3, strides 2, pads 1, output_padding 1, or kernel 2x2, strides 2.",
        )  # fmt: skip
    sizes = tuple(2 * (size - 1) + 3 - 2 * keys["pad"] + 1 for size in shape[1:])
    channels = weights.shape[1] * node.attributes.get("group", 1)
    return Found("ConvTranspose2d", keys, (channels, *sizes))


def enlarges_simply(node: OnnxNode, weights: Array) -> bool:
    """Return whether a transposed convolution writes 2x2 pixels for each, without overlaps.

    That is what 3x3 kernels with padding 1 do whose first row and column are zero.
    """
    a = node.attributes
    return (
        node.operator == "ConvTranspose"
        and weights.shape[2:] == (2, 2)
        and tuple(a.get("strides", ())) == (2, 2)
        and not any(a.get("pads", ()))
        and not any(a.get("output_padding", ()))
        and a.get("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    )


def widened(weights: Array) -> Array:
    """Return 2x2 kernels as 3x3 ones whose first row and column are zero."""
    return np.pad(weights, ((0, 0), (0, 0), (1, 0), (1, 0)))


def _pads(
    node: OnnxNode,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding: all begins, then all ends."""
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        explicit = mode == "NOTSET"
        none = (0,) * 2 * len(kernel)
        return tuple(node.attributes.get("pads", none)) if explicit else none
    begins, ends = [], []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / s) - 1) * s + d * (k - 1) + 1 - size, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return (*begins, *ends)


def pooling(
    node: OnnxNode,
    shape: tuple[int, ...],
    constants: Mapping[str, Array],
    *,
    whole: bool = False,
) -> Found | Refusal:
    """Return the keys of a pooling and the shape behind it; a node that reduces takes the `whole`
    map where another one has its other axis.
    """
    average, axes = "Max" not in node.operator, len(shape) - 1
    reduced = node.operator in ("ReduceMean", "ReduceMax")
    if not reduced and node.operator not in (
        "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"
    ):  # fmt: skip
        return Refusal(node.name, f"the accelerator has no {node.operator}")
    keep, padded = True, False
    if reduced:
        taken_axes = set(reduced_axes(node, shape, constants))
        if not whole and taken_axes != set(range(2, axes + 2)):
            return Refusal(node.name, "it averages other axes than rows and columns" if average
                           else "it takes maxima over other axes than rows and columns",
                           "Average all of them." if average else "Take all of them.")  # fmt: skip
        keep = bool(node.attributes.get("keepdims", 1))
    if "Global" in node.operator or reduced:
        window: tuple[int, ...] = shape[1:]
        strides: tuple[int, ...] = (1,) * axes
        sizes: tuple[int, ...] = (1,) * axes
        dilations: tuple[int, ...] = (1,) * axes
    else:
        wrong = refused_attributes(node, axes, None)
        if wrong is not None:
            return wrong
        window = tuple(node.attributes["kernel_shape"])
        strides = tuple(node.attributes.get("strides", (1,) * axes))
        dilations = tuple(node.attributes.get("dilations", (1,) * axes))
        pads = _pads(node, shape[1:], window, strides, dilations)
        if set(pads) - {0} and set(pads) != {1}:
            return Refusal(node.name, f"its padding is {times(pads)}",
                           "Pool with no padding, or with 1 on all sides.")  # fmt: skip
        if average and any(pads) and not node.attributes.get("count_include_pad", 0):
            return Refusal(node.name, "its average leaves out the padding",
                           "Use count_include_pad=1, or no padding.")  # fmt: skip
        padded = any(pads)
        taken = tuple(n + 2 * padded for n in shape[1:])
        moves = [
            (n - d * (w - 1) - 1, s)
            for n, w, s, d in zip(taken, window, strides, dilations, strict=True)
        ]
        sizes = tuple(way // s + 1 for way, s in moves)
        if node.attributes.get("ceil_mode", 0) and any(way % s for way, s in moves):
            return Refusal(node.name, "ceil_mode keeps incomplete windows", "Use ceil_mode=0.")
    name = "avg_pool" if average else "max_pool"
    settings = {"window": window, "stride": strides, "dilation": dilations,
                "padding": (int(padded),) * axes}  # fmt: skip
    parts = stages(settings, shape)
    if any(max(*part["window"], *part["stride"]) > MOST_POOLED for part in parts):
        return Refusal(node.name, f"its window is {times(window)}, its stride {times(strides)}; at "
                       f"most {MOST_POOLED} are possible",
                       "Pool in several steps, or use a size that divides into such.")  # fmt: skip
    keys = [_pool_keys(name, part) for part in parts]
    return Found("", keys[-1], (shape[0], *(sizes if keep else ())), padded=padded,
                 first=tuple(keys[:-1]))  # fmt: skip


def _pool_keys(name: str, part: Mapping[str, Any]) -> dict[str, Any]:
    keys = {name: _short(part["window"]), "pool_stride": _short(part["stride"])}
    if set(part["dilation"]) != {1}:
        keys["pool_dilation"] = _short(part["dilation"])
    return keys


def reduced_axes(
    node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]
) -> tuple[int, ...]:
    """Return the axes that a Reduce node takes together, the batch being 0."""
    given = constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    wanted = node.attributes.get("axes") if given is None else np.asarray(given).ravel().tolist()
    return tuple(int(axis) % (len(shape) + 1) for axis in wanted or ())


def _short(values: Sequence[int]) -> Any:
    """Return sizes as the description writes them: one number if they are equal."""
    return values[0] if len(set(values)) == 1 else list(values)


def takes_only(node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]) -> bool:
    """Return whether a node is a Gather of the only row or column, which takes that axis away."""
    index = constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    axis = node.attributes.get("axis", 0) % (len(shape) + 1)
    single = index is not None and index.ndim == 0 and index in (0, -1)
    return node.operator == "Gather" and single and axis > 1 and shape[axis - 1] == 1


def reshaped(
    node: OnnxNode, shape: tuple[int, ...], constants: Mapping[str, Array]
) -> tuple[int, ...] | None:
    """Return the shape that a node gives data, without the batch; None where it is not fixed."""
    if node.operator == "Flatten":
        return (math.prod(shape),) if node.attributes.get("axis", 1) == 1 else None
    if node.operator == "Gather":
        axis = node.attributes.get("axis", 0) % (len(shape) + 1) - 1
        return (*shape[:axis], *shape[axis + 1 :])
    given = constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    axes = node.attributes.get("axes") if given is None else tuple(map(int, given.ravel()))
    if node.operator == "Reshape":
        if axes is None:
            return None
        whole = (1, *shape)
        sizes = [whole[i] if n == 0 and i < len(whole) else n for i, n in enumerate(axes)]
        if -1 in sizes:
            rest = -math.prod(sizes) if math.prod(sizes) else 0
            if not rest or math.prod(shape) % rest:
                return None
            sizes[sizes.index(-1)] = math.prod(shape) // rest
        return tuple(sizes[1:])
    whole = (1, *shape)
    if node.operator == "Squeeze":
        ones = {i for i, n in enumerate(whole) if n == 1}
        drop = {a % len(whole) for a in axes} if axes else ones
        return tuple(n for i, n in enumerate(whole) if i not in drop or i == 0)[1:]
    added = sorted(a % (len(whole) + len(axes or ())) for a in axes or ())
    result = list(whole)
    for axis in added:
        result.insert(axis, 1)
    return tuple(result[1:])
