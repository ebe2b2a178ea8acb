"""Constraints of what a layer computes."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.check.constraint import (
    Finding,
    Kind,
    constraint,
    elsewhere,
    layer_constraint,
)
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import MAX_TAPS, Layer, Size
from device import Chip, names_where
from device.channels import MAX_FLATTENED_PIXELS
from device.chip import PROCESSORS, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE
from device.masks import lowest_bit

MAX_SHIFT = 15
MAX_PAD = 2
MAX_POOL_REACH = 15
MAX_OPERANDS_POOL_LAST = 2


@layer_constraint("E301", Kind.HARDWARE)
def shift_fits_its_field(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Sums are shifted by at most 15 bits; narrow weights already use 4, 6 or 7 of them."""
    if layer.has_weights and abs(layer.shift) > MAX_SHIFT:
        implicit = 8 - abs(layer.weight_bits)
        low, high = -MAX_SHIFT - implicit, MAX_SHIFT - implicit
        nearest = min(max(layer.shift - implicit, low), high)
        yield Finding(
            f"'output_shift' is {layer.shift - implicit}, the limits for "
            f"{abs(layer.weight_bits)}-bit weights are {low} and {high}",
            ("output_shift", "op"),
            f"The nearest valid value is {nearest}.",
        )


@layer_constraint("E302", Kind.NETWORK, blocks=Fact.SIZES)
def padding_surrounds_a_kernel(layer: Layer, _: object) -> Iterator[Finding]:
    """Padding needs a kernel that reaches over the edge of the image."""
    pad = max(layer.pad)
    if pad and not layer.has_weights:
        yield Finding(f"'pad' is {pad} on a layer without a kernel", "pad", "Remove the key.")


