"""Registers that say where a layer writes its outputs.

Source: docs/hardware/registers.md, "Layer registers, field by field".
"""

from __future__ import annotations

from ai8xtools.synthesis.encode.view import LayerView, Registers
from device.chip import (
    INSTANCES_PER_GROUP,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
    WORD_BYTES,
)
from device.masks import instances, lowest_bit


def write_pointers(view: LayerView, group: int) -> Registers:
    """Where outputs go: start, and the distances to the next time slot, instance and pass."""
    layer, chip = view.layer, view.chip
    yield "WPTR_BASE", {"pointer": _write_start(view, group)}
    far = chip.write_pointer(instance=1)
    if view.passthrough:
        many = layer.processors.bit_count() > PROCESSORS_PER_INSTANCE
        wide = many or (layer.operands > 1 and layer.in_passes > 1)
        yield "WPTR_TOFFS", {"words": far if wide else chip.processor_words}
    else:
        moved = layer.depthwise and not layer.broadcast
        yield (
            "WPTR_TOFFS",
            {"words": far if moved else int(view.small_kernel and not layer.depthwise)},
        )
        yield "WPTR_MOFFS", {"words": far}
    step = layer.output_words_per_value * (layer.write_gap + 1)
    yield "WPTR_CHOFFS", {"words": step if layer.out_passes > 1 else 0}


def _write_start(view: LayerView, group: int) -> int:
    """Instance (counted over the chip) and word of the first output."""
    layer, chip = view.layer, view.chip
    start = (layer.out_offset - layer.hardware.leading_bytes) // WORD_BYTES
    if view.local_output:
        used = [i for i in instances(layer.output_processors) if i >= group]
        return chip.write_pointer(used[0] if used else group, start)
    if layer.depthwise and not layer.broadcast and not view.passthrough:
        return _write_start_of_channels(view, group, start)
    used = [*instances(layer.output_processors)]
    if view.passthrough:
        used = [i for i in used if i // INSTANCES_PER_GROUP == group]
    return chip.write_pointer(used[0] if used else 0, start)


def _write_start_of_channels(view: LayerView, group: int, start: int) -> int:
    """Depth-wise outputs move with their inputs: every group has a start of its own."""
    layer = view.layer
    first = lowest_bit(layer.processors)
    distance = group - first // PROCESSORS_PER_GROUP
    if distance < 0:
        return 0
    target = distance * PROCESSORS_PER_GROUP + lowest_bit(layer.output_processors)
    if distance:
        target -= first % PROCESSORS_PER_GROUP
    return view.chip.write_pointer(target // PROCESSORS_PER_INSTANCE, start)
