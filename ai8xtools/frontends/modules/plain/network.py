"""An ordinary network as one of ai8x layers, with the names of its modules.

What is not expressible is refused by node; what is computed in another way is exactly the same:
strides become decimation, activations behind sums a layer of kernels that are one.
Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

import ai8x
from ai8xtools.frontends.departing import told_of
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
from ai8xtools.frontends.graph.tail import without_tail
from ai8xtools.frontends.layers import EMPTY, Refusal, refuse, times
from ai8xtools.frontends.modules.door import Door
from ai8xtools.frontends.modules.instead import instead_of
from ai8xtools.frontends.modules.plain.layers import (
    EXACTLY_ONE,
    bordered,
    doubler,
    make_layer,
    ones,
    rectifier,
)
from ai8xtools.frontends.modules.plain.proof import prove_module
from ai8xtools.frontends.modules.plain.unlimited import Limits, set_limits
from ai8xtools.frontends.modules.tracing import lines_of, path_of
from ai8xtools.frontends.windows import MOST_POOLED


@dataclass(frozen=True, slots=True)
class Imported:
    """The network of ai8x layers; `left` are nodes that the application computes, `notes` what was
    rewritten, by node."""

    network: nn.Module
    left: tuple[str, ...]
    notes: tuple[str, ...]


def import_network(
    model: nn.Module, example: Tensor, name: str, keywords: Mapping[str, Any], *, prove: bool = True
) -> Imported:
    """Return a network of ai8x layers for the chip that is set, with the weights of `model`.

    `example` [1, C, ...] is an input, `keywords` go to every layer. Raises InputError E647 for a
    data flow that cannot be traced, E670 naming every node that the chip cannot compute, E668 for
    a network that would compute something else than `model`, unless `prove` is false.
    """
    door = Door(model.eval(), example)
    kind = type(model).__name__
    lines = lines_of(model, door.traced)
    builder, network, tail = _built(door.graph, door.returned, name, kind, keywords, lines)
    places = {node: builder.places[path_of(node)] for node in door.traced.nodes
            if path_of(node) in builder.places}  # fmt: skip
    ours = any(isinstance(one, ai8x.QuantizationAwareModule) for one in model.modules())
    assert ai8x.dev is not None
    if prove and not (ours and ai8x.dev.simulate):  # then layers of the model compute with integers
        prove_module(model, door.traced, network, example, places)
    return _finished(builder, network, tail)


def import_operators(graph: Graph, name: str, keywords: Mapping[str, Any]) -> Imported:
    """Return a network of ai8x layers for the chip that is set that computes what a graph does.

    Layers are named after their weights, without `.weight`, else after their node. Raises
    InputError E670 naming every node that the chip cannot compute.
    """
    outputs = graph.outputs if len(graph.outputs) > 1 else graph.outputs[0]
    return _finished(*_built(graph, outputs, name, "Graph", keywords))


def _built(
    graph: Graph,
    returned: Any,
    name: str,
    kind: str,
    keywords: Mapping[str, Any],
    lines: Mapping[str, str] = EMPTY,
) -> tuple[_Builder, fx.GraphModule, list[Node]]:
    """Return a network that returns the structure `returned` of nodes, and its nodes behind the
    last layer."""
    graph, tail = without_tail(graph, joins=True)
    chip = ai8x.dev
    assert chip is not None
    shaping = (kernels.channel_sections, kernels.dense_groups(depthwise=chip.limits.has_depthwise),
               kernels.square_kernels)  # fmt: skip
    with told_of(name):
        builder = _Builder(passes.improved(graph, (*PASSES, *shaping)), keywords)
    builder.finish(returned, graph.outputs, tail)
    refuse(builder.refusals, name, lines=lines)
    return builder, fx.GraphModule(builder.root, builder.graph, kind), tail


def _finished(builder: _Builder, network: fx.GraphModule, tail: Sequence[Node]) -> Imported:
    """Return a network without the softmax at its end."""
    for node in builder.softmax:
        node.replace_all_uses_with(node.args[0])
        network.graph.erase_node(node)
    if builder.softmax:
        network.recompile()
    first = (node.place for node in tail if any(one not in tail for one in node.inputs))
    return Imported(network, tuple(dict.fromkeys(first)), tuple(builder.notes))


def activations_first(node: Node, readers: passes.Readers) -> Node:
    """Activations stand before maxima and shapes; normalization stays where training has it."""
    if isinstance(node.operator, BatchNormalization):
        return node
    return passes.elements_first(node, readers)


PASSES = (
    passes.constants_second, passes.limits, passes.padding, passes.reductions, passes.sections,
    passes.channel_orders, passes.transposes, passes.flattened_weights, activations_first,
    passes.into_weights, passes.before_weights,
)  # fmt: skip
"""What is done with a graph before."""

_LOWEST = 128 / 127 * (1 + 1e-6)
"""The lowest value of 8 bits, for a highest one of -1."""
RELU = Clip(0.0, math.inf)
_ACTIVATIONS: dict[Operator, str] = {RELU: "ReLU", Each(Function.ABS): "Abs"}


_SHAPES = Reshape | Dropout | Concat | Slice | Resize | Pool | Reduce | Pad
"""Results have the limits of what they take."""


class _RefusedError(ValueError):
    """No layer stands for a node: why, and what to use instead."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


