"""Graphs of operators as plain data: numbers, text and arrays, as checkpoints hold them."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from ai8xtools.frontends.graph import operators
from ai8xtools.frontends.graph.nodes import Graph, Node, check, constant, graph_of, make
from ai8xtools.frontends.graph.operators import Array, Constant, Function, Operator, Reduction
from ai8xtools.frontends.graph.passes import results

_MOST = 1 << 24
_KINDS: Mapping[str, Any] = {one.__name__: one for one in get_args(Operator)}
_ENUMS: Mapping[str, Any] = {"function": Function, "reduction": Reduction}


class UnsoundError(ValueError):
    """Data that are those of no graph."""


def to_data(graph: Graph) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """Return the nodes of a graph, and its constants by name."""
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    entries, arrays = [], {}
    for node, number in numbers.items():
        entry: dict[str, Any] = {"kind": type(node.operator).__name__, "place": node.place,
                                 "inputs": [numbers[one] for one in node.inputs]}  # fmt: skip
        if isinstance(node.operator, Constant):
            entry["name"] = f"{number}.{node.place or 'constant'}"
            arrays[entry["name"]] = _narrowed(np.asarray(node.operator.value))
        else:
            entry["values"] = {f.name: _plain(getattr(node.operator, f.name))
                               for f in fields(node.operator)}  # fmt: skip
        entries.append(entry)
    return entries, arrays


def from_data(entries: Any, outputs: Any, arrays: Mapping[str, Array]) -> Graph:
    """Return the graph of nodes; `outputs` are numbers of them. Raises UnsoundError."""
    try:
        nodes: list[Node] = []
        for entry in entries:
            nodes.append(_node(entry, nodes, arrays))
        (input_node,) = (node for node in nodes if isinstance(node.operator, operators.Input))
        graph = graph_of(input_node, nodes, [nodes[_index(number, nodes)] for number in outputs])
        check(graph)
        results(graph, np.zeros(input_node.shape))
    except UnsoundError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as exc:
        raise UnsoundError(
            f"a node is not what its operator takes ({type(exc).__name__})"
        ) from None
    return graph


def _node(entry: Mapping[str, Any], nodes: list[Node], arrays: Mapping[str, Array]) -> Node:
    place = entry["place"]
    if not isinstance(place, str) or not place.isprintable():
        raise UnsoundError("nodes have names")
    kind = _KINDS[entry["kind"]]
    if kind is Constant:
        value = np.asarray(arrays[entry["name"]])
        if value.dtype.kind not in "fiu" or not np.isfinite(value).all():
            raise UnsoundError(f"the constants of {place} are finite numbers")
        return constant(value.astype(np.float64), place)
    inputs = [nodes[_index(number, nodes)] for number in entry["inputs"]]
    values = {name: _typed(name, value) for name, value in entry["values"].items()}
    node = make(place, kind(**values), *inputs)
    if min(node.shape, default=1) < 1 or math.prod(node.shape) > _MOST:
        raise UnsoundError(f"{place} has 1 to {_MOST} values")
    return node


def _narrowed(values: Array) -> Array:
    """Return whole numbers in as few bytes as they need."""
    kinds = (np.int8, np.int16, np.int32)
    whole = not (values % 1).any()
    fits = (k for k in kinds if np.abs(values, dtype=np.float64).max(initial=0) <= np.iinfo(k).max)
    return values.astype(next(fits, np.float64) if whole else np.float64)


def _index(number: Any, nodes: list[Node]) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(nodes):
        raise UnsoundError("nodes take what stands before them")
    return number


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _typed(name: str, value: Any) -> Any:
    if name in _ENUMS:
        return _ENUMS[name](value)
    if isinstance(value, list):
        return tuple(_typed("", one) for one in value)
    if not isinstance(value, int | float | bool | str):
        raise UnsoundError(f"{name} is a number, text or a list of them")
    return value
