"""Biases that make good for the rounding of weights, before quantization-aware training begins.

Rounding changes the mean of what a layer puts out, the more the fewer bits the weights have; with
the integers -1 and 0 of a single bit it is all but lost. The bias can restore it exactly.
Source: docs/quantization.md, "Ranges of weights".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.layers.composition import QuantizationAwareModule, as_held
from ai8xtools.layers.steps import operate
from ai8xtools.layers.training_steps import quantized_modules


class _Reached(Exception):  # noqa: N818 - no error, it ends a pass
    """Ends a forward pass at a layer."""


@torch.no_grad()
def correct_biases(
    model: nn.Module, trained: nn.Module, inputs: Sequence[Tensor], widest: int = 1
) -> None:
    """Change the biases of a quantized `model` so that layers keep the mean of their results.

    `trained` is the same network before; `inputs` are batches. The layers are taken in the order of
    their first use, each with predecessors that are corrected already; what a layer computes in
    further uses does not count. Layers without bias and those with weights of more than `widest`
    bits stay as they are: training mends their biases as well by itself.
    """
    before = dict(trained.named_modules())
    modes = model.training, trained.training
    model.eval(), trained.eval()
    for name, layer in layers_in_order(model, inputs[0][:1], widest):
        reference: Any = before[name]
        lost = [
            _mean(reference, reach(trained, reference, x)) - _mean(layer, reach(model, layer, x))
            for x in inputs
        ]
        layer.op.bias.add_(torch.stack(lost).mean(0))
    model.train(modes[0]), trained.train(modes[1])


def layers_in_order(
    model: nn.Module, x: Tensor, widest: int
) -> list[tuple[str, QuantizationAwareModule]]:
    """Return the layers with a bias and weights of few bits that a model uses, with names."""
    candidates = {
        name: layer
        for name, layer in quantized_modules(model)
        if layer.op is not None
        and layer.op.bias is not None
        and 0 < int(layer.weight_bits.item()) <= widest
    }
    seen: dict[str, None] = {}
    handles = [
        layer.register_forward_pre_hook(lambda *_, name=name: seen.update({name: None}))
        for name, layer in candidates.items()
    ]
    try:
        model(x.clone())
    finally:
        for handle in handles:
            handle.remove()
    return [(name, candidates[name]) for name in seen]


def reach(model: nn.Module, layer: nn.Module, x: Tensor) -> Tensor:
    """Return the first input that the layer gets when the model computes a batch."""
    inputs_seen: list[Tensor] = []

    def stop(_: Any, inputs: tuple[Tensor, ...]) -> None:
        inputs_seen.append(inputs[0].clone())
        raise _Reached

    handle = layer.register_forward_pre_hook(stop)
    try:
        model(x.clone())
    except _Reached:
        pass
    finally:
        handle.remove()
    return inputs_seen[0]


def _mean(layer: Any, x: Tensor) -> Tensor:
    """Return the mean [channels] of what the operator of a layer computes, before its shift.

    The bias counts as trained: rounding it again after the correction would double its error.
    """
    down, _ = layer.scales()
    weight = as_held(layer.op.weight, layer._weight_rounding, down, 1 / down)
    return summed(layer, x, weight, layer.op.bias).mean(0)


def summed(layer: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return what the operator of a layer computes with other parameters: [values, channels]."""
    operation, layer.op = layer.op, None
    applied, layer.applies_final_scale = layer.applies_final_scale, False
    try:
        pooled = layer(x)
    finally:
        layer.op, layer.applies_final_scale = operation, applied
    result: Tensor = operate(operation, pooled, weight, bias)
    if isinstance(operation, nn.Linear):
        return result.flatten(0, -2)
    return result.transpose(0, 1).flatten(1).T
