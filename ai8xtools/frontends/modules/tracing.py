"""The data flow of a network with the shapes of its data."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx, nn

import ai8x
from ai8x import Node as Node  # what a graph is made of
from ai8xtools.diagnostics.errors import InputError, reason_of
from ai8xtools.frontends.layers import times
from ai8xtools.frontends.modules.frames import NoFramesError, trace_frames


class _Shapes(fx.Interpreter):
    """Records the shape of each node's result as `meta["shape"]`; `meta["parts"]`: it has several
    tensors; `meta["value"]` is what it is if that is a size.
    """

    def run_node(self, n: Node) -> Any:
        """Compute a node."""
        result = super().run_node(n)
        if _drops_batch(n, result):
            result = result[None]
        n.meta["shape"] = tuple(result.shape) if isinstance(result, Tensor) else None
        n.meta["parts"] = isinstance(result, list | tuple) and any(
            isinstance(part, Tensor) for part in result
        )
        if isinstance(result, int | torch.Size):
            n.meta["value"] = result if isinstance(result, int) else tuple(result)
        return result


def _drops_batch(node: Node, result: Any) -> bool:
    """Return whether a node drops the batch only because that is one sample here."""
    name = called(node)
    bare = name == "squeeze" and len(node.args) == 1 and not node.kwargs
    return bare and isinstance(result, Tensor) and node.args[0].meta["shape"][:1] == (1,)


@contextlib.contextmanager
def once() -> Iterator[None]:
    """Run a network a single time: compiling fast kernels for it would take longer."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about shapes
        with torch.backends.mkldnn.flags(enabled=False):
            yield


def trace(model: nn.Module, example: Tensor, frames: int | None = None) -> Any:
    """Return the graph of a network, a `torch.fx.Graph` with the shape of each node's result.

    A network that takes series of frames is traced for one frame like `example` [1, C, H, W];
    `frames` is their number, else the least that the network takes (`trace_frames`).
    Raises InputError for a network whose data flow depends on its data.
    """
    where = ""
    remedy = (
        "Use modules and functions of PyTorch's alone in the forward function, without branches on "
        "values of its data and assignments to parts of it."
    )
    try:
        with once():
            graph = ai8x.graph_of(model, example)
            where = f" for an input of {times(tuple(example.shape[1:]))}"
            remedy = (
                "Compare the size of the input (--input-shape, --resize, data) with the network."
            )
            if frames is not None:
                trace_frames(model, graph, example, frames)
            else:
                _record(model, graph, example)
    except Exception as exc:
        reason = reason_of(exc)
        raise InputError(
            "E647", f"the data flow of the network cannot be traced{where}: {reason}", "--model",
            remedy,
        ) from exc  # fmt: skip
    _settle_changes(model, graph)
    return graph


def _settle_changes(model: nn.Module, graph: Any) -> None:
    """Let what reads data behind a change in place read the changed data."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node.meta.get("shape") and _changes(model, node):
            changed, place = node.args[0], order[node]
            changed.replace_all_uses_with(node, lambda user, n=place: order[user] > n)


def _changes(model: nn.Module, node: Node) -> bool:
    """Return whether a node changes its first argument."""
    name = called(node)
    match node.op:
        case "call_module":
            return bool(getattr(model.get_submodule(node.target), "inplace", False))
        case "call_method":
            return name.endswith("_") and not name.endswith("__")
        case "call_function":
            inplace = node.kwargs.get("inplace", False) or name in (
                "iadd",
                "isub",
                "imul",
                "itruediv",
            )
            return bool(inplace) or (name.endswith("_") and not name.endswith("__"))
    return False


def _record(model: nn.Module, graph: Any, example: Tensor) -> None:
    """Record the shapes of a network for a sample, or for one frame of several."""
    try:
        _Shapes(fx.GraphModule(model, graph)).run(example)
    except Exception as exc:
        try:
            trace_frames(model, graph, example, None)
        except NoFramesError:
            raise exc from None


LINES = "_lines_of_nodes"
"""Holds the lines of nodes by path in networks whose forward function was written anew."""


def lines_of(model: nn.Module, graph: Any) -> dict[str, str]:
    """Return FILE:LINE of the first call of each node of a traced network, by path."""
    lines: dict[str, str] = dict(getattr(model, LINES, {}))
    for node in graph.nodes:
        if "line" in node.meta:
            lines.setdefault(path_of(node), node.meta["line"])
    return lines


def called(node: Node) -> str:
    """Return the name of the function or method that a node calls; exported programs call overloads
    such as `add.Tensor`.
    """
    return str(getattr(node.target, "__name__", node.target)).partition(".")[0]


def path_of(node: Node) -> str:
    """Return what messages call a node: the module's path, else the function's name."""
    return str(node.target) if node.op == "call_module" else str(node.name)


def value_of(argument: Any) -> Any:
    """Return an argument; of one that the network computes from sizes what it is for its input."""
    if isinstance(argument, list | tuple):
        return tuple(map(value_of, argument))
    return argument.meta.get("value") if hasattr(argument, "meta") else argument
