"""An ordinary network as one of ai8x layers, with the names of its modules.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

import ai8x
from ai8xtools.frontends.accelerator.lowering import (
    Limits,
    Lowering,
    Parts,
    RefusedError,
    path_of_weights,
    plain,
    takes_activation,
)
from ai8xtools.frontends.departing import told_of
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Function,
    Gemm,
    Input,
    LpNormalization,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.tail import without_tail
from ai8xtools.frontends.layers import EMPTY, Refusal, refuse
from ai8xtools.frontends.modules.door import Door
from ai8xtools.frontends.modules.plain.layers import EXACTLY_ONE, make_layer
from ai8xtools.frontends.modules.plain.proof import prove_module
from ai8xtools.frontends.modules.plain.unlimited import set_limits
from ai8xtools.frontends.modules.tracing import lines_of, path_of


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
) -> tuple[Fractions, fx.GraphModule, list[Node]]:
    """Return a network that returns the structure `returned` of nodes, and its nodes behind the
    last layer."""
    graph, tail = without_tail(graph, joins=True)
    with told_of(name):
        builder = Fractions(graph, keywords)
    builder.finish(returned, graph.outputs, tail)
    refuse(builder.refusals, name, lines=lines)
    return builder, fx.GraphModule(builder.root, builder.graph, kind), tail


def _finished(builder: Fractions, network: fx.GraphModule, tail: Sequence[Node]) -> Imported:
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


class Fractions(Lowering):
    """Writes another graph of layers of ai8x, whose weights are trained or calibrated.

    `places` are the written nodes by those of the model, `softmax` those that are left to the
    application; `keywords` go to every layer.
    """

    def __init__(self, graph: Graph, keywords: Mapping[str, Any]) -> None:
        assert ai8x.dev is not None
        super().__init__(graph, PASSES, depthwise=ai8x.dev.limits.has_depthwise, calibrated=True)
        self.softmax: list[Any] = []
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._keywords = keywords
        self._layers: dict[str, tuple[Any, ...]] = {}
        self.lower()
        self.places: dict[str, Any] = {
            node.place: result for node, result in self._results.items()
            if not isinstance(node.operator, Input)
        }  # fmt: skip

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

    def _input(self, _node: Node) -> Any:
        return self.graph.placeholder("x")

    def _target(self, node: Node) -> str:
        return path_of_weights(node)

    def _takes(self, node: Node, parts: Parts) -> bool:
        if not isinstance(node.operator, BatchNormalization):
            return takes_activation(node, parts)
        follows = isinstance(node.inputs[0].operator, Conv | ConvTranspose | Gemm)
        parts.norm = node if follows and parts.norm is None else parts.norm
        return parts.norm is node

    def _placed(self, node: Node, target: str, parts: Parts, source: Any, last: Node) -> Any:
        alone = parts.activation is None and parts.limits is None
        parts.wide = parts.spec.op == "Linear" and alone and self._is_last(last)
        if parts.norm is node or parts.adds:
            parts.weights = EXACTLY_ONE * parts.weights
        layer = make_layer(parts, self._keywords)
        if parts.limits is not None:
            set_limits(layer, parts.limits)
        if parts.constant:
            return self._call(target, layer, (source,))
        kind = (parts.norm and parts.norm.place, parts.activation, parts.limits, parts.spec.weights,
                parts.bias)  # fmt: skip
        if target in self._layers:
            if not all(map(_equal, self._layers[target], kind)):
                raise RefusedError("it is used twice, with other steps behind it",
                                   "Define a module for each use.")  # fmt: skip
            return self.graph.call_module(target, (source,))
        self._layers[target] = kind
        return self._call(target, layer, (source,))

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

    def _sum(
        self, node: Node, function: Function, data: Sequence[Node], limits: Limits | None
    ) -> Any:
        module = {Function.ADD: ai8x.Add, Function.SUB: ai8x.Sub}[function]()
        if limits is not None:
            set_limits(module, limits)
        sources = tuple(self._results[one] for one in data)
        return self._call(f"{plain(node)}_elementwise", module, sources)

    def _join(self, _node: Node, sources: Sequence[Any]) -> Any:
        return self.graph.call_function(torch.cat, (list(sources), 1))

    def _shaped(self, _node: Node, source: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) == 1:
            return self.graph.call_function(torch.flatten, (source, 1))
        return self.graph.call_method("reshape", (source, -1, *shape))

    def _dropout(self, node: Node, dropout: Dropout, source: Any) -> Any:
        kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
        module = kinds[dropout.axes](dropout.probability)
        return self._call(path_of_weights(node), module, (source,))

    def _pool(self, node: Node, target: str, keys: Mapping[str, Any], source: Any) -> Any:
        kind, window = next(iter(keys.items()))
        axes = "2d" if len(node.inputs[0].shape) == 4 else "1d"
        stride, dilation = _several(keys["pool_stride"]), _several(keys.get("pool_dilation", 1))
        if isinstance(stride, tuple) or isinstance(dilation, tuple):
            raise AssertionError(f"stride {stride} and dilation {dilation} differ by axis")
        if kind == "avg_pool" and dilation != 1:
            raise AssertionError("its average is dilated")
        name, keywords = ("AvgPool", {}) if kind == "avg_pool" else (
            "MaxPool", {"dilation": dilation})  # fmt: skip
        pool = getattr(ai8x, name + axes)(_several(window), stride, **keywords, **self._keywords)
        taken = target in dict(self.root.named_modules())
        return self._call(f"{target}_pooling" if taken else target, pool, (source,))

    def _by_element(self, node: Node, operator: Clip | Each, _source: Any) -> Any:
        if isinstance(operator, Each):
            raise self._without(node)
        ends = "..".join("" if math.isinf(n) else f"{n:g}"
                         for n in (operator.low, operator.high))  # fmt: skip
        raise RefusedError(f"it limits data to {ends}", "Use ReLU, or leave it out: the "
                           "chip limits results to -1..1.")  # fmt: skip

    def _is_last(self, node: Node) -> bool:
        """Return whether only shapes stand behind a node."""
        return all(
            one is node or (isinstance(one.operator, Reshape | Dropout) and self._is_last(one))
            for one in self._readers[node]
        )


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b))


def _several(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
