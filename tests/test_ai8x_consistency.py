"""A layer stays the same on its way: trained, fused, quantized, simulated with integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.quantization import QuantizationOptions, quantize_checkpoint
from tests.ai8x_random import RandomLayer, random_layers


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def _quantized(model: nn.Module) -> dict[str, Tensor]:
    """Return the state that quantize.py makes of a trained model."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    found = quantize_checkpoint(Checkpoint({"state_dict": state}), QuantizationOptions())
    return {
        name: torch.from_numpy(np.array(value))
        for name, value in found.checkpoint.state_dict.items()
    }


def _trained(drawn: RandomLayer, scale: float) -> nn.Sequential:
    """Return a layer as a model, with a history of batches if it normalizes them."""
    drawn.set_device(simulate=False)
    model = nn.Sequential(drawn.make())
    nn.init.normal_(model[0].op.weight, std=scale)
    if drawn.batchnorm:
        for _ in range(3):
            model(torch.randn(8, drawn.inputs, *drawn.size))
    return model.eval()


@settings(max_examples=100, deadline=None)
@given(drawn=random_layers(batchnorm=True), scale=st.sampled_from([0.02, 0.3, 2.0]))
@torch.no_grad()
def test_simulation_of_a_quantized_layer_is_its_forward_pass_in_training(
    drawn: RandomLayer, scale: float
) -> None:
    drawn = replace(drawn, quantile=1.0)  # quantize.py interpolates quantiles differently
    model, x = _trained(drawn, scale), drawn.integers()
    before = model(x / 128)
    ai8x.fuse_bn_layers(model)
    torch.testing.assert_close(model(x / 128), before, rtol=0, atol=1e-5)
    ai8x.initiate_qat(model, {"weight_bits": drawn.bits})
    in_training = model(x / 128)

    drawn.set_device(simulate=True)
    simulated: Any = nn.Sequential(replace(drawn, batchnorm=None).make()).eval()
    simulated.load_state_dict(_quantized(model))
    # A wide result counts products of data (1/128) and weights (1/2^(bits-1))
    unit = 2.0 ** (6 + drawn.bits) if drawn.wide else 128.0
    # Only absolute values are not the same: simulation rounds negative sums down before
    allowed = 1 if drawn.activation == "Abs" else 0
    assert (simulated(x) - in_training * unit).abs().max() <= allowed


def test_quantized_weights_are_close_to_the_trained_ones() -> None:
    """What training rounds to in its forward pass differs from the weights by half a step."""
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    model = nn.Sequential(ai8x.Conv2d(4, 4, 3, bias=False))
    ai8x.initiate_qat(model, {"weight_bits": 8})
    state, weight = _quantized(model), model[0].op.weight
    steps = 2.0 ** (7 - state["0.output_shift"])
    assert (state["0.op.weight"] / steps - weight).abs().max() <= 0.5001 / steps
