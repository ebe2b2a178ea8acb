"""The bytes of one layer's kernels, in the order in which the hardware reads them.

Seen as a stream, position t is byte 8 - t mod 9 of column t // 9. Kernels follow each other by
output pass, output and input pass, each last tap first; 8/b kernels of b bits share a byte.
Source: docs/hardware/memory.md, "Order of the bytes" and "Flattened layers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_BYTES
from device.masks import lowest_bit


@frozen
class Packed:
    """Columns of a layer from its first one on.

    `data` is uint8 [processor, column, byte], `written` bool [processor, column]: columns that are
    stepped over stay free for others. `columns` counts up to the end of the longest stream.
    """

    data: NDArray[np.uint8]
    written: NDArray[np.bool_]
    columns: int


def pack_layer(layer: MappedLayer, lane: int, length: int) -> Packed:
    """Return the columns of a layer with weights; at least `length` columns behind `lane`."""
    pieces = _flattened_pieces(layer) if layer.flatten else _kernel_pieces(layer)
    per_byte = 8 // abs(layer.weight_bits)
    taps = layer.hardware.kernel[0] * layer.hardware.kernel[1]
    in_passes = 1 if layer.flatten else layer.in_passes
    column, rest = divmod(lane * taps * in_passes, KERNEL_COLUMN_BYTES)
    begin = column * KERNEL_COLUMN_BYTES + rest // per_byte
    alike = _channels_alike(pieces.sizes)
    streams = [
        _lay_out(pieces.sizes[channels[0]], pieces.skips, begin, lane, length) for channels in alike
    ]
    columns = max(s.columns for s in streams)
    data = np.zeros((layer.in_share, columns * KERNEL_COLUMN_BYTES), np.uint8)
    written = np.zeros((layer.in_share, columns), np.bool_)
    width = pieces.data.shape[-1]
    for channels, stream in zip(alike, streams, strict=True):
        target = stream.starts[:, None] + np.arange(width)
        keep = np.arange(width) < pieces.sizes[channels[0]].reshape(-1)[:, None]
        rows = channels[:, None]
        data[rows, target[keep]] = pieces.data[channels].reshape(len(rows), -1, width)[:, keep]
        written[rows, stream.touched] = True
    shaped = data.reshape(layer.in_share, columns, KERNEL_COLUMN_BYTES)[:, :, ::-1]
    return Packed(shaped, written, columns)


def _channels_alike(sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the channels that have the same `sizes` [channel, step, piece], set by set."""
    groups: dict[bytes, list[int]] = {}
    for channel in range(len(sizes)):
        groups.setdefault(sizes[channel].tobytes(), []).append(channel)
    return [np.array(channels) for channels in groups.values()]


@frozen
class _Pieces:
    """What is put one after the other.

    `data` is uint8 [channel, step, piece, byte], `sizes` the bytes to put of each
    [channel, step, piece], `skips` how many columns are stepped over before each step.
    """

    data: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    skips: tuple[int, ...]


@frozen
class _Stream:
    """Start of each piece, the columns that received bytes, and the end."""

    starts: NDArray[np.int64]
    touched: NDArray[np.int64]
    columns: int


