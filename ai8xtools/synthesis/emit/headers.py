"""weights.h, sampledata.h, sampleoutput.h: macros that hold arrays.

Source: docs/generated-project.md, "Arrays".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit.expected import cut, record_stream
from ai8xtools.synthesis.emit.kernels import block_list, processor_arrays
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import Summary
from ai8xtools.values import frozen
from ai8xtools.writing.arrays import macro_lines
from ai8xtools.writing.templates import render

NamedArray = tuple[str, NDArray[np.uint8] | NDArray[np.uint32]]

_WORDS_PER_LINE = 8
_BYTES_PER_LINE = 16


@frozen
class Macro:
    """A macro: its name and its formatted values."""

    name: str
    lines: str


def weights_header(program: Program, options: ProjectOptions) -> str:
    """Return the biases of each group and the weights."""
    macros: list[NamedArray] = [(f"BIAS_{b.group}", b.values) for b in program.biases]
    if options.old_kernel_loader:
        macros += [(f"KERNELS_{a.processor}", a.words) for a in processor_arrays(program)]
    else:
        macros.append(("KERNELS", block_list(program)))
    return arrays_header("Weights and biases", options, macros)


def sample_header(program: Program, summary: Summary, options: ProjectOptions) -> str:
    """Return the sample; without macros where a fixed pattern replaces it."""
    arrays: list[NamedArray] = [(f"SAMPLE_INPUT_{s.number}", s.stored) for s in program.fifo]
    if not options.fixed_input:
        for number, blocks in groupby(program.inputs, lambda block: block.number):
            words = np.concatenate([block.words for block in blocks])
            arrays.append((f"SAMPLE_INPUT_{number}", words))
    return arrays_header(f"Sample input, {summary.input_text}", options, arrays)


def expected_header(program: Program, options: ProjectOptions) -> str:
    """Return the words that the network must leave in data memory for the sample."""
    words = record_stream(cut(program.expected, options.max_checklines))
    return arrays_header("Expected output of the sample", options, [("SAMPLE_OUTPUT", words)])


def arrays_header(title: str, options: ProjectOptions, macros: Sequence[NamedArray]) -> str:
    """Return a header with macros that hold arrays, by name."""
    formatted = [
        Macro(name, macro_lines(v, _BYTES_PER_LINE if v.itemsize == 1 else _WORDS_PER_LINE))
        for name, v in macros
    ]
    return render("c/arrays.h.j2", title=title, options=options, macros=formatted)
