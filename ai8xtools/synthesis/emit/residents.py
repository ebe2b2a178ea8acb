"""What is added to a library that is in the accelerator together with others.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ai8xtools.answer import Answer
from ai8xtools.synthesis.emit.headers import arrays_header
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.residents import Turn, groups_of
from ai8xtools.writing.templates import render

EXPECTED = "sampleoutput.h"
"""What the name of the file with the known answer ends with."""


def shared_files(
    members: Sequence[tuple[Answer, Turn]], program: Program, options: ProjectOptions
) -> dict[str, str]:
    """Return the files that load several networks and let them take turns; the last one is that
    of `program`."""
    answers = [answer for answer, _ in members]
    prefix = answers[-1].symbol_prefix
    values = {
        "networks": [(answer.symbol_prefix, turn) for answer, turn in members],
        "groups": groups_of(answers), "prefix": prefix, "program": program, "options": options,
        "power": program.power,
    }  # fmt: skip
    samples = [
        (f"{a.symbol_prefix.upper()}_SAMPLE", a.sample.reshape(-1).view(np.uint8))
        for a in answers
        if a.sample is not None
    ]
    return {
        f"{prefix}_all.h": render("c/all.h.j2", **values),
        f"{prefix}_all.c": render("c/all.c.j2", **values),
        f"{prefix}_all_samples.h": arrays_header("Samples", options, samples),
        options.program_filename: render("c/all_main.c.j2", **values),
    }
