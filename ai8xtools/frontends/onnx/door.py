"""An ONNX graph as a graph of operators, as the handlers of its operators make it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.nodes import (
    Graph,
    Node,
    ShapeError,
    constant,
    graph_of,
    make,
    rewritten,
)
from ai8xtools.frontends.graph.operators import (
    Input,
    Reshape,
    Shape,
    Transpose,
)
from ai8xtools.frontends.graph.passes import without_rounding
from ai8xtools.frontends.instead import instead_of
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handler_of
from ai8xtools.frontends.onnx.handlers.constants import CONSTANTS, TYPES

_SERIES = 4
"""Axes of a series of images: frame, channel, row, column."""
_FRACTION: np.dtype[Any] = np.dtype(np.float32)

_CONVERTING = ("Cast", "DequantizeLinear")


def channels_last(graph: OnnxGraph) -> bool:
    """Return whether all that reads the input first moves its last axis, the channels, to the
    front.
    """
    axes = len(graph.input_sizes)
    readers = [node for node in graph.nodes if graph.input_name in node.inputs]
    first = (0, axes - 1, *range(1, axes - 1))
    return bool(readers) and all(
        node.operator == "Transpose" and tuple(node.attributes.get("perm", ())) == first
        for node in readers
    )


def input_shape(graph: OnnxGraph, path: str) -> tuple[int, ...]:
    """Return the shape of the input without the batch, channels first.

    Raises InputError E678 for one that is not fixed.
    """
    sizes = graph.input_sizes[1:]
    if len(sizes) == _SERIES:
        raise InputError(
            "E678",
            f"the input '{graph.input_name}' is a series of frames, which no graph is taken with",
            path,
            "Take the PyTorch network (--model FILE:CLASS --input-shape TxCxHxW).",
        )
    if channels_last(graph):
        sizes = (*sizes[-1:], *sizes[:-1])
    if not sizes or 0 in sizes or len(sizes) > 3:
        shown = times([n or "?" for n in graph.input_sizes]) or "no shape"  # type: ignore[misc]
        raise InputError(
            "E678",
            f"the input '{graph.input_name}' has {shown}; its sizes must be fixed",
            path,
            "Export it with fixed sizes, or add --input-shape CxHxW (or CxL).",
        )
    return sizes


def read_operators(graph: OnnxGraph, shape: Shape, batch: int = 1) -> tuple[Graph, list[Refusal]]:
    """Return the operators of a graph for an input [batch, C, ...], and the nodes that are none."""
    door = _Door(graph, shape, batch)
    outputs = [door.results[name] for name in graph.outputs if name in door.results]
    return graph_of(door.source, list(door.results.values()), outputs), door.refusals


def read_fractions(graph: OnnxGraph, shape: Shape) -> tuple[Graph, list[Refusal], tuple[str, ...]]:
    """Return the operators of a graph in fractions, the nodes that are none, and what was left out.

    Quantized values are the fractions that they stand for, without rounding: the target rounds.
    """
    operators, refusals = read_operators(graph, shape)
    fractions = rewritten(operators, without_rounding)
    remedy = ("Quantize in the form QDQ (quant_format=QuantFormat.QDQ), or take the network before "
              "it was quantized.")  # fmt: skip
    refusals += [one for one in quantizing(graph, remedy) if not one.why.startswith("Quantize")]
    note = ("quantize and dequantize nodes are left out: results have the scales and the rounding "
            "of the target")  # fmt: skip
    return fractions, refusals, (note,) if quantizing(graph, remedy) else ()


def quantizing(graph: OnnxGraph, remedy: str) -> list[Refusal]:
    """Return the nodes that round data to scales of their own."""
    return [Refusal(node.name, f"{node.operator} rounds to a scale of its own", remedy)
            for node in graph.nodes
            if node.operator in _ROUNDING and node.inputs[0] not in graph.constants]  # fmt: skip


_ROUNDING = ("QuantizeLinear", "QLinearConv", "QLinearMatMul", "com.microsoft.QGemm")


class _Door:
    """Follows the nodes in their order; `results` are results and constants by name."""

    def __init__(self, graph: OnnxGraph, shape: Shape, batch: int) -> None:
        self.refusals: list[Refusal] = []
        self._graph = graph
        self._fixed = graph.input_sizes[0] if graph.input_sizes and batch == 1 else 1
        self.source = result = make(graph.input_name, Input((batch, *shape)))
        if channels_last(graph):
            result = make(graph.input_name, Transpose((0, *range(2, len(shape) + 1), 1)), result)
        if len(graph.input_sizes) == 2 and len(shape) > 1:
            result = make(graph.input_name, Reshape((batch, math.prod(shape))), result)
        self._kinds = {graph.input_name: np.dtype(TYPES.get(graph.input_type, np.float32))}
        constants = {name: constant(np.asarray(v), name) for name, v in graph.constants.items()}
        self.results: dict[str, Node] = {**constants, graph.input_name: result}
        needed = set(graph.outputs)
        for node in reversed(graph.nodes):
            needed |= set(node.inputs) if needed & set(node.outputs) else set()
        for node in graph.nodes:
            if needed & set(node.outputs):
                self._visit(node)

    def _visit(self, node: OnnxNode) -> None:
        if any(name and name not in self.results for name in node.inputs):
            return  # it takes what has been refused
        inputs = [self.results[name] if name else None for name in node.inputs]
        kind = self._kind_of(node.inputs[0]) if node.inputs else _FRACTION
        call = Call(node, inputs, self._graph.opset, self._fixed, kind)
        try:
            with np.errstate(divide="raise", invalid="raise"):
                result = _read(call)
            several = result if isinstance(result, list) else [result]
            unmade = [n for n in node.outputs[len(several) :] if n and self._is_read(n)]
            if unmade:
                raise UnknownError(f"{node.operator} gives more than one result")
            self.results |= dict(zip(node.outputs, several, strict=False))
            if node.operator in _CONVERTING:
                kind = np.dtype(TYPES.get(node.attributes.get("to", 1), np.float32))
            self._kinds |= dict.fromkeys(node.outputs, kind)
        except UnknownError as exc:
            self.refusals.append(Refusal(node.name, exc.why, exc.remedy))
        except ShapeError as exc:
            self.refusals.append(Refusal(node.name, str(exc), "Export it again."))
        except (ArithmeticError, ValueError, IndexError, TypeError, KeyError, AttributeError):
            why = f"its constants or attributes are not those that {node.operator} takes"
            remedy = "Export the graph again, or check it with onnx.checker."
            self.refusals.append(Refusal(node.name, why, remedy))

    def _kind_of(self, name: str) -> np.dtype[Any]:
        """Return the type of a result as the file has it."""
        value = self.results[name].constant if name else None
        return self._kinds.get(name, _FRACTION) if value is None else value.dtype

    def _is_read(self, name: str) -> bool:
        return name in self._graph.outputs or any(name in n.inputs for n in self._graph.nodes)


def _read(call: Call) -> Any:
    """Return the result of a node, or the list of several."""
    values = [one.constant for one in call.inputs if one is not None]
    constants = [one for one in values if one is not None]
    computes = CONSTANTS.get(call.name)
    if computes is not None and len(constants) == len(values):
        return constant(np.asarray(computes(call, constants)), call.node.name)
    handler = handler_of(call.name)
    if handler is None:
        remedy = instead_of(call.name) or "Simplify the graph before."
        raise UnknownError(f"the operator {call.name} is not known here", remedy)
    return handler(call)
