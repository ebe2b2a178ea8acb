"""Networks of ai8x layers become descriptions that compute the same, without any place fixed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ai8x
import ai8xize
import quantize
from ai8xtools.answer import read_answer
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.loader.models import describe_model
from ai8xtools.commands.loader.options import ModelSource
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.foreign import foreign_modules
from ai8xtools.frontends.modules.mixed import constant_tensors, with_rectifiers
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.parse import Described
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.training.catalog.imported import completed, is_completed
from ai8xtools.training.catalog.own_file import own_model
from ai8xtools.training.saving import checkpoints
from device import MAX78000
from tests.conftest import ROOT
from tests.networks.deployed import BY_FILE, with_random_weights
from tests.synthesis.emulated import emulated

MNIST = str(ROOT / "trained/mnist-ai85net5-qat8-q.pth.tar")
SAMPLE = str(ROOT / "tests/sample_mnist.npy")


@pytest.mark.parametrize(
    "file",
    [
        "digits-chw-ai85", "mnist-mixed-chw-ai85", "cifar100-residual-hwc-ai85", "kws20-v3-ai85",
        "firetest-cifar10-hwc-ai85", "bayer2rgb-hwc-ai85", "faceid112-hwc-ai87", "actiontcn-ai85",
    ],
)  # fmt: skip
def test_described_network_computes_what_the_model_does(file: str, tmp_path: Path) -> None:
    """The variant (bias, classes, channels) is found from the checkpoint and the sample; places
    are chosen, and the emulated chip agrees."""
    deployed = BY_FILE[file]
    checkpoint, model = with_random_weights(deployed, tmp_path)
    options = deployed.resolving(tmp_path, checkpoint)
    source = ModelSource(deployed.case.name)
    found = describe_model(source, deployed.chip, checkpoint, options.sample_input)
    described = Described(found.text, found.model, found.nodes)
    made = synthesize(described, deployed.chip, options, EncodeOptions())
    outputs = made.activations.outputs
    results = [outputs[layer.index].ravel() for layer in made.network.outputs()]
    np.testing.assert_array_equal(np.concatenate(results), deployed.output(model))
    assert emulated(made.program).wrong == []


def loaded(folder: Path, *words: str) -> int:
    """Run ai8xize.py; return its exit status."""
    main = ["--device", "MAX78000", "--prefix", "net", "--test-dir", str(folder / "build")]
    import sys

    before, sys.argv = sys.argv, ["ai8xize.py", *main, *words]
    try:
        return run(ai8xize.main)
    except SystemExit as exc:
        return int(exc.code or 0)
    finally:
        sys.argv = before


def test_model_gives_the_project_that_its_description_gives(tmp_path: Path) -> None:
    from_model, by_hand = tmp_path / "a", tmp_path / "b"
    words = ["--checkpoint-file", MNIST, "--sample-input", SAMPLE]
    assert loaded(from_model, "--model", "ai85net5", *words) == 0
    hand = str(ROOT / "networks/mnist-hwc-ai85.yaml")
    assert loaded(by_hand, "--config-file", hand, *words) == 0
    for file in ("sampleoutput.h", "sampledata.h", "weights.h"):
        ours, theirs = (
            re.findall("0x[0-9a-f]+", (folder / "build/net" / file).read_text())
            for folder in (from_model, by_hand)
        )
        if file == "sampleoutput.h":  # the addresses of the result differ
            ours, theirs = ([w for w in x if w[:4] != "0x50"] for x in (ours, theirs))
        assert ours == theirs, file


def test_without_a_sample_the_known_answer_is_of_random_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", "ai85net5", "--checkpoint-file", MNIST)
    assert loaded(tmp_path, *words) == 0
    assert "no sample is given: the known answer is that of random data [N241]" in (
        capsys.readouterr().err
    )
    first = (tmp_path / "build/net/sampledata.h").read_bytes()
    assert loaded(tmp_path, *words, "--overwrite") == 0
    assert (tmp_path / "build/net/sampledata.h").read_bytes() == first


class Reversed(torch.nn.Module):
    """Layers of equal shape, defined in another order than they compute, behind a dotted name."""

    def __init__(self) -> None:
        super().__init__()
        bits: dict[str, Any] = {}
        self.last = ai8x.Conv2d(4, 4, 1, bias=False, **bits)
        self.blocks = torch.nn.Sequential(ai8x.FusedConv2dReLU(4, 4, 1, bias=False, **bits))

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.last(self.blocks(x)), 1)


REVERSED = """
import torch, ai8x

