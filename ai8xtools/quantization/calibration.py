"""Integers and shifts chosen by their effect on samples, for networks trained without QAT.

The layers are taken from input to output, each with predecessors that already compute as the
accelerator does. For a layer, several output shifts are tried, each with rounding to the nearest
integer and with rounding that looks at the data (`quantization.adaptive`); the layer is computed by
the 8-bit simulation itself, and what comes nearest to the trained network wins. Half of the samples
shape the weights, the other half judges, so that weights do not learn the samples by heart.

This module uses torch; it is imported for calibration only. It knows no model and no data set: it
gets two copies of the network, one that computes in floating point and one that simulates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.adaptive import DataRounding, Moments, columns, weight_rows
from ai8xtools.quantization.options import LayerIntegers
from ai8xtools.quantization.report import decibels
from ai8xtools.reading.progress import tracked
from ai8xtools.values import frozen

DATA_STEPS = 128  # a data value 1.0 is the integer 128
BIAS_LIMIT = 128
_TRIED_SCALES = {8: 4, 4: 5, 2: 5, 1: 6}  # from the one at which nothing is clipped


@frozen
class LayerChoice:
    """The choice for a layer: `integers`, how they were rounded, and the resulting error.

    `snr_db` is the ratio of signal to error of the layer's output on the samples that judge; with
    rounding to the nearest and without clipping it would have been `plain_snr_db`.
    """

    name: str
    integers: LayerIntegers
    rounding: str
    snr_db: float
    plain_snr_db: float


class _Reached(Exception):  # noqa: N818 - no error, it ends a pass
    """Ends a forward pass at a layer."""


@frozen
class _Candidate:
    integers: LayerIntegers
    rounding: str


def calibrate(
    trained: nn.Module,
    simulated: nn.Module,
    samples: Sequence[Tensor],
    bits: Mapping[str, int],
) -> list[LayerChoice]:
    """Choose the integers of every layer that the network uses, in the order of their use.

    `trained` computes in floating point, `simulated` is the same network in the 8-bit simulation;
    its layers are filled on the way. `samples` are batches of inputs in -1..127/128, at least one;
    `bits` the widths of weights by layer, 8 unless named.
    Raises InputError E630 when the network cannot compute the samples.
    """
    walk = Walk(trained.eval(), simulated.eval(), samples)
    with torch.no_grad():
        names = walk.order()
        layers = tracked("Calibrating", names)
        return [walk.choose(name, bits.get(name, 8)) for name in layers]


class Walk:
    """The two networks and the samples, cut in halves: one shapes weights, the other judges."""

    def __init__(self, trained: nn.Module, simulated: nn.Module, samples: Sequence[Tensor]) -> None:
        self._trained = trained
        self._simulated = simulated
        self._trained_layers: dict[str, Any] = dict(trained.named_modules())
        self._simulated_layers: dict[str, Any] = dict(simulated.named_modules())
        halves = [part for batch in samples for part in batch.tensor_split(2)]
        shaping = [part for part in halves[0::2] if len(part)]
        judging = [part for part in halves[1::2] if len(part)]
        self._shaping = shaping or judging
        self.judging = judging or shaping

    def order(self) -> list[str]:
        """Return the names of layers with weights in the order of their first use."""
        return layers_in_order(self._trained, self.judging[0])

    def choose(self, name: str, bits: int) -> LayerChoice:
        """Fill the layer of the simulated network with the best candidate and return that."""
        layer = self._simulated_layers[name]
        candidates = list(self._candidates(name, bits))
        errors = [0.0] * len(candidates)
        signal = 0.0
        for seen, expected in self._batches(name, self.judging):
            signal += float(expected.double().square().sum())
            for index, candidate in enumerate(candidates):
                fill(layer, candidate.integers)
                output = layer(seen.clone()) / output_steps(layer)
                errors[index] += float((output - expected).double().square().sum())
        best = min(range(len(candidates)), key=errors.__getitem__)
        fill(layer, candidates[best].integers)
        return LayerChoice(
            name,
            candidates[best].integers,
            candidates[best].rounding,
            decibels(signal, errors[best]),
            decibels(signal, errors[0]),
        )

    def _batches(self, name: str, samples: Iterable[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the layer's input in the simulation and its output in the trained network."""
        for batch in samples:
            seen = _reach(self._simulated, self._simulated_layers[name], batch * DATA_STEPS)
            before = _reach(self._trained, self._trained_layers[name], batch)
            yield seen, self._trained_layers[name](before)

    def _data_rounding(self, name: str, rows: Tensor) -> DataRounding:
        """Sum up what the operator of a layer sees of the samples that shape weights."""
        moments = Moments.empty(rows.shape[0], rows.shape[2])
        ours, theirs = self._simulated_layers[name], self._trained_layers[name]
        for batch in self._shaping:
            seen = _pooled(ours, _reach(self._simulated, ours, batch * DATA_STEPS)) / DATA_STEPS
            expected = _pooled(theirs, _reach(self._trained, theirs, batch))
            moments.add(columns(ours.op, seen), columns(ours.op, expected))
        return DataRounding(moments)

    def _candidates(self, name: str, bits: int) -> Iterator[_Candidate]:
        """Yield the nearest integers without clipping first, then all other possibilities."""
        op = self._trained_layers[name].op
        bias = None if op.bias is None else op.bias.double()
        limit = 1 << (bits - 1)
        scales = _scales(op.weight, bias, bits)
        for scale in scales:
            factor = math.ldexp(limit, scale)
            nearest = _nearest(op.weight.double() * factor, limit)
            yield _Candidate(_integers(nearest, bias, factor, bits, -scale), "nearest")
        rows = weight_rows(op, op.weight)
        if rows is None:
            return
        rounding = self._data_rounding(name, rows)
        targets = {"data": rows, "data, errors before": rounding.compensated(rows)}
        for scale, (title, target) in itertools.product(scales, targets.items()):
            factor = math.ldexp(limit, scale)
            integers = rounding.round(target, factor, limit)
            shifted = None if bias is None else rounding.corrected(bias, rows, integers / factor)
            integers = integers.reshape(op.weight.shape)
            yield _Candidate(_integers(integers, shifted, factor, bits, -scale), title)


