"""What an import loses is told, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.commands.quantize.agreement import correlation, tell_agreement
from ai8xtools.frontends.modules.plain.network import import_network
from ai8xtools.frontends.modules.plain.ranges import fit_ranges
from ai8xtools.quantization.calibration import DATA_STEPS, calibrate


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class Heads(nn.Module):
    """The results of its heads have other sizes and opposite signs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 1)
        self.small, self.large = nn.Linear(32, 5), nn.Linear(32, 3)
        with torch.no_grad():
            self.large.weight *= -30

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.second(torch.relu(self.first(x)))).flatten(1)
        return self.small(x), self.large(x)


def networks_of(model: nn.Module) -> tuple[nn.Module, Any, list[Tensor]]:
    samples = [torch.rand(10, 3, 4, 4) * 2 - 1 for _ in range(3)]
    networks = []
    for simulate in (False, True):
        ai8x.set_device(85, simulate, False, verbose=False)
        networks.append(import_network(model, samples[0][:1], "net", {}).network)
    trained, simulated = networks
    fit_ranges(trained, samples)
    samples = [(batch * DATA_STEPS).floor() / DATA_STEPS for batch in samples]
    layers = ("first", "second", "small", "large")
    calibrate(trained, simulated, samples, dict.fromkeys(layers, 8))
    return trained, simulated, samples


def test_the_smallest_correlation_of_all_outputs_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(2)
    model = Heads().eval()
    trained, simulated, samples = networks_of(model)
    with torch.no_grad():
        simulated.large.op.weight[0] = 0  # pretend that integers lose one of three results
        expected = [torch.cat(part).numpy() for part in zip(*map(model, samples), strict=True)]
        outputs = [simulated(batch * DATA_STEPS) for batch in samples]
    results = [torch.cat(part).numpy() for part in zip(*outputs, strict=True)]
    each = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(expected, results, strict=True)]
    assert each[1] < 0.97 < each[0]
    assert correlation(trained, simulated, samples) == pytest.approx(each[1], abs=1e-4)
    tell_agreement(trained, simulated, samples, "net.pth")
    told = capsys.readouterr()
    assert f"on 30 calibration samples: {each[1]:.4f}" in told.out
    assert "large costs most" in re.sub(r"\s+", " ", told.err) and "[W759]" in told.err


def test_nobody_is_warned_of_integers_that_agree(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(2)
    tell_agreement(*networks_of(Heads().eval()), "net.pth")
    told = capsys.readouterr()
    assert "calibration samples: 0.99" in told.out and not told.err


def test_results_that_never_change_do_not_count() -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor) -> list[Tensor]:
            return [x, torch.zeros(len(x), 2)]

    assert correlation(Constant(), Constant(), [torch.rand(4, 3)]) == pytest.approx(1)
