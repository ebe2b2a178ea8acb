"""The networks have the parameters of their published checkpoints and compute the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ai8x
from ai8xtools.training.saving import checkpoints
from datasets.idx import read_idx
from models.ai85digitsnet import ai85digitsnet
from models.ai85net import ai85net5, ai85netextrasmall

NETWORKS = {"ai85-mnist-qat8": ai85net5, "ai85-mnist-extrasmall-qat8": ai85netextrasmall}
WIDTHS = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}


def _network(checkpoint: Path, simulate: bool, round_avg: bool = False) -> torch.nn.Module:
    """Return the network of a checkpoint file with its weights, in evaluation mode."""
    ai8x.set_device(85, simulate, round_avg, verbose=False)
    make = NETWORKS[checkpoint.name.split("--")[0].split("-q.")[0].removesuffix(".pth.tar")]
    model = make(num_channels=1, **(WIDTHS if simulate else {}))
    checkpoints.load_into(model, checkpoints.read(str(checkpoint)))
    return model.eval()


def _trained(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize(
    ("make", "keywords", "count"),
    [
        (ai85net5, {"num_channels": 1}, 71158),
        (ai85net5, {"num_channels": 3, "dimensions": (32, 32)}, 72238),
        (ai85netextrasmall, {"num_channels": 1}, 2514),
        (ai85digitsnet, {}, 23594),
    ],
)
def test_number_of_trained_parameters(make: Any, keywords: dict[str, Any], count: int) -> None:
    ai8x.set_device(85, False, False, verbose=False)
    model = make(**keywords)
    height = keywords.get("dimensions", (28, 28) if make is not ai85digitsnet else (8, 8))
    assert _trained(model) == count
    assert model(torch.zeros(2, keywords.get("num_channels", 1), *height)).shape == (2, 10)


@pytest.mark.parametrize("name", NETWORKS)
def test_keys_have_names_shapes_and_order_of_the_published_file(shared: Path, name: str) -> None:
    path = shared / "checkpoints" / f"{name}.pth.tar"
    ai8x.set_device(85, False, False, verbose=False)
    own = NETWORKS[name](num_channels=1).state_dict()
    state = checkpoints.read(str(path)).state
    without_quantile = {k: v for k, v in own.items() if not k.endswith("shift_quantile")}
    assert list(without_quantile) == list(state)  # files of 2020 do not hold it
    assert [v.shape for v in without_quantile.values()] == [v.shape for v in state.values()]


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
def test_qat_network_equals_its_quantized_twin_exactly(shared: Path, name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(-128, 128, (32, 1, 28, 28), generator=generator).float()
    trained = _network(shared / "checkpoints" / f"{name}.pth.tar", simulate=False)
    result = trained(x / 128) * 16384
    twin = _network(shared / "checkpoints" / f"{name}-q.pth.tar", simulate=True)
    assert torch.equal(result, twin(x))


@torch.no_grad()
def test_outputs_for_mnist_images_are_bit_equal(shared: Path) -> None:
    raw = shared / "data/MNIST/raw/t10k-images-idx3-ubyte.gz"
    pixels = read_idx(raw)[:256].unsqueeze(1).float() / 255
    x = ((pixels - 0.5) * 256).round().clamp(-128, 127)
    different = []
    with np.load(shared / "checkpoints/vectors/mnist-outputs.npz", allow_pickle=False) as file:
        names = [name for name in file.files if name != "labels"]
        assert len(names) == 9
        for name in names:
            checkpoint, rounding = name.rsplit("--", 1)
            simulate = checkpoint.endswith("-q")
            path = shared / "checkpoints" / f"{checkpoint}.pth.tar"
            output = _network(path, simulate, rounding == "round")(x if simulate else x / 128)
            if not torch.equal(output, torch.from_numpy(file[name]).to(output.dtype)):
                different.append(name)
    assert different == []
