"""quantize.py --import: the weights of an ordinary PyTorch network become those of ai8x layers."""

from __future__ import annotations

from typing import Any

import torch

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader.graph_proof import executed
from ai8xtools.commands.quantize.arguments import CalibrationOptions, NetworkOptions
from ai8xtools.commands.quantize.calibrator import load_samples
from ai8xtools.commands.quantize.samples import data_set
from ai8xtools.diagnostics import Diagnostic, Place, Severity, print_diagnostics
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.plain.ranges import beyond_range, fit_ranges
from ai8xtools.frontends.modules.plain.unlimited import Unlimited
from ai8xtools.frontends.onnx.door import input_shape
from ai8xtools.training.catalog.discovery import DatasetEntry, find_models
from ai8xtools.training.catalog.imported import UNPROVEN, imported, notes_of, plain_state
from ai8xtools.training.catalog.onnx_file import is_graph
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions

GRAPH = "graph"
"""What the checkpoint of an imported ONNX graph notes."""
_SAMPLES, _TOLERANCE, _ALIKE = 4, 1e-4, 0.99


def imported_checkpoint(source: NetworkOptions, calibration: CalibrationOptions) -> Checkpoint:
    """Return the checkpoint of the imported network; that of an ai8x network stays as it is.

    Batch normalization is folded, and weights are scaled so that the data of the samples fits the
    range of the chip. Raises InputError or CheckpointError for what does not fit together.
    """
    graph = is_graph(source.input)
    state = {} if graph else plain_state(source.input)
    if state is None:
        return read_checkpoint(source.input)
    assert source.model is not None
    series = graph and len(input_shape(read_graph(source.input), source.input)) == 2
    dataset = data_set(
        calibration.dataset, state.values(), None, series=series, settings=calibration.own
    )
    entry = named_model(source.model, find_models, dataset.input)
    arch = entry.name if graph else plain_name(source.model)
    options = TrainingOptions(
        arch=arch, dataset=dataset.name, device=source.chip.die,
        data=calibration.folder, avg_pool_rounding=calibration.average_rounding,
    )  # fmt: skip
    ai8x.set_device(source.chip.die, False, calibration.average_rounding, verbose=False)
    if not graph:
        entry = imported(entry, source.model, state, source.input, prove=source.prove)
    network: Any = build_model(entry, dataset, options)
    if graph and source.prove:
        _prove(network, source.input, dataset.input[: entry.dim + 1])
    elif graph:
        print(f"Import: {UNPROVEN}")
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
        place = Place(file=source.input)
        print_diagnostics([Diagnostic("W758", warning, place, remedy, Severity.WARNING)])
    return Checkpoint({
        "epoch": 0, "arch": arch,
        "state_dict": {name: tensor.numpy() for name, tensor in network.state_dict().items()},
        "extras": {"imported": GRAPH if graph else True, **_record(dataset, options)},
    })  # fmt: skip


def _record(dataset: DatasetEntry, options: TrainingOptions) -> dict[str, Any]:
    """Return classes, preparation and a sample of the user's own data, as train.py notes them."""
    if dataset.own is None:
        return {}
    _, test = dataset.loader((options.data, options), False, True)
    (entry,) = dataset.own.record(dataset.output, test[0], 128).items()
    name, values = entry
    return {name: {**values, "sample": values["sample"].numpy()}}


def _prove(network: Any, path: str, shape: tuple[int, ...]) -> None:
    """Raise InputError E668 if a network computes something else than the graph it was made of.

    Its softmax is left out.
    """
    samples = torch.rand(_SAMPLES, *shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    expected = executed(path, samples.numpy(), _ALIKE)
    if expected is None:
        return
    network.eval()
    with torch.no_grad():
        results = Unlimited(network).run(samples)
    outputs = results if isinstance(results, list | tuple) else (results,)
    if len(outputs) != len(expected) or not all(map(_is_computed, expected, outputs)):
        raise InputError(
            "E668", "the network imported from the graph computes something else", path,
            "Write the graph with other operators, or report this graph.",
        )  # fmt: skip


def _is_computed(expected: Any, output: torch.Tensor) -> bool:
    """Return whether an output has the expected values [N, ...], or those before a softmax."""
    limit = _TOLERANCE * max(float(abs(expected).max()), 1e-30)
    return any(
        one.shape == expected.shape and (abs(one - expected) <= limit).all()
        for one in (x.reshape(len(expected), -1).numpy() for x in closings(output.double()))
    )


def closings(x: torch.Tensor) -> list[torch.Tensor]:
    """Return results [N, ...], and what a softmax along any axis, or its logarithm, makes of them:
    the application computes it.
    """
    shares = (f(axis) for axis in range(1, x.ndim) for f in (x.softmax, x.log_softmax))
    return [x, *shares]
