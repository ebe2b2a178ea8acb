"""Registers of a layer: one function for each group of registers that belong together.

Every function takes a `LayerView` and returns field values by register name, in the order in which
they are written.
Source: docs/hardware/execution.md, "Quantities of a layer"; docs/hardware/registers.md, "Layer
registers, field by field".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.pointers import write_pointers
from ai8xtools.synthesis.encode.streaming import frame_size, stream_registers
from ai8xtools.synthesis.encode.view import KERNEL_UNIT, Fields, LayerView, Registers
from ai8xtools.synthesis.encode.writer import RegisterWriter
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Activation, Combination, Operator
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement, Stream
from ai8xtools.synthesis.program import Block, Write
from ai8xtools.values import frozen
from device import FieldOverflowError
from device.chip import (
    FLATTEN_LONG,
    GROUPS,
    PROCESSORS_PER_INSTANCE,
    WORD_BYTES,
)
from device.masks import bits, group_slice, mask_of

_WEIGHT_SIZES = {0: 0, 8: 0, 1: 1, -1: 1, 2: 2, 4: 3}

_RESET_FIELDS: dict[str, dict[str, int | None]] = {
    "RCNT": {"skip": 1},
    "CCNT": {"skip": 1},
    "STRIDE": {"words": 1},
    "WPTR_BASE": {"pointer": None},
    "WPTR_TOFFS": {"words": None},
    "RPTR_BASE": {"word": None},
    "LCTL": {"always": 1, "max_pool": 1, "shared_output": 1},
    "ONED": {"kernel_length": 1},
    "POST": {"time_slots": 1, "one_by_one": 1},
    "ENA": {"processors": 1},
}
"""Registers of the layer that resets the pooling accumulators; None: as in the real layer."""


def layer_blocks(
    network: MappedNetwork,
    placement: Placement,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
) -> Iterator[Block]:
    """Yield the register writes of every layer and group, for every repetition."""
    for repetition in range(numbering.repeat):
        for layer in network.layers:
            number = numbering.number(layer, repetition)
            view = LayerView(
                layer,
                network,
                placement.kernels[layer.index],
                placement.biases.get(layer.index),
                placement.streams.get(layer.index, Stream()),
                numbering,
                options.link_layer,
            )
            reset = layer.index in numbering.resets
            for group in network.groups_used:
                title = f"Layer {repetition * len(network.layers) + layer.index} quadrant {group}"
                if reset and group == view.master:
                    title = f"Average pool accumulator reset layer and {title}"
                target = _Target(group, number, reset and group == view.master)
                yield Block(title, tuple(_writes(view, target, writer, options)))


@frozen
class _Target:
    """Group and hardware layer that registers are for; `reset`: with a reset layer in front."""

    group: int
    number: int
    reset: bool


def _writes(
    view: LayerView, target: _Target, writer: RegisterWriter, options: EncodeOptions
) -> Iterator[Write]:
    """Registers of a layer; a reset layer's stand each in front of the layer's own."""
    group, number = target.group, target.number
    try:
        for name, fields in _registers(view, group, options):
            if target.reset and name in _RESET_FIELDS:
                reset_fields = _RESET_FIELDS[name].items()
                values = {k: fields[k] if v is None else v for k, v in reset_fields}
                yield writer.layer(group, number - 1, name, values)
            yield writer.layer(group, number, name, fields)
        yield from frame_size(view, group, writer.apb_base)
    except FieldOverflowError as exc:
        raise DiagnosticError(view.layer.diagnostic("E405", str(exc))) from None


def _registers(view: LayerView, group: int, options: EncodeOptions) -> Registers:
    """All registers of a layer for one group, in the order of writing."""
    yield from _counts(view)
    yield from write_pointers(view, group)
    yield "RPTR_BASE", {"word": view.layer.in_offset // WORD_BYTES}
    yield "LCTL", _layer_control(view, group)
    yield "LCTL2", _layer_control2(view)
    yield from _kernel_counters(view)
    yield "ONED", _one_dimensional(view)
    yield "TPTR", _line_buffer(view)
    yield "POST", _post_processing(view, group)
    enabled = group_slice(view.layer.processors, group)
    stored = not (view.passthrough or view.layer.bypass)
    yield "ENA", {"processors": enabled, "kernels": enabled if stored else 0}
    yield from stream_registers(view, options)


def _counts(view: LayerView) -> Registers:
    """Rows, columns, pooling window and stride."""
    layer, pooling = view.layer, view.layer.pooling
    stride = 1 if layer.hardware.operator.transposed else pooling.stride[0]
    last = [(w - 1) * d for w, d in zip(pooling.window, pooling.dilation, strict=True)]
    if not view.chip.counts_by_step:
        for name, length, pad in zip(("RCNT", "CCNT"), view.image, layer.hardware.pad, strict=True):
            yield name, {"last": length - 1 + 2 * pad, "pad": pad}
        yield "PRCNT", {"last": last[0]}
        yield "PCCNT", {"last": last[1]}
        yield "STRIDE", {"stride": stride - 1}
        return
    yield "NXTLYR", _next_layer(view)
    yield from _counts_by_step(view)
    yield "PRCNT", {"last": last[0], "dilation": pooling.dilation[0] - 1}
    yield "PCCNT", {"last": last[1], "dilation": pooling.dilation[1] - 1}
    words = pooling.stride[0] * layer.operands * layer.in_passes * (layer.read_gap + 1)
    yield "STRIDE", {"stride": stride - 1, "words": words}


def _next_layer(view: LayerView) -> Fields:
    """MAX78002: where execution goes on, if not with the next layer."""
    layer, numbering = view.layer, view.numbering
    if view.link_layer:
        final = layer is view.network.final
        return {"stop": 1} if final else {"jump": 1, "layer": layer.index + 1}
    if layer.next_layer is None:
        return {"stop": int(layer is not view.network.layers[-1])}
    target = layer.snoop_layer if layer.next_layer == layer.index + 1 else layer.next_layer
    if target is None:
        return {}
    return {"jump": 1, "layer": target + numbering.inserted(target)}


def _counts_by_step(view: LayerView) -> Registers:
    """MAX78002: the last row and column that are fetched, and the words that remain."""
    layer, pooling = view.layer, view.layer.pooling
    ends = [
        (length - (window - 1) * dilation - 1) // stride * stride
        for length, window, dilation, stride in zip(
            view.image, pooling.window, pooling.dilation, pooling.stride, strict=True
        )
    ]
    rest = view.image[1] - ends[1]
    across = 1 if layer.hardware.operator.one_dimensional else rest
    words = (across + (pooling.stride[0] - 1) * view.image[1]) * (layer.read_gap + 1)
    skips = (words * layer.operands * layer.in_passes, rest)
    for name, end, pad, skip in zip(("RCNT", "CCNT"), ends, layer.hardware.pad, skips, strict=True):
        yield name, {"last": end, "pad": max(pad - 1, 0), "padded": int(pad > 0), "skip": skip}


def _layer_control(view: LayerView, group: int) -> Fields:
    """Input format, pooling, activation, sources of sums, output width."""
    layer = view.layer
    relu, _ = _activation(layer.activation)
    fields = {
        "always": 1,
        "chw": int(layer.channels_first),
        "pool": int(layer.pooling.active),
        "max_pool": int(not layer.pooling.average),
        "relu": relu,
        "shared_output": int(not view.local_output),
        "sources": 0,
        "wide": int(layer.output_width != 8),
    }
    in_turn = view.network.input_port.feeds_all_groups and layer is view.network.first
    if group == view.master and not (view.passthrough or layer.depthwise or in_turn):
        sources = {g for g in range(GROUPS) if group_slice(layer.processors, g) and g > group}
        if view.bias and view.bias.group not in (None, group):
            sources.add(view.bias.group)
        fields["sources"] = mask_of(sources)
    if "kernel_columns" in view.chip.layer_registers["LCTL"].by_name and not view.passthrough:
        rows, columns = layer.hardware.kernel
        fields |= {"kernel_columns": columns - 1, "kernel_rows": rows - 1}
        fields["depthwise_broadcast"] = int(layer.broadcast)
        fields["bypass"] = int(layer.bypass)
    if layer.read_ahead:
        count = (layer.in_passes - 1) // 4 if layer.tcalc else layer.in_passes - 1
        fields |= {"read_ahead": 1, "shift_count": count}
    return fields


def _layer_control2(view: LayerView) -> Fields:
    """Input passes, step of the output, last output."""
    layer = view.layer
    passes = layer.flat_passes % FLATTEN_LONG if layer.flatten else layer.in_passes - 1
    if view.passes_as_rows:
        passes = 0
    step = layer.write_gap if view.passthrough else layer.out_passes * (layer.write_gap + 1) - 1
    outputs = bits(layer.output_processors)
    last = outputs[-1] - outputs[0] // PROCESSORS_PER_INSTANCE * PROCESSORS_PER_INSTANCE
    return {"passes": passes, "write_step": step, "last_output": last * view.weight_unit}


def _kernel_counters(view: LayerView) -> Registers:
    """First and last kernel; MAX78002 also counts the outputs."""
    separate = "MCNT1" in view.chip.layer_registers
    if view.passthrough:
        last = 0 if view.passes_as_rows else (view.layer.out_passes - 1) * KERNEL_UNIT
        yield ("MCNT2", {"first": last}) if separate else ("MCNT", {"last": last})
        if separate:
            yield "OCHAN", {"last": view.time_slots}
        return
    first, _ = view.first_kernel
    layer, unit = view.layer, view.weight_unit
    count = layer.out_channels // layer.groups if layer.bypass else view.kernels.count
    length = (count - 1) * unit
    if layer.calcx4 and layer is view.network.first:  # of all such layers only the first
        length = -(-(length + unit) // GROUPS) - unit
    last = first + length
    if not separate:
        yield "MCNT", {"last": last, "first": first}
        return
    yield "MCNT1", {"last": last}
    yield "MCNT2", {"first": first}
    outputs = view.kernels.count
    if layer.bypass:
        outputs = layer.out_channels
    elif layer.depthwise:
        outputs = (view.time_slots + 1) * layer.in_passes
    yield "OCHAN", {"last": (outputs - 1) // (GROUPS if layer.calcx4 else 1)}


def _one_dimensional(view: LayerView) -> Fields:
    """One-dimensional kernels, operands, and where in a column the kernels begin."""
    layer = view.layer
    fields = {"time_slots": view.time_slots}
    if not view.passthrough:
        fields["kernel_remainder"] = view.first_kernel[1]
    match layer.hardware.operator:
        case Operator.CONV1D:
            fields |= {"kernel_length": layer.hardware.kernel[0], "conv1d": 1}
        case Operator.CONV2D | Operator.LINEAR:
            fields["kernel_length"] = int(view.small_kernel)
        case Operator.NONE:
            fields["kernel_length"] = int(layer.operands == 1)
        case Operator.CONVTRANSPOSE2D:
            pass
        case _:
            assert_never(layer.hardware.operator)
    if layer.combination and layer.operands > 1:
        fields |= {
            "elementwise": 1,
            "operation": _operation(layer.combination),
            "pool_first": int(layer.pooling.active and layer.pool_first),
            "elementwise_convolution": int(not view.passthrough),
            "operands": layer.operands - 1,
        }
    return fields


def _operation(combination: Combination) -> int:
    match combination:
        case Combination.SUB:
            return 0
        case Combination.ADD:
            return 1
        case Combination.OR:
            return 2
        case Combination.XOR:
            return 3
        case _:
            assert_never(combination)


def _activation(activation: Activation | None) -> tuple[int, int]:
    """Return the fields of an activation: `relu` of LCTL, `absolute` of POST."""
    match activation:
        case None:
            return 0, 0
        case Activation.RELU:
            return 1, 0
        case Activation.ABS:
            return 0, 1
        case _:
            assert_never(activation)


def line_buffer_words(layer: MappedLayer) -> int:
    """Words of a line that a processor keeps while the kernel moves down."""
    hardware = layer.hardware
    columns, pad, taps = hardware.pooled_dim[1], hardware.pad[1], hardware.kernel[1]
    match hardware.operator:
        case Operator.NONE:
            return 1
        case Operator.CONVTRANSPOSE2D:
            columns = (columns - 1) * 2 + 1 + layer.output_pad
        case Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
            pass
        case _:
            assert_never(hardware.operator)
    return max(0, columns + 2 * pad - taps) + 1


def _line_buffer(view: LayerView) -> Fields:
    """Range of the line buffer, or the pass counter of a long flattened layer."""
    layer = view.layer
    later = layer.streaming and layer is not view.network.first
    if layer.hardware.operator.one_dimensional or (view.small_kernel and not later):
        flat = layer.flat_passes
        return {"first": flat, "last": 2 * flat + 1} if flat >= FLATTEN_LONG else {}
    before = 0
    if later:
        earlier = (x for x in view.network.layers if x.index < layer.index)
        before = sum(line_buffer_words(x) * x.in_passes for x in earlier)
    return {"first": before, "last": before + line_buffer_words(layer) - 1}


def _post_processing(view: LayerView, group: int) -> Fields:
    """Bias, shift, weight size, activation and how the sums are read."""
    layer = view.layer
    _, absolute = _activation(layer.activation)
    fields = {
        "shift": abs(layer.shift),
        "shift_right": int(layer.shift < 0),
        "weight_size": _WEIGHT_SIZES[layer.weight_bits],
        "time_slots": int(view.passthrough or layer.depthwise),
        "one_by_one": int(view.passthrough and layer.operands == 1),
        "absolute": absolute,
        "depthwise": int(layer.depthwise),
        "tcalc": int(layer.tcalc),
        "calcx4": int(layer.calcx4),
        "transposed": int(layer.hardware.operator.transposed),
    }
    offset = view.bias.offsets[group] if view.bias else None
    if offset is not None:
        unit = PROCESSORS_PER_INSTANCE if layer.broadcast or layer.calcx4 else 1
        fields |= {"bias": 1, "bias_offset": offset // unit}
    if layer.flat_passes >= FLATTEN_LONG:
        fields |= {"flatten": 1, "flatten_high": layer.flat_passes // FLATTEN_LONG}
    return fields
