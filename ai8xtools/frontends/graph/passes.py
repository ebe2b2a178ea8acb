"""Rewritings of a graph that keep what it computes, in the order in which a target names them.

After each pass shapes are checked, and results for a sample are compared with those before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import Graph, Node, check, constant, make, rewritten
from ai8xtools.frontends.graph.operators import (
    Array,
    BatchNormalization,
    Clip,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Function,
    Gemm,
    MeanVarianceNormalization,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Shape,
    Slice,
    Transpose,
)

Readers: TypeAlias = Mapping[Node, Sequence[Node]]
Rule: TypeAlias = Callable[[Node, Readers], Node]
_MOST = 1 << 24
_CLOSE = 1e-6
"""The share of the largest result by which a rewriting may change float64 results by rounding."""


class DepartsError(ValueError):
    """A pass changed what a graph computes; the message names pass and result."""


def improved(graph: Graph, passes: Sequence[Rule]) -> Graph:
    """Return a graph behind all passes; DepartsError, ShapeError for one that changes something.

    The results of the last graph are compared with those of the first; should they differ, those
    between tell which pass it was.
    """
    graphs = [graph]
    for rule in passes:
        graphs.append(rewritten(graphs[-1], rule))
        if graphs[-1].nodes != graphs[-2].nodes:
            check(graphs[-1])
    shape = graph.input.shape
    small = math.prod(shape) <= _MOST
    sample = np.random.default_rng(0).uniform(-1, 1, shape) if small else None
    expected = results(graph, sample)
    if _agree(expected, results(graphs[-1], sample)):
        return graphs[-1]
    for rule, one in zip(passes, graphs[1:], strict=True):
        if not _agree(expected, results(one, sample)):
            raise DepartsError(f"{rule.__name__} changes a result")
    return graphs[-1]


def _agree(expected: Sequence[Array | None], actual: Sequence[Array | None]) -> bool:
    """Return whether results are equal up to rounding; those that are not known are left out."""
    for before, after in zip(expected, actual, strict=True):
        if before is None or after is None:
            continue
        limit = _CLOSE * max(float(np.abs(before[np.isfinite(before)]).max(initial=0)), 1e-30)
        if before.shape != after.shape or not np.allclose(before, after, 0, limit, equal_nan=True):
            return False
    return True


def results(graph: Graph, sample: Array | None) -> list[Array | None]:
    """Return the results for a sample [1, ...]; None where nothing here computes an operator, or
    where data have more than `_MOST` values.
    """
    result_of: dict[Node, Array | None] = {}
    for node in graph.nodes:
        inputs = [result_of[one] for one in node.inputs]
        values = [one for one in inputs if one is not None]
        fits = len(values) == len(inputs) and math.prod(node.shape) <= _MOST
        with np.errstate(all="ignore"):
            result_of[node] = value_of(node.operator, values) if fits else None
        if node is graph.input and sample is not None:
            result_of[node] = sample
    return [result_of[node] for node in graph.outputs]


def along(value: Array, shape: Shape, axis: int) -> Array | None:
    """Return the values [n] that a constant has for `axis` alone of data; None if it has others."""
    if value.ndim > len(shape):
        return None
    whole = (*(1,) * (len(shape) - value.ndim), *value.shape)
    if any(n > 1 for at, n in enumerate(whole) if at != axis):
        return None
    return np.broadcast_to(np.asarray(value, np.float64).ravel(), (shape[axis],))


def normalizations(node: Node, _readers: Readers) -> Node:
    """Batch normalization multiplies and adds."""
    if not isinstance(node.operator, BatchNormalization):
        return node
    if any(one.constant is None for one in node.inputs[1:]):
        return node
    axes = (-1, *(1,) * (len(node.shape) - 2))
    factor, offset = (one.reshape(axes) for one in factors_of(node))
    scaled = make(node.place, Each(Function.MUL), node.inputs[0], constant(factor))
    return make(node.place, Each(Function.ADD), scaled, constant(offset))


def factors_of(norm: Node) -> tuple[Array, Array]:
    """Return by what batch normalization multiplies each channel, and what it adds then."""
    gain, offset, mean, variance = (
        np.asarray(one.constant, np.float64) for one in norm.inputs[1:]
    )  # fmt: skip
    assert isinstance(norm.operator, BatchNormalization)
    with np.errstate(invalid="ignore", divide="ignore"):  # what is no number is refused by others
        factor = gain / np.sqrt(variance + norm.operator.epsilon)
    return factor, offset - mean * factor


def folded_normalizations(node: Node, readers: Readers) -> Node:
    """Batch normalization directly behind an operator becomes part of its weights and bias."""
    affine = normalizations(node, readers)
    if affine is node:
        return node
    scaled = into_weights(affine.inputs[0], {**readers, **{affine.inputs[0]: ()}})
    if scaled is affine.inputs[0]:
        return node
    return into_weights(make(node.place, affine.operator, scaled, affine.inputs[1]), readers)


def without_rounding(node: Node, _readers: Readers) -> Node:
    """Fractions in place of those that quantized values stand for: a target rounds by itself.

    Limits stay where the lower one is zero: quantizers hide activations in them.
    """
    moved = node.inputs[0] if node.operator == Each(Function.MUL) else node
    if moved.operator != Each(Function.SUB):
        return node
    scale, zero = node.inputs[1].constant, moved.inputs[1].constant
    if scale is None or zero is None:
        return node
    return _fractions(moved.inputs[0], scale, zero) or node


def _fractions(node: Node, scale: Array, zero: Array) -> Node | None:
    """Return the fractions that quantized values stand for, if they have this scale."""
    if isinstance(node.operator, _CHOOSING) and not getattr(node.operator, "average", False):
        data = _fractions(node.inputs[0], scale, zero)
        return None if data is None or scale.size > 1 else make(node.place, node.operator, data)
    chain = [node]
    while chain[-1].inputs and len(chain) < 4:
        chain.append(chain[-1].inputs[0])
    clip, operators = node.operator, [one.operator for one in chain[1:]]
    if not isinstance(clip, Clip) or operators != _QUANTIZING:
        return None
    constants = [chain[at].inputs[1].constant for at in (1, 3)]
    same = (one is not None and np.array_equal(one, own)
            for one, own in zip(constants, (zero, scale), strict=True))  # fmt: skip
    if not all(same):
        return None
    x, high = chain[3].inputs[0], (clip.high - float(zero.max())) * float(scale.min())
    return make(node.place, Clip(0.0, high), x) if (zero == clip.low).all() else x


_QUANTIZING = [Each(Function.ADD), Each(Function.ROUND), Each(Function.DIV)]


def constants_second(node: Node, _readers: Readers) -> Node:
    """What is done with a constant is to multiply by it or to add it, and it stands behind."""
    if not isinstance(node.operator, Each):
        return node
    function = node.operator.function
    if function is Function.NEG:
        return make(node.place, Each(Function.MUL), node.inputs[0], constant(np.array(-1.0)))
    if not function.pairs:
        return node
    a, b = node.inputs
    left, right = a.constant, b.constant
    if a is b and function is Function.ADD:
        return make(node.place, Each(Function.MUL), a, constant(np.array(2.0)))
    match function:
        case Function.ADD | Function.MUL | Function.MAX | Function.MIN if left is not None:
            return make(node.place, node.operator, b, a)
        case Function.SUB if right is not None:
            return make(node.place, Each(Function.ADD), a, constant(-1.0 * right))
        case Function.SUB if left is not None:
            return _less(node.place, a, b)
        case Function.DIV if right is not None and right.all():
            inverse = constant(1 / np.asarray(right, np.float64))
            return make(node.place, Each(Function.MUL), a, inverse)
    return node


def limits(node: Node, readers: Readers) -> Node:
    """The maximum or minimum with a number is a limit, and limits one behind the other are one."""
    node = _limit(node)
    if not isinstance(outer := node.operator, Clip):
        return node
    data = node.inputs[0]
    limited = data
    while isinstance(limited.operator, _CHOOSING) and not getattr(limited.operator, "average", 0):
        limited = limited.inputs[0]
    if not isinstance(inner := limited.operator, Clip):
        return node
    low, high = max(inner.low, outer.low), min(inner.high, outer.high)
    if (low, high) == (inner.low, inner.high):
        return data
    if limited is not data or low > high or len(readers[data]) > 1:
        return node
    return make(node.place, Clip(low, high), data.inputs[0])


_CHOOSING = (Reshape, Transpose, Slice, Pool)
"""Their results are some of what they take, if they average nothing."""


def _limit(node: Node) -> Node:
    if not isinstance(node.operator, Each) or not node.operator.function.pairs:
        return node
    data, bound = node.inputs[0], node.inputs[1].constant
    if bound is None or bound.size != 1 or data.shape != node.shape:
        return node
    match node.operator.function:
        case Function.MAX:
            return make(node.place, Clip(float(bound.ravel()[0]), np.inf), data)
        case Function.MIN:
            return make(node.place, Clip(-np.inf, float(bound.ravel()[0])), data)
    return node


def by_sums(node: Node, _readers: Readers) -> Node:
    """Differences, kinks, magnitudes, maxima and minima are sums: of parts above and below zero."""
    if not isinstance(node.operator, Each):
        return node
    function, x = node.operator.function, node.inputs[0]
    place, add, mul = node.place, Each(Function.ADD), Each(Function.MUL)
    above, below = Clip(0.0, np.inf), Clip(-np.inf, 0.0)
    match function:
        case Function.ABS:
            flipped = make(place, mul, make(place, below, x), constant(np.array(-1.0)))
            return make(place, add, make(place, above, x), flipped)
        case Function.PRELU if node.inputs[1].constant is not None:
            steep = make(place, mul, make(place, below, x), node.inputs[1])
            return make(place, add, make(place, above, x), steep)
        case Function.MAX | Function.MIN:
            part = above if function is Function.MAX else below
            return make(place, add, make(place, part, _less(place, node.inputs[1], x)), x)
        case Function.SUB:
            return _less(place, x, node.inputs[1])
    return node


def _less(place: str, a: Node, b: Node) -> Node:
    """Return a - b as a sum."""
    negative = make(place, Each(Function.MUL), b, constant(np.array(-1.0)))
    order = (negative, a) if a.constant is not None else (a, negative)
    return make(place, Each(Function.ADD), *order)


def offset_padding(node: Node, _readers: Readers) -> Node:
    """What is padded with a value is padded with zeros, with an offset before and behind."""
    operator = node.operator
    if not isinstance(operator, Pad) or operator.mode != "constant" or not operator.value:
        return node
    value = operator.value
    lowered = make(node.place, Each(Function.ADD), node.inputs[0], constant(np.array(-value)))
    zeros = make(node.place, replace(operator, value=0.0), lowered)
    return make(node.place, Each(Function.ADD), zeros, constant(np.array(value)))


def padding(node: Node, _readers: Readers) -> Node:
    """Zeros around the data of a convolution are its own."""
    operator = node.operator
    if not isinstance(operator, Conv):
        return node
    (data, *rest), before = node.inputs, node.inputs[0].operator
    if (
        not isinstance(before, Pad)
        or before.mode != "constant"
        or before.value
        or any(map(any, before.pads[:2]))
    ):
        return node
    pads = tuple((b + c, e + f) for (b, e), (c, f) in
                 zip(operator.pads, before.pads[2:], strict=True))  # fmt: skip
    return make(node.place, replace(operator, pads=pads), data.inputs[0], *rest)


def into_weights(node: Node, readers: Readers) -> Node:
    """Factors and offsets by channel behind an operator become part of its weights and bias."""
    if not isinstance(node.operator, Each) or len(node.inputs) != 2:
        return node
    (before, second), function = node.inputs, node.operator.function
    value, operator = second.constant, before.operator
    if value is None or len(readers.get(before, (node,))) > 1:
        return node
    if not isinstance(operator, Conv | ConvTranspose | Gemm):
        return node
    if isinstance(operator, Conv) and operator.moves:
        operator = replace(operator, moves=False)
    own = [one.constant for one in before.inputs[1:]]
    weights = own[0]
    bias = own[1] if len(own) > 1 else np.zeros(1)
    axis = len(before.shape) - 1 if isinstance(operator, Gemm) else 1
    values = along(value, before.shape, axis)
    if weights is None or bias is None or values is None or node.shape != before.shape:
        return node
    bias = np.broadcast_to(np.asarray(bias, np.float64), values.shape)
    match function:
        case Function.ADD:
            bias = bias + values
        case Function.MUL:
            bias = bias * values
            weights = _times(operator, weights, values)
        case _:
            return node
    return make(before.place, operator, before.inputs[0], constant(weights, before.inputs[1].place),
                constant(bias))  # fmt: skip


def before_weights(node: Node, _readers: Readers) -> Node:
    """Factors and offsets by channel in front of an operator become part of it; a padding of zeros
    takes no offset.
    """
    operator, before = node.operator, node.inputs[0] if node.inputs else node
    if not isinstance(operator, Conv | Gemm) or not isinstance(before.operator, Each):
        return node
    weights, value, data = node.inputs[1].constant, before.inputs[-1].constant, before.inputs[0]
    if weights is None or value is None or data.shape != before.shape:
        return node
    if isinstance(operator, Conv) and (operator.groups > 1 or operator.moves):
        return node
    values = along(value, data.shape, len(data.shape) - 1 if isinstance(operator, Gemm) else 1)
    padded = isinstance(operator, Conv) and any(map(any, operator.pads))
    bias, name = node.inputs[2:], node.inputs[1].place
    if values is None or any(one.constant is None for one in bias):
        return node
    factors = values.reshape(1, -1, *(1,) * (weights.ndim - 2))
    match before.operator.function:
        case Function.MUL:
            return make(node.place, operator, data, constant(weights * factors, name), *bias)
        case Function.ADD if not padded:
            offset = (weights * factors).sum(tuple(range(1, weights.ndim)))
            biases = [np.asarray(one.constant, np.float64) for one in bias] or [np.zeros(1)]
            whole = np.broadcast_to(biases[0].ravel(), offset.shape) + offset
            return make(node.place, operator, data, node.inputs[1], constant(whole))
    return node


def whole_by_channel(node: Node, readers: Readers) -> Node:
    """Whole factors and offsets by channel directly behind an operator become part of it."""
    value = node.inputs[-1].constant if isinstance(node.operator, Each) else None
    if value is None or value.size == 1 or (np.asarray(value) % 1).any():
        return node
    return into_weights(node, readers)


def _times(operator: Conv | ConvTranspose | Gemm, weights: Array, factors: Array) -> Array:
    """Return weights whose results are multiplied, by filter."""
    axes = (1,) * (weights.ndim - 1)
    if not isinstance(operator, ConvTranspose):
        return weights * factors.reshape(-1, *axes)
    parts = weights.reshape(operator.groups, -1, *weights.shape[1:])
    products = parts * factors.reshape(operator.groups, 1, -1, *axes[1:])
    return np.asarray(products.reshape(weights.shape))


def division_apart(node: Node, _readers: Readers) -> Node:
    """What is divided by a power of two before it is rounded is divided by 128 last."""
    before = node.inputs[0] if node.inputs else node
    numbers = [one.inputs[-1].constant if one.inputs else None for one in (node, before)]
    if (node.operator, before.operator) != (Each(Function.ADD), Each(Function.MUL)):
        return node
    half, factor = (float(one.ravel()[0]) if one is not None and one.size == 1 else 0.0
                    for one in numbers)  # fmt: skip
    if half != 0.5 or factor <= 0 or factor == 1 / 128 or math.frexp(factor)[0] != 0.5:
        return node
    data, times = before.inputs[0], Each(Function.MUL)
    first = make(before.place, times, data, constant(np.array(factor * 128)))
    last = make(before.place, times, first, constant(np.array(1 / 128)))
    return make(node.place, node.operator, last, node.inputs[1])


def sections(node: Node, _readers: Readers) -> Node:
    """What cuts one axis after the other cuts both."""
    operator, before = node.operator, node.inputs[0]
    if not isinstance(operator, Slice) or not isinstance(before.operator, Slice):
        return node
    first = before.operator
    start = tuple(
        a + s * b for a, s, b in zip(first.start, first.step, operator.start, strict=True)
    )
    step = tuple(a * b for a, b in zip(first.step, operator.step, strict=True))
    return make(node.place, Slice(start, step, operator.count), before.inputs[0])


def elements_first(node: Node, readers: Readers) -> Node:
    """What is done with each element alike stands before sections and other shapes, and before
    maxima if it never falls with its argument.
    """
    if not node.inputs:
        return node
    before = node.inputs[0]
    match before.operator:
        case Slice() | Reshape() | Dropout():
            moves = _is_alike(node)
        case Pool() as pool:
            moves = not pool.average and _rises(node)
        case Reduce() as reduce:
            moves = reduce.reduction is Reduction.MAX and _rises(node)
        case _:
            return node
    if not moves or len(readers.get(before, (node,))) > 1 or node.shape != before.shape:
        return node
    inner = make(node.place, node.operator, before.inputs[0], *node.inputs[1:])
    return make(before.place, before.operator, elements_first(inner, readers))


def _is_alike(node: Node) -> bool:
    """Return whether a node does the same to all elements."""
    if isinstance(node.operator, Clip):
        return True
    numbers = all(one.constant is not None and one.constant.size == 1 for one in node.inputs[1:])
    return isinstance(node.operator, Each) and numbers


def _rises(node: Node) -> bool:
    """Return whether a node does the same to all elements, and never falls with them."""
    if isinstance(node.operator, BatchNormalization):
        gain, data = node.inputs[1].constant, node.inputs[0]
        same = data.shape[1] == data.inputs[0].shape[1] if data.inputs else False
        return gain is not None and same and bool((gain > 0).all())
    if not isinstance(node.operator, Each):
        return isinstance(node.operator, Clip)
    value = node.inputs[-1].constant
    match node.operator.function:
        case Function.FLOOR | Function.CEIL | Function.ROUND | Function.TRUNC:
            return True
        case Function.ADD:
            return value is not None and value.size == 1
        case Function.MUL:
            return value is not None and value.size == 1 and bool(value.ravel()[0] > 0)
    return False


def truncations(node: Node, _readers: Readers) -> Node:
    """The sign of a value times the floor of its magnitude is the value without its fraction."""
    if node.operator != Each(Function.MUL):
        return node
    for sign, floor in (node.inputs, node.inputs[::-1]):
        if sign.operator != Each(Function.SIGN) or floor.operator != Each(Function.FLOOR):
            continue
        magnitude = floor.inputs[0]
        if magnitude.operator == Each(Function.ABS) and magnitude.inputs == sign.inputs:
            return make(node.place, Each(Function.TRUNC), sign.inputs[0])
    return node


def minima(node: Node, _readers: Readers) -> Node:
    """The minimum over axes is the negative of the maximum of the negatives."""
    operator = node.operator
    if not isinstance(operator, Reduce) or operator.reduction is not Reduction.MIN:
        return node
    largest = replace(operator, reduction=Reduction.MAX)
    less = make(node.place, Each(Function.NEG), node.inputs[0])
    return make(node.place, Each(Function.NEG), make(node.place, largest, less))


def reductions(node: Node, _readers: Readers) -> Node:
    """What reduces one axis after the other reduces both, also where axes of one element go."""
    operator, before = node.operator, node.inputs[0]
    first = before.operator
    if not isinstance(operator, Reduce):
        return node
    if isinstance(first, Reshape) and isinstance(before.inputs[0].operator, Reduce):
        inner = before.inputs[0]
        ours, theirs = (
            [axis for axis, n in enumerate(one.shape) if n > 1] for one in (before, inner)
        )
        if [before.shape[axis] for axis in ours] == [inner.shape[axis] for axis in theirs]:
            axes = tuple(own for axis, own in zip(ours, theirs, strict=True)
                         if axis in operator.axes)  # fmt: skip
            whole = make(node.place, Reduce(operator.reduction, axes, True), inner)
            return make(node.place, Reshape(node.shape), reductions(whole, _readers))
    if not isinstance(first, Reduce):
        return node
    if operator.reduction is not first.reduction or operator.reduction is Reduction.L2:
        return node
    data = before.inputs[0]
    left = [axis for axis in range(len(data.shape)) if first.keep or axis not in first.axes]
    axes = tuple(sorted({*first.axes, *(left[axis] for axis in operator.axes)}))
    result = make(node.place, Reduce(operator.reduction, axes, True), data)
    return make(node.place, Reshape(node.shape), result) if node.shape != result.shape else result


_TURNED = Each | Clip | Pad | Reduce | MeanVarianceNormalization
"""Operators that take axes in any order."""


def transposes(node: Node, _readers: Readers) -> Node:
    """Orders of axes move behind what is done by element, until they meet their opposite."""
    operator, place = node.operator, node.place
    if isinstance(operator, Transpose):
        before, order = node.inputs[0], operator.order
        if isinstance(before.operator, Transpose):
            order = tuple(before.operator.order[axis] for axis in order)
            before = before.inputs[0]
        return before if order == tuple(range(len(order))) else _ordered(place, order, before)
    moved = [one for one in node.inputs if isinstance(one.operator, Transpose)]
    if not moved or not isinstance(operator, _TURNED):
        return node
    first, others = moved[0], [one for one in node.inputs if one not in moved]
    orders = {one.operator.order for one in moved if isinstance(one.operator, Transpose)}
    if len(orders) > 1 or any(one.constant is None for one in others):
        return node
    (order,) = orders
    back = tuple(np.argsort(order))
    match operator:
        case Pad():
            pads = tuple(operator.pads[axis] for axis in back)
            result = make(place, replace(operator, pads=pads), first.inputs[0])
        case MeanVarianceNormalization():
            axes = tuple(sorted(order[axis] for axis in operator.axes))
            result = make(place, replace(operator, axes=axes), first.inputs[0])
        case Reduce():
            axes = tuple(sorted(order[axis] for axis in operator.axes))
            result = make(place, Reduce(operator.reduction, axes, True), first.inputs[0])
            if not operator.keep:
                return make(place, Reshape(node.shape), _ordered(place, order, result))
        case _:
            inputs = []
            for one in node.inputs:
                value = one.constant
                if value is None:
                    inputs.append(one.inputs[0])
                    continue
                wide = value.reshape(*(1,) * (len(order) - value.ndim), *value.shape)
                inputs.append(constant(wide.transpose(back)))
            result = make(place, operator, *inputs)
    return make(first.place, Transpose(order), result)


def _ordered(place: str, order: Shape, data: Node) -> Node:
    """Return data whose axes have another order; if none but those of size 1 move, in a shape."""
    large = [axis for axis in order if data.shape[axis] > 1]
    turned = make(place, Transpose(order), data)
    return make(place, Reshape(turned.shape), data) if large == sorted(large) else turned


def channel_orders(node: Node, _readers: Readers) -> Node:
    """Changes of shape that only put channels in another order, or choose some, are a kernel."""
    if not isinstance(node.operator, Reshape) or len(node.shape) not in (3, 4):
        return node
    chain, turns = node, False
    while isinstance(chain.operator, Reshape | Transpose | Slice):
        turns |= isinstance(chain.operator, Transpose)
        chain = chain.inputs[0]
    if not turns or chain.shape[2:] != node.shape[2:]:
        return node
    pixels = math.prod(node.shape[2:])
    places = _moved(node, chain, np.arange(math.prod(chain.shape)).reshape(chain.shape))
    order = places.reshape(node.shape[1], -1)[:, 0] // pixels
    if not np.array_equal(places.reshape(len(order), -1),
                          order[:, None] * pixels + np.arange(pixels)):  # fmt: skip
        return node
    ones = (1,) * (len(node.shape) - 2)
    kernels = np.eye(chain.shape[1])[order].reshape(len(order), -1, *ones)
    operator = Conv(ones, ((0, 0),) * len(ones), ones, moves=True)
    return make(node.place, operator, chain, constant(kernels))


def _moved(node: Node, start: Node, values: Array) -> Array:
    """Return what nodes that only move data make of values in place of those of `start`."""
    if node is start:
        return values
    result = value_of(node.operator, [_moved(node.inputs[0], start, values)])
    assert result is not None
    return result


def flattened_weights(node: Node, _readers: Readers) -> Node:
    """A fully connected layer takes a flattened map in the order in which it was before."""
    if not isinstance(node.operator, Gemm) or node.inputs[1].constant is None:
        return node
    data, weights = node.inputs[0], node.inputs[1].constant
    turned = data.inputs[0] if isinstance(data.operator, Reshape) else data
    if not isinstance(turned.operator, Transpose) or len(data.shape) != 2:
        return node
    order, before = turned.operator.order, turned.inputs[0]
    if order[0] != 0 or turned is data:
        return node
    back = tuple(np.argsort(order))
    kernels = weights.reshape(len(weights), *turned.shape[1:]).transpose(back)
    flat = make(data.place, Reshape(data.shape), before)
    return make(node.place, node.operator, flat, constant(kernels.reshape(weights.shape)),
                *node.inputs[2:])  # fmt: skip
