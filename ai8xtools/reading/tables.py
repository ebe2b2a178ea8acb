"""Tables that fit the terminal: too many columns continue below, with the first one again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any


def terminal_columns() -> int | None:
    """Return how wide the terminal is that standard output goes to; None elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    rows: Sequence[Sequence[object]],
    heads: Sequence[str],
    style: str = "simple",
    *,
    numbers: bool = False,
    whole: bool = False,
    together: int = 1,
    most: int | None = None,
    **settings: Any,
) -> str:
    """Return a table, in parts where it would be wider than the terminal.

    The first column is in each part; `together` is how many of the others are never divided. Files
    and pipes, and all with `whole`, get it undivided unless it is wider than `most` characters.
    With `numbers` numbers are aligned and formatted. `settings` are those of tabulate; lists have
    an entry for each column.
    """
    from tabulate import tabulate  # here: start-up

    def part(columns: Sequence[int]) -> str:
        own: dict[str, Any] = {
            name: [value[n] for n in columns] if isinstance(value, list | tuple) else value
            for name, value in settings.items()
        }
        chosen = [[row[n] for n in columns] for row in rows]
        return tabulate(
            chosen, [heads[n] for n in columns], style, disable_numparse=not numbers, **own
        )

    text = part(range(len(heads)))
    width = None if whole else terminal_columns() or most
    if width is None or _width(text) <= width:
        return text
    parts: list[list[int]] = []
    for first in range(1, len(heads), together):
        group = [*range(first, min(first + together, len(heads)))]
        if parts and _width(part([*parts[-1], *group])) <= width:
            parts[-1] += group
        else:
            parts.append([0, *group])
    return "\n\n".join(map(part, parts))


def _width(text: str) -> int:
    return max(map(len, text.splitlines()), default=0)
