"""What an inference consists of, for estimates of its energy.

Source: docs/hardware/execution.md, "Measured energy".
"""

from __future__ import annotations

from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import LayerStatistics, Statistics
from device.chip import WORD_BYTES
from device.energy import Calibration, Counts, model_joules


def inference_counts(totals: Statistics, program: Program) -> Counts:
    """Return the counts of a network and its program."""
    stored = sum(block.words.size for block in program.inputs)
    pushed = sum(stream.stored.size for stream in program.fifo)
    return Counts(
        sum(layer.estimate * layer.processors for layer in totals.layers),
        sum(layer.estimate for layer in totals.layers) + totals.startup_cycles,
        -(-(totals.weight_bytes + totals.bias_bytes) // WORD_BYTES),
        stored + pushed,
    )


def energy_share(layer: LayerStatistics, whole: Counts, measured: Calibration | None) -> float:
    """Return the part of a layer in the energy of the whole inference."""
    own = Counts(layer.estimate * layer.processors, layer.estimate, 0, 0)
    joules = model_joules if measured is None else measured.joules
    return joules(own) / joules(whole)
