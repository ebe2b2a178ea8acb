"""How constraints are declared, collected and run."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from diagnostics import Diagnostic, Severity
from synthesis.network import Layer, Network


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated constraint: what is wrong, the keys to blame, and what to do."""

    message: str
    keys: str | tuple[str, ...] = ()
    remedy: str | None = None


Test = Callable[[Layer, Network], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A test that every layer has to pass; `reason` is the docstring of its function."""

    code: str
    name: str
    reason: str
    severity: Severity
    test: Test


CONSTRAINTS: list[Constraint] = []


def constraint(code: str, severity: Severity = Severity.ERROR) -> Callable[[Test], Test]:
    """Register a function as the constraint of a code."""

    def register(test: Test) -> Test:
        name = test.__name__.replace("_", " ")
        reason = " ".join((test.__doc__ or "").split())
        CONSTRAINTS.append(Constraint(code, name, reason, severity, test))
        return test

    return register


def check(network: Network, tolerated: Container[str] = ()) -> list[Diagnostic]:
    """Return every complaint about a network, in the order of its layers.

    Those whose code is tolerated are warnings.
    """

    def severity(entry: Constraint) -> Severity:
        return Severity.WARNING if entry.code in tolerated else entry.severity

    return [
        layer.diagnostic(entry.code, finding.message, finding.keys, finding.remedy, severity(entry))
        for layer in network.layers
        for entry in CONSTRAINTS
        for finding in entry.test(layer, network)
    ]
