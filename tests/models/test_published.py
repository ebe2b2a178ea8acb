"""Networks of the published checkpoints have their parameters and their arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ai8x
from tests.models.random_weights import WIDTHS, Case
from training import checkpoints

# The two networks for MNIST are in test_networks.py.
FILES: dict[str, tuple[Case, int]] = {
    "ai85-autoencoder-samplemotordatalimerick-qat": (Case("ai85autoencoder", (256, 3)), 128),
    "ai85-bayer2rgb-qat8": (Case("bayer2rgbnet", (4, 64, 64)), 128),
    "ai85-catsdogs-qat8": (Case("ai85cdnet", (3, 128, 128)), 16384),
    "ai85-kws20_v3-qat8": (Case("ai85kws20netv3", (128, 128)), 16384),
    "ai87-kws20_v3-qat8": (Case("ai87kws20netv3", (128, 128), die=87), 16384),
}


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def loaded(path: Path, case: Case, simulate: bool) -> nn.Module:
    """Return the network with the tensors of a file, in evaluation mode."""
    model = case.make(simulate, **(WIDTHS if simulate else {}))
    surplus = checkpoints.load_into(model, checkpoints.read(str(path)))
    # one file holds biases that nothing was trained with
    assert all(name.endswith(".op.bias") for name in surplus)
    assert not surplus or case.name == "ai85kws20netv3"
    return model.eval()


@pytest.mark.parametrize("name", FILES)
def test_keys_have_names_shapes_and_order_of_the_published_file(shared: Path, name: str) -> None:
    model = FILES[name][0].make()
    ai8x.fuse_bn_layers(model)
    own = model.state_dict()
    state: dict[str, Any] = checkpoints.read(str(shared / "checkpoints" / f"{name}.pth.tar")).state
    known = {key: tensor for key, tensor in state.items() if key in own}
    assert list(known) == list(own)
    assert [v.shape for v in known.values()] == [v.shape for v in own.values()]
    assert all(key.endswith(".op.bias") for key in set(state) - set(own))


@torch.no_grad()
@pytest.mark.parametrize("name", FILES)
def test_qat_network_equals_its_quantized_twin_exactly(shared: Path, name: str) -> None:
    case, scale = FILES[name]
    x = case.integers(2)
    result = loaded(shared / "checkpoints" / f"{name}.pth.tar", case, simulate=False)(x / 128)
    twin = loaded(shared / "checkpoints" / f"{name}-q.pth.tar", case, simulate=True)
    assert torch.equal(result * scale, twin(x))
