"""Networks with random weights, brought to the state that training and quantization leave behind.

Nothing is trained: the weights of each layer are scaled so that what it computes for random images
spreads over the range of the activations, which makes every layer matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.quantization import QuantizationOptions, quantize_checkpoint
from ai8xtools.training.catalog.discovery import find_models

WIDTHS = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}
Run = Callable[[nn.Module, Tensor], Any]
SPREAD = 0.4  # standard deviation of a layer's results, as a part of the range of activations


@dataclass(frozen=True)
class Case:
    """A network of models/: its keywords, the shape of one input, its chip."""

    name: str
    shape: tuple[int, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    die: int = 85

    def make(self, simulate: bool = False, **more: Any) -> nn.Module:
        """Return the network as its constructor leaves it, on the case's chip."""
        ai8x.set_device(self.die, simulate, round_avg=False, verbose=False)
        found: nn.Module = _models()[self.name].make(**self.keywords, **more)
        return found

    def integers(self, batch: int = 1, seed: int = 1) -> Tensor:
        """Return random inputs of -128 to 127."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(-128, 128, (batch, *self.shape), generator=generator).float()


@functools.cache
def _models() -> Any:
    return find_models()


@torch.no_grad()
def qat_network(case: Case, run: Run = nn.Module.__call__, **policy: Any) -> nn.Module:
    """Return a network in quantization-aware training, in evaluation mode.

    `run` computes all layers for a random input. Batch normalization has random statistics and is
    fused; keywords go into the QAT policy.
    """
    torch.manual_seed(0)
    model = case.make().eval()
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            _disturb(module)
    ai8x.fuse_bn_layers(model)
    assert not any(".bn." in name for name in model.state_dict())
    ai8x.initiate_qat(model, {"weight_bits": 8, **policy})
    handles = [m.register_forward_pre_hook(_spread) for m in _convolutions(model)]
    run(model, case.integers(seed=100) / 128)
    for handle in handles:
        handle.remove()
    return model


def _disturb(bn: nn.Module) -> None:
    """Give a normalization statistics and factors other than those of the beginning."""
    bn.running_mean.normal_(0, 0.1)
    bn.running_var.uniform_(0.5, 2)
    if bn.weight is not None:
        bn.weight.uniform_(0.5, 1.5)
        bn.bias.normal_(0, 0.1)


def _convolutions(model: nn.Module) -> list[Any]:
    """Return the layers with weights."""
    layers = (m for m in model.modules() if isinstance(m, ai8x.QuantizationAwareModule))
    return [layer for layer in layers if layer.op is not None]


def _spread(layer: Any, inputs: tuple[Tensor]) -> None:
    """Scale the weights of a layer when the data of a forward pass reaches it."""
    data = inputs[0] if layer.pool is None else layer.pool(inputs[0])
    if layer.op.bias is not None:
        layer.op.bias.zero_()
    layer.op.weight.mul_(SPREAD / layer.op(data).square().mean().sqrt())
    if layer.op.bias is not None:
        layer.op.bias.uniform_(-0.1, 0.1)


def quantized(model: nn.Module, arch: str) -> Checkpoint:
    """Return the checkpoint that quantize.py makes of a network in training."""
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    entries = {"epoch": 1, "state_dict": state, "arch": arch, "extras": {"best_top1": 0.0}}
    return quantize_checkpoint(Checkpoint(entries), QuantizationOptions()).checkpoint


def simulated(case: Case, checkpoint: Checkpoint) -> nn.Module:
    """Return the network with the integers of a quantized checkpoint, in 8-bit simulation."""
    model = case.make(simulate=True, **WIDTHS).eval()
    ai8x.fuse_bn_layers(model)
    tensors = {n: torch.from_numpy(a.copy()) for n, a in checkpoint.state_dict.items()}
    model.load_state_dict(tensors)
    ai8x.update_model(model)
    return model
