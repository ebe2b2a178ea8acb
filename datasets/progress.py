"""A bar on the terminal while something takes long; nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from ai8xtools.reading.streams import terminal


@contextlib.contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar of `total` steps (None: unknown); the block calls what it gets with each advance.

    Nothing is shown when standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=terminal(sys.stderr)), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.update(task, advance=steps)
