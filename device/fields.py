"""Registers and their bit fields: how values become words, and words values.

`Register.pack` builds a word from field values by name, `Register.unpack` takes one apart; the
network loader, the log, the documentation and the emulator all do it this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ai8xtools.values import frozen


class FieldOverflowError(ValueError):
    """A value does not fit the bits of its field; holds register, field, value and limit."""

    def __init__(self, register: str, name: str, value: int, limit: int) -> None:
        super().__init__(f"{register}.{name} is {value}, the register field holds 0 to {limit}")
        self.register = register
        self.field = name
        self.value = value
        self.limit = limit


@frozen
class Field:
    """Bits `low` to `low + width - 1` of a register and what they mean.

    `rule` is how firmware finds the value, in the quantities that docs/hardware/execution.md
    defines; it is text for the published register map.
    """

    name: str
    low: int
    width: int
    meaning: str
    rule: str = ""

    @property
    def limit(self) -> int:
        """Largest value that fits."""
        return (1 << self.width) - 1

    def pack(self, value: int, register: str = "") -> int:
        """Return the word with `value` in this field and zeros elsewhere."""
        if not 0 <= value <= self.limit:
            raise FieldOverflowError(register, self.name, value, self.limit)
        return int(value) << self.low

    def unpack(self, word: int) -> int:
        """Return the value this field has in `word`."""
        return word >> self.low & self.limit

    def set(self, word: int, value: int, register: str = "") -> int:
        """Return a word in which this field has another value."""
        return word & ~(self.limit << self.low) | self.pack(value, register)


@frozen
class Register:
    """A 32-bit register: its number in the chip's numbering and its fields.

    Fields may overlap where the hardware gives bits a second meaning; packing ORs them. `meaning`
    is a title, `about` a text for the published register map.
    """

    name: str
    number: int
    meaning: str
    fields: tuple[Field, ...] = ()
    about: str = ""
    by_name: Mapping[str, Field] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {f.name: f for f in self.fields})

    def pack(self, **values: int) -> int:
        """Return the word with the named fields set and all other bits zero.

        Raises FieldOverflowError if a value does not fit, KeyError for an unknown field.
        """
        word = 0
        for name, value in values.items():
            word |= self.by_name[name].pack(value, self.name)
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Return every field's value in `word`."""
        return {f.name: f.unpack(word) for f in self.fields}


def flag(name: str, bit: int, meaning: str, rule: str = "") -> Field:
    """Return a field of one bit."""
    return Field(name, bit, 1, meaning, rule)
