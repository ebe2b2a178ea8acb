"""Carrying the ranges of activations through a network.

A layer whose output is divided by 2^t hands its readers data that are so many times too small, and
their own sums are as well. So layers whose results meet need one range, the bias of a reader is
divided like its data, and what the network delivers is to be multiplied again.
Source: docs/quantization.md, "Ranges of activations".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.elementwise import Add, Eltwise, Sub
from ai8xtools.layers.tracing import Node, NotTraceableError, graph_of, modules_of
from ai8xtools.layers.training_steps import update_model

_INPUT = "the input of the network"
"""Stands for it among the names of layers; its range cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A layer of ai8x whose result leaves the network, and the layers that produced it.

    `inside`: another layer reads the result as well.
    """

    module: QuantizationAwareModule | Eltwise
    producers: set[str]
    inside: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Which layers with an operator produce the data of others, by dotted name.

    `producers`: of each layer, of all its calls; `meetings`: of each other place where data of
    several layers come together; `sums`: additions with their producers, in execution order.
    """

    layers: dict[str, QuantizationAwareModule]
    producers: dict[str, set[str]] = field(default_factory=dict)
    meetings: list[set[str]] = field(default_factory=list)
    sums: list[tuple[Eltwise, set[str]]] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)


def flow_of(model: nn.Module) -> Flow:
    """Return the flow of data between the layers of a model; raise NotTraceableError."""
    graph = graph_of(model)
    called: dict[Node, nn.Module] = dict(modules_of(graph, model))
    names = {module: name for name, module in model.named_modules()}
    computing = {node for node, module in called.items() if _computes(module)}
    flow = Flow({names[module]: module for module in model.modules() if _computes(module)})
    made_by: dict[Node, set[str]] = {}
    for node in graph.nodes:
        before: set[str] = set().union(*(made_by[source] for source in node.all_input_nodes))
        if node.op == "placeholder":
            made_by[node] = {_INPUT}
        elif node in computing:
            flow.producers.setdefault(names[called[node]], set()).update(before)
            made_by[node] = {names[called[node]]}
        else:
            made_by[node] = before
            if len(before) > 1 and node.op != "output":
                flow.meetings.append(before)
        if isinstance(called.get(node), Add | Sub):
            flow.sums.append((called[node], before))
    inside = _behind((node for node, module in called.items() if _is_layer(module)), called)
    (output,) = (node for node in graph.nodes if node.op == "output")
    for node in _behind({output}, called) & called.keys():
        if _is_layer(called[node]):
            twice = any(called.get(other) is called[node] for other in inside)
            flow.deliveries.append(Delivery(called[node], made_by[node], twice))
    return flow


def _is_layer(module: nn.Module | None) -> bool:
    return isinstance(module, QuantizationAwareModule | Eltwise)


def _computes(module: nn.Module) -> bool:
    return isinstance(module, QuantizationAwareModule) and module.op is not None


def _behind(readers: Iterable[Node], called: Mapping[Node, nn.Module]) -> set[Node]:
    """Return the nodes whose results reach the readers, back to the first layers of ai8x."""
    reached: set[Node] = set()
    waiting = [source for node in readers for source in node.all_input_nodes]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            if not _is_layer(called.get(node)):
                waiting += node.all_input_nodes
    return reached


@torch.no_grad()
def apply_scales(model: nn.Module) -> None:
    """Carry the measured ranges through the model: thresholds, biases and final scales.

    The network computes what it did before. Raises NotTraceableError if its data flow depends on
    its data.
    """
    flow = flow_of(model)
    exponents = agreed_exponents(flow)
    delivered = {}
    for name, layer in flow.layers.items():
        own = exponents[name]
        divided = max((exponents[producer] for producer in flow.producers.get(name, ())), default=0)
        if layer.op.bias is not None:
            layer.op.bias.mul_(2.0**-divided)
        layer.activation_threshold.fill_(own - divided)
        layer.final_scale.fill_(0)
        delivered[name] = divided if layer.wide else own
    for name in set().union(*(d.producers for d in flow.deliveries)) - {_INPUT}:
        flow.layers[name].final_scale.fill_(delivered[name])
    _settle(model, flow)


def settle_scales(model: nn.Module) -> None:
    """Let each output be scaled once, at its end, after the final scales have changed.

    What another layer reads is not scaled. Where the data flow of the model cannot be traced, every
    layer scales its own result.
    """
    layers = [module for module in model.modules() if isinstance(module, QuantizationAwareModule)]
    if not any(layer.has_thresholds and float(layer.final_scale) for layer in layers):
        return
    with contextlib.suppress(NotTraceableError):
        _settle(model, flow_of(model))


def _settle(model: nn.Module, flow: Flow) -> None:
    for layer in flow.layers.values():
        layer.applies_final_scale = False
    for delivery in flow.deliveries:
        module = delivery.module
        if isinstance(module, QuantizationAwareModule) and module.op is not None:
            module.applies_final_scale = not delivery.inside
        else:
            scales = [
                float(flow.layers[name].final_scale) for name in delivery.producers - {_INPUT}
            ]
            scale = max(scales, key=abs, default=0.0)
            module.delivered_factor = 1.0 if delivery.inside else 2.0**scale
    update_model(model)


def agreed_exponents(flow: Flow) -> dict[str, int]:
    """Return t of each layer's output so that all data that meet have one range.

    Operands of a sum take the range of the sum, the last one if there are several; then the largest
    of all layers that meet, at once or through others, counts for all of them. Data that meet the
    input of the network are not divided.
    """
    chosen = {name: int(layer.activation_threshold) for name, layer in flow.layers.items()}
    for module, producers in flow.sums:
        for name in producers - {_INPUT}:
            chosen[name] = int(module.activation_threshold)
    agreed: dict[str, int] = {}
    for group in _joined([*flow.meetings, *flow.producers.values(), *({n} for n in chosen)]):
        largest = max((chosen[name] for name in group - {_INPUT}), default=0)
        agreed |= dict.fromkeys(group, 0 if _INPUT in group else largest)
    return agreed


def _joined(groups: list[set[str]]) -> Iterator[set[str]]:
    """Yield the unions of groups that have members in common."""
    left = [set(group) for group in groups]
    while left:
        group = left.pop()
        while met := next((other for other in left if other & group), None):
            left.remove(met)
            group |= met
        yield group
