"""Networks that are not made of ai8x layers are named where they would be quantized."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
