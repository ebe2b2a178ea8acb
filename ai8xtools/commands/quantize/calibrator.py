"""Calibration for quantize.py: network, samples and checkpoint in, chosen integers out."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.exits import exit_of
from ai8xtools.commands.quantize.agreement import tell_agreement
from ai8xtools.commands.quantize.arguments import CalibrationOptions, NetworkOptions
from ai8xtools.commands.quantize.samples import OPTION, data_set
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.foreign import refuse_foreign
from ai8xtools.frontends.modules.mixed import constant_tensors
from ai8xtools.frontends.modules.plain.ranges import fit_ranges
from ai8xtools.quantization import Calibration
from ai8xtools.quantization.calibration import LayerChoice, calibrate
from ai8xtools.reading import tables
from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry, find_models
from ai8xtools.training.catalog.imported import (
    completed,
    imported,
    is_completed,
    notes_of,
    uncalled,
)
from ai8xtools.training.catalog.onnx_file import is_graph
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values import frozen

_SHOWN = 6  # tensors named in a message


@frozen
class Case:
    """A network to choose integers for: as trained, in the simulation, and samples for both.

    `count` samples of `dataset` in batches, with their targets; `arch` is the name of the network,
    `constant` are tensors that the checkpoint lacks because they are always the same.
    """

    trained: nn.Module
    simulated: nn.Module
    samples: list[Tensor]
    targets: list[Any]
    dataset: str
    arch: str
    regression: bool
    constant: Mapping[str, Any]

    @property
    def count(self) -> int:
        """Return the number of samples."""
        return sum(map(len, self.samples))


def choose_integers(
    checkpoint: Checkpoint,
    bits: Mapping[str, int],
    source: NetworkOptions,
    calibration: CalibrationOptions,
) -> Calibration:
    """Return the integers of all layers, and print a table of what was chosen.

    `bits` are the widths of weights by layer.
    Raises InputError for everything that does not fit together.
    """
    case = prepare(checkpoint, source, calibration)
    choices = calibrate(case.trained, case.simulated, case.samples, bits)
    print(f"Calibrated with {case.count} samples of {case.dataset}:\n{choices_table(choices)}")
    if source.importing or is_completed(case.trained):
        tell_agreement(case.trained, case.simulated, case.samples, source.input)
    notes = {"calibration_dataset": case.dataset, "calibration_samples": case.count}
    return Calibration({c.name: c.integers for c in choices}, notes, case.constant)


def prepare(
    checkpoint: Checkpoint,
    source: NetworkOptions,
    calibration: CalibrationOptions,
    option: str = OPTION,
    dataset: DatasetEntry | None = None,
    *,
    foreign: bool = False,
) -> Case:
    """Return the network of a checkpoint and samples; InputError for what does not fit together.

    `option` is the one that names the data set, unless `dataset` is that. `foreign`: modules that
    are no layers of ai8x may be among them. A network that is completed by an import gets the
    scales of its samples; the tensors of the checkpoint become its own.
    """
    if "clipping_method" in checkpoint.extras:
        raise InputError(
            "E707",
            "the checkpoint is quantized; calibration begins with trained weights",
            source.input,
            "Name the checkpoint that training wrote.",
        )
    if dataset is None:
        weights = checkpoint.state_dict.values()
        path = None if is_graph(source.input) else source.input
        dataset = data_set(calibration.dataset, weights, path, option, settings=calibration.own)
    name = source.model or plain_name(checkpoint.arch or "")
    model = named_model(name, find_models, dataset.input)
    if source.importing:
        model = imported(model, name, None, None, prove=source.prove)
    elif not foreign:
        model = completed(model, name, prove=source.prove)
    early = exit_of(checkpoint.extras, source.input)
    options = TrainingOptions(
        arch=model.name,
        dataset=dataset.name,
        device=source.chip.die,
        data=calibration.folder,
        avg_pool_rounding=calibration.average_rounding,
        exit=None if early is None else early.layer,
    )
    state = {
        name.removeprefix("module."): torch.from_numpy(tensor.copy())
        for name, tensor in checkpoint.state_dict.items()
    }
    options, trained = _fitting_network(model, dataset, options, state, source.input, option)
    if not foreign:
        refuse_foreign(trained, "be calibrated", "--model")
    simulated = _network(model, dataset, replace(options, act_mode_8bit=True))
    samples, targets = load_samples(dataset, options, calibration.samples, calibration.batch_size)
    constant = {name: tensor.numpy() for name, tensor in constant_tensors(trained).items()
                if name not in state}  # fmt: skip
    if is_completed(trained):
        unused = sorted(name for name in uncalled(trained) & state.keys() if ".op." in name)
        left_out = [f"Import: the network does not call the layer of {n}" for n in unused]
        print("\n".join([*notes_of(trained), *left_out]))
        fit_ranges(trained, samples)
        checkpoint.state_dict.clear()
        checkpoint.state_dict.update({n: t.numpy() for n, t in trained.state_dict().items()})
    return Case(trained, simulated, samples, targets, dataset.name, name,
                bool(dataset.regression), constant)  # fmt: skip


def load_samples(
    dataset: DatasetEntry, options: TrainingOptions, count: int, size: int
) -> tuple[list[Tensor], list[Any]]:
    """Return batches of inputs and of targets: samples of the training set, always the same ones.

    Where there is no training set, samples of the test set serve. Raises InputError E606 when there
    are none, E740 for numbers that are not finite.
    """
    torch.manual_seed(0)  # augmentation is random, too
    random.seed(0)
    np.random.seed(0)
    training, test = dataset.loader((options.data, options), True, False)
    if training is None:
        training, test = dataset.loader((options.data, options), False, True)
    for line in dataset.own.notes if dataset.own is not None else ():
        print(line)
    source: Any = test if training is None else training
    if source is None or not len(source):
        raise InputError("E606", f"the data set {dataset.name} holds no samples", options.data)
    order = torch.randperm(len(source))[:count]
    if hasattr(source, "batch"):
        batches = [source.batch(part) for part in order.split(size)]
        samples, targets = [inputs for inputs, _ in batches], [targets for _, targets in batches]
    else:
        pairs = [[source[index][:2] for index in part.tolist()] for part in order.split(size)]
        samples = [torch.stack([torch.as_tensor(inputs) for inputs, _ in part]) for part in pairs]
        targets = [[target for _, target in part] for part in pairs]
    wrong = sum(int((~torch.isfinite(batch)).sum()) for batch in samples)
    if wrong:
        raise InputError(
            "E740",
            f"{wrong} values of the calibration samples are not finite (NaN or infinity)",
            OPTION,
            "Name samples like those of the application.",
        )
    return samples, targets


def choices_table(choices: Sequence[LayerChoice]) -> str:
    """Return a table with a row per layer; SNR is that of the layer's output."""
    headers = ["layer", "bits", "shift", "rounding", "SNR/dB", "to nearest, SNR/dB"]
    rows = [
        (
            choice.name,
            choice.integers.bits,
            choice.integers.shift,
            choice.rounding,
            f"{choice.snr_db:.1f}",
            f"{choice.plain_snr_db:.1f}",
        )
        for choice in choices
    ]
    return tables.table(rows, headers)


