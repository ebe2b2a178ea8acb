"""Quantization errors in the output of each layer, and their effect on the results.

Two networks compute the same samples: one in floating point with the trained weights, and the
quantized one in the 8-bit simulation. Then each layer alone is replaced by its quantized twin.
This module uses torch; it is imported for reports only. It knows no model and no data set.
Source: docs/quantization.md, "Errors by layer".
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.quantization.bit_search import flat_results, noise_of
from ai8xtools.quantization.calibration import DATA_STEPS, layers_in_order, output_steps
from ai8xtools.quantization.report import decibels
from ai8xtools.values import frozen

_LOWEST, _HIGHEST = -128, 127


@frozen
class LayerError:
    """Errors of one layer with weights, on samples.

    `output_snr_db` is the ratio of signal to error of its output in the quantized network, errors
    of the layers before included; `output_clipped` the part of its outputs that end at a limit of 8
    bits though the trained ones do not fit. `alone_snr_db` and `alone_same` tell of the results of
    the network when this layer alone is quantized: their ratio of signal to error, and the part of
    samples whose largest result is in the same place; `alone_right` is the part that is classified
    right then, None for samples without classes.
    """

    name: str
    output_snr_db: float
    output_clipped: float
    alone_snr_db: float
    alone_same: float
    alone_right: float | None


@frozen
class NetworkErrors:
    """Errors of the layers in the order of their use, and of the results of the network.

    `right` is the part of samples that the quantized network classifies right, `trained_right` that
    of the trained one.
    """

    layers: tuple[LayerError, ...]
    snr_db: float
    same: float
    right: float | None
    trained_right: float | None


def network_errors(
    trained: nn.Module,
    simulated: nn.Module,
    samples: Sequence[Tensor],
    classes: Tensor | None = None,
) -> NetworkErrors:
    """Compare a network in floating point with its quantized twin in the 8-bit simulation.

    `samples` are batches of inputs [N, ...] in -1..127/128, `classes` [all N] their numbers, if
    they have some. Raises InputError E630 when the network cannot compute them.
    """
    with torch.no_grad():
        return _measured(trained.eval(), simulated.eval(), samples, classes)


def _measured(
    trained: nn.Module, simulated: nn.Module, samples: Sequence[Tensor], classes: Tensor | None
) -> NetworkErrors:
    names = layers_in_order(trained, samples[0])
    expected = flat_results(trained, samples)
    outputs = {name: _Output() for name in names}
    for batch in samples:
        _compare_outputs(trained, simulated, batch, outputs)
    twins: dict[str, Any] = dict(simulated.named_modules())
    errors = []
    for name in names:
        with _replaced(trained, name, twins[name]):
            results = flat_results(trained, samples)
        (noise, same), out = noise_of(expected, results), outputs[name]
        right = _right(results, classes)
        errors.append(
            LayerError(name, out.snr_db, out.clipped_part, decibels(1.0, noise), same, right)
        )
    results = flat_results(simulated, samples, DATA_STEPS)
    noise, same = noise_of(expected, results)
    return NetworkErrors(
        tuple(errors),
        decibels(1.0, noise),
        same,
        _right(results, classes),
        _right(expected, classes),
    )


def _right(results: Tensor, classes: Tensor | None) -> float | None:
    """Return the part of results [N, classes] whose largest is that of the class."""
    return None if classes is None else float((results.argmax(1) == classes).double().mean())


class _Output:
    """Sums over the outputs of a layer."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0
        self.clipped = self.count = 0

    def add(self, expected: Tensor, output: Tensor, steps: float | None) -> None:
        """Count outputs; `steps` is the integer that stands for 1.0 where there are 8 bits."""
        self.signal += float(expected.double().square().sum())
        self.noise += float((output.double() - expected.double()).square().sum())
        self.count += expected.numel()
        if steps is not None:
            at_limit = (output * steps >= _HIGHEST) | (output * steps <= _LOWEST)
            beyond = (output - expected).abs() * steps > 1
            self.clipped += int((at_limit & beyond).sum())

    @property
    def snr_db(self) -> float:
        return decibels(self.signal, self.noise)

    @property
    def clipped_part(self) -> float:
        return self.clipped / max(self.count, 1)


def _compare_outputs(
    trained: nn.Module, simulated: nn.Module, batch: Tensor, outputs: dict[str, _Output]
) -> None:
    """Add the outputs of a batch; of a layer that is used several times those of each use."""
    twins: dict[str, Any] = dict(simulated.named_modules())
    before = _outputs(trained, outputs, batch)
    after = _outputs(simulated, outputs, batch * DATA_STEPS)
    for name, sums in outputs.items():
        twin = twins[name]
        for expected, output in zip(before[name], after[name], strict=True):
            held = None if twin.wide else twin.finished(torch.ones(())).item()
            steps = None if held is None else DATA_STEPS / held
            sums.add(expected, output / output_steps(twin), steps)


def _outputs(model: nn.Module, names: Iterable[str], batch: Tensor) -> dict[str, list[Tensor]]:
    """Return the outputs of layers for a batch, one for each use."""
    outputs: dict[str, list[Tensor]] = {name: [] for name in names}

    def keep(name: str, _layer: Any, _inputs: Any, output: Tensor) -> None:
        outputs[name].append(output.clone())

    layers = dict(model.named_modules())
    handles = [layers[n].register_forward_hook(functools.partial(keep, n)) for n in outputs]
    try:
        model(batch.clone())
    finally:
        for handle in handles:
            handle.remove()
    return outputs


@contextmanager
def _replaced(model: nn.Module, name: str, twin: Any) -> Iterator[None]:
    """Let a layer of a network in floating point deliver what its quantized twin computes."""

    def compute(_layer: Any, inputs: tuple[Tensor, ...], _output: Tensor) -> Tensor:
        held = (inputs[0] * DATA_STEPS).round().clamp(_LOWEST, _HIGHEST)
        result: Tensor = twin(held) / output_steps(twin)
        return result

    handle = model.get_submodule(name).register_forward_hook(compute)
    try:
        yield
    finally:
        handle.remove()
