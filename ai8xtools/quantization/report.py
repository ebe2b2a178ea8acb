"""What quantization did to each tensor, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ai8xtools.quantization.arithmetic import Float32s, mean, mean_channel_magnitude
from ai8xtools.reading import tables
from ai8xtools.values import frozen


@frozen
class TensorReport:
    """Statistics of one weight or bias tensor.

    Ranges and means are those before quantization. `factor` turns values into integers.
    `stored_quantile`: the checkpoint set the quantile of the range. `shift` is the output shift
    that goes with the integers; `gain` is by what both multiply the layer's output (1 is best).
    `clipped` counts values whose integer was out of range; `snr_db` is the ratio of signal to
    quantization noise in decibels.
    """

    name: str
    shape: tuple[int, ...]
    avg_max: np.float32
    low: np.float32
    high: np.float32
    mean: np.float32
    factor: np.float32
    stored_quantile: bool
    bits: int
    shift: int
    gain: float
    clipped: int
    snr_db: float


@frozen
class Conversion:
    """How values became integers: the fields of TensorReport of the same names."""

    factor: np.float32
    bits: int
    shift: int
    gain: float
    stored_quantile: bool = False


def measure(name: str, before: Float32s, integers: Float32s, how: Conversion) -> TensorReport:
    """Compare a tensor with its integers (-2^(bits-1) .. 2^(bits-1)-1) of the same shape."""
    scaled = before.astype(np.float64) * np.float64(how.factor)
    limit = 2 ** (how.bits - 1)
    return TensorReport(
        name=name,
        shape=before.shape,
        avg_max=mean_channel_magnitude(before),
        low=before.min(),
        high=before.max(),
        mean=mean(before),
        factor=how.factor,
        stored_quantile=how.stored_quantile,
        bits=how.bits,
        shift=how.shift,
        gain=how.gain,
        clipped=int(np.count_nonzero((scaled >= limit - 0.5) | (scaled < -limit - 0.5))),
        snr_db=decibels(np.sum(scaled**2), np.sum((scaled - integers) ** 2)),
    )


def report_line(report: TensorReport) -> str:
    """Return the line that scripts parse.

    Source: docs/quantization.md, "The report".
    """
    largest = max(abs(report.low), abs(report.high))
    factor = np.array([report.factor]) if report.stored_quantile else report.factor
    return (
        f"{report.name} avg_max: {report.avg_max!s} max: {largest!s} mean: {report.mean!s} "
        f"factor: {factor!s} bits: {report.bits}"
    )


def report_table(reports: Sequence[TensorReport]) -> str:
    """Return a table with a row per tensor."""
    headers = [
        "tensor", "shape", "min", "max", "bits", "shift", "factor", "gain", "clipped", "SNR/dB",
    ]  # fmt: skip
    rows = [
        (
            report.name,
            "×".join(map(str, report.shape)),
            f"{report.low:.4f}",
            f"{report.high:.4f}",
            report.bits,
            report.shift,
            f"{report.factor:g}",
            f"{report.gain:.4g}",
            f"{100 * report.clipped / math.prod(report.shape):.2f}%",
            f"{report.snr_db:.1f}",
        )
        for report in reports
    ]
    return tables.table(rows, headers)


def decibels(signal: float, noise: float) -> float:
    """Return the ratio of two energies in decibels."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf
