"""Comparing what the firmware wrote with what it should have written, word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ai8xtools.emulator.words.addresses import AddressMap
from ai8xtools.emulator.words.writes import Effect
from ai8xtools.values import frozen


@frozen
class WordDifference:
    """One word that is not as expected; None stands for a word that is not written at all."""

    phase: str
    address: int
    place: str
    expected: int | None
    recorded: int | None

    def __str__(self) -> str:
        expected, recorded = (
            "nothing" if value is None else f"0x{value:08x}"
            for value in (self.expected, self.recorded)
        )
        place = f" ({self.place})" if self.place else ""
        return f"{self.phase}: 0x{self.address:08x}{place}: wanted {expected}, found {recorded}"


def compare(
    recorded: Mapping[str, Effect],
    expected: Mapping[str, Effect | tuple[Any, ...]],
    addresses: AddressMap,
) -> list[WordDifference]:
    """Compare phase by phase; return every difference, in the order of the phases of `expected`.

    `expected` maps a phase (see `PHASES`) to an Effect or a plain tuple (words, control[, pushes])
    of the same shape: words {address: value}, control [(address, value), ...] in order, pushes
    {address: [value, ...]}. A phase that is missing on one side counts as empty there.
    """
    differences: list[WordDifference] = []
    for phase in dict.fromkeys((*expected, *recorded)):
        want = Effect(*expected.get(phase, ({}, ())))
        got = recorded.get(phase, Effect({}, ()))
        differences += _words(phase, want.words, got.words, addresses)
        differences += _control(phase, want.control, got.control, addresses)
        for address in dict.fromkeys((*want.pushes, *got.pushes)):
            pushes = _pushes(want, address), _pushes(got, address)
            differences += _control(phase, *pushes, addresses)
    return differences


def count_words(effects: Mapping[str, Effect | tuple[Any, ...]]) -> int:
    """Return how many words a comparison with `effects` covers."""
    return sum(Effect(*effect).word_count for effect in effects.values())


def _pushes(effect: Effect, address: int) -> list[tuple[int, int]]:
    return [(address, value) for value in effect.pushes.get(address, ())]


def _words(
    phase: str, expected: Mapping[int, int], recorded: Mapping[int, int], addresses: AddressMap
) -> Iterator[WordDifference]:
    """Compare final values; arrays of numpy integers are accepted as values."""
    if expected == recorded:
        return
    for address in sorted({*expected, *recorded}):
        pair = expected.get(address), recorded.get(address)
        if pair[0] != pair[1]:
            yield WordDifference(phase, address, addresses.describe(address), *pair)


def _control(
    phase: str,
    expected: Sequence[tuple[int, int]],
    recorded: Sequence[tuple[int, int]],
    addresses: AddressMap,
) -> Iterator[WordDifference]:
    """Compare sequences; after a write that is missing or surplus, the rest differs as well."""
    for index in range(max(len(expected), len(recorded))):
        want = expected[index] if index < len(expected) else None
        got = recorded[index] if index < len(recorded) else None
        if want is not None and got is not None and tuple(want) == tuple(got):
            continue
        for pair in _by_address(want, got):
            place = f"{addresses.describe(pair[0])}, write {index + 1} of {len(expected)}"
            yield WordDifference(phase, pair[0], place, pair[1], pair[2])


def _by_address(
    want: tuple[int, int] | None, got: tuple[int, int] | None
) -> Iterator[tuple[int, int | None, int | None]]:
    """Put an expected and a recorded write side by side if they have the same address."""
    if want is not None and got is not None and want[0] == got[0]:
        yield want[0], want[1], got[1]
        return
    if want is not None:
        yield want[0], want[1], None
    if got is not None:
        yield got[0], None, got[1]
