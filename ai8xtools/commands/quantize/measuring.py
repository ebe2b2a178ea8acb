"""Errors of layers for quantize.py --report: both networks and samples in, their errors out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.generations import ADDED_KEYS, has_thresholds
from ai8xtools.commands.quantize.arguments import CalibrationOptions, NetworkOptions
from ai8xtools.commands.quantize.calibrator import Case, prepare
from ai8xtools.quantization.layer_errors import NetworkErrors, network_errors
from ai8xtools.training.saving.checkpoints import Loaded, load_into


def measure_errors(
    trained: Checkpoint,
    quantized: Checkpoint,
    source: NetworkOptions,
    calibration: CalibrationOptions,
) -> tuple[str, int, NetworkErrors]:
    """Return the name of the data set, the number of samples, and the errors on them.

    Raises InputError for everything that does not fit together.
    """
    case = prepare(trained, source, calibration, "--report-data")
    take_ranges(case.trained, tensors_of(trained))
    load_into(case.simulated, Loaded(tensors_of(quantized), None, None, None, None, {}))
    errors = network_errors(case.trained, case.simulated, case.samples, _classes(case))
    return case.dataset, case.count, errors


def _classes(case: Case) -> Tensor | None:
    """Return the numbers of the samples' classes, None where targets are something else."""
    if case.regression:
        return None
    try:
        classes = torch.cat([torch.as_tensor(part).reshape(len(part), -1) for part in case.targets])
    except (TypeError, ValueError, RuntimeError):  # boxes, for example
        return None
    whole = not classes.is_floating_point() and classes.shape[1] == 1
    return classes.flatten() if whole else None


def take_ranges(network: nn.Module, state: dict[str, Any]) -> None:
    """Let a network in floating point divide outputs as the second generation of QAT does."""
    if not has_thresholds(state):
        return
    ai8x.use_thresholds(network)
    own = {name for name in network.state_dict() if name.rpartition(".")[2] in ADDED_KEYS}
    kept = {name: tensor for name, tensor in state.items() if name in own}
    network.load_state_dict({n: t for n, t in kept.items() if not n.endswith("clamp_activation")},
                            strict=False)  # fmt: skip
    ai8x.update_model(network)
    ai8x.settle_scales(network)


def tensors_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the tensors of a checkpoint as those of torch."""
    return {
        name.removeprefix("module."): torch.from_numpy(tensor.copy())
        for name, tensor in checkpoint.state_dict.items()
    }
