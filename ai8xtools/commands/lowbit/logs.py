"""Logs of low-bit trainings, read again: what was trained, and the accuracy after each epoch.

Source: docs/low-bit.md, "Accuracy".
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import MIB, read_text
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.recipe import Recipe

_MOST_BYTES = 16 * MIB
_LONGEST_RECIPE = 8192
_EPOCH = re.compile(r"\bEpoch \[(\d{1,7})\] loss \S+ +Top1: (\d{1,3}\.\d+)\b")
_RECIPE = re.compile(r"\b(Recipe\(.*\))\s*$")


@frozen
class Run:
    """A training: its file, its recipe, and the accuracy in percent after each epoch."""

    path: str
    recipe: Recipe
    accuracies: tuple[float, ...]


def read_run(path: str) -> Run:
    """Return what the log of a training says, or its output on a terminal; of a teacher's epochs,
    which come first, nothing. Raises InputError (E726) and what `read_text` does.
    """
    recipe: dict[str, Any] | None = None
    accuracies: list[float] = []
    for line in read_text(path, _MOST_BYTES, errors="replace").splitlines():
        if recipe is None and len(line) <= _LONGEST_RECIPE and (match := _RECIPE.search(line)):
            recipe = _values(match[1], path)
        elif match := _EPOCH.search(line):
            if not int(match[1]):
                accuracies.clear()
            accuracies.append(float(match[2]))
    if recipe is None or not accuracies:
        raise _refusal("this is no log of a low-bit training", path)
    if max(accuracies) > 100:
        raise _refusal(f"an accuracy is {max(accuracies):g} %", path)
    from ai8xtools.training.lowbit.recipe import recipe_of

    return Run(path, recipe_of(recipe, path), tuple(accuracies))


def _values(text: str, path: str) -> dict[str, Any]:
    """Return the values of a recipe as it was printed: literals, nothing is executed."""
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise _refusal("its recipe is damaged", path)


def _refusal(message: str, path: str) -> InputError:
    return InputError("E726", message, path, "Name logs of train.py --model ai85fcbit.")
