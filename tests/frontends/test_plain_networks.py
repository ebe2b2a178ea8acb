"""Ordinary PyTorch networks become ai8x networks that compute the same, or are refused by node."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import ai8x
import ai8xize
import quantize
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.q15.network import graph_of
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.foreign import foreign_modules
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.frontends.modules.plain.network import import_network
from ai8xtools.frontends.modules.plain.ranges import beyond_range, fit_ranges
from ai8xtools.quantization.q15.floating import compute
from ai8xtools.training.catalog.own_data import recorded_in
from device import MAX78000, MAX78002
from tests.conftest import ROOT
from tests.frontends import plain_networks as plain

CHIPS = {85: MAX78000, 87: MAX78002}


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def lively(network: nn.Module) -> nn.Module:
    """Give normalizations statistics and factors other than those of the beginning."""
    torch.manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
            with torch.no_grad():
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
    return network.eval()


@pytest.mark.parametrize(
    ("make", "shape", "die", "layers", "notes"),
    [
        (plain.ResNet8, (3, 32, 32), 85, 14, 7),
        (plain.ResNet8, (3, 32, 32), 87, 14, 7),
        (plain.Autoencoder, (640, 1, 1), 85, 10, 0),
        (plain.MobileNet, (3, 96, 96), 87, 29, 5),
        (plain.Various, (3, 16, 16), 85, 9, 1),
        (plain.Series, (8, 64), 85, 4, 0),
        (plain.Hourglass, (3, 16, 16), 85, 3, 1),
        (plain.Digits, (1, 8, 8), 85, 7, 2),
        (plain.Padded, (3, 12, 12), 85, 7, 2),
        (plain.Enlarging, (3, 16, 16), 85, 5, 2),
        (plain.Enlarging, (3, 16, 16), 87, 5, 2),
        (plain.Normalized, (3, 8, 8), 85, 6, 3),
        (plain.Normalized, (3, 8, 8), 87, 7, 3),
        (plain.Shortcut, (3, 16, 16), 85, 7, 3),
        (plain.Averages, (3, 18, 24), 85, 9, 2),
        (plain.Averages, (3, 18, 24), 87, 9, 2),
        (lambda: plain.DsCnn((3, 3)), (1, 49, 10), 87, 12, 2),
    ],
)
@torch.no_grad()
def test_imported_network_computes_the_same(
    make: Callable[[], nn.Module], shape: tuple[int, ...], die: int, layers: int, notes: int
) -> None:
    """Up to a factor of the results, by which the data fits the range of the chip."""
    ai8x.set_device(die, False, False, verbose=False)
    network = lively(make())
    x = torch.rand(4, *shape) * 2 - 1
    found = import_network(network, x[:1], "net", {})
    assert len(found.notes) == notes
    assert not list(foreign_modules(found.network))
    ai8x.fuse_bn_layers(found.network)
    *_, factor = fit_ranges(found.network, [x]).values()
    wanted, ours = network(x), found.network(x) / factor
    if found.left:
        ours = torch.softmax(ours, 1)
        wanted = wanted.exp() if make is plain.MobileNet else wanted
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))
    text = describe(found.network, x[:1], CHIPS[die], name="net", arch="net", dataset="some")
    assert len(text.nodes) == layers


@torch.no_grad()
@pytest.mark.parametrize(("weight", "limited"), [(0.5, ["add_elementwise"]), (0.0, [])])
def test_results_that_cannot_be_scaled_into_the_range_are_named(
    weight: float, limited: list[str]
) -> None:
    """What one layer makes and reads has one scale, here that of the input."""

    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1)
            nn.init.constant_(self.a.weight, weight)
            nn.init.constant_(self.b.weight, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x) + self.a(self.a(x))
            return self.b(x)

    ai8x.set_device(85, False, False, verbose=False)
    x = torch.full((1, 2, 3, 3), 0.75)
    network = Skip()
    nn.init.zeros_(network.a.bias)
    found: Any = import_network(network, x, "net", {}).network
    fit_ranges(found, [x])
    assert list(beyond_range(found, [x])) == limited


@torch.no_grad()
def test_networks_of_16_bits_normalize_by_the_statistics_of_each_sample() -> None:
    norm = nn.BatchNorm2d(4, track_running_stats=False)
    network, x = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU()), torch.randn(1, 3, 6, 6)
    graph, left = graph_of(read_module(network, x), "net")
    found = compute(graph, x.double().numpy())[graph.output]
    assert not left and torch.allclose(network(x).double(), torch.from_numpy(found), atol=1e-5)


@torch.no_grad()
def test_normalization_is_kept_for_training() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    network = lively(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    x = torch.rand(2, 2, 5, 5) * 0.2
    ours: Any = import_network(network, x, "net", {}).network
    assert isinstance(ours.get_submodule("0").bn, nn.BatchNorm2d)
    torch.testing.assert_close(ours.eval()(x), network(x).clamp(max=127 / 128))


@torch.no_grad()
def test_normalization_that_is_kept_takes_the_factor_of_the_result() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    network = lively(plain.ResNet8())
    x = torch.rand(4, 3, 32, 32) * 2 - 1
    ours: Any = import_network(network, x[:1], "net", {}).network
    *_, factor = fit_ranges(ours, [x]).values()
    wanted = network(x)
    torch.testing.assert_close(
        ours(x) / factor, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max())
    )
    assert isinstance(ours.get_submodule("block1.conv1").bn, nn.BatchNorm2d)


def test_kernels_of_one_tap_have_no_distance_of_taps() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    x = torch.zeros(1, 3, 9)
    plain_network = nn.Sequential(nn.Conv1d(3, 4, 1, dilation=2), nn.Conv1d(4, 4, 3, dilation=2))
    network = import_network(plain_network.eval(), x, "net", {}).network
    text = describe(network, x, MAX78000, name="net", arch="net", dataset="some").text
    first, second = text.split("- name:")[1:]
    assert "dilation" not in first and "dilation: 2" in second
    flat = nn.Sequential(nn.Conv2d(3, 4, 1, dilation=(2, 3)), nn.Conv2d(4, 4, 3)).eval()
    network = import_network(flat, x := torch.zeros(1, 3, 9, 9), "net", {}).network
    assert "dilation" not in describe(network, x, MAX78000, name="net", arch="n", dataset="s").text


@torch.no_grad()
def test_activation_behind_a_sum_is_exact_in_integers() -> None:
    """Kernels that are one become 64 with a shift of 1: every value passes unchanged."""

    class Sum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(x)

    ai8x.set_device(85, False, False, verbose=False)
    network = import_network(Sum(), torch.zeros(1, 3, 4, 4), "net", {}).network
    ai8x.initiate_qat(network, {"weight_bits": 8})
    x = torch.randint(-128, 128, (2, 3, 4, 4)) / 128
    assert torch.equal(network(x), x.clamp(min=0))


@torch.no_grad()
def test_limits_of_activations_are_where_the_chip_clamps() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    network = lively(nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(), nn.Dropout2d(), nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 1), nn.Hardtanh(0, 0.5),
    ))  # fmt: skip
    network[0].weight.mul_(30)
    x = torch.rand(4, 2, 9, 9) * 2 - 1
    found: Any = import_network(network, x[:1], "net", {}).network
    assert isinstance(found.get_submodule("3"), nn.Dropout2d)
    *_, factor = fit_ranges(found, [x]).values()
    assert network[:3](x).amax() == 6 and network(x).amax() == 0.5
    torch.testing.assert_close(found(x) / factor, network(x), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_limit_that_others_would_get_is_refused() -> None:
    class Join(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(2, 2, 1), nn.Conv2d(4, 2, 1)

        def forward(self, x: Tensor) -> Tensor:
            joined = torch.cat((functional.hardtanh(self.a(x), 0, 0.01), x), 1)
            return self.b(functional.max_pool2d(joined, 2))

    ai8x.set_device(85, False, False, verbose=False)
    x = torch.rand(1, 2, 3, 3)
    found = import_network(Join(), x, "net", {}).network
    with pytest.raises(InputError, match="its limit of 0.01 would be that of all results"):
        fit_ranges(found, [x])


def refused(network: nn.Module, shape: tuple[int, ...], die: int = 85) -> str:
    """Return why a network is refused, with the remedy, without lines of this file."""
    ai8x.set_device(die, False, False, verbose=False)
    with pytest.raises(InputError) as caught:
        import_network(network.eval(), torch.zeros(1, *shape), "net", {})
    assert caught.value.code == "E670"
    text = f"{caught.value.message}\n  {caught.value.remedy}"
    return re.sub(rf" \([^ ]*{Path(__file__).name}:\d+\)", "", text)


def test_an_input_that_the_network_does_not_take_is_told_as_such() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    with pytest.raises(InputError, match="traced for an input of 3x16x16: ") as caught:
        import_network(plain.Digits(), torch.zeros(1, 3, 16, 16), "net", {})
    assert "Compare the size of the input" in str(caught.value.remedy)


class Branching(nn.Module):
    """Residual blocks that add what has the same shape, and a condition that is the test's."""

    def __init__(self, condition: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Conv1d(8 if i == 0 else 12, 12, 3, padding=1)
                                     for i in range(3)])  # fmt: skip
        self.condition = condition

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 3 and x.shape[1] == 8, "8 channels"
        for block in self.blocks:
            y = block(x).relu()
            x = y + x if y.shape == x.shape else y
        return x if self.condition(x) else x.abs()


