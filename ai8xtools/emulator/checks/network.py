"""Layers without a part in the network, and output that nobody reads.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import LayerFinding, Severity, WrongField, field_finding
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.data_memory import DataMemory
from ai8xtools.emulator.state.memory import Memory
from device.chip import (
    GROUPS,
)

Integers = NDArray[np.int64]

_SHOWN_PROCESSORS = 8


def layers_without_part(
    memory: Memory, visited: Sequence[LayerConfig], *, goes_on: bool = False
) -> Iterator[LayerFinding]:
    """Yield findings on layers that do nothing: those without processors, and behind LCNT_MAX.

    `visited`: the layers from the first to the last, with or without processors. If the program
    `goes_on`, another start may execute those behind.
    """
    chip, base = memory.chip, memory.addresses.apb_base
    last = memory.control_register("LCNT_MAX")["last"]
    for config in visited:
        if any(config.enabled):
            continue
        for group, kernels in enumerate(config.with_kernels):
            if kernels:
                wrong = WrongField(group, "ENA", "processors", kernels, 0)
                reason = "the processors that read kernels"
                yield field_finding(memory, config.layer, wrong, reason)
        address = base + chip.layer_address(0, config.layer, "ENA")
        yield LayerFinding(
            config.layer,
            f"it does nothing: ENA (0x{address:08x}) enables no processor in any group, though "
            f"LCNT_MAX reaches to layer {last}",
            address=address,
        )
    behind = [
        layer
        for layer in range(chip.max_layers if goes_on else last + 1, chip.max_layers)
        if any(memory.register(layer, "ENA", group)["processors"] for group in range(GROUPS))
    ]
    if behind:
        address = base + chip.control_address(0, "LCNT_MAX")
        names = (
            f"layer {behind[0]} has"
            if len(behind) == 1
            else (f"layers {behind[0]} to {behind[-1]} have")
        )
        yield LayerFinding(
            behind[0],
            f"never executed: LCNT_MAX (0x{address:08x}) ends the network at layer {last}, but "
            f"{names} processors",
            address=address,
        )


def unread_channels(
    layer: int, processors: Integers, addresses: Integers, output: Integers, data: DataMemory
) -> LayerFinding | None:
    """Report outputs [output, row, column] that nothing has read, though it has read others.

    `processors` are those that can read them, `addresses` those of their first pixels. Output that
    nothing reads at all may be a result, so that this is only a note. Lanes without a
    channel hold nothing, or the same value in all pixels.
    """
    readers = data.readers.get(layer)
    if not readers:
        if not np.any(data.writer == layer):  # a stream, or overwritten, which is told elsewhere
            return None
        first = int(addresses[0])
        return LayerFinding(
            layer,
            f"no layer reads its output, at data memory 0x{first:08x}",
            int(processors[0]),
            first,
            severity=Severity.NOTE,
        )
    flat = output.reshape(len(output), -1)
    alive = np.any(flat != flat[:, :1], axis=1) if flat.shape[1] > 1 else flat[:, 0] != 0
    left = sorted(set(processors[alive].tolist()) - set(readers))
    if not left:
        return None
    read = np.isin(processors, list(readers)).nonzero()[0]
    names = sorted(set(readers.values()))
    others = ", ".join(f"layer {name}" for name in names) + (" does" if len(names) == 1 else " do")
    shown = ", ".join(map(str, left[:_SHOWN_PROCESSORS]))
    more = f" and {len(left) - _SHOWN_PROCESSORS} more" if len(left) > _SHOWN_PROCESSORS else ""
    address = int(addresses[alive & (processors == left[0])][0])
    # Kernels of another layer may stand in front of those of the first channel that is read.
    in_front = len(read) > 0 and bool(np.isin(processors, left).nonzero()[0].max() < read[0])
    return LayerFinding(
        layer,
        f"no layer reads its output with processor {shown}{more}, though {others} with others: "
        f"data memory 0x{address:08x}",
        left[0],
        address,
        severity=Severity.NOTE if in_front else Severity.WARNING,
    )
