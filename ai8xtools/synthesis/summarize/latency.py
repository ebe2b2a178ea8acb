"""The latency estimate of MAX78000, layer by layer.

Source: docs/hardware/execution.md, "Latency".
"""

from __future__ import annotations

from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.network import Size
from ai8xtools.synthesis.place import KernelRange
from ai8xtools.synthesis.summary import LatencyTerms
from device.chip import FLATTEN_LONG, GROUPS, PROCESSORS_PER_INSTANCE
from device.masks import group_slice


def latency_terms(layer: MappedLayer, kernels: KernelRange) -> LatencyTerms:
    """Return what the estimate of a layer is made of."""
    if layer.has_weights:
        return _convolution(layer, kernels)
    rows, columns = layer.hardware.pooled_dim
    passes = layer.in_passes
    if layer.out_passes > 1 and layer.pooling.active:
        passes = 2 * passes - 1
    _, data, _ = _pixel_cycles(layer, passes)
    slots = _time_slots(layer)
    return LatencyTerms(
        (("passes", passes), ("operands", layer.operands), ("time slots", slots)),
        (
            ("read and pool a pixel", rows * columns, data),
            ("deliver a pixel", rows * columns, passes * slots),
        ),
    )


def layer_cycles(layer: MappedLayer, terms: LatencyTerms) -> int:
    """Return the estimate of a layer: half as much again, rounded up to a tenth, if it streams."""
    return (15 * terms.total + 9) // 10 if layer.streaming else terms.total


def _convolution(layer: MappedLayer, kernels: KernelRange) -> LatencyTerms:
    hardware = layer.hardware
    rows, columns = _image(layer)
    # A flattened layer multiplies all pixels of the image for one of the result.
    flat = rows * columns if layer.flatten else 1
    out_columns = columns if layer.flatten else hardware.out_dim[1]
    passes = layer.in_passes
    pad, data, repeats = _pixel_cycles(layer, passes)
    outputs = kernels.count // (passes * flat)
    (pad_rows, pad_columns), (tap_rows, tap_columns) = hardware.pad, hardware.kernel
    edge = 2 * pad_columns * (pad + 1)
    left, right = pad_columns * (pad + 1), pad_columns * pad
    inner, rest = tap_columns - 1 - pad_columns, out_columns - pad_columns
    row = left + repeats * (inner * (data + 1) + rest * data) + right
    bottom = left + repeats * (inner * (pad + 1) + rest * pad) + right
    single = outputs if outputs == 1 and passes == 1 else 0
    out = passes * out_columns * outputs + single
    above = tap_rows - 1 - pad_rows
    return LatencyTerms(
        (
            ("passes", passes),
            ("operands", layer.operands),
            ("kernels of a pass", outputs),
            ("cycles of a pixel", data),
            ("cycles of a padding pixel", pad),
            ("repeats of a row", repeats),
        ),
        (
            ("long flattening", 1, int(layer.flat_passes >= FLATTEN_LONG)),
            ("kernels in front", 1, _before(layer, kernels, (rows, columns), repeats)),
            ("padding row", pad_rows, edge + repeats * columns * (pad + 1)),
            ("row read ahead", above, edge + repeats * columns * (data + 1)),
            ("row read", rows - above, row),
            ("padding row below", pad_rows, bottom),
            ("row of outputs", rows - above + pad_rows, out),
        ),
    )


def _image(layer: MappedLayer) -> Size:
    """Return the rows and columns that the operator sees."""
    rows, columns = layer.hardware.pooled_dim
    transposed = layer.hardware.operator.transposed
    return (2 * rows, 2 * columns) if transposed else (rows, columns)


def _pixel_cycles(layer: MappedLayer, passes: int) -> tuple[int, int, int]:
    """Return the cycles of a padding pixel and of a pixel, and how often a row is repeated."""
    window = layer.pooling.window[0] * layer.pooling.window[1]
    if layer.pool_first:
        return 2 * passes * layer.operands, passes * layer.operands * (window + 1), 1
    return 2 * passes, passes * (layer.operands * window + 1), passes


def _before(layer: MappedLayer, kernels: KernelRange, image: Size, passes: int) -> int:
    """Return the cycles that the kernels of the layers in front cost."""
    if layer.pool_first or (passes == 1 and layer.operands == 1):
        return 0
    (rows, columns), (pad_rows, pad_columns) = image, layer.hardware.pad
    tap_rows, tap_columns = layer.hardware.kernel
    return (
        (rows + 2 * pad_rows - tap_columns + 1) * pad_columns
        + (columns + 2 * pad_columns - tap_rows + 1) * pad_rows
        - pad_rows * pad_columns
    ) * kernels.first


def _time_slots(layer: MappedLayer) -> int:
    """Steps in which a group delivers the values of a pixel that passes through."""
    most = max(group_slice(layer.processors, g).bit_count() for g in range(GROUPS))
    return -(-most * layer.output_words_per_value // PROCESSORS_PER_INSTANCE)