@torch.no_grad()
def test_branches_follow_sizes_and_not_values() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    network, x = Branching(lambda x: x.size(2) % 2 == 0).eval(), torch.rand(2, 8, 16) / 4
    found = import_network(network, x[:1], "net", {})
    *_, factor = fit_ranges(found.network, [x]).values()
    torch.testing.assert_close(found.network(x) / factor, network(x), rtol=1e-4, atol=1e-5)
    conditions: list[Callable[[Tensor], Any]] = [
        lambda x: x.mean() > 0, lambda x: x.mean().item() > 0, lambda x: int(x.max()) > 0,
    ]  # fmt: skip
    for condition in conditions:
        with pytest.raises(
            InputError, match=r"cannot be traced.*test_plain_networks.py:\d+: "
        ) as no:
            import_network(Branching(condition).eval(), x[:1], "net", {})
        assert (no.value.code, "values of its data" in str(no.value.remedy)) == ("E647", True)


def test_networks_are_refused_at_named_nodes() -> None:
    network = plain.Shortcut()
    network.conv1 = nn.Conv2d(3, 8, 8, padding=4)
    where, remedy = refused(network, (3, 16, 16)).splitlines()
    assert where.startswith("conv1: its kernel is 8x8 (")
    assert remedy == (
        "  Use several 3x3 convolutions, which reach as far, or pad one side by one more, as "
        "padding='same' does."
    )
    said = refused(nn.Sequential(nn.AdaptiveAvgPool2d(1)), (1, 34, 10), 87)
    assert "0: its window is 34x10, its stride 34x10; at most 16 are possible" in said