class Reversed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = ai8x.Conv2d(4, 4, 1, bias=False)
        self.blocks = torch.nn.Sequential(ai8x.FusedConv2dReLU(4, 4, 1, bias=False))

    def forward(self, x):
        return torch.softmax(self.last(self.blocks(x)), 1)

class Needy(torch.nn.Module):
    def __init__(self, width):
        super().__init__()

class Branching(Reversed):
    def forward(self, x):
        return self.last(x) if x.sum() > 0 else self.blocks(x)

class Strange(Reversed):
    def forward(self, x):
        return self.last(torch.sin(self.blocks(x)).sigmoid())
"""


def test_layers_find_their_weights_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ai8x.set_device(85, False, False, verbose=False)
    model = Reversed()
    with torch.no_grad():
        model.last.op.weight.fill_(1)
        model.blocks[0].op.weight.fill_(2)
    path = tmp_path / "net.pth.tar"
    checkpoints.write([path], 1, "reversed", model, torch.optim.SGD(model.parameters(), 0.1), {})
    (tmp_path / "net.py").write_text(REVERSED)
    name = f"{tmp_path / 'net.py'}:Reversed"
    words = ("--model", name, "--checkpoint-file", str(path), "--input-shape", "4x8x8")
    assert loaded(tmp_path, *words, "--display-checkpoint") == 0
    said = capsys.readouterr().out
    assert "Left to the application: softmax" in said
    rows = [line.split() for line in said.splitlines() if ".op.weight" in line]
    assert [(row[1], row[-1]) for row in rows] == [
        ("(blocks_0)", "blocks.0.op.weight"), ("(last)", "last.op.weight"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("net.py:Missing", [], "there is no class 'Missing' in it [E672]"),
        ("none.py:Net", [], "the file does not exist [E602]"),
        ("broken.py:Net", [], "broken.py:2: error: the file cannot be imported: ZeroDivision"),
        ("net.py:Needy", [], "Needy needs arguments that are not known here: width [E673]"),
        ("net.py:Branching", [], "the data flow of the network cannot be traced"),
        ("net.py:Strange", [], "sin (net.py:23): the model computes sin here"),
        ("net.py:Reversed", None, "the size of the input of net.py:Reversed is not known [E674]"),
        ("net.py:Reversed", ["--checkpoint-file", MNIST], "does not belong to the network"),
        (
            "ai85net5x",
            [],
            "its name is like those of the vendor's tools [E601]\n  Perhaps you mean ai85net5",
        ),
    ],
)
def test_bad_models_are_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    model: str, options: list[str] | None, said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(REVERSED)
    Path("broken.py").write_text("\n1 / 0\n")
    shape = [] if options is None else ["--input-shape", "4x8x8", *options]
    before = sorted(tmp_path.rglob("*.*"))
    assert loaded(tmp_path, "--model", model, *shape) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("error:") == 1, error
    assert sorted(p for p in tmp_path.rglob("*.*") if "__pycache__" not in str(p)) == before


class Beside(torch.nn.Module):
    """Layers of ai8x and what users write beside them."""

    def __init__(self, pool: torch.nn.Module, flatten: Any, *unused: torch.nn.Module) -> None:
        super().__init__()
        self.unused = torch.nn.ModuleList(unused)
        self.first, self.pool = ai8x.FusedConv2dReLU(3, 8, 3, padding=1), pool
        self.second = ai8x.FusedConv2dReLU(8, 8, 3, padding=1)
        self.flatten, self.last = flatten, ai8x.Linear(8 * 4 * 4, 5, wide=True)

    def forward(self, x: Any) -> Any:
        x = self.second(self.pool(self.first(x)))
        return self.last(self.flatten(self.pool(x)))


class Functional(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.max_pool2d(x, 2)


def test_exact_modules_of_torch_stand_for_those_of_ai8x() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)

    def described(*parts: Any) -> str:
        model = Beside(*parts)
        assert list(foreign_modules(model)) == []
        said = {"name": "net", "arch": "net", "dataset": "data"}
        return describe(model, torch.zeros(1, 3, 16, 16), MAX78000, **said).text

    functional = described(ai8x.MaxPool2d(2, 2), lambda x: x.flatten(1))
    assert described(torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.ReLU()) == functional
    assert described(torch.nn.MaxPool2d(2, ceil_mode=True), torch.nn.Flatten()) == functional
    assert described(torch.nn.MaxPool2d(2), lambda x: x[:, :, 0:].flatten(1)) == functional
    called = described(Functional(), torch.nn.Flatten())
    assert called.replace("max_pool2d_1", "pool") == functional
    for pool in (torch.nn.MaxPool2d(3, 2, padding=1), torch.nn.MaxPool2d(3, 2, ceil_mode=True)):
        with pytest.raises(InputError, match="pool.*MaxPool2d"):
            described(pool, torch.nn.Flatten())


def test_modules_that_compute_something_are_named() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    used = Beside(torch.nn.Sequential(torch.nn.ReLU(), ai8x.MaxPool2d(2, 2)), torch.nn.Flatten())
    assert list(foreign_modules(used)) == [("pool.0", "ReLU")]
    with_weights = Beside(ai8x.MaxPool2d(2, 2), torch.nn.Flatten(), torch.nn.Linear(2, 2))
    assert list(foreign_modules(with_weights)) == [("unused.0", "Linear")]


RECTIFIED = """
import ai8x
import torch
from torch import nn


