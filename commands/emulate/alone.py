"""The network of a project without its program: `emulate.py --accelerator-only`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from commands.emulate.arguments import EmulateOptions
from commands.emulate.inputs import read_inputs
from commands.emulate.runs import WRONG_REGISTERS, show_run
from commands.emulate.trained_on import trained_on
from emulator import NetworkAlone
from emulator.machine.execution import LayerRun

_SHOWN_WORDS = 16
_MOST_CLASSES = 1000
_ONE = 1 << 14  # of 32-bit outputs: 17 bits in front of the point, 14 behind it


def emulate_alone(project: Path, options: EmulateOptions) -> int:
    """Run the network of a project alone; return 1 if its output is not as expected."""
    network = NetworkAlone(
        project, options.chip, options.apb_base, options.tree, options.time_limit_s
    )
    for note in network.notes:
        print(f"note: {note}")
    shape, known = network.input_shape, trained_on(project)
    images = (
        [None]
        if options.input is None
        else read_inputs(options.input, shape, None if known is None else known.preparation)
    )
    print(f"Input: {'x'.join(map(str, shape))} (channels, rows, columns)")
    wrong = False
    for number, image in enumerate(images):
        if len(images) > 1:
            print(f"\nInput {number}:")
        run = network.run(image)
        wrong |= bool(run.errors)
        if number == 0:
            show_run(
                run, network.board.accelerator.memory, options, network.comparison is not False
            )
        print("\n".join(_output(run.layers[-1], network.output_words())))
    if wrong:
        print(WRONG_REGISTERS, "FAIL", sep="\n")
        return 1
    return _verdict(network, len(images))


def _output(last: LayerRun, words: list[int]) -> Iterator[str]:
    """Yield the words that the network's function reads out, and what they say of classes."""
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


def _verdict(network: NetworkAlone, inferences: int) -> int:
    count = "1 inference" if inferences == 1 else f"{inferences} inferences"
    if network.comparison is None:
        print(f"DONE ({count} of the network alone; there is nothing to compare the output with)")
        return 0
    print(f"PASS ({count} of the network alone)" if network.comparison else "FAIL")
    return 0 if network.comparison else 1
