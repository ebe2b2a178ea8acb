"""What an inference consists of, for estimates of its energy.

Source: docs/hardware/execution.md, "Measured energy".
"""

from __future__ import annotations

from collections.abc import Iterable

from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summarize.statistics import STARTUP_CYCLES
from device.chip import WORD_BYTES
from device.energy import Counts


def inference_counts(
    layers: Iterable[tuple[MappedLayer, int]], load_bytes: int, program: Program
) -> Counts:
    """Return the counts of layers with their cycles, and of bytes of weights and biases."""
    costs = list(layers)
    stored = sum(block.words.size for block in program.inputs)
    pushed = sum(stream.stored.size for stream in program.fifo)
    return Counts(
        sum(cycles * layer.processors.bit_count() for layer, cycles in costs),
        sum(cycles for _, cycles in costs) + STARTUP_CYCLES,
        -(-load_bytes // WORD_BYTES),
        stored + pushed,
    )
