"""A network in floating point: what its maps hold for samples, and how integers differ from that.

This module uses torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import Float64s
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Graph,
    Multiply,
    Pool,
    Step,
    Table,
    Weighted,
)
from ai8xtools.values import frozen

_KEPT_VALUES = 1 << 22
"""Of larger maps, percentiles are those of evenly spaced values."""


@frozen
class Ranges:
    """Of all maps: the largest magnitudes, and the percentile of magnitudes that was asked for."""

    largest: tuple[float, ...]
    percentile: tuple[float, ...]


def compute(graph: Graph, samples: Float64s) -> list[Float64s]:
    """Return all maps [N, C, H, W] in float64, by their numbers; unused ones are empty."""
    maps: list[Tensor] = [torch.zeros(0, dtype=torch.float64)] * len(graph.shapes)
    maps[0] = torch.from_numpy(np.ascontiguousarray(samples, np.float64))
    with torch.no_grad():
        for step in graph.steps:
            inputs = [maps[source] for source in step.sources]
            maps[step.target] = _step(step, inputs, len(samples))
    return [tensor.numpy() for tensor in maps]


def _spread(data: Tensor, step: Weighted) -> Tensor:
    """Return maps with the zeros of a transposed convolution between and behind their pixels."""
    if step.spread == (1, 1) and step.extra == (0, 0):
        return data
    count, channels, *size = data.shape
    wide = [(n - 1) * s + 1 + e for n, s, e in zip(size, step.spread, step.extra, strict=True)]
    result = data.new_zeros(count, channels, *wide)
    result[:, :, :: step.spread[0], :: step.spread[1]][:, :, : size[0], : size[1]] = data
    return result


def _step(step: Step, inputs: Sequence[Tensor], count: int) -> Tensor:
    data = inputs[0] if inputs else torch.zeros(0)
    match step:
        case Weighted():
            weights, bias = (
                torch.from_numpy(np.ascontiguousarray(v)) for v in (step.weights, step.bias)
            )
            data = _spread(data, step)
            return functional.conv2d(data, weights, bias, step.stride, step.padding, 1, step.groups)
        case Enlarge():
            rows, columns = step.factor
            return data.repeat_interleave(rows, 2).repeat_interleave(columns, 3)
        case Pool() if step.average:
            return functional.avg_pool2d(data, step.window, step.stride, step.padding, step.ceil,
                                         count_include_pad=False)  # fmt: skip
        case Pool():
            return functional.max_pool2d(data, step.window, step.stride, step.padding,
                                         ceil_mode=step.ceil)  # fmt: skip
        case Gather():
            return data[:, :, step.rows][:, :, :, step.columns]
        case Flatten():
            ordered = data.permute(0, *(axis + 1 for axis in step.order))
            return ordered.reshape(count, -1, 1, 1)
        case Table():
            return torch.from_numpy(step.function(data.numpy()))
        case Multiply():
            return inputs[0] * inputs[1]
        case Constant():
            return torch.from_numpy(step.values.copy()).expand(count, *step.values.shape)
        case Clip():
            return data.clamp(step.low, step.high)
        case Add():
            return torch.stack(list(inputs)).sum(0)
        case Concat():
            return torch.cat(list(inputs), 1)
        case _:
            assert_never(step)


def measure(graph: Graph, batches: Iterable[Float64s], percentile: float = 100.0) -> Ranges:
    """Return the magnitudes of all maps for samples [N, C, H, W].

    Raises InputError E740 for samples that are no finite numbers, that are all zero, or none.
    """
    parts = list(batches)
    check_samples(parts)
    total = sum(map(len, parts))
    largest = np.zeros(len(graph.shapes))
    kept: list[list[Float64s]] = [[] for _ in graph.shapes]
    for part in parts:
        for number, data in enumerate(compute(graph, part)):
            if not data.size:
                continue
            magnitudes = np.abs(data).reshape(-1)
            largest[number] = max(largest[number], magnitudes.max())
            if percentile < 100:
                every = -(-data[0].size * total // _KEPT_VALUES)
                kept[number].append(magnitudes[::every])
    held = tuple(map(float, largest))
    if percentile >= 100:
        return Ranges(held, held)
    return Ranges(held, tuple(
        float(np.percentile(np.concatenate(values), percentile)) if values else 0.0
        for values in kept
    ))  # fmt: skip


def check_samples(parts: Sequence[Float64s]) -> None:
    """Raise InputError E740 for samples that are no finite numbers, all zero, or none."""
    remedy = (
        "Name samples like those of the application: --calibrate DATASET, FILE.npy or FILE.npz."
    )
    if not sum(map(len, parts)):
        raise InputError("E606", "there are no samples to calibrate with", "--calibrate", remedy)
    for part in parts:
        wrong = ~np.isfinite(part)
        if wrong.any():
            raise InputError("E740", f"{int(wrong.sum())} values of the calibration samples are "
                             "not finite (NaN or infinity)", "--calibrate", remedy)  # fmt: skip
    if not any(part.any() for part in parts):
        raise InputError(
            "E740", "all values of the calibration samples are zero", "--calibrate", remedy
        )
