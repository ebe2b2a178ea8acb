"""Constraints of streaming layers and of input through FIFOs."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check.constraint import Finding, Kind, constraint, layer_constraint
from ai8xtools.synthesis.check.layout import mask_text
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import NETWORK_INPUT
from device import Chip
from device.chip import FIFO_LANES, FIFOS, PROCESSORS_PER_GROUP
from device.masks import group_slice

_FIFO_GROUPS = range(FIFOS)
_INTERLEAVED = sum(
    ((1 << FIFO_LANES) - 1) << PROCESSORS_PER_GROUP * group for group in _FIFO_GROUPS
)
_PLANAR = sum(1 << PROCESSORS_PER_GROUP * group for group in _FIFO_GROUPS)


@constraint("E350", Kind.HARDWARE)
def streaming_begins_with_the_first_layer(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """A layer can stream only if all earlier layers stream."""
    previous = network.predecessor(layer) if layer.index in network.order else None
    if layer.streaming and previous is not None and not previous.streaming:
        yield Finding(
            f"a streaming layer behind {previous}, which does not stream",
            "streaming",
            "Let all layers up to this one stream, or remove the key.",
        )


@constraint("E351", Kind.HARDWARE)
def streaming_needs_a_fifo(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Data that is already in memory does not arrive row by row."""
    if not layer.streaming or layer is not network.first or network.input_port.is_fifo:
        return
    if not network.layout.allow_streaming:
        yield Finding(
            "the first layer streams, but the input does not come from a FIFO",
            "streaming",
            "Add --fifo (or --fast-fifo), or --ignore-streaming.",
        )


