"""Shared checks of options: one that needs another, excludes another or is out of range."""

from __future__ import annotations

from collections.abc import Iterable

from ai8xtools.diagnostics.diagnostic import Diagnostic, Edit, Effects, Place, Severity


def needs(option: str, other: str) -> Diagnostic:
    """Complain that an option needs another one."""
    remedy = f"Add {other} or leave out {option}."
    effects = Effects(needs=frozenset({option.split()[0]}))
    return Diagnostic("E095", f"it needs {other}", Place(option=option), remedy, effects=effects)


def possible(complaints: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return complaints without those that an option needs another one while others refuse it."""
    several = list(complaints)
    errors = [one for one in several if one.severity.is_error and not one.effects.needs]
    refused = {word.strip(":") for one in errors for word in f"{one.place} {one.message}".split()}
    return [one for one in several if refused.isdisjoint(one.effects.needs)]


def excludes(option: str, other: str) -> Diagnostic:
    """Complain that two options exclude each other."""
    message = f"it cannot be used together with {other}"
    return Diagnostic("E092", message, Place(option=option), f"Leave out {option} or {other}.")


def no_effect(option: str, why: str, remedy: str = "Leave the option out.") -> Diagnostic:
    """Warn that an option has no effect here; `why` goes on from there."""
    message = f"it has no effect {why}"
    return Diagnostic("W041", message, Place(option=option), remedy, Severity.WARNING)


def outside(option: str, value: int, low: int, high: int) -> Diagnostic:
    """Complain about a value beyond its limits."""
    nearest, place = min(max(value, low), high), Place(option=option)
    return Diagnostic(
        "E073",
        f"is {value}, the limits are {low} and {high}",
        place,
        f"The nearest valid value is {nearest}.",
        value=str(value),
        limit=f"{low} to {high}",
        edit=Edit(place, str(value), str(nearest), certain=False),
    )
