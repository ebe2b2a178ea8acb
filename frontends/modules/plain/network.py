"""An ordinary network as one of ai8x layers, with the names of its modules.

What is not expressible is refused by node; what is computed in another way is exactly the same:
strides become decimation, activations behind sums a layer of kernels that are one.
Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

import ai8x
from frontends.layers import Refusal, refuse, times
from frontends.modules.plain.layers import (
    doubler,
    make_layer,
    ones,
    padder,
    rectifier,
    refusal_of,
)
from frontends.modules.plain.steps import Kind, Step, read_step
from frontends.modules.tracing import Node, trace

_COMMUTING = (Kind.RESHAPING, Kind.PASSING)


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
    data flow that cannot be traced, E670 naming every node that the chip cannot compute.
    """
    model.eval()
    builder = _Builder(model, trace(model, example), keywords)
    refuse(builder.refusals, name)
    network = fx.GraphModule(builder.root, builder.graph, type(model).__name__)
    return Imported(network, tuple(builder.left), tuple(builder.notes))


class _Builder:
    """Goes through the nodes of a network once and writes another graph."""

    def __init__(self, model: nn.Module, graph: Any, keywords: Mapping[str, Any]) -> None:
        self.refusals: list[Refusal] = []
        self.left: list[str] = []
        self.notes: list[str] = []
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._keywords = keywords
        self._model = model
        self._made: dict[Node, Any] = {}
        self._done: set[Node] = set()  # their work is part of a layer before them
        self._positive: set[Node] = set()  # results that are never negative
        self._steps: dict[Node, Step] = {}
        self._layers: dict[str, tuple[Any, Any]] = {}
        for node in graph.nodes:
            self._read(node)
        for node in graph.nodes:
            self._visit(node)

    def _read(self, node: Node) -> None:
        """Find out what a node computes; numbers and shapes are of no interest."""
        if node.op == "output":
            return
        if node.meta.get("parts"):
            name = getattr(node.target, "__name__", str(node.target))
            self.refusals.append(Refusal(str(node.name), f"the accelerator has no {name}",
                                         "Use a convolution for each part."))  # fmt: skip
        if not node.meta.get("shape") or not self._depends_on_data(node):
            return
        found = read_step(node, self._model)
        if isinstance(found, Refusal):
            self.refusals.append(found)
            return
        self._steps[node] = found
        if found.kind is Kind.OPERATOR:
            refused = refusal_of(found)
            self.refusals += [refused] if refused is not None else []

    def _depends_on_data(self, node: Node) -> bool:
        """Return whether a node is the input or takes what depends on it."""
        return node.op == "placeholder" or any(
            source in self._steps or source.meta.get("shape") for source in node.all_input_nodes
        )

    def _visit(self, node: Node) -> None:
        """Write what stands for a node; nothing more once something is refused."""
        if node.op == "output":
            if self.refusals:
                return
            self.graph.output(fx.map_arg(node.args[0], lambda n: self._made[n]))
            return
        step = self._steps.get(node)
        if step is None:
            return
        sources = [self._made.get(n) for n in node.all_input_nodes if n in self._steps]
        if step.kind is not Kind.INPUT and (not sources or None in sources):
            return  # behind something that is refused
        if node in self._done and step.kind in (Kind.RELU, Kind.ABS):
            self._positive.add(node)
        made = sources[0] if node in self._done else self._written(step, sources)
        if made is not None:
            self._made[node] = made

    def _written(self, step: Step, sources: list[Any]) -> Any:
        """Return the node of the new graph for a step, None after a refusal."""
        node = step.node
        if step.kind is Kind.INPUT:
            return self.graph.placeholder("x")
        positive = all(n in self._positive for n in node.all_input_nodes if n in self._steps)
        if step.kind in (Kind.RELU, Kind.ABS):
            self._positive.add(node)
            return sources[0] if positive else self._rectified(step, sources[0])
        if positive and step.kind not in (Kind.OPERATOR, Kind.SUB, Kind.NORMALIZATION):
            self._positive.add(node)
        if step.kind is Kind.OPERATOR:
            return self._operator(step, sources[0])
        if step.kind is Kind.NORMALIZATION:
            return self._normalized(step, sources[0])
        if step.kind is Kind.POOLING:
            return self._pooled(step, sources[0])
        if step.kind in (Kind.ADD, Kind.SUB):
            adder = ai8x.Add() if step.kind is Kind.ADD else ai8x.Sub()
            return self._call(f"{node.name}_elementwise", adder, tuple(sources))
        if step.kind is Kind.CONCATENATION:
            parts = [self._made[n] for n in node.args[0]]
            if len(parts) == 1:
                return parts[0]
            return self.graph.call_function(torch.cat, (parts, 1))
        if step.kind is Kind.SOFTMAX:
            return self._softmax(step, sources[0])
        if step.kind is Kind.DOUBLING:
            return self._doubled(step, sources[0])
        return self._reshaped(step, sources[0])

    def _call(self, target: str, module: nn.Module, arguments: tuple[Any, ...]) -> Any:
        """Add a module to the new network and call it."""
        *folders, last = target.split(".")
        place = self.root
        for folder in folders:
            if folder not in dict(place.named_children()):
                place.add_module(folder, nn.Module())
            place = getattr(place, folder)
        place.add_module(last, module)
        return self.graph.call_module(target, arguments)

    def _operator(self, step: Step, source: Any, norm: Any = None) -> Any:
        """Write a layer with an operator and what can be part of it behind it."""
        last = step.node
        following = self._only_reader(last)
        if norm is None and following is not None and following.kind is Kind.NORMALIZATION:
            last, norm = following.node, following.module
            self._done.add(last)
        activation = self._activation_behind(last)
        if activation is not None:
            self._done.add(activation.node)
            self._positive.add(last)
            self._positive.add(step.node)
        wide = step.module.__class__ is nn.Linear and activation is None and self._is_last(last)
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

    def _decimated(self, target: str, stride: int, source: Any, step: Step) -> Any:
        """Write a pooling of single pixels, which keeps each `stride`-th of them."""
        if stride == 1:
            return source
        note = f"{step.path}: its stride {stride} is computed as decimation"
        self.notes.append(note)
        pool = ai8x.MaxPool2d if len(step.taken) == 3 else ai8x.MaxPool1d
        try:
            return self._call(target, pool(1, stride), (source,))
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Pool instead of the stride."))
            return None

    def _rectified(self, step: Step, source: Any) -> Any:
        """Write an activation that no layer in front can do."""
        if step.kind is Kind.ABS and len(step.taken) < 2:
            self.refusals.append(Refusal(step.path, "there is no layer in front of it"))
            return None
        images = len(step.taken) != 2
        channels = step.taken[0]
        try:
            layer = rectifier(channels, images, self._keywords, step.kind)
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Put it behind a convolution."))
            return None
        self.notes.append(
            f"{step.path}: an activation behind no layer costs a layer of {channels}x{channels} "
            "kernels that are one"
        )
        return self._call(f"{step.node.name}_activation", layer, (source,))

    def _doubled(self, step: Step, source: Any) -> Any:
        """Write a layer that repeats pixels."""
        channels = step.taken[0]
        try:
            layer = doubler(channels, self._keywords)
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Use ConvTranspose2d."))
            return None
        self.notes.append(f"{step.path}: pixels are repeated by transposed kernels that are one")
        return self._call(f"{step.node.name}_doubling", layer, (source,))

    def _pooled(self, step: Step, source: Any) -> Any:
        """Write a pooling."""
        s = step.settings
        images = len(step.taken) == 3
        if any(s["padding"]):
            source = self._padded(step, source)
            if source is None:
                return None
        names = ("AvgPool2d" if images else "AvgPool1d") if s["average"] else (
            "MaxPool2d" if images else "MaxPool1d")  # fmt: skip
        window, stride, dilation = (
            _one(s[key], images) for key in ("window", "stride", "dilation")
        )
        keywords = {} if s["average"] else {"dilation": dilation}
        try:
            if isinstance(stride, tuple) or isinstance(dilation, tuple):
                raise AssertionError(f"stride {stride} and dilation {dilation} differ by axis")
            pool = getattr(ai8x, names)(window, stride, **keywords, **self._pool_keywords())
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            remedy = (
                "Use one stride for both axes." if "by axis" in why else "Pool in several steps."
            )
            self.refusals.append(Refusal(step.path, why, remedy))
            return None
        target = step.path if step.module is not None else f"{step.node.name}_pooling"
        taken = target in dict(self.root.named_modules())
        target = f"{step.node.name}_pooling" if taken else target
        result = self._call(target, pool, (source,))
        squeezed = len(step.given) == 1 and len(step.taken) > 1
        return self.graph.call_function(torch.flatten, (result, 1)) if squeezed else result

    def _padded(self, step: Step, source: Any) -> Any:
        """Write a layer that puts zeros around a map; a maximum of what is positive is the same."""
        reads = [n for n in step.node.all_input_nodes if n in self._steps]
        if not step.settings["average"] and not all(n in self._positive for n in reads):
            self.refusals.append(Refusal(
                step.path, f"its padding is {times(step.settings['padding'])}, and negative values "
                "come into it; on the accelerator zeros stand there",
                "Put a ReLU in front of it, or use padding=0.",
            ))  # fmt: skip
            return None
        try:
            layer = padder(step.taken[0], len(step.taken) == 3, self._keywords)
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            self.refusals.append(Refusal(step.path, f"its padding costs a layer: {why}",
                                         "Use padding=0, or at most 64 channels."))  # fmt: skip
            return None
        channels = step.taken[0]
        self.notes.append(
            f"{step.path}: its padding costs a layer of {channels}x{channels} kernels that are one "
            "in the middle"
        )
        return self._call(f"{step.node.name}_padding", layer, (source,))

    def _pool_keywords(self) -> dict[str, Any]:
        """Return what poolings are told of the arithmetic."""
        return dict(self._keywords)

    def _softmax(self, step: Step, source: Any) -> Any:
        """Leave a softmax at the end to the application."""
        if not self._is_last(step.node):
            self.refusals.append(Refusal(
                step.path, "the accelerator has no softmax",
                "Compute it in the application, at the end of the network.",
            ))  # fmt: skip
            return None
        self.left.append(step.path)
        return source

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
            if step.kind is Kind.RELU or (step.kind is Kind.ABS and not pooled):
                return step
            maximum = step.kind is Kind.POOLING and not step.settings["average"]
            if step.kind not in _COMMUTING and not maximum:
                return None
            pooled = pooled or maximum  # the magnitude of a maximum is another thing
            step = self._only_reader(step.node)
        return None

    def _is_last(self, node: Node) -> bool:
        """Return whether only reshaping and softmax stand behind a node."""
        for user in node.users:
            if user.op == "output":
                continue
            step = self._steps.get(user)
            if step is None or step.kind not in (*_COMMUTING, Kind.SOFTMAX):
                return False
            if not self._is_last(user):
                return False
        return True


def _one(values: tuple[int, ...], images: bool) -> Any:
    """Return equal values as one number."""
    return values[0] if len(set(values)) == 1 or not images else values
