"""From a graph of layers of the accelerator to the layers of a network description."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ai8xtools.frontends.accelerator.history import moved, remember, why_not
from ai8xtools.frontends.graph import geometry
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Concat,
    Dropout,
    Foreign,
    Input,
    Layer,
    Pool,
    Remembered,
    Reshape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.graph.tail import without_tail
from ai8xtools.frontends.instead import instead_of
from ai8xtools.frontends.layers import (
    ELEMENTWISE,
    EMPTY,
    HISTORY,
    INPUT,
    DescribedLayer,
    Refusal,
    RollingBuffer,
    short,
    times,
    unused,
)
from device import Chip
from device.channels import passes

_INSTEAD = {
    **dict.fromkeys(("add", "iadd", "add_"), "Use ai8x.Add(): as on the chip, its sums are limited "
                    "to -1..1 in training."),
    **dict.fromkeys(("relu", "ReLU"), "Use a layer with ReLU, such as FusedConv2dReLU or "
                    "FusedLinearReLU."),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d"), "Use a layer with it, such as FusedConv2dBN."),
    **{name: f"Use ai8x.{name}." for name in ("Conv1d", "Conv2d", "ConvTranspose2d", "Linear",
                                              "AvgPool1d", "AvgPool2d")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor between layers, with the operations in front of the next layer.

    `by_frame` is the node from which on frames come before features.
    """

    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    join: Literal["elements", "channels"] | None = None
    combined: str | None = None
    pool: Mapping[str, Any] = field(default_factory=dict)
    flat: bool = False
    reshaped: bool = False
    by_frame: str = ""

    @property
    def prepared(self) -> bool:
        """Whether the tensor needs an operation that only an operator can do."""
        return self.flat or self.reshaped or bool(self.pool)


Leaves = Callable[[list[DescribedLayer], tuple[int, ...]], bool]
"""Whether the application joins results, by number, of layers that a graph joins at its end."""


