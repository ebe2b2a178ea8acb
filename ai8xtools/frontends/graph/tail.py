"""What only rearranges results behind the last layer: the application does it."""

from __future__ import annotations

from ai8xtools.frontends.graph.geometry import step_of
from ai8xtools.frontends.graph.nodes import Graph, Node, graph_of
from ai8xtools.frontends.graph.operators import (
    Concat,
    Conv,
    ConvTranspose,
    Gemm,
    Layer,
    LpNormalization,
    MatMul,
    Reduce,
    Reduction,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)


def without_tail(graph: Graph, *, joins: bool = False) -> tuple[Graph, list[Node]]:
    """Return a graph without what only rearranges its results, and these nodes.

    From a node on that no layer stands for, the application does it; whether results may be left
    that only `joins` of other axes make one, a door decides.
    """
    readers, light = graph.readers(), set()
    for node in reversed(graph.nodes):
        behind = all(one in light or one is node for one in readers[node])
        if isinstance(node.operator, _REARRANGING) and behind:
            light.add(node)
    left: dict[Node, None] = {}
    for node in graph.nodes:
        computes = isinstance(node.operator, Conv | ConvTranspose | Gemm | MatMul | Layer)
        follows = any(one in left for one in node.inputs) and not computes
        if follows or _is_length(node) or (node in light and _is_foreign(node, joins)):
            left[node] = None
    ends = [one for node in left for one in node.inputs
            if one.constant is None and one not in left]  # fmt: skip
    outputs = dict.fromkeys([*ends, *(node for node in graph.outputs if node not in left)])
    return graph_of(graph.input, graph.nodes, [*outputs]), [*left]


def without_shares(graph: Graph) -> tuple[Graph, list[str]]:
    """Return a graph without the softmax at its end and the shapes behind that, and what it was."""
    outputs, left = [], []
    for node in graph.outputs:
        last = node
        while isinstance(last.operator, Reshape | Transpose):
            last = last.inputs[0]
        while isinstance(last.operator, Softmax):
            left.append(last.place)
            node = last = last.inputs[0]
        outputs.append(node)
    return graph_of(graph.input, graph.nodes, outputs), left


_REARRANGING = Reshape | Transpose | Concat | Slice | Softmax | LpNormalization


def _is_length(node: Node) -> bool:
    """Return whether a node begins a normalization by lengths, which is the last of a network."""
    return isinstance(node.operator, Reduce) and node.operator.reduction is Reduction.L2


def _is_foreign(node: Node, joins: bool) -> bool:
    """Return whether no layer stands for a node that rearranges."""
    taken = node.inputs[0].shape
    match node.operator:
        case Reshape():
            flat = len(node.shape) == 2 and node.shape[0] == 1
            return not flat and (len(node.shape) < 3 or node.shape[:2] != taken[:2])
        case Concat() as concat:
            return joins and concat.axis != 1
        case Slice() as cut:
            return not isinstance(step_of(node, cut), int)
    return True