class _Builder:
    """Goes through the nodes of a network once and writes another graph and its modules.

    `notes` say what was rewritten, by node; `places` are the written nodes by those of the model,
    `softmax` those that are left to the application.
    """

    def __init__(self, graph: Graph, keywords: Mapping[str, Any]) -> None:
        self.refusals: list[Refusal] = []
        self.notes: list[str] = []
        self.places: dict[str, Any] = {}
        self.softmax: list[Any] = []
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._keywords = keywords
        self._source = graph
        self._readers = graph.readers()
        self._results: dict[Node, Any] = {}
        self._done: set[Node] = set()  # their work is part of a layer before them
        self._positive: set[Node] = set()  # results that are never negative
        self._limited: dict[Node, float] = {}  # upper limits, which decide the factor
        self._layers: dict[str, tuple[Any, ...]] = {}
        for node in graph.nodes:
            self._visit(node)

    def finish(self, returned: Any, ends: Sequence[Node], tail: Sequence[Node]) -> None:
        """Write what stands behind the last layers, and what the model returns.

        `ends` are the model's nodes whose results the outputs of the graph are.
        """
        values = {node: self._results.get(output) for node, output in
                 zip(ends, self._source.outputs, strict=True)}  # fmt: skip
        for node in () if self.refusals else tail:
            data = [values[one] for one in node.inputs if one in values]
            result = _rearranged(self.graph, node, data) if len(data) == len(node.inputs) else None
            if result is None:
                self._refuse(
                    node,
                    f"the accelerator has no {node.name}",
                    "Compute it in the application, at the end of the network.",
                )
                return
            values[node] = self.places[node.place] = result
            self.softmax += [result] if isinstance(node.operator, Softmax) else []

        def results(value: Any) -> Any:
            if isinstance(value, Node):
                return values[value]
            if isinstance(value, dict):
                return {name: results(one) for name, one in value.items()}
            if isinstance(value, list | tuple):
                return type(value)(map(results, value))
            return value

        if not ends:
            self.refusals.append(Refusal("output", "no result depends on the input",
                                         "Return what layers compute."))  # fmt: skip
        if not self.refusals:
            self.graph.output(results(returned))

    def _visit(self, node: Node) -> None:
        data = [one for one in node.inputs if one.constant is None]
        if node.constant is not None or any(one not in self._results for one in data):
            return  # none of the data, or behind something that is refused
        if node in self._done:
            self._results[node] = self.places[node.place] = self._results[data[0]]
            return
        try:
            self._results[node] = self._written(node, node.operator, data)
        except _RefusedError as exc:  # what is behind it is looked at as well
            self._refuse(node, exc.why, exc.remedy)
            self._results[node] = self._results[data[0]]
            self._positive.add(node)
        if not isinstance(node.operator, Input):
            self.places[node.place] = self._results[node]

    def _refuse(self, node: Node, why: str, remedy: str) -> None:
        self.refusals.append(Refusal(node.place, why, remedy))

    def _written(self, node: Node, operator: Operator, data: Sequence[Node]) -> Any:
        """Return the node of the new graph for a node; _RefusedError where there is none."""
        sources = [self._results[one] for one in data]
        if data and _keeps_sign(operator) and all(one in self._positive for one in data):
            self._positive.add(node)
        if isinstance(operator, _SHAPES):
            limits = [self._limited[one] for one in data if one in self._limited]
            self._limited |= dict.fromkeys([node], max(limits)) if limits else {}
        match operator:
            case Input():
                self._limited[node] = 1.0
                return self.graph.placeholder("x")
            case Conv() | ConvTranspose() | Gemm():
                return self._operator(node, sources[0])
            case Clip() | Each() if operator in _ACTIVATIONS:
                positive = data[0] in self._positive
                self._positive.add(node)
                return sources[0] if positive else self._rectified(node, sources[0])
            case Each() if len(data) == 2:
                return self._elementwise(node, operator, data)
            case BatchNormalization():
                return self._normalized(node, sources[0])
            case Pool() | Reduce():
                return self._pooled(node, operator, data[0])
            case Concat():
                return self._joined(node, operator, sources)
            case Dropout():
                kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
                module = kinds[operator.axes](operator.probability)
                return self._call(_name(node), module, tuple(sources))
            case Reshape():
                return self._reshaped(node, data[0])
            case Slice():
                step = _unless_refused(geometry.step_of(node, operator))
                return self._decimated(
                    f"{_plain(node)}_pooling", step, sources[0], node, data[0].shape
                )
            case Pad():
                return self._bordered(node, operator, sources[0])
            case Resize() if geometry.doubles(operator, data[0].shape):
                return self._doubled(node, sources[0])
            case Resize():
                first = 1 if node.shape[1] != data[0].shape[1] else 2
                raise _RefusedError(
                    f"it makes {times(node.shape[first:])} of {times(data[0].shape[first:])}",
                    "Use torch.cat." if first == 1
                    else "Use mode='nearest' with scale_factor=2, or ConvTranspose2d.",
                )  # fmt: skip
            case Clip():
                ends = "..".join("" if math.isinf(n) else f"{n:g}"
                                 for n in (operator.low, operator.high))  # fmt: skip
                raise _RefusedError(f"it limits data to {ends}", "Use ReLU, or leave it out: the "
                                    "chip limits results to -1..1.")  # fmt: skip
            case Foreign():
                raise _RefusedError(f"the accelerator has no {operator.name}", operator.remedy)
            case (
                Each() | MatMul() | Softmax() | Transpose() | LpNormalization()
                | MeanVarianceNormalization()
            ):  # fmt: skip
                raise self._without(node)
            case Constant():
                raise TypeError(f"{node.place} takes nothing")
            case _:
                assert_never(operator)

    def _without(self, node: Node) -> _RefusedError:
        remedy = instead_of(node.name) or "Compute this part in the application."
        return _RefusedError(f"the accelerator has no {node.name}", remedy)

    def _call(self, target: str, module: nn.Module, arguments: tuple[Any, ...]) -> Any:
        """Add a module to the new network and call it; one of its name that is the same is called,
        behind one that is not, it gets a number."""
        modules = dict(self.root.named_modules())
        names = (f"{target}{number or ''}" for number in range(len(modules) + 1))
        target = next(n for n in names if n not in modules or _alike(modules[n], module))
        *folders, last = target.split(".")
        place = self.root
        for folder in folders:
            if folder not in dict(place.named_children()):
                place.add_module(folder, nn.Module())
            place = getattr(place, folder)
        place.add_module(last, module)
        return self.graph.call_module(target, arguments)

    # Layers with weights

    def _operator(self, node: Node, source: Any) -> Any:
        """Write a layer with an operator and what can be part of it behind it."""
        values = [one.constant for one in node.inputs[1:]]
        if any(one is None for one in values):
            raise _RefusedError("its weights are not constants", "Use weights that training made.")
        weights, *bias = (np.asarray(one, np.float64) for one in values)
        spec = _unless_refused(geometry.operator(node, weights))
        if isinstance(node.operator, Conv) and node.operator.moves:
            return self._moved(node, spec, source)
        offset = np.broadcast_to(bias[0].ravel(), spec.shape[:1]) if bias else None
        following = self._only_reader(node)
        norm = (
            following if following and isinstance(following.operator, BatchNormalization) else None
        )
        return self._layer(node, spec, offset, norm, source)

    def _moved(self, node: Node, spec: LayerSpec, source: Any) -> Any:
        """Write a layer whose kernels, which are exactly one, take data from other places."""
        exact = replace(spec, weights=EXACTLY_ONE * np.asarray(spec.weights))
        layer: Any = make_layer(node.place, exact, None, None, None, wide=False,
                                keywords=self._keywords)  # fmt: skip
        if isinstance(layer, Refusal):
            raise _RefusedError(layer.why, layer.remedy)
        layer.op.weight.requires_grad_(False)
        layer.is_constant = True
        self.notes.append(f"{node.place}: data in other places costs a layer with "
                          f"{node.shape[1]} channels, whose kernels are one")  # fmt: skip
        if node.inputs[0] in self._positive:
            self._positive.add(node)
        return self._call(f"{_plain(node)}_moved", layer, (source,))

    def _normalized(self, node: Node, source: Any) -> Any:
        """Write a batch normalization that follows no layer: it is that of a layer of ones."""
        if len(node.shape) < 3:
            raise _RefusedError("batch normalization that follows no layer",
                                "Put it directly behind nn.Linear.")  # fmt: skip
        self.notes.append(f"{node.place}: batch normalization behind no layer costs a layer of 1x1 "
                          f"kernels for {node.shape[1]} channels")  # fmt: skip
        return self._layer(node, ones(node.shape[1:]), None, node, source)

    def _layer(
        self, node: Node, spec: LayerSpec, bias: Array | None, norm: Node | None, source: Any
    ) -> Any:
        last = norm or node
        activation = self._only_reader(last)
        name, limits = _activation(activation)
        alone = name is None and limits is None
        wide = spec.op == "Linear" and alone and self._is_last(last)
        layer = make_layer(node.place, spec, bias, norm, name, wide=wide, keywords=self._keywords)
        if isinstance(layer, Refusal):
            raise _RefusedError(layer.why, layer.remedy)
        if limits is not None:
            set_limits(layer, limits)
        self._done |= {norm} if norm is not None and norm is not node else set()
        if activation is not None and not alone:
            self._done.add(activation)
            self._positive |= set() if name is None else {node, last, activation}
            if limits is not None:
                self._limited |= dict.fromkeys((node, last, activation), limits[1])
        target, taken = _name(node), node.inputs[0].shape
        kind = (norm and norm.place, name, limits, spec.weights, bias)
        if target in self._layers:
            if not all(map(_equal, self._layers[target], kind)):
                raise _RefusedError("it is used twice, with other steps behind it",
                                    "Define a module for each use.")  # fmt: skip
            return self.graph.call_module(target, (source,))
        self._layers[target] = kind
        source = self._decimated(f"{target}_stride", spec.before, source, node, taken)
        result = self._call(target, layer, (source,))
        return self._decimated(f"{target}_stride", spec.after, result, node, (1, *spec.shape))

    def _decimated(self, target: str, stride: int, source: Any, node: Node, shape: Any) -> Any:
        """Write a pooling of single pixels, which keeps each `stride`-th of them."""
        if stride == 1:
            return source
        if not isinstance(node.operator, Slice):
            self.notes.append(f"{node.place}: its stride {stride} is computed as decimation")
        pool = ai8x.MaxPool2d if len(shape) == 4 else ai8x.MaxPool1d
        try:
            return self._call(target, pool(1, stride), (source,))
        except AssertionError as exc:
            raise _RefusedError(str(exc), "Pool instead of the stride.") from None

    # Layers of ones

    def _rectified(self, node: Node, source: Any) -> Any:
        """Write an activation that no layer in front can do."""
        if len(node.shape) < 3:
            raise _RefusedError("there is no layer in front of it", "Put it behind nn.Linear.")
        channels, images = node.shape[1], len(node.shape) == 4
        try:
            layer = rectifier(channels, images, self._keywords, _ACTIVATIONS[node.operator])
        except AssertionError as exc:
            raise _RefusedError(str(exc), "Put it behind a convolution.") from None
        self.notes.append(
            f"{node.place}: an activation behind no layer costs a layer with {channels} channels, "
            "whose 1x1 kernels are one"
        )
        return self._call(f"{_plain(node)}_activation", layer, (source,))

    def _doubled(self, node: Node, source: Any) -> Any:
        """Write a layer that repeats pixels."""
        try:
            layer = doubler(node.shape[1], self._keywords)
        except AssertionError as exc:
            raise _RefusedError(str(exc), "Use ConvTranspose2d.") from None
        self.notes.append(f"{node.place}: pixels are repeated by transposed kernels that are one")
        return self._call(f"{_plain(node)}_doubling", layer, (source,))

    def _bordered(self, node: Node, pad: Pad, source: Any) -> Any:
        """Write a layer that puts zeros around a map or beside its channels."""
        if len(node.shape) < 3:
            raise _RefusedError("it pads flattened data", "Use more outputs of the layer.")
        border, channels = _unless_refused(geometry.zeros(node, pad))
        if border > 1:
            raise _RefusedError(f"its padding is {border}",
                                "Use a padding of 1, or that of a convolution.")  # fmt: skip
        taken = node.inputs[0].shape
        self.notes.append(f"{node.place}: zeros around data cost a layer with {node.shape[1]} "
                          "channels, whose kernels are one in the middle")  # fmt: skip
        return self._border(f"{_plain(node)}_border", taken, channels, border, source)

    def _border(
        self, target: str, taken: Any, channels: tuple[int, int], border: int, source: Any
    ) -> Any:
        try:
            layer = bordered(taken[1], channels, border, len(taken) == 4, self._keywords)
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            raise _RefusedError(f"its padding costs a layer: {why}",
                                "Use padding=0, or at most 64 channels.") from None  # fmt: skip
        return self._call(target, layer, (source,))

    # Everything else

    def _elementwise(self, node: Node, each: Each, data: Sequence[Node]) -> Any:
        """Write a sum or difference."""
        kinds = {Function.ADD: ai8x.Add, Function.SUB: ai8x.Sub}
        if each.function not in kinds:
            raise self._without(node)
        if data[0].shape != data[1].shape:
            shapes = " and ".join(times(one.shape[1:]) for one in data)
            raise _RefusedError(f"its operands have the shapes {shapes}",
                                "Add results of the same shape.")  # fmt: skip
        following = self._only_reader(node)
        name, limits = _activation(following)
        known = {self._limited.get(one) for one in data}
        if limits is None and known == {None}:
            return self._sum(node, kinds[each.function](), data)
        if following is None or limits is None or name is not None or known != {limits[1]}:
            return self._added(node, each, data)
        module = kinds[each.function]()
        set_limits(module, limits)
        self._done.add(following)
        self._limited |= dict.fromkeys((node, following), limits[1])
        return self._sum(node, module, data)

    def _sum(self, node: Node, module: nn.Module, data: Sequence[Node]) -> Any:
        sources = tuple(self._results[one] for one in data)
        return self._call(f"{_plain(node)}_elementwise", module, sources)

    def _added(self, node: Node, each: Each, data: Sequence[Node]) -> Any:
        """Write a sum whose limits are not those of its operands: a layer of kernels that are one
        over the channels of both, whose result has a factor of its own."""
        signs = (1, 1 if each.function is Function.ADD else -1)
        counts = {one: sum(s for s, d in zip(signs, data, strict=True) if d is one) for one in data}
        kernels = np.hstack([n * EXACTLY_ONE * np.eye(node.shape[1]) for n in counts.values()])
        axes = len(node.shape) - 2
        spec = LayerSpec(f"Conv{axes}d" if axes else "Linear", {"pad": 0}, node.shape[1:],
                         kernels.reshape(*kernels.shape, *(1,) * axes))  # fmt: skip
        self.notes.append(f"{node.place}: a sum of limited data costs a layer with "
                          f"{node.shape[1]} channels, whose 1x1 kernels are one")  # fmt: skip
        sources = [self._results[one] for one in counts]
        joined = sources[0] if len(sources) == 1 else (
            self.graph.call_function(torch.cat, (sources, 1)))  # fmt: skip
        result = self._layer(node, spec, None, None, joined)
        layer: Any = self.root.get_submodule(str(result.target))
        layer.is_constant = True
        return result

    def _joined(self, node: Node, concat: Concat, sources: list[Any]) -> Any:
        if len(sources) != len(node.inputs):
            raise _RefusedError(
                "it joins data with a constant",
                "Give the layer behind it a bias in place of the constant.",
            )
        if concat.axis != 1:
            raise _RefusedError(f"it joins along axis {concat.axis}",
                                "Join channels: torch.cat(..., 1).")  # fmt: skip
        return (
            sources[0] if len(sources) == 1 else self.graph.call_function(torch.cat, (sources, 1))
        )

    def _pooled(self, node: Node, operator: Pool | Reduce, data: Node) -> Any:
        """Write a pooling, in steps where its window is large."""
        spec, source = _unless_refused(geometry.pooling(node, operator)), self._results[data]
        if spec.padded:
            if data not in self._positive and "max_pool" in spec.keys:
                shown = times((1,) * (len(data.shape) - 2))
                raise _RefusedError(
                    f"its padding is {shown}, and negative values come into it; on the accelerator "
                    "zeros stand there", "Put a ReLU in front of it, or use padding=0.",
                )  # fmt: skip
            source = self._border(f"{_plain(node)}_padding", data.shape, (0, 0), 1, source)
            self.notes.append(f"{node.place}: its padding costs a layer with {data.shape[1]} "
                              "channels, whose kernels are one in the middle")  # fmt: skip
        parts = (*spec.first, spec.keys)
        for number, keys in enumerate(parts):
            source = self._pooled_once(node, keys, number, source, len(data.shape) == 4)
        if len(parts) > 1:
            windows = ", then ".join(str(next(iter(keys.values()))) for keys in parts)
            self.notes.append(f"{node.place}: its window is pooled in steps, {windows}")
        squeezed = len(node.shape) == 2 and len(data.shape) > 2
        return self.graph.call_function(torch.flatten, (source, 1)) if squeezed else source

    def _pooled_once(
        self, node: Node, keys: Mapping[str, Any], number: int, source: Any, images: bool
    ) -> Any:
        """Write one of the poolings that a node takes."""
        kind, window = next(iter(keys.items()))
        name = ("Avg" if kind == "avg_pool" else "Max") + ("Pool2d" if images else "Pool1d")
        stride, dilation = _several(keys["pool_stride"]), _several(keys.get("pool_dilation", 1))
        keywords = {"dilation": dilation} if "Max" in name else {}
        try:
            if isinstance(stride, tuple) or isinstance(dilation, tuple):
                raise AssertionError(f"stride {stride} and dilation {dilation} differ by axis")
            if "Avg" in name and dilation != 1:
                raise AssertionError("its average is dilated")
            pool = getattr(ai8x, name)(_several(window), stride, **keywords, **self._keywords)
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            large = f"Use windows of at most {MOST_POOLED}, or a size of the map that divides into "
            raise _RefusedError(why, "Use one stride for both axes." if "by axis" in why
                                else f"{large}such.") from None  # fmt: skip
        target = f"{_plain(node)}_pooling{number}" if number else _name(node)
        taken = target in dict(self.root.named_modules())
        return self._call(f"{target}_pooling" if taken else target, pool, (source,))

    def _reshaped(self, node: Node, data: Node) -> Any:
        """Write flattening and other changes of the shape."""
        after, before, source = node.shape[1:], data.shape[1:], self._results[data]
        if after == before:
            return source
        if len(after) == 1:
            return self.graph.call_function(torch.flatten, (source, 1))
        if len(before) == 1 and after[:1] != before:
            remedy = (
                f"Let samples have the shape {times(after)} (--input-shape)."
                if isinstance(data.operator, Input)
                else f"Take its {before[0]} values as channels of one pixel, and enlarge these."
            )
            raise _RefusedError(f"{times(before)} becomes {times(after)}", remedy)
        return self.graph.call_method("reshape", (source, -1, *after))

    def _only_reader(self, node: Node) -> Node | None:
        """Return the node that alone takes a result."""
        readers = self._readers[node]
        return readers[0] if len(readers) == 1 and readers[0] is not node else None

    def _is_last(self, node: Node) -> bool:
        """Return whether only shapes stand behind a node."""
        return all(
            one is node or (isinstance(one.operator, Reshape | Dropout) and self._is_last(one))
            for one in self._readers[node]
        )