class Walk:
    """Follows a graph; `names` are those of what its nodes call, `entries` the layers found.

    `refusals` are the nodes that no layer stands for, `left` those behind the last layer that the
    application can do, `buffer` remembers features of frames. What is joined at the end `leaves`
    to the application, or a layer joins it.
    """

    def __init__(
        self,
        graph: Graph,
        chip: Chip,
        names: Mapping[str, str] = EMPTY,
        *,
        leaves: Leaves = lambda _layers, _joined: True,
    ) -> None:
        graph, left = without_tail(graph, joins=True)
        self.entries: list[DescribedLayer] = []
        self.refusals: list[Refusal] = []
        self.left = list(dict.fromkeys(node.place for node in left))
        self.buffer: RollingBuffer | None = None
        self._chip, self._names, self._leaves = chip, names, leaves
        self._readers = graph.readers()
        self._values: dict[Node, _Value] = {}
        self._named: dict[str, str] = {}
        for node in graph.nodes:
            taken = [self._values[source] for source in node.inputs if source in self._values]
            if taken or isinstance(node.operator, Input):
                self._values[node] = self._followed(node, taken, node.shape[1:])
        for node in graph.outputs:
            self._deliver(node, self._values[node])

    def _followed(self, node: Node, taken: list[_Value], shape: tuple[int, ...]) -> _Value:
        """Return what a node makes of what it takes."""
        value = taken[0] if taken else _Value((INPUT,), shape)
        operator = node.operator
        if isinstance(operator, Pool) and not operator.average:
            spec = geometry.pooling(node, operator)
            if not isinstance(spec, Refusal) and not spec.padded and not spec.first:
                operator = Layer(node.name, node.shape, pool=spec.keys)
        match operator:
            case Input() | Dropout():
                return value
            case Layer() if operator.op in ELEMENTWISE:
                return self._elements(node, operator.op, taken, shape)
            case Layer():
                alone = operator.op == "Passthrough" and value.join is None
                if alone and self._following(node, pooled=False):
                    return replace(value, pool=operator.pool)
                return self._layer(node, operator, value, shape)
            case Remembered():
                return self._remembered(node, value, shape)
            case Reshape():
                return self._reshaped(node, value, shape)
            case Concat() if len(taken) > 1:
                return self._joined(node, taken, shape)
            case Transpose() if value.by_frame and shape == value.shape[1::-1]:
                return replace(value, shape=shape, by_frame="")  # [frames, F] to [F, frames]
            case Slice() if not any(operator.start) and node.shape == node.inputs[0].shape:
                return value
        called = {} if isinstance(operator, Foreign) else self._names
        name = called.get(node.place, node.name)
        remedy = _INSTEAD.get(name) or instead_of(name)
        return self._refused(node, value, f"the model computes {name} here", remedy)

    def _refused(self, node: Node, value: _Value, why: str, remedy: str | None = None) -> _Value:
        """Refuse a node; what is behind it is looked at as well."""
        refusal = Refusal(node.place, why)
        self.refusals.append(replace(refusal, remedy=remedy) if remedy else refusal)
        return replace(value, shape=node.shape[1:], flat=False)

    def _remembered(self, node: Node, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow the features of all frames, of which one is new: a rolling buffer."""
        why = why_not(self.entries, value.inputs, value.shape)
        if self.buffer is not None:
            why = "a second rolling buffer is not possible"
        if why is not None or value.prepared or value.combined or value.join:
            return self._refused(
                node, value, why or "what is remembered must be the result of a layer"
            )
        (index,) = value.inputs
        self.buffer = remember(self.entries, index, shape[0], node.place)
        for key, one in self._values.items():
            self._values[key] = replace(one, inputs=moved(one.inputs, index))
        return _Value((HISTORY,), shape, by_frame=node.place)

    def _deliver(self, node: Node, value: _Value) -> None:
        """Note a result of the network; joining several is left to the application."""
        if value.join == "channels":
            if self._leaves(self.entries, value.inputs):
                self.left.append(node.place)
            else:
                layer = Layer("", node.shape, target=f"{node.place}_result")
                value = self._layer(node, layer, value, node.shape[1:])
        for index in set(value.inputs) - {INPUT, HISTORY}:
            self.entries[index].is_output = True

    def _joined(self, node: Node, taken: list[_Value], shape: tuple[int, ...]) -> _Value:
        """Return joined channels."""
        sizes = {value.shape[1:] for value in taken}
        fits = len(sizes) == 1 and shape[0] == sum(value.shape[0] for value in taken)
        inputs = tuple(index for value in taken for index in value.inputs)
        joined = _Value(inputs, shape, "channels")
        simple = fits and not any(value.prepared or value.join == "elements" for value in taken)
        if simple or self._readers[node] == [node]:
            return joined
        return self._refused(node, joined, "these tensors are concatenated in another way")

    def _reshaped(self, node: Node, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow a change of the shape."""
        if value.by_frame and shape[0] == value.shape[0] and len(shape) < len(value.shape):
            return replace(value, shape=shape)
        if shape == value.shape or (value.flat and len(shape) == 1):
            return value
        if shape[0] == value.shape[0] == math.prod(shape) == math.prod(value.shape):
            return replace(value, shape=shape)  # single pixels
        if len(shape) == 1 and not value.reshaped:
            flat = math.prod(value.shape[1:]) > 1
            return replace(value, flat=flat, shape=value.shape if flat else shape)
        if shape[0] == value.shape[0] and not value.flat and not value.pool:
            return replace(value, shape=shape, reshaped=True)
        change = f"{times(value.shape)} becomes {times(shape)}"
        remedy = "Flatten all of it, or keep the channels."
        return self._refused(node, value, f"the model reshapes its data here: {change}", remedy)

    def _following(self, node: Node, pooled: bool) -> Layer | None:
        """Return the layer with an operator that alone takes a result, or None."""
        reader, *others = self._readers[node]
        layer = reader.operator
        if others or reader is node or not isinstance(layer, Layer):
            return None
        computes = layer.op not in ("Passthrough", *ELEMENTWISE)
        return layer if computes and (pooled or not layer.pool) else None

    def _elements(
        self, node: Node, kind: str, taken: list[_Value], shape: tuple[int, ...]
    ) -> _Value:
        """Follow an element-wise layer; the next layer does its work if it can."""
        if any(value.prepared or len(value.inputs) > 1 for value in taken):
            self._refused(node, taken[0], "the operands are not complete results of layers")
        elif any(value.shape != shape for value in taken):
            shapes = " and ".join(times(value.shape) for value in taken)
            self._refused(node, taken[0], f"the operands have the shapes {shapes}")
        inputs = tuple(value.inputs[0] for value in taken)
        value = _Value(inputs, shape, "elements", ELEMENTWISE[kind])
        following = self._following(node, pooled=True)
        if following is not None and self._can_combine(following, len(inputs), shape[0]):
            return value
        keys: dict[str, Any] = {"op": kind.removeprefix("Bitwise")}
        if len(inputs) > 2:
            keys["operands"] = len(inputs)
        layer = DescribedLayer(
            self._name(node.place), inputs, "elements", keys, shape, shape, node=node.place
        )
        return self._append(layer)

    def _can_combine(self, layer: Layer, operands: int, channels: int) -> bool:
        """Return whether a layer can combine elements in front of its operator."""
        count = passes(channels)
        if layer.op == "Conv1d" or (layer.pool and operands > 2):
            return False
        if self._chip.combines_with_bias:
            return count == 1 or operands * count == operands + count
        return not layer.bias

    def _layer(self, node: Node, layer: Layer, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Add a layer with an operator, or one that only pools."""
        target = layer.target or node.place
        pool = value.pool or layer.pool
        keys: dict[str, Any] = {"op": layer.op}
        if value.by_frame:
            why = "frames come before features here: transpose them for the layer behind"
            self.refusals.append(Refusal(value.by_frame, why))
        if value.combined is not None:
            keys["eltwise"] = value.combined
            if len(value.inputs) > 2:
                keys["operands"] = len(value.inputs)
            if pool:
                keys["pool_first"] = False
        if HISTORY in value.inputs:
            keys |= {"in_dim": short(value.shape[1:]), "in_channels": value.shape[0]}
        if value.reshaped:
            keys["in_dim"] = short(value.shape[1:])
        if value.flat:
            keys["flatten"] = True
            if value.join or value.inputs != (len(self.entries) - 1,):
                keys["in_channels"] = math.prod(value.shape)
        keys |= {**pool, **layer.keys}
        if target in self._named:
            keys["weight_source"] = self._named[target]
        name = self._name(target)
        self._named.setdefault(target, name)
        entry = DescribedLayer(
            name, value.inputs, value.join, keys, value.shape, shape, node=node.place
        )
        if layer.op != "Passthrough" and "weight_source" not in keys:
            entry.weights = target
        return self._append(entry)

    def _append(self, entry: DescribedLayer) -> _Value:
        """Add a layer and return its result."""
        self.entries.append(entry)
        return _Value((len(self.entries) - 1,), entry.shape)

    def _name(self, target: str) -> str:
        """Return a name that no other layer has."""
        return unused(target.replace(".", "_"), [entry.name for entry in self.entries])