class Function(nn.Module):
    """A convolution, and a function of its result."""

    def __init__(self, function: Callable[[Tensor], Tensor], channels: int = 4) -> None:
        super().__init__()
        self.conv, self.end = nn.Conv2d(3, 4, 3), nn.Conv2d(channels, 2, 1)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.function(self.conv(x)))


MODULES: list[tuple[nn.Module, str, nn.Module]] = [
    (nn.Conv2d(3, 4, 8), "0: its kernel is 8x8\n  Use several 3x3 convolutions",
     nn.Conv2d(3, 4, 7)),
    (nn.Conv2d(3, 4, (3, 1)), "0: its kernel is 3x1\n  Use a 3x3 kernel.", nn.Conv2d(3, 4, 3)),
    (nn.Conv2d(3, 4, 3, padding=3), "0: padding=3; MAX78000 allows 0, 1, 2\n  Use a padding",
     nn.Conv2d(3, 4, 3, padding=2)),
    (nn.Conv2d(3, 4, 3, padding=(1, 0)), "0: its padding is 1x0x1x0, the chip pads all sides",
     nn.Conv2d(3, 4, 3, padding=(1, 1))),
    (nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), "0: the accelerator pads with",
     nn.Conv2d(3, 4, 3, padding_mode="zeros")),
    (nn.Conv2d(3, 4, 3, dilation=(2, 1)), "0: its dilation is 2x1\n  Use one dilation for both",
     nn.Conv2d(3, 4, 3, dilation=2)),
    (nn.ConvTranspose2d(3, 4, 4, stride=2), "0: its kernel is 4x4, its stride 2x2, its output",
     nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)),
    (nn.Upsample(scale_factor=3), "0: it makes 48x48 of 16x16\n  Use mode=",
     nn.Upsample(scale_factor=2)),
    (nn.Upsample(scale_factor=2, mode="bilinear"), "0: the accelerator has no upsample by mode bi",
     nn.Upsample(scale_factor=2, mode="nearest")),
    (nn.MaxPool2d(3, 2, 1), "0: its padding is 1x1, and negative values come into it",
     nn.Sequential(nn.ReLU(), nn.MaxPool2d(3, 2, 1))),
    (nn.MaxPool2d(5, 2, 2), "0: its padding is 2x2x2x2\n  Pool with no", nn.MaxPool2d(2, 2)),
    (nn.AvgPool2d(2, divisor_override=3), "0: the accelerator has no Mul",
     nn.AvgPool2d(2)),
    (nn.AvgPool2d(3, 2, 1, count_include_pad=False), "0: its average leaves out the padding",
     nn.AvgPool2d(3, 2, 1, count_include_pad=True)),
    (nn.MaxPool2d(3, 2, ceil_mode=True), "0: ceil_mode keeps incomplete windows",
     nn.MaxPool2d(3, 2, ceil_mode=False)),
    (nn.AdaptiveAvgPool2d(3), "0: the accelerator has no pooling by windows of different",
     nn.AdaptiveAvgPool2d(1)),
    (nn.AvgPool2d(3, (1, 2)), "0: stride (1, 2) and dilation 1 differ by axis\n  Use one stride",
     nn.AvgPool2d(3, 2)),
    (nn.Hardtanh(-1, 2), "0: it limits data to -1..2\n  Use ReLU, or leave it out", nn.Identity()),
    (nn.BatchNorm2d(3, track_running_stats=False), "0: the accelerator has no normalization by the",
     nn.BatchNorm2d(3)),
    (nn.MaxPool2d(2, return_indices=True), "0: the accelerator has no MaxPool with indices\n  Use",
     nn.MaxPool2d(2)),
    (nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.Unflatten(1, (8, 2, 2)),
                   nn.Conv2d(8, 4, 1)),
     "0.2: 32 becomes 8x2x2\n  Take its 32 values as channels of one pixel",
     nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.Unflatten(1, (32, 1, 1)),
                   nn.ConvTranspose2d(32, 4, 2, stride=2))),
    (nn.LeakyReLU(0.1), "0: the accelerator has no LeakyRelu\n  Use ReLU.", nn.ReLU()),
    (nn.ZeroPad2d((1, 0, 1, 0)), "0: its padding is 0x1x1x0x0x0, the chip pads all sides alike",
     nn.ZeroPad2d(1)),
    (nn.GELU(), "0: the accelerator has no GELU\n  Use ReLU.", nn.ReLU()),
    (nn.Linear(16, 4), "0: it works on the last axis of 3x16x16",
     nn.Sequential(nn.Flatten(), nn.Linear(768, 4))),
]  # fmt: skip
"""What is refused, what is said of it, and what that proposes instead."""

