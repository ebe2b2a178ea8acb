"""The floating-point network of a checkpoint as a graph, and samples for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.q15.arguments import CaseOptions
from ai8xtools.commands.quantize.arguments import NetworkOptions
from ai8xtools.commands.quantize.calibrator import load_samples, prepare
from ai8xtools.commands.quantize.measuring import take_ranges, tensors_of
from ai8xtools.commands.quantize.quantize import without_batchnorm
from ai8xtools.commands.quantize.samples import OPTION, as_maps, data_set
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.layers import refuse
from ai8xtools.frontends.modules.floating import FloatingReader
from ai8xtools.quantization.formats import Float64s
from ai8xtools.quantization.q15.floating import compute
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder
from ai8xtools.quantization.q15.network import check_finite
from ai8xtools.training.catalog.discovery import find_models
from ai8xtools.training.catalog.imported import load_plain, plain_state, taking_vectors
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values import frozen
from device import chip_named

_TOLERANCE = 1e-3
"""By how much float32 may differ from the graph's float64, relative to the largest result."""


@frozen
class Case:
    """A network, as torch computes it and as graph, and batches of samples [N, C, H, W].

    `arch` is its name, if it has one.
    """

    model: nn.Module
    graph: Graph
    samples: list[Float64s]
    left: tuple[str, ...]
    dataset: str
    arch: str | None = None


def read_case(options: CaseOptions) -> Case:
    """Return network and samples; InputError for what does not fit together."""
    state = plain_state(options.input)
    model, samples = _ai8x_case(options) if state is None else _plain_case(options, state)
    graph, left = graph_of(model, samples[0][:1], options.model or options.input)
    check_finite(graph, options.input)
    arrays = [as_maps(batch) for batch in samples]
    _compare(model, graph, samples[0][:8], left, options.input)
    return Case(
        model, graph, arrays, left, options.calibration.dataset, type(model).__name__.lower()
    )


def graph_of(model: nn.Module, example: Tensor, name: str) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph of a network, and the nodes that are left to the application.

    Raises InputError E670 that names each node without a kernel.
    """
    builder = GraphBuilder(tuple(example.shape[1:]))
    reader = FloatingReader(model, example, builder)
    refuse(reader.refusals, name, "kernels of 16 or 8 bits")
    graph = builder.finished(reader.output)
    if not graph.steps:
        raise InputError("E650", "the network has no layer that can be computed", name,
                         "Use convolutions, fully connected layers and pooling.")  # fmt: skip
    return graph, tuple(reader.left)


def _ai8x_case(options: CaseOptions) -> tuple[nn.Module, list[Tensor]]:
    """Return a network of ai8x layers as it was trained, in floating point."""
    checkpoint = read_checkpoint(options.input)
    name = options.model or plain_name(checkpoint.arch or "")
    chip = chip_named("MAX78002" if name.lower().startswith("ai87") else "MAX78000")
    fused = without_batchnorm(checkpoint)
    dataset = data_set(options.calibration.dataset, fused.state_dict.values(), options.input)
    network = NetworkOptions(options.input, options.model, chip)
    case = prepare(fused, network, options.calibration, OPTION, dataset)
    take_ranges(case.trained, tensors_of(fused))
    return case.trained, case.samples


def _plain_case(options: CaseOptions, state: dict[str, Tensor]) -> tuple[nn.Module, list[Tensor]]:
    """Return a network of PyTorch's own layers with its weights."""
    if options.model is None:
        raise InputError("E743", "the file holds the weights of an ordinary PyTorch network and "
                         "does not name it", options.input, "Add --model FILE:CLASS.")  # fmt: skip
    wanted = options.calibration
    dataset = data_set(wanted.dataset, state.values(), options.input)
    entry = named_model(options.model, find_models, dataset.input)
    settings = TrainingOptions(arch=plain_name(options.model), dataset=dataset.name, device=85,
                               data=wanted.folder)  # fmt: skip
    ai8x.set_device(85, False, False, verbose=False)
    model: Any = build_model(entry, dataset, settings)
    load_plain(model, state, options.input)
    samples, _ = load_samples(dataset, settings, wanted.samples, wanted.batch_size)
    return taking_vectors(model.eval(), samples[0][:1]), samples


def _compare(
    model: nn.Module, graph: Graph, samples: Tensor, left: Sequence[str], path: str
) -> None:
    """Raise InputError E668 where the graph does not compute what the network does.

    A softmax that is left to the application is computed behind the graph.
    """
    with torch.no_grad():
        wanted = model(samples.clone()).double()
    found = torch.from_numpy(compute(graph, as_maps(samples))[graph.output]).reshape(wanted.shape)
    closings: tuple[Callable[[Tensor], Tensor], ...] = (
        (lambda x: x.softmax(1), lambda x: x.log_softmax(1)) if left else (lambda x: x,)
    )
    error = min(float((closing(found) - wanted).abs().max()) for closing in closings)
    if error > _TOLERANCE * max(float(wanted.abs().max()), 1e-9):
        raise InputError(
            "E668",
            f"the network that was made of {type(model).__name__} computes something else: its "
            f"results differ by up to {error:.3g}",
            path,
            "Write it with modules of PyTorch's own, without hooks, without changes in place.",
        )
