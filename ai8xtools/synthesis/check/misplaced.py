"""Layers for which the words of the vendor's tool, and so ours, are not what the chip needs.

They load and run, but the known answer is not what the chip computes: kernels stand out of step, or
registers cannot say what the layer does. All of them warn; the words stay the vendor's.
Source: docs/hardware/memory.md; docs/placement.md, "Kernels: finding columns" and "Biases";
docs/hardware/registers.md, "Layer registers, field by field"; docs/hardware/streaming.md, "FIFOs".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check.constraint import Finding, Kind, constraint, layer_constraint
from ai8xtools.synthesis.check.layout import mask_text
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Layer
from device import Chip
from device.channels import channels_per_pass, passes
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS, PROCESSORS_PER_INSTANCE
from device.masks import group_slice, lowest_bit

_CONSEQUENCE = "; the chip is not expected to compute the known answer"
_LANES = PROCESSORS_PER_INSTANCE
_ALIGN = "Begin the output processors at a multiple of 4."


def _lane(layer: MappedLayer) -> int:
    """Byte lane of the first output."""
    return lowest_bit(layer.output_processors) % _LANES


def packed(mask: int) -> int:
    """Return a mask of as many processors without gaps, from the first ones of the instance on."""
    count = mask.bit_count()
    first = lowest_bit(mask) // _LANES * _LANES
    return (1 << count) - 1 << min(first, PROCESSORS - count)


def _per_byte(layer: Layer) -> int:
    """Weights that share a byte."""
    return 8 // abs(layer.weight_bits)


def _taps(layer: MappedLayer) -> int:
    rows, columns = layer.hardware.kernel
    return rows * columns


def _kernels_per_output(layer: MappedLayer) -> int:
    """Kernels of one output in each processor."""
    return layer.flat_passes + 1 if layer.flatten else layer.in_passes


def _begins_in_step(layer: MappedLayer) -> bool:
    """Whether the first output's kernels stand behind those of the empty lanes in front.

    The vendor's tool counts one kernel a lane and pass, in whole columns as if it had 8 bits.
    """
    per_byte, taps = _per_byte(layer), _taps(layer)
    stored = _lane(layer) * (1 if layer.flatten else layer.in_passes) * taps
    columns, rest = divmod(stored, KERNEL_COLUMN_BYTES)
    in_front = _lane(layer) * _kernels_per_output(layer)
    return in_front % per_byte == 0 and (
        columns * KERNEL_COLUMN_BYTES + rest // per_byte == in_front // per_byte * taps
    )


def leaves_out_kernels(layer: Layer) -> bool:
    """Whether the vendor's tool drops the last byte of a group of narrow kernels that are used."""
    count, share = passes(layer.in_channels), channels_per_pass(layer.in_channels)
    narrow = layer.weights is not None and abs(layer.weight_bits) < 8
    if not narrow or layer.in_channels == count * share or layer.depthwise:
        return False
    left_out = range((count - 1) * _per_byte(layer), count * _per_byte(layer))
    return any(n // count < layer.out_channels and (n + 1) % count for n in left_out)


@layer_constraint("W318", Kind.HARDWARE, Severity.WARNING)
def narrow_weights_fill_their_passes(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The vendor's tool misplaces narrow weights if the last pass is not full.

    Where a channel is missing in the last pass, it leaves out the last byte of a group of kernels,
    which holds kernels of earlier passes too unless there are few outputs.
    """
    if leaves_out_kernels(layer):
        yield Finding(
            f"{abs(layer.weight_bits)}-bit weights for {layer.in_channels} channels, which do not "
            f"fill {layer.in_passes} passes of {layer.in_share}{_CONSEQUENCE}",
            ("quantization", "in_channels", "op"),
            f"Use 8-bit weights or {layer.in_passes * layer.in_share} channels.",
            unsound=True,
        )


@layer_constraint("W319", Kind.HARDWARE, Severity.WARNING)
def flattened_outputs_begin_in_lane_0(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The vendor's tool misplaces flattened weights for outputs in upper lanes."""
    if layer.flatten and layer.weights is not None and not _begins_in_step(layer):
        yield Finding(
            f"the outputs of a flattened layer begin between two multiples of 4{_CONSEQUENCE}",
            ("output_processors", "flatten"),
            _ALIGN,
            unsound=True,
        )


@layer_constraint("W334", Kind.HARDWARE, Severity.WARNING)
def narrow_outputs_begin_in_lane_0(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The vendor's tool places narrow weights of outputs in upper lanes as if they had 8 bits.

    It counts the kernels of the empty lanes in front in whole columns; only kernels of few bytes,
    all within one column, are right by chance.
    """
    lane = _lane(layer)
    if layer.weights is None or abs(layer.weight_bits) == 8 or not lane or layer.flatten:
        return
    yield Finding(
        f"{abs(layer.weight_bits)}-bit weights with outputs that begin in lane {lane}"
        + ("" if _begins_in_step(layer) else _CONSEQUENCE),
        ("output_processors", "quantization"),
        _ALIGN,
        unsound=not _begins_in_step(layer),
    )


@layer_constraint("W370", Kind.HARDWARE, Severity.WARNING)
def outputs_of_passes_begin_in_lane_0(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The empty lanes before the first output count in every pass, but are stored once."""
    ordinary = layer.weights is not None and not (layer.depthwise or layer.flatten)
    if ordinary and layer.out_passes > 1 and _lane(layer) and abs(layer.weight_bits) == 8:
        yield Finding(
            f"{layer.out_channels} outputs, {layer.out_passes} passes of them, begin in lane "
            f"{_lane(layer)}{_CONSEQUENCE}",
            ("output_processors", "op"),
            _ALIGN,
            unsound=True,
        )


@layer_constraint("W371", Kind.HARDWARE, Severity.WARNING)
def gaps_are_whole_columns(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The vendor's tool leaves one column free for each unused processor, for any kernel size."""
    mask = layer.output_processors >> lowest_bit(layer.output_processors)
    if layer.weights is None or layer.depthwise or not mask & mask + 1:
        return
    per_byte = _per_byte(layer)
    blocks = [mask >> i & (1 << per_byte) - 1 for i in range(0, mask.bit_length(), per_byte)]
    whole = all(b in (0, (1 << per_byte) - 1) for b in blocks[:-1]) and not (
        blocks[-1] & blocks[-1] + 1
    )
    if not whole or _taps(layer) * _kernels_per_output(layer) != KERNEL_COLUMN_BYTES:
        yield Finding(
            "unused processors between the outputs, and kernels that do not take one column "
            f"each{_CONSEQUENCE}",
            ("output_processors", "kernel_size", "op"),
            "Use output processors ('output_map' for the last layer) without gaps, for example "
            f"{mask_text(packed(layer.output_processors))}.",
            unsound=True,
        )


@layer_constraint("W372", Kind.HARDWARE, Severity.WARNING)
def binary_kernels_are_not_filled_up(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Binary weights are -1 or +1; the zeros that make a kernel larger become +1."""
    stored = layer.hardware.weights
    if layer.weight_bits < 0 and stored is not None and not np.all(stored):
        rows, columns = layer.hardware.kernel
        yield Finding(
            f"binary weights in a kernel that is filled up with zeros to {rows}x{columns}"
            f"{_CONSEQUENCE}",
            ("quantization", "dilation", "streaming", "op"),
            "Use quantization: 2 with weights of -1 and 1.",
            unsound=True,
        )


@layer_constraint("W373", Kind.HARDWARE, Severity.WARNING)
def transposed_convolution_without_pool_stride(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The registers of a transposed convolution have no field for the stride of pooling."""
    if layer.operator.transposed and max(layer.pooling.stride) > 1:
        yield Finding(
            f"'pool_stride' is {max(layer.pooling.stride)} in front of a ConvTranspose2d"
            f"{_CONSEQUENCE}",
            ("pool_stride", "op"),
            "Pool in a layer before." if layer.strides else "Use pool_stride: 1.",
            unsound=True,
        )


@layer_constraint("W374", Kind.HARDWARE, Severity.WARNING)
def spread_kernels_lead_to_plain_output(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The invalid outputs before the valid ones are counted as single words."""
    if layer.hardware.leading_bytes and (layer.output_width == 32 or layer.write_gap):
        what = "32-bit outputs" if layer.output_width == 32 else "'write_gap'"
        yield Finding(
            f"a Conv1d with three taps, dilation {layer.dilation} and {what}{_CONSEQUENCE}",
            ("output_width", "write_gap", "dilation"),
            "Use output_width: 8 without write_gap.",
            unsound=True,
        )


@constraint("W375", Kind.HARDWARE, Severity.WARNING)
def flattened_sample_is_interleaved(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """Flattening turns pixels into passes, but only if channels are interleaved in memory."""
    port = network.input_port
    if layer is not network.first or not layer.flat_passes:
        return
    if layer.channels_first or port.is_fifo:
        what = "from a FIFO" if port.is_fifo else "in CHW format"
        yield Finding(
            f"'flatten' of a sample {what}{_CONSEQUENCE}",
            ("flatten", "data_format"),
            "Load the sample into memory as HWC.",
            unsound=True,
        )


@layer_constraint("W376", Kind.HARDWARE, Severity.WARNING)
def wide_outputs_fill_their_lanes(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The known answer expects zeros in unused lanes; kernels of other layers may stand there.

    It has as many words of an instance as there are outputs in it, from lane 0 on.
    """
    mask = layer.output_processors >> lowest_bit(layer.output_processors)
    if layer.output_width == 32 and (_lane(layer) or mask & mask + 1):
        yield Finding(
            "32-bit outputs that leave lanes out in front or in between; the known answer expects "
            "zeros there, and the chip may compute something else",
            ("output_processors", "output_width"),
            "Use output processors without gaps that begin at a multiple of 4.",
            unsound=True,
        )


@layer_constraint("W377", Kind.HARDWARE, Severity.WARNING)
def depthwise_outputs_have_the_gaps_of_the_inputs(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Depth-wise layers keep the distances between their channels."""
    inputs, outputs = layer.processors, layer.output_processors
    moved = inputs >> lowest_bit(inputs) << lowest_bit(outputs)
    if layer.depthwise and outputs != moved:
        yield Finding(
            "the outputs of a depth-wise layer leave out other processors than the inputs"
            f"{_CONSEQUENCE}",
            ("output_processors", "groups"),
            "Give the next layer the same processors.",
            unsound=True,
        )


@layer_constraint("W378", Kind.HARDWARE, Severity.WARNING)
def bypassed_kernels_are_not_widened(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """In and behind streaming layers 1x1 kernels run as 3x3; bypassed ones have no zeros."""
    if layer.bypass and layer.widened:
        yield Finding(
            "a bypassed 1x1 kernel in or behind a streaming layer runs as 3x3 and adds nine pixels",
            ("bypass", "kernel_size"),
            "Put a layer in between, or use weights.",
            unsound=True,
        )


@constraint("W379", Kind.HARDWARE, Severity.WARNING)
def passed_data_keeps_its_lanes(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Layers without weights can move data only by whole instances: lane 0 stays lane 0."""
    if layer.has_weights:
        return
    for group in network.groups_used:
        inputs = group_slice(layer.processors, group)
        outputs = group_slice(layer.output_processors, group)
        if inputs and outputs and (lowest_bit(inputs) - lowest_bit(outputs)) % _LANES:
            first, last = lowest_bit(inputs), lowest_bit(outputs)
            yield Finding(
                f"data passes from lane {first % _LANES} to lane {last % _LANES} in group {group}"
                f"{_CONSEQUENCE}",
                ("output_processors", "processors"),
                f"Move it by a multiple of {_LANES} processors, or not at all.",
                unsound=True,
            )


@constraint("W384", Kind.HARDWARE, Severity.WARNING)
def depthwise_outputs_are_at_equal_distances(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """Depth-wise outputs at uneven distances need LCTL.shared_output = 0, not known to work."""
    if layer.depthwise and network.keeps_outputs_local(layer):
        without_gaps = mask_text(packed(layer.output_processors))
        yield Finding(
            "the outputs of a depth-wise layer are at uneven distances in a group, which the chip "
            "is not known to support",
            ("output_processors", "processors"),
            f"Give this layer and the next processors without gaps, for example {without_gaps}.",
            unsound=True,
        )
