"""The values that parsing gives: keys, their converted values, and where each stood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, Effects, Place
from ai8xtools.values import frozen


@frozen
class Entry:
    """A value, converted as the key table says, and the place of its text."""

    value: Any
    place: Place


@frozen
class Section:
    """A mapping of the file: its place and its entries by canonical key."""

    place: Place
    entries: Mapping[str, Entry]

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def get(self, key: str, default: Any = None) -> Any:
        """Value of a key, or the default if it is not in the file."""
        entry = self.entries.get(key)
        return default if entry is None else entry.value

    def place_of(self, *keys: str) -> Place:
        """Place of the first of the keys that is in the file, else of the section."""
        return next((self.entries[k].place for k in keys if k in self.entries), self.place)


@frozen
class LayerDescription(Section):
    """One element of `layers`; `index` is its position after gaps in `sequence` are closed."""

    index: int

    @property
    def name(self) -> str | None:
        """The layer's name, in the spelling of the file."""
        name: str | None = self.get("name")
        return name

    def __str__(self) -> str:
        return f"layer {self.index}" + (f" ({self.name})" if self.name else "")

    def error(
        self,
        code: str,
        message: str,
        *keys: str,
        remedy: str | None = None,
        effects: Effects = NO_EFFECTS,
    ) -> Diagnostic:
        """Return an error about this layer, placed at the first of the keys."""
        place = self.place_of(*keys)
        return Diagnostic(code, f"{self}: {message}", place, remedy, effects=effects)


@frozen
class Description(Section):
    """A whole file: global keys and layers in order.

    Unless it is `placed`, keys that fix memory and processors may be missing. Unless it is
    `limited`, it is for no accelerator: kernels and strides of every size are fine.
    """

    file: str
    layers: tuple[LayerDescription, ...]
    warnings: tuple[Diagnostic, ...]
    placed: bool = True
    limited: bool = True

    def layer_named(self, name: str) -> LayerDescription | None:
        """Return the layer of a name, in any case."""
        lower = name.lower()
        return next((x for x in self.layers if x.name and x.name.lower() == lower), None)


Problems = tuple[Diagnostic, ...]


@frozen
class Reading:
    """What could be read of a file, and the complaints about it.

    `problems` are all of them in the order of the file, `of_layers` those about each layer. For
    values that cannot be used `meant` has, by their place, the key and what was probably meant.
    """

    description: Description
    problems: Problems
    of_layers: tuple[Problems, ...]
    meant: Mapping[Place, tuple[str, Entry]]