def layers_in_order(model: nn.Module, samples: Tensor) -> list[str]:
    """Return the names of layers with weights in the order of their first use.

    `samples` [N, ...] are inputs; one of them is computed. Raises InputError E630 when it cannot.
    """
    seen: dict[str, None] = {}
    handles = [
        layer.register_forward_pre_hook(lambda *_, name=name: seen.setdefault(name))
        for name, layer in model.named_modules()
        if _has_weights(layer)
    ]
    try:
        model(samples[:1])
    except (RuntimeError, ValueError, AssertionError, IndexError, TypeError) as exc:
        shape = "x".join(map(str, samples.shape[1:]))
        raise InputError(
            "E630", f"the network cannot compute samples of shape {shape}: {exc}"
        ) from exc
    finally:
        for handle in handles:
            handle.remove()
    return list(seen)


def _has_weights(module: Any) -> bool:
    return getattr(module, "op", None) is not None and hasattr(module, "output_shift")


def _reach(network: nn.Module, layer: Any, batch: Tensor) -> Tensor:
    """Return the first input that the layer gets when the network computes a batch."""
    inputs_seen: list[Tensor] = []

    def stop(_: Any, inputs: tuple[Tensor, ...]) -> None:
        inputs_seen.append(inputs[0].clone())
        raise _Reached

    handle = layer.register_forward_pre_hook(stop)
    try:
        network(batch.clone())
    except _Reached:
        pass
    finally:
        handle.remove()
    return inputs_seen[0]


def _pooled(layer: Any, x: Tensor) -> Tensor:
    """Return the input of the layer's operator."""
    op, layer.op = layer.op, None
    try:
        pooled: Tensor = layer(x)
    finally:
        layer.op = op
    return pooled


def _scales(weight: Tensor, bias: Tensor | None, bits: int) -> range:
    """Return the exponents s to try: 2^s times the weights, from no clipping to some."""
    largest = float(weight.abs().max())
    exact = math.floor(-math.log2(largest)) if largest > 0 else 0
    if bias is not None and float(bias.abs().max()) > 0:
        # the bias has 8 bits in units of an integer weight times 1.0
        exact = min(exact, math.floor(8 - bits - math.log2(float(bias.abs().max()))))
    lowest, highest = -7 - bits, 23 - bits
    exact = min(max(exact, lowest), highest)
    return range(exact, min(exact + _TRIED_SCALES[bits], highest + 1))


def _nearest(scaled: Tensor, limit: int) -> Tensor:
    return (scaled + 0.5).floor().clamp(-limit, limit - 1)


def _integers(
    weights: Tensor, bias: Tensor | None, factor: float, bits: int, shift: int
) -> LayerIntegers:
    steps = None if bias is None else _nearest(bias * factor, BIAS_LIMIT).float().numpy()
    return LayerIntegers(bits, shift, weights.float().numpy(), steps)


def fill(layer: Any, integers: LayerIntegers) -> None:
    """Put integers into a layer of the simulation, as they are stored in a checkpoint."""
    layer.op.weight.copy_(torch.from_numpy(integers.weights))
    if integers.bias is not None:
        layer.op.bias.copy_(torch.from_numpy(integers.bias) * 2.0 ** (integers.bits - 1))
    layer.output_shift.fill_(integers.shift)
    layer.weight_bits.fill_(integers.bits)
    layer.set_functions()


def output_steps(layer: Any) -> float:
    """Return the integer that stands for 1.0 in the output of a layer of the simulation.

    A wide layer is not shifted; the range of its activations has no effect on it.
    """
    if not layer.wide:
        return DATA_STEPS
    shift = int(layer.output_shift.item())
    if layer.has_thresholds:
        shift += int(layer.activation_threshold.item())
    return math.ldexp(DATA_STEPS, int(layer.weight_bits.item()) - 1 - shift)
