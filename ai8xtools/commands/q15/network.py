"""The floating-point network of a checkpoint as a graph, and samples for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader.graph_proof import executed
from ai8xtools.commands.q15.arguments import CaseOptions
from ai8xtools.commands.quantize.arguments import NetworkOptions
from ai8xtools.commands.quantize.calibrator import load_samples, prepare
from ai8xtools.commands.quantize.importer import closings
from ai8xtools.commands.quantize.measuring import take_ranges, tensors_of
from ai8xtools.commands.quantize.quantize import without_batchnorm
from ai8xtools.commands.quantize.samples import OPTION, as_maps, data_set
from ai8xtools.diagnostics import print_diagnostics
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.options import no_effect
from ai8xtools.frontends.departing import told_of
from ai8xtools.frontends.graph.maps import MapsReader
from ai8xtools.frontends.graph.nodes import Graph as Operators
from ai8xtools.frontends.layers import refuse, times
from ai8xtools.frontends.modules.calls import listed
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.onnx.door import input_shape, read_fractions, read_operators
from ai8xtools.quantization.formats import Float64s
from ai8xtools.quantization.q15.floating import compute
from ai8xtools.quantization.q15.formats import NoKernelError
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder
from ai8xtools.quantization.q15.network import check_finite
from ai8xtools.training.catalog.discovery import find_models
from ai8xtools.training.catalog.imported import (
    UNPROVEN,
    load_plain,
    plain_state,
    taking_vectors,
)
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values import frozen
from device import chip_named

_KERNELS = "kernels of 16 or 8 bits"
_OF_PICTURES = 4
"""Axes of kernels that pictures have: networks without one take series where data can be either."""
_COMPARED = 8
"""Samples that the network itself computes, too."""
_ALIKE = 0.999
"""Least correlation of a quantized graph with its fractions."""
_TOLERANCE = 1e-3
"""By how much float32 may differ from the graph's float64, relative to the largest result."""


@frozen
class Case:
    """A network as a graph, and batches of samples [N, C, H, W].

    `left` are nodes that the application computes; `arch` is its name, if it has one.
    """

    graph: Graph
    samples: list[Float64s]
    left: tuple[str, ...]
    dataset: str
    arch: str | None = None


@frozen
class Source:
    """A network as operators, and batches of samples [N, ...] in the shape of its input.

    `expected` is what its own runtime makes of the first samples, for each result, if one is
    there; `name` says of what the operators were made.
    """

    operators: Operators
    samples: list[Float64s]
    expected: list[Float64s] | None
    name: str
    arch: str


def read_case(options: CaseOptions) -> Case:
    """Return network and samples; InputError for what does not fit together."""
    source = read_source(options, _ALIKE)
    graph, left = graph_of(source.operators, options.model or options.input)
    check_finite(graph, options.input)
    samples = [as_maps(torch.from_numpy(batch)) for batch in source.samples]
    if source.expected is not None:
        some = samples[0][: len(source.expected[0])]
        _compare(torch.from_numpy(source.expected[0]), graph, some, left, options.input,
                 source.name)  # fmt: skip
    return Case(graph, samples, left, options.calibration.dataset, source.arch)


def read_source(options: CaseOptions, alike: float | None = None) -> Source:
    """Return a network as operators, with samples; InputError for what does not fit together.

    With `alike` a quantized graph of ONNX is read in fractions, with which it has at least this
    correlation.
    """
    if not options.prove:
        print(f"Import: {UNPROVEN}")
    if options.input.lower().endswith(".onnx"):
        return _onnx_source(options, alike)
    state = plain_state(options.input)
    model, samples = _ai8x_case(options) if state is None else _plain_case(options, state)
    operators = read_module(model, samples[0][:1].clone())  # networks may change their input
    with torch.no_grad():  # one by one, as devices see them
        results = [model(one[None].clone()) for one in samples[0][:_COMPARED]]
    several = [[part for part in listed(one) if isinstance(part, Tensor)] for one in results]
    outputs = [torch.cat(parts).double().numpy() for parts in zip(*several, strict=True)]
    if not outputs:
        raise InputError("E670", "the network returns no tensor", options.input,
                         "Let its forward function end with: return RESULT.")  # fmt: skip
    if len(outputs) != len(operators.outputs):
        raise InputError("E670", "a result of the network does not depend on its input",
                         options.input, "Return what depends on it only.")  # fmt: skip
    name = type(model).__name__
    expected = outputs if options.prove else None
    return Source(operators, [batch.double().numpy() for batch in samples], expected, name,
                  name.lower())  # fmt: skip


