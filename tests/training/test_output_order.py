"""Where the outputs of a network come from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.training.network.output_order import output_order
from models.sized import SizedBoxes


class Net(nn.Module):
    """Two layers of which one is behind the other, and what `end` makes of them."""

    def __init__(self, end: Any) -> None:
        super().__init__()
        self.part = nn.Sequential(ai8x.FusedConv2dReLU(1, 2, 3, padding=1))
        self.last = nn.Conv2d(2, 3, 1)
        self.end = end

    def forward(self, x: Tensor) -> Any:
        """Return what is made of both."""
        first = self.part(x)
        return self.end(first, self.last(first))


@pytest.fixture(autouse=True)
def chip() -> None:
    ai8x.set_device(85, False, False, verbose=False)


@pytest.mark.parametrize(
    ("end", "layers"),
    [
        (lambda _, b: b, ("last",)),
        (lambda a, b: (b, a), ("part.0", "last")),
        (lambda _, b: b.permute(0, 2, 3, 1).flatten(1), ("last",)),
        (lambda a, b: torch.cat([b, a], 1)[:, 1:4], ("part.0", "last")),
    ],
)
def test_moved_values_are_found(end: Any, layers: tuple[str, ...]) -> None:
    net, x = Net(end).eval(), torch.rand(1, 1, 4, 5)
    found = output_order(net, x)
    assert found is not None and found.layers == layers
    values = {"part.0": net.part(x), "last": net.last(net.part(x))}
    flat = torch.cat([values[name].flatten() for name in layers])
    outputs = net(x)
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    assert torch.equal(flat[found.order], torch.cat([part.flatten() for part in parts]))


@pytest.mark.parametrize("end", [lambda _, b: b * 2 + 0.5, lambda _, b: b.softmax(1)])
def test_what_is_computed_behind_the_last_layer_is_not_found(end: Any) -> None:
    assert output_order(Net(end), torch.rand(1, 1, 4, 5)) is None


def test_detectors_deliver_locations_and_scores_of_all_boxes() -> None:
    net = SizedBoxes(8, 3, 3, (24, 32))
    found = output_order(net, torch.zeros(1, 3, 24, 32))
    assert found is not None and len(found.layers) == 6
    assert len(found.order) == len(found.order.unique()) == len(net.priors_cxcy) * (4 + 3)
