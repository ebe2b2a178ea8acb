"""Constraints of the simulation, which makes the known answer: every layer finds what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ai8xtools.synthesis.check.constraint import Finding, Kind, constraint
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network

Shape = tuple[int, int, int]
"""Channels, rows, columns."""


def _read(layer: Layer, network: Network) -> tuple[int, ...]:
    """What a simulated layer reads: its sources, or the layer simulated before it."""
    position = network.simulated.index(layer.index)
    before = network.simulated[position - 1] if position else NETWORK_INPUT
    return layer.sources if layer.sources is not None else (before,)


def _shape(source: int, network: Network) -> Shape:
    """Return what a source gives; nothing, if there is no rolling buffer."""
    if source == NETWORK_INPUT:
        channels, rows, columns = network.sample.shape
        return channels, rows, columns
    if source == DATA_BUFFER:
        buffer = network.buffer
        return (buffer.channels, buffer.entries, buffer.width) if buffer else (0, 0, 0)
    layer = network.layer(source)
    return (layer.out_channels, *layer.out_dim)


def _text(shapes: Sequence[Shape]) -> str:
    return " and ".join(f"{c}x{rows}x{columns}" for c, rows, columns in shapes)


@constraint("E393", Kind.NETWORK)
def simulated_layers_read_simulated_ones(layer: Layer, network: Network) -> Iterator[Finding]:
    """The known answer is computed in simulated order; layers that are left out have no values."""
    if layer.index not in network.simulated:
        return
    earlier = network.simulated[: network.simulated.index(layer.index)]
    for source in _read(layer, network):
        if source >= 0 and source not in earlier:
            yield Finding(
                f"'in_sequences' names {network.layer(source)}, which is not simulated before",
                "in_sequences",
                "Correct 'simulated_sequence' so that the layer is simulated first.",
            )


@constraint("E394", Kind.NETWORK)
def outputs_are_simulated(layer: Layer, network: Network) -> Iterator[Finding]:
    """The output of an output layer is compared with the known answer, which must contain it."""
    if layer.is_output and layer.index not in network.simulated:
        yield Finding(
            "'output' is true, but the layer is not simulated",
            "output",
            "Remove it, or correct 'simulated_sequence' and 'next_sequence'.",
        )


@constraint("E395", Kind.NETWORK)
def data_given_is_data_read(layer: Layer, network: Network) -> Iterator[Finding]:
    """The shape that a layer reads must be that of the sample, the buffer or another layer."""
    if layer.index not in network.simulated or layer.buffer_shift:
        return
    shapes = [_shape(source, network) for source in _read(layer, network)]
    joined = _joined(shapes, sum(layer.in_crop))
    rows, columns = layer.in_dim
    pixels, channels = rows * columns, layer.operands * layer.in_channels
    if network.reshapes_inputs:
        fits = joined[0] >= layer.channel_skip + channels and joined[1] == joined[0] * pixels
    else:
        fits = joined[1] == channels * pixels
    divides = network.reshapes_inputs or joined[0] % layer.operands == 0
    if not (divides if fits else _is_reported_elsewhere(layer, network)):
        operands = f"{layer.operands} x " if layer.operands > 1 else ""
        before, after = layer.in_crop
        cropped = f" less {before} and {after} rows" if before or after else ""
        yield Finding(
            f"the inputs are {_text(shapes)}{cropped}, but the weights or keys of this layer need "
            f"{operands}{layer.in_channels}x{rows}x{columns}",
            (*(("in_crop",) if cropped else ()), "in_sequences", "in_channels", "in_dim", "op"),
            "Check 'in_sequences', 'in_dim' and 'in_crop', and the sizes of sample and buffer.",
        )


def _is_reported_elsewhere(layer: Layer, network: Network) -> bool:
    """Whether another constraint (E349, E360) compares what the layer needs with the same data."""
    read = _read(layer, network)
    if layer is network.first:
        return layer.sources is None and not any(layer.in_crop)
    previous = network.predecessor(layer)
    same = layer.sources is not None or (previous is not None and read == (previous.index,))
    sizes = {_shape(source, network)[1:] for source in read}
    return min(read) >= 0 and same and (len(sizes) == 1 or not any(layer.in_crop))


def _joined(shapes: Sequence[Shape], cropped: int) -> tuple[int, int]:
    """Return the channels and all values of inputs: side by side, or by pixels if sizes differ."""
    if len({shape[1:] for shape in shapes}) == 1:
        channels = sum(shape[0] for shape in shapes)
        return channels, channels * (shapes[0][1] - cropped) * shapes[0][2]
    pixels = sum(rows * columns for _, rows, columns in shapes)
    return shapes[0][0], shapes[0][0] * (pixels - cropped)


@constraint("E396", Kind.NETWORK)
def joined_pixels_have_equal_channels(layer: Layer, network: Network) -> Iterator[Finding]:
    """Inputs of different sizes are joined pixel by pixel, which needs equal channels."""
    if layer.index not in network.simulated or layer.sources is None:
        return
    shapes = [_shape(source, network) for source in layer.sources]
    if len({shape[1:] for shape in shapes}) > 1 and len({shape[0] for shape in shapes}) > 1:
        yield Finding(
            f"the inputs are {_text(shapes)}; with different sizes, the channels must be equal",
            "in_sequences",
            "Make the sizes equal with pooling.",
        )


@constraint("E397", Kind.NETWORK)
def buffer_is_shifted_in_place(layer: Layer, network: Network) -> Iterator[Finding]:
    """A layer that shifts a rolling buffer moves the whole buffer, and nothing else."""
    if not layer.buffer_shift:
        return
    if layer.sources != (DATA_BUFFER,):
        yield Finding(
            "'buffer_shift' on a layer that does not read the data buffer",
            ("in_sequences", "buffer_shift"),
            "Name the buffer of 'data_buffer', and nothing else, in 'in_sequences'.",
        )
    elif network.buffer is not None and layer.buffer_shift >= network.buffer.entries:
        yield Finding(
            f"'buffer_shift' is {layer.buffer_shift}, the buffer has {network.buffer.entries} "
            "entries",
            "buffer_shift",
            f"The largest shift that keeps something is {network.buffer.entries - 1}.",
        )
    if layer.operator.weighted or layer.pooling.reduces or layer.operands > 1:
        yield Finding(
            "'buffer_shift' on a layer that does more than pass data through", "buffer_shift"
        )


@constraint("E398", Kind.NETWORK)
def entries_inserted_fit_the_buffer(layer: Layer, network: Network) -> Iterator[Finding]:
    """A layer must insert whole entries into the rolling buffer."""
    if not layer.buffer_insert:
        return
    buffer = network.buffer
    if buffer is None:
        yield Finding(
            "'buffer_insert' without a 'data_buffer'",
            "buffer_insert",
            "Describe the buffer with the global key data_buffer.",
        )
        return
    rows, columns = layer.out_dim
    entries = layer.buffer_insert
    size = rows * columns == entries * buffer.width
    if entries > buffer.entries or layer.out_channels != buffer.channels or not size:
        yield Finding(
            f"'buffer_insert' is {entries}, but the layer gives {layer.out_channels}x{rows}x"
            f"{columns} for a buffer of {buffer.channels}x{buffer.entries}x{buffer.width}",
            "buffer_insert",
            "The output must have the buffer's channels, and as many pixels as the entries need.",
        )
