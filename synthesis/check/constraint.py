"""How constraints are declared, collected and run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass

from device import Chip
from diagnostics import Diagnostic, Severity
from synthesis.network import Layer, Network


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated constraint: what is wrong, the keys to blame, and what to do."""

    message: str
    keys: str | tuple[str, ...] = ()
    remedy: str | None = None


LayerTest = Callable[[Layer, Chip], Iterator[Finding]]
NetworkTest = Callable[[Layer, Network], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A test that every layer has to pass; `reason` is the docstring of its function.

    Either it looks at the layer alone or at the whole network. With `derived`, it needs more than
    the layer's keys: sizes and channels, which follow from weights and from the layers before.
    """

    code: str
    name: str
    reason: str
    severity: Severity
    test: LayerTest | NetworkTest
    alone: LayerTest | None = None
    whole: NetworkTest | None = None
    derived: bool = False

    def findings(self, layer: Layer, network: Network) -> Iterator[Finding]:
        """Test a layer of a resolved network."""
        if self.alone is not None:
            return self.alone(layer, network.chip)
        assert self.whole is not None
        return self.whole(layer, network)

    def complain(self, layer: Layer, finding: Finding, tolerated: Container[str]) -> Diagnostic:
        """Return the diagnostic of a finding; if the code is tolerated it is a warning."""
        severity = Severity.WARNING if self.code in tolerated else self.severity
        return layer.diagnostic(self.code, finding.message, finding.keys, finding.remedy, severity)


CONSTRAINTS: list[Constraint] = []


def constraint(
    code: str, severity: Severity = Severity.ERROR
) -> Callable[[NetworkTest], NetworkTest]:
    """Register a function that tests a layer within its network as the constraint of a code."""

    def register(test: NetworkTest) -> NetworkTest:
        CONSTRAINTS.append(Constraint(code, *_described(test), severity, test, whole=test))
        return test

    return register


def layer_constraint(
    code: str, severity: Severity = Severity.ERROR, *, derived: bool = False
) -> Callable[[LayerTest], LayerTest]:
    """Register a function that tests a layer by itself as the constraint of a code."""

    def register(test: LayerTest) -> LayerTest:
        entry = Constraint(code, *_described(test), severity, test, alone=test, derived=derived)
        CONSTRAINTS.append(entry)
        return test

    return register


def _described(test: LayerTest | NetworkTest) -> tuple[str, str]:
    return test.__name__.replace("_", " "), " ".join((test.__doc__ or "").split())


SIZE_CODES = frozenset({"E302", "E303", "E304", "E305", "E312", "E313", "E349"})
"""Errors that give a layer and those behind it other sizes than were meant."""
CONSEQUENCES = frozenset(
    {"E306", "E309", "E320", "E321", "E341", "E342", "E343", "E344", "E360", "E361", "N332"}
)
"""What may be wrong only because of an earlier error in a size."""
BEGINNING_CODES = frozenset(
    {"E315", "E320", "E322", "E323", "E325", "E326", "E349", "E350", "E351", "E355", "E356"}
    | {"E358", "E359", "E360", "E361"}
)
"""Constraints between layers that hold whatever comes behind."""
_HIDES = {"E361": "E360", "E360": "E320"}
"""Of two complaints about a layer that say the same, the first."""


def check(
    network: Network, tolerated: Container[str] = (), *, consequences: bool = False
) -> list[Diagnostic]:
    """Return every complaint about a network, in the order of its layers.

    Those whose code is tolerated are warnings. Consequences of other errors are left out unless
    they are asked for.
    """
    position = {index: place for place, index in enumerate(network.order)}
    found = [
        (layer, entry, finding)
        for layer in network.layers
        for entry in CONSTRAINTS
        for finding in entry.findings(layer, network)
    ]
    wrong = [position.get(layer.index, 0) for layer, e, _ in found if e.code in SIZE_CODES]
    first = min(wrong, default=len(position))
    codes = {(layer.index, entry.code) for layer, entry, _ in found}
    hidden = {(index, _HIDES[code]) for index, code in codes if code in _HIDES}
    hidden |= _said_by_the_next_layer(network, codes)
    return [
        entry.complain(layer, finding, tolerated)
        for layer, entry, finding in found
        if consequences
        or (
            (layer.index, entry.code) not in hidden
            and not (entry.code in CONSEQUENCES and position.get(layer.index, 0) >= first)
        )
    ]


def _said_by_the_next_layer(
    network: Network, codes: Collection[tuple[int, str]]
) -> set[tuple[int, str]]:
    """Return complaints about a key of a neighbour, of which that neighbour complains itself."""
    found = set()
    for layer in network.executed():
        previous = network.predecessor(layer)
        if previous is None:
            continue
        if (layer.index, "E320") in codes and "output_processors" not in previous.places:
            found.add((previous.index, "E321"))
        if (previous.index, "E342") in codes and "in_offset" not in layer.places:
            found.add((layer.index, "E341"))
    return found


def check_sound_layers(
    layers: Iterable[Layer],
    chip: Chip,
    damaged: Container[int],
    bare: Container[int] = (),
    suspect: Container[int] = (),
    tolerated: Container[str] = (),
) -> list[Diagnostic]:
    """Return the errors that can be told of a network of which only some layers are known.

    Layers are in the order of execution. Nothing is said of damaged ones (by index), and nothing
    but what the keys tell from the first one on that is damaged or bare of its weights, and behind
    the first one that is suspect.
    """
    found = []
    derived = True
    for layer in layers:
        derived = derived and layer.index not in damaged and layer.index not in bare
        if layer.index in damaged:
            continue
        found += [
            entry.complain(layer, finding, tolerated)
            for entry in CONSTRAINTS
            if entry.alone is not None
            and entry.severity is Severity.ERROR
            and (derived or not entry.derived)
            for finding in entry.alone(layer, chip)
        ]
        derived = derived and layer.index not in suspect
    return found
