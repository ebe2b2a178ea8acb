"""Do the values that the stages hand on agree with themselves?

Each invariant is a function whose docstring states it and which yields what contradicts it.
`Network.validate` and `Placement.validate` run them, in tests and with `--debug`. A violation is a
defect of the tool, not of the user's files, which `resolve` and `check` have judged before. The
invariants are written from the specification, apart from the stages that they check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Name = TypeVar("Name", bound=str)


class InvariantError(AssertionError):
    """A value of the loader contradicts itself: a defect of the tool.

    The text has one line for each contradiction: where, what, and the name of the invariant.
    """


class Invariants(Generic[Parameters]):
    """Functions that yield what contradicts an invariant, each under its own name."""

    def __init__(self) -> None:
        self.functions: list[Callable[Parameters, Iterator[str]]] = []

    def __call__(
        self, function: Callable[Parameters, Iterator[str]]
    ) -> Callable[Parameters, Iterator[str]]:
        """Register a function."""
        self.functions.append(function)
        return function

    def violations(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Iterator[str]:
        """Yield what contradicts any of them."""
        for function in self.functions:
            name = function.__name__.replace("_", " ")
            for message in function(*args, **kwargs):
                yield f"{message} [{name}]"