def _lay_out(
    sizes: NDArray[np.int64], skips: tuple[int, ...], begin: int, lane: int, length: int
) -> _Stream:
    """Place pieces of `sizes` [step, piece] from position `begin`, then fill up with zeros."""
    starts = np.empty(sizes.shape, np.int64)
    touched: list[NDArray[np.int64]] = []
    if not any(skips):
        ends = begin + np.cumsum(sizes).reshape(sizes.shape)
        starts = ends - sizes
        position = int(ends[-1, -1])
        touched.append(np.arange(begin // KERNEL_COLUMN_BYTES, -(-position // KERNEL_COLUMN_BYTES)))
    else:
        position = begin
        for step, skip in enumerate(skips):
            if skip:
                position = (position // KERNEL_COLUMN_BYTES + skip) * KERNEL_COLUMN_BYTES
            first = position
            for piece, size in enumerate(sizes[step].tolist()):
                starts[step, piece] = position
                position += size
            touched.append(
                np.arange(first // KERNEL_COLUMN_BYTES, -(-position // KERNEL_COLUMN_BYTES))
            )
    end = -(-position // KERNEL_COLUMN_BYTES)
    touched.append(np.arange(end, length + lane))
    return _Stream(starts.reshape(-1), np.concatenate(touched), max(end, length + lane))


def _steps(layer: MappedLayer, outputs_per_step: int) -> tuple[int, ...]:
    """Return how many columns are stepped over before each step of the output passes.

    Unused processors between used ones cost a whole column for each byte's worth of outputs,
    whatever the kernel's size: this is how the reference tool does it.
    """
    per_byte = 8 // abs(layer.weight_bits)
    skips = []
    for _ in range(layer.out_passes):
        rest = layer.output_processors >> lowest_bit(layer.output_processors)
        for _ in range(0, layer.out_share, outputs_per_step):
            skip = 0
            while rest and not rest & (1 << per_byte) - 1:
                rest >>= per_byte
                skip += 1
            rest >>= per_byte
            skips.append(skip)
    return tuple(skips)


def _masked(layer: MappedLayer) -> NDArray[np.uint8]:
    """Return the hardware's weights as unsigned values of the layer's width."""
    weights = layer.hardware.weights
    assert weights is not None
    if layer.weight_bits < 0:
        weights = weights.clip(-1, 0)
    return weights.view(np.uint8) & np.uint8((1 << abs(layer.weight_bits)) - 1)


def _kernel_pieces(layer: MappedLayer) -> _Pieces:
    """Kernels of a convolution: a step holds 8/b outputs, a piece is one byte-packed kernel."""
    width = abs(layer.weight_bits)
    per_byte = 8 // width
    share, in_passes, channels = layer.in_share, layer.in_passes, layer.in_channels
    weights = _masked(layer)
    kernels = weights.reshape(-1, weights.shape[2] * weights.shape[3])
    taps = kernels.shape[1]
    # The first output of a step counts on across passes, in whole bytes. A depth-wise layer has
    # one kernel for each channel and therefore a single step.
    skips = (0,) if layer.depthwise else _steps(layer, per_byte)
    first = np.arange(len(skips)) * per_byte
    x = np.arange(in_passes)[:, None] * per_byte + np.arange(per_byte)
    channel = np.arange(share)[:, None, None, None]
    base = channel + (first * channels)[None, :, None, None]
    index = base + (x % in_passes * share + x // in_passes * channels)[None, None]
    exists = (index < len(kernels)) & (first < layer.out_channels)[None, :, None, None]
    values = kernels[np.where(exists, index, 0)] * exists[..., None].astype(np.uint8)
    lanes = (np.arange(per_byte) * width).astype(np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(values << lanes[:, None], axis=3)[..., ::-1]
    present = (np.arange(in_passes) * share + np.arange(share)[:, None] < channels)[:, None, :] & (
        base[:, :, 0, :] < len(kernels)
    )
    packed = packed * present[..., None].astype(np.uint8)
    sizes = np.where(present, taps, taps // per_byte)
    return _Pieces(packed, sizes, skips)


def _flattened_pieces(layer: MappedLayer) -> _Pieces:
    """Rows of a flattened layer: one value for each pixel and pass, not reversed."""
    width = abs(layer.weight_bits)
    per_byte = 8 // width
    share, in_passes = layer.in_share, layer.in_passes
    weights = _masked(layer)
    outputs = weights.shape[0]
    rows = weights.reshape(outputs, in_passes, -1).swapaxes(1, 2).reshape(outputs, share, -1)
    length = rows.shape[2]
    skips = _steps(layer, 1)
    steps = len(skips)
    padded = np.zeros((steps * per_byte, share, length), np.uint8)
    padded[:outputs] = rows
    joined = padded.reshape(steps, per_byte, share, length).transpose(2, 0, 1, 3)
    lanes = (np.arange(per_byte) * width).astype(np.uint8)
    grouped = joined.reshape(share, steps, length, per_byte) << lanes
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(grouped, axis=3)[:, :, None, :]
    existing = np.clip(outputs - np.arange(steps) * per_byte, 0, per_byte)
    size = np.where(existing > 0, -(-existing * length // per_byte), 1 // per_byte)
    sizes = np.broadcast_to(size[None, :, None], (share, steps, 1))
    return _Pieces(packed, sizes, skips)
