"""Graphs of operators in whole numbers: their project for a microcontroller.

Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader.graph_proof import prove, samples_like
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.quantize.arrays import read_samples
from ai8xtools.commands.software.graphs import OF_MODELS, REPORT
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import Program, Results
from ai8xtools.commands.software.streams import proven_stream
from ai8xtools.diagnostics import Diagnostic
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
from ai8xtools.quantization.formats import to_fixed
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.operators.execute import execute, execute_all
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.stateful import stateful
from ai8xtools.software.operators.storage import laid
from ai8xtools.values import frozen

_BY = "a microcontroller"
_MOST_BITS = 126
"""Of a fraction: powers of two that numbers of 32 bits have."""
_BITS, _LEAST = 8, -128
"""Of a number of the input."""
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


def program_of(
    options: LoaderOptions, software: SoftwareOptions, source: Checkpoint | ModelSource
) -> tuple[LoaderOptions, Program]:
    """Return the program of a graph, which is proven, and options that name its file.

    Raises InputError E080 for options of descriptions, E670 that names each node that no step
    computes, E668 if steps compute something else.
    """
    messages = (*_without_effect(options, software, source),)
    network, path = _network(options, source)
    if software.stateful and software.stream is not None:
        with told_of(path):
            form = stateful(network.operators, software.stream)
        steps = _steps(form.graph, network.name, path)
        sample, told = proven_stream(network.operators, form, steps, network.sample, path)
        program = replace(_program(network, steps), sample=lambda: sample, lines=(told,))
    else:
        steps = _steps(network.operators, network.name, path)
        _prove(network, steps, path)
        program = _program(network, steps)
    if isinstance(source, ModelSource) and source.prove:
        source = replace(source, left=network.left)
        messages += prove(source, network.sample[0],
                          lambda one: [value.astype(np.float64).ravel()
                                       for value in _results(network.operators, one)])  # fmt: skip
    left = (f"Left to the application: {node}" for node in network.left)
    program = replace(program, messages=messages, lines=(*program.lines, *left))
    return replace(options, config_file=path), program


def _program(network: _Network, steps: StepGraph) -> Program:
    """Return the program of steps that compute a network."""

    def sample() -> Sample:
        outputs = _results(network.operators, network.sample[0])
        return Sample(_maps(network.sample), tuple(map(_maps, outputs)))

    def results() -> Results:
        if steps.kept is not None:  # a stream has as many as it has calls
            return {}
        found = execute_all(steps, laid(network.sample))
        made = {step.layer: steps.tensors[step.target] for step in steps.steps}
        return {layer: found[one.index].reshape(one.rows, one.columns, -1).transpose(2, 0, 1)
                for layer, one in made.items()}  # fmt: skip

    units = {steps.input: network.fraction}
    units |= {tensor: -n for tensor, n in zip(steps.outputs, network.exponents, strict=False)}
    return Program(steps, sample, results, network.exponents, network.fraction, units=units)


def _without_effect(
    options: LoaderOptions, software: SoftwareOptions, source: Checkpoint | ModelSource
) -> Iterator[Diagnostic]:
    """Yield warnings of options that only read models.

    Raises InputError E080 for those that can mean nothing for operators.
    """
    if software.like is not None:
        raise InputError("E080", "a graph of operators has no layers of a chip", "--like",
                         "Leave it out; quantize.py --device MAX78000 or MAX78002 tells whether "
                         "the network runs there.")  # fmt: skip
    for option in software.describing:
        if option not in OF_MODELS | {REPORT}:
            raise InputError("E080", "it changes or completes a description; a graph of operators "
                             "is whole", option, "Leave it out, or change the network before "
                             "quantize.py.")  # fmt: skip
    if isinstance(source, Checkpoint):
        model = ["--model"] if options.model is not None else []
        for option in (*model, *OF_MODELS.intersection(software.describing)):
            yield no_effect(option, "on a checkpoint that holds the network")


def lowered(
    options: LoaderOptions, source: Checkpoint | ModelSource
) -> tuple[_Network, str, StepGraph]:
    """Return the operators of a file, its path, and the steps of their program.

    Raises InputError E670 that names each node that no step computes.
    """
    network, path = _network(options, source)
    return network, path, _steps(network.operators, network.name, path)


def unproven(options: LoaderOptions, source: Checkpoint | ModelSource) -> Program:
    """Return the program of a graph without a proof; raises as `lowered` does."""
    network, _, steps = lowered(options, source)
    return _program(network, steps)


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
    fraction, *more = fractions
    shape = graph.input.shape[1:]
    sample_input = sample if named is None else _read_sample(named, shape, fraction)
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


def _read_sample(path: str, shape: tuple[int, ...], fraction: int | None = None) -> Values:
    """Return a sample in the shape of the input; numbers in floating point, which checkpoints take,
    times 2^`fraction`. Raises InputError E740 for a file of none.
    """
    values = read_samples(path)
    takes = f"{times(shape)} whole numbers {_LEAST} to {-1 - _LEAST}"
    if fraction is not None:
        most = 2.0 ** (_BITS - 1 - fraction)
        takes += f", or those of training, {-most:g} to {most:g}, in floating point"
        if values.dtype.kind == "f" and (np.abs(values) <= most).all():
            values = to_fixed(values, fraction, _BITS)
    whole = values.dtype.kind in "iu" and values.size
    if (
        not whole
        or values.min() < _LEAST
        or values.max() >= -_LEAST
        or values.size != np.prod(shape)
    ):
        raise InputError(
            "E740", f"an array of shape {values.shape} and type {values.dtype} is no sample "
            f"of this network, which takes {takes}", path,
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
