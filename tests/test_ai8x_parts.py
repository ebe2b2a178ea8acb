"""Traces, exports, joins and bookkeeping of layers one choice at a time."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x as ai8x_module
from ai8xtools.layers import choices, elementary, onnx_twins, scales, training_steps
from ai8xtools.layers.bias_correction import layers_in_order, reach, summed
from ai8xtools.layers.damage import is_quantized, output_damage, weight_damage
from ai8xtools.layers.generations import BOOKKEEPING
from ai8xtools.layers.rounding import Grid
from ai8xtools.layers.steps import STEPS
from ai8xtools.layers.tracing import NotTraceableError, graph_of, modules_of

ai8x: Any = ai8x_module


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    torch.manual_seed(2)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def simulate() -> None:
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)


# -- traces ------------------------------------------------------------------------------------


class Net(nn.Module):
    """A network whose data flow is that of a function of itself and its data."""

    def __init__(self, flow: Any) -> None:
        super().__init__()
        self.a, self.b = ai8x.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 3)
        self.add, self.flow = ai8x.Add(), [flow]
        self.factor = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Any:
        return self.flow[0](self, x)


EXAMPLE = torch.rand(1, 2, 6, 5)
SIZES: dict[str, Callable[[Any, Tensor], bool]] = {
    "shape": lambda _, x: x.shape[1] == 2,
    "size": lambda _, x: x.size(2) > 5,
    "size of all": lambda _, x: x.size()[3] == 5,
    "dim": lambda _, x: x.dim() == 4,
    "ndim": lambda _, x: x.ndim == 4,
    "numel": lambda _, x: x.numel() < 61,
    "len": lambda _, x: x.shape[-1] * 2 == 10,
    "behind a layer": lambda m, x: m.a(x).shape[2] == 6,
    "behind a module": lambda m, x: m.b(x).shape[2] == 4,
    "behind a function": lambda _, x: functional.pad(x, (1, 0)).shape[3] == 6,
    "behind a method": lambda _, x: x.flatten(1).shape[1] == 60,
    "of chunks": lambda _, x: x.chunk(2, 1)[0].shape[1] == 1,
    "of a parameter": lambda m, x: (m.factor + x.sum()).shape[0] == 3,
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_branches_that_depend_on_sizes_are_taken_as_for_the_example(size: str) -> None:
    condition = SIZES[size]
    for holds in (True, False):
        model = Net(
            lambda m, x, holds=holds: m.a(x) if bool(condition(m, x)) == holds else m.add(x, x)
        )
        assert condition(model, EXAMPLE)
        graph = graph_of(model, EXAMPLE)
        found = [type(module).__name__ for _, module in modules_of(graph, model)]
        wanted = "Conv2d" if holds else "Add"
        assert found[-1] == wanted
        assert found.count("Add") == (not holds)
        with pytest.raises(NotTraceableError):
            graph_of(model)


VALUES = {
    "sum": lambda x: x.sum() > 0, "item": lambda x: x.sum().item() > 0,
    "max": lambda x: x.max() == 1, "mean of a size": lambda x: x.mean() > x.shape[1],
    "tolist": lambda x: x.flatten().tolist()[0] > 0, "nonzero": lambda x: x.any(),
    "a number, not a condition": lambda x: x.shape[1] - 1,
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_branches_that_depend_on_values_are_refused_by_their_statement(value: str) -> None:
    def flow(m: Any, x: Tensor) -> Tensor:
        if VALUES[value](x):  # the statement
            return m.a(x)
        return x

    for example in (None, EXAMPLE):
        with pytest.raises(NotTraceableError, match=r"test_ai8x_parts.py:\d+"):
            graph_of(Net(flow), example)


def test_parameters_are_nodes_with_an_example_too() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale if x.shape[1] == 2 else x

    ops = [node.op for node in graph_of(Scaled(), torch.zeros(1, 2, 4, 4)).nodes]
    assert ops.count("get_attr") >= 1 and ops[-1] == "output"


def test_layers_are_nodes_and_other_modules_are_looked_into() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.own = ai8x.Conv2d(2, 2, 1), nn.ReLU()

        def forward(self, x: Tensor, scale: float = 2.0, other: Any = None) -> Tensor:
            if other is not None:
                x = x + other
            return self.own(self.first(self.first(x))) * scale

    model = nn.Sequential(Inner(), ai8x.Add(), ai8x.FusedMaxPoolConv2dReLU(2, 2, 3, padding=1))
    found = [(str(node.target), module) for node, module in modules_of(graph_of(model), model)]
    assert [name.partition("@")[0] for name, _ in found] == [
        "0.first", "0.first", "0.own", "1", "2",
    ]  # fmt: skip
    assert [module for _, module in found] == [
        model[0].first, model[0].first, model[0].own, model[1], model[2],
    ]  # fmt: skip
    graph = graph_of(Inner())
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    assert len(placeholders) == 1
    assert not [node for node in graph.nodes if not node.users and node.op != "output"]
    traced = torch.fx.GraphModule(inner := Inner(), graph)
    x = torch.rand(1, 2, 4, 4)
    assert torch.equal(traced(x), inner(x))


def test_flow_names_producers_and_what_is_delivered() -> None:
    def flow(m: Any, x: Tensor) -> Any:
        first = m.a(x)
        return m.add(first, x), m.b(first)

    model = Net(flow)
    found = scales.flow_of(model)
    assert {*found.layers} == {"a"}
    assert found.producers == {"a": {scales._INPUT}}
    assert [(module, producers) for module, producers in found.sums] == [
        (model.add, {"a", scales._INPUT})
    ]
    delivered = {d.module: (d.producers, d.inside) for d in found.deliveries}
    assert delivered == {
        model.add: ({"a", scales._INPUT}, False),
        model.a: ({"a"}, True),
    }  # add reads it
    twice = scales.flow_of(Net(lambda m, x: m.a(m.a(x))))
    assert twice.producers == {"a": {"a", scales._INPUT}}
    assert [d.inside for d in twice.deliveries] == [True]
    once = scales.flow_of(Net(lambda m, x: torch.relu(m.a(x)) + 1))
    assert [(d.producers, d.inside) for d in once.deliveries] == [({"a"}, False)]
    assert once.meetings == once.sums == []


@pytest.mark.parametrize("reader", ["add", "pool"])
@torch.no_grad()
def test_what_a_join_or_a_pooling_reads_is_not_scaled_for_delivery(reader: str) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.c = ai8x.Conv2d(2, 2, 1), ai8x.Conv2d(2, 2, 1)
            self.add, self.pool = ai8x.Add(), ai8x.MaxPool2d(2)

        def forward(self, x: Tensor) -> Any:
            a = self.a(x)
            return (self.add(a, self.c(x)) if reader == "add" else self.pool(a)), a

    model = Two().eval()
    training_steps.use_thresholds(model)
    x = torch.rand(2, 2, 4, 4) - 0.5
    wanted = model(x)
    for module in (model.a, model.c, model.add):
        module.activation_threshold.fill_(2)
    scales.apply_scales(model)
    found = model(x)
    assert torch.allclose(found[0], wanted[0], atol=1e-6)
    assert torch.allclose(found[1], wanted[1] / 4, atol=1e-6)


def test_layers_that_are_never_called_stay_as_they_are() -> None:
    model = Net(lambda m, x: m.add(x, x))
    training_steps.use_thresholds(model)
    before = model.a.op.bias.clone()
    scales.apply_scales(model)
    assert torch.equal(model.a.op.bias, before)
    assert model.a.activation_threshold == model.a.final_scale == 0


@pytest.mark.parametrize("kind", ["Max", "Avg"])
@pytest.mark.parametrize("axes", [1, 2])
def test_pooling_on_its_own_is_that_of_torch(kind: str, axes: int) -> None:
    x = torch.rand((2, 3) + (12,) * axes)
    for size, stride in ((2, None), (4, 2), (3, 1)):
        layer = getattr(ai8x, f"{kind}Pool{axes}d")(size, stride)
        assert torch.allclose(layer(x), getattr(nn, f"{kind}Pool{axes}d")(size, stride)(x))


# -- export ------------------------------------------------------------------------------------

SIMPLE = [
    lambda: ai8x.FusedConv2dReLU(2, 3, 3, padding=1),
    lambda: ai8x.FusedAvgPoolConv2dAbs(2, 3, 1, bias=True),
    lambda: ai8x.Conv1d(2, 3, 3, bias=True),
    lambda: ai8x.Linear(6, 4, bias=True),
    lambda: ai8x.Conv2d(2, 3, 3, wide=True, bias=False),
    lambda: ai8x.AvgPool2d(2),
]  # fmt: skip
SHAPES = [(2, 2, 6, 6), (2, 2, 6, 6), (2, 2, 9), (2, 6), (2, 2, 6, 6), (2, 2, 6, 6)]


@pytest.mark.parametrize("case", range(len(SIMPLE)))
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("scale", [0.01, 0.3, 5.0])
@torch.no_grad()
def test_simplified_layers_neither_round_nor_limit(
    case: int, quantized: bool, scale: float
) -> None:
    """With scales the weights are divided and the results multiplied by the same power of two."""
    layer = SIMPLE[case]().eval()
    if layer.op is not None:
        for parameter in layer.op.parameters():
            parameter.normal_(0, scale)
    if quantized:
        layer.init_module(8, 8, True, 1.0)
    x = 3 * torch.randn(SHAPES[case])
    plain = copy.deepcopy(layer)
    wanted = x if plain.pool is None else plain.pool(x)
    if plain.op is not None:
        wanted = plain.op(wanted)
        activation = str(plain.activation)
        wanted = wanted.relu() if activation == "ReLU" else wanted
        wanted = wanted.abs() if activation == "Abs" else wanted
    for bare in (False, True):
        model = nn.Sequential(copy.deepcopy(layer))
        ai8x.onnx_export_prep(model, simplify=True, remove_clamp=bare)
        found = model(x.clone())
        divided = 1.0
        if plain.wide and quantized and not bare:  # wide results are not multiplied again
            divided = 2.0 ** -math.ceil(math.log2(float(plain.op.weight.abs().max())))
        assert torch.allclose(found, wanted * divided, rtol=1e-4, atol=1e-5)
        kinds = {name: type(getattr(model[0], name)) for name in STEPS}
        assert not [k for k in kinds.values() if issubclass(k, (elementary.Clamp,
                                                                elementary.Rounding))]  # fmt: skip
        empty = {"quantize", "clamp", "quantize_pool", "clamp_pool", "quantize_weight",
                 "clamp_weight", "quantize_bias", "clamp_bias"}  # fmt: skip
        assert {kinds[name] for name in empty} == {elementary.Empty}
        assert (kinds["scale"] is elementary.ID3) == bare
        assert (kinds["calc_out_scale"] is elementary.One) == bare
        if quantized:
            assert (kinds["calc_weight_scale"] is elementary.One) == bare
            assert (kinds["calc_out_shift"] is elementary.ID3) == bare


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("threshold", [None, -2, 0, 3])
@torch.no_grad()
def test_exported_layers_of_both_generations_compute_the_same(
    bits: int, simulated: bool, threshold: int | None
) -> None:
    ai8x.set_device(85, simulate=simulated, round_avg=False, verbose=False)
    for wide in (False, True):
        layer = ai8x.Conv2d(2, 3, 3, bias=True, wide=wide).eval()
        if threshold is not None:
            layer.use_thresholds()
        layer.init_module(bits, bits, True, True, 1.0)
        limit = 2 ** (bits - 1)
        if simulated:
            layer.op.weight.copy_(torch.randint(-limit, limit, layer.op.weight.shape))
            layer.op.bias.copy_(torch.randint(-128, 128, (3,)) * limit)
            layer.output_shift.fill_(-2)
        else:
            layer.op.weight.normal_(0, 0.4)
            layer.op.bias.uniform_(-0.5, 0.5)
        if threshold is not None:
            layer.activation_threshold.fill_(threshold)
        layer.set_functions()
        x = torch.randint(-128, 128, (2, 2, 5, 5)) / (1 if simulated else 128)
        wanted = layer(x.clone())
        model = nn.Sequential(layer)
        ai8x.onnx_export_prep(model)
        assert torch.equal(model(x.clone()), wanted)
        if simulated:
            assert torch.equal(layer.op.weight, layer.op.weight.round())
            assert layer.op.weight.abs().max() <= limit
        elif threshold is not None:
            assert layer.activation_threshold == 0


def test_twins_have_the_arithmetic_of_their_steps() -> None:
    x = torch.tensor([-2.75, -0.5, 0.0, 0.3, 1.5])
    for simulated in (False, True):
        ai8x.set_device(85, simulate=simulated, round_avg=False, verbose=False)
        for twin, step in ((onnx_twins.ScalerONNX(), elementary.Scaler()),):
            for factor in (0.5, 1.0, 4.0):
                assert torch.equal(twin(x, torch.tensor(factor)), step(x, torch.tensor(factor)))
    for twin, step in ((onnx_twins.WeightScaleONNX(), elementary.WeightScale()),
                       (onnx_twins.OutputScaleONNX(), elementary.OutputScale())):  # fmt: skip
        whole = torch.arange(-15.0, 16)
        assert torch.equal(twin(whole), step(whole))
    for values in (x, x / 100, 300 * x):
        found = onnx_twins.OutputShiftONNX()(values)
        assert found == elementary.OutputShiftLimit()(values, None)
        assert found == max(-15, min(15, math.ceil(math.log2(float(values.abs().max())))))
    halves = torch.arange(-20, 21) / 16
    assert torch.equal(onnx_twins.FloorONNX()(halves), halves.floor())
    assert torch.equal(onnx_twins.RoundQatONNX()(halves / 16), (halves * 8).round() / 128)
    assert torch.equal(onnx_twins.FloorQatONNX()(halves / 16), (halves * 8).floor() / 128)
    for bits in (1, 4, 8):
        step_ = 2.0 ** (bits - 1)
        assert torch.equal(onnx_twins.QuantizeONNX(bits)(halves), (halves * step_).round() / step_)
    assert torch.equal(onnx_twins.QuantizeONNX()(halves / 16), (halves * 8).round() / 128)


def test_a_rounding_twin_counts_in_steps_and_units_and_else_does_nothing() -> None:
    rounded = {"down": math.floor, "toward zero": math.trunc, "half even": round,
               "half up": lambda value: math.floor(value + 0.5)}  # fmt: skip
    values = [n / 8 for n in range(-24, 25)]
    x = torch.tensor(values)
    for (rounding, to), steps, unit in itertools.product(
        rounded.items(), (0.5, 1.0, 2.0), (0.25, 1.0, 4.0)
    ):
        twin = onnx_twins.RoundingONNX(Grid(rounding, steps=steps, unit=unit))
        assert twin(x).tolist() == [to(value * steps) * unit for value in values]
    assert onnx_twins.RoundingONNX(Grid("none"))(x) is x, "a step for nothing"


# -- choices -----------------------------------------------------------------------------------


def limits_of(step: Any) -> Any:
    if isinstance(step, elementary.Clamp):
        return step.min_val, step.max_val
    assert type(step) is elementary.Empty
    return None


@pytest.mark.parametrize("device", [85, 87])
def test_results_are_rounded_and_limited_as_their_place_demands(device: int) -> None:
    for simulated, wide, rounded, clamped, bits in itertools.product(
        (False, True), (False, True), (False, True), (False, True), (1, 2, 4, 8)
    ):
        ai8x.set_device(device, simulate=simulated, round_avg=False, verbose=False)
        quantize, clamp = choices.quantize_clamp(wide, rounded, clamped, bits)
        if not (clamped or simulated):
            assert limits_of(clamp) is None
        elif wide:
            limit = 2.0**29 if simulated else 2.0**15
            assert limits_of(clamp) == (-limit, limit - 1)
        else:
            assert limits_of(clamp) == ((-128, 127) if simulated else (-1, 127 / 128))
        if simulated or rounded:
            assert isinstance(quantize, elementary.Quantize)
            wanted = (9 - bits if simulated else 15) if wide else 8
            assert quantize.num_bits == wanted
        else:
            assert type(quantize) is elementary.Empty
        for kind in (None, "Max", "Avg"):
            for averaging in (False, True):
                ai8x.set_device(device, simulate=simulated, round_avg=averaging, verbose=False)
                quantize, clamp = choices.quantize_clamp_pool(kind, rounded, clamped)
                names = {"ai": ("FloorQat", "RoundQat"), "sim": ("AvgPoolFloor", "Round")}
                wanted_name = "Empty"
                if kind == "Avg" and (simulated or rounded):
                    wanted_name = names["sim" if simulated else "ai"][averaging]
                assert type(quantize).__name__ == wanted_name
                limited = kind == "Avg" and (clamped or simulated)
                ends = (-128, 127) if simulated else (-1, 127 / 128)
                assert limits_of(clamp) == (ends if limited else None)
        ai8x.set_device(device, simulate=simulated, round_avg=False, verbose=False)


def test_wide_results_of_the_second_generation_reach_their_limit() -> None:
    for later, clamped in itertools.product((False, True), (False, True)):
        layer = ai8x.Conv2d(2, 2, 1, wide=True)
        layer.use_thresholds(later)
        layer.init_module(8, 8, True, clamped, 1.0)
        limits = limits_of(layer.clamp)
        if not later:
            assert limits == (-(2.0**15), 2.0**15 - 1)
        else:
            assert limits == ((-(2.0**15), 2.0**15) if clamped else None)


# -- element by element ------------------------------------------------------------------------


@pytest.mark.parametrize("simulated", [False, True])
def test_element_wise_layers_combine_from_the_left_and_limit_once(simulated: bool) -> None:
    ai8x.set_device(85, simulate=simulated, round_avg=False, verbose=False)
    unit = 1 if simulated else 128
    a, b, c = (torch.randint(-128, 128, (50,)) / unit for _ in range(3))
    low, high = -128 / unit, 127 / unit
    assert torch.equal(ai8x.Add()(a, b, c), (a + b + c).clamp(low, high))
    assert torch.equal(ai8x.Sub()(a, b, c), (a - b - c).clamp(low, high))
    assert torch.equal(ai8x.Sub()(a), a)
    for name, function in (("BitwiseOr", torch.bitwise_or), ("BitwiseXor", torch.bitwise_xor)):
        x, y = (torch.arange(0, 256).float() / 256 - 0.5 for _ in range(2))
        y = y[torch.randperm(256)]
        whole = function(((x + 0.5) * 256).int(), ((y + 0.5) * 256).int())
        assert torch.equal(getattr(ai8x, name)()(x, y), (whole / 256 - 0.5).clamp(low, high))
    layer = ai8x.Add()
    layer.delivered_factor = 0.5
    assert torch.equal(layer(a, b), (a + b).clamp(low, high) / 2)
    assert not layer.has_thresholds
    layer.use_thresholds()
    assert layer.has_thresholds and layer.activation_threshold == 0
    limited = (a + b).clamp(low, high) if simulated else a + b
    assert torch.equal(layer(a, b), limited / 2)
    layer.use_thresholds()
    assert torch.equal(layer(a, b), limited / 2)
    layer.set_clamp(True)
    assert torch.equal(layer(a, b), (a + b).clamp(low, high) / 2)
    layer.use_thresholds(False)
    assert [*layer.state_dict()] == []
    assert torch.equal(layer(a, b), (a + b).clamp(low, high) / 2)
    layer.load_state_dict({"activation_threshold": torch.tensor(3.0)})
    assert layer.activation_threshold == 3


# -- bookkeeping -------------------------------------------------------------------------------


def test_bookkeeping_has_one_order_whatever_was_added_when() -> None:
    for steps in itertools.permutations(["thresholds", "range", "qat", "none"], 4):
        layer = ai8x.Conv2d(1, 1, 1)
        for step in steps:
            match step:
                case "thresholds":
                    layer.use_thresholds()
                case "range":
                    layer.use_range(-2)
                    assert layer.bias_bits == 8 and layer.range_exponent == -2
                case "qat":
                    layer.init_module(4, 4, True, True, 0.9)
                    assert not layer.has_range
        names = [n for n in layer.state_dict() if not n.startswith("op")]
        assert names == [n for n in BOOKKEEPING if n in names]
        assert not any(getattr(layer, name).requires_grad for name in names)
        assert (int(layer.weight_bits), float(layer.shift_quantile)) == (4, pytest.approx(0.9))
        assert bool(layer.quantize_activation) and bool(layer.adjust_output_shift)
        for other in (ai8x.Conv2d(1, 1, 1), copy.deepcopy(layer)):
            other.use_range(5)
            other.load_state_dict(layer.state_dict())
            assert list(other.state_dict()) == list(layer.state_dict())
            assert other.has_range == layer.has_range
        layer.use_range(3)
        fresh = ai8x.Conv2d(1, 1, 1)
        fresh.load_state_dict(layer.state_dict())
        assert fresh.range_exponent == 3
        assert fresh._own_range == 3
        layer.use_range(None)
        layer.use_thresholds(False)
        assert not layer.has_range and not layer.has_thresholds


def test_both_widths_and_rounding_belong_together() -> None:
    layer = ai8x.Conv2d(1, 1, 1)
    for weight, bias, rounded in itertools.product(
        (None, 0, 1, 2, 3, 4, 8, 16), (None, 0, 1, 2, 4, 8, 9), (False, True)
    ):
        fits = weight in (1, 2, 4, 8) and bias in (1, 2, 4, 8) and rounded
        fits |= weight is None and bias is None and not rounded
        if not fits:
            with pytest.raises(AssertionError, match="weight_bits"):
                layer.init_module(weight, bias, rounded, True, 1.0)
            continue
        layer.init_module(weight, bias, rounded, True, None)
        assert (int(layer.weight_bits), int(layer.bias_bits)) == (weight or 0, bias or 0)
        assert bool(layer.quantize_activation) == bool(layer.adjust_output_shift) == rounded
        assert layer.shift_quantile == 1


@pytest.mark.parametrize("shift", [-20, -3, 0, 2, 20])
@pytest.mark.parametrize("threshold", [None, -7, 0, 4])
def test_scales_are_powers_of_two_within_the_shifts_of_the_chip(
    shift: int, threshold: int | None
) -> None:
    """Weights are divided by their own range, results multiplied by what the output shift holds."""
    layer = ai8x.Conv2d(1, 1, 1, bias=False)
    if threshold is not None:
        layer.use_thresholds()
        with torch.no_grad():
            layer.activation_threshold.fill_(threshold)
    with torch.no_grad():
        layer.op.weight.fill_(2.0**shift)
        layer.output_shift.fill_(shift)
    layer.set_functions()
    less = threshold or 0
    limited = max(-15, min(15, shift - less))
    assert layer.scales() == (1.0, 2.0 ** (shift if threshold is None else limited))
    layer.init_module(8, 8, True, True, 1.0)
    held = max(-15, min(15, shift))
    down, up = layer.scales()
    assert (down, up) == (2.0**-held, 2.0 ** max(-15, min(15, held - less)))
    layer.use_range(shift)
    assert layer.scales() == (2.0**-shift, 2.0 ** max(-15, min(15, shift - less)))
    layer.use_range(None)
    layer.init_module(8, 8, True, True, 0.5)
    assert layer.scales()[0] == 2.0**-held
    simulate()
    other = ai8x.Conv2d(1, 1, 1, bias=False)
    other.load_state_dict(layer.state_dict())
    assert other.scales() == (1.0, 2.0**shift)


# -- damage, means, folding --------------------------------------------------------------------


def test_damage_is_told_of_layers_whose_weights_are_rounded() -> None:
    layer = ai8x.Conv2d(2, 3, 1, bias=True)
    assert not is_quantized(layer) and not is_quantized(nn.Conv2d(1, 1, 1))
    layer.init_module(8, 8, True, True, 1.0)
    assert is_quantized(layer)
    pool = ai8x.MaxPool2d(2)
    pool.init_module(8, 8, True, True, 1.0)
    assert not is_quantized(pool)
    simulate()
    assert not is_quantized(ai8x.Conv2d(2, 3, 1, weight_bits=8, bias_bits=8,
                                        quantize_activation=True))  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("threshold", [None, 0, 2])
@torch.no_grad()
def test_damage_of_any_layer_is_measured_in_its_own_scale(
    wide: bool, threshold: int | None
) -> None:
    layer = ai8x.Conv2d(2, 3, 1, bias=False, wide=wide).eval()
    if threshold is not None:
        layer.use_thresholds()
        layer.activation_threshold.fill_(threshold)
    layer.op.weight.normal_(0, 1)
    layer.init_module(8, 8, True, True, 1.0)
    x = torch.rand(3, 2, 4, 4) * 2 - 1
    output = layer(x.clone())
    exact = functional.conv2d(x, layer.op.weight) * 2.0 ** -(threshold or 0)
    if wide:
        exact = functional.conv2d(x, layer.op.weight * layer.scales()[0])
    found = output_damage(layer, x, output)
    noise, signal = (output - exact).double().square().sum(), exact.double().square().sum()
    assert found.snr_db == pytest.approx(10 * math.log10(signal / noise), rel=1e-3)
    clipped = ((exact * 128 >= 127.5) | (exact * 128 < -128.5)).float().mean() * 100
    assert found.clipped == pytest.approx(0 if wide else float(clipped))
    layer.op.weight.copy_((layer.op.weight * 32).round().clamp(-63, 63) / 64)
    exact_weights = weight_damage(layer)
    assert (exact_weights.clipped, exact_weights.snr_db) == (0, math.inf)


@torch.no_grad()
def test_what_reaches_a_layer_and_what_it_sums() -> None:
    model = nn.Sequential(
        ai8x.FusedConv2dReLU(2, 3, 3), ai8x.FusedMaxPoolConv2d(3, 4, 1, bias=True), nn.Flatten(),
        ai8x.Linear(16, 5, bias=True),
    ).eval()  # fmt: skip
    x = torch.rand(2, 2, 6, 6) - 0.5
    seen = model[0](x)
    assert torch.equal(reach(model, model[1], x), seen)
    assert torch.equal(reach(model, model[0], x), x)
    op = model[1].op
    wanted = functional.conv2d(functional.max_pool2d(seen, 2), 2 * op.weight, op.bias + 1)
    found = summed(model[1], seen, 2 * op.weight, op.bias + 1)
    assert torch.allclose(found, wanted.permute(0, 2, 3, 1).reshape(-1, 4))
    flat = torch.rand(7, 16)
    weight = torch.rand(5, 16)
    assert torch.allclose(summed(model[3], flat, weight), flat @ weight.T)
    assert model[1].op is op and model[1].applies_final_scale
    for layer, bits in ((model[0], 1), (model[1], 2), (model[3], 4)):
        layer.init_module(bits, bits, True, True, 1.0)
    for widest, names in (
        (0, []),
        (1, ["0"]),
        (2, ["0", "1"]),
        (3, ["0", "1"]),
        (4, ["0", "1", "3"]),
    ):
        assert [name for name, _ in layers_in_order(model, x, widest)] == names


@pytest.mark.parametrize("later", [False, True])
@torch.no_grad()
def test_normalization_moves_into_every_kind_of_operator(later: bool) -> None:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    made: list[tuple[Any, tuple[int, ...]]] = [
        (ai8x.Conv2d(3, 4, 3, bias=True, batchnorm="Affine"), (2, 3, 5, 5)),
        (ai8x.Conv2d(3, 4, 3, bias=True, batchnorm="NoAffine"), (2, 3, 5, 5)),
        (ai8x.Conv1d(3, 4, 3, bias=True, batchnorm="Affine"), (2, 3, 7)),
        (ai8x.FusedConvTranspose2dBNReLU(3, 4, 3, padding=1, bias=True), (2, 3, 5, 5)),
        (ai8x.FusedDepthwiseConvTranspose2dBNReLU(4, 4, 3, padding=1, bias=True), (2, 4, 5, 5)),
        (ai8x.FusedDepthwiseConv2dBNReLU(4, 4, 3, bias=True), (2, 4, 5, 5)),
    ]  # fmt: skip
    for (layer, shape), without in itertools.product(made, (False, True)):
        layer = copy.deepcopy(layer).eval()
        layer.use_thresholds(later)
        for value in (layer.bn.running_mean, layer.bn.running_var, layer.bn.weight, layer.bn.bias):
            if value is not None:
                value.uniform_(0.3, 1.2)
        if without:
            layer.op.bias = None
        x = torch.rand(shape) - 0.5
        wanted = layer(x.clone())
        training_steps.fuse_bn_layers(layer)
        assert layer.bn is None
        assert torch.allclose(layer(x.clone()), wanted, atol=1e-5)
        training_steps.fuse_bn_layers(layer)
        assert torch.allclose(layer(x.clone()), wanted, atol=1e-5)


# -- shapes that layers allow ------------------------------------------------------------------


def accepted(make: Any) -> bool:
    try:
        make()
    except (AssertionError, ValueError):
        return False
    return True


def test_features_and_sizes_have_their_limits() -> None:
    for count in (0, 1, 1024, 1025):
        assert accepted(lambda n=count: ai8x.Linear(n, 1)) == (1 <= count <= 1024)
        assert accepted(lambda n=count: ai8x.Linear(1, n)) == (1 <= count <= 1024)
    for key in ("pooling", "batchnorm"):
        assert not accepted(lambda k=key: ai8x.Linear(1, 1, **{k: "Max"}))
    for bias, has in ((None, False), (False, False), (True, True)):
        assert (ai8x.Linear(2, 2, bias=bias).op.bias is not None) == has
    assert not accepted(lambda: ai8x.Conv2d(1, 1, 3, op="Conv1d"))
    for size in ((2, 3), [1, 4], (2,), (1, 2, 3)):
        assert accepted(lambda s=size: ai8x.MaxPool2d(s)) == (len(size) == 2)
        assert not accepted(lambda s=size: ai8x.MaxPool1d(s))
    for stride in ((2, 2), (2, 3), 3, None):
        assert accepted(lambda s=stride: ai8x.MaxPool2d(2, s)) == (stride != (2, 3))
    for kernel in (3, (3, 3), (1, 3)):
        assert accepted(lambda k=kernel: ai8x.Conv2d(1, 1, k)) == (kernel != (1, 3))
    x = torch.rand(1, 2, 12, 12)
    for layer, size, stride in ((ai8x.MaxPool2d(3), 3, 3), (ai8x.MaxPool2d(4, 1), 4, 1),
                                (ai8x.FusedMaxPoolConv2d(2, 2, 1).pool, 2, 2)):  # fmt: skip
        assert torch.equal(layer(x), functional.max_pool2d(x, size, stride))
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    assert torch.equal(ai8x.MaxPool2d(2, 1, 2)(x), functional.max_pool2d(x, 2, 1, 0, 2))
    bn = ai8x.FusedConv2dBN(2, 2, 1, eps=0.5, momentum=0.25).bn
    assert (bn.eps, bn.momentum, bn.affine) == (0.5, 0.25, True)
    bn = ai8x.Conv1d(2, 2, 1, batchnorm="NoAffine").bn
    assert (bn.eps, bn.momentum, bn.affine, bn.num_features) == (1e-5, 0.05, False, 2)


@pytest.mark.parametrize("name", ["FusedSoftwareLinearReLU", "SoftwareLinear"])
def test_software_layers_keep_16_bits_in_simulation(name: str) -> None:
    ai8x.set_device(84, simulate=True, round_avg=False, verbose=False)
    layer = getattr(ai8x, name)(1, 2, bias=False)
    with torch.no_grad():
        layer.op.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        x = torch.tensor([[64.0], [63.0], [128 * 40000.0]])
        found = layer(x).T.tolist()
    assert found[0] == [1, 0, 32767]
    assert found[1] == ([0, 0, 0] if "ReLU" in name else [0, 0, -32768])
    ai8x.set_device(84, simulate=False, round_avg=False, verbose=False)
    layer = getattr(ai8x, name)(1, 1)
    assert layer.op.bias is None
    with torch.no_grad():
        layer.op.weight.fill_(1.0)
        assert layer(torch.tensor([[-3.0], [0.3], [3.0]])).flatten().tolist() == pytest.approx(
            [0 if "ReLU" in name else -1, 0.3, 127 / 128]
        )


@pytest.mark.parametrize("shift", [-2, 0, 3])
@torch.no_grad()
def test_parts_of_elastic_layers_are_scaled_by_their_output_shift(shift: int) -> None:
    from ai8xtools.layers.elastic.operators import ElasticConv1d, ElasticConv2d, ElasticLinear

    for layer, shape, function in (
        (ElasticConv1d(3, 4, 5, padding=2, bias=True), (2, 2, 9), functional.conv1d),
        (ElasticConv2d(3, 4, 3, padding=1, bias=True), (2, 2, 6, 7), functional.conv2d),
        (ElasticConv2d(3, 4, 3, padding=1, bias=False), (2, 2, 6, 7), functional.conv2d),
    ):  # fmt: skip
        layer.output_shift.fill_(shift)
        layer.op.weight.mul_(0.1)
        layer.set_functions()
        x = torch.rand(shape) - 0.5
        for width, kernel in ((2, 1), (3, 3), (4, 3)):
            layer.choose(width, kernel)
            margin = (layer.op.kernel_size[0] - kernel) // 2
            middle = [slice(margin, margin + kernel)] * (x.ndim - 2)
            weight = layer.op.weight[:width, :2][(slice(None), slice(None), *middle)]
            bias = None if layer.op.bias is None else layer.op.bias[:width]
            wanted = function(x, weight, bias, padding=kernel // 2) * 2.0**shift
            assert torch.allclose(layer(x), wanted.clamp(-1, 127 / 128), atol=1e-6)
    linear = ElasticLinear(3, 4, 5, bias=True)
    linear.output_shift.fill_(shift)
    linear.set_functions()
    x = torch.rand(2, 8) * 0.1
    wanted = functional.linear(x, linear.op.weight[:, :8], linear.op.bias) * 2.0**shift
    assert torch.allclose(linear(x), wanted.clamp(-1, 127 / 128), atol=1e-6)


@pytest.mark.parametrize(("text", "said"), [("no\nmore", "no ("), ("", "ValueError (")])
def test_networks_that_cannot_be_traced_say_why_and_where(text: str, said: str) -> None:
    class Stubborn(nn.Module):
        def forward(self, x: Tensor) -> Tensor:  # noqa: ARG002
            raise ValueError(text)

    with pytest.raises(NotTraceableError) as caught:
        graph_of(Stubborn())
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(": raise ValueError(text))")
