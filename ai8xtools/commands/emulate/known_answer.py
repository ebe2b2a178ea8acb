"""The answer file of a project, and the results of comparing a program with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ai8xtools.answer import FILE_NAME, Answer, AnswerError, read_answer
from ai8xtools.emulator import Board, NetworkAlone, NetworkRun
from ai8xtools.emulator.comparison.layers import LayerComparison, compare_layers
from ai8xtools.emulator.comparison.partial import accepted_writes, next_word, written_so_far
from ai8xtools.emulator.comparison.places import describe_wrong
from ai8xtools.emulator.comparison.words import WordComparison, compare_words
from ai8xtools.emulator.comparison.wrong import WrongWord
from ai8xtools.emulator.errors import OtherChipError
from ai8xtools.emulator.report.describe import describe_registers
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import AddressMap

SHOWN_WORDS = 10
_OWN_INPUT_SHARE = 8
"""With several words changed in more than this part of the input's blocks, the input is another."""


@dataclass
class AnswerCheck:
    """Compares a program with the answer file while it runs.

    `words` is known once the network was about to start, `layers` once it ran, `later` if the
    program has changed registers, kernels or biases before another start. `unstarted` is the memory
    of a program whose network did not start, as far as it was written. `takes_input`: hardware
    gives the program its input, which cannot be the sample. The accelerator also holds the networks
    of `others`. `file` is the name of the file.
    """

    answer: Answer
    file: str = FILE_NAME
    others: Sequence[Answer] = ()
    words: WordComparison | None = None
    later: WordComparison | None = None
    layers: LayerComparison | None = None
    unstarted: Memory | None = None
    takes_input: bool = False
    _compared_state: int = 0

    def watch(self, board: Board) -> None:
        """Compare the words of a board when its network starts for the first time."""
        board.before_first_run = self._compare_words
        board.before_later_run = self._compare_later

    def compare_start(self, memory: Memory) -> None:
        """Compare the words of an accelerator that is about to start."""
        if self.words is None:
            self._compare_words(memory)
        else:
            self._compare_later(memory)

    def watch_alone(self, network: NetworkAlone) -> None:
        """The same for a network without its program; of inputs only the sample is compared."""
        network.before_run = self._compare_alone

    def compare_layers(self, run: NetworkRun | None, memory: Memory) -> None:
        """Compare the layers of the first inference, unless the program has its own input."""
        if run is not None and self.applies and not self.has_own_input:
            self.layers = compare_layers(run, self.answer, memory)

    @property
    def has_own_input(self) -> bool:
        """Whether the program loads another input than the sample, not only some wrong words."""
        words = self.words
        if words is None:
            return False
        return self.takes_any_input or _OWN_INPUT_SHARE * words.replaced_inputs > words.blocks

    @property
    def takes_any_input(self) -> bool:
        """Whether the file is that of a program whose input may be any."""
        return self.words is not None and not self.words.blocks

    @property
    def applies(self) -> bool:
        """Whether the file belongs to the program and was compared with its words."""
        return self.words is not None and not self.words.stranger

    @property
    def all_words_right(self) -> bool:
        """Whether the program writes every word of the project and no other."""
        return self.applies and not self.wrong and self.later is None

    @property
    def wrong(self) -> list[WrongWord]:
        """The wrong words; those of the input count unless the program has to have another."""
        every = () if self.words is None else self.words.wrong
        other_input = self.takes_input and self.has_own_input
        return [word for word in every if not (other_input and is_input(word))]

    @property
    def has_results(self) -> bool:
        """Whether the results of the network were compared with the file."""
        compared = self.layers.compared if self.layers is not None else ()
        results = {layer.number for layer in self.answer.layers if layer.is_output}
        return bool(results) and results <= set(compared)

    @property
    def departs(self) -> bool:
        """Whether the output of a layer differs from the simulation."""
        return self.layers is not None and self.layers.first is not None

    @property
    def objection(self) -> str | None:
        """Say why the file does not belong to the program; None if it may."""
        if self.words is None:
            return None
        if self.words.stranger:
            return f"the words are not those of {self.file}, which is of another program"
        if not self.all_words_right:
            return f"the words differ from {self.file}"
        return f"a layer departs from {self.file}" if self.departs else None

    def output_addresses(self, addresses: AddressMap) -> frozenset[int]:
        """Return the addresses of the words that hold the results of the network."""
        results: set[int] = set()
        for layer in self.answer.layers:
            if layer.is_output:
                pixels = 4 * layer.step * np.arange(layer.shape[1] * layer.shape[2])
                for instance, lane, word in layer.places.tolist():
                    start = addresses.chip.data_address(instance, 4 * word)
                    start += addresses.apb_base + (4 * lane if layer.wide else 0)
                    results.update((start + pixels).tolist())
        return frozenset(results)

    def compare_unstarted(self, board: Board, *, stopped: bool) -> None:
        """Compare what a program has written whose network did not start.

        One that was `stopped` need not have written all. Programs with little in common with the
        file are not reported.
        """
        addresses = board.bus.addresses
        if self.words is not None or addresses is None:
            return
        empty = Memory(addresses.chip, addresses.apb_base)
        try:
            memory = accepted_writes(empty, board.bus.writes())
        except OtherChipError:  # the program's own error tells
            return
        self._compare_words(memory, written_so_far(memory, self.answer) if stopped else self.answer)
        if self.words is not None and self.words.stranger:
            self.words = None
        else:
            self.unstarted = memory

    def _compare_alone(self, memory: Memory, *, is_sample: bool) -> None:
        if self.words is None:
            self._compare_words(memory, self.answer if is_sample else self.answer.without_input())
        else:
            self._compare_later(memory)

    def _compare_later(self, memory: Memory) -> None:
        """Compare again what a program writes that changes the network; its input may change."""
        registers = frozenset(memory.registers.items())
        state = hash((memory.kernel_version, memory.bias.tobytes(), registers))
        if not self.all_words_right or state == self._compared_state:
            return
        self._compared_state = state
        comparison = compare_words(memory, self.answer, others=self.others)
        if comparison.stranger or not all(map(is_input, comparison.wrong)):
            self.later = comparison

    def _compare_words(self, memory: Memory, answer: Answer | None = None) -> None:
        try:
            self.words = compare_words(memory, answer or self.answer, others=self.others)
        except (ValueError, IndexError) as exc:
            raise AnswerError(
                "E850",
                f"the answer file is damaged ({exc})",
                self.file,
                "Generate the project again, or leave the file with --no-answer.",
            ) from None