@constraint("E352", Kind.HARDWARE)
def streaming_layers_limit(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """There are stream registers for eight layers."""
    limit = network.chip.max_streaming_layers
    count = sum(x.streaming for x in network.layers)
    if layer is network.first and count > limit:
        yield Finding(f"{count} streaming layers, the limit is {limit}", "streaming")


@constraint("E359", Kind.HARDWARE, blocks=Fact.PLACES)
def stream_goes_on_with_the_next_slot(layer: MappedLayer, _: MappedNetwork) -> Iterator[Finding]:
    """Streaming layers run at the same time, each on the rows of the previous layer."""
    if layer.streaming and layer.next_layer not in (None, layer.index + 1):
        yield Finding(
            f"'next_sequence' is {layer.next_layer} in a streaming layer, expected "
            f"{layer.index + 1} or stop",
            "next_sequence",
            "Put the streaming layers one behind the other.",
        )


@layer_constraint("N337", Kind.HARDWARE, Severity.NOTICE)
def small_kernels_stream_as_large_ones(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Line buffers are made for 3x3 kernels, so a 1x1 kernel is surrounded by eight zeros."""
    if layer.widened:
        yield Finding(
            "the 1x1 kernel is stored as 3x3, in or behind a streaming layer",
            ("kernel_size", "op"),
        )


@constraint("E353", Kind.HARDWARE)
def last_streaming_layer_is_padded(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """MAX78000 ends a stream with rows of padding."""
    if not network.chip.pads_last_stream or not layer.streaming or not layer.has_weights:
        return
    following = network.following(layer)
    if not (following and following.streaming) and layer.hardware.pad[0] == 0:
        yield Finding("the last streaming layer has no padding", ("pad", "streaming"))


@layer_constraint("E354", Kind.HARDWARE)
def streaming_operators(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """A flattened image has no rows; MAX78002 streams only through convolutions."""
    if not layer.streaming:
        return
    if layer.flatten:
        yield Finding("'streaming' together with 'flatten'", "streaming")
    if not layer.has_weights and not chip.streams_passthrough:
        yield Finding("'streaming' on a layer without a convolution", "streaming")


@constraint("E355", Kind.HARDWARE)
def fifo_reaches_the_processors(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Each FIFO is wired to the first processors of one group."""
    if layer is not network.first or not network.input_port.is_fifo:
        return
    planar = layer.channels_first
    limit = FIFOS if planar else FIFOS * FIFO_LANES
    if layer.in_channels > limit:
        yield Finding(
            f"{layer.in_channels} input channels through the FIFOs, the limit is {limit} "
            f"with {'CHW' if planar else 'HWC'} data",
            ("in_channels", "processors"),
        )
    reachable = _PLANAR if planar else _INTERLEAVED
    if network.input_processors & ~reachable:
        yield Finding(
            f"'processors' {mask_text(network.input_processors)} has processors that the FIFOs "
            f"do not reach; they reach {mask_text(reachable)}",
            "processors",
        )


@constraint("E356", Kind.HARDWARE)
def fast_fifo_limits(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """There is one fast FIFO, which feeds a convolution with 8-bit output."""
    if layer is not network.first or not network.input_port.is_fast:
        return
    limit = 1 if layer.channels_first else FIFO_LANES
    if layer.in_channels > limit and not network.input_port.feeds_all_groups:
        yield Finding(
            f"{layer.in_channels} input channels through the fast FIFO, the limit is {limit}",
            ("in_channels", "processors"),
        )
    if layer.output_width != 8:
        yield Finding("32-bit output of the layer that the fast FIFO feeds", "output_width")
    if not layer.has_weights:
        yield Finding("the fast FIFO feeds a layer without a convolution", "op")


@layer_constraint("W357", Kind.HARDWARE, Severity.WARNING)
def streaming_with_bias(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """MAX78000 reads the bias of a streaming layer one byte too early; the loader corrects this."""
    if layer.streaming and layer.bias is not None and chip.skips_stream_bias:
        yield Finding("a bias in a streaming layer", ("streaming", "op"))


@constraint("E358", Kind.HARDWARE)
def synthesized_input_limits(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Generated words hold whole pixels and fill the image in rounds of equal length."""
    rule = network.layout.progression
    if layer is not network.first or rule is None:
        return
    if layer.channels_first or layer.in_channels > FIFO_LANES:
        order = "CHW" if layer.channels_first else "HWC"
        yield Finding(
            f"--synthesize-input with {layer.in_channels} channels of {order} data, "
            f"it makes up to {FIFO_LANES} channels of HWC data",
            ("data_format", "in_channels"),
        )
    pixels = layer.in_dim[0] * layer.in_dim[1]
    if rule.words < 1 or pixels % rule.words:
        yield Finding(
            f"--synthesize-words is {rule.words}, the image has {pixels} pixels",
            "in_dim",
            f"Use a divisor of {pixels}.",
        )
    if not 0 <= rule.step <= rule.mask:
        yield Finding(
            f"--synthesize-input is 0x{rule.step:x}, the limits are 0 and 0x{rule.mask:x}",
            "in_channels",
        )


@constraint("E385", Kind.HARDWARE)
def fifo_fills_the_rows_of_a_spread_kernel(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """A dilated Conv1d runs on rows as long as its dilation; a FIFO must deliver whole rows."""
    if layer is not network.first or not network.input_port.is_fifo:
        return
    length, dilation = layer.in_dim[0], layer.dilation
    spread = layer.operator.one_dimensional and layer.hardware.operator.two_dimensional
    if spread and length % dilation:
        yield Finding(
            f"{length} samples through the FIFO for a Conv1d with dilation {dilation}, of which "
            "the hardware needs a multiple; it would wait for more",
            "dilation",
            f"Use an input of a multiple of {dilation} samples, or no FIFO.",
        )


@constraint("W381", Kind.HARDWARE, Severity.WARNING)
def fifo_fills_its_lanes(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """A FIFO's words hold four channels, in the lanes of one group from the first on.

    Only the last group that is used may have fewer.
    """
    port = network.input_port
    if layer is not network.first or not port.is_fifo or layer.channels_first:
        return
    if network.input_processors & ~_INTERLEAVED:
        return
    slices = [group_slice(network.input_processors, group) for group in _FIFO_GROUPS]
    *full, last = [lanes for lanes in slices if lanes] or [0]
    if last & last + 1 or any(lanes != (1 << FIFO_LANES) - 1 for lanes in full):
        yield Finding(
            f"'processors' {mask_text(network.input_processors)} leaves out lanes of the FIFOs; "
            "the chip is not expected to compute the known answer",
            "processors",
            "Fill the first four processors of each group from the first on before the next group "
            f"begins, for example {mask_text(_filled(layer.in_channels))}.",
            unsound=True,
        )


def _filled(channels: int) -> int:
    """Return the processors of channels in the lanes of the first groups."""
    lanes = (divmod(channel, FIFO_LANES) for channel in range(channels))
    return sum(1 << PROCESSORS_PER_GROUP * group + lane for group, lane in lanes)


@constraint("W382", Kind.HARDWARE, Severity.WARNING)
def results_within_a_stream_are_not_kept(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """Only a few rows are kept between streaming layers, and none of the input of a FIFO."""
    for what, key in _lost_data(layer, network):
        yield Finding(
            f"{what}, of which a stream keeps some rows only; the chip is not expected to compute "
            "the known answer",
            key,
            "Let the layers up to this one do without streaming, or compute it again.",
            unsound=True,
        )


def _lost_data(layer: MappedLayer, network: MappedNetwork) -> Iterator[tuple[str, str]]:
    """Yield what a layer delivers or reads although it is not kept, and the key that says so."""
    if layer.index not in network.order:
        return
    if layer.is_output and not _is_kept(layer, network):
        yield f"the output of {layer} is delivered", "streaming"
    for source in layer.sources or ():
        if source == NETWORK_INPUT:
            if network.input_port.is_fifo and layer is not network.first:
                yield "it reads the input, which comes from a FIFO", "in_sequences"
        elif not _is_kept(network.layer(source), network):
            writer = network.layer(source)
            if network.following(writer) is not layer:
                yield f"it reads the output of {writer}", "in_sequences"


def _is_kept(layer: MappedLayer, network: MappedNetwork) -> bool:
    """Whether the whole output of a layer stands in memory; within a stream it does not."""
    following = network.following(layer)
    return not (layer.streaming and following is not None and following.streaming)
