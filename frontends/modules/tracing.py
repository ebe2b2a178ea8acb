"""The data flow of a network, recorded by running it once."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, fx, nn

import ai8x
from diagnostics.errors import InputError

Node = Any
"""A node of `torch.fx`: input, layer, function or result."""


class _Tracer(fx.Tracer):
    """Does not look inside the layers of ai8x."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module is a single node of the graph."""
        ours = isinstance(m, ai8x.QuantizationAwareModule | ai8x.Eltwise)
        return ours or super().is_leaf_module(m, module_qualified_name)


class _Shapes(fx.Interpreter):
    """Records the shape of each node's result as `meta["shape"]`; `meta["parts"]`: it has several
    tensors.
    """

    def run_node(self, n: Node) -> Any:
        """Compute a node."""
        result = super().run_node(n)
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        n.meta["parts"] = isinstance(result, list | tuple) and any(
            isinstance(part, Tensor) for part in result
        )
        return result


def trace(model: nn.Module, example: Tensor) -> Any:
    """Return the graph of a network, a `torch.fx.Graph` with the shape of each node's result.

    Raises InputError for a network whose data flow depends on its data.
    """
    try:
        with torch.no_grad():
            graph = _Tracer().trace(model, _defaults(model))
            _forget_defaults(graph)
            _Shapes(fx.GraphModule(model, graph)).run(example)
    except Exception as exc:
        reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
        raise InputError(
            "E647", f"the data flow of the network cannot be traced: {reason}", "--model",
            "The forward function must not branch on the values or shapes of its data.",
        ) from exc  # fmt: skip
    return graph


def _defaults(model: nn.Module) -> dict[str, Any]:
    """Return the arguments of the network besides its data, with their defaults."""
    parameters = inspect.signature(model.forward).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def _forget_defaults(graph: Any) -> None:
    """Remove those arguments from a graph, with the comparisons that guard them."""
    data, *others = (node for node in graph.nodes if node.op == "placeholder")
    for node in reversed(list(graph.nodes)):
        guards = node.op == "call_function" and set(node.all_input_nodes) <= set(others)
        if node is not data and not node.users and (guards or node in others or _asserts(node)):
            graph.erase_node(node)


def _asserts(node: Node) -> bool:
    return getattr(node.target, "__name__", "") == "_assert"