def _network(model: ModelEntry, dataset: DatasetEntry, options: TrainingOptions) -> nn.Module:
    """Make the network without batch normalization; the checkpoint has none any more."""
    simulate = options.act_mode_8bit
    ai8x.set_device(options.device, simulate, options.avg_pool_rounding, verbose=False)
    network = build_model(model, dataset, options)
    ai8x.fuse_bn_layers(network)
    return network


def _fitting_network(
    model: ModelEntry,
    dataset: DatasetEntry,
    options: TrainingOptions,
    state: Mapping[str, Tensor],
    path: str,
    option: str,
) -> tuple[TrainingOptions, nn.Module]:
    """Return the network with the weights of the checkpoint, computing in floating point.

    Whether it has biases, or a class for the background, is seen from the tensors.
    """
    complaints: list[str] = []
    refusal: InputError | None = None
    for detection, bias in itertools.product((False, True), (False, True)):
        tried = replace(options, use_bias=bias, obj_detection=detection)
        try:
            network = _network(model, dataset, tried)
        except InputError as exc:  # a network without such a variant
            refusal = refusal or exc
            continue
        complaint = _differences(network, state)
        if complaint:
            complaints.append(complaint)
            continue
        weights = {name: state[name] for name in _trained_names(network) if name in state}
        network.load_state_dict(weights, False)
        for layer in network.modules():
            if hasattr(layer, "init_module"):  # forget what QAT has noted
                layer.init_module(None, None, False, 1.0)
        return tried, network
    if refusal is not None and not complaints:
        raise refusal
    raise InputError(
        "E676",
        f"the checkpoint does not belong to {model.name} for {dataset.name}: "
        + min(complaints, key=len),
        path,
        f"Compare --model and {option} with what it was trained with.",
    )


def _trained_names(network: nn.Module) -> list[str]:
    """Return the names of what training changes: all but the bookkeeping of layers."""
    single = {
        f"{name}.{key}".lstrip(".")
        for name, layer in network.named_modules()
        if hasattr(layer, "init_module")
        for key in dict(layer.named_parameters(recurse=False))
    }
    return [name for name in network.state_dict() if name not in single]


def _differences(network: nn.Module, state: Mapping[str, Tensor]) -> str:
    """Say what the network lacks or has more than the checkpoint; nothing if they fit."""
    own = network.state_dict()
    names = _trained_names(network)
    surplus = [name for name in state if name not in own and name.endswith((".weight", ".bias"))
               and name not in uncalled(network)]  # fmt: skip
    parts = {
        "missing": [n for n in names if n not in state and n not in constant_tensors(network)],
        "of another shape": [n for n in names if n in state and state[n].shape != own[n].shape],
        "surplus": surplus,
    }
    return "; ".join(f"{what}: {_listed(affected)}" for what, affected in parts.items() if affected)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
