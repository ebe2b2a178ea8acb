"""A start for weights of a single bit, -1 and 0, before quantization-aware training begins.

Such a layer can only subtract: rounding trained weights to the nearest loses all positive ones, and
sums of some hundred inputs leave the range of 8 bits. Training then hardly moves. Here the most
negative weights become -1, and the range is the one with which the results of samples fill 8 bits.
Source: docs/quantization.md, "Weights of a single bit".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ai8xtools.layers.bias_correction import layers_in_order, reach, summed
from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.training_steps import quantized_modules

SHARE = 0.12
"""Of the weights that begin as -1."""
SPREAD = 0.5
"""Standard deviation of the trained weights, in steps: most of them are a few updates from -1."""
_DEVIATION, _MEAN = 0.4, 0.1
"""Of results with 8 bits, whose range is -1..1, before they are rectified."""
REACH = 0.95
"""How far from the limit between -1 and 0 weights may go in training, in steps; beyond 1 no
gradient would bring them back."""
_WIDE_DEVIATION = 4.0
"""Of the results of wide layers, which are scores."""


@torch.no_grad()
def start_single_bits(model: nn.Module, inputs: Sequence[Tensor]) -> None:
    """Choose weights, range and bias anew for quantized layers with weights of one bit.

    `inputs` are batches. The layers are taken in the order of their first use, each with
    predecessors that are chosen already. Layers without bias stay as they are: they cannot restore
    the mean of what they subtract. Call it after `fit_ranges`.
    """
    training = model.training
    model.eval()
    for _, layer in layers_in_order(model, inputs[0][:1], 1):
        _start(layer, torch.cat([reach(model, layer, x) for x in inputs]))
    model.train(training)


@torch.no_grad()
def keep_single_bits_in_reach(model: nn.Module) -> None:
    """Move weights of a single bit with a range of their own back to where training reaches them.

    Call it after each step of the optimizer. Weights of more bits stay as they are.
    """
    for _, layer in quantized_modules(model):
        if layer.single_bit_step is not None:
            step = layer.single_bit_step
            layer.op.weight.clamp_(-(0.5 + REACH) * step, (REACH - 0.5) * step)


def _start(layer: QuantizationAwareModule, x: Tensor) -> None:
    weight = layer.op.weight
    ordered = weight.flatten().sort().values
    limit = ordered[round(SHARE * (len(ordered) - 1))]
    deviation = float(weight.std()) if len(ordered) > 1 else 0.0
    above = (weight - limit) * (SPREAD / deviation if deviation > 0 else 1.0)
    sums = summed(layer, x, -(above < 0).to(weight.dtype))  # [values, channels]
    spread = float(sums.std(0).mean())
    if not math.isfinite(spread) or not spread:
        return  # nothing reaches the layer
    up = 2.0**layer._threshold
    deviation_after = _WIDE_DEVIATION if layer.wide else _DEVIATION * up
    layer.use_range(max(-15, min(8, round(math.log2(deviation_after / spread)))))
    step = 2.0 ** float(layer.range_exponent)
    weight.copy_((above - 0.5) * step)
    layer.op.bias.copy_((0.0 if layer.wide else _MEAN * up) - sums.mean(0) * step)
