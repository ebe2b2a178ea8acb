"""Layers compute what the specification's tables say, in all three arithmetics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import ai8x
from tests import ai8x_numpy
from tests.ai8x_random import RandomLayer, random_layers

TRYING = settings(max_examples=100, deadline=None, print_blob=True)


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


@torch.no_grad()
def _fill(layer: Any, scale: float) -> None:
    """Give a layer weights of some size, a power of two, and statistics as if it was used."""
    for parameter in (layer.op.weight, layer.op.bias):
        if parameter is not None:
            parameter.copy_((torch.randn(parameter.shape) * 1024).round() / 1024 * scale)
    if layer.bn is not None:
        layer.bn.running_mean.normal_()
        layer.bn.running_var.uniform_(0.5, 2)
        if layer.bn.affine:
            layer.bn.weight.normal_()
            layer.bn.bias.normal_()


@torch.no_grad()
def _fill_with_integers(layer: Any, bits: int) -> None:
    """Give a layer what quantize.py leaves: weights of `bits` bits, a bias in units of those."""
    limit = 1 << (bits - 1)
    layer.op.weight.copy_(torch.randint(-limit, limit, layer.op.weight.shape))
    if layer.op.bias is not None:
        layer.op.bias.copy_(torch.randint(-128, 128, layer.op.bias.shape) * 2.0 ** (bits - 1))
    layer.init_module(bits, bits, True, 1.0)
    layer.output_shift.copy_(torch.randint(-6, 4, (1,)))
    layer.set_functions()


def _state(layer: Any) -> ai8x_numpy.State:
    names = {"bn.weight": "bn_weight", "bn.bias": "bn_bias"}
    state = {k: v.numpy().astype(np.float64) for k, v in layer.state_dict().items()}
    return {names.get(k, k.rpartition(".")[2]): v for k, v in state.items()}


def _both(
    drawn: RandomLayer, layer: Any, mode: ai8x_numpy.Mode, x: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        found = layer.eval()(x).numpy().astype(np.float64)
    return found, ai8x_numpy.outputs(drawn, mode, _state(layer), x.numpy().astype(np.float64))


@TRYING
@given(drawn=random_layers(batchnorm=True), shift=st.sampled_from([0, 0, -2, 1]))
def test_float_layers(drawn: RandomLayer, shift: int) -> None:
    drawn.set_device(simulate=False)
    layer = drawn.make()
    _fill(layer, 2**-2)
    layer.output_shift.data.fill_(float(shift))
    layer.set_functions()
    np.testing.assert_allclose(*_both(drawn, layer, "float", drawn.integers() / 128), atol=2e-5)


@TRYING
@given(drawn=random_layers(), exponent=st.sampled_from([-18, -6, -2, -2, 1, 17]))
def test_layers_in_quantization_aware_training(drawn: RandomLayer, exponent: int) -> None:
    drawn.set_device(simulate=False)
    layer = drawn.make()
    _fill(layer, 2.0**exponent)
    layer.init_module(drawn.bits, drawn.bits, True, drawn.quantile)
    np.testing.assert_array_equal(*_both(drawn, layer, "qat", drawn.integers() / 128))


@TRYING
@given(drawn=random_layers())
def test_layers_in_simulation(drawn: RandomLayer) -> None:
    drawn.set_device(simulate=True)
    layer = drawn.make()
    _fill_with_integers(layer, drawn.bits)
    np.testing.assert_array_equal(*_both(drawn, layer, "simulate", drawn.integers()))
