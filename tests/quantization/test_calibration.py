"""Calibration chooses integers that keep what a network computes, better than rounding does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x
import quantize
from ai8xtools.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ai8xtools.commands.quantize.samples import data_set
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import (
    Calibration,
    QuantizationOptions,
    bits_by_layer,
    quantize_checkpoint,
)
from ai8xtools.quantization.adaptive import DataRounding, Moments, columns, weight_rows
from ai8xtools.quantization.calibration import LayerChoice, _scales, calibrate
from datasets.errors import DatasetError
from models.ai85digitsnet import ai85digitsnet


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors are too small for several threads, which only get into each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


OPERATORS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "conv2d": (nn.Conv2d(3, 4, 3, padding=1, bias=False), (2, 3, 6, 5)),
    "stride and dilation": (nn.Conv2d(3, 4, 3, 2, 2, 2, bias=False), (2, 3, 9, 8)),
    "depthwise": (nn.Conv2d(6, 6, 3, groups=6, bias=False), (2, 6, 6, 5)),
    "groups": (nn.Conv2d(6, 4, 1, groups=2, bias=False), (2, 6, 3, 3)),
    "conv1d": (nn.Conv1d(3, 4, 5, padding=2, dilation=2, bias=False), (2, 3, 12)),
    "linear": (nn.Linear(6, 4, bias=False), (5, 6)),
}


@torch.no_grad()
@pytest.mark.parametrize("name", OPERATORS)
def test_columns_times_rows_is_the_operator(name: str) -> None:
    op, shape = OPERATORS[name]
    x = torch.randn(shape)
    rows = weight_rows(op, op.weight)
    assert rows is not None
    found = (rows @ columns(op, x)).flatten(0, 1)  # [out, N·places]
    expected = op(x).movedim(1, 0).flatten(1)
    torch.testing.assert_close(found, expected)


def test_transposed_and_very_wide_layers_are_left_to_plain_rounding() -> None:
    transposed = nn.ConvTranspose2d(3, 3, 3)
    assert weight_rows(transposed, transposed.weight) is None
    assert weight_rows(nn.Linear(2, 2), torch.zeros(1, 5000)) is None


def moments_of(seen: Tensor, wanted: Tensor) -> Moments:
    moments = Moments.empty(1, seen.shape[0])
    moments.add(seen[None], wanted[None])
    return moments


def test_of_large_batches_every_second_or_third_place_is_looked_at() -> None:
    places = torch.arange(40000.0)[None]
    for count, step in ((1, 1), (1 << 14, 1), ((1 << 14) + 1, 2), (1 << 15, 2), (40000, 3)):
        moments = moments_of(places[:, :count], 2 * places[:, :count])
        taken = places[0, :count:step].double()
        assert (moments.count, moments.seen.item()) == (len(taken), taken.sum().item())
        assert moments.expected.item() == 2 * moments.seen.item()
        assert moments.cross.item() == 2 * moments.second.item() == 2 * taken.square().sum().item()


def test_rounding_with_data_changes_the_output_less_than_plain_rounding() -> None:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(16, 16, generator=generator)
    seen = mixing @ torch.rand(16, 500, generator=generator)  # inputs that say much the same
    seen[3] = 0
    rows = torch.randn(1, 8, 16, generator=generator) / 4
    rounding = DataRounding(moments_of(seen, seen))
    for limit in (128, 8, 2):
        found = rounding.round(rows, limit, limit)
        nearest = (rows * limit + 0.5).floor().clamp(-limit, limit - 1)
        assert torch.equal(found, found.round()) and found.min() >= -limit and found.max() < limit
        errors = [
            ((integers / limit - rows) @ seen.double()).square().sum()
            for integers in (found, nearest.double())
        ]
        assert errors[0] < errors[1] / 2
        assert torch.equal(found[0, :, 3], nearest[0, :, 3].double()), "an input that is always 0"


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_scales_begin_with_the_largest_at_which_nothing_is_clipped(bits: int) -> None:
    """A weight has `bits` bits, the bias 8 in the same steps; output shifts limit both."""
    random = np.random.default_rng(bits)
    free = 0
    for _ in range(400):
        weight, bias = (float(np.exp2(random.uniform(-9, 5))) for _ in range(2))
        found = _scales(torch.tensor([weight / 3, -weight]), torch.tensor([bias, 0.0]), bits)

        def whole(scale: int, sizes: tuple[float, float] = (weight, bias)) -> bool:
            steps = [size * 2.0 ** (scale + bits - 1) for size in sizes]
            return steps[0] <= 2 ** (bits - 1) and steps[1] <= 128

        if whole(found[0]) and not whole(found[0] + 1):
            free += 1
            assert len(found) > 1 and not any(map(whole, found[1:]))
        else:  # at an end of what shifts allow
            assert found[0] in (-7 - bits, 23 - bits)
    assert free > 300
    alone = _scales(torch.tensor([0.5, -1.0]), None, bits)
    assert alone == _scales(torch.tensor([0.5, -1.0]), torch.zeros(2), bits)
    assert alone[0] == 0


def test_unrelated_inputs_leave_the_nearest_integers() -> None:
    rows = torch.randn(1, 3, 4)
    rounding = DataRounding(moments_of(torch.eye(4), torch.eye(4)))
    assert torch.equal(rounding.round(rows, 8, 64), (rows.double() * 8 + 0.5).floor())


def test_compensation_makes_good_for_inputs_that_came_out_wrong() -> None:
    wanted = torch.randn(5, 400)
    rows = torch.randn(1, 2, 5)
    same = DataRounding(moments_of(wanted, wanted))
    torch.testing.assert_close(same.compensated(rows), rows.double())
    halved = DataRounding(moments_of(wanted / 2, wanted))
    torch.testing.assert_close(halved.compensated(rows), rows.double() * 2, rtol=0.05, atol=0.05)


class Network(nn.Module):
    """Layers of every kind that calibration treats differently; `unused` is never called."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        make = {"bias": True, **kwargs}
        self.first = ai8x.FusedConv2dReLU(2, 8, 3, padding=1, **make)
        self.unused = ai8x.Conv2d(8, 8, 3, **make)
        self.pooled = ai8x.FusedAvgPoolConv2d(8, 8, 3, padding=1, **make)
        self.right = ai8x.FusedConv2dAbs(8, 8, 1, **make)
        self.up = ai8x.FusedConvTranspose2dReLU(8, 4, 3, stride=2, padding=1, **make)
        self.add = ai8x.Add()
        self.fc = ai8x.Linear(4 * 64, 5, wide=True, **make)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pooled(self.first(x))
        return self.fc(self.up(self.add(x, self.right(x))).flatten(1))


