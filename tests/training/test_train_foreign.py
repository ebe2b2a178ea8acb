"""Networks that are not made of ai8x layers are named where they would be quantized."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ai8xtools.checkpoint import read_checkpoint

PLAIN = """
from torch import nn
import ai8x

class Mixed(nn.Module):
    def __init__(self, num_classes=2, **kwargs):
        super().__init__()
        self.features = nn.Sequential(ai8x.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 1), nn.ReLU())
        self.drop = nn.Dropout(0.1)
        self.fc = ai8x.Linear(4 * 36, num_classes)

    def forward(self, x):
        return self.fc(self.drop(self.features(x)).flatten(1))

def mixed(pretrained=False, **kwargs):
    return Mixed(**kwargs)

models = [{"name": "mixed", "min_input": 1, "dim": 2}]
"""


def test_training_with_quantization_names_foreign_modules(tiny: Callable[..., Any]) -> None:
    Path("models/mixed.py").write_text(PLAIN)
    Path("policy.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    done = tiny("mixed", "tinyclasses", "--qat-policy", "policy.yaml")
    assert done.status == 1
    assert (
        "cannot be quantized in training: features.1 (Conv2d), features.2 (ReLU) [E675]"
        in done.error
    )
    assert "--model FILE:CLASS --import" in done.error
    assert not Path("logs").exists()
    done = tiny("mixed", "tinyclasses", "-e", "-8")
    assert "option -8: error: modules that are no layers of ai8x cannot compute" in done.error


ORDINARY = """
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, num_classes)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).relu().cumsum(2).mean((2, 3)))

class Good(Net):
    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).relu().mean((2, 3)))
"""


def test_an_ordinary_network_is_imported_and_trained(tiny: Callable[..., Any]) -> None:
    Path("net.py").write_text(ORDINARY)
    Path("policy.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    given = ("tinyclasses", "--qat-policy", "policy.yaml", "--epochs", "2")
    done = tiny("net.py:Good", *given)
    assert "cannot be quantized in training: conv (Conv2d), bn (BatchNorm2d), fc (Linear)" in (
        done.error
    )
    done = tiny("net.py:Net", *given, "--import")
    assert (
        done.status == 1
        and "cumsum: the accelerator has no cumsum (net.py:12) [E670]" in done.error
    )
    done = tiny("net.py:Good", *given, "--import")
    assert done.status == 0, done.error
    found = read_checkpoint(done.folder / "qat_checkpoint.pth.tar")
    assert found.arch == "good"
    assert {"conv.op.weight", "fc.op.bias"} < set(found.state_dict)
    again = tiny(
        "net.py:Good", *given, "--import", "-e", "--exp-load-weights-from",
        str(done.folder / "qat_checkpoint.pth.tar"),
    )  # fmt: skip
    assert again.status == 0, again.error


def test_weights_of_an_ordinary_network_are_scaled(tiny: Callable[..., Any]) -> None:
    """Results beyond 1 would be limited; in 8 bits fractions would be rounded to 0."""
    Path("net.py").write_text(ORDINARY)
    torch.manual_seed(3)
    namespace: dict[str, Any] = {}
    exec(ORDINARY, namespace)
    network = namespace["Good"](4)
    with torch.no_grad():
        network.conv.weight.mul_(30)
        network.bn.weight.mul_(50)
        network.fc.weight.div_(50)
    torch.save(network.state_dict(), "float.pth")
    given = ("net.py:Good", "tinyclasses", "--import", "--exp-load-weights-from", "float.pth", "-e")
    done = tiny(*given)
    assert done.status == 0, done.error
    (line,) = [x for x in done.output.splitlines() if "are scaled to the range of the chip" in x]
    assert "conv x0.0" in line
    done = tiny(*given, "-8")
    assert done.status == 1
    assert "holds fractions, but -8 computes with quantized weights [E608]" in done.error