class Rectified(nn.Module):
    def __init__(self, bias=True, num_classes=5, **kwargs):
        super().__init__()
        self.first = ai8x.FusedConv2dReLU(3, 8, 3, padding=1, bias=bias, **kwargs)
        self.second = ai8x.Conv2d(8, 8, 3, padding=1, bias=bias, **kwargs)
        self.plus, self.relu = ai8x.Add(), nn.ReLU(inplace=True)
        self.third = ai8x.MaxPool2d(2, 2)
        self.last = ai8x.Linear(8 * 2 * 2, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x):
        x = self.first(x)
        x = torch.relu(self.plus(self.second(x), x))
        x = self.relu(self.plus(self.second(x), x))
        return self.last(self.third(x).flatten(1))
"""


@torch.no_grad()
def test_sums_without_limits_are_layers_if_their_weights_are_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        RECTIFIED.replace("Rectified", "Summed")
        .replace("torch.relu(self.plus(self.second(x), x))", "self.second(x) + x")
        .replace("self.relu(self.plus(self.second(x), x))", "torch.relu(x - self.first(inputs))")
    )
    text = text.replace("x = self.first(x)", "inputs, x = x, self.first(x)")
    text = text.replace("self.third =", "self.spare, self.third = ai8x.Linear(2, 2, **kwargs),")
    Path("net.py").write_text(text)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    torch.manual_seed(1)
    source: Any = own_model("net.py:Summed", 2).make().eval()
    source.first.op.weight.mul_(5)
    torch.save({"state_dict": source.state_dict(), "arch": "summed", "epoch": 0}, "net.pth")
    random = np.random.default_rng(0)
    noise = random.integers(0, 256, (64, 3, 4, 4)).astype(np.uint8)
    np.savez("x.npz", x=noise, y=np.arange(64) % 5)
    sample = random.integers(-128, 128, (3, 4, 4))
    np.save("sample.npy", sample)
    x = torch.from_numpy(sample / 128).float()[None]
    first = source.first(x)
    assert first.amax() == 127 / 128 and (source.second(first) + first).abs().amax() > 1.5
    words = ["net.pth", "q.pth.tar", "--device", "MAX78000", "--model", "net.py:Summed"]
    to_generate = [
        "ai8xize.py", "--model", "net.py:Summed", "--checkpoint-file", "q.pth.tar", "--device",
        "MAX78000", "--sample-input", "sample.npy", "--test-dir", "out", "--prefix", "p",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["quantize.py", *words])
    assert quantize.main() == 0
    monkeypatch.setattr(sys, "argv", to_generate)
    assert run(ai8xize.main) == 1 and not Path("out").exists()
    assert "Quantize it with --model and --calibrate" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["quantize.py", *words, "--calibrate", "npz:x.npz"])
    assert quantize.main() == 0, capsys.readouterr().err
    assert "does not call the layer of spare.op.weight" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", to_generate)
    assert ai8xize.main() == 0, capsys.readouterr().err
    results = [layer.values for layer in read_answer(Path("out/p/answer.npz")).layers][-1]
    assert np.corrcoef(results.ravel(), source(x)[0])[0, 1] > 0.995


@pytest.mark.parametrize(
    ("formula", "works"),
    [
        ("self.first(x) + self.second(x)", True),
        ("2 * (self.first(x) + self.second(x))", False),
        ("-(self.first(x) + self.second(x))", False),
        ("self.first(x) * self.factor + self.second(x)", False),
        ("self.first(x * self.first.factor) + self.second(x)", False),
    ],
)
def test_what_an_import_would_fold_into_weights_that_are_loaded_later_is_not_completed(
    formula: str, works: bool, tmp_path: Path
) -> None:
    found = re.search(r"self\.(first\.)?factor", formula)
    factor = f"{found[0]} = torch.nn.Parameter(torch.ones(1))" if found else ""
    (tmp_path / "net.py").write_text(f"""
