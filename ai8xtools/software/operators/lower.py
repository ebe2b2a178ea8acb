"""A graph of operators in whole numbers becomes steps.

Operators that only move data move the places of values; a copy is made where a step needs them in
order. What is done with elements becomes one expression for each result that others need.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.diagnostics import Place
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.execute import turned, value_of
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Shape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.layers import Refusal
from ai8xtools.software import bounds, elements, gathering
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Element, Int64, Interval, Load, Look, Pair, Size
from ai8xtools.software.operators.exact import Exact, InexactError, Quotient
from ai8xtools.software.operators.joined import joined
from ai8xtools.values import frozen

PASSES = (
    compositions, passes.normalizations, passes.limits, passes.truncations, passes.sections,
    passes.padding,
    passes.reductions, passes.transposes,
)  # fmt: skip
"""What is done with a graph before."""

_LONGEST = 65535
"""Rows and columns are counted in 16 bits."""
_NARROW, _WIDE, _LONG = 8, 32, 63
"""Bits of values that are stored, and of what is computed with."""
_TABLE = 4
"""Operations on 8 bits from which on a table takes their place."""
_MOST_RUNS = 4096
_FILLED = -2
"""No place; one less than those of the first tensor, so that no run begins there."""
_INSTEAD = "Use another operator, or compute this part in the application."
_ROUND = "Round and limit it first: Mul by a power of two, Add 0.5, Floor, Clip to -128..127."
_QUANTIZE = ("Quantize a graph of fractions first (quantize.py --device MCU --calibrate DATA); in "
             "one of whole numbers round what is computed: Floor, Clip to -128..127.")  # fmt: skip
_OF_ELEMENTS = Each | Clip | Dropout


class _RefusedError(ValueError):
    """No step stands for a node: why, and what to use instead."""

    def __init__(self, why: str, remedy: str = _INSTEAD) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@frozen
class _Stored:
    """Where the values of a node stand, in its shape: numbers of elements, see `gathering.SPAN`.

    A value is its element / `over`; where the place is `_FILLED`, the element is `fill`.
    """

    places: Int64
    over: Int64
    fill: int = 0


def laid(values: Array) -> Array:
    """Return values in the shape of a node [1, ...] in the order of memory: row, column, channel.

    Series have one column; what has no batch of one, or more than four axes, is one pixel.
    """
    if values.shape[:1] != (1,) or values.ndim not in (2, 3, 4):
        return values.reshape(1, 1, -1)
    maps = values.reshape(*values.shape[1:], *(1,) * (4 - values.ndim))
    return maps.transpose(1, 2, 0)


class Lowering:
    """Steps and tensors as they grow, node by node; `refusals` are nodes that none stands for."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.refusals: list[Refusal] = []
        self._name = name
        self._graph = passes.improved(graph, PASSES)
        self._readers = self._graph.readers()
        self._tensors: list[steps.Tensor] = []
        self._ranges: list[Interval] = []
        self._steps: list[steps.Step] = []
        self._stored: dict[Node, _Stored] = {}
        self._refused: set[Node] = set()
        for node in self._graph.nodes:
            self._visit(node)
        self._outputs = [self._delivered(node) for node in self._graph.outputs]

    def graph(self) -> steps.Graph:
        """Return the steps that outputs need, put together."""
        made = steps.Graph(name=self._name, tensors=tuple(self._tensors), steps=tuple(self._steps),
                           input=0, outputs=tuple(self._outputs))  # fmt: skip
        return joined(made)

    def _visit(self, node: Node) -> None:
        """Store the result of a node, but for what is done with elements if one reads it alone."""
        if node.constant is not None:
            return
        if any(one in self._refused for one in node.inputs):
            self._refused.add(node)
            return
        readers = self._readers[node]
        further = [one for one in readers if not isinstance(one.operator, _OF_ELEMENTS)]
        needed = bool(further) or node in self._graph.outputs
        try:
            if not isinstance(node.operator, _OF_ELEMENTS):
                self._stored[node] = self._made(node)
            elif needed or len(readers) > 1:
                self._stored[node] = self._computed(node)
        except _RefusedError as exc:
            self._refuse(node, exc.why, exc.remedy)
        except InexactError as exc:
            if needed:  # else those that read it may know more
                self._refuse(node, str(exc), _QUANTIZE)

    def _refuse(self, node: Node, why: str, remedy: str) -> None:
        self._refused.add(node)
        self.refusals.append(Refusal(node.place, why, remedy))

    def _delivered(self, node: Node) -> int:
        """Return the tensor of a result, in the order of its shape."""
        if node in self._refused:
            return 0
        stored = self._stored.get(node)
        if stored is None:
            self._refuse(node, "its result does not depend on the input", "Leave it out.")
        elif (stored.over != 1).any():
            self._refuse(node, "its results are fractions", _ROUND)
        else:
            return self._in_order(node.place, stored, laid(stored.places))
        return 0

    # Tensors

    def _tensor(self, name: str, size: Size, interval: Interval) -> int:
        """Add a tensor of as many bytes as its values need."""
        low, high = int(interval.low.min()), int(interval.high.max())
        if low < -(1 << 31) or high >= 1 << 31:
            raise _RefusedError(f"its results reach {max(-low, high):,}; 32 bits hold "
                                f"{bounds.LARGEST:,}", _ROUND)  # fmt: skip
        if max(size) > _LONGEST:
            raise _RefusedError(f"it has {max(size):,} rows or columns, the limit is {_LONGEST:,}",
                                "Cut the data into parts.")  # fmt: skip
        narrow = low >= -128 and high <= 127
        index = len(self._tensors)
        self._tensors.append(
            steps.Tensor(index, name, *size, len(interval.low), 1 if narrow else 4)
        )
        self._ranges.append(interval)
        return index

    def _stored_in(self, shape: Shape, tensor: int, over: Int64) -> _Stored:
        """Return where results of a shape stand: in a tensor, in the order of memory."""
        numbers = np.arange(math.prod(shape)).reshape(shape)
        order = laid(numbers).ravel()
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        return _Stored(places.reshape(shape) + tensor * gathering.SPAN, over)

    def _in_order(self, name: str, stored: _Stored, places: Int64) -> int:
        """Return a tensor that holds places [row, column, channel] in this order."""
        flat = places.ravel()
        first, start = divmod(int(flat[0]), gathering.SPAN)
        if flat[0] >= 0 and start == 0:
            one = self._tensors[first]
            whole = one.pixels * one.channels == flat.size
            if whole and np.array_equal(flat, flat[0] + np.arange(flat.size)):
                return first
        return self._copied(name, stored, places)

    def _copied(self, name: str, stored: _Stored, places: Int64) -> int:
        sources = [int(n) for n in np.unique(places // gathering.SPAN) if n >= 0]
        widths = {self._tensors[one].bytes_per_value for one in sources}
        low, high = np.full(places.shape, stored.fill), np.full(places.shape, stored.fill)
        for one in sources:
            mine = places // gathering.SPAN == one
            channels = places[mine] % gathering.SPAN % self._tensors[one].channels
            low[mine], high[mine] = (
                self._ranges[one].low[channels],
                self._ranges[one].high[channels],
            )
        interval = Interval(low.min((0, 1)), high.max((0, 1)))
        target = self._tensor(f"{name} in order", places.shape[:2], interval)
        width = self._tensors[target].bytes_per_value
        if widths != {width}:  # values of several widths: the widest holds all
            width = max(*widths, width)
            self._tensors[target] = replace(self._tensors[target], bytes_per_value=width)
            if widths != {width}:
                raise _RefusedError("it joins values of 8 and of 32 bits", _ROUND)
        filled = bool((places < 0).any())
        if filled and width > 1 and stored.fill not in (0, -1):
            raise _RefusedError(f"it pads values of 32 bits with {stored.fill}", _ROUND)
        pieces = gathering.pieces(places.ravel(), width)
        if len(pieces) > _MOST_RUNS:
            raise _RefusedError("it moves its values too irregularly", _INSTEAD)
        tensors = {piece.source: self._tensors[piece.source] for piece in pieces}
        by_rows = not filled and gathering.is_by_rows(pieces, tensors, self._tensors[target])
        self._steps.append(
            steps.Copy(sources=tuple(dict.fromkeys(piece.source for piece in pieces)),
                       target=target, layer=len(self._steps), name=name, pieces=pieces,
                       by_rows=by_rows, fill=stored.fill if filled else None)
        )  # fmt: skip
        return target

    def _range_of(self, tensor: int, channels: int) -> Interval:
        """Return what the channels of a tensor can be, where it is read with so many."""
        interval = self._ranges[tensor]
        if len(interval.low) == channels:
            return interval
        return Interval(np.full(channels, interval.low.min()),
                        np.full(channels, interval.high.max()))  # fmt: skip

    # What is done with elements

    def _computed(self, node: Node) -> _Stored:
        """Store the result of what is done with elements; if need be, of what is limited to 8 bits
        on the way.
        """
        try:
            return self._expressed(node)
        except InexactError:
            limited = [one for one in self._within(node) if one is not node and _is_narrow(one)]
            if not limited:
                raise
            for one in limited:
                self._stored[one] = self._expressed(one)
            return self._expressed(node)

    def _within(self, node: Node) -> list[Node]:
        """Return what is computed of elements for a result and not stored, in order."""
        if node in self._stored or not isinstance(node.operator, _OF_ELEMENTS):
            return []
        found = [inner for one in node.inputs for inner in self._within(one)]
        return [*dict.fromkeys((*found, node))]

    def _expressed(self, node: Node) -> _Stored:
        """Store the result of an expression, or of a table."""
        leaves: dict[Node, int] = {}
        shape = node.shape
        flat = shape[:1] != (1,) or len(shape) not in (2, 3, 4)

        def spread(values: Array) -> Array:
            values = values.reshape(*(1,) * (len(shape) - values.ndim), *values.shape)
            return np.broadcast_to(values, shape) if flat and values.size > 1 else values

        def in_memory(values: Array) -> Int64:
            wide = spread(np.asarray(values))
            return wide.reshape(1, 1, 1) if wide.size == 1 else laid(wide)

        def leaf(one: Node) -> Quotient | None:
            if (stored := self._stored.get(one)) is None:
                return None
            return Quotient(Load(leaves.setdefault(one, len(leaves))), stored.over)

        try:
            found = Exact(leaf, in_memory).quotient(node)
        except InexactError as exc:
            try:
                return self._looked_up(node)
            except InexactError:
                raise exc from None
        if _operations(found.element) > _TABLE:
            try:
                return self._looked_up(node)
            except InexactError:
                pass
        operands = [(self._stored[one], in_memory(self._stored[one].places)) for one in leaves]
        target = self._elements(node, found.element, operands)
        return self._stored_in(node.shape, target, found.over)

    def _elements(
        self, node: Node, element: Element, operands: Sequence[tuple[_Stored, Int64]]
    ) -> int:
        """Add what is computed of elements at places [row, column, channel]; return its tensor."""
        rows, columns, channels = laid(np.broadcast_to(np.int8(0), node.shape)).shape
        tensors = [self._in_order(node.place, stored, places) for stored, places in operands]
        ranges = [self._range_of(tensor, places.shape[2])
                  for tensor, (_, places) in zip(tensors, operands, strict=True)]  # fmt: skip
        given = [(one.low.reshape(1, 1, -1), one.high.reshape(1, 1, -1)) for one in ranges]
        low, high = elements.bounds(element, given)
        needed = elements.most_bits(element, given)
        if needed > _LONG:
            raise _RefusedError(f"it needs {needed} bits to be computed exactly", _ROUND)
        whole = (1, 1, channels)
        interval = Interval(_least(np.minimum, low, whole), _least(np.maximum, high, whole))
        target = self._tensor(f"{node.place} output", (rows, columns), interval)
        self._steps.append(
            steps.Elements(sources=tuple(tensors), target=target, layer=len(self._steps),
                           name=node.place, channels=channels, size=(rows, columns),
                           shapes=tuple(_shape(places) for _, places in operands),
                           element=element, bits=needed)
        )  # fmt: skip
        return target

    def _looked_up(self, node: Node) -> _Stored:
        """Store what a table has for a value of 8 bits."""
        leaves = [*dict.fromkeys(self._leaves(node))]
        if len(leaves) != 1:
            raise InexactError(f"{node.name} is computed of several results at once")
        (leaf,) = leaves
        stored = self._stored[leaf]
        if stored.over.size > 1 or leaf.shape != node.shape:
            raise InexactError(f"{node.name} is computed of data of several scales")
        places = laid(stored.places)
        tensor = self._in_order(node.place, stored, places)
        if self._tensors[tensor].bytes_per_value != 1:
            raise InexactError(f"{node.name} is computed of results of 32 bits")
        known = {leaf: np.arange(-128, 128) / int(stored.over)}
        with np.errstate(all="ignore"):
            values = self._evaluated(node, known)
        low, high = (int(one.min()) for one in
                     (self._ranges[tensor].low, -self._ranges[tensor].high))  # fmt: skip
        used = values[low + 128 : 129 - high]
        if not np.isfinite(used).all() or (used % 1).any():
            raise InexactError(f"the result of {node.name} is no whole number")
        if abs(used).max() >= 1 << 31:
            raise InexactError(f"the result of {node.name} has more than 32 bits")
        whole = np.nan_to_num(values).clip(used.min(), used.max()).astype(np.int64)
        look = Look(Load(0), np.concatenate((whole[128:], whole[:128])))
        made = self._elements(node, look, [(stored, places)])
        return self._stored_in(node.shape, made, np.ones((), np.int64))

    def _leaves(self, node: Node) -> list[Node]:
        """Return the stored nodes that a result is made of."""
        if node.constant is not None:
            return []
        if node in self._stored:
            return [node]
        if not isinstance(node.operator, _OF_ELEMENTS):
            raise InexactError(f"there is no kernel for {node.name}")
        return [leaf for one in node.inputs for leaf in self._leaves(one)]

    def _evaluated(self, node: Node, known: dict[Node, Array]) -> Array:
        """Return the values of a node for those of its leaf; constants are numbers."""
        if node in known:
            return known[node]
        if node.constant is not None:
            value = np.asarray(node.constant)
            if value.size != 1:
                raise InexactError("its constants differ between elements")
            return value.reshape(())
        found = value_of(node.operator, [self._evaluated(one, known) for one in node.inputs])
        assert found is not None
        known[node] = found
        return found

    # All else

    def _made(self, node: Node) -> _Stored:
        """Return where the result of an operator stands."""
        one = np.ones((), np.int64)
        operator = node.operator
        match operator:
            case Input():
                size = laid(np.broadcast_to(np.int8(0), node.shape)).shape
                tensor = self._tensor("input", size[:2], bounds.full_range(size[2]))
                return self._stored_in(node.shape, tensor, one)
            case Reshape() | Transpose() | Slice() | Concat() | Resize() | Pad():
                return self._moved(node)
            case Conv() | ConvTranspose():
                return self._convolution(node, operator)
            case Gemm():
                return self._linear(node)
            case Pool():
                return self._pool(node, operator)
            case Reduce():
                return self._reduced(node, operator)
            case Foreign():
                raise _RefusedError(f"there is no kernel for {node.name}", operator.remedy)
            case _:
                raise _RefusedError(f"there is no kernel for {node.name}")

    def _moved(self, node: Node) -> _Stored:
        """Return the places of values that an operator moves."""
        operator = node.operator
        given = [self._given(one) for one in node.inputs]
        given = self._of_one_scale(node, given)
        fills = {one.fill for one in given if (one.places < 0).any()}
        fill = next(iter(fills), 0)
        over = given[0].over
        if isinstance(operator, Pad) and operator.mode == "constant":
            whole = operator.value * int(over)
            if whole % 1:
                raise _RefusedError(f"it pads with {operator.value:g}", "Pad with whole numbers.")
            fills.add(int(whole))
            fill, operator = int(whole), Pad(operator.pads, _FILLED)
        if len(fills) > 1:
            raise _RefusedError("it joins what is padded with different values", _INSTEAD)
        places = value_of(operator, [one.places for one in given])
        assert places is not None
        return _Stored(places.astype(np.int64), over, fill)

    def _given(self, node: Node) -> _Stored:
        if node.constant is not None:
            raise _RefusedError("it joins data with constants", "Let the application do it.")
        return self._stored[node]

    def _of_one_scale(self, node: Node, given: Sequence[_Stored]) -> list[_Stored]:
        """Return results over their common denominator."""
        if any(one.over.size > 1 for one in given):
            raise _RefusedError("it moves data of several scales", _ROUND)
        over = np.lcm.reduce([int(one.over) for one in given])
        made = []
        for stored, source in zip(given, node.inputs, strict=True):
            factor = over // int(stored.over)
            if factor > 1:
                element = elements.times(Load(0), elements.number(factor))
                tensor = self._elements(source, element, [(stored, laid(stored.places))])
                stored = self._stored_in(source.shape, tensor, over)
            made.append(stored)
        return made

    def _data(self, node: Node, places: Int64, stored: _Stored) -> tuple[int, Interval]:
        """Return a tensor of 8 bits that has places [row, column, channel] in this order."""
        tensor = self._in_order(node.place, stored, places)
        if self._tensors[tensor].bytes_per_value != 1:
            interval = self._ranges[tensor]
            reach = f"{int(interval.low.min()):,} to {int(interval.high.max()):,}"
            raise _RefusedError(f"its data are {reach}, it takes 8 bits", _ROUND)
        return tensor, self._range_of(tensor, places.shape[2])

    def _convolution(self, node: Node, operator: Conv | ConvTranspose) -> _Stored:
        weights, axes = self._weights(node), len(node.shape) - 2
        if axes not in (1, 2):
            raise _RefusedError(f"it has {axes} axes of pixels", "Use Conv1d or Conv2d.")
        single = (1,) * (2 - axes)
        strides, dilations = (*operator.strides, *single), (*operator.dilations, *single)
        begins = (*(begin for begin, _ in operator.pads), *(0,) * (2 - axes))
        spread = (1, 1)
        if isinstance(operator, ConvTranspose):
            weights = turned(weights, operator.groups)
        kernels = weights.reshape(*weights.shape[:2], *weights.shape[2:], *single)
        if dilations[0] != dilations[1]:
            kernels = kernels if max(dilations) == 1 else _dilated(kernels, dilations)
            dilations = (1, 1)
        if isinstance(operator, ConvTranspose):
            reach = [d * (k - 1) for d, k in zip(dilations, kernels.shape[2:], strict=True)]
            begins = tuple(r - b for r, b in zip(reach, begins, strict=True))
            spread, strides = (strides[0], strides[1]), (1, 1)
        stored = self._scaled(node)
        places = laid(stored.places)
        tensor, interval = self._data(node, places, stored)
        size = laid(np.broadcast_to(np.int8(0), node.shape)).shape
        return self._weighted(
            node, stored, tensor, interval, kernels, places.shape[:2], size[:2], operator.groups,
            pad=(begins[0], begins[1]), stride=(strides[0], strides[1]), spread=spread,
            dilation=dilations[0],
        )  # fmt: skip

    def _linear(self, node: Node) -> _Stored:
        """Store a fully connected layer: a convolution of pixels, of the last axis as channels."""
        weights, stored = self._weights(node), self._scaled(node)
        inner = np.moveaxis(stored.places, -1, 0).reshape(weights.shape[1], -1).T
        order = np.argsort(inner[0])
        if len(inner) == 1 and self._is_whole(inner[0][order]):  # flattened: weights change places
            inner, weights = inner[:, order], weights[:, order]
        tensor, interval = self._data(node, inner[:, None], stored)
        size = (len(inner), 1)
        made = self._weighted(node, stored, tensor, interval, weights[:, :, None, None], size, size)
        apart = made.places.reshape(len(inner), len(weights))
        return _Stored(apart.reshape(node.shape), made.over)

    def _is_whole(self, places: Int64) -> bool:
        """Whether places in order are those of all of a tensor."""
        tensor, start = divmod(int(places[0]), gathering.SPAN)
        if tensor < 0 or start:
            return False
        one = self._tensors[tensor]
        span = int(places[-1]) - int(places[0]) + 1
        return one.pixels * one.channels == len(places) == span

    def _scaled(self, node: Node) -> _Stored:
        stored = self._stored[node.inputs[0]]
        if stored.over.size > 1:
            raise _RefusedError("its data are of several scales", _ROUND)
        return stored

    def _weights(self, node: Node) -> Array:
        if any(one.constant is None for one in node.inputs[1:]):
            raise _RefusedError("its weights are not constants", "Use weights that training made.")
        if node.inputs[0].constant is not None:
            raise _RefusedError("its data are constants", "Leave it out.")
        return np.asarray(node.inputs[1].constant, np.float64)

    def _weighted(
        self, node: Node, stored: _Stored, tensor: int, interval: Interval, kernels: Array,
        in_size: Size, out_size: Size, groups: int = 1, *, pad: Size = (0, 0),
        stride: Size = (1, 1), spread: Size = (1, 1), dilation: int = 1,
    ) -> _Stored:  # fmt: skip
        """Store the sums of a convolution, and what is added to them."""
        integers, bits = _whole_weights(kernels)
        over = stored.over * np.int64(1 << bits)
        start = np.zeros(len(kernels), np.int64)
        offset = np.zeros(len(kernels))
        if len(node.inputs) > 2:
            bias = np.asarray(node.inputs[2].constant, np.float64).ravel()
            offset = np.broadcast_to(bias, start.shape) * int(over)
            scale = next((n for n in range(_WIDE) if not (np.ldexp(offset, n) % 1).any()), None)
            if scale is None:
                raise _RefusedError("its bias is a fraction", _QUANTIZE)
            if scale:
                raise _RefusedError("its bias is a fraction of what its sums count", _QUANTIZE)
            if abs(offset).max() > bounds.LARGEST:
                raise _RefusedError(f"its bias reaches {abs(offset).max():,.0f}", _ROUND)
            start = offset.astype(np.int64)
        sums = bounds.sums_of(integers, start, groups, interval)
        reach = int(max(sums.most.max(), -sums.least.min()))
        if reach > bounds.LARGEST:
            raise _RefusedError(f"its sums can reach {reach:,}; 32 bits hold {bounds.LARGEST:,}",
                                "Use fewer inputs or smaller weights.")  # fmt: skip
        output = Interval(sums.low, sums.high)
        target = self._tensor(f"{node.place} output", out_size, output)
        self._tensors[target] = replace(self._tensors[target], bytes_per_value=4)
        self._steps.append(
            steps.Convolution(
                source=tensor, target=target, layer=len(self._steps), name=node.place,
                place=Place(), weights=integers, start=start, groups=groups, in_size=in_size,
                out_size=out_size, pad=pad, dilation=dilation, stride=stride, spread=spread,
                right=0, wide=True, input=interval, output=output,
            )
        )  # fmt: skip
        numbers = np.arange(math.prod(node.shape)) + target * gathering.SPAN
        if isinstance(node.operator, Gemm):
            return _Stored(numbers, over)
        return self._stored_in(node.shape, target, over)

    def _pool(self, node: Node, operator: Pool) -> _Stored:
        if len(operator.window) not in (1, 2):
            raise _RefusedError(f"it pools {len(operator.window)} axes", "Pool rows and columns.")
        stored = self._scaled(node)
        over = stored.over * _counts(node, operator) if operator.average else stored.over
        begins = tuple(begin for begin, _ in operator.pads)
        return self._windows(
            node, stored.places, over, operator.average, _pair(operator.window), node.shape,
            stride=_pair(operator.strides), pad=_pair(begins, 0),
            dilation=_pair(operator.dilations),
        )  # fmt: skip

    def _reduced(self, node: Node, operator: Reduce) -> _Stored:
        """Store what axes are taken together to: windows over all of them."""
        stored, shape = self._scaled(node), node.inputs[0].shape
        sums = operator.reduction in (Reduction.MEAN, Reduction.SUM)
        if not sums and operator.reduction is not Reduction.MAX:
            raise _RefusedError(f"there is no kernel for {node.name}")
        count = math.prod(shape[axis] for axis in operator.axes)
        over = stored.over * (count if operator.reduction is Reduction.MEAN else 1)
        places, kept = stored.places, tuple(1 if axis in operator.axes else n
                                            for axis, n in enumerate(shape))  # fmt: skip
        if shape[0] == 1 and len(shape) in (3, 4) and min(operator.axes) > 1:
            window = _pair(tuple(n if axis + 2 in operator.axes else 1
                                 for axis, n in enumerate(shape[2:])))  # fmt: skip
        else:  # other axes become rows
            left = [axis for axis in range(len(shape)) if axis not in operator.axes]
            places = places.transpose((*left, *operator.axes)).reshape(1, -1, count)
            window, kept = (count, 1), (*places.shape[:2], 1)
        made = self._windows(node, places, over, sums, window, kept)
        return _Stored(made.places.reshape(node.shape), made.over)

    def _windows(
        self, node: Node, places: Int64, over: Int64, sums: bool, window: Size, shape: Shape,
        *, stride: Size = (1, 1), pad: Size = (0, 0), dilation: Size = (1, 1),
    ) -> _Stored:  # fmt: skip
        """Store what the values of windows become; `shape` is that of the results."""
        ordered = laid(places)
        tensor = self._in_order(node.place, self._stored[node.inputs[0]], ordered)
        size, channels = ordered.shape[:2], ordered.shape[2]
        out_size = laid(np.broadcast_to(np.int8(0), shape)).shape[:2]
        interval = self._range_of(tensor, channels)
        low, high = interval.low, interval.high
        if sums:
            count = math.prod(window)
            low, high = np.minimum(low, 0) * count, np.maximum(high, 0) * count
        target = self._tensor(f"{node.place} output", out_size, Interval(low, high))
        if sums:
            self._tensors[target] = replace(self._tensors[target], bytes_per_value=4)
        self._steps.append(
            steps.Windows(
                source=tensor, target=target, layer=len(self._steps), name=node.place,
                channels=channels, in_size=size, out_size=out_size, sums=sums, window=window,
                stride=stride, pad=pad, dilation=dilation, element=Load(0), bits=_WIDE,
            )
        )  # fmt: skip
        return self._stored_in(shape, target, over)


def _pair(values: Shape, single: int = 1) -> Size:
    """Return rows and columns; series have one column."""
    return (values[0], values[1]) if len(values) == 2 else (values[0], single)


def _shape(places: Int64) -> tuple[int, int, int]:
    rows, columns, channels = places.shape
    return rows, columns, channels


def _counts(node: Node, pool: Pool) -> Int64:
    """Return by how many values the windows of an average divide, in the shape of the result."""
    counts = np.ones((), np.int64)
    for axis, (n, w, s, (begin, end), d) in enumerate(zip(
        node.inputs[0].shape[2:], pool.window, pool.strides, pool.pads, pool.dilations, strict=True
    )):  # fmt: skip
        taps = np.arange(node.shape[axis + 2])[:, None] * s + np.arange(w) * d
        low, high = (0, n + begin + end) if pool.counted else (begin, begin + n)
        along = ((taps >= low) & (taps < high)).sum(1)
        counts = counts * along.reshape(-1, *(1,) * (len(node.shape) - 3 - axis))
    return counts.reshape(()) if counts.size == 1 else _alike(counts)


def _alike(counts: Int64) -> Int64:
    """Return one count where all are equal."""
    first: Int64 = counts.ravel()[:1]
    return first.reshape(()) if (counts == first).all() else counts


def _least(pick: np.ufunc, values: Array, whole: tuple[int, int, int]) -> Int64:
    """Return the extreme of each channel of bounds [row, column, channel]."""
    wide = np.broadcast_to(values, np.broadcast_shapes(values.shape, whole))
    found: Int64 = pick.reduce(pick.reduce(wide, 0), 0).astype(np.int64)
    return found


def _is_narrow(node: Node) -> bool:
    """Whether a node limits whole numbers to 8 bits."""
    clip = node.operator
    rounded = node.inputs and node.inputs[0].operator == Each(Function.FLOOR)
    return isinstance(clip, Clip) and clip.low >= -128 and clip.high <= 127 and bool(rounded)


def _operations(element: Element) -> int:
    """Return how many operations an expression has."""
    match element:
        case Pair():
            return 1 + _operations(element.a) + _operations(element.b)
        case _:
            return 0


def _whole_weights(weights: Array) -> tuple[steps.Int8, int]:
    """Return integers, and the power of two that they are divided by."""
    for bits in range(_WIDE):
        whole = np.ldexp(weights, bits)
        if not (whole % 1).any():
            if whole.min(initial=0) < -128 or whole.max(initial=0) > 127:
                break
            return whole.astype(np.int8), bits
    raise _RefusedError("its weights do not fit 8 bits", _QUANTIZE)


def _dilated(kernels: Array, dilations: Sequence[int]) -> Array:
    """Return kernels with the zeros between their values."""
    sizes = ((k - 1) * d + 1 for k, d in zip(kernels.shape[2:], dilations, strict=True))
    wide = np.zeros((*kernels.shape[:2], *sizes))
    wide[:, :, :: dilations[0], :: dilations[1]] = kernels
    return wide
