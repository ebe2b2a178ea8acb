"""Scales weights so that the data of an imported network fits the range of the chip, -1..1.

Convolution, sums, maxima and rectification commute with positive factors: where all operands of a
sum or a join have one factor, the network computes the same times a factor for each result.
Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.accelerator.lowering import Limits
from ai8xtools.frontends.modules.plain.layers import EXACTLY_ONE
from ai8xtools.frontends.modules.plain.unlimited import Unlimited, limits_of, set_limits
from ai8xtools.frontends.modules.tracing import Node

_ROUNDING = 1e-6  # of a limit in 32 bits
_LIMIT = 127 / 128
_BEYOND = 1.001  # -1 is within the range; the rest is for rounding


class _Largest(Unlimited):
    """Notes the largest magnitudes of all results."""

    def __init__(self, network: Any) -> None:
        super().__init__(network)
        self.largest: dict[Node, float] = {}
        self.channels: dict[Node, int] = {}

    def run_node(self, n: Node) -> Any:
        """Compute a node."""
        result = super().run_node(n)
        if isinstance(result, Tensor):
            self.largest[n] = max(self.largest.get(n, 0.0), float(result.abs().max()))
            self.channels[n] = result.shape[1]
        return result


@torch.no_grad()
def fit_ranges(network: Any, batches: Iterable[Tensor]) -> dict[str, float]:
    """Scale the weights of an imported network by its data; the network computes as in evaluation.

    Normalization that is not fused takes the factor of the result in place of the weights. Return
    the factor of each layer's result. The result of the network keeps its scale where it has 32
    bits.
    """
    network.eval()
    measured = _Largest(network)
    for batch in batches:
        measured.run(batch)
    units = _Units(network)
    factors = units.factors(measured.largest)
    by_layer: dict[str, float] = {}
    for node in network.graph.nodes:
        layer = _operator_of(network, node)
        if layer is None or node.target in by_layer:
            continue
        after, source = factors[units.of(node)], node.args[0]
        by_layer[node.target] = after
        parts = source.args[0] if source in units.divided else [source]
        before = [torch.full([measured.channels[n]], factors[units.of(n)]) for n in parts]
        _scale(layer, torch.cat(before), after)
    return by_layer


@torch.no_grad()
def beyond_range(network: Any, batches: Iterable[Tensor]) -> dict[str, float]:
    """Return the largest magnitudes of results that leave the range all the same, by layer.

    Those are added to the input, or made and read by the same layer, so that they have no factor.
    """
    measured = _Largest(network)
    for batch in batches:
        measured.run(batch)
    by_layer: dict[str, float] = {}
    for node, largest in measured.largest.items():
        module = network.get_submodule(node.target) if node.op == "call_module" else None
        limited = isinstance(module, ai8x.Eltwise) or _operator_of(network, node) is not None
        if limited and not getattr(module, "wide", False) and largest > _BEYOND:
            by_layer[str(node.target)] = max(by_layer.get(str(node.target), 0.0), largest)
    return by_layer


def _scale(layer: Any, before: Tensor, after: float) -> None:
    """Let a layer take data times `before`, by channel, and give results times `after`."""
    transposed = isinstance(layer.op, nn.ConvTranspose1d | nn.ConvTranspose2d)
    if layer.op.weight.shape[not transposed] != len(before):  # grouped or flattened: all alike
        before = before[:1]
    before = before.reshape(-1, *(1,) * (layer.op.weight.ndim - 1 - (not transposed)))
    limits = limits_of(layer)
    if limits is not None:
        set_limits(layer, (limits[0] * after, limits[1] * after))
    if layer.bn is None:
        layer.op.weight.mul_(after / before)
    else:
        layer.op.weight.div_(before)
        layer.bn.weight.mul_(after)
    last = layer.op if layer.bn is None else layer.bn
    if last.bias is not None:
        last.bias.mul_(after)


def _operator_of(network: Any, node: Node) -> Any:
    """Return the layer with an operator that a node calls, None for other nodes."""
    if node.op != "call_module":
        return None
    module = network.get_submodule(node.target)
    ours = isinstance(module, ai8x.QuantizationAwareModule)
    return module if ours and module.op is not None else None


class _Units:
    """Results that must have one factor."""

    def __init__(self, network: Any) -> None:
        self._leader: dict[Node, Node] = {}
        self._network = network
        self._fixed: set[Node] = set()
        self._limits: dict[Node, Limits] = {}
        calls: dict[str, Node] = {}
        targets = Counter(node.target for node in network.graph.nodes)
        self.divided = {node for node in network.graph.nodes
                        if node.target is torch.cat and node.users
                        and all(self._divides(one, targets) for one in node.users)}  # fmt: skip
        for node in network.graph.nodes:
            self._leader[node] = node
            layer = _operator_of(network, node)
            if node.op == "placeholder" or (layer is not None and layer.wide):
                self._fixed.add(node)
            module = network.get_submodule(node.target) if node.op == "call_module" else None
            if (limits := limits_of(module)) is not None:
                self._limits[node] = limits
            if node in self.divided:
                continue
            if layer is None or _is_rectifier(layer):
                for source in node.all_input_nodes:
                    self._unite(node, source)
            if layer is not None and node.target in calls:
                self._unite(node, calls[node.target])
                self._unite(node.args[0], calls[node.target].args[0])
            elif layer is not None:
                calls[node.target] = node

    def _divides(self, node: Node, targets: Mapping[Any, int]) -> bool:
        """Return whether a node is a layer with weights of its own for each channel of its data, so
        that channels that are joined need no common factor.
        """
        layer = _operator_of(self._network, node)
        if layer is None or _is_rectifier(layer) or targets[node.target] > 1:
            return False
        return getattr(layer.op, "groups", 1) in (1, None)

    def of(self, node: Node) -> Node:
        """Return the node that stands for the unit of a node."""
        while self._leader[node] is not node:
            node = self._leader[node]
        return node

    def _unite(self, a: Node, b: Node) -> None:
        if self._network.graph.output_node() not in (a, b):
            self._leader[self.of(a)] = self.of(b)

    def factors(self, largest: dict[Node, float]) -> dict[Node, float]:
        """Return the factor of each unit."""
        fixed = {self.of(node) for node in self._fixed}
        most: dict[Node, float] = {}
        for node, value in largest.items():
            most[self.of(node)] = max(most.get(self.of(node), 0.0), value)
        factors = {
            unit: 1.0 if unit in fixed or not value else _LIMIT / value
            for unit, value in most.items()
        }
        chosen: dict[Node, float] = {}
        for node, (low, limit) in self._limits.items():
            unit = self.of(node)
            within = most[unit] <= max(limit, -low) * (1 + _ROUNDING)
            if unit in fixed or not within or chosen.setdefault(unit, limit) != limit:
                raise InputError(
                    "E670", f"{node.target}: its limit of {limit:g} would be that of all results "
                    "that need its factor", "--model",
                    "Use ReLU or ai8x.Add there, and a layer of its own for each use.",
                )  # fmt: skip
            factors[unit] = _LIMIT / limit
        return factors


def _is_rectifier(layer: nn.Module) -> bool:
    """Return whether a layer only applies an activation, by kernels that are exactly one."""
    weight: Tensor = layer.op.weight
    return not weight.requires_grad and bool((weight.amax() - EXACTLY_ONE).abs() < 1e-9)
