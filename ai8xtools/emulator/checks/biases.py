"""Biases that were not loaded.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import (
    LayerFinding,
    LayerReport,
    Severity,
    WrongField,
    field_finding,
)
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.weights import depthwise_bias, layer_bias
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import BIAS
from device.chip import PROCESSORS_PER_GROUP

Integers = NDArray[np.int64]


def check_biases(
    report: LayerReport, group: Integers, index: Integers, used: NDArray[np.bool_]
) -> None:
    """Report biases of outputs in use that were never loaded.

    `group` and `index` tell where the bias of each output is; `index` is -1 without one.
    """
    memory, size = report.memory, report.memory.chip.bias_bytes
    lacking = used & (index >= 0)
    lacking &= (index >= size) | ~memory.bias_written[group, index % size]
    if not lacking.any():
        return
    first = np.unravel_index(np.argmax(lacking), lacking.shape)
    where, number = int(group[first]), int(index[first])
    address = memory.addresses.apb_base + memory.chip.bias_address(where, number)
    text = (
        f"bias {number} of group {where} at 0x{address:08x} was never loaded "
        f"({np.count_nonzero(lacking)} such biases)"
    )
    report.add(text, where * PROCESSORS_PER_GROUP, address)


def bias_hints(
    memory: Memory, layers: Sequence[LayerConfig], findings: Sequence[LayerFinding]
) -> Iterator[LayerFinding]:
    """Say which field is wrong where biases were never loaded, or where no layer reads those
    loaded.

    `findings` are those of the layers; they name the layers that lack biases.
    """
    complaints = {(finding.layer, _group_of(memory, finding)) for finding in findings}
    for group, written in enumerate(memory.bias_written):
        if written.all():
            continue  # a memory test cleared them
        used = {config.layer: _places(memory, config, group) for config in layers}
        spare = sorted(set(np.flatnonzero(written).tolist()).difference(*used.values()))
        without = [config for config in layers if not used[config.layer] and _outputs(config)]
        fitting = [config for config in without if len(spare) == _outputs(config)]
        for config in layers:
            if (config.layer, group) in complaints:
                yield _hint_of_lacking(memory, config, group, spare)
            elif [config] == fitting and memory.bias[group, spare].any():
                wrong = WrongField(group, "POST", "bias", 1, 0)
                reason = f"no layer uses {len(spare)} biases of the group"
                yield field_finding(memory, config.layer, wrong, reason, Severity.NOTE)


def _group_of(memory: Memory, finding: LayerFinding) -> int | None:
    """Return the group whose bias memory a finding is about."""
    if finding.address is None:
        return None
    group, area, _ = (int(part[0]) for part in memory.addresses.split(np.array([finding.address])))
    return group if area == BIAS else None


def _hint_of_lacking(
    memory: Memory, config: LayerConfig, group: int, spare: Sequence[int]
) -> LayerFinding:
    """Say where the biases of a layer are, or that there are none."""
    post = memory.register(config.layer, "POST", group)
    if not spare:
        wrong = WrongField(group, "POST", "bias", 0, 1)
        loaded = set(np.flatnonzero(memory.bias_written[group]).tolist())
        some = loaded.intersection(_places(memory, config, group))
        severity = Severity.NOTE if some else Severity.ERROR
        return field_finding(memory, config.layer, wrong, "biases are lacking", severity)
    unit = (config.output.bias_offsets[group] or 0) // max(post["bias_offset"], 1) or 1
    wrong = WrongField(group, "POST", "bias_offset", spare[0] // unit, post["bias_offset"])
    reason = f"no layer uses the biases from {spare[0]} on"
    return field_finding(memory, config.layer, wrong, reason, Severity.NOTE)


def _outputs(config: LayerConfig) -> int:
    return config.output.slots * config.output.passes if config.kind.has_kernels else 0


def _places(memory: Memory, config: LayerConfig, group: int) -> set[int]:
    """Return the biases of a group that belong to a layer, whether or not it adds them.

    In front of those of a layer that streams the network's input, some chips skip one.
    """
    if config.kind.sums_channels:
        shape = (config.output.passes, config.output.slots)
        quad = bool(memory.control_register("CTL")["fifo_quad"])
        groups, index = layer_bias(config, np.zeros(shape, np.int64), skip_first=False, quad=quad)
    else:
        groups, index = depthwise_bias(config)
    places = set(index[(groups == group) & (index >= 0)].tolist())
    skips = config.ring_words and memory.chip.skips_stream_bias
    return places | {place + 1 for place in places} if skips else places
