"""Names of encodings on command lines."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser


def check_encodings(parser: Parser, option: str, names: Sequence[str]) -> None:
    """End the program unless all are names of encodings."""
    from difflib import get_close_matches

    from ai8xtools.quantization.lowbit import ENCODINGS

    for name in names:
        if name not in ENCODINGS:
            by_case = {encoding.lower(): encoding for encoding in ENCODINGS}
            near = get_close_matches(name.lower(), by_case, 1)
            meant = f"; did you mean {by_case[near[0]]}?" if near else ""
            parser.error(
                f"argument {option}: {name!r} is not known{meant} Known are {', '.join(ENCODINGS)}"
            )
