"""Quantization errors of each layer (--qat-diagnostics).

Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.reading import tables
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.observers import Context, Observer, Phase, Seen


class QuantizationDiagnostics(Observer):
    """Compares each layer with itself in floating point, on the last batch of each validation.

    Weights: those that the accelerator holds, times their scale, with those that are trained.
    Outputs: those of the layer for the inputs that it receives from quantized layers before it.
    """

    def __init__(self, context: Context) -> None:
        self._log = context.log
        self._last: Tensor | None = None

    def seen(self, batch: Seen) -> None:
        """Keep the inputs of the last batch of the validation."""
        if batch.phase == "validation" and batch.step == batch.steps:
            self._last = batch.inputs

    def finished(self, phase: Phase, epoch: int | None, _scores: Scores, model: nn.Module) -> None:
        """Log a table, and send its numbers to TensorBoard."""
        inputs, self._last = self._last, None
        if phase != "validation" or inputs is None or epoch is None:
            return
        rows = []
        for name, weights, outputs in layer_damage(model, inputs):
            rows.append((name, *_shown(weights), *_shown(outputs)))
            numbers = {
                "weights_clipped": weights.clipped, "weights_snr": weights.snr_db,
                "outputs_clipped": outputs.clipped, "outputs_snr": outputs.snr_db,
            }  # fmt: skip
            finite = {key: value for key, value in numbers.items() if math.isfinite(value)}
            self._log.scalars(f"Quantization/{name.replace('.', '/')}", finite, epoch)
        if not rows:
            return
        head = ["layer", "weights clipped/%", "SNR/dB", "outputs clipped/%", "SNR/dB"]
        table = tables.table(rows, head)
        self._log.say(f"Quantization (epoch={epoch})\n{table}")


def _shown(damage: ai8x.Damage) -> tuple[str, str]:
    return f"{damage.clipped:.2f}", f"{damage.snr_db:.1f}"


@torch.no_grad()
def layer_damage(model: nn.Module, inputs: Tensor) -> list[tuple[str, ai8x.Damage, ai8x.Damage]]:
    """Return name, damage to the weights and damage to the outputs of each quantized layer.

    `inputs` [N, ...] run through the network once; nothing of it is changed.
    """
    damages: list[tuple[str, ai8x.Damage, ai8x.Damage]] = []

    def compare(name: str, layer: Any, xs: tuple[Tensor, ...], output: Tensor) -> None:
        damages.append((name, ai8x.weight_damage(layer), ai8x.output_damage(layer, xs[0], output)))

    handles = [
        layer.register_forward_hook(functools.partial(compare, name))
        for name, layer in model.named_modules()
        if ai8x.is_quantized(layer)
    ]
    training = model.training
    try:
        model.eval()(inputs)
    finally:
        model.train(training)
        for handle in handles:
            handle.remove()
    return damages