SIMULATED = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}


def network(simulate: bool) -> nn.Module:
    ai8x.set_device(85, simulate, False, verbose=False)
    return Network(**(SIMULATED if simulate else {})).eval()


def samples(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 2, 2, 2, generator=generator)
    images = functional.interpolate(coarse, (8, 8), mode="bilinear")
    return (images * 256 - 128).round().clamp(-128, 127) / 128


@pytest.fixture
def trained() -> Iterator[nn.Module]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = network(simulate=False)
    yield model


def checkpoint_of(model: nn.Module) -> Checkpoint:
    state = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    return Checkpoint({"state_dict": state, "extras": {}, "arch": "net", "epoch": 1})


def simulation_of(model: nn.Module, checkpoint: Checkpoint) -> nn.Module:
    state = {name: torch.from_numpy(t.copy()) for name, t in checkpoint.state_dict.items()}
    model.load_state_dict(state)
    return model


def decibels(found: Tensor, wanted: Tensor) -> float:
    found = found * ((found * wanted).sum() / (found * found).sum())
    return float(10 * torch.log10(wanted.square().sum() / (found - wanted).square().sum()))


def calibrated(trained: nn.Module, bits: int) -> tuple[list[LayerChoice], Checkpoint, nn.Module]:
    """Return the choices, the checkpoint with them, and the simulation that chose them."""
    original = checkpoint_of(trained)
    options = QuantizationOptions(default_bits=bits)
    simulated = network(simulate=True)
    batches = samples(96, 5).split(40)
    choices = calibrate(trained, simulated, batches, bits_by_layer(original, options))
    layers = {choice.name: choice.integers for choice in choices}
    options = QuantizationOptions(default_bits=bits, calibration=Calibration(layers))
    return choices, quantize_checkpoint(original, options).checkpoint, simulated


