"""The network of a project without its program: `emulate.py --accelerator-only`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.evidence import sample_evidence
from ai8xtools.commands.emulate.inputs import random_input, read_inputs
from ai8xtools.commands.emulate.known_answer import AnswerCheck, answer_of, describe_answer, refusal
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.loaded import network_alone
from ai8xtools.commands.emulate.runs import WRONG_REGISTERS, show_run
from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.emulator import NetworkAlone
from ai8xtools.emulator.checks.finding import LayerFinding
from ai8xtools.emulator.machine.execution import LayerRun

_SHOWN_WORDS = 16
_MOST_CLASSES = 1000
_ONE = 1 << 14  # of 32-bit outputs: 17 bits in front of the point, 14 behind it


def emulate_alone(project: Path, options: EmulateOptions) -> int:
    """Run the network of a project alone; return 1 if its output is not as expected."""
    network = network_alone(project, options)
    check = answer_of(project, enabled=options.answer)
    if check is not None:
        check.watch_alone(network)
    images, origin = _images(project, network, options)
    print(f"Input: {'x'.join(map(str, network.input_shape))} (channels, rows, columns){origin}")
    errors: list[LayerFinding] = []
    try:
        for number, image in enumerate(images):
            if len(images) > 1:
                print(f"\nInput {number}:")
            run = network.run(image)
            errors += run.errors
            if number == 0:
                memory = network.board.accelerator.memory
                show_run(run, memory, options, network.comparison is not False)
            if image is None and check is not None:
                check.compare_layers(run, network.board.accelerator.memory)
            print("\n".join(_output(run.layers[-1], network.output_words())))
    finally:  # also, and above all, of a network that goes wrong
        show_words(check, network)
    reason = WRONG_REGISTERS if errors else refusal(check, words_changed=options.words_changed)
    if reason is not None:
        print(reason)
        tell("FAIL")
        return 1
    if not network.comparison:
        return _without_sample(network, len(images), origin)
    rests = ""
    if check is None or not (check.all_words_right and check.has_results):
        rests = f" {sample_evidence(network.sample_memory, run, network.compared)}"
    tell(f"PASS{rests} (1 inference of the network alone)")
    return 0


def show_words(check: AnswerCheck | None, network: NetworkAlone) -> None:
    """Show what differs from the answer file, if there is one."""
    if check is not None:
        for line in describe_answer(check, network.board.accelerator.memory):
            print(line)


def _images(
    project: Path, network: NetworkAlone, options: EmulateOptions
) -> tuple[Sequence[NDArray[np.int8] | None], str]:
    """Return the inputs (None: the sample of the project), and a note on them."""
    if options.input is not None:
        trained = trained_on(project)
        how = None if trained is None else trained.preparation
        return read_inputs(options.input, network.input_shape, how), ""
    if network.has_sample:
        return [None], ""
    return [random_input(network.input_shape)], "; random, as the project has no sample"


def _output(last: LayerRun, words: list[int]) -> Iterator[str]:
    """Yield the words that the network's unload function reads, and the classes they stand for."""
    output = last.output
    yield f"Output of layer {last.config.layer}: {'x'.join(map(str, output.shape))}"
    if words:
        shown = " ".join(f"0x{word:08x}" for word in words[:_SHOWN_WORDS])
        more = f" ... ({len(words)} words)" if len(words) > _SHOWN_WORDS else ""
        yield f"{shown}{more}"
    values = output.reshape(len(output), -1)
    if values.shape[1] != 1 or len(values) > _MOST_CLASSES:
        return
    scores = values[:, 0].astype(float) / (_ONE if last.config.output.wide else 1 << 7)
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    for number, value in enumerate(values[:, 0].tolist()):
        yield f"[{value:7}] -> Class {number}: {100 * shares[number]:.1f}%"
    best = int(np.argmax(values[:, 0]))
    yield f"Class {best} ({100 * shares[best]:.1f}%)"


def _without_sample(network: NetworkAlone, inferences: int, origin: str) -> int:
    """Print the verdict if the output is not as expected, or there is no expected output."""
    if network.comparison is not None:
        tell("FAIL")
        return 1
    count = "1 inference" if inferences == 1 else f"{inferences} inferences"
    data = "; the input is random" if origin else ""
    nothing = "there is nothing to compare the output with"
    tell(f"DONE ({count} of the network alone{data}; {nothing})")
    return 0
