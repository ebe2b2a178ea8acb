"""log.txt: what the network costs and, verbose, every register and the data of every layer.

Source: docs/generated-project.md, "The log".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit.footprint import format_footprint
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.statistics import format_latency, format_statistics
from ai8xtools.synthesis.measured_energy import EnergyOptions
from ai8xtools.synthesis.program import Block, Program, Write
from ai8xtools.synthesis.summarize.energy import inference_counts
from ai8xtools.synthesis.summary import LayerLog, Summary
from ai8xtools.writing.arrays import matrix_lines
from ai8xtools.writing.templates import comment
from device import Chip

_LABEL_WIDTH = 5
_LAYER_LABEL_WIDTH = 10


def log_text(program: Program, summary: Summary, options: ProjectOptions) -> str:
    """Return the text of the log; the details only if it is verbose."""
    chip = program.chip.name
    if not options.simulated:
        chip += f", interface of SDK {options.sdk}"
    parts = [f"{comment(options.command_line)}\n{chip}\n\n{options.name}\n\n"]
    if options.verbose and options.messages:
        parts.append("Messages:\n" + "\n".join(options.messages) + "\n\n")
    if options.verbose:
        parts += _details(program, summary, options)
    lines = format_statistics(summary.statistics)
    if not options.simulated:
        lines += [*format_footprint(program, options), *_energy(program, summary, options.measured)]
    parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def _details(program: Program, summary: Summary, options: ProjectOptions) -> Iterator[str]:
    yield f"Kernel map:\n{kernel_map(program.chip, summary)}\n"
    if summary.memory_log:
        yield "Data memory (byte offsets in memory instances):\n"
        yield "\n".join(summary.memory_log) + "\n\n"
    yield f"Global registers:\n{_registers(program.init, program, _LABEL_WIDTH)}\n"
    for heading, rows in summary.configuration:
        yield f"{heading}:\n"
        yield "".join(f"{name:<28} = {value}\n" for name, value in rows)
        yield "\n"
    own, others = _by_layer(program.configure)
    layers = _registers(own, program, _LAYER_LABEL_WIDTH)
    yield f"Layer register configuration:\n{layers}\n"
    yield f"Global registers:\n{_registers((*others, *program.start), program, _LABEL_WIDTH)}\n"
    final = summary.last_layer.index
    outputs = {final if layer.layer < 0 else layer.layer for layer in program.unload}
    for layer in summary.layer_logs:
        matrices = not options.short_log or layer.index in outputs
        yield from _layer(layer, options.kernel_format, matrices=matrices)
    latency = format_latency(summary.statistics)
    if latency:
        yield "\n".join(latency) + "\n\n"


def _energy(program: Program, summary: Summary, measured: EnergyOptions) -> Iterator[str]:
    """Yield the energy of an inference, and of what goes before it."""
    spent = measured.of(inference_counts(summary.statistics, program), program)
    inference, entry, weights = (
        estimate.in_units("J") for estimate in (spent.inference, spent.input, spent.weights)
    )
    yield (
        f"Energy:        {inference} for an inference, {entry} for its input, {weights} to load "
        f"weights once, {measured.source(program.chip)} constants; docs/energy.md"
    )


def _by_layer(blocks: Iterable[Block]) -> tuple[list[Block], list[Block]]:
    """Tell the blocks that write registers of layers from the others."""
    own: list[Block] = []
    others: list[Block] = []
    for block in blocks:
        of_layer = any(isinstance(s, Write) and s.label.startswith("L") for s in block.steps)
        (own if of_layer else others).append(block)
    return own, others


def _registers(blocks: Iterable[Block], program: Program, width: int) -> str:
    """Return one line per register write; those that the program leaves out end with a star."""
    lines = []
    for block in blocks:
        for step in block.steps:
            if isinstance(step, Write):
                offset = step.address - program.apb_base
                star = " *" if step.skipped else ""
                lines.append(
                    f"{step.label:<{width}} ({offset:08x}): {step.value:08x}"
                    f" // {step.comment}{star}\n"
                )
    return "".join(lines)


def kernel_map(chip: Chip, summary: Summary) -> str:
    """Return one line per processor with the layer that owns each kernel column, X: none.

    Source: docs/hardware/memory.md, "Writing kernels".
    """
    count = len(summary.statistics.layers)
    owners = summary.kernel_map
    count = max(count, int(owners.max(initial=-1)) + 1)
    width = 1 if count < 10 else len(str(count)) + 1
    names = ["X", *map(str, range(count))]
    cells = np.array([name.rjust(width).encode() for name in names], f"S{width}")
    rows = cells[owners.astype(np.intp) + 1].view(np.uint8).reshape(len(owners), -1)
    capacities = [chip.kernel_capacity(p) for p in range(len(owners))]
    rule = "-" * (width * max(capacities)) + "\n"
    lines = (
        row[: width * capacity].tobytes().decode("ascii") + "\n"
        for row, capacity in zip(rows, capacities, strict=True)
    )
    return rule + "".join(lines) + rule


def _layer(layer: LayerLog, kernel_format: str | None, *, matrices: bool) -> Iterator[str]:
    """Yield the data of a layer: sizes, and the integers themselves if asked."""
    yield f"LAYER {layer.index} ({layer.title})...\n\n"
    parts = (
        ("INPUT", layer.input),
        ("WEIGHTS", layer.weights),
        ("BIAS", layer.bias),
        ("FULL-RES OUTPUT", layer.accumulator),
        ("OUTPUT BEFORE ACTIVATION", layer.unactivated),
        ("OUTPUT", layer.output),
    )
    for name, values in parts:
        if values is not None:
            size = "x".join(map(str, values.shape))
            yield f"{name}, {size}\n"
            if matrices:
                yield _matrices(values, kernel_format if name == "WEIGHTS" else None)
            yield "\n"


def _matrices(values: NDArray[np.int64], number_format: str | None = None) -> str:
    """Return an array as matrices of its last two dimensions, separated by empty lines.

    Last dimensions of 1x1 are dropped; a vector becomes one row. Without a format numbers are
    right-aligned.
    """
    if values.ndim > 2 and values.shape[-2:] == (1, 1):
        values = values.reshape(values.shape[:-2])
    if values.ndim == 1:
        values = values[np.newaxis]
    stacked = values.reshape(-1, values.shape[-2], values.shape[-1])
    if number_format is not None:
        return "\n".join(
            "".join(" ".join(map(number_format.format, row)) + "\n" for row in matrix)
            for matrix in stacked.tolist()
        )
    text = matrix_lines(stacked.reshape(-1, stacked.shape[-1]))
    if len(stacked) == 1:
        return text
    size = len(text) // len(stacked)
    return "\n".join(text[start : start + size] for start in range(0, len(text), size))
