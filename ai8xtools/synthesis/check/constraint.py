"""How constraints are declared, collected and run.

What follows from a violation stands in the declaration of its constraint, nowhere else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, assert_never

from ai8xtools.diagnostics import Diagnostic, Effects, Severity
from ai8xtools.synthesis.facts import Fact, Facts, effects
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Layer, Network, Schedule
from ai8xtools.values import frozen
from device import Chip, names_where


@frozen
class Finding:
    """A violated constraint: what is wrong, the keys to blame, and what to do.

    With `unsound`, the words that are written in spite of it are not expected to lead to the known
    answer.
    """

    message: str
    keys: str | tuple[str, ...] = ()
    remedy: str | None = None
    unsound: bool = False


class Kind(enum.StrEnum):
    """What a constraint is true of; targets without the accelerator run those of networks only."""

    NETWORK = "network"
    HARDWARE = "hardware"

    @property
    def needs_chip(self) -> bool:
        """Whether it is a limit of a chip."""
        match self:
            case Kind.HARDWARE:
                return True
            case Kind.NETWORK:
                return False
            case _:
                assert_never(self)


class Of(enum.Enum):
    """The layer that another complaint is about, seen from the layer of this one."""

    SAME = enum.auto()
    PREVIOUS = enum.auto()
    NEXT = enum.auto()


@frozen
class Covered:
    """A redundant complaint, which is left out: its code, and the layer that it is about.

    It stays if that layer states the key `unless` itself.
    """

    code: str
    of: Of = Of.SAME
    unless: str = ""


Test = Callable[[Any, Any], Iterator[Finding]]
"""Takes a layer and, to test it by itself, the chip, or else the network.

Of the kind NETWORK it takes a Layer and a Network, or nothing in place of the chip; of the kind
HARDWARE a MappedLayer and a MappedNetwork or the chip.
"""
AnyTest = TypeVar("AnyTest", bound=Test)


@frozen
class Constraint:
    """A test that every layer has to pass; `reason` is the docstring of its function.

    It looks at the layer `alone`, or at the whole network. What it finds of the key
    `without_sizes` is wrong whatever rows and columns the layers have. The option `waived_by` turns
    its errors into warnings.
    """

    code: str
    kind: Kind
    name: str
    reason: str
    severity: Severity
    test: Test
    effects: Effects
    alone: bool = False
    without_sizes: str = ""
    covers: Covered | None = None
    waived_by: str | None = None

    def findings(
        self, layer: Layer, network: Schedule[Any], chip: Chip | None
    ) -> Iterator[Finding]:
        """Test a layer of a resolved network; mapped onto the chip, if there is one."""
        return self.test(layer, chip if self.alone else network)

    def complain(self, layer: Layer, finding: Finding, waiving: Container[str]) -> Diagnostic:
        """Return the diagnostic of a finding; a warning if an option waives the constraint."""
        severity = Severity.WARNING if self.waived_by in waiving else self.severity
        effects = replace(self.effects, unsound=finding.unsound)
        return layer.diagnostic(
            self.code, finding.message, finding.keys, finding.remedy, severity, effects
        )


def elsewhere(feature: str) -> str:
    """Say which chip has a feature that this one lacks, by the name of the chip's attribute."""
    return f"{names_where(lambda chip: bool(getattr(chip, feature)))} has it."


CONSTRAINTS: list[Constraint] = []


def constraint(
    code: str,
    kind: Kind,
    severity: Severity = Severity.ERROR,
    *,
    blocks: Facts = (),
    needs: Facts = (),
    covers: Covered | None = None,
    without_sizes: str = "",
    waived_by: str | None = None,
    silenced_by: str | None = None,
    alone: bool = False,
) -> Callable[[AnyTest], AnyTest]:
    """Register a function that tests a layer within its network as the constraint of a code."""

    def register(test: AnyTest) -> AnyTest:
        follows = effects(blocks, needs, silenced_by)
        CONSTRAINTS.append(
            Constraint(
                code, kind, *_described(test), severity, test, follows, alone, without_sizes,
                covers, waived_by,
            )
        )  # fmt: skip
        return test

    return register


layer_constraint = partial(constraint, alone=True)
"""The same for a function that tests a layer by itself."""


def _described(test: Test) -> tuple[str, str]:
    return test.__name__.replace("_", " "), " ".join((test.__doc__ or "").split())


def check(
    network: Network,
    layout: Layout,
    chip: Chip,
    waiving: Container[str] = (),
    *,
    consequences: bool = False,
) -> list[Diagnostic]:
    """Return every complaint about a network with a complete layout, in the order of its layers.

    Options in `waiving` turn errors of some constraints into warnings. Consequences of other errors
    are left out unless they are asked for.
    """
    mapped = map_network(network, layout, chip)
    return _complaints(network, tuple(_findings(network, mapped)), waiving, consequences)


def check_network(
    network: Network, waiving: Container[str] = (), *, consequences: bool = False
) -> list[Diagnostic]:
    """Return the complaints about a network that are true of any target."""
    return _complaints(network, tuple(_findings(network, None)), waiving, consequences)


def _findings(
    network: Network, mapped: MappedNetwork | None
) -> Iterator[tuple[Layer, Constraint, Finding]]:
    """Test every layer; without a chip only what is true of networks."""
    for layer in network.layers:
        for entry in CONSTRAINTS:
            findings: Iterator[Finding] = iter(())
            if not entry.kind.needs_chip:
                findings = entry.findings(layer, network, None)
            elif mapped is not None:
                findings = entry.findings(mapped.layer(layer.index), mapped, mapped.chip)
            for finding in findings:
                yield layer, entry, finding


def _complaints(
    network: Network,
    findings: Collection[tuple[Layer, Constraint, Finding]],
    waiving: Container[str],
    consequences: bool,
) -> list[Diagnostic]:
    """Return the diagnostics; without consequences, each only once."""
    position = {index: place for place, index in enumerate(network.order)}
    wrong = [(layer, entry) for layer, entry, _ in findings if Fact.SIZES in entry.effects.blocks]
    first = min((position.get(layer.index, 0) for layer, _ in wrong), default=len(position))
    channels_known = all(
        entry.alone and Fact.PLACES not in entry.effects.blocks for _, entry in wrong
    )

    def follows(layer: Layer, entry: Constraint) -> bool:
        """Whether a complaint may merely follow from one about sizes."""
        certain = channels_known and entry.without_sizes and not layer.flatten
        behind = position.get(layer.index, 0) >= first
        return Fact.SIZES in entry.effects.needs and behind and not certain

    covered = _covered(network, {(layer.index, entry.covers) for layer, entry, _ in findings})
    return [
        entry.complain(layer, finding, waiving)
        for layer, entry, finding in findings
        if consequences or ((layer.index, entry.code) not in covered and not follows(layer, entry))
    ]


def _covered(
    network: Network, complaints: Collection[tuple[int, Covered | None]]
) -> set[tuple[int, str]]:
    """Return the complaints, by layer and code, for which another one says the same.

    `complaints` are the layers complained about and what these complaints cover.
    """
    neighbours = tuple(pairwise(network.executed()))

    def others(which: Of) -> dict[int, Layer]:
        match which:
            case Of.SAME:
                return {layer.index: layer for layer in network.layers}
            case Of.PREVIOUS:
                return {layer.index: previous for previous, layer in neighbours}
            case Of.NEXT:
                return {layer.index: following for layer, following in neighbours}
            case _:
                assert_never(which)

    result = set()
    for index, covered in complaints:
        other = others(covered.of).get(index) if covered else None
        if covered and other and covered.unless not in other.places:
            result.add((other.index, covered.code))
    return result
