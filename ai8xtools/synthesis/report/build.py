"""Gather the values of a report from those of the stages.

Source: docs/hardware/arithmetic.md, "Operation counts"; docs/hardware/memory.md, "Kernel memory"
and "Data memory".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork, map_network
from ai8xtools.synthesis.measured_energy import PUBLISHED, EnergyOptions
from ai8xtools.synthesis.memory import DataRange, MemoryStep
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.place.lifetimes import memory_steps, sources
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.report.costs import layer_costs, time_line
from ai8xtools.synthesis.report.kernels import kernel_areas
from ai8xtools.synthesis.report.values import (
    InstanceUse,
    LayerCost,
    LayerRow,
    Need,
    OutputRange,
    Part,
    Report,
    Usage,
)
from ai8xtools.synthesis.simulate import Activations
from ai8xtools.synthesis.summarize.energy import energy_share, inference_counts
from ai8xtools.synthesis.summarize.statistics import (
    STARTUP_CYCLES,
    layer_operations,
    statistics,
    weight_bytes,
)
from ai8xtools.values.accuracy import Measured
from device import Chip
from device.chip import GROUPS, INSTANCES, WORD_BYTES
from device.energy import Energies
from device.times import inference


def build_report(
    network: Network,
    placement: Placement,
    chip: Chip,
    options: EncodeOptions,
    *,
    name: str,
    command_line: str = "",
    tool: str = "",
    program: Program | None = None,
    activations: Activations | None = None,
    diagnostics: Iterable[Diagnostic] = (),
    core: Iterable[tuple[str, int, int]] = (),
    accuracy: Measured | None = None,
    energy: EnergyOptions = PUBLISHED,
) -> Report:
    """Return the report of a placed network.

    Without a program (the network was refused) the latency is not known, and `placement` may lack
    layers for which there was no room. `activations` are what the layers compute for the sample.
    `core` are the memories of the core: name, bytes that the program takes, and size in bytes;
    `accuracy` is that on test samples, if it is known.
    """
    mapped = map_network(network, placement.layout, chip)
    power = None if program is None else program.power
    costs = {} if program is None else layer_costs(mapped, placement)
    cycles = STARTUP_CYCLES + sum(cost.cycles for cost in costs.values()) if costs else None
    outputs = {} if activations is None else activations.outputs
    rows = tuple(_rows(mapped, placement, costs, outputs))
    spent: tuple[Part, ...] = ()
    energies = None
    if program is not None and costs:
        totals = statistics(mapped, placement, options)
        counts = inference_counts(totals, program)
        energies = energy.of(counts, program)
        measured = energy.calibration(chip, counts, program.power.clock_mhz)
        shares = {one.index: energy_share(one, counts, measured) for one in totals.layers}
        spent = tuple(_energy_parts(energies, shares))
    steps = tuple(memory_steps(mapped, placement.rings))
    instances = _instance_uses(steps)
    return Report(
        name=name,
        arch=network.arch,
        chip=chip,
        command_line=command_line,
        tool=tool,
        operations=sum(row.operations for row in rows if row.executed),
        products=sum(layer_operations(mapped.layer(i)).macc for i in mapped.simulated),
        needs=(
            *_accelerator_needs(mapped, placement, options, instances),
            *(Need(f"{name} of the core", Usage(used, total)) for name, used, total in core),
        ),
        cycles=cycles,
        clock_mhz=None if power is None else power.clock_mhz,
        latency=None
        if power is None or cycles is None
        else inference(cycles, power.clock_mhz, pipelined=power.pipelined),
        energies=energies,
        energy=energy,
        layers=rows,
        kernel_areas=tuple(kernel_areas(placement.kernel_memory.owner)),
        memory=steps,
        instances=instances,
        diagnostics=tuple(diagnostics),
        time_line=() if program is None else tuple(time_line(program, mapped, costs)),
        energy_parts=spent,
        reasons=tuple(
            (layer.index, key, text)
            for layer in network.executed()
            for key, text in placement.layout.reasons.get(layer.index, {}).items()
        ),
        accuracy=accuracy,
    )


def _energy_parts(energies: Energies, shares: Mapping[int, float]) -> Iterator[Part]:
    """Yield what loading once, the input and each layer take."""
    micro = 1e6
    yield Part("load weights", energies.weights.value * micro, once=True)
    yield Part("load input", energies.input.value * micro)
    for index, share in shares.items():
        yield Part("", energies.inference.value * share * micro, index)


def _accelerator_needs(
    network: MappedNetwork,
    placement: Placement,
    options: EncodeOptions,
    instances: Iterable[InstanceUse],
) -> Iterator[Need]:
    """Yield what is taken of the memories of the accelerator."""
    chip = network.chip
    owned = (placement.kernel_memory.owner >= 0).sum(axis=1)
    columns = (
        Usage(int(used), chip.kernel_capacity(processor)) for processor, used in enumerate(owned)
    )
    weights = Usage(weight_bytes(network, options.place.deduplicate), chip.kernel_bytes)
    biases = sum(memory.size for memory in placement.bias_memory)
    peak = max(use.peak_bytes for use in instances)
    fullest = max(columns, key=lambda use: use.share)
    yield Need("Kernel memory, fullest processor", fullest, "columns")
    yield Need("Weights", weights)
    yield Need("Bias memory", Usage(biases, GROUPS * chip.bias_bytes))
    yield Need("Data memory, fullest instance", Usage(peak, chip.instance_bytes))


def _rows(
    network: MappedNetwork,
    placement: Placement,
    costs: Mapping[int, LayerCost],
    outputs: Mapping[int, NDArray[np.int64]],
) -> Iterator[LayerRow]:
    executed = frozenset(network.order)
    counts = {layer.index: layer_operations(layer).total for layer in network.layers}
    measure = {index: cost.cycles for index, cost in costs.items()} or {
        index: count for index, count in counts.items() if index in executed
    }
    whole = max(sum(measure.values()), 1)
    for layer in network.layers:
        runs = layer.index in executed
        weights = layer.hardware.weights
        yield LayerRow(
            index=layer.index,
            name=layer.name,
            line=layer.place.line,
            executed=runs,
            streaming=layer.streaming,
            operator=_operator_text(layer),
            sources=sources(layer, network) if runs else (),
            operands=layer.operands,
            input=(layer.in_channels, *layer.in_dim),
            pooling=_pooling_text(layer),
            output=(layer.out_channels, *layer.out_dim),
            output_width=layer.output_width,
            operations=counts[layer.index],
            in_passes=layer.in_passes,
            out_passes=layer.out_passes,
            processors=layer.processors.bit_count(),
            shift=layer.shift,
            weight_bits=layer.weight_bits,
            weight_bytes=0 if weights is None else weights.size * abs(layer.weight_bits) // 8,
            cost=costs.get(layer.index),
            share=measure.get(layer.index, 0) / whole,
            placed=(weights is None or placement.kernels[layer.index].length > 0)
            and (layer.bias is None or layer.index in placement.biases),
            result=output_range(outputs[layer.index], wide=layer.output_width != 8)
            if runs and layer.index in outputs
            else None,
        )


def output_range(values: NDArray[np.int64], *, wide: bool) -> OutputRange:
    """Return what a layer computed, in the type of its output: int32 if that is `wide`."""
    kind = np.iinfo(np.int32 if wide else np.int8)
    low, high = int(values.min()), int(values.max())
    return OutputRange(
        values.astype(kind.dtype),
        low,
        high,
        (int(kind.min), int(kind.max)),
        float(((values <= kind.min) | (values >= kind.max)).mean()),
        float((values == 0).mean()),
    )


def _operator_text(layer: MappedLayer) -> str:
    """Return the operator with kernel, stride and padding as far as they are not the usual."""
    parts = [str(layer.combination)] if layer.combination else []
    if layer.has_weights:
        linear = layer.operator.fully_connected
        parts.append(str(layer.operator) if linear else f"{layer.operator} {_size(layer.kernel)}")
    elif not parts:
        parts.append(str(layer.operator))
    details = [
        f"stride {layer.stride[0]}" if max(layer.stride) > 1 else "",
        f"pad {_size(layer.pad)}" if any(layer.pad) else "",
        f"dilation {layer.dilation}" if layer.dilation > 1 else "",
        "depth-wise" if layer.depthwise else "",
        "flatten" if layer.flatten else "",
        "streaming" if layer.streaming else "",
        str(layer.activation) if layer.activation else "",
    ]
    return ", ".join([" + ".join(parts), *filter(None, details)])


def _pooling_text(layer: MappedLayer) -> str:
    pooling = layer.pooling
    if not pooling.active and pooling.stride == (1, 1):
        return ""
    kind = "average" if pooling.average else "max"
    window = [f"{kind} {_size(pooling.window)}"] if pooling.active else []
    text = ", ".join([*window, f"stride {_size(pooling.stride)}"])
    return text + (f", dilation {_size(pooling.dilation)}" if pooling.dilation != (1, 1) else "")


def _size(size: tuple[int, int]) -> str:
    """Return one number for squares, else rows x columns."""
    return str(size[0]) if size[0] == size[1] else f"{size[0]}×{size[1]}"


def _instance_uses(steps: Iterable[MemoryStep]) -> tuple[InstanceUse, ...]:
    """Return the fullest moment of every instance, the first one of several."""
    uses = [InstanceUse(i, 0, None, 0) for i in range(INSTANCES)]
    sizes: dict[tuple[DataRange, ...], int] = {}  # most instances hold the same
    for step in steps:
        for i, use in enumerate(uses):
            here = tuple(data for data in step.ranges if i in data.instances)
            if not here:
                continue
            if here not in sizes:
                sizes[here] = WORD_BYTES * len(np.unique(np.concatenate([d.words() for d in here])))
            end = max(use.end, *(data.end for data in here))
            fuller = sizes[here] > use.peak_bytes
            uses[i] = (
                InstanceUse(i, sizes[here], step.layer, end) if fuller else replace(use, end=end)
            )
    return tuple(uses)
