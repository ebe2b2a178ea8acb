"""Files of the debugging options: what every layer reads, computes and writes.

Source: docs/generated-project.md, "Files for debugging".
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.tables import (
    Cells,
    constant_cells,
    formatted_cells,
    hexadecimal_cells,
    matrices,
    table,
)
from ai8xtools.synthesis.layer_data import LayerData
from ai8xtools.synthesis.summary import Summary
from ai8xtools.writing.arrays import decimal_cells
from device.chip import BIAS_UNIT

_PASS_MARK = 0x200000
"""Set in the offsets of the file of passes: the address that conditional execution compares."""
_NOTHING = np.zeros(0, np.int64)


def intermediate_files(summary: Summary, options: ProjectOptions) -> dict[str, bytes]:
    """Return the contents of the files that were asked for by their path in the folder."""
    layers = summary.layer_data
    files: dict[str, bytes] = {}
    if options.log_intermediate:
        files[f"{options.output_filename}.csv"] = b"".join(map(_words, layers))
        if options.pass_filename is not None:
            files[f"{options.pass_filename}.csv"] = _numbered_words(layers)
        files[f"{options.output_config_filename}.csv"] = _settings(layers)
        files[f"{options.output_data_filename}.npy"] = _records(_values(layers))
        files[f"{options.output_weights_filename}.npy"] = _records(x.weights for x in layers)
        files[f"{options.output_bias_filename}.npy"] = _records(x.bias for x in layers)
    if options.log_pooling:
        for layer in layers:
            files |= _pooling(layer)
    if options.debug_computation:
        files |= {f"compute-{layer.index}.csv": _computation(layer) for layer in layers}
    return files


def _words(layer: LayerData) -> bytes:
    """Return a line per word: w, offset, value, layer, channels, row, column."""
    words, count = layer.words, len(layer.words.offsets)
    channels = np.concatenate(
        [
            decimal_cells(words.first),
            constant_cells("-", count),
            decimal_cells(words.last),
        ],
        axis=1,
    )
    return table(
        [
            constant_cells("w", count),
            hexadecimal_cells(words.offsets),
            hexadecimal_cells(words.values),
            constant_cells(str(layer.index), count),
            channels,
            decimal_cells(words.rows),
            decimal_cells(words.columns),
        ]
    )


def _numbered_words(layers: Iterable[LayerData]) -> bytes:
    """Return a line per word of all layers: w, marked offset, value, layer, running number."""
    parts, number = [], 1
    for layer in layers:
        words, count = layer.words, len(layer.words.offsets)
        columns = [
            constant_cells("w", count),
            hexadecimal_cells(words.offsets | _PASS_MARK),
            hexadecimal_cells(words.values),
            constant_cells(str(layer.index), count),
            decimal_cells(np.arange(number, number + count)),
        ]
        parts.append(table(columns))
        number += count
    return b"".join(parts)


def _settings(layers: Iterable[LayerData]) -> bytes:
    return "".join(",".join(("l", *layer.settings)) + "\n" for layer in layers).encode("ascii")


def _values(layers: Iterable[LayerData]) -> Iterator[NDArray[np.int64] | None]:
    for layer in layers:
        yield from (layer.operands, layer.pooled, layer.value, layer.accumulator, layer.output)


def _records(arrays: Iterable[NDArray[np.int64] | None]) -> bytes:
    """Return arrays as NumPy records, one after the other; empty ones for None."""
    content = io.BytesIO()
    for array in arrays:
        np.save(content, _NOTHING if array is None else array, allow_pickle=False)
    return content.getvalue()


def _pooling(layer: LayerData) -> dict[str, bytes]:
    """Return a file for each channel of each operand, in front of and behind the pooling."""
    files: dict[str, bytes] = {}
    if layer.pooled is None:
        return files
    for name, values in (("unpooled", layer.unpooled), ("pooled", layer.pooled)):
        operands, channels, *size = values.shape
        texts = matrices(
            formatted_cells(values.reshape(-1), "{:.18e}".format),
            (operands * channels, size[0], size[1]),
        )
        for number, text in enumerate(texts):
            operand, channel = divmod(number, channels)
            files[f"{name}-{operand}-L{layer.index}-ch{channel}.csv"] = text
    return files


def _computation(layer: LayerData) -> bytes:
    """Return a line per output value: how it comes about, under a line of names."""
    channels, rows, columns = layer.output.shape
    places = np.indices((channels, rows, columns)).reshape(3, -1)
    named: list[tuple[str, NDArray[np.integer]]] = list(
        zip(("channel", "row", "column"), places, strict=True)
    )
    if layer.pass_sums is not None:
        named += [(f"pass{i}", sums.reshape(-1)) for i, sums in enumerate(layer.pass_sums)]
        bias = np.zeros(channels, np.int64) if layer.bias is None else BIAS_UNIT * layer.bias
        named.append(("bias", np.repeat(bias, rows * columns)))
        named.append(("sum", layer.accumulator.reshape(-1)))
        named.append(("scaled", layer.scaled.reshape(-1)))
    else:
        named += [(f"operand{i}", part.reshape(-1)) for i, part in enumerate(layer.arriving)]
    named.append(("output", layer.output.reshape(-1)))
    cells: list[Cells] = [decimal_cells(values) for _, values in named]
    header = ",".join(name for name, _ in named) + "\n"
    return header.encode("ascii") + table(cells)
