"""Which tensors stand at a fixed distance (units) and which share an offset (cells).

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.values import frozen


class TiedError(Exception):
    """Two tensors would have to stand in two places at once."""


class TiedLayerError(DiagnosticError):
    """What a layer reads or writes would have to stand in two places at once."""

    def __init__(self, diagnostic: Diagnostic, layer: int) -> None:
        super().__init__(diagnostic)
        self.layer = layer


class Distances:
    """Numbers that stand at known distances from each other: sets with an origin each."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))
        self._distance = [0] * count

    def find(self, item: int) -> tuple[int, int]:
        """Return the origin of an item's set and how far behind it the item stands."""
        distance = 0
        while self._parent[item] != item:
            distance += self._distance[item]
            item = self._parent[item]
        return item, distance

    def tie(self, item: int, other: int, distance: int) -> None:
        """Let `other` stand `distance` behind `item`; raise TiedError if it cannot."""
        (root, near), (leaf, far) = self.find(item), self.find(other)
        if root == leaf:
            if near + distance != far:
                raise TiedError
            return
        self._parent[leaf] = root
        self._distance[leaf] = near + distance - far


@frozen
class Role:
    """The place of a tensor's words among those of others: every `step`th, from `slot` on."""

    step: int = 1
    slot: int = 0


class Offsets:
    """Tensors that share an offset, each with a role."""

    def __init__(self, count: int) -> None:
        self._sets = Distances(count)
        self._roles: dict[int, Role] = {}

    def role(self, item: int) -> Role:
        """Return the place of an item's words."""
        return self._roles.get(item, Role())

    def join(self, items: dict[int, Role]) -> None:
        """Let items share an offset; raise TiedError if one has another role already."""
        for item, role in items.items():
            if self._roles.get(item, role) != role:
                raise TiedError
        self._roles |= items
        first = next(iter(items))
        for item in items:
            self._sets.tie(first, item, 0)

    def find(self, item: int) -> int:
        """Return a number for the set of an item."""
        number, _ = self._sets.find(item)
        return number
