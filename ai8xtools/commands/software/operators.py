"""Graphs of operators in whole numbers: their project for a microcontroller.

Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader.graph_proof import prove, samples_like
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.quantize.arrays import read_samples
from ai8xtools.commands.software.finishing import finish
from ai8xtools.commands.software.graphs import CHANGING
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import completed, planned
from ai8xtools.commands.software.streams import proven_stream
from ai8xtools.diagnostics import Diagnostic, print_diagnostics
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.options import no_effect
from ai8xtools.frontends.departing import told_of
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.frontends.graph.stored import UnsoundError, from_data
from ai8xtools.frontends.graph.tail import without_shares
from ai8xtools.frontends.layers import refuse, times
from ai8xtools.frontends.onnx.door import input_shape, read_operators
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.emit.text import log_text, plan_text
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.stateful import stateful
from ai8xtools.software.operators.storage import laid
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.values import frozen

_BY = "a microcontroller"
_MOST_BITS = 126
"""Of a fraction: powers of two that numbers of 32 bits have."""
Values = NDArray[np.int64]


@frozen
class _Network:
    """Operators with a sample in the shape of their input; `left` is for the application.

    A number of the input times 2^`fraction` is its integer, an integer of output n times
    2^`exponents[n]` the number.
    """

    operators: Graph
    sample: Values
    left: tuple[str, ...]
    name: str
    fraction: int
    exponents: tuple[int, ...]


def create_from_operators(
    options: LoaderOptions, software: SoftwareOptions, source: Checkpoint | ModelSource
) -> int:
    """Write the project of a graph; return the exit status."""
    profile = software.profile()
    _refuse_options(options, software)
    if not options.output.check_only:
        software.folder(options).check()
    messages: tuple[Diagnostic, ...] = software.notices
    if isinstance(source, Checkpoint) and options.model is not None:
        messages += (no_effect("--model", "on a checkpoint that holds the network"),)
    network, path = _network(options, source)
    if software.stateful and software.stream is not None:
        with told_of(path):
            form = stateful(network.operators, software.stream)
        steps = _steps(form.graph, network.name, path)
        sample, told = proven_stream(network.operators, form, steps, network.sample, path)
        print(told)
    else:
        steps = _steps(network.operators, network.name, path)
        _prove(network, steps, path)
        outputs = _results(network.operators, network.sample[0])
        sample = Sample(_maps(network.sample), tuple(map(_maps, outputs)))
    if isinstance(source, ModelSource) and source.prove:
        source = replace(source, left=network.left)
        messages += prove(source, network.sample[0],
                          lambda one: [value.astype(np.float64).ravel()
                                       for value in _results(network.operators, one)])  # fmt: skip
    built = planned(steps, profile, software)
    built = completed(built, sample, profile, options, network.exponents, network.fraction)
    print_diagnostics(options.visible(messages))
    for node in network.left:
        print(f"Left to the application: {node}")
    options = replace(options, config_file=path)
    log = log_text(built, profile, options.project.command_line)
    finish(options, software, built, profile, plan_text(built, profile), log)
    return 0


def _refuse_options(options: LoaderOptions, software: SoftwareOptions) -> None:
    """Raise InputError E080 for an option that only networks of a description have."""
    plain, resolving = ResolveOptions(), options.resolve
    asked = {
        "--report": options.output.report is not None,
        "--container": software.container is not None, "--like": software.like is not None,
        **{f"--{name.replace('_', '-')}": getattr(resolving, name) != getattr(plain, name)
           for name in CHANGING},
    }  # fmt: skip
    for option, is_set in asked.items():
        if is_set:
            raise InputError("E080", "a graph of operators does not have this", option,
                             "Leave it out, or take a network of the accelerator.")  # fmt: skip


def lowered(
    options: LoaderOptions, source: Checkpoint | ModelSource
) -> tuple[_Network, str, StepGraph]:
    """Return the operators of a file, its path, and the steps of their program.

    Raises InputError E670 that names each node that no step computes.
    """
    network, path = _network(options, source)
    return network, path, _steps(network.operators, network.name, path)


def _network(options: LoaderOptions, source: Checkpoint | ModelSource) -> tuple[_Network, str]:
    """Return the operators of a file, and its path."""
    if isinstance(source, Checkpoint):
        path = str(options.resolve.checkpoint_file)
        return _held(source, path, options), path
    return _of_onnx(source, options), source.model


def _steps(operators: Graph, name: str, path: str) -> StepGraph:
    with told_of(path):
        lowering = Lowering(operators, name)
    refuse(lowering.refusals, path, _BY)
    return lowering.graph()


def _held(checkpoint: Checkpoint, path: str, options: LoaderOptions) -> _Network:
    """Return the network of a checkpoint. Raises InputError E744 for one that is not sound."""
    plan = checkpoint.network
    assert isinstance(plan, dict)
    try:
        graph = from_data(plan.get("nodes"), plan.get("outputs"), checkpoint.state_dict)
        left = plan.get("left")
        if not isinstance(left, list) or not all(isinstance(one, str) for one in left):
            raise UnsoundError("what is left to the application has names")
        sample = np.asarray(checkpoint.entries.get("sample"))
        fractions = _fractions([plan.get("fraction")], 1)
        fractions += _fractions(plan.get("fractions"), len(graph.outputs))
        if sample.dtype != np.int8 or sample.shape != graph.input.shape[1:]:
            raise UnsoundError("the sample is an input of the network")
    except UnsoundError as exc:
        raise InputError("E744", f"this is no sound network: {exc}", path,
                         "Write it again with quantize.py --device MCU.") from None  # fmt: skip
    named = options.resolve.sample_input
    sample_input = sample if named is None else _read_sample(named, graph.input.shape[1:])
    fraction, *more = fractions
    return _Network(
        graph, sample_input[None].astype(np.int64), tuple(left), checkpoint.arch or "network",
        fraction, tuple(-one for one in more),
    )  # fmt: skip


def _fractions(values: object, count: int) -> list[int]:
    """Return fractional bits. Raises UnsoundError for others than `count` numbers."""
    numbers = values if isinstance(values, list) else []
    numbers = [one for one in numbers if isinstance(one, int) and abs(one) <= _MOST_BITS]
    if len(numbers) != count:
        raise UnsoundError("input and outputs have fractional bits")
    return numbers


def _of_onnx(source: ModelSource, options: LoaderOptions) -> _Network:
    """Return the operators of an ONNX graph in whole numbers."""
    onnx = read_graph(source.model)
    shape = source.input_shape or input_shape(onnx, source.model)
    operators, refusals = read_operators(onnx, shape)
    refuse(refusals, source.model, _BY)
    operators, left = without_shares(passes.improved(operators, (compositions,)))
    path = options.resolve.sample_input
    if path is None:
        raise InputError("E212", "a graph needs a sample", "--sample-input",
                         "Name whole numbers -128 to 127, [channels, rows, columns].")  # fmt: skip
    sample = _read_sample(path, operators.input.shape[1:])
    exponents = (0,) * len(operators.outputs)
    return _Network(operators, sample[None], tuple(left), options.project.name, 0, exponents)


def _read_sample(path: str, shape: tuple[int, ...]) -> Values:
    """Return a sample in the shape of the input. Raises InputError E740 for a file of none."""
    values = read_samples(path)
    whole = (
        values.dtype.kind in "iu" and values.size and -128 <= values.min() <= values.max() <= 127
    )
    if not whole or values.size != np.prod(shape):
        raise InputError(
            "E740", f"an array of shape {values.shape} and type {values.dtype} is no sample "
            f"of this network, which takes whole numbers -128 to 127 of {times(shape)}", path,
            "Write a sample like those of the application: pictures less 128, else 128 times the "
            "values of training.",
        )  # fmt: skip
    return values.reshape(shape).astype(np.int64)


def _results(operators: Graph, sample: Values) -> list[Values]:
    results = passes.results(operators, sample[None].astype(np.float64))
    return [np.asarray(value).astype(np.int64) for value in results]


def _maps(values: Values) -> Values:
    """Return results as they stand in memory: [channel, row, column]."""
    return laid(values).transpose(2, 0, 1)


def _prove(network: _Network, steps: StepGraph, path: str) -> None:
    """Raise InputError E668 where steps compute something else than the operators."""
    for sample in samples_like(network.sample[0]):
        expected = [laid(value).ravel() for value in _results(network.operators, sample)]
        actual = execute(steps, laid(sample[None]))
        if not all(map(np.array_equal, expected, actual)):
            raise InputError(
                "E668", "the program generated from the graph computes something else", path,
                "Write the graph with other operators, or report it.",
            )  # fmt: skip
