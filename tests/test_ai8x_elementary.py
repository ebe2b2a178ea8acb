"""The steps of layers as modules of their own: values, gradients, and their place in a layer."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ai8x
from ai8xtools.layers.steps import STEPS, run_stepwise
from tests.ai8x_random import RandomLayer, random_layers


@pytest.fixture(autouse=True)
def _max78000() -> Iterator[None]:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def _values(module: Callable[..., Tensor], *values: float) -> list[float]:
    found: list[float] = module(torch.tensor(values)).tolist()
    return found


# Values

HALVES = (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        (ai8x.Floor(), [-3, -2, -1, 0, 1, 2]),
        (ai8x.Round(), [-2, -2, 0, 0, 2, 2]),
        (ai8x.AvgPoolFloor(), [-2, -1, 0, 0, 1, 2]),
        (ai8x.FloorONNX(), [-3, -2, -1, 0, 1, 2]),
        (ai8x.Empty(), list(HALVES)),
        (ai8x.Abs(), [2.5, 1.5, 0.5, 0.5, 1.5, 2.5]),
        (ai8x.Clamp(-1, 2), [-1, -1, -0.5, 0.5, 1.5, 2]),
        (ai8x.Clamp(), list(HALVES)),
        (ai8x.Clamp(min_val=0), [0, 0, 0, 0.5, 1.5, 2.5]),
        (ai8x.Clamp(max_val=0), [-2.5, -1.5, -0.5, 0, 0, 0]),
        (lambda x: ai8x.ID3()(x, 3), list(HALVES)),
        (ai8x.WeightScale(), [2**2.5, 2**1.5, 2**0.5, 2**-0.5, 2**-1.5, 2**-2.5]),
        (ai8x.OutputScaleONNX(), [2**-2.5, 2**-1.5, 2**-0.5, 2**0.5, 2**1.5, 2**2.5]),
    ],
)
def test_single_steps(module: Callable[..., Tensor], wanted: list[float]) -> None:
    assert _values(module, *HALVES) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        (ai8x.FloorQat, [-2, -1, 0, 0, 1, 2]),
        (ai8x.RoundQat, [-2, -2, 0, 0, 2, 2]),
        (ai8x.RoundQatONNX, [-2, -2, 0, 0, 2, 2]),
        (ai8x.FloorQatONNX, [-3, -2, -1, 0, 1, 2]),
        (ai8x.Quantize, [-2, -1, 0, 1, 2, 3]),
        (ai8x.QuantizeONNX, [-2, -2, 0, 0, 2, 2]),
    ],
)
def test_steps_on_fractions(module: Callable[[], Any], wanted: list[int]) -> None:
    fractions = [half / 128 for half in HALVES]
    assert _values(module(), *fractions) == [number / 128 for number in wanted]


@pytest.mark.parametrize(
    ("simulate", "arguments", "x", "wanted"),
    [
        (False, (), 0.3, 38 / 128),
        (False, (4,), 0.3, 0.25),
        (False, (1,), -0.3, 0.0),
        (False, (8, 1), 0.3, 19 / 128),
        (True, (), 100.0, 1.0),
        (True, (), -64.0, 0.0),
        (True, (8, 2), 1000.0, 2.0),
        (True, (1,), 2.5, 3.0),
        (True, (1, 3), 2.5, 3.0),
        (True, (-3,), 2.0, 32.0),
        (True, (0, -1), 2.0, 8.0),
    ],
)
def test_quantize(simulate: bool, arguments: tuple[int, ...], x: float, wanted: float) -> None:
    ai8x.set_device(85, simulate, False, verbose=False)
    assert _values(ai8x.Quantize(*arguments), x) == [wanted]
    assert ai8x.QuantizationFunction.apply(torch.tensor(x), *arguments).item() == wanted


@pytest.mark.parametrize("kind", [ai8x.Scaler, ai8x.ScalerONNX])
@pytest.mark.parametrize(("simulate", "wanted"), [(False, -1.5), (True, -2.0)])
def test_scaler_rounds_down_in_simulation(kind: Any, simulate: bool, wanted: float) -> None:
    ai8x.set_device(85, simulate, False, verbose=False)
    assert kind()(torch.tensor(-3.0), torch.tensor([0.5])).item() == wanted


@pytest.mark.parametrize(
    ("largest", "shift"),
    [(0.52, 0), (0.27, -1), (1.004, 1), (1.0, 0), (0.5, -1), (1e-9, -15), (1e9, 15)],
)
def test_output_shift_follows_the_largest_parameter(largest: float, shift: int) -> None:
    parameters = torch.tensor([0.0, -largest, largest / 2])
    for module in (ai8x.OutputShiftLimit(), ai8x.OutputShiftONNX()):
        assert module(parameters, torch.tensor([3.0])).item() == shift
    assert ai8x.OutputShiftPassthrough()(parameters, torch.tensor([3.0])).item() == 3
    assert ai8x.OutputShiftLimit(0.5)(torch.tensor([0.3, 0.3, 9.0]), None).item() == -1


def test_one_keeps_the_place_of_its_input() -> None:
    one = ai8x.One()(torch.zeros(3, 4, dtype=torch.float32))
    assert (one.shape, one.tolist()) == ((1,), [1.0])


def test_activations_by_name() -> None:
    assert [type(ai8x.get_activation(a)) for a in (None, "ReLU", "Abs")] == [
        ai8x.Empty,
        nn.ReLU,
        ai8x.Abs,
    ]
    assert ai8x.get_activation("ReLU").inplace
    with pytest.raises(AssertionError, match="use None, 'ReLU' or 'Abs'"):
        ai8x.get_activation("Tanh")
    ai8x.set_device(84, False, False, verbose=False)
    with pytest.raises(AssertionError, match="AI84"):
        ai8x.get_activation("Abs")


@settings(deadline=None)
@given(
    st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.985, 1.0]),
    st.sampled_from(["linear", "lower"]),
)
def test_quantile_interpolates_between_the_sorted_values(
    values: list[float], q: float, method: Any
) -> None:
    ordered, count = torch.tensor(sorted(values)), len(values)
    places = torch.linspace(1 / (2 * count), (2 * count - 1) / (2 * count), count)
    expected = ai8x.interp(q, places, ordered, method)
    assert torch.equal(ai8x.quantile(torch.tensor(values), q, method), expected)


@pytest.mark.parametrize(("relu", "wanted"), [(True, [1, 0]), (False, [1, -1])])
def test_software_layers_divide_by_128_in_simulation(
    relu: bool, wanted: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    ai8x.set_device(84, simulate=True, round_avg=False, verbose=False)
    layer = ai8x.FusedSoftwareLinearReLU(1, 2) if relu else ai8x.SoftwareLinear(1, 2)
    assert layer.op.bias is None and capsys.readouterr().out == ""
    layer.op.weight.data = torch.tensor([[100.0], [-100.0]])
    assert layer(torch.ones(1, 1)).tolist() == [wanted]
    assert layer(torch.full((1, 1), 1e6)).tolist() == [[32767, 0 if relu else -32768]]
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    layer = ai8x.SoftwareLinear(1, 2, bias=True)
    assert "MAX78000 has Linear" in capsys.readouterr().out
    layer.op.bias.data.fill_(7.0)
    assert layer(torch.zeros(1, 1)).tolist() == [[127 / 128, 127 / 128]]


def test_every_name_of_the_reference_is_there() -> None:
    names = """
        Abs Add AvgPoolFloor AvgPoolFloorFunction BitwiseOr BitwiseXor Clamp Conv1d Conv2d DevAI84
        DevAI85 DevAI87 Device Eltwise Empty Floor FloorFunction FloorONNX
        FloorQat FloorQatONNX FusedSoftwareLinearReLU ID3 Linear
        One Or OutputScale OutputScaleONNX OutputShiftLimit OutputShiftONNX
        OutputShiftPassthrough QuantizationAwareModule QuantizationFunction Quantize QuantizeONNX
        Round RoundFunction RoundQat RoundQatONNX Scaler ScalerONNX SoftwareLinear Sub WeightScale
        WeightScaleONNX Xor bayer_filter dev fold fuse_bn_layers get_activation initiate_qat
        interp normalize onnx_export_prep quantile quantize_clamp quantize_clamp_parameters
        quantize_clamp_pool set_device unfold_batch update_model update_optimizer
        MaxPool1d MaxPool2d AvgPool1d AvgPool2d
    """
    assert [name for name in names.split() if not hasattr(ai8x, name)] == []


def test_functions_and_keywords_of_the_reference() -> None:
    x = torch.tensor([-1.5, -0.5, 0.5, 1.5], requires_grad=True)
    for function, expected in (
        (ai8x.FloorFunction, [-2, -1, 0, 1]),
        (ai8x.RoundFunction, [-2, 0, 0, 2]),
        (ai8x.AvgPoolFloorFunction, [-1, 0, 0, 1]),
    ):
        x.grad = None
        result = function.apply(x)
        result.backward(torch.tensor([1.0, 2, 3, 4]))
        assert result.tolist() == expected
        assert x.grad is not None
        assert x.grad.tolist() == [1, 2, 3, 4]
    assert isinstance(ai8x.dev, ai8x.Device)
    assert ai8x.unfold_batch(img_batch=torch.zeros(1, 8, 3, 2), fold_ratio=2).shape == (1, 2, 6, 4)
    layer = ai8x.Eltwise(f=torch.sub)
    assert layer(torch.tensor(0.5), torch.tensor(0.25)).item() == 0.25
    assert layer.f is torch.sub


# Gradients


@pytest.mark.parametrize(
    "step",
    [
        ai8x.Floor(),
        ai8x.Round(),
        ai8x.AvgPoolFloor(),
        ai8x.RoundQat(),
        ai8x.FloorQat(),
        lambda x: ai8x.Quantize(4)(x),
        lambda x: ai8x.QuantizationFunction.apply(x, 4),
    ],
)
def test_rounding_passes_gradients_unchanged(step: Callable[[Tensor], Tensor]) -> None:
    x = torch.tensor([-300.0, -0.37, 0.0, 0.5, 1e6], requires_grad=True)
    wanted = torch.tensor([1.0, -2.0, 3.0, 0.25, 5.0])
    (found,) = torch.autograd.grad(step(x), x, wanted)
    assert torch.equal(found, wanted)


def test_scaler_passes_the_scaled_gradient_in_simulation() -> None:
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    x = torch.tensor([3.0, -7.0], requires_grad=True)
    (found,) = torch.autograd.grad(ai8x.Scaler()(x, 0.25).sum(), x)
    assert found.tolist() == [0.25, 0.25]


def test_clamps_cut_gradients_outside_their_range_only() -> None:
    x = torch.tensor([-1.01, -1.0, 0.0, 0.5, 0.51], requires_grad=True)
    (found,) = torch.autograd.grad(ai8x.Clamp(-1, 0.5)(x).sum(), x)
    assert found.tolist() == [0, 1, 1, 1, 0]


def test_absolute_values_have_the_sign_as_gradient() -> None:
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    (found,) = torch.autograd.grad(ai8x.Abs()(x * 1).sum(), x)
    assert found.tolist() == [-1, 1]


def test_scales_have_no_gradient() -> None:
    parameters = torch.tensor([0.3, -0.7], requires_grad=True)
    assert not ai8x.OutputShiftLimit()(parameters, None).requires_grad


def _range_of_gradients(layer: nn.Module, low: float, high: float, steps: int) -> tuple[float, ...]:
    """Return the first and the last input of a range whose gradient passes a layer."""
    x = torch.linspace(low, high, steps).reshape(-1, 1, 1, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x).sum(), x)
    inside = x[gradient != 0]
    return inside.min().item(), inside.max().item()


@pytest.mark.parametrize("activation", [None, "ReLU"])
@pytest.mark.parametrize("quantized", [False, True])
def test_layers_cut_gradients_where_they_saturate(activation: str | None, quantized: bool) -> None:
    layer = ai8x.Conv2d(1, 1, 1, bias=False, activation=activation)
    with torch.no_grad():
        layer.op.weight.fill_(127 / 256)  # not changed by quantization
    if quantized:
        layer.init_module(8, 8, True, 1.0)
    low, high = _range_of_gradients(layer, -4, 4, 8 * 1024 + 1)
    # Half an input step of rounding: results up to 127.5/128 become 127/128
    assert high == pytest.approx(2 * (127.5 if quantized else 127) / 127, abs=1 / 1024)
    wanted = 0 if activation else 2 * (-128.5 if quantized else -128) / 127
    assert low == pytest.approx(wanted, abs=1 / 1024)


# Steps of layers


def test_layers_show_their_steps() -> None:
    layer = ai8x.FusedAvgPoolConv2dReLU(1, 1, 3, wide=False)
    kinds = {name: type(getattr(layer, name)).__name__ for name in STEPS}
    assert kinds == {
        "quantize_weight": "Empty", "clamp_weight": "Empty", "quantize_bias": "Empty",
        "clamp_bias": "Empty", "quantize_pool": "Empty", "clamp_pool": "Clamp",
        "calc_out_shift": "OutputShiftPassthrough", "calc_weight_scale": "One",
        "calc_out_scale": "OutputScale", "scale": "Scaler", "activate": "ReLU",
        "quantize": "Empty", "clamp": "Clamp",
    }  # fmt: skip
    ai8x.initiate_qat(layer, {"weight_bits": 4, "shift_quantile": 0.9})
    kinds = {name: type(getattr(layer, name)).__name__ for name in STEPS}
    assert kinds == {
        "quantize_weight": "Quantize", "clamp_weight": "Clamp", "quantize_bias": "Quantize",
        "clamp_bias": "Clamp", "quantize_pool": "FloorQat", "clamp_pool": "Clamp",
        "calc_out_shift": "OutputShiftLimit", "calc_weight_scale": "WeightScale",
        "calc_out_scale": "OutputScale", "scale": "Scaler", "activate": "ReLU",
        "quantize": "Quantize", "clamp": "Clamp",
    }  # fmt: skip
    assert layer.quantize_weight.num_bits == 4
    assert layer.calc_out_shift.shift_quantile == pytest.approx(0.9)
    assert layer.clamp_weight.max_val == 7 / 8
    assert layer.quantize is layer.quantize
    assert list(layer.state_dict()) == list(ai8x.Conv2d(1, 1, 3).state_dict())


def _gradients(function: Any, layer: Any, x: Tensor) -> list[Tensor]:
    parameters = [p for p in (layer.op.weight, layer.op.bias) if p is not None]
    x = x.clone().requires_grad_()
    y = function(x)
    return [y.detach(), *torch.autograd.grad((y * y).sum(), [x, *parameters])]


@settings(max_examples=40, deadline=None)
@given(
    drawn=random_layers(batchnorm=True),
    mode=st.sampled_from(["float", "qat", "simulate"]),
    scale=st.sampled_from([0.02, 0.3, 2.0]),
)
def test_layers_compute_what_their_steps_do(drawn: RandomLayer, mode: str, scale: float) -> None:
    """With the same gradients, within what another order of sums makes of them."""
    drawn.set_device(simulate=mode == "simulate")
    layer, x = drawn.make(), drawn.integers()
    nn.init.normal_(layer.op.weight, std=scale * (20 if mode == "simulate" else 1))
    if mode != "float":
        layer.init_module(drawn.bits, drawn.bits, True, drawn.quantile)
    x = x if mode == "simulate" else x / 128
    layer.eval()
    ours = _gradients(layer, layer, x)
    steps = _gradients(lambda data: run_stepwise(layer, data), layer, x)
    if not drawn.batchnorm:
        assert torch.equal(ours[0], steps[0])
    if mode != "simulate":
        for found, wanted in zip(ours, steps, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


class _Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


def test_steps_can_be_replaced() -> None:
    layer = ai8x.FusedConv2dReLU(1, 1, 1, bias=False)
    with torch.no_grad():
        layer.op.weight.fill_(0.25)
    x = torch.tensor([-0.5, 0.5, 8.0]).reshape(3, 1, 1, 1)
    layer.activate = _Double()
    assert layer(x).flatten().tolist() == [-0.25, 0.25, 127 / 128]
    layer.clamp = lambda y: y + 1
    layer.quantize_weight = torch.round
    assert layer(x).flatten().tolist() == [1, 1, 1]
    assert copy.deepcopy(layer)(x).flatten().tolist() == [1, 1, 1]
    ai8x.update_model(nn.Sequential(layer))  # all but the activation follow from the parameters
    assert layer(x).flatten().tolist() == [-0.25, 0.25, 127 / 128]
    assert torch.equal(pickle.loads(pickle.dumps(layer))(x), layer(x))


def test_export_notes_the_width_of_weights_only() -> None:
    model = nn.Sequential(ai8x.Conv2d(1, 1, 3))
    ai8x.initiate_qat(model, {"weight_bits": 4}, export=True)
    assert (int(model[0].weight_bits), int(model[0].bias_bits)) == (4, 0)
    assert not bool(model[0].quantize_activation)


def test_choices_follow_the_mode() -> None:
    quantize, clamp = ai8x.quantize_clamp(wide=True, quantize_activation=True)
    assert (quantize.num_bits, clamp.min_val, clamp.max_val) == (15, -(2.0**15), 2.0**15 - 1)
    ai8x.set_device(85, simulate=True, round_avg=True, verbose=False)
    quantize, clamp = ai8x.quantize_clamp(wide=True, weight_bits=torch.tensor([4]))
    assert _values(quantize, 100.0) == [6.0]
    assert (clamp.min_val, clamp.max_val) == (-(2.0**29), 2.0**29 - 1)
    pooled = ai8x.quantize_clamp_pool("Avg")
    assert (type(pooled[0]), pooled[1].max_val) == (ai8x.Round, 127)
    weights, biases, *clamps = ai8x.quantize_clamp_parameters(4, 4)
    assert (_values(weights, -8.0), _values(biases, 8.0)) == ([-128.0], [8.0 * 256])
    assert [type(clamp) for clamp in clamps] == [ai8x.Empty, ai8x.Empty]
