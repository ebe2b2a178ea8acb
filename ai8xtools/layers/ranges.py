"""Statistics of what layers put out, and the range that suits each of them.

The range is a power of two, 2^t, by which the output is divided before it is stored in 8 bits. It
is the one with the least squared error over the values of a pass through the training data.
Source: docs/quantization.md, "Ranges of activations".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.elementwise import Eltwise
from ai8xtools.layers.scales import apply_scales
from ai8xtools.layers.training_steps import use_thresholds

Float64s: TypeAlias = NDArray[np.float64]
Histogram: TypeAlias = tuple[Float64s, float, float]
"""Counts [BINS] in equal bins, and the lowest and the highest value."""

BINS = 2048
DEFAULT_Z_SCORE = 8.0
TRIED_RANGES = 5
_STEPS = 128  # of 8-bit data, in one half of its range


class NotFiniteError(ValueError):
    """A layer puts out NaN or an infinite value; the message names it."""


def measured_modules(model: nn.Module) -> dict[str, QuantizationAwareModule | Eltwise]:
    """Return the layers and element-wise layers of a model by their dotted names."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, QuantizationAwareModule | Eltwise)
    }


def init_hist(model: nn.Module) -> None:
    """Let every layer count its outputs in histograms from now on, one for each call."""
    for name, module in measured_modules(model).items():
        module.measured_name, module.histograms = name, []
        module.histogram_hook = module.register_forward_hook(_count)


def release_hist(model: nn.Module) -> None:
    """End counting and forget the histograms."""
    for module in measured_modules(model).values():
        if hasattr(module, "histogram_hook"):
            module.histogram_hook.remove()
            del module.histogram_hook, module.histograms, module.measured_name


@torch.no_grad()
def stat_collect(train_loader: Iterable[Any], model: nn.Module, args: Any) -> None:
    """Pass all batches of a loader, (inputs, targets), through the model in evaluation mode.

    `args.device` is where the inputs go. The mode of the model is as before afterwards.
    """
    training = model.training
    model.eval()
    for inputs, _ in train_loader:
        model(inputs.to(args.device))
    model.train(training)


def init_threshold(model: nn.Module, outlier_removal_z_score: float = DEFAULT_Z_SCORE) -> None:
    """Set the `activation_threshold` of every layer that has histograms to its best range.

    Values further than so many standard deviations from the mean do not count.
    """
    for module in measured_modules(model).values():
        histograms: list[Histogram] = getattr(module, "histograms", [])
        module.use_thresholds()
        if histograms:
            exponent = best_exponent(*merged(histograms), z_score=outlier_removal_z_score)
            module.activation_threshold.data.fill_(exponent)
            if isinstance(module, QuantizationAwareModule):
                module.set_functions()


def pre_qat(model: nn.Module, train_loader: Iterable[Any], args: Any, qat_policy: Any) -> None:
    """Measure the ranges of all activations on the training data and carry them through the model.

    Batch normalization must be folded before. Raises NotTraceableError.
    """
    use_thresholds(model)
    init_hist(model)
    try:
        stat_collect(train_loader, model, args)
        init_threshold(model, qat_policy.get("outlier_removal_z_score", DEFAULT_Z_SCORE))
    finally:
        release_hist(model)
    apply_scales(model)


def _count(module: nn.Module, _inputs: Any, output: Tensor) -> None:
    values = output.detach().flatten().float().cpu()
    low, high = map(float, values.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise NotFiniteError(f"{module.measured_name} puts out values that are not finite")
    if low == high:  # which torch.histogram would widen
        counts = np.zeros(BINS)
        counts[-1] = values.numel()
    else:
        counts = torch.histogram(values, BINS).hist.double().numpy()
    module.histograms.append((counts, low, high))


def share_histograms(
    model: nn.Module, together: Callable[[list[Histogram]], list[Histogram]]
) -> None:
    """Let every layer have what `together` makes of its histograms, those of other processes."""
    for module in measured_modules(model).values():
        module.histograms = together(module.histograms)


def merged(histograms: list[Histogram]) -> tuple[Float64s, Float64s]:
    """Return one histogram of several: counts [BINS + 1], fractional, and edges [BINS + 1].

    Count j belongs to the bin that ends at edge j; the first one, of what lies at the lowest edge,
    is 0 unless a histogram begins there with a count of its own.
    """
    edges = np.linspace(min(h[1] for h in histograms), max(h[2] for h in histograms), BINS + 1)
    total = np.zeros(BINS + 1)
    for counts, low, high in histograms:
        cumulated = np.concatenate([[0.0], np.cumsum(counts)])
        at_edges = np.interp(edges, np.linspace(low, high, BINS + 1), cumulated)
        total += np.diff(at_edges, prepend=0.0)
    return total, edges


def best_exponent(counts: Float64s, edges: Float64s, z_score: float) -> int:
    """Return t of the range 2^t with the least squared error of a merged histogram.

    A layer that never puts out anything but 0 counts as not measured: 0.
    """
    counts = without_outliers(counts, edges, z_score)
    kept = counts != 0
    counts, values = counts[kept], edges[kept]
    largest = np.abs(values).max(initial=0.0)
    if not largest:
        return 0
    first = int(np.ceil(np.log2(largest)))
    errors = [_squared_error(counts, values, first - i) for i in range(TRIED_RANGES)]
    return first - int(np.argmin(errors))


def without_outliers(counts: Float64s, edges: Float64s, z_score: float) -> Float64s:
    """Return the counts with 0 for bins further than `z_score` deviations from the mean."""
    middles, inner = (edges[:-1] + edges[1:]) / 2, counts[1:]
    if not inner.sum():
        return counts
    mean = np.average(middles, weights=inner)
    deviation = np.sqrt(np.average((middles - mean) ** 2, weights=inner)) or 1e-9
    places = np.concatenate([[0.0], middles])
    far = (places > mean + z_score * deviation) | (places < mean - z_score * deviation)
    return np.where(far, 0.0, counts)


def _squared_error(counts: Float64s, values: Float64s, exponent: int) -> float:
    """Return the mean squared error of values that are stored in 8 bits of the range 2^t."""
    unit = 2.0**exponent + 1e-9
    stored = np.clip(np.rint(values / unit * _STEPS), -_STEPS, _STEPS - 1) * unit / _STEPS
    return float(np.average((stored - values) ** 2, weights=counts))
