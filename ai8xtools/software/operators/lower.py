"""A graph of operators in whole numbers becomes steps.

Operators that only move data move the places of values; a copy is made where a step needs them in
order. What is done with elements becomes one expression for each result that others need.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.matrices import products
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Concat,
    Conv,
    ConvTranspose,
    Foreign,
    Gemm,
    Input,
    Pad,
    Pool,
    Reduce,
    Reshape,
    Resize,
    Slice,
    Transpose,
)
from ai8xtools.frontends.layers import Refusal
from ai8xtools.software import bounds
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Interval
from ai8xtools.software.operators.exact import InexactError
from ai8xtools.software.operators.expressed import OF_ELEMENTS
from ai8xtools.software.operators.joined import joined
from ai8xtools.software.operators.moved import Moving
from ai8xtools.software.operators.stateful import State
from ai8xtools.software.operators.storage import QUANTIZE, ROUND, RefusedError, Stored, laid
from ai8xtools.software.operators.weighted import Weighing
from ai8xtools.software.operators.windows import Windowing

PASSES = (
    compositions, passes.normalizations, passes.limits, passes.truncations, passes.sections,
    passes.padding, passes.minima, products,
    passes.reductions, passes.transposes,
)  # fmt: skip
"""What is done with a graph before."""


class Lowering(Moving, Weighing, Windowing):
    """Steps and tensors as they grow, node by node; `refusals` are nodes that none stands for."""

    def __init__(self, graph: Graph, name: str) -> None:
        super().__init__()
        self.refusals: list[Refusal] = []
        self._name = name
        self._kept: int | None = None
        self._graph = passes.improved(graph, PASSES)
        self._readers = self._graph.readers()
        self._refused: set[Node] = set()
        for node in self._graph.nodes:
            self._visit(node)
        self._outputs = [self._delivered(node) for node in self._graph.outputs]

    def graph(self) -> steps.StepGraph:
        """Return the steps that outputs need, put together.

        Of a graph that keeps a state, the last output is what it is in the next run.
        """
        graph = steps.StepGraph(name=self._name, tensors=tuple(self._tensors),
                                steps=tuple(self._steps), input=0,
                                outputs=tuple(self._outputs))  # fmt: skip
        graph = joined(graph)
        if self._kept is None:
            return graph
        *outputs, last = graph.outputs
        tensors, more = list(graph.tensors), []
        kept = tensors[self._kept]
        name, layer = kept.name, len(self._steps)
        if tensors[last].bytes_per_value != kept.bytes_per_value:
            more.append(steps.Elements(
                sources=(last,), target=len(tensors), layer=layer, name=name,
                channels=kept.channels, size=(1, 1), shapes=((1, 1, kept.channels),),
                element=steps.Load(0), bits=32,
            ))  # fmt: skip
            last = len(tensors)
            tensors.append(replace(kept, index=last))
        piece = steps.Piece(last, 0, 0, 0, 0, kept.size_bytes, 1)
        keeping = steps.Copy(sources=(last,), target=kept.index, layer=layer, name=name,
                             pieces=(piece,))  # fmt: skip
        return replace(graph, steps=(*graph.steps, *more, keeping), outputs=(*outputs,),
                       tensors=(*tensors,), kept=kept.index)  # fmt: skip

    def _visit(self, node: Node) -> None:
        """Store the result of a node, but for what is done with elements if one reads it alone."""
        if node.constant is not None:
            return
        if any(one in self._refused for one in node.inputs):
            self._refused.add(node)
            return
        if 0 in node.shape:
            shape = "x".join(map(str, node.shape))
            self._refuse(node, f"its result of {shape} is empty", "Cut off less.")
            return
        readers = self._readers[node]
        further = [one for one in readers if not isinstance(one.operator, OF_ELEMENTS)]
        needed = bool(further) or node in self._graph.outputs
        try:
            if not isinstance(node.operator, OF_ELEMENTS):
                self._stored[node] = self._result(node)
            elif needed or len(readers) > 1 or any(one.shape != node.shape for one in readers):
                self._stored[node] = self._computed(node)
        except RefusedError as exc:
            if needed or not isinstance(node.operator, OF_ELEMENTS):
                self._refuse(node, exc.why, exc.remedy)
        except InexactError as exc:
            if needed:  # else those that read it may know more
                self._refuse(node, str(exc), QUANTIZE)

    def _refuse(self, node: Node, why: str, remedy: str) -> None:
        self._refused.add(node)
        self.refusals.append(Refusal(node.place, why, remedy))

    def _delivered(self, node: Node) -> int:
        """Return the tensor of a result, in the order of its shape."""
        if node in self._refused:
            return 0
        stored = self._stored.get(node)
        if stored is None:
            self._refuse(node, "its result does not depend on the input", "Leave it out.")
        elif len(node.shape) == 2 and node.shape[0] > 1:
            self._refuse(node, "its result has no batch: nothing says what its channels are",
                         "Give it the shape 1xCxN.")  # fmt: skip
        elif (stored.over != 1).any():
            self._refuse(node, "its results are fractions", ROUND)
        else:
            try:
                return self._in_order(node.place, stored, laid(stored.places))
            except RefusedError as exc:
                self._refuse(node, exc.why, exc.remedy)
        return 0

    def _result(self, node: Node) -> Stored:
        """Return where the result of an operator stands."""
        one = np.ones((), np.int64)
        operator = node.operator
        match operator:
            case Input():
                size = laid(np.broadcast_to(np.int8(0), node.shape)).shape
                tensor = self._tensor("input", size[:2], bounds.full_range(size[2]))
                return self._stored_in(node.shape, tensor, one)
            case Reshape() | Transpose() | Slice() | Concat() | Resize() | Pad():
                return self._moved(node)
            case Conv() | ConvTranspose():
                return self._convolution(node, operator)
            case Gemm():
                return self._linear(node)
            case Pool():
                return self._pool(node, operator)
            case Reduce():
                return self._reduced(node, operator)
            case State():
                limits = Interval(np.array(operator.low), np.array(operator.high))
                self._kept = self._tensor("state", (1, 1), limits)
                return self._stored_in(node.shape, self._kept, one)
            case Foreign():
                raise RefusedError(f"there is no kernel for {node.name}", operator.remedy)
            case _:
                raise RefusedError(f"there is no kernel for {node.name}")
