"""A node of an ONNX graph as its handler gets it, and the handlers by their operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_graph import OnnxNode
from ai8xtools.frontends.graph.nodes import Node, make
from ai8xtools.frontends.graph.operators import Array, Operator, Shape


class UnknownError(ValueError):
    """A node that is no operator here: why, and what to use instead."""

    def __init__(self, why: str, remedy: str = "Simplify the graph before.") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@dataclass(frozen=True, slots=True)
class Call:
    """A node with what it takes (None: left out); `batch` is the one that the file fixes, of
    which one sample is taken, `kind` the type of what it takes first.
    """

    node: OnnxNode
    inputs: Sequence[Node | None]
    opset: int
    batch: int
    kind: np.dtype[Any]

    @property
    def name(self) -> str:
        """The operator."""
        return self.node.operator

    @property
    def data(self) -> Node:
        """What it takes first."""
        return self.input(0)

    def input(self, number: int) -> Node:
        """Return what it takes; UnknownError where it is missing."""
        node = self.inputs[number] if number < len(self.inputs) else None
        if node is None:
            raise UnknownError(f"its input {number + 1} is missing", "Export the graph again.")
        return node

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.node.attributes.get(name, default)

    def constant(self, number: int, attribute: str = "") -> Array | None:
        """Return a constant input, or the attribute that it was before; None for neither."""
        node = self.inputs[number] if number < len(self.inputs) else None
        if node is None:
            value = self.get(attribute) if attribute else None
            return None if value is None else np.asarray(value)
        if node.constant is None:
            raise UnknownError(f"its input {number + 1} is not constant", "Use a fixed one.")
        return node.constant

    def make(self, operator: Operator, *inputs: Node) -> Node:
        """Return a result of this node."""
        return make(self.node.name, operator, *inputs)

    def integers(self, number: int, attribute: str = "") -> Shape | None:
        """Return whole numbers of an input or attribute."""
        values = self.constant(number, attribute)
        return None if values is None else tuple(int(n) for n in np.asarray(values).ravel())


Handler = Callable[[Call], Any]

_HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler under the names of operators."""

    def add(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return add


def handler_of(name: str) -> Handler | None:
    """Return the handler of an operator."""
    return _HANDLERS.get(name)
