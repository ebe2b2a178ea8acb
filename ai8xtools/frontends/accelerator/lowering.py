"""What becomes a layer of the accelerator: the one walk over a graph of operators.

It decides which operators are one layer, what is computed in another way that is exactly the same
(strides become decimation, activations behind sums a layer of kernels that are one), and what is
refused. Where the numbers come from, fractions that are trained or whole numbers with their
rounding, is that of a subclass, which also makes the layers.
Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np

from ai8xtools.frontends.accelerator.ones import bordered, doubled, identity, pointwise
from ai8xtools.frontends.graph import geometry, kernels, passes
from ai8xtools.frontends.graph.geometry import LayerSpec
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Array,
    BatchNormalization,
    Clip,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    LpNormalization,
    MatMul,
    MeanVarianceNormalization,
    Operator,
    Pad,
    Pool,
    Reduce,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.recurrent import is_recurrence
from ai8xtools.frontends.instead import instead_of
from ai8xtools.frontends.layers import CHANGE, Refusal, times
from ai8xtools.frontends.windows import MOST_POOLED

_ALIKE = {"Max": "maximum", "Min": "minimum", "Div": "mul"}
"""Functions of two results, and those that have the same alternative."""
Limits = tuple[float, float]
RELU = Clip(0.0, math.inf)
ACTIVATIONS: Mapping[Operator, str] = {RELU: "ReLU", Each(Function.ABS): "Abs"}
SHAPES = Reshape | Dropout | Concat | Slice | Resize | Pool | Reduce | Pad
"""Results have the limits of what they take."""


class RefusedError(ValueError):
    """No layer stands for a node (None: for the one that is looked at): why, and a remedy."""

    def __init__(self, why: str, remedy: str, node: Node | None = None) -> None:
        super().__init__(why)
        self.why, self.remedy, self.node = why, remedy, node


@dataclass(slots=True)
class Parts:
    """An operator with what becomes part of its layer.

    `norm` is the batch normalization behind it, `limits` are lower and upper ones of its own,
    `shift` and `rounded` say what whole numbers are multiplied by (2^shift), and whether they are
    divided by 128 and rounded then; `wide` results have 32 bits. A `constant` layer stands for no
    weights of the graph: its kernels are one. One that `adds` has kernels of ones for each operand,
    and factors of their own.
    """

    spec: LayerSpec
    weights: Array = field(init=False)
    bias: Array | None = None
    norm: Node | None = None
    activation: str | None = None
    limits: Limits | None = None
    shift: int = 0
    rounded: bool = False
    wide: bool = False
    constant: bool = False
    adds: bool = False

    def __post_init__(self) -> None:
        self.weights = np.asarray(self.spec.weights)


class Lowering:
    """Goes through the nodes of a graph once, by `lower`.

    `notes` say what was rewritten, by node. `depthwise`: the chip has depth-wise convolutions.
    `calibrated`: each result has a factor of its own, by which it fits the range of the chip.
    """

    goes_on = True
    """What is behind a node that is refused is looked at as well."""

    def __init__(
        self, graph: Graph, rules: Sequence[passes.Rule], *, depthwise: bool, calibrated: bool
    ) -> None:
        self.refusals: list[Refusal] = []
        self.notes: list[str] = []
        shaping = (kernels.channel_sections, kernels.dense_groups(depthwise=depthwise),
                   kernels.square_kernels)  # fmt: skip
        self._source = passes.improved(graph, (*rules, *shaping))
        self._depthwise, self._calibrated = depthwise, calibrated
        self._readers = self._source.readers()
        self._results: dict[Node, Any] = {}
        self._done: set[Node] = set()  # their work is part of a layer before them
        self._positive: set[Node] = set()  # results that are never negative
        self._limited: dict[Node, float] = {}  # upper limits, which decide the factor

    def lower(self) -> None:
        """Make the layers of all nodes; where some are recurrent only these are refused, as nodes
        around them often do no more than bring their data into order."""
        recurrent = [node for node in self._source.nodes if is_recurrence(node)]
        for node in recurrent:
            why = f"the accelerator has no {node.name}"
            self._refuse(node, why, "Use Conv along the time, or --device MCU, which has it.")
        for node in () if recurrent else self._source.nodes:
            self._visit(node)

    # What a subclass makes

    @abstractmethod
    def _input(self, node: Node) -> Any:
        """Return the input."""

    @abstractmethod
    def _takes(self, node: Node, parts: Parts) -> bool:
        """Make a node part of the layer in front of it, which it alone reads, if it can be."""

    @abstractmethod
    def _placed(self, node: Node, target: str, parts: Parts, source: Any, last: Node) -> Any:
        """Return the result of a layer, which `last` ends. AssertionError tells of a limit."""

    @abstractmethod
    def _pool(self, node: Node, target: str, keys: Mapping[str, Any], source: Any) -> Any:
        """Return pooled data. AssertionError tells of a limit."""

    @abstractmethod
    def _sum(
        self, node: Node, function: Function, data: Sequence[Node], limits: Limits | None
    ) -> Any:
        """Return a sum or difference of two results of one shape, perhaps with limits."""

    @abstractmethod
    def _join(self, node: Node, sources: Sequence[Any]) -> Any:
        """Return channels one behind another."""

    @abstractmethod
    def _shaped(self, node: Node, source: Any, shape: tuple[int, ...]) -> Any:
        """Return data in another shape, without the batch; of one axis: flattened."""

    @abstractmethod
    def _by_element(self, node: Node, operator: Clip | Each, source: Any) -> Any:
        """Return what no layer in front of a node does with each element."""

    @abstractmethod
    def _target(self, node: Node) -> str:
        """Return the path of a layer, by which its weights are found."""

    def _dropout(self, _node: Node, _dropout: Dropout, source: Any) -> Any:
        return source

    # One node after the other

    def _visit(self, node: Node) -> None:
        data = [one for one in node.inputs if one.constant is None]
        if node.constant is not None or any(one not in self._results for one in data):
            return  # none of the data, or behind something that is refused
        if node in self._done:
            self._results[node] = self._results[data[0]]
            return
        try:
            self._results[node] = self._written(node, node.operator, data)
        except RefusedError as exc:
            self._refuse(exc.node or node, exc.why, exc.remedy)
            if self.goes_on:
                self._results[node] = self._results[data[0]]
                self._positive.add(node)

    def _refuse(self, node: Node, why: str, remedy: str) -> None:
        self.refusals.append(Refusal(node.place, why, remedy))

    def _written(self, node: Node, operator: Operator, data: Sequence[Node]) -> Any:
        """Return the result of a node; RefusedError where no layer stands for it."""
        sources = [self._results[one] for one in data]
        if data and _keeps_sign(operator) and all(one in self._positive for one in data):
            self._positive.add(node)
        limits = [self._limited[one] for one in data if one in self._limited]
        if limits and isinstance(operator, SHAPES):
            self._limited[node] = max(limits)
        match operator:
            case Input():
                self._limited |= {node: 1.0} if self._calibrated else {}
                return self._input(node)
            case Conv() | ConvTranspose() | Gemm():
                return self._operator(node, sources[0])
            case Clip() | Each() if operator in ACTIVATIONS:
                positive = data[0] in self._positive
                self._positive.add(node)
                return sources[0] if positive else self._rectified(node, sources[0])
            case Each() if len(data) == 2:
                return self._elementwise(node, operator, data)
            case Clip() | Each():
                return self._by_element(node, operator, sources[0])
            case BatchNormalization():
                return self._normalized(node, sources[0])
            case Pool() | Reduce():
                return self._pooled(node, operator, data[0])
            case Concat():
                return self._joined(node, operator, sources)
            case Dropout():
                return self._dropout(node, operator, sources[0])
            case Reshape():
                return self._reshaped(node, data[0])
            case Slice():
                step = unless_refused(geometry.step_of(node, operator))
                return self._decimated(f"{plain(node)}_pooling", step, sources[0], node)
            case Pad():
                return self._bordered(node, operator, sources[0])
            case Resize() if geometry.doubles(operator, data[0].shape):
                spec = doubled(data[0].shape[1:], depthwise=self._depthwise)
                return self._ones(node, "doubling", spec, sources[0], "repeating pixels",
                                  "Use ConvTranspose2d.")  # fmt: skip
            case Resize():
                raise RefusedError(*geometry.why_not_resized(operator, data[0].shape))
            case Foreign():
                raise RefusedError(f"the accelerator has no {operator.name}", operator.remedy)
            case (
                MatMul() | Softmax() | Transpose() | LpNormalization()
                | MeanVarianceNormalization()
            ):  # fmt: skip
                raise self._without(node)
            case Constant():
                raise TypeError(f"{node.place} takes nothing")
            case _:
                assert_never(operator)

    def _without(self, node: Node) -> RefusedError:
        name = _ALIKE.get(node.name, node.name)
        remedy = instead_of(name) or "Compute this part in the application."
        return RefusedError(f"the accelerator has no {node.name}", remedy)

    # Layers with weights

    def _operator(self, node: Node, source: Any) -> Any:
        """Make the layer of an operator and what can be part of it behind it."""
        values = [one.constant for one in node.inputs[1:]]
        if any(one is None for one in values):
            raise RefusedError("its weights are not constants", "Use weights that training made.")
        weights, *bias = (np.asarray(one, np.float64) for one in values)
        spec = unless_refused(geometry.operator(node, weights))
        if isinstance(node.operator, Conv) and node.operator.moves:
            if node.inputs[0] in self._positive:
                self._positive.add(node)
            return self._ones(node, "moved", spec, source, "data in other places",
                              None)  # fmt: skip
        offset = np.broadcast_to(bias[0].ravel(), spec.shape[:1]) if bias else None
        return self._layer(node, Parts(spec, offset), source)

    def _layer(self, node: Node, parts: Parts, source: Any) -> Any:
        """Make a layer of an operator, with all behind it that can be part of it."""
        last, following = node, self._only_reader(node)
        while following is not None and self._takes(following, parts):
            self._done.add(following)
            last, following = following, self._only_reader(following)
            self._positive |= set() if parts.activation is None else {node, last}
        if parts.limits is not None:
            self._limited[last] = parts.limits[1]
        target = self._target(node)
        source = self._decimated(f"{target}_stride", parts.spec.before, source, node)
        try:
            result = self._placed(node, target, parts, source, last)
        except AssertionError as exc:
            raise RefusedError(_reason(exc), _remedy(exc)) from None
        return self._decimated(f"{target}_stride", parts.spec.after, result, node)

    def _ones(
        self, node: Node, kind: str, spec: LayerSpec, source: Any, what: str, remedy: str | None,
        activation: str | None = None,
    ) -> Any:  # fmt: skip
        """Make a layer whose kernels are exactly one, for `what` a node does."""
        parts = Parts(spec, activation=activation, constant=True)
        try:
            result = self._placed(node, f"{plain(node)}_{kind}", parts, source, node)
        except AssertionError as exc:
            why = f"{what} costs a layer: {_reason(exc)}"
            raise RefusedError(why, remedy or _remedy(exc)) from None
        self.notes.append(f"{node.place}: {what} costs a layer with {spec.shape[0]} channels, "
                          "whose kernels are one")  # fmt: skip
        return result

    def _decimated(self, target: str, stride: int, source: Any, node: Node) -> Any:
        """Pool single pixels, which keeps each `stride`-th of them."""
        if stride == 1:
            return source
        if not isinstance(node.operator, Slice):
            self.notes.append(f"{node.place}: its stride {stride} is computed as decimation")
        try:
            return self._pool(node, target, {"max_pool": 1, "pool_stride": stride}, source)
        except AssertionError as exc:
            raise RefusedError(str(exc), "Pool instead of the stride.") from None

    def _normalized(self, node: Node, source: Any) -> Any:
        """Make a layer of a batch normalization that follows none."""
        if len(node.shape) < 3:
            raise RefusedError("batch normalization that follows no layer",
                               "Put it directly behind a fully connected layer.")  # fmt: skip
        self.notes.append(f"{node.place}: batch normalization behind no layer costs a layer of 1x1 "
                          f"kernels for {node.shape[1]} channels")  # fmt: skip
        spec = identity(node.shape[1:], depthwise=self._depthwise)
        return self._layer(node, Parts(spec, norm=node), source)

    def _rectified(self, node: Node, source: Any) -> Any:
        """Make a layer for an activation that no layer in front can do."""
        if len(node.shape) < 3:
            raise RefusedError("there is no layer in front of it",
                               "Put it behind a fully connected layer.")  # fmt: skip
        return self._ones(
            node, "activation", identity(node.shape[1:]), source, "an activation behind no layer",
            "Put it behind a convolution.", ACTIVATIONS[node.operator],
        )  # fmt: skip

    def _bordered(self, node: Node, pad: Pad, source: Any) -> Any:
        """Make a layer that puts zeros around a map or beside its channels."""
        if len(node.shape) < 3:
            raise RefusedError("it pads flattened data", "Use more outputs of the layer.")
        border, beside = unless_refused(geometry.zeros(node, pad))
        if border > 1:
            raise RefusedError(f"its padding is {border}",
                               "Use a padding of 1, or that of a convolution.")  # fmt: skip
        spec = bordered(node.inputs[0].shape[1:], beside, border)
        return self._padded(node, "border", spec, source)

    def _padded(self, node: Node, kind: str, spec: LayerSpec, source: Any) -> Any:
        remedy = "Use padding=0, or at most 64 channels."
        return self._ones(node, kind, spec, source, "its padding", remedy)

    # Everything else

    def _elementwise(self, node: Node, each: Each, data: Sequence[Node]) -> Any:
        """Make a sum or difference."""
        if each.function not in (Function.ADD, Function.SUB):
            raise self._without(node)
        if data[0].shape != data[1].shape:
            shapes = " and ".join(times(one.shape[1:]) for one in data)
            raise RefusedError(f"its operands have the shapes {shapes}",
                               "Add results of the same shape.")  # fmt: skip
        following = self._only_reader(node)
        name, limits = activation(following) if self._calibrated else (None, None)
        known = {self._limited.get(one) for one in data}
        if limits is not None or known != {None}:
            if following is None or limits is None or name is not None or known != {limits[1]}:
                return self._added(node, each.function, data)
            self._done.add(following)
            self._limited |= dict.fromkeys((node, following), limits[1])
        return self._sum(node, each.function, data, limits)

    def _added(self, node: Node, function: Function, data: Sequence[Node]) -> Any:
        """Make a layer of a sum whose limits are not those of its operands: kernels that are one
        over the channels of both, whose result has a factor of its own."""
        signs = (1, 1 if function is Function.ADD else -1)
        counts = {one: sum(s for s, d in zip(signs, data, strict=True) if d is one) for one in data}
        kernels = np.hstack([n * np.eye(node.shape[1]) for n in counts.values()])
        kernels = kernels.reshape(*kernels.shape, *(1,) * (len(node.shape) - 2))
        spec = pointwise(kernels, node.shape[1:])
        self.notes.append(f"{node.place}: a sum of limited data costs a layer with "
                          f"{node.shape[1]} channels, whose kernels are one")  # fmt: skip
        sources = [self._results[one] for one in counts]
        joined = sources[0] if len(sources) == 1 else self._join(node, sources)
        return self._layer(node, Parts(spec, adds=True), joined)

    def _joined(self, node: Node, concat: Concat, sources: Sequence[Any]) -> Any:
        if len(sources) != len(node.inputs):
            raise RefusedError(
                "it joins data with a constant",
                "Give the layer behind it a bias in place of the constant.",
            )
        if concat.axis != 1:
            raise RefusedError(f"it joins along axis {concat.axis}",
                               "Join channels, along axis 1.")  # fmt: skip
        return sources[0] if len(sources) == 1 else self._join(node, sources)

    def _pooled(self, node: Node, operator: Pool | Reduce, data: Node) -> Any:
        """Pool, in steps where the window is large."""
        spec, source = unless_refused(geometry.pooling(node, operator)), self._results[data]
        if spec.padded:
            if data not in self._positive and "max_pool" in spec.keys:
                shown = times((1,) * (len(data.shape) - 2))
                raise RefusedError(
                    f"its padding is {shown}, and negative values come into it; on the accelerator "
                    "zeros stand there", "Put a ReLU in front of it, or use padding=0.",
                )  # fmt: skip
            source = self._padded(node, "padding", bordered(data.shape[1:], border=1), source)
        parts = (*spec.first, spec.keys)
        for number, keys in enumerate(parts):
            target = f"{plain(node)}_pooling{number}" if number else path_of_weights(node)
            try:
                source = self._pool(node, target, keys, source)
            except AssertionError as exc:
                why = _reason(exc)
                large = f"Use windows of at most {MOST_POOLED}, or a size of the map that divides "
                raise RefusedError(why, "Use one stride for both axes." if "by axis" in why
                                   else f"{large}into such.") from None  # fmt: skip
        if len(parts) > 1:
            windows = ", then ".join(str(next(iter(keys.values()))) for keys in parts)
            self.notes.append(f"{node.place}: its window is pooled in steps, {windows}")
        squeezed = len(node.shape) == 2 and len(data.shape) > 2
        return self._shaped(node, source, node.shape[1:]) if squeezed else source

    def _reshaped(self, node: Node, data: Node) -> Any:
        """Flatten, or change the shape otherwise."""
        after, before, source = node.shape[1:], data.shape[1:], self._results[data]
        if after == before:
            return source
        if node.shape[0] != data.shape[0]:
            raise RefusedError(f"{times(data.shape)} becomes {times(node.shape)}",
                               "Leave the first axis, the batch, as it is.")  # fmt: skip
        if len(before) == 1 and len(after) > 1 and after[:1] != before:
            remedy = (
                f"Let samples have the shape {times(after)} (--input-shape)."
                if isinstance(data.operator, Input)
                else f"Take its {before[0]} values as channels of one pixel, and enlarge these."
            )
            raise RefusedError(f"{times(before)} becomes {times(after)}", remedy)
        return self._shaped(node, source, after)

    def _only_reader(self, node: Node) -> Node | None:
        """Return the node that alone takes a result."""
        readers = self._readers[node]
        return readers[0] if len(readers) == 1 and readers[0] is not node else None


def unless_refused(result: Any) -> Any:
    """Return the value unless it is a refusal, which is raised."""
    if isinstance(result, Refusal):
        raise RefusedError(result.why, result.remedy)
    return result


def path_of_weights(node: Node) -> str:
    """Return the path of a module: of its weights, if they have such a name, else of the node."""
    weights = node.inputs[1].place if len(node.inputs) > 1 else ""
    path = weights.removesuffix(".weight") if weights.endswith(".weight") else node.place
    parts = (re.sub(r"\W", "_", part) for part in re.split(r"[./]", path))
    return ".".join(part for part in parts if part)


def plain(node: Node) -> str:
    """Return the place of a node as a name of a module beside others."""
    return re.sub(r"\W", "_", node.place).strip("_")


_LOWEST = 128 / 127 * (1 + 1e-6)
"""The lowest value of 8 bits, for a highest one of -1."""


def activation(node: Node | None) -> tuple[str | None, Limits | None]:
    """Return what a node is as the activation of a layer, None for others, and its limits, which
    are 0 or about the negative of the upper one, and that."""
    operator = None if node is None else node.operator
    if isinstance(operator, Clip) and math.isfinite(operator.high) and operator.high > 0:
        limits = operator.low, operator.high
        if operator.low == 0:
            return "ReLU", limits
        if 1 <= -operator.low / operator.high <= _LOWEST:
            return None, limits
    return (None if operator is None else ACTIVATIONS.get(operator)), None


def takes_activation(node: Node, parts: Parts) -> bool:
    """Make a node the activation of a layer that has none, if it is one."""
    if parts.activation is not None or parts.limits is not None:
        return False
    parts.activation, parts.limits = activation(node)
    return parts.activation is not None or parts.limits is not None


def _keeps_sign(operator: Operator) -> bool:
    """Return whether results are never negative where nothing that is taken is."""
    return isinstance(operator, SHAPES) or operator == Each(Function.ADD)


_REMEDIES = {
    "padding with more": "Use padding=0 here, or at most 64 input channels.",
    "padding": "Use a padding of 0, 1 or 2; more layers reach further.",
    "(kernel_size-1)*dilation": "Use smaller kernels or dilation, or padding=0 and 3 values.",
    "kernel_size": "Use kernels of at most 9 values; pooling or more layers reach further.",
    "groups": "Use groups=1.",
    "in_channels": "Use fewer channels in the layer before.",
    "out_channels": "Use fewer channels, or two layers that are concatenated.",
    "out_features": "Use fewer outputs.",
}
"""What to use instead of a value beyond a limit, by the beginning of what is said of it."""


def remedy_of_limit(message: str) -> str | None:
    """Return what to use instead of what a layer of ai8x refuses, None for other messages."""
    why = message.partition(": ")[2] or message
    return next((r for begin, r in _REMEDIES.items() if why.startswith(begin)), None)


def _reason(exc: AssertionError) -> str:
    return str(exc).partition(": ")[2] or str(exc)


def _remedy(exc: AssertionError) -> str:
    return remedy_of_limit(str(exc)) or CHANGE
