"""What an architecture search knows of the chip: costs of networks, and model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

import ai8x
from ai8xtools.checkpoint import atomic
from ai8xtools.commands.fits import of_model
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.frontends.modules.networks import describe, stand_in
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.fits import ChipFit, judge
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.training.search.choice import CLASS
from ai8xtools.training.search.evolution import ChipUse
from ai8xtools.writing.templates import render
from device import Chip, chip_of_die

_PROJECT = ProjectOptions(name="network", folder="network", command_line="", tool_version="")


class ChipDeployment:
    """Judges networks on a chip as `--fits` does; AI84 cannot run an elastic network at all."""

    def __init__(self, die: int) -> None:
        chip = chip_of_die(die)
        assert chip is not None
        self._chip: Chip = chip

    def cost(self, network: Any, example: Tensor) -> ChipUse:
        """Return what a network takes of the chip; its batch normalization is fused."""
        layers = (m for m in network.modules() if isinstance(m, ai8x.QuantizationAwareModule))
        weights = sum(layer.op.weight.numel() for layer in layers)
        try:
            description = describe(network, example, self._chip, name="network", arch="network",
                                   dataset="none")  # fmt: skip
            source, resolving = of_model(description, stand_in(network, {}))
        except ToolError as exc:
            return ChipUse(weights, refusal=exc.message)
        return _cost(weights, judge(source, self._chip, resolving, EncodeOptions(), _PROJECT))

    def write_model(self, path: Path, network: Any, about: str) -> None:
        """Write a network as a model file."""
        layers = [
            {
                "name": layer.name, "kind": _kind(network, layer.pool), "kernel": layer.kernel,
                "in_channels": layer.in_channels, "out_channels": layer.out_channels,
                "padding": layer.kernel // 2, "pool": layer.pool,
            }
            for layer in network.layers
        ]  # fmt: skip
        text = render(
            "python/nas_network.py.j2", about=about, class_name=CLASS, layers=layers,
            classes=network.fc.op.out_features, features=network.fc.op.in_features,
            bias=network.bias, axes=network.axes,
        )  # fmt: skip
        atomic.write_bytes(path, text.encode())


def _kind(network: Any, pool: int) -> str:
    """Return the name of a layer of ai8x."""
    pooling = "MaxPool" if pool > 1 else ""
    return f"Fused{pooling}Conv{network.axes}d{'BN' if network.bn else ''}ReLU"


def _cost(weights: int, fit: ChipFit) -> ChipUse:
    if not fit.fits or fit.memories is None:
        return ChipUse(weights, refusal=fit.reasons[0] if fit.reasons else "it does not fit")
    columns, data = fit.memories["kernel columns"].used, fit.memories["data"].used
    return ChipUse(weights, fit.cycles, columns, data)
