"""The data flow of a network as a graph whose nodes are the layers of ai8x, not what is in them."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from layers.composition import QuantizationAwareModule
from layers.elementwise import Eltwise

Node = Any
"""A node of `torch.fx`: input, layer, function or result."""


class NotTraceableError(ValueError):
    """The data flow of a network depends on its data; the message names the statement."""


class _Tracer(fx.Tracer):
    """Does not look inside the layers of ai8x."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module is a single node of the graph."""
        ours = isinstance(m, QuantizationAwareModule | Eltwise)
        return ours or super().is_leaf_module(m, module_qualified_name)


def graph_of(model: nn.Module) -> Any:
    """Return the graph of a network as `torch.fx.Graph`; raise NotTraceableError.

    Arguments of the network besides its data keep their defaults.
    """
    try:
        graph = _Tracer().trace(model, _defaults(model))
        _forget_defaults(graph)
    except Exception as exc:
        raise NotTraceableError(_reason(exc)) from exc
    return graph


def modules_of(graph: Any, model: nn.Module) -> Iterator[tuple[Node, nn.Module]]:
    """Yield the nodes that call a module, in execution order, with that module."""
    modules = dict(model.named_modules())
    for node in graph.nodes:
        if node.op == "call_module":
            # a repeated call of a module is named NAME@1
            yield node, modules[str(node.target).partition("@")[0]]


def _reason(exc: Exception) -> str:
    """Return what went wrong, and in which statement of the network."""
    reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
    frames = [
        frame
        for frame in traceback.extract_tb(exc.__traceback__)
        if "torch" not in frame.filename.split("/") and frame.filename != __file__
    ]
    if not frames or "<" in frames[-1].filename:
        return reason
    return f"{reason} ({frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line})"


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
