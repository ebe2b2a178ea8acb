"""What only rearranges results behind the last layer: the application does it.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ai8xtools.frontends.modules.plain.kinds import Kind, Step
from ai8xtools.frontends.modules.tracing import Node

_REARRANGING = frozenset({
    "permute", "transpose", "swapaxes", "view", "reshape", "flatten", "unflatten", "contiguous",
    "squeeze", "unsqueeze", "getitem", "cat", "concat", "concatenate", "normalize", "softmax",
    "log_softmax",
})  # fmt: skip
_MODULES = (Kind.RESHAPING, Kind.SOFTMAX, Kind.PASSING)


def tail_of(graph: Any, steps: dict[Node, Step], refused: Container[Node]) -> set[Node]:
    """Return the refused nodes that only rearrange results, with all nodes behind them."""
    light: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        if all(user.op == "output" or user in light for user in node.users) and _rearranges(
            node, steps
        ):
            light.add(node)
    tail: set[Node] = set()
    for node in graph.nodes:
        if node in light and (node in refused or any(n in tail for n in node.all_input_nodes)):
            tail.add(node)
    return tail


def _rearranges(node: Node, steps: dict[Node, Step]) -> bool:
    """Return whether a node computes nothing that a layer could take part in."""
    if node.op == "call_module":
        return node in steps and steps[node].kind in _MODULES
    name = str(getattr(node.target, "__name__", node.target))
    known = not any(source.op == "get_attr" for source in node.all_input_nodes)
    return node.op in ("call_function", "call_method") and name in _REARRANGING and known
