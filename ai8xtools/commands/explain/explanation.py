"""The cause of a difference: of all words that differ, those from which it follows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ai8xtools.answer import LayerAnswer
from ai8xtools.commands.decompile.words import WordDeparture, compare, memory_of
from ai8xtools.commands.explain.departing import First, executed, first_difference
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.differences.comparing import word_differences
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.answer import build_answer
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.values import frozen

_TRIED, _SHOWN = 20, 3
_LAYER = re.compile(r"layer (\d+)")


@frozen
class Cause:
    """Words that belong together and differ: of what kind, of which hardware layer, how."""

    kind: str
    layer: int | None
    departures: tuple[WordDeparture, ...]
    texts: tuple[str, ...]


@frozen
class Explanation:
    """Where a network first departs, what causes it, and how many other words differ.

    Without `first` the words change nothing for the sample.
    """

    first: First | None
    cause: Cause | None
    others: int


@frozen(slots=False)
class ReferenceRun:
    """The words of a description: what an accelerator should be loaded with."""

    result: Synthesis
    repeat: int = 1

    @cached_property
    def memory(self) -> Memory:
        """An accelerator to which they are written."""
        return memory_of(self.result.program, self.result.chip, self.result.program.apb_base)

    @cached_property
    def run(self) -> NetworkRun:
        """What it computes."""
        run = executed(self.memory)
        if isinstance(run, EmulatorError):
            raise run
        return run

    @cached_property
    def answers(self) -> Mapping[int, LayerAnswer]:
        """Its layers by hardware number."""
        answer = build_answer(self.result, "", self.repeat, 0, fixed_input=False)
        return {layer.number: layer for layer in answer.layers}

    @cached_property
    def numbers(self) -> Mapping[int, int]:
        """Hardware numbers by the layers of the description."""
        numbering = Numbering.of(self.result.network, self.result.chip, self.repeat)
        return {layer.index: numbering.number(layer) for layer in self.result.network.layers}

    def name(self, number: int) -> str:
        """Return a layer with the line of its description, by its hardware number."""
        index = next((i for i, n in self.numbers.items() if n == number), None)
        if index is None:
            return f"layer {number}"
        layer = self.result.network.layer(index)
        place = str(layer.place)
        return f"{layer}, {place}," if place else str(layer)

    def owner(self, departure: WordDeparture) -> int | None:
        """Return the hardware layer whose word differs."""
        match departure.kind:
            case "register":
                match = _LAYER.search(departure.place)
                return int(match[1]) if match else None
            case "kernel":
                owner = int(self.result.placement.kernel_memory.owner[departure.where])
                return self.numbers.get(owner)
            case "bias":
                return self._owner_of_bias(*departure.where)
            case _:
                return self.numbers[self.result.network.first.index]

    def _owner_of_bias(self, group: int, place: int) -> int | None:
        before = [
            (offset, index)
            for index, biases in self.result.placement.biases.items()
            if (offset := biases.offsets[group]) is not None and offset <= place
        ]
        return self.numbers[max(before)[1]] if before else None


def explained(reference: ReferenceRun, actual: Memory) -> Explanation | None:
    """Explain how an accelerator that is about to start departs; None if no word does.

    If several words differ, those that cause the first wrong value are found by changing nothing
    else.
    """
    departures = compare(reference.memory, actual).departures
    if not departures:
        return None
    first = first_difference(reference.run, executed(actual), reference.answers)
    groups = _grouped(reference, departures, first)
    cause = _cause(reference, actual, groups, first)
    explained_words = None
    if cause is not None:
        explained_words = Cause(*cause, _texts(reference, actual, cause[2]))
    count = len(departures) - (0 if explained_words is None else len(explained_words.departures))
    return Explanation(first, explained_words, count)


_Group = tuple[str, int | None, tuple[WordDeparture, ...]]


def _grouped(
    reference: ReferenceRun, departures: Sequence[WordDeparture], first: First | None
) -> list[_Group]:
    """Return words of a kind and a layer together, those of the first wrong layer first."""
    groups: dict[tuple[str, int | None], list[WordDeparture]] = {}
    for departure in departures:
        groups.setdefault((departure.kind, reference.owner(departure)), []).append(departure)
    layer = None if first is None else first.layer
    order = sorted(groups, key=lambda key: key[1] != layer)
    return [(*key, tuple(groups[key])) for key in order]


def _cause(
    reference: ReferenceRun, actual: Memory, groups: Sequence[_Group], first: First | None
) -> _Group | None:
    """Return the words that alone lead to the first wrong value."""
    if len(groups) == 1:
        return groups[0]
    for group in groups[:_TRIED]:
        alone = _changed(reference.memory, actual, group[2])
        other = first_difference(reference.run, executed(alone), reference.answers)
        if first is not None and other is not None and other == first:
            return group
    layer = None if first is None else first.layer
    return next((group for group in groups if group[1] == layer), None)


def _changed(memory: Memory, source: Memory, departures: Sequence[WordDeparture]) -> Memory:
    """Return a memory with these words of another one."""
    changed = memory.snapshot()
    for departure in departures:
        where = departure.where
        match departure.kind:
            case "register":
                changed.registers[where[0]] = source.registers.get(where[0], 0)
            case "kernel":
                changed.kernels[where] = source.kernels[where]
            case "bias":
                changed.bias[where] = source.bias[where]
            case "push":
                changed.pushes = {a: [*words] for a, words in source.pushes.items()}
            case _:
                changed.data[where] = source.data[where]
    return changed


def _texts(
    reference: ReferenceRun, actual: Memory, departures: Sequence[WordDeparture]
) -> tuple[str, ...]:
    """Say what differs: fields of registers, kernels by their channels."""
    right = LoadedWords.of(reference.memory, has_input=True)
    try:
        wrong = LoadedWords.of(_changed(reference.memory, actual, departures), has_input=True)
        texts = tuple(one.text for one in word_differences(wrong, right, reference.answers))
    except EmulatorError:
        texts = ()
    sides = ((" there", " in the project"), (" here", " by the description"))
    for name, meant in sides:
        texts = tuple(re.sub(rf"{name}\b", meant, text) for text in texts)
    return texts or tuple(map(str, departures))


def paragraph(reference: ReferenceRun, explanation: Explanation) -> str:
    """Return an explanation for people."""
    return " ".join(_sentences(reference, explanation))


def _sentences(reference: ReferenceRun, explanation: Explanation) -> Iterator[str]:
    first, cause = explanation.first, explanation.cause
    if first is None:
        yield "Words differ, but no layer computes anything else for the sample."
    elif first.layer is None:
        yield f"{first.text[0].upper()}{first.text[1:]}."
    else:
        name = reference.name(first.layer)
        yield f"{name[0].upper()}{name[1:]} is the first that is wrong: {first.text}."
    if cause is None:
        yield f"The cause is several of the {explanation.others} words that differ, together."
        return
    word = cause.departures[0]
    more = len(cause.texts) - _SHOWN
    shown = [*cause.texts[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    same = cause.layer is None or (first is not None and first.layer == cause.layer)
    described = "" if same else f" of {reference.name(cause.layer or 0).rstrip(',')}"
    place = f"0x{word.address(reference.memory):08x}, {word.place}"
    yield f"The cause is the {_KINDS[cause.kind]}{described}: {'; '.join(shown)} ({place})."
    if explanation.others:
        count = explanation.others
        yield f"{count} other word{' differs' if count == 1 else 's differ'}, too."


_KINDS = {
    "register": "configuration", "kernel": "kernel memory", "bias": "bias memory",
    "input": "input", "push": "input",
}  # fmt: skip