FUNCTIONS: list[tuple[Callable[[Tensor], Tensor], str, Callable[[Tensor], Tensor]]] = [
    (lambda x: x * x, "mul: the accelerator has no Mul", lambda x: x * 2),
    (lambda x: (x.relu() + 1).abs(), "add: the accelerator has no Add", lambda x: x.relu() + 1),
    (lambda x: x + x.mean((2, 3), keepdim=True), "add: its operands have the shapes",
     lambda x: x + x.abs()),
    (lambda x: x.relu() / 3 + x, "truediv: the accelerator has no Mul", lambda x: x + x),
    (lambda x: torch.cat([x, x], 2), "cat: it joins along axis 2",
     lambda x: torch.cat([x, x], 1)),
    (lambda x: torch.sigmoid(x), "sigmoid: the accelerator has no Sigmoid\n  Use ReLU inside",
     lambda x: torch.relu(x)),
    (lambda x: torch.softmax(x, 1), "softmax: the accelerator has no Softmax", lambda x: x),
    (lambda x: functional.interpolate(x, scale_factor=3), "interpolate: it makes 42x42 of 14x14",
     lambda x: functional.interpolate(x, scale_factor=2)),
    (lambda x: x.mean(1, keepdim=True).expand(-1, 4, -1, -1), "mean: it averages other axes",
     lambda x: x.mean((2, 3), keepdim=True)),
    (lambda x: torch.cat([x.sigmoid()], 1), "sigmoid: the accelerator has no Sigmoid",
     lambda x: torch.cat([x.relu()], 1)),
    (lambda _: torch.zeros(1, 4, 2, 2), "output: no result depends on the input", lambda x: x),
    (lambda x: (-x.relu()).abs(), "neg: the accelerator has no Mul", lambda x: -x.relu()),
    (lambda x: x.clamp(-2, 1), "clamp: it limits data to -2..1\n  Use ReLU, or leave it out",
     lambda x: x.clamp(min=0)),
    (lambda x: x[:, :, 1:], "getitem: it cuts 4x13x14 out of 4x14x14\n  Use less padding",
     lambda x: x[:, :, ::2, ::2]),
    (lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect"), "pad: the accelerator pads with",
     lambda x: functional.pad(x, (1, 1, 1, 1))),
    (lambda x: x.repeat(1, 1, 2, 1), "repeat: it takes rows in an order of its own: 0, 1",
     lambda x: x.chunk(2, 1)[0].repeat(1, 3, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "said", "instead"), MODULES, ids=[text[:24] for _, text, _ in MODULES]
)
def test_modules_are_refused_with_what_to_use_instead(
    module: nn.Module, said: str, instead: nn.Module
) -> None:
    assert said in refused(nn.Sequential(module), (3, 16, 16))
    import_network(nn.Sequential(instead), torch.zeros(1, 3, 16, 16), "net", {})


@pytest.mark.parametrize(
    ("function", "said", "instead"), FUNCTIONS, ids=[text[:16] for _, text, _ in FUNCTIONS]
)
def test_functions_are_refused_with_what_to_use_instead(
    function: Callable[[Tensor], Tensor], said: str, instead: Callable[[Tensor], Tensor]
) -> None:
    assert said in refused(Function(function), (3, 16, 16)).replace("\n  mul", "mul")
    channels = instead(torch.zeros(1, 4, 14, 14)).shape[1]
    import_network(Function(instead, channels), torch.zeros(1, 3, 16, 16), "net", {})


def test_rearranging_behind_the_last_layer_is_left_to_the_application() -> None:
    class Boxes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList([nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 1)])

        def forward(self, x: Tensor) -> Tensor:
            found = [head(x).permute(0, 2, 3, 1) for head in self.heads]
            return torch.cat([one.reshape(x.size(0), -1, 4) for one in found], 1)

    ai8x.set_device(85, False, False, verbose=False)
    x = torch.rand(2, 3, 8, 8) * 0.15  # so that no sum leaves the range of 8 bits
    network = Boxes().eval()
    found = import_network(network, x[:1], "net", {})
    assert found.left == ("permute", "permute_1")
    torch.testing.assert_close(found.network(x), network(x))
    text = describe(found.network, x[:1], MAX78000, name="net", arch="net", dataset="some")
    assert text.nodes == ("heads.0", "heads.1")
    assert "permute" in text.left


