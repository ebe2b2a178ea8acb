"""A network as a library: one public header and the files below it, for all targets.

Source: docs/library.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ai8xtools.values import frozen
from ai8xtools.writing.symbols import prefixed
from ai8xtools.writing.templates import render

INPUT_FRACTION = 7
"""Fractional bits of inputs from -1 to 127/128."""


@frozen
class Shape:
    """Channels, rows and columns of data."""

    channels: int
    rows: int
    columns: int

    @property
    def pixels(self) -> int:
        """Rows times columns."""
        return self.rows * self.columns

    @property
    def size(self) -> int:
        """Number of values."""
        return self.channels * self.pixels


@frozen
class LibraryOutput:
    """An output: where it stands in the result, and what its integers mean.

    `offset` is in bytes; a value is an integer of `bits` (8, 16 or 32) times 2^`exponent`. `group`
    channels of a pixel stand together: all of them (HWC), or one (CHW). `name` is that of the
    layer, if it is known.
    """

    shape: Shape
    bits: int
    offset: int
    group: int
    exponent: int
    name: str = ""

    @property
    def unit(self) -> str:
        """2^`exponent` as a constant of C; exact."""
        return _power(self.exponent)


def _power(exponent: int) -> str:
    return f"{2.0**exponent!r}f"


def worth(exponents: Iterable[int]) -> str:
    """Return what one step of outputs is worth: their integers times 2^e are numbers."""
    different = list(dict.fromkeys(exponents))
    powers = ", ".join(f"2^{one}" for one in different)
    if len(different) > 1:
        return f"one step is worth, by output, {powers}"
    whole = f" ({2 ** -different[0]} is 1)" if different[0] < 0 else ""
    return f"one step is worth {powers}{whole}"


@frozen
class Library:
    """A network as others call it; names begin with `prefix`. `size` is that of the result.

    An input times 2^`fraction` is its integer.
    """

    prefix: str
    title: str
    input: Shape
    outputs: tuple[LibraryOutput, ...]
    size: int
    labels: tuple[str, ...] = ()
    fraction: int = INPUT_FRACTION

    @property
    def in_scale(self) -> str:
        """2^`fraction` as a constant of C; exact."""
        return _power(self.fraction)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the channels of the last output, if they are known."""
        return self.labels if len(self.labels) == self.outputs[-1].shape.channels else ()

    @property
    def macro(self) -> str:
        """What macros begin with."""
        return self.prefix.upper()

    def files(self, target: str, files: dict[str, str], **values: Any) -> dict[str, str]:
        """Return the files of a project as those of the library.

        `target` is the folder of the templates that say what is below, which are told `values`.
        """
        own = {
            f"{self.prefix}.{end}": render(f"{target}/library.{end}.j2", library=self, **values)
            for end in ("h", "c")
        }
        return {**own, **prefixed(files, self.prefix)}