import torch, ai8x

class Net(torch.nn.Module):
    def __init__(self, num_classes=2, num_channels=2, dimensions=(2, 2), bias=False, **kwargs):
        super().__init__()
        self.first, self.second, self.third = (ai8x.Conv2d(2, 2, 1, **kwargs) for _ in range(3))
        {factor}

    def forward(self, x):
        return self.third({formula})
""")
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    entry = completed(own_model(f"{tmp_path / 'net.py'}:Net", 2), "net")
    assert is_completed(entry.make(num_channels=2, dimensions=(2, 2))) is works


def test_relu_behind_layers_is_a_layer_that_checkpoints_may_lack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(RECTIFIED)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    torch.manual_seed(1)
    plain = own_model("net.py:Rectified", 2).make().eval()
    torch.save({"state_dict": plain.state_dict(), "arch": "rectified", "epoch": 0}, "net.pth")
    x = torch.rand(4, 3, 4, 4) * 2 - 1
    wanted, names = plain(x), set(plain.state_dict())
    made = with_rectifiers(plain, x[:1], {})
    assert torch.allclose(made(x), wanted, atol=1e-5) and not list(foreign_modules(made))
    added = set(constant_tensors(made))
    assert {name.split(".")[0] for name in added} == {"relu_layer", "relu_1_layer"}
    assert set(made.state_dict()) - names == added
    noise = np.random.default_rng(0).integers(0, 256, (64, 3, 4, 4)).astype(np.uint8)
    np.savez("x.npz", x=noise, y=np.arange(64) % 5)
    words = ["net.pth", "q.pth.tar", "--device", "MAX78000", "--model", "net.py:Rectified"]
    monkeypatch.setattr(sys, "argv", ["quantize.py", *words, "--calibrate", "npz:x.npz"])
    assert quantize.main() == 0, capsys.readouterr().err
    state = read_checkpoint("q.pth.tar").state_dict
    assert set(state) == names | added
    assert set(np.unique(state["relu_layer.op.weight"])) == {0, 64}
    assert state["relu_layer.output_shift"] == 1
