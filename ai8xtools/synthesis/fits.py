"""Whether a network fits a chip and what it costs there, before it has been trained.

Values of weights and data do not matter; they are neither simulated nor verified.
Source: docs/does-not-fit.md, "Before training".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.emit.fitting import fitted
from ai8xtools.synthesis.emit.footprint import footprint
from ai8xtools.synthesis.encode import encode
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.measured_energy import PUBLISHED, EnergyOptions
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Source
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.simulate import Activations
from ai8xtools.synthesis.summarize.energy import energy_share, inference_counts
from ai8xtools.synthesis.summarize.statistics import statistics
from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate
from device import Chip
from device.channels import passes
from device.chip import WORD_BYTES
from device.energy import Counts, Energies
from device.times import copying, inference


@frozen
class LayerCost:
    """A layer: columns of the kernel memory in each of its processors, bytes of its result in each
    data memory, bytes of its bias, estimated cycles, and its part of the energy."""

    name: str
    columns: int
    data_bytes: int
    bias_bytes: int
    cycles: int
    energy_share: float


@frozen
class Use:
    """How much of something is used, of how much there is."""

    used: int
    available: int

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.used <= self.available


@frozen
class ChipFit:
    """A network on a chip: `reasons` why it does not fit, `errors` that say so, else its costs.

    `memories` are by name: kernel columns, data, bias, flash, SRAM in bytes. `load_words` are the
    words of weights and biases that the core writes once, `input_words` those of each inference.
    `time` is that of an inference without loading; times are in milliseconds. `energies` follow
    from `counts`, and `energy_source` is where their constants come from.
    """

    chip: str
    reasons: tuple[str, ...]
    layers: tuple[LayerCost, ...] = ()
    memories: Mapping[str, Use] | None = None
    cycles: int = 0
    clock_mhz: float = 0
    load_words: int = 0
    input_words: int = 0
    time: Estimate = Estimate()
    load_time: Estimate = Estimate()
    input_time: Estimate = Estimate()
    counts: Counts | None = None
    energies: Energies | None = None
    energy_source: str = ""
    sleep_is_known: bool = False
    errors: tuple[Diagnostic, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it can run on the chip."""
        return not self.reasons


def judge(
    source: Source,
    chip: Chip,
    resolving: ResolveOptions,
    encoding: EncodeOptions,
    project: ProjectOptions,
    energy: EnergyOptions = PUBLISHED,
) -> ChipFit:
    """Return what a network takes of a chip, or why it does not fit."""
    try:
        network, placement, _ = examine(source, chip, resolving, encoding)
    except DiagnosticError as refusal:
        errors = tuple(d for d in refusal.diagnostics if d.severity.is_error)
        return ChipFit(chip.name, tuple(d.message for d in errors), errors=errors)
    outputs = {layer.index: _nothing(layer) for layer in network.layers}
    program = encode(network, placement, Activations(outputs, {}), chip, encoding)
    memories = _memories(network, placement, chip, program, project)
    reasons = tuple(
        f"{name}: {memories[name].used:,} of {memories[name].available:,} bytes"
        for name in ("flash", "SRAM")
        if not memories[name].fits
    )
    mapped = map_network(network, placement.layout, chip)
    totals = statistics(mapped, placement, encoding)
    counts = inference_counts(totals, program)
    power = program.power
    entering = power.clock_mhz if program.fifo else power.loading_mhz
    measured = energy.calibration(chip, counts, power.clock_mhz)
    times: tuple[float | None, ...] = (None, None, None)
    if measured is not None:
        times = measured.time_factor, measured.word_ns, measured.input_ns
    return ChipFit(
        chip.name,
        reasons,
        tuple(
            _cost(network.layer(one.index), placement, one.estimate,
                  energy_share(one, counts, measured))
            for one in totals.layers
        ),
        memories,
        counts.cycles,
        power.clock_mhz,
        counts.load_words,
        counts.input_words,
        inference(counts.cycles, power.clock_mhz, pipelined=power.pipelined,
                  measured=times[0]),
        copying(counts.load_words, chip, power.loading_mhz, times[1]),
        copying(counts.input_words, chip, entering, times[2]),
        counts,
        energy.of(counts, program),
        energy.source(chip),
        chip.energy_is_published,
    )  # fmt: skip


def _nothing(layer: Layer) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return a result of the right shape; every value differs from its neighbour."""
    shape = (layer.out_channels, *layer.out_dim)
    return np.resize(np.arange(127, dtype=np.int64), shape)


def _cost(layer: Layer, placement: Placement, cycles: int, share: float) -> LayerCost:
    """Return what a layer takes."""
    bias = placement.biases.get(layer.index)
    return LayerCost(
        layer.name or str(layer.index),
        placement.kernels[layer.index].length,
        _result_bytes(layer),
        0 if layer.bias is None or bias is None else layer.bias.size,
        cycles,
        share,
    )


def _result_bytes(layer: Layer) -> int:
    rows, columns = layer.out_dim
    return rows * columns * passes(layer.out_channels) * layer.output_width // 8 * WORD_BYTES


def _memories(
    network: Network,
    placement: Placement,
    chip: Chip,
    program: Program,
    project: ProjectOptions,
) -> dict[str, Use]:
    """Return what is used of each memory."""
    columns = int((placement.kernel_memory.owner >= 0).sum(axis=1).max())
    ends = []
    for layer in network.layers:
        where = placement.layout.layers[layer.index]
        gaps = (where.write_gap or 0) + 1
        ends.append((where.out_offset or 0) + _result_bytes(layer) * gaps)
    fitting = fitted(program, project)
    project_use = footprint(fitting.program, fitting.options)
    return {
        "kernel columns": Use(columns, chip.kernel_columns),
        "data": Use(min(max(ends), chip.instance_bytes), chip.instance_bytes),
        "bias": Use(sum(m.size for m in placement.bias_memory), 4 * chip.bias_bytes),
        "flash": Use(project_use.flash.used, project_use.flash.size),
        "SRAM": Use(project_use.sram.used, project_use.sram.size),
    }
