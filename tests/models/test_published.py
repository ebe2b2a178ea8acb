"""Networks of the published checkpoints have their parameters and their arithmetic."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.training.saving import checkpoints
from tests.models.cases import BIAS
from tests.models.random_weights import WIDTHS, Case

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


# Checkpoints of the known answers: weights and biases of networks that have no published training
KNOWN: dict[str, Case] = {
    "ai85-camvid-unet-large-fakept-q": Case("ai85unetlarge", (48, 88, 88)),
    "ai85-cifar10-qat8-q": Case("ai85nascifarnet", (3, 32, 32), BIAS),
    "ai85-facedet-tinierssd-qat8-q": Case("ai85tinierssdface", (3, 224, 168)),
    "ai85-svhn-tinierssd-qat8-q": Case("ai85tinierssd", (3, 74, 74), {"num_classes": 11}),
    "ai85actiontcn-q": Case("ai85actiontcn", (15, 96, 60, 60)),
    "ai85kws20netv2-q": Case("ai85kws20netv2", (128, 128)),
    "ai87netmobilefacenet_112-q": Case("ai87netmobilefacenet_112", (3, 112, 112), BIAS, die=87),
    "ai85faceidnet-q": Case("ai85faceidnet", (3, 160, 120)),
    "ai85nascifarnet-q": Case("ai85nascifarnet", (3, 32, 32), {"num_classes": 100, **BIAS}),
    "ai85ressimplenet-q": Case("ai85ressimplenet", (3, 32, 32)),
    "ai85simplenet-q": Case("ai85simplenet", (3, 32, 32), BIAS),
    "ai85simplenetwide2x-q": Case("ai85simplenetwide2x", (3, 32, 32), BIAS),
    "ai87effnetv2-q": Case("ai87effnetv2", (3, 32, 32), BIAS, die=87),
    "ai87imageneteffnetv2-q": Case("ai87imageneteffnetv2", (3, 112, 112), BIAS, die=87),
    **{
        f"ai87netmobilenetv2cifar100_{width}-q": Case(
            f"ai87netmobilenetv2cifar100_{width}", (3, 32, 32), BIAS, die=87
        )
        for width in ("m0_5", "m0_75")
    },
}


def parameters(state: Mapping[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of weights and biases in their order."""
    return [
        (name.removeprefix("module."), tuple(value.shape))
        for name, value in state.items()
        if name.endswith((".op.weight", ".op.bias"))
    ]


@pytest.mark.parametrize("name", KNOWN)
def test_weights_have_names_shapes_and_order_of_the_known_answers(
    shared: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / f"{name}.pth.tar"
    file.write_bytes(lzma.decompress((shared / "kat/data" / f"{name}.pth.tar.xz").read_bytes()))
    model = KNOWN[name].make()
    ai8x.fuse_bn_layers(model)
    # one file holds a pass-through layer as weights
    wanted = [p for p in parameters(read_checkpoint(file).state_dict) if not p[0].startswith("pt.")]
    assert parameters(model.state_dict()) == wanted


def test_expansion_has_the_weights_of_the_old_file(shared: Path) -> None:
    file = shared / "checkpoints/legacy/test-mnist-80expansion-q4.pth.tar"
    old = read_checkpoint(file).state_dict
    names = [n.replace(".conv2d.", ".op.").replace(".linear.", ".op.") for n in old]
    wanted = [(name, array.shape) for name, array in zip(names, old.values(), strict=True)]
    model = Case("ai85net80expansion", (1, 28, 28), {"num_channels": 1}).make()
    assert parameters(model.state_dict()) == wanted


def test_fire_network_has_the_weights_of_the_old_file(shared: Path) -> None:
    old = read_checkpoint(shared / "checkpoints/legacy/test-firetestnet-cifar10.pth.tar").state_dict
    names = [n.replace(".conv2d.", ".op.").replace(".linear.", ".op.") for n in old]
    wanted = [(name, array.shape) for name, array in zip(names, old.values(), strict=True)]
    assert parameters(Case("ai85firetestnet", (3, 32, 32)).make().state_dict()) == wanted
