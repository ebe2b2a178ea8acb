"""Firmware of a microcontroller on the user's own data: `emulate.py DIR --input KIND:PATH`.

main() runs once for each sample, which takes the place of the program's own, and prints its output.
Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.own_data import show_accuracy, test_samples
from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.plain import PlainProgram, run_plain

_INPUT = "input"
"""The array of the program's sample, in the order row, column, channel."""
_OUTPUT = re.compile(r"Output of final layer:\n((?:\s*-?\d+)+)")


def emulate_plain_data(project: Path, program: PlainProgram, name: str, time_limit: float) -> int:
    """Run a program on the test samples of KIND:PATH; return 1 if its own sample fails.

    Raises EmulatorError E805 for a program that does not hold its sample in an array or print what
    the network computes, and what `test_samples` raises.
    """
    trained = trained_on(project)
    if trained is not None and trained.is_marked:
        raise _refused(project, "the program prints a part of its output only")
    samples = test_samples(name, trained, plain=True)
    for line in samples.notes:
        print(line)
    sizes = {called: size for _, size, called in program.image.objects}
    shape = samples.images.shape[1:]
    passed = run_plain(program, time_limit=time_limit).passed
    if sizes.get(_INPUT) != int(np.prod(shape)):
        raise _refused(project, f"the program has no array {_INPUT} of {np.prod(shape)} bytes")
    values = []
    for image in samples.images:
        content = np.ascontiguousarray(image.transpose(1, 2, 0)).tobytes()
        text = run_plain(program, time_limit=time_limit, contents={_INPUT: content}).text
        output = _OUTPUT.search(text)
        if output is None:
            raise _refused(project, "the program does not print its output")
        values.append([int(word) for word in output[1].split()])
    print(f"main() ran on each of {len(values)} inputs of {'x'.join(map(str, shape))}")
    doubt = show_accuracy(np.array(values, np.int64), samples.labels, samples)
    verdict = f"DONE ({len(values)} inputs)"
    if not passed:
        print("The output of the project's own sample is not as the project expects it.")
        verdict = "FAIL"
    tell(verdict, doubt)
    return int(not passed)


def _refused(project: Path, reason: str) -> EmulatorError:
    return EmulatorError(
        "E805", f"{reason}, so that it cannot be run on other samples", str(project),
        "Generate it with a main program of its own, and in one part.",
    )  # fmt: skip
