"""The descriptions in networks/, each with its model, the options it needs, and a sample."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ai8xtools.checkpoint import write_checkpoint
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from device import CHIPS, Chip
from tests.conftest import ROOT
from tests.models.random_weights import Case, Run, qat_network, quantized, simulated

NETWORKS = ROOT / "networks"
STEPS = 15  # entries of the buffer of the network for actions


def with_history(model: Any, frame: Tensor, history: Tensor) -> Tensor:
    """Run the network for actions on one frame behind `history`, [N, 32, STEPS - 1]."""
    features = model.frame_features(frame)[..., None]
    found: Tensor = model.classify(torch.cat((history, features), dim=2))
    return found


def with_empty_history(model: nn.Module, frame: Tensor) -> Tensor:
    """Run it as after start-up."""
    return with_history(model, frame, torch.zeros(len(frame), 32, STEPS - 1))


def with_random_history(model: nn.Module, frame: Tensor) -> Tensor:
    """Run it on numbers that may be of frames."""
    return with_history(model, frame, torch.rand(len(frame), 32, STEPS - 1))


def outputs_of(*names: str) -> Run:
    """Return a way to run a network that gives what its layers `names` compute, all in a row.

    For networks behind whose last layers on the chip firmware goes on.
    """

    def run(model: nn.Module, frame: Tensor) -> Tensor:
        found: dict[str, Tensor] = {}
        handles = [
            model.get_submodule(name).register_forward_hook(
                lambda _layer, _inputs, output, name=name: found.update({name: output.flatten()})
            )
            for name in names
        ]
        model(frame)
        for handle in handles:
            handle.remove()
        return torch.cat([found[name] for name in names])

    return run


@dataclass(frozen=True)
class Deployed:
    """A description: its file, the model it belongs to, and options of the loader it needs.

    `run` computes what one inference gives, `run_all` exercises the layers with lively data.
    `policy` are keywords of the QAT policy. `in_place` are layers that overwrite what they have
    read.
    """

    file: str
    case: Case
    fifo: bool = False
    encoding: EncodeOptions = field(default_factory=EncodeOptions)
    run: Run = nn.Module.__call__
    run_all: Run = nn.Module.__call__
    policy: dict[str, Any] = field(default_factory=dict)
    in_place: tuple[int, ...] = ()

    @property
    def chip(self) -> Chip:
        return next(chip for chip in CHIPS if chip.die == self.case.die)

    @property
    def path(self) -> str:
        return str(NETWORKS / f"{self.file}.yaml")

    def integers(self) -> NDArray[np.int64]:
        """Return a random sample."""
        return self.case.integers(seed=5)[0].numpy().astype(np.int64)

    def resolving(self, folder: Path, checkpoint: str) -> ResolveOptions:
        """Return the options that name the sample and the checkpoint."""
        sample = folder / "sample.npy"
        np.save(sample, self.integers())
        port = InputPort.FIFO if self.fifo else InputPort.MEMORY
        return ResolveOptions(str(sample), checkpoint_file=checkpoint, input_port=port)

    def synthesized(self, folder: Path, checkpoint: str) -> Synthesis:
        """Run the loader."""
        return synthesize(self.path, self.chip, self.resolving(folder, checkpoint), self.encoding)

    def output(self, model: nn.Module) -> NDArray[np.int64]:
        """Return what the model in 8-bit simulation computes for the sample, all in a row."""
        with torch.no_grad():
            found = self.run(model, torch.from_numpy(self.integers()).float()[None])
        return found.numpy().astype(np.int64).ravel()


def with_random_weights(deployed: Deployed, folder: Path) -> tuple[str, nn.Module]:
    """Return a quantized checkpoint of random weights, and the network that simulates it."""
    case, path = deployed.case, folder / "random-q.pth.tar"
    checkpoint = quantized(qat_network(case, deployed.run_all, **deployed.policy), case.name)
    write_checkpoint(path, checkpoint)
    return str(path), simulated(case, checkpoint)


_CIFAR = (3, 32, 32)
_BIAS = {"bias": True}
_OVERLAPPING = EncodeOptions(PlaceOptions(overlap_data=True), zero_sram=True)
_NARROW = {
    "weight_bits": 4,
    "overrides": {"conv1": {"weight_bits": 8}, "conv14": {"weight_bits": 8}},
}
_MIXED = {
    "weight_bits": 4,
    "overrides": {
        "conv1": {"weight_bits": 8},
        "conv2": {"weight_bits": 2},
        "fc": {"weight_bits": 8},
    },
}


def _predictors(*maps: str) -> Run:
    """Return a way to run a detector that gives its maps, first all locations, then all scores."""
    return outputs_of(*(f"pred_convs.{kind}_{name}" for kind in ("loc", "cl") for name in maps))


DEPLOYED: tuple[Deployed, ...] = (
    Deployed("digits-chw-ai85", Case("ai85digitsnet", (1, 8, 8))),
    Deployed("mnist-chw-ai85", Case("ai85net5", (1, 28, 28), {"num_channels": 1})),
    Deployed(
        "mnist-mixed-chw-ai85",
        Case("ai85net5", (1, 28, 28), {"num_channels": 1}),
        policy=_MIXED,
    ),
    Deployed(
        "mnist-extrasmall-chw-ai85",
        Case("ai85netextrasmall", (1, 28, 28), {"num_channels": 1}),
    ),
    Deployed("cifar10-hwc-ai85", Case("ai85net5", _CIFAR, {"dimensions": (32, 32)})),
    Deployed("cifar10-nas-hwc-ai85", Case("ai85nascifarnet", _CIFAR, {"bias": True})),
    Deployed(
        "cifar100-nas-hwc-ai85",
        Case("ai85nascifarnet", _CIFAR, {"bias": True, "num_classes": 100}),
    ),
    Deployed("cifar100-simple-hwc-ai85", Case("ai85simplenet", _CIFAR, {"bias": True})),
    Deployed("cifar100-residual-hwc-ai85", Case("ai85ressimplenet", _CIFAR)),
    Deployed("kws20-v3-ai85", Case("ai85kws20netv3", (128, 128))),
    Deployed("catsdogs-hwc-ai85", Case("ai85cdnet", (3, 128, 128)), fifo=True),
    Deployed("faceid-hwc-ai85", Case("ai85faceidnet", (3, 160, 120)), fifo=True),
    Deployed("autoencoder-ai85", Case("ai85autoencoder", (256, 3))),
    Deployed("firetest-cifar10-hwc-ai85", Case("ai85firetestnet", _CIFAR)),
    Deployed(
        "actiontcn-ai85",
        Case("ai85actiontcn", (96, 60, 60)),
        encoding=_OVERLAPPING,
        run=with_empty_history,
        run_all=with_random_history,
        in_place=(0, 13),
    ),
    Deployed("mnist-hwc-ai85", Case("ai85net5", (1, 28, 28), {"num_channels": 1})),
    Deployed("kws20-v1-ai85", Case("ai85kws20net", (128, 128))),
    Deployed("kws20-nas-ai85", Case("ai85kws20netnas", (128, 128))),
    Deployed("kws20-v3-ai87", Case("ai87kws20netv3", (128, 128), die=87)),
    Deployed("bayer2rgb-hwc-ai85", Case("bayer2rgbnet", (4, 45, 45))),
    Deployed(
        "svhn-tinierssd-hwc-ai85",
        Case("ai85tinierssd", (3, 74, 74), {"num_classes": 11}),
        run=_predictors("fire8", "fire9", "fire10", "conv12_2"),
    ),
    Deployed(
        "facedet-tinierssd-hwc-ai85",
        Case("ai85tinierssdface", (3, 224, 168)),
        fifo=True,
        run=_predictors("fire9", "conv12_2"),
    ),
    Deployed(
        "camvid-unet-hwc-ai85",
        Case("ai85unetlarge", (48, 88, 88)),
        encoding=EncodeOptions(PlaceOptions(overlap_data=True)),
        in_place=(0, 1, 2, 14, 15, 16, 17, 18),
    ),
    Deployed(
        "cifar100-simplewide2x-hwc-ai85",
        Case("ai85simplenetwide2x", _CIFAR, _BIAS),
        policy=_NARROW,
    ),
    Deployed(
        "faceid112-hwc-ai87",
        Case("ai85faceidnet_112", (3, 112, 112), _BIAS, die=87),
        run=outputs_of("linear"),
    ),
    Deployed(
        "cifar100-mobilenetv2-m0_5-hwc-ai87",
        Case("ai87netmobilenetv2cifar100_m0_5", _CIFAR, _BIAS, die=87),
    ),
    Deployed(
        "cifar100-mobilenetv2-m0_75-hwc-ai87",
        Case("ai87netmobilenetv2cifar100_m0_75", _CIFAR, _BIAS, die=87),
    ),
    Deployed("cifar100-effnetv2-hwc-ai87", Case("ai87effnetv2", _CIFAR, _BIAS, die=87)),
    Deployed(
        "imagenet-effnetv2-hwc-ai87",
        Case("ai87imageneteffnetv2", (3, 112, 112), _BIAS, die=87),
    ),
)
BY_FILE = {deployed.file: deployed for deployed in DEPLOYED}


def with_weights_at_random(name: str) -> Synthesis:
    """Return a network of networks/ with random weights, and its words."""
    with tempfile.TemporaryDirectory() as folder:
        deployed = BY_FILE[name]
        checkpoint, _ = with_random_weights(deployed, Path(folder))
        return deployed.synthesized(Path(folder), checkpoint)
