"""quantize.py --import: the weights of an ordinary PyTorch network become those of ai8x layers."""

from __future__ import annotations

from typing import Any

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.commands.quantize.arguments import CalibrationOptions, NetworkOptions
from ai8xtools.commands.quantize.calibrator import load_samples
from ai8xtools.commands.quantize.samples import data_set
from ai8xtools.diagnostics import Diagnostic, Place, Severity, print_diagnostics
from ai8xtools.frontends.modules.plain.ranges import beyond_range, fit_ranges
from ai8xtools.training.catalog.discovery import find_models
from ai8xtools.training.catalog.imported import imported, notes_of, plain_state
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions


def imported_checkpoint(given: NetworkOptions, calibration: CalibrationOptions) -> Checkpoint:
    """Return the checkpoint of the imported network; that of an ai8x network stays as it is.

    Batch normalization is folded, and weights are scaled so that the data of the samples fits the
    range of the chip. Raises InputError or CheckpointError for what does not fit together.
    """
    state = plain_state(given.input)
    if state is None:
        return read_checkpoint(given.input)
    assert given.model is not None
    dataset = data_set(calibration.dataset, state.values(), None)
    entry = named_model(given.model, find_models, dataset.input)
    options = TrainingOptions(
        arch=plain_name(given.model), dataset=dataset.name, device=given.chip.die,
        data=calibration.folder, avg_pool_rounding=calibration.average_rounding,
    )  # fmt: skip
    ai8x.set_device(given.chip.die, False, calibration.average_rounding, verbose=False)
    network: Any = build_model(imported(entry, given.model, state, given.input), dataset, options)
    for line in notes_of(network):
        print(line)
    ai8x.fuse_bn_layers(network)
    samples, _ = load_samples(dataset, options, calibration.samples, calibration.batch_size)
    factors = fit_ranges(network, samples)
    listed = ", ".join(f"{name} x{factor:.3g}" for name, factor in factors.items())
    print(f"Results of layers are scaled to the range of the chip: {listed}")
    beyond = [f"{name} ({largest:.3g})" for name, largest in beyond_range(network, samples).items()]
    if beyond:
        warning = (
            f"results leave the chip's range of -1 to 1 and are limited: {', '.join(beyond)}; what "
            "is added to or joined with the input, or made and read by one layer, has no factor"
        )
        remedy = "Add the result of a convolution in place of the input; define a module per use."
        place = Place(file=given.input)
        print_diagnostics([Diagnostic("W758", warning, place, remedy, Severity.WARNING)])
    return Checkpoint({
        "epoch": 0, "arch": plain_name(given.model),
        "state_dict": {name: tensor.numpy() for name, tensor in network.state_dict().items()},
        "extras": {"imported": True},
    })  # fmt: skip