def _onnx_source(options: CaseOptions, alike: float | None) -> Source:
    """Return a graph of ONNX with samples in the shape of its input."""
    if options.model is not None:
        print_diagnostics([no_effect("--model", "on an ONNX graph")])
    onnx = read_graph(options.input)
    shape = input_shape(onnx, options.input)
    notes: tuple[str, ...] = ()
    if alike is None:
        operators, refusals = read_operators(onnx, shape)
    else:
        operators, refusals, notes = read_fractions(onnx, shape)
    refuse(refusals, options.input, _KERNELS)
    for note in notes:
        print(f"Import: {note}")
    calibration = options.calibration
    dataset = data_set(
        calibration.dataset, (), None, series=len(shape) == 2, settings=calibration.own
    )
    settings = TrainingOptions(arch=Path(options.input).stem, dataset=dataset.name, device=85,
                               data=calibration.folder)  # fmt: skip
    ai8x.set_device(85, False, False, verbose=False)
    samples, _ = load_samples(dataset, settings, calibration.samples, calibration.batch_size)
    sample_size = tuple(samples[0].shape[1:])
    if math.prod(sample_size) != math.prod(shape):
        raise InputError(
            "E678", f"samples are {times(sample_size)}, the input of the network is {times(shape)}",
            options.input, "Name samples of the size that the network takes.",
        )  # fmt: skip
    arrays = [batch.reshape(len(batch), *shape).double().numpy() for batch in samples]
    results = executed(options.input, arrays[0][:_COMPARED], alike) if options.prove else None
    return Source(operators, arrays, results, "the graph", Path(options.input).stem.lower())


def graph_of(operators: Operators, name: str) -> tuple[Graph, tuple[str, ...]]:
    """Return the steps of a graph, and the nodes that are left to the application.

    Raises InputError E670 that names each node without a kernel.
    """
    builder = GraphBuilder(operators.input.shape[1:])
    with told_of(name):
        reader = MapsReader(operators, builder)
    refuse(reader.refusals, name, _KERNELS, error=NoKernelError)
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
    calibration = options.calibration
    dataset = data_set(
        calibration.dataset, fused.state_dict.values(), options.input, settings=calibration.own
    )
    network = NetworkOptions(options.input, options.model, chip)
    case = prepare(fused, network, options.calibration, OPTION, dataset, foreign=True)
    take_ranges(case.trained, tensors_of(fused))
    return case.trained, case.samples


def _plain_case(options: CaseOptions, state: dict[str, Tensor]) -> tuple[nn.Module, list[Tensor]]:
    """Return a network of PyTorch's own layers with its weights."""
    if options.model is None:
        raise InputError("E689", "the file holds the weights of an ordinary PyTorch network and "
                         "does not name it", options.input, "Add --model FILE:CLASS.")  # fmt: skip
    calibration = options.calibration
    flat = all(one.ndim < _OF_PICTURES for one in state.values())
    dataset = data_set(calibration.dataset, state.values(), options.input, series=flat,
                       settings=calibration.own)  # fmt: skip
    entry = named_model(options.model, find_models, dataset.input)
    settings = TrainingOptions(arch=plain_name(options.model), dataset=dataset.name, device=85,
                               data=calibration.folder)  # fmt: skip
    ai8x.set_device(85, False, False, verbose=False)
    model: Any = build_model(entry, dataset, settings)
    load_plain(model, state, options.input)
    samples, _ = load_samples(dataset, settings, calibration.samples, calibration.batch_size)
    return taking_vectors(model.eval(), samples[0][:1].clone()), samples


def _compare(
    expected: Tensor, graph: Graph, samples: Float64s, left: Sequence[str], path: str, name: str
) -> None:
    """Raise InputError E668 where a graph does not compute results that are wanted.

    A softmax that is left to the application is computed behind the graph.
    """
    results = torch.from_numpy(compute(graph, samples)[graph.output])
    candidates = closings(results)[1:] if left else [results]
    errors = (float((one.reshape(expected.shape) - expected).abs().max())
              for one in candidates if one.numel() == expected.numel())  # fmt: skip
    error = min(errors, default=math.inf)
    if not error <= _TOLERANCE * max(float(expected.abs().max()), 1e-9):  # also of no number
        raise InputError(
            "E668",
            f"the network imported from {name} computes something else: its results differ by "
            f"up to {error:.3g}",
            path,
            "Write it with modules of PyTorch's own, without hooks, without changes in place.",
        )
