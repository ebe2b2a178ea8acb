"""All that differs between two projects of one network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator.differences.behaviour import behaviour_differences
from ai8xtools.emulator.differences.biases import bias_differences
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.inputs import input_differences
from ai8xtools.emulator.differences.kernels import kernel_differences
from ai8xtools.emulator.differences.output import answer_differences, output_differences
from ai8xtools.emulator.differences.registers import order_differences, register_differences
from ai8xtools.emulator.differences.side import LoadedWords, Side
from ai8xtools.emulator.report.describe import describe_layer


def differences(theirs: Side, ours: Side, answers: Mapping[int, LayerAnswer]) -> list[Difference]:
    """Return what differs, by subject; `answers` are our layers by number.

    The input is compared only where both projects have one.
    """
    result = [*word_differences(theirs.loaded, ours.loaded, answers)]
    result += output_differences(theirs, ours, answers)
    result += answer_differences(theirs, ours)
    result += behaviour_differences(theirs, ours)
    order = [*Subject]
    return sorted(result, key=lambda one: order.index(one.subject))


def word_differences(
    theirs: LoadedWords, ours: LoadedWords, answers: Mapping[int, LayerAnswer]
) -> Iterator[Difference]:
    """Yield what differs in the words that reach the accelerator before it starts."""
    names = {number: answer.name for number, answer in answers.items()}
    yield from _layers(theirs, ours)
    yield from register_differences(theirs, ours, names)
    yield from kernel_differences(theirs, ours, answers)
    yield from bias_differences(theirs, ours, answers)
    if theirs.has_input and ours.has_input:
        yield from input_differences(theirs, ours)
    yield from order_differences(theirs, ours)


def _layers(theirs: LoadedWords, ours: LoadedWords) -> Iterator[Difference]:
    """Sum up layers that are not the same by their registers."""
    for number in sorted({*theirs.layers, *ours.layers}):
        there, here = (
            describe_layer(side.layers[number]) if number in side.layers else "none"
            for side in (theirs, ours)
        )
        if there != here:
            yield Difference(Subject.LAYERS, f"there {there}")
            yield Difference(Subject.LAYERS, f"here  {here}")