@torch.no_grad()
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_calibrated_network_is_nearer_to_the_trained_one(trained: nn.Module, bits: int) -> None:
    choices, checkpoint, simulated = calibrated(trained, bits)
    assert [choice.name for choice in choices] == ["first", "pooled", "right", "up", "fc"]
    assert all(choice.snr_db >= choice.plain_snr_db for choice in choices)
    fresh = samples(64, 6)
    wanted = trained(fresh)
    found = simulated(fresh * 128)
    for name in ("unused.op.weight", "unused.op.bias"):  # no input reached it
        tensor = torch.from_numpy(checkpoint.state_dict[name].copy())
        simulated.load_state_dict({name: tensor}, strict=False)
    loaded = simulation_of(network(simulate=True), checkpoint)
    assert torch.equal(loaded(fresh * 128), found), "the file computes what was judged"
    plain = quantize_checkpoint(checkpoint_of(trained), QuantizationOptions(default_bits=bits))
    state = dict(plain.checkpoint.state_dict)
    state |= {key: state[key] * 0 + bits for key in state if key.endswith(".weight_bits")}
    rounded = simulation_of(network(simulate=True), Checkpoint({"state_dict": state}))
    # with 8 bits much of the error is that of the data, which no weights can mend
    gained = decibels(found, wanted) - decibels(rounded(fresh * 128), wanted)
    assert gained > (0.3 if bits == 8 else 3)


def test_layers_get_their_bits_and_notes(trained: nn.Module) -> None:
    original = checkpoint_of(trained)
    layer_bits = [4, None, 2, 8, None, 4]
    options = QuantizationOptions(layer_bits=layer_bits, default_bits=8)
    bits = bits_by_layer(original, options)
    assert list(bits.values()) == [4, 8, 2, 8, 8, 4]
    choices = calibrate(trained, network(simulate=True), [samples(4, 0)], bits)
    for choice in choices:
        limit = 2 ** (bits[choice.name] - 1)
        integers = choice.integers.weights
        assert integers.min() >= -limit and integers.max() < limit
        assert choice.integers.bits == bits[choice.name]
    layers = {choice.name: choice.integers for choice in choices}
    calibration = Calibration(layers, {"calibration_samples": 4})
    options = QuantizationOptions(layer_bits=layer_bits, calibration=calibration)
    done = quantize_checkpoint(original, options)
    state = done.checkpoint.state_dict
    assert done.checkpoint.extras == {"clipping_method": "CALIBRATION", "calibration_samples": 4}
    assert {name: state[f"{name}.weight_bits"].item() for name in layers} == {
        name: bits[name] for name in layers
    }
    assert all(report.gain == 1 for report in done.tensors)


