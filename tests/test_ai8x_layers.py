"""Layers: composition, gradients, limits of the chips, fusing, quantization-aware training."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ai8x

BOOKKEEPING = [
    "output_shift", "weight_bits", "bias_bits", "quantize_activation", "adjust_output_shift",
    "shift_quantile",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _max78000() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def _qat(layer: nn.Module, bits: int = 8) -> nn.Module:
    ai8x.initiate_qat(layer, {"weight_bits": bits})
    return layer


def _straight_through(x: Tensor, rounded: Tensor) -> Tensor:
    """Return `rounded` with the gradient of `x`."""
    return x + (rounded - x).detach()


def _stepwise(layer: Any, x: Tensor, bits: int) -> Tensor:
    """Compute a layer of convolution and activation one plain step after the other."""
    n = 2.0 ** (bits - 1)
    parameters = torch.cat([layer.op.weight.flatten(), layer.op.bias]).detach()
    s = -torch.floor(torch.log2(1 / parameters.abs().max())).clamp(-15, 15)
    held = []
    for p in (layer.op.weight, layer.op.bias):
        scaled = p * 2**-s
        rounded = _straight_through(scaled, torch.floor(scaled * n + 0.5) / n)
        held.append(rounded.clamp(-1, (n - 1) / n))
    y = nn.functional.conv2d(x, *held, padding=1) * 2**s
    if layer.activation == "ReLU":
        y = y.relu()
    elif layer.activation == "Abs":
        y = y.abs()
    y = _straight_through(y, torch.floor(y * 128 + 0.5) / 128)
    return y.clamp(-1, 127 / 128)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1 << 16),
    bits=st.sampled_from([1, 2, 4, 8]),
    activation=st.sampled_from([None, "ReLU", "Abs"]),
    size=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_qat_layer_and_its_gradients_equal_the_single_steps(
    seed: int, bits: int, activation: str | None, size: float
) -> None:
    torch.manual_seed(seed)
    layer = _qat(ai8x.Conv2d(3, 4, 3, padding=1, activation=activation), bits)
    nn.init.normal_(layer.op.weight, std=0.2 * size)
    x = (torch.randint(-128, 128, (2, 3, 5, 5)) / 128).requires_grad_()
    results = []
    for function in (layer, lambda data: _stepwise(layer, data, bits)):
        wanted = (x, layer.op.weight, layer.op.bias)
        y = function(x)
        results.append([y, *torch.autograd.grad((y * y).sum(), wanted)])
    for ours, stepwise in zip(*results, strict=True):
        torch.testing.assert_close(ours, stepwise, rtol=1e-5, atol=1e-5)
    assert torch.equal(results[0][0], results[1][0])


def test_state_has_the_interchangeable_names_order_and_types() -> None:
    layer = ai8x.FusedMaxPoolConv2dBNReLU(2, 3, 3)
    state = layer.state_dict()
    assert list(state) == [
        *BOOKKEEPING, "op.weight", "op.bias", "bn.weight", "bn.bias", "bn.running_mean",
        "bn.running_var", "bn.num_batches_tracked",
    ]  # fmt: skip
    types = [torch.float32, torch.int64, torch.int64, torch.bool, torch.bool, torch.float32]
    assert [state[name].dtype for name in BOOKKEEPING] == types
    assert all(state[name].shape == (1,) for name in BOOKKEEPING)
    assert not any(layer.get_parameter(name).requires_grad for name in BOOKKEEPING)
    assert list(ai8x.MaxPool2d(2).state_dict()) == BOOKKEEPING
    assert list(ai8x.Add().state_dict()) == []


@pytest.mark.parametrize("name", ai8x.FUSED_NAMES)
def test_every_name_makes_what_it_says(name: str) -> None:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    layer_class = getattr(ai8x, name)
    sizes = (6, 6) if "Linear" in name else (6, 6, 3)
    keywords = {} if "Linear" in name else {"padding": 1}
    layer = layer_class(*sizes, **keywords)
    assert layer.pooling == ("Max" if "Max" in name else "Avg" if "Avg" in name else None)
    assert layer.activation == ("ReLU" if "ReLU" in name else "Abs" if "Abs" in name else None)
    assert (layer.bn is not None) == ("BN" in name)
    kind = name.replace("Fused", "").replace("MaxPool", "").replace("AvgPool", "")
    assert type(layer.op).__name__ == kind.replace("Depthwise", "").split("BN")[0].replace(
        "ReLU", ""
    ).replace("Abs", "")
    assert (layer.op.groups or 1) == (6 if "Depthwise" in name else 1)
    assert layer_class.__doc__
    parameters = inspect.signature(layer_class).parameters
    assert ("activation" in parameters) is not ("ReLU" in name or "Abs" in name)
    assert ("pooling" in parameters) is not ("Max" in name or "Avg" in name)
    if "Conv2d" in name:
        assert ("groups" in parameters) is not ("Depthwise" in name)
    data = torch.zeros(
        {"Linear": (2, 6)}.get(kind[:6], (2, 6, 8) if "1d" in name else (2, 6, 8, 8))
    )
    output = layer(data)
    assert output.shape[1] == 6
    if "Transpose" in name:
        assert output.shape[2] == 2 * (8 // 2 if layer.pooling else 8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ai8x.Conv2d(1, 1, 5), "kernel_size=5; MAX78000 allows 1, 3"),
        (lambda: ai8x.Conv2d(1, 1, 3, padding=3), "padding=3; MAX78000 allows 0, 1, 2"),
        (lambda: ai8x.Conv2d(1, 1, 3, stride=4), "stride=4; MAX78000 allows 1, 2, 3"),
        (lambda: ai8x.FusedMaxPoolConv2d(1, 1, 3, stride=2), "stride=2; MAX78000 allows 1"),
        (lambda: ai8x.MaxPool2d(17), "pool_size=17; MAX78000 allows 1 to 16"),
        (lambda: ai8x.MaxPool2d(2, dilation=2), "pool_dilation=2; MAX78000 allows 1"),
        (lambda: ai8x.DepthwiseConv2d(4, 4, 3), "MAX78002 .*=4; MAX78000 allows 1"),
        (lambda: ai8x.FusedConv2dBN(1, 1, 3, bias=False), "--use-bias"),
        (lambda: ai8x.FusedConv2dReLU(1, 1, 3, wide=True), "wide"),
        (lambda: ai8x.Linear(1025, 10), "in_features=1025; MAX78000 allows 1 to 1024"),
        (lambda: ai8x.MaxPool1d((2, 2)), "give one integer"),
        (lambda: ai8x.MaxPool2d(2, (1, 2)), "both values must be equal"),
        (lambda: ai8x.Conv2d(1, 1, 3, op="ConvTranspose2d"), "stride=1; MAX78000 allows 2"),
        (lambda: ai8x.Conv1d(1, 1, 9, dilation=2), "dilation=16; MAX78000 allows 0 to 8"),
        (lambda: ai8x.Linear(10, 10, pooling="Max"), "pooling=Max"),
        (lambda: ai8x.Conv1d(1, 1, 10), "kernel_size=10; MAX78000 allows 1 to 9"),
        (lambda: ai8x.Conv2d(1, 1, 3, weight_bits=8), "give both widths"),
        (lambda: ai8x.Conv2d(1, 1, 3, weight_bits=3, bias_bits=8, quantize_activation=True), "=3"),
    ],
)
def test_limits_of_the_chip_are_named(make: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        make()


@pytest.mark.parametrize(("device", "depth", "dilation"), [(85, 768, 1), (87, 5120, 16)])
def test_device_has_the_limits_of_its_chip(device: int, depth: int, dilation: int) -> None:
    ai8x.set_device(device, False, False, verbose=False)
    chip = ai8x.dev
    assert chip is not None
    limits = (chip.WEIGHT_DEPTH, chip.MAX_AVG_POOL)
    assert limits == (depth, 16)
    ai8x.MaxPool2d(2, dilation=dilation)
    with pytest.raises(AssertionError, match=f"pool_dilation={dilation + 1}"):
        ai8x.MaxPool2d(2, dilation=dilation + 1)


def test_the_module_shows_the_device_and_lets_it_be_changed() -> None:
    assert isinstance(ai8x.dev, ai8x.DevAI85) and not ai8x.dev.simulate
    ai8x.dev = ai8x.DevAI87(simulate=True, round_avg=False)
    assert ai8x.Conv2d(4, 4, 3, groups=4).simulate
    ai8x.set_device(84, simulate=False, round_avg=False, verbose=False)
    assert (type(ai8x.dev), ai8x.dev.FULL_ACC_BITS) == (ai8x.DevAI84, 8)
    with pytest.raises(AssertionError, match="round"):
        ai8x.set_device(84, simulate=False, round_avg=True)


def test_unknown_device_is_refused() -> None:
    with pytest.raises(ValueError, match="86") as refused:
        ai8x.set_device(86, False, False)
    offered = set(re.findall(r"\w+", str(refused.value)))
    assert offered >= {"84", "85", "MAX78000", "87", "MAX78002"}
    ai8x.set_device("max78002", False, False, verbose=False)
    assert ai8x.dev is not None and ai8x.dev.device == 87


def test_loading_a_state_changes_the_arithmetic() -> None:
    source, target = _qat(ai8x.FusedConv2dReLU(2, 3, 3)), ai8x.FusedConv2dReLU(2, 3, 3)
    target.load_state_dict(source.state_dict())
    x = torch.rand(1, 2, 6, 6)
    assert torch.equal(target(x), source(x))
    assert torch.equal(target(x), (target(x) * 128).round() / 128)


@pytest.mark.parametrize("generation", [1, 2])
def test_wide_results_end_at_the_limits_of_their_generation(generation: int) -> None:
    layer = ai8x.Linear(1, 1, wide=True)
    if generation == 2:
        layer.use_thresholds()
    _qat(layer)
    layer.op.weight.data.fill_(0.5)
    found = layer(torch.tensor([[1e6], [-1e6]])).flatten().tolist()
    assert found == [2.0**15 - (generation == 1), -(2.0**15)]


def test_wide_layers_are_not_shifted() -> None:
    layer = _qat(ai8x.Linear(4, 2, bias=True, wide=True))
    with torch.no_grad():
        layer.op.weight.fill_(0.2)  # times 4 is 102.4/128, rounded to 102/128
        layer.op.bias.zero_()
    assert torch.equal(layer(torch.full((1, 4), 0.5)), torch.full((1, 2), 1.59375))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("FusedConv2dBNReLU", (4, 6, 8, 8)),
        ("FusedMaxPoolConv2dBN", (4, 6, 8, 8)),
        ("FusedConv1dBNReLU", (4, 6, 8)),
        ("FusedConvTranspose2dBNReLU", (4, 6, 4, 4)),
        ("FusedDepthwiseConvTranspose2dBNReLU", (4, 6, 4, 4)),
    ],
)
@pytest.mark.parametrize("batchnorm", ["Affine", "NoAffine"])
@pytest.mark.parametrize("bias", [True, False])
def test_fusing_batch_normalization_keeps_the_function(
    name: str, shape: tuple[int, ...], batchnorm: str, bias: bool
) -> None:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    torch.manual_seed(0)
    outputs = 6 if "Depthwise" in name else 5
    model = nn.Sequential(getattr(ai8x, name)(6, outputs, 3, padding=1, batchnorm=batchnorm))
    if not bias:  # as in compositions of one's own
        model[0].op.bias = None
    bn = model[0].bn
    bn.running_mean.normal_()
    bn.running_var.uniform_(0.5, 2)
    if batchnorm == "Affine":
        nn.init.normal_(bn.weight)
        nn.init.normal_(bn.bias)
    x = torch.randn(shape)
    before = model.eval()(x)
    weight, offset = model[0].op.weight, model[0].op.bias
    ai8x.fuse_bn_layers(model)
    assert model[0].bn is None
    assert model[0].op.weight is weight and (not bias or model[0].op.bias is offset)
    assert isinstance(model[0].op.bias, nn.Parameter)
    torch.testing.assert_close(model(x), before, rtol=0, atol=2e-6)


def test_policy_overrides_single_layers() -> None:
    model = nn.Sequential(ai8x.Conv2d(1, 1, 3), nn.Sequential(ai8x.Conv2d(1, 1, 3)))
    policy = {"weight_bits": 4, "shift_quantile": 0.9, "overrides": {"1.0": {"weight_bits": 2}}}
    ai8x.initiate_qat(model, policy)
    layers = [model[0], model[1][0]]
    assert [int(layer.weight_bits) for layer in layers] == [4, 2]
    assert [int(layer.bias_bits) for layer in layers] == [4, 2]
    assert all(bool(layer.adjust_output_shift) for layer in layers)
    assert [float(layer.shift_quantile) for layer in layers] == pytest.approx([0.9, 0.9])


def test_optimizer_keeps_momentum_and_learning_rate_after_fusing() -> None:
    model = nn.Sequential(ai8x.FusedConv2dBNReLU(1, 2, 3), ai8x.Conv2d(2, 3, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model(torch.randn(2, 1, 8, 8)).sum().backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.025
    ai8x.fuse_bn_layers(model)
    renewed = ai8x.update_optimizer(model, optimizer)
    assert renewed.param_groups[0]["lr"] == 0.025
    kept = optimizer.state[model[1].op.weight]["momentum_buffer"]
    assert torch.equal(renewed.state[model[1].op.weight]["momentum_buffer"], kept)
    assert len(renewed.param_groups[0]["params"]) == len(list(model.parameters()))


@settings(deadline=None)
@given(
    st.lists(st.floats(-4, 4, width=32), min_size=2, max_size=40),
    st.sampled_from([0.1, 0.5, 0.9, 0.985, 1.0]),
)
def test_quantile_lies_near_its_neighbours(values: list[float], q: float) -> None:
    x = torch.tensor(values)
    spread = float(x.max() - x.min())
    usual = float(torch.quantile(x, q))
    assert abs(float(ai8x.quantile(x, q)) - usual) <= spread + 1e-5
    assert float(ai8x.quantile(x, q, "lower")) in x.tolist()


def test_average_pooling_truncates_or_rounds_half_to_even() -> None:
    x = torch.tensor([[[[3.0, 4.0]], [[-3.0, -4.0]], [[2.0, 3.0]]]]).view(1, 3, 1, 2)
    expected = {False: [3.0, -3.0, 2.0], True: [4.0, -4.0, 2.0]}
    for rounding, result in expected.items():
        ai8x.set_device(85, simulate=True, round_avg=rounding, verbose=False)
        assert ai8x.AvgPool2d((1, 2), 1)(x).flatten().tolist() == result


def test_memory_layout_of_images_is_kept() -> None:
    layer = ai8x.FusedMaxPoolConv2dReLU(4, 6, 3, padding=1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
    assert layer(x).is_contiguous(memory_format=torch.channels_last)


def test_models_can_be_copied_and_pickled() -> None:
    model = nn.Sequential(_qat(ai8x.FusedAvgPoolConv2dReLU(2, 3, 3)), ai8x.Add())
    x = torch.rand(1, 2, 8, 8)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(x), model(x))


@pytest.mark.parametrize("quantile", [None, 1.0, 0.9])
def test_a_compiler_sees_the_whole_network_as_one_graph(quantile: float | None) -> None:
    model = nn.Sequential(ai8x.FusedAvgPoolConv2dReLU(2, 3, 3), ai8x.FusedConv2dAbs(3, 2, 1))
    if quantile is not None:
        ai8x.initiate_qat(model, {"weight_bits": 8, "shift_quantile": quantile})
    x = torch.rand(2, 2, 8, 8)
    torch._dynamo.reset()  # what changes between compilations becomes a variable of the graph
    computed: list[str] = []

    def recorded(graph: Any, inputs: Any) -> Any:
        computed.extend(str(node.target) for node in graph.graph.nodes)
        return aot_eager(graph, inputs)

    aot_eager = torch._dynamo.lookup_backend("aot_eager")
    compiled: Any = torch.compile(model, backend=recorded, fullgraph=True)
    weight = model[0].op.weight
    results = [(y, *torch.autograd.grad(y.sum(), weight)) for y in (compiled(x), model(x))]
    for found, wanted in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted)
    assert computed and not any("linspace" in one for one in computed)  # a place is a constant
