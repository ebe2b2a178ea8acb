"""Tables in Markdown, and blocks of a page that are written by the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from device import CHIPS, Chip


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|")


def by_chip(rows: Mapping[str, Callable[[Chip], object]]) -> str:
    """Return a table with a column for each chip."""
    names = [chip.name for chip in CHIPS]
    return table(["", *names], ([what, *map(of, CHIPS)] for what, of in rows.items()))


def word(value: int) -> str:
    """Return an address or a word with all of its digits."""
    return f"0x{value:08X}"


def hexadecimal(value: int) -> str:
    """Return a number in hexadecimal digits."""
    return f"0x{value:X}"


def size(value: int) -> str:
    """Return a number of bytes, in KiB if it is a multiple."""
    return f"{value // 1024} KiB" if value % 1024 == 0 else f"{value:,} bytes"


_BLOCK = re.compile(r"<!-- begin (?P<name>[\w-]+) -->\n.*?<!-- end (?P=name) -->\n", re.DOTALL)


def filled(page: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """Return a page with what stands between its `begin` and `end` markers written anew.

    Raises KeyError for a marker without a block.
    """

    def text(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin {name} -->\n\n{blocks[name]()}\n\n<!-- end {name} -->\n"

    return _BLOCK.sub(text, page)


def marked(page: str) -> list[str]:
    """Return the names of the blocks of a page."""
    return [match["name"] for match in _BLOCK.finditer(page)]