def test_weights_of_an_ordinary_network_reach_the_chip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state_dict, calibrated, deployed and verified; a file of another network is refused."""
    monkeypatch.chdir(tmp_path)
    name = f"{ROOT}/tests/frontends/plain_networks.py:Digits"
    torch.save(lively(plain.Digits()).state_dict(), "plain.pth")
    torch.save(plain.Series().state_dict(), "other.pth")
    options = ["--device", "MAX78000", "--import", "--model", name, "--calibrate", "digits",
               "--calibration-samples", "64"]  # fmt: skip
    assert run(lambda: quantize.main(["other.pth", "q.pth.tar", *options])) == 1
    told = capsys.readouterr().err
    assert "other.pth: error: the weights are not those of Digits" in told and "[E676]" in told
    monkeypatch.setattr(
        "ai8xtools.commands.quantize.importer.beyond_range", lambda *_: {"conv": 1.25}
    )
    assert run(lambda: quantize.main(["plain.pth", "q.pth.tar", *options])) == 0
    assert "conv (1.25)" in (told := capsys.readouterr().err) and "[W758]" in told
    assert read_checkpoint("q.pth.tar").arch == "digits"
    words = ["--model", name, "--checkpoint-file", "q.pth.tar", "--device", "MAX78000",
             "--dataset", "digits", "--prefix", "net", "--test-dir", "build"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", *words, "--verify"])
    assert run(ai8xize.main) == 0
    said = capsys.readouterr().out
    assert "Import: features.3: its stride 2 is computed as decimation" in said
    assert "verified 10 words of the expected output" in said


def test_bare_weights_are_calibrated_with_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state_dict tells nothing of the data that it was trained on; later tools find it in the
    checkpoint that was made."""
    monkeypatch.chdir(tmp_path)
    name = f"{ROOT}/tests/frontends/plain_networks.py:Normalized"
    images = np.random.default_rng(0).integers(0, 256, (40, 9, 12, 3)).astype(np.uint8)
    for number, image in enumerate(images):
        Path(f"pictures/{'abcd'[number % 4]}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(f"pictures/{'abcd'[number % 4]}/{number}.png")
    torch.save(lively(plain.Normalized()).state_dict(), "plain.pth")
    options = ["--device", "MAX78000", "--import", "--calibrate", "folder:pictures", "--model",
               name, "--resize", "8"]  # fmt: skip
    assert run(lambda: quantize.main(["plain.pth", "q.pth.tar", *options])) == 0
    assert read_checkpoint("q.pth.tar").arch == "normalized"
    assert recorded_in("q.pth.tar").classes == ("a", "b", "c", "d")
    words = ["--model", name, "--checkpoint-file", "q.pth.tar", "--device", "MAX78000", "--prefix",
             "n", "--test-dir", "t", "--check-only"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", *words])
    assert run(ai8xize.main) == 0  # its layer `bn` is no normalization of a layer
