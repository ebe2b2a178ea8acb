"""An ordinary network as one of ai8x layers, with the names of its modules.

What is not expressible is refused by node; what is computed in another way is exactly the same:
strides become decimation, activations behind sums a layer of kernels that are one.
Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import torch
from torch import Tensor, fx, nn

import ai8x
from ai8xtools.frontends.layers import Refusal, refuse
from ai8xtools.frontends.modules.plain.kinds import Kind, Step, path_of
from ai8xtools.frontends.modules.plain.layers import make_layer, ones, refusal_of
from ai8xtools.frontends.modules.plain.proof import prove_module
from ai8xtools.frontends.modules.plain.steps import instead_of, read_step
from ai8xtools.frontends.modules.plain.tail import tail_of
from ai8xtools.frontends.modules.plain.writer import Writer
from ai8xtools.frontends.modules.tracing import Node, trace


@dataclass(frozen=True, slots=True)
class Imported:
    """The network of ai8x layers; `left` are nodes that the application computes, `notes` what was
    rewritten, by node."""

    network: nn.Module
    left: tuple[str, ...]
    notes: tuple[str, ...]


def import_network(
    model: nn.Module, example: Tensor, name: str, keywords: Mapping[str, Any]
) -> Imported:
    """Return a network of ai8x layers for the chip that is set, with the weights of `model`.

    `example` [1, C, ...] is an input, `keywords` go to every layer. Raises InputError E647 for a
    data flow that cannot be traced, E670 naming every node that the chip cannot compute, E668 for
    a network that would compute something else than `model`.
    """
    graph = trace(model.eval(), example)
    builder = _Builder(model, graph, keywords)
    refuse(builder.refusals, name)
    network = fx.GraphModule(builder.root, builder.graph, type(model).__name__)
    prove_module(model, graph, network, example, builder.made)
    for node in builder.softmax:
        node.replace_all_uses_with(node.args[0])
        network.graph.erase_node(node)
    if builder.softmax:
        network.delete_all_unused_submodules()
        network.recompile()
    return Imported(network, tuple(builder.left), tuple(builder.notes))


class _Builder(Writer):
    """Goes through the nodes of a network once and writes another graph."""

    def __init__(self, model: nn.Module, graph: Any, keywords: Mapping[str, Any]) -> None:
        super().__init__(keywords)
        self.left: list[str] = []
        self.made: dict[Node, Any] = {}
        self.softmax: list[Node] = []  # in the new graph; they are left to the application
        self._model = model
        self._done: set[Node] = set()  # their work is part of a layer before them
        self._positive: set[Node] = set()  # results that are never negative
        self._steps: dict[Node, Step] = {}
        self._layers: dict[str, tuple[Any, Any]] = {}
        self._refused: dict[Node, Refusal] = {}
        self._data: set[Node] = set()  # tensors that depend on the input
        for node in graph.nodes:
            self._read(node)
        self._tail = tail_of(graph, self._steps, self._refused)
        self.refusals = [r for node, r in self._refused.items() if node not in self._tail]
        for node in graph.nodes:
            self._visit(node)

    def _read(self, node: Node) -> None:
        """Find out what a node computes; numbers, shapes and constants are of no interest."""
        if node.op == "output" or not (
            node.op == "placeholder" or any(n in self._data for n in node.all_input_nodes)
        ):
            return
        if node.meta.get("parts"):
            name = getattr(node.target, "__name__", str(node.target))
            if node.op == "call_module":
                name = type(self._model.get_submodule(node.target)).__name__
            parts = "Use a convolution for each part."
            self._refused[node] = Refusal(
                path_of(node), f"the accelerator has no {name}", instead_of(name) or parts
            )
        if not node.meta.get("shape"):
            return
        self._data.add(node)
        found = read_step(node, self._model)
        if isinstance(found, Refusal):
            self._refused.setdefault(node, found)
            return
        found = self._with_border(found)
        self._steps[node] = found
        refused = refusal_of(found) if found.kind.has_operator else None
        if refused is not None:
            self._refused[node] = refused

    def _visit(self, node: Node) -> None:
        """Write what stands for a node; nothing more once something is refused."""
        if node.op == "output":
            if not self.refusals and not any(n in self.made for n in node.all_input_nodes):
                self.refusals.append(Refusal(str(node.name), "no result depends on the input",
                                             "Return what layers compute."))  # fmt: skip
            if not self.refusals:
                self.graph.output(fx.map_arg(node.args[0], self.made.get))
            return
        if node in self._tail and not self.refusals:
            self.made[node] = self._copied(node)
            self.left += [str(node.name)] if node in self._refused else []
            return
        step = self._steps.get(node)
        if step is None:
            return
        sources = [self.made.get(n) for n in node.all_input_nodes if n in self._data]
        if not step.kind.is_input and (not sources or None in sources):
            return  # behind something that is refused
        if node in self._done and step.kind.activation:
            self._positive.add(node)
        made = sources[0] if node in self._done else self._written(step, sources)
        if made is not None:
            self.made[node] = made

    def _written(self, step: Step, sources: list[Any]) -> Any:
        """Return the node of the new graph for a step, None after a refusal."""
        node = step.node
        positive = all(n in self._positive for n in node.all_input_nodes if n in self._steps)
        if step.kind.activation or (positive and step.kind.keeps_sign):
            self._positive.add(node)
        match step.kind:
            case Kind.INPUT:
                return self.graph.placeholder("x")
            case Kind.RELU | Kind.ABS:
                return sources[0] if positive else self._rectified(step, sources[0])
            case Kind.OPERATOR:
                return self._operator(step, sources[0])
            case Kind.NORMALIZATION:
                return self._normalized(step, sources[0])
            case Kind.POOLING:
                return self._pooled(step, sources[0], positive)
            case Kind.ADD:
                return self._call(f"{node.name}_elementwise", ai8x.Add(), tuple(sources))
            case Kind.SUB:
                return self._call(f"{node.name}_elementwise", ai8x.Sub(), tuple(sources))
            case Kind.CONCATENATION:
                parts = [self.made[n] for n in node.args[0]]
                if len(parts) == 1:
                    return parts[0]
                return self.graph.call_function(torch.cat, (parts, 1))
            case Kind.SOFTMAX:
                return self._softmax(step)
            case Kind.DOUBLING:
                return self._doubled(step, sources[0])
            case Kind.BORDER:
                return self._bordered(step, sources[0])
            case Kind.RESHAPING | Kind.PASSING:
                return self._reshaped(step, sources[0])
            case _:
                assert_never(step.kind)

    def _copied(self, node: Node) -> Any:
        """Write a node behind the last layer as it is, with the sizes that it takes."""

        def known(source: Node) -> Any:
            if source not in self.made:
                self.made[source] = self.graph.node_copy(source, known)
            return self.made[source]

        if node.op == "call_module":
            module = self._model.get_submodule(node.target)
            return self._call(str(node.target), module, fx.map_arg(node.args, known))
        return self.graph.node_copy(node, known)

    def _with_border(self, step: Step) -> Step:
        """Return a convolution that pads by itself what a step before it does."""
        source = self._steps.get(step.node.all_input_nodes[0]) if step.node.args else None
        if source is None or not source.kind.pads or len(source.node.users) > 1:
            return step
        op = step.module
        if not isinstance(op, nn.Conv1d | nn.Conv2d) or any(source.settings["channels"]):
            return step
        if op.padding != "valid" and (isinstance(op.padding, str) or any(op.padding)):
            return step
        padded = copy.copy(op)
        padded.padding = (source.settings["border"],) * (len(step.taken) - 1)
        passing = replace(source, kind=Kind.PASSING, given=source.taken)
        self._steps[source.node] = passing
        return replace(step, module=padded, taken=source.taken)

    def _operator(self, step: Step, source: Any, norm: Any = None) -> Any:
        """Write a layer with an operator and what can be part of it behind it."""
        last = step.node
        following = self._only_reader(last)
        if norm is None and following is not None and following.kind.normalizes:
            last, norm = following.node, following.module
            self._done.add(last)
        activation = self._activation_behind(last)
        if activation is not None:
            self._done.add(activation.node)
            self._positive.add(last)
            self._positive.add(step.node)
        wide = isinstance(step.module, nn.Linear) and activation is None and self._is_last(last)
        kind = activation.kind if activation is not None else None
        made = make_layer(step, norm, kind, wide=wide, keywords=self._keywords)
        if isinstance(made, Refusal):
            self.refusals.append(made)
            return None
        target = step.path
        if target in self._layers:
            if self._layers[target] != (norm, kind):
                self.refusals.append(Refusal(
                    target, "it is used twice, with other steps behind it",
                    "Define a module for each use.",
                ))  # fmt: skip
            return self.graph.call_module(target, (source,))
        self._layers[target] = (norm, kind)
        source = self._decimated(f"{target}_stride", made.before, source, step)
        result = self._call(target, made.layer, (source,))
        return self._decimated(f"{target}_stride", made.after, result, step)

    def _normalized(self, step: Step, source: Any) -> Any:
        """Write a batch normalization that follows no layer: it is that of a layer of ones."""
        if len(step.taken) < 2:
            self.refusals.append(Refusal(step.path, "batch normalization that follows no layer",
                                         "Put it directly behind nn.Linear."))  # fmt: skip
            return None
        self.notes.append(f"{step.path}: batch normalization behind no layer costs a layer of 1x1 "
                          f"kernels for {step.taken[0]} channels")  # fmt: skip
        return self._operator(replace(step, module=ones(step.taken)), source, step.module)

    def _softmax(self, step: Step) -> Any:
        """Leave a softmax at the end to the application."""
        if not self._is_last(step.node):
            self.refusals.append(Refusal(
                step.path, "the accelerator has no softmax",
                "Compute it in the application, at the end of the network.",
            ))  # fmt: skip
            return None
        self.left.append(step.path)
        self.softmax.append(self._copied(step.node))
        return self.softmax[-1]

    def _reshaped(self, step: Step, source: Any) -> Any:
        """Write flattening and other changes of the shape; dropout stays for training."""
        if isinstance(step.module, nn.Dropout | nn.Dropout1d | nn.Dropout2d):
            return self._call(step.path, type(step.module)(step.module.p), (source,))
        if step.taken == step.given:
            return source
        if len(step.given) == 1:
            return self.graph.call_function(torch.flatten, (source, 1))
        return self.graph.call_method("reshape", (source, -1, *step.given))

    def _only_reader(self, node: Node) -> Step | None:
        """Return the step that alone takes a result."""
        (user, *others) = node.users or (None,)
        return None if others or user is None else self._steps.get(user)

    def _activation_behind(self, node: Node) -> Step | None:
        """Return the activation that may move to a layer: maxima and reshaping commute with it."""
        step, pooled = self._only_reader(node), False
        while step is not None:
            if step.kind.activation and (step.kind.commutes or not pooled):
                return step
            maximum = step.kind.pools and not step.settings["average"]
            if not (step.kind.keeps_values or maximum):
                return None
            pooled = pooled or maximum  # the magnitude of a maximum is another thing
            step = self._only_reader(step.node)
        return None

    def _is_last(self, node: Node) -> bool:
        """Return whether only reshaping and softmax stand behind a node."""
        for user in node.users:
            if user.op == "output" or user in self._tail:
                continue
            step = self._steps.get(user)
            if step is None or not (step.kind.keeps_values or step.kind.is_left):
                return False
            if not self._is_last(user):
                return False
        return True