def test_bias_of_few_bits_uses_all_of_its_own(trained: nn.Module) -> None:
    with torch.no_grad():
        trained.first.op.weight.clamp_(-0.2, 0.2)
        trained.first.op.bias.fill_(0.9)
    _, checkpoint, _ = calibrated(trained, 2)
    state = checkpoint.state_dict
    steps = state["first.op.bias"] / 2  # stored in units of 2^(bits-1)
    shift = state["first.output_shift"].item()
    assert np.abs(steps).max() > 2, "wider than the weights"
    assert steps.mean() * 2.0**shift / 2 == pytest.approx(0.9, abs=0.3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_samples_suffice(trained: nn.Module, count: int) -> None:
    choices = calibrate(trained, network(simulate=True), [samples(count, 0)], {})
    assert all(math.isfinite(choice.snr_db) for choice in choices)


def test_samples_of_another_shape_are_refused(trained: nn.Module) -> None:
    with pytest.raises(InputError, match="shape 3x8x8") as caught:
        calibrate(trained, network(simulate=True), [torch.zeros(4, 3, 8, 8)], {})
    assert caught.value.code == "E630"


def status(*arguments: object) -> int:
    return run(lambda: quantize.main([str(argument) for argument in arguments]))


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A checkpoint of the network for digits with random weights."""
    ai8x.set_device(85, False, False, verbose=False)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = ai85digitsnet(num_channels=1)
    path = tmp_path / "digits.pth.tar"
    original = checkpoint_of(model)
    state = {f"module.{name}": tensor for name, tensor in original.state_dict.items()}
    write_checkpoint(path, original.with_entries(state_dict=state, arch="ai85digitsnet"))
    return path


def test_script_calibrates_by_data_set(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--device", "MAX78000", "--calibrate", "digits", "--calibration-samples", 32)
    outputs = [tmp_path / "a-q.pth.tar", tmp_path / "b-q.pth.tar"]
    for output in outputs:
        assert status(digits, output, *options, "--safetensors") == 0
    printed = capsys.readouterr().out
    assert "Calibrated with 32 samples of digits:" in printed and "conv3" in printed
    assert outputs[0].read_bytes() == outputs[1].read_bytes(), "the same in each run"
    checkpoint = read_checkpoint(outputs[0])
    assert checkpoint.extras["clipping_method"] == "CALIBRATION"
    assert checkpoint.extras["calibration_dataset"] == "digits"
    assert checkpoint.state_dict["module.conv1.op.weight"].max() > 1
    twin = read_checkpoint(tmp_path / "a-q.safetensors")
    assert twin.container == "safetensors" and twin.arch == "ai85digitsnet"
    for name, tensor in checkpoint.state_dict.items():
        assert np.array_equal(twin.state_dict[name], tensor), name


@pytest.mark.parametrize("wrong", [None, np.nan])
def test_script_calibrates_by_an_array(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: float | None
) -> None:
    values = np.random.default_rng(3).uniform(-1, 1, (8, 1, 8, 8)).astype(np.float32)
    if wrong is not None:
        values[5, 0, 2, 3] = wrong
    np.save(tmp_path / "own.npy", values)
    options = ("--device", "MAX78000", "--calibrate", tmp_path / "own.npy")
    assert status(digits, tmp_path / "q.pth.tar", *options) == (wrong is not None)
    told = capsys.readouterr()
    assert "Calibrated with 8 samples" in told.out or "1 values of the calibration" in told.err
    assert (tmp_path / "q.pth.tar").exists() is (wrong is None)


BAD = {
    "unknown data set": (["--calibrate", "digitz"], "--calibrate: error: 'digitz' is not known"),
    "unknown network": (["--calibrate", "digits", "--model", "x"], "--model: error: 'x' is not"),
    "another network": (
        ["--calibrate", "digits", "--model", "ai85firetestnet"], "error",
    ),
    "no data": (["--calibrate", "MNIST", "--model", "ai85net5", "--data", "none"], "error"),
    "an earlier result": (["--calibrate", "digits"], "E707"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_ends_with_a_message_and_no_output(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], case: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", None)  # no download
    arguments, words = BAD[case]
    if case == "an earlier result":
        original = read_checkpoint(digits)
        write_checkpoint(digits, original.with_entries(extras={"clipping_method": "MAX"}))
    assert status(digits, "q.pth.tar", "--device", "MAX78000", *arguments) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "q.pth.tar").exists()


def test_checkpoint_of_another_network_is_told_by_its_tensors(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = read_checkpoint(digits)
    state = dict(original.state_dict)
    state["module.conv1.op.weight"] = np.zeros((8, 1, 3, 3), np.float32)
    del state["module.conv3.op.weight"]
    write_checkpoint(digits, original.with_entries(state_dict=state))
    options = ("--device", "MAX78000", "--calibrate", "digits")
    assert status(digits, tmp_path / "q.pth.tar", *options) == 1
    errors = capsys.readouterr().err
    assert "does not belong to ai85digitsnet for digits: missing: conv3.op.weight" in errors
    assert "of another shape: conv1.op.weight" in errors


def test_numbers_of_three_axes_are_series_where_the_network_takes_nothing_else(
    tmp_path: Path,
) -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (8, 6, 16)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=values, y=np.arange(8) % 2)
    name, lines, planes = f"npz:{tmp_path / 'x.npz'}", np.zeros((4, 6, 3)), np.zeros((4, 6, 3, 3))
    assert data_set(name, [lines, np.zeros((2, 4))], None).input == (6, 16, 1)
    assert data_set(name, [], None, series=True).input == (6, 16, 1)
    for unclear in ([lines, planes], [np.zeros((2, 4))], []):
        with pytest.raises(DatasetError, match="pictures, series, or features"):
            data_set(name, unclear, None)


def test_data_set_without_samples_is_refused(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = tmp_path / "datasets"
    folder.mkdir()
    (folder / "empty.py").write_text(
        "datasets = [{'name': 'empty', 'input': (1, 8, 8), 'output': tuple('0123456789'),\n"
        "             'loader': lambda data, load_train=True, load_test=True: (None, [])}]\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ("--device", "MAX78000", "--calibrate", "empty")
    assert status(digits, tmp_path / "q.pth.tar", *options) == 1
    assert "the data set empty holds no samples [E606]" in capsys.readouterr().err
