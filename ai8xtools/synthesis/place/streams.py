"""When streaming layers start, how far they lag behind, and how large their ring buffers are.

A streaming layer reads from a ring buffer that begins at its in_offset; the layer before writes
into it.
Source: docs/hardware/streaming.md, "Registers".
"""

from __future__ import annotations

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import StreamOptions
from ai8xtools.values import frozen

_CHW_ROLLOVER = 12


@frozen
class Stream:
    """Data words before a layer starts, between its steps and rows, and of its ring buffer."""

    start: int = 0
    delta1: int = 0
    delta2: int = 0
    rollover: int = 0


def passes_before(layer: MappedLayer, network: MappedNetwork) -> int:
    """Return the input passes of the layers before a streaming layer."""
    if not layer.streaming or layer is network.first:
        return 0
    return sum(_passes(x) for x in network.layers if x.index < layer.index)


def frame_words(layer: MappedLayer) -> int:
    """Return the FIFO words of a frame."""
    pixels = layer.hardware.in_dim[0] * layer.hardware.in_dim[1]
    return -(-pixels // 4) if layer.channels_first else pixels


def _passes(layer: MappedLayer) -> int:
    return -(-layer.in_passes // 4) * 4 if layer.tcalc else layer.in_passes


def place_streams(network: MappedNetwork, options: StreamOptions) -> dict[int, Stream]:
    """Return the settings of the executed layers that take part in streaming, by layer index."""
    streams = {layer.index: stream_of(layer, network, options) for layer in network.executed()}
    return {index: stream for index, stream in streams.items() if stream != Stream()}


def stream_of(layer: MappedLayer, network: MappedNetwork, options: StreamOptions) -> Stream:
    """Return a layer's stream settings; all zero where nothing streams."""
    first = layer is network.first
    fifo = network.input_port.is_fifo
    if not layer.streaming and not (first and fifo):
        return Stream()
    if network.chip.streams_by_line:
        return _by_line(layer, network, options)
    if first:
        return _first_by_window(layer, options) if fifo else Stream()
    return _later_by_window(layer, network, options)


def _overriding(value: int | None, computed: int) -> int:
    return computed if value is None else value


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


# MAX78000


def _rollover_by_window(layer: MappedLayer, start: int) -> int:
    if layer.channels_first:
        words = _CHW_ROLLOVER
    else:
        (rows, across), stride = layer.pooling.window, layer.pooling.stride[1]
        words = start + (rows - 1) * layer.hardware.in_dim[1] + max(layer.stride[1], stride, across)
    return _up(words, layer.in_passes)


def _first_by_window(layer: MappedLayer, options: StreamOptions) -> Stream:
    columns = layer.hardware.in_dim[1]
    rows, across = layer.pooling.window
    if options.override_start is not None:
        start = options.override_start
    elif layer.streaming:
        start = ((rows - 1) * columns + across) * rows
    else:
        start = frame_words(layer) * rows
    if not layer.streaming:
        return Stream(start)
    return Stream(
        start,
        _overriding(options.override_delta1, (layer.pooling.stride[1] - 1) * layer.operands),
        _overriding(options.override_delta2, (rows - 1) * columns * layer.operands),
        _overriding(options.override_rollover, _rollover_by_window(layer, start)),
    )


def _later_by_window(layer: MappedLayer, network: MappedNetwork, options: StreamOptions) -> Stream:
    previous = network.predecessor(layer)
    assert previous is not None
    line = previous.hardware.pooled_dim[1] + 2 * previous.hardware.pad[1]
    rows, across = layer.pooling.window
    kernel_rows, kernel_columns = previous.hardware.kernel
    start = line * (kernel_rows - 1 + rows - 1) + kernel_columns - 1 + across
    start += options.increase_start
    return Stream(
        start,
        layer.pooling.stride[1] * layer.operands + options.increase_delta1,
        (layer.pooling.stride[0] - 1) * line + across * layer.operands + options.increase_delta2,
        _rollover_by_window(layer, start),
    )


# MAX78002


@frozen
class _Line:
    """Quantities of a layer's input line."""

    columns: int
    padded: int
    row_step: int
    column_step: int
    adjust: int
    skip: int


def _line(layer: MappedLayer) -> _Line:
    columns, pad = layer.hardware.in_dim[1], layer.hardware.pad[1]
    window, stride, dilation = layer.pooling.window, layer.pooling.stride, layer.pooling.dilation
    row_step = max(window[0] * dilation[0], stride[0])
    column_step = max(window[1] * dilation[1], stride[1])
    if layer.index == 0:
        effective = columns // stride[1]
        effective -= effective * stride[1] + window[1] - 1 > columns
    else:
        effective = columns // column_step
        effective -= effective * stride[1] + window[1] > columns
    adjust = 0 if column_step == 1 else columns - effective * column_step
    skip = max(0, columns - effective * stride[1])
    return _Line(columns, columns + 2 * pad, row_step, column_step, adjust, skip)


def _by_line(layer: MappedLayer, network: MappedNetwork, options: StreamOptions) -> Stream:
    line, first = _line(layer), layer is network.first
    fifo = network.input_port.is_fifo
    raw = _start_by_line(layer, network, line)
    start = -(-raw // 4) if first and layer.channels_first else raw
    if first and options.override_start is not None:
        raw = start = options.override_start
    elif first and not fifo:
        raw = start = 0
    if not layer.streaming:
        return Stream(start)
    if first:
        delta1, delta2 = _first_deltas(layer, line, options)
    else:
        rows, stride = layer.pooling.stride[0], layer.pooling.stride[1]
        delta1 = stride * layer.operands + options.increase_delta1
        across = delta1 if rows == 1 else (rows - 1) * line.columns
        delta2 = across + line.adjust + options.increase_delta2
    return Stream(start, delta1, delta2, _rollover_by_line(layer, line, raw, first, options))


def _start_by_line(layer: MappedLayer, network: MappedNetwork, line: _Line) -> int:
    pad, window, stride = layer.hardware.pad[1], layer.pooling.window, layer.pooling.stride
    ahead = stride[1] if layer.read_ahead else 0
    rows = line.row_step * line.padded + pad + 2 * line.column_step
    if layer is network.first:
        if not layer.streaming:
            return layer.hardware.in_dim[0] * layer.hardware.in_dim[1]
        if stride[0] == 1 and window[0] == 1:
            return line.column_step
        return rows * layer.operands + ahead
    lead = (pad or stride[0]) * line.padded
    following = network.following(layer)
    last = layer is network.final or not (following and following.streaming)
    adjust = line.adjust * stride[1] if last else 0
    return lead + rows * layer.operands + ahead + adjust


def _first_deltas(layer: MappedLayer, line: _Line, options: StreamOptions) -> tuple[int, int]:
    window, stride = layer.pooling.window, layer.pooling.stride

    def words(value: int) -> int:
        return -(-value // 4) if layer.channels_first else value

    delta1 = stride[1] * layer.operands - (stride[0] == 1 and window[0] == 1)
    delta1 = _overriding(options.override_delta1, words(delta1))
    if options.override_delta2 is not None:
        return delta1, options.override_delta2
    if stride[0] == 1:
        delta2 = delta1 + line.skip
    else:
        delta2 = (stride[0] - 1) * line.columns + line.skip + window[1] - 1
    delta2 = words(delta2)
    return delta1, delta2 + (options.pipeline is not False and delta2 > 0)


def _rollover_by_line(
    layer: MappedLayer, line: _Line, raw: int, first: bool, options: StreamOptions
) -> int:
    stride = layer.pooling.stride
    if first:
        if options.override_rollover is not None:
            return options.override_rollover
        words = raw + line.column_step + (stride[1] - 1) * line.padded
        return words * 4 * stride[1] if layer.channels_first else words
    row = line.row_step * line.columns + layer.hardware.pad[1] + line.column_step
    words = raw + (layer.in_passes - 1) * row + line.column_step
    return _up(words, layer.in_passes)