def answer_of(project: Path, *, enabled: bool) -> AnswerCheck | None:
    """Return the check of a project's answer file; None if it has none, or unless it is `enabled`.

    Raises AnswerError: damaged (E850) or of a newer version (E851); OSError for what is no file.
    """
    path = project / FILE_NAME
    return AnswerCheck(read_answer(path)) if enabled and os.path.lexists(path) else None


def describe_answer(check: AnswerCheck, memory: Memory) -> Iterator[str]:
    """Yield lines on what differs from the answer file, or that nothing does."""
    words = check.words
    if words is None:
        return
    if words.stranger:
        yield (
            f"warning: {check.file} does not belong to this program and is left out: "
            f"{words.stranger}"
        )
        return
    layers = check.layers
    if check.unstarted is None and check.objection is None:
        compared = "" if layers is None else f", {_layers(layers.compared)}"
        yield f"As in {check.file}: {words.compared} words{compared}."
    if not words.wrong and check.unstarted is not None:
        following = next_word(memory, check.answer)
        phase, address = following or ("", 0)
        what = f"; next comes {phase}: 0x{address:08x}, {memory.addresses.describe(address)}"
        yield f"What the program has written is as in {check.file}{what if following else ''}."
    if words.wrong:
        yield from _describe_words(check, words, memory)
    if check.later is not None:
        others = (word for word in check.later.wrong if not is_input(word))
        first = next((describe_wrong(memory, check.answer, word) for word in others), "many words")
        yield f"The program has changed the network after the first inference: {first}"
    if check.has_own_input and not check.takes_any_input:
        yield (
            f"The program has an input of its own: the layers of {check.file} do not apply, only "
            "the program's own comparison counts."
        )
    if layers is not None and layers.first is not None:
        yield f"First layer that departs from {check.file}: {layers.first}"
        yield from describe_registers(memory, layers.first.layer.number)
    elif layers is not None and words.wrong:
        if layers.missing:
            yield f"Not executed: {_layers(layers.missing)}."
        yield f"No executed layer departs from {check.file}."
    for text in check.answer.left_out:
        yield f"note: {check.file} leaves out {text}"


def _describe_words(check: AnswerCheck, words: WordComparison, memory: Memory) -> Iterator[str]:
    shown = [word for word in words.wrong if not check.has_own_input or not is_input(word)]
    if shown:
        yield f"First wrong word: {describe_wrong(memory, check.answer, shown[0])}"
    for word in shown[1:SHOWN_WORDS]:
        yield f"  also {describe_wrong(memory, check.answer, word)}"
    if len(shown) > SHOWN_WORDS:
        yield f"  and {len(shown) - SHOWN_WORDS} more"
    if check.has_own_input and words.blocks:
        yield f"{words.wrong_inputs} of {words.blocks} blocks of the input differ from the sample."


def is_input(word: WrongWord) -> bool:
    """Whether a word is one of the input."""
    return word.phase == "load_input"


def _layers(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return "no layers"
    if len(numbers) == 1:
        return f"layer {numbers[0]}"
    if numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"layers {numbers[0]} to {numbers[-1]}"
    return f"layers {', '.join(map(str, numbers))}"


def refusal(check: AnswerCheck | None, *, words_changed: bool) -> str | None:
    """Return why a program fails that differs from its answer file; None if it does not fail.

    With `words_changed` words that differ on purpose do not count, nor do the layers behind them.
    """
    objection = None if check is None else check.objection
    if check is None or objection is None:
        return None
    sentence = f"{objection[0].upper()}{objection[1:]}, whatever the program reports."
    if check.all_words_right:
        return sentence
    return None if words_changed else f"{sentence} If that is on purpose: --words-changed."