@layer_constraint("E302", Kind.HARDWARE, blocks=Fact.SIZES)
def pad_is_small(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The image is padded by at most two rows and columns, and by less than the kernel.

    A transposed convolution is an ordinary one on a stretched image, padded by 0 to 2.
    """
    if layer.operator.transposed:
        if max(layer.hardware.pad) > MAX_PAD or min(layer.hardware.pad) < 0:
            yield Finding(f"'pad' is {layer.pad[0]}, the limits are 0 and {MAX_PAD}", "pad")
        return
    if not layer.has_weights:
        return
    pad, limit = max(layer.pad), padding_limit(layer.kernel)
    if pad > limit:
        rows, columns = layer.kernel
        yield Finding(
            f"'pad' is {pad}, the limit for a {rows}x{columns} kernel is {limit}",
            ("pad", "kernel_size", "op"),
            f"Use pad: {limit}.",
        )


def padding_limit(kernel: Size) -> int:
    """Return the largest padding of a kernel of (rows, columns) on the chips."""
    return min(MAX_PAD, max(kernel) - 1)


@layer_constraint("E303", Kind.NETWORK, blocks=Fact.SIZES)
def output_padding_needs_a_transposed_convolution(layer: Layer, _: object) -> Iterator[Finding]:
    """A transposed convolution has outputs of several sizes to choose from, no other operator."""
    if layer.output_pad and not layer.operator.transposed:
        yield Finding(
            f"'output_pad' is {layer.output_pad}, only ConvTranspose2d has one", "output_pad"
        )


@layer_constraint("E303", Kind.HARDWARE, blocks=Fact.SIZES)
def output_padding_is_fixed(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The chip computes the one of twice the rows and columns."""
    if layer.operator.transposed and layer.output_pad != 1:
        yield Finding(f"'output_pad' is {layer.output_pad}, only 1 is possible", "output_pad")


@layer_constraint("E304", Kind.HARDWARE, blocks=Fact.SIZES)
def pooling_fits_its_fields(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """The pooling window reaches over at most 16 rows and columns; only MAX78002 dilates it."""
    pooling = layer.pooling
    if max(pooling.dilation) > chip.max_pool_dilation:
        yield Finding(
            f"'pool_dilation' is {max(pooling.dilation)}, the limit of {chip.name} "
            f"is {chip.max_pool_dilation}",
            "pool_dilation",
        )
    reach = max((w - 1) * d for w, d in zip(pooling.window, pooling.dilation, strict=True))
    if reach > MAX_POOL_REACH:
        yield Finding(
            f"the pooling window reaches over {reach + 1} pixels, the limit is "
            f"{MAX_POOL_REACH + 1}",
            ("pool_dilation", "max_pool", "avg_pool"),
        )


@layer_constraint("E305", Kind.HARDWARE, blocks=Fact.SIZES)
def pool_stride_is_square(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Rows and columns share one register field for the stride, so both must be equal."""
    rows, columns = layer.pooling.stride
    if rows != columns and layer.in_dim[1] != 1 and not layer.operator.one_dimensional:
        yield Finding(
            f"'pool_stride' is {rows}/{columns}, rows and columns must be equal",
            "pool_stride",
            f"Use pool_stride: {min(rows, columns)}.",
        )


@layer_constraint("E306", Kind.HARDWARE, blocks=Fact.PLACES, needs=Fact.SIZES)
def flatten_limits(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """A flattened layer reads each pixel in a separate pass, and has at most 256 passes."""
    if not layer.flatten:
        return
    if layer.pooling.reduces:
        yield Finding(
            "'flatten' together with pooling",
            ("flatten",),
            "Pool in a layer before.",
        )
    if not layer.has_weights or layer.kernel != (1, 1):
        yield Finding(f"'flatten' on a {layer.operator} layer, it needs op: Linear", "flatten")
    pixels = layer.pooled_dim[0] * layer.pooled_dim[1]
    if pixels > MAX_FLATTENED_PIXELS:
        yield Finding(
            f"'flatten' of {layer.pooled_dim[0]}x{layer.pooled_dim[1]} = {pixels} pixels, "
            f"the limit is {MAX_FLATTENED_PIXELS}",
            "flatten",
            "Pool before flattening.",
        )
    if layer.groups != 1:
        yield Finding("'flatten' together with 'groups'", "groups")
    if layer.in_channels != layer.in_passes * layer.in_share:
        yield Finding(
            f"'flatten' of {layer.in_channels} channels, which do not fill "
            f"{layer.in_passes} passes of {layer.in_share}",
            ("flatten", "in_channels"),
            f"Use a multiple of {4 * layer.in_passes} channels in the layer before.",
        )


@constraint("E386", Kind.HARDWARE)
def final_wide_layer_has_no_activation(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """32-bit sums leave the accumulator unchanged; no activation can follow."""
    if layer.output_width == 32 and layer.activation and layer is network.final:
        yield Finding(
            f"'activate' is {layer.activation} on a final layer with 32-bit output",
            ("activate", "output_width"),
            "Remove the activation or use output_width: 8.",
        )


@layer_constraint("E308", Kind.NETWORK)
def passthrough_is_plain(layer: Layer, _: object) -> Iterator[Finding]:
    """Pass-through layers neither shift, widen nor flatten their data."""
    if layer.has_weights:
        return
    if layer.shift:
        yield Finding(
            f"'output_shift' is {layer.shift} on a layer without a kernel", "output_shift"
        )
    if layer.output_width != 8:
        yield Finding("'output_width' is 32 on a layer without a kernel", "output_width")
    if layer.out_channels != layer.in_channels:
        yield Finding(
            f"{layer.out_channels} output channels for {layer.in_channels} input channels "
            "on a layer without a kernel",
            ("out_channels", "in_channels"),
        )


@layer_constraint("E309", Kind.HARDWARE, needs=Fact.SIZES)
def passthrough_pooling_passes(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """In pass-through layers MAX78000 pools more than 64 channels only to a single pixel."""
    limit = chip.passthrough_pool_passes
    if layer.has_weights or not layer.pooling.reduces or layer.in_passes <= limit:
        return
    if layer.pooled_dim != (1, 1):
        yield Finding(
            f"pooling without a convolution in {layer.in_passes} passes, "
            f"the limit of {chip.name} is {limit}",
            ("max_pool", "avg_pool", "pool_stride"),
            "Pool in the next convolution layer instead.",
        )


@layer_constraint("E310", Kind.HARDWARE)
def combination_limits(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """Operands are combined only before two-dimensional operators, with few buffers."""
    if not layer.combination:
        return
    if layer.operator.one_dimensional:
        yield Finding(
            f"'{layer.combination}' in front of a Conv1d",
            ("eltwise", "op"),
            "Use a separate layer (op: Add) before the convolution.",
        )
    if not layer.pool_first and layer.operands > MAX_OPERANDS_POOL_LAST:
        yield Finding(
            f"'pool_first: false' with {layer.operands} operands, the limit is "
            f"{MAX_OPERANDS_POOL_LAST}",
            "pool_first",
        )
    beyond = layer.operands * layer.in_passes != layer.operands + layer.in_passes
    as_rows = chip.combines_passes_as_rows and layer.in_passes > 1 and beyond
    if as_rows and (layer.has_weights or layer.pooling.reduces):
        yield Finding(
            f"{layer.operands} operands of {layer.in_passes} passes together with "
            "pooling or a convolution",
            ("operands", "eltwise", "op"),
            "Combine in a layer of its own.",
        )


@layer_constraint("E311", Kind.HARDWARE, waived_by="--ignore-hw-limits")
def combination_with_bias(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """MAX78002 uses the same adder for the bias and for combining operands."""
    if (
        not chip.combines_with_bias
        and layer.combination
        and layer.has_weights
        and layer.bias is not None
    ):
        yield Finding(
            "an element-wise operation, a convolution and a bias in one layer",
            ("eltwise", "op"),
            "Drop the bias (--no-bias) or combine in a layer of its own.",
        )


@layer_constraint("E312", Kind.HARDWARE, blocks=Fact.SIZES)
def dilation_limits(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Only one-dimensional kernels can be dilated."""
    if layer.dilation == 1 or not layer.has_weights:
        return
    if not layer.operator.one_dimensional:
        yield Finding(
            f"'dilation' is {layer.dilation} on a {layer.operator} layer, only Conv1d has one",
            "dilation",
        )
    elif layer.kernel[0] == 1:
        yield Finding("'dilation' with a kernel of one tap", "dilation")


@layer_constraint("E313", Kind.HARDWARE, blocks=(Fact.SIZES, Fact.PLACES))
def groups_limits(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """Channels are convolved together or, on MAX78002, each separately (depth-wise)."""
    if layer.groups == 1:
        return
    if not chip.has_depthwise:
        yield Finding(
            f"'groups' is {layer.groups}, {chip.name} has no grouped convolutions",
            "groups",
            elsewhere("has_depthwise"),
        )
    elif layer.groups != layer.in_channels or layer.groups != layer.out_channels:
        yield Finding(
            f"'groups' is {layer.groups} for {layer.in_channels} input and "
            f"{layer.out_channels} output channels, all three must be equal",
            "groups",
        )


@constraint("E314", Kind.HARDWARE, blocks=Fact.PLACES)
def binary_weights(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Weights of -1 and +1 are a mode of MAX78002, for all 1-bit layers of a network together."""
    if layer.weight_bits >= 0:
        return
    if not network.chip.has_binary_weights:
        yield Finding(
            f"binary weights, {network.chip.name} has none",
            "quantization",
            elsewhere("has_binary_weights"),
        )
    if any(other.weight_bits == 1 for other in network.layers):
        yield Finding("binary weights in a network with 1-bit weights", "quantization")


@constraint("E315", Kind.HARDWARE, blocks=Fact.PLACES)
def features_of_the_chip(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Kernel bypass, reading ahead and calculating four outputs at a time came with MAX78002."""
    if network.chip.has_extended_modes:
        return
    for key, is_set in (
        ("bypass", layer.bypass),
        ("readahead", layer.read_ahead),
        ("calcx4", layer.calcx4),
        ("tcalc", layer.tcalc),
        ("snoop_sequence", layer.snoop_layer is not None),
    ):
        if is_set and layer.place_of(key).option is None:
            others = names_where(lambda chip: chip.has_extended_modes)
            remedy = f"Remove the key, or use --device {others}."
            yield Finding(f"'{key}' is not supported by {network.chip.name}", key, remedy)


@layer_constraint("E316", Kind.HARDWARE, blocks=Fact.PLACES)
def depthwise_layout(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Depth-wise layers keep the lanes of their channels or move them by whole instances."""
    if not layer.depthwise:
        return
    if lowest_bit(layer.output_processors) % PROCESSORS_PER_INSTANCE:
        yield Finding(
            "the outputs of a depth-wise layer begin between two multiples of 4",
            ("output_processors", "groups"),
        )
    first = lowest_bit(layer.processors)
    span = layer.processors.bit_length() - first
    if span > PROCESSORS_PER_GROUP and first % PROCESSORS_PER_INSTANCE:
        yield Finding(
            "the inputs of a depth-wise layer of several groups begin between two multiples of 4",
            ("processors", "groups"),
        )
    if layer.bias_groups is not None:
        yield Finding("'bias_group' on a depth-wise layer", "bias_group")


@layer_constraint("E317", Kind.HARDWARE, blocks=Fact.PLACES)
def spread_kernel_limits(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """A kernel that is dilated over more than nine samples runs as a two-dimensional one."""
    taps, dilation = layer.kernel[0], layer.dilation
    if not layer.operator.one_dimensional or (taps - 1) * dilation < MAX_TAPS:
        return
    limit = chip.max_dimension - 1
    for wrong, message, key in (
        (taps > 3, f"{taps} taps, the limit is 3", "kernel_size"),
        (layer.pooling.reduces, "pooling", "max_pool"),
        (layer.pad[0] > 0, "padding", "pad"),
        (layer.operands > 1, "several operands", "eltwise"),
        (layer.flatten, "'flatten'", "flatten"),
        (layer.streaming, "'streaming'", "streaming"),
        (layer.read_ahead, "'readahead'", "readahead"),
        (layer.bypass, "'bypass'", "bypass"),
        (dilation > limit, f"'dilation' of {dilation}, the limit is {limit}", "dilation"),
    ):
        if wrong:
            yield Finding(f"a Conv1d with dilation {dilation} and {message}", (key, "dilation"))
    if layer.out_offset < layer.hardware.leading_bytes:
        yield Finding(
            f"'out_offset' is 0x{layer.out_offset:x}, a Conv1d with three taps and dilation "
            f"{dilation} needs at least 0x{layer.hardware.leading_bytes:x}",
            ("out_offset", "dilation"),
        )


@layer_constraint("E330", Kind.HARDWARE, waived_by="--ignore-hw-limits")
def padded_series_of_many_channels(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """MAX78002 pads a Conv1d in a single pass only."""
    wide = layer.operator.one_dimensional and layer.pad[0] > 0 and layer.in_passes > 1
    if wide and not chip.pads_series_of_passes:
        yield Finding(
            f"'pad' is {layer.pad[0]} on a Conv1d of {layer.in_channels} channels, "
            f"{chip.name} pads up to 64",
            "pad",
            "Use pad: 0.",
        )


@layer_constraint("E331", Kind.HARDWARE, blocks=Fact.PLACES)
def calcx4_outputs(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Four outputs are computed at a time, so their number must be a multiple of four."""
    if layer.calcx4 and layer.has_weights and layer.out_channels % 4:
        yield Finding(
            f"'calcx4' with {layer.out_channels} output channels, not a multiple of 4",
            ("calcx4", "out_channels"),
            f"Use a multiple of 4 channels, or {layer.without('calcx4')}.",
        )


@layer_constraint("E335", Kind.HARDWARE, waived_by="--ignore-hw-limits")
def calcx4_passes(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Computing four outputs at a time in several passes needs the kernels of all processors."""
    if layer.calcx4 and layer.out_passes > 1 and layer.processors.bit_count() < PROCESSORS:
        yield Finding(
            f"'calcx4' with {layer.out_passes} output passes and {layer.processors.bit_count()} "
            f"processors, it needs {PROCESSORS}",
            ("calcx4", "processors"),
            f"Use at most 64 output channels, or {layer.without('calcx4')}.",
        )