def _activation(node: Node | None) -> tuple[str | None, Limits | None]:
    """Return what a node is as the activation of a layer, None for others, and its limits, which
    are 0 or about the negative of the upper one, and that."""
    operator = None if node is None else node.operator
    if isinstance(operator, Clip) and math.isfinite(operator.high) and operator.high > 0:
        limits = operator.low, operator.high
        if operator.low == 0:
            return "ReLU", limits
        if 1 <= -operator.low / operator.high <= _LOWEST:
            return None, limits
    return (None if operator is None else _ACTIVATIONS.get(operator)), None


def _unless_refused(result: Any) -> Any:
    """Return the value unless it is a refusal, which is raised."""
    if isinstance(result, Refusal):
        raise _RefusedError(result.why, result.remedy)
    return result


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def _several(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _name(node: Node) -> str:
    """Return the path of a module: of its weights, if they have such a name, else of the node."""
    weights = node.inputs[1].place if len(node.inputs) > 1 else ""
    path = weights.removesuffix(".weight") if weights.endswith(".weight") else node.place
    parts = (re.sub(r"\W", "_", part) for part in re.split(r"[./]", path))
    return ".".join(part for part in parts if part)


def _plain(node: Node) -> str:
    """Return the place of a node as a name of a module beside others."""
    return re.sub(r"\W", "_", node.place).strip("_")


def _keeps_sign(operator: Operator) -> bool:
    """Return whether results are never negative where nothing that is taken is."""
    return isinstance(operator, _SHAPES) or operator == Each(Function.ADD)


def _rearranged(graph: fx.Graph, node: Node, data: Sequence[Any]) -> Any:
    """Write a node behind the last layer; None for one that computes more."""
    source = data[0] if data else None
    match node.operator:
        case Reshape():
            return graph.call_method("reshape", (source, -1, *node.shape[1:]))
        case Transpose() as transpose:
            return graph.call_method("permute", (source, *transpose.order))
        case Concat() as concat:
            return graph.call_function(torch.cat, (list(data), concat.axis))
        case Softmax() as softmax:
            kind = functional.log_softmax if softmax.log else functional.softmax
            return graph.call_function(kind, (source, softmax.axis))
        case LpNormalization() as norm:
            return graph.call_function(functional.normalize, (source, 2.0, norm.axis))
        case Slice() as cut:
            parts = tuple(slice(a, a + s * c, s) for a, s, c in
                          zip(cut.start[1:], cut.step[1:], cut.count[1:], strict=True))  # fmt: skip
            whole = (slice(None), *parts)
            return graph.call_method("__getitem__", (source, whole))
    return None


def _alike(one: nn.Module, other: nn.Module) -> bool:
    """Return whether modules have the same settings and tensors."""
    mine, theirs = one.state_dict(), other.state_dict()
    return repr(one) == repr(other) and mine.keys() == theirs.keys() and all(
        torch.equal(mine[name], theirs[name]) for name in mine
    )  # fmt: skip
