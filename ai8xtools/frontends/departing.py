"""Graphs that change while they are rewritten, or whose operands do not fit, end in a message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.nodes import ShapeError
from ai8xtools.frontends.graph.passes import DepartsError


@contextlib.contextmanager
def told_of(model: str) -> Iterator[None]:
    """Rewrite the graph of a model within. Raises InputError E668 in place of what rewriting
    raises.
    """
    try:
        yield
    except (DepartsError, ShapeError) as exc:
        raise InputError(
            "E668",
            f"the imported network computes something else: {exc}",
            model,
            "Write it with other operators, or report it.",
        ) from exc
