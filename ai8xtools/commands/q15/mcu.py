"""quantize.py --device MCU: a network in floating point becomes a graph in whole numbers.

Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.checkpoint import Checkpoint, write_checkpoint
from ai8xtools.checkpoint.values import NETWORK
from ai8xtools.commands.following import deploy_it, written_for_cores
from ai8xtools.commands.loader.graph_proof import optimized
from ai8xtools.commands.q15.mcu_arguments import McuOptions
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.departing import told_of
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.frontends.graph.stored import to_data
from ai8xtools.frontends.graph.tail import without_shares
from ai8xtools.frontends.layers import refuse
from ai8xtools.quantization.formats import Float64s, to_fixed
from ai8xtools.quantization.integers import BITS, WIDE, measured
from ai8xtools.quantization.operators import PASSES, Whole, costliest, quantized
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import QUANTIZE

BY = "a microcontroller"
_MEASURED, _FEW = 16, 4
_SCALE = "Scale what it computes: powers of two of 8 bits do not reach that far."
_TOLERANCE = 1e-4


def quantize_mcu(options: McuOptions, bits: int = BITS) -> int:
    """Write the checkpoint and print how near it is; return the exit status.

    Data and weights have `bits`, BITS or WIDE, or WIDE where BITS lose too much.
    """
    path = options.case.input
    refuse_overwriting([("OUTPUT", options.output)], (path,))
    from ai8xtools.commands.q15.network import read_source  # here: they need torch
    from ai8xtools.commands.quantize.agreement import is_enough, refuse_low, warn
    from ai8xtools.quantization.q15.floating import check_samples

    source = read_source(options.case)
    check_samples(source.samples)
    samples = [one[None] for batch in source.samples for one in batch]
    with told_of(path):
        operators = passes.improved(source.operators, (compositions,))
        graph, left = without_shares(operators)
        graph = passes.improved(graph, PASSES)
    _check_finite(graph, path)
    if source.expected is not None:
        _compare(operators, samples, source.expected, path)
    ranges = measured(graph, samples)
    whole = quantized(graph, ranges, bits)
    lowered = _lowered(whole, source.arch, path)
    some = samples[:_MEASURED]
    expected = _results(graph, some)
    agreement = _agreement(expected, whole, some)
    if agreement < options.least and bits < WIDE:
        narrow, products = agreement, lowered.macs
        whole = quantized(graph, ranges, WIDE)
        lowered = _lowered(whole, source.arch, path)
        agreement = _agreement(expected, whole, some)
        print(f"8 bits lose too much (correlation {narrow:.4f}): data and weights have {WIDE} "
              f"bits, {lowered.macs:,} products of 8 bits in place of {products:,}")  # fmt: skip
    refuse_low(agreement, options.least, "floating point", path, "Train it with normalization, "
                "use --device Q15")  # fmt: skip
    if path.lower().endswith(".onnx"):
        usual = optimized(path, np.concatenate(some))
        if usual is not None and not left:
            of = f"onnxruntime (those of the graph's own steps: {agreement:.3f})"
            cure = "Its products of 8 bits saturate on some processors: quantize the graph with "
            refuse_low(_agreement(usual, whole, some), options.least, of, path,
                        f"{cure}reduce_range")  # fmt: skip
    nodes, arrays = to_data(whole.graph)
    numbers = {node: number for number, node in enumerate(whole.graph.nodes)}
    plan = {
        "version": 3, "nodes": nodes, "outputs": [numbers[one] for one in whole.graph.outputs],
        "fraction": whole.fraction, "fractions": list(whole.fractions), "left": left,
    }  # fmt: skip
    sample = to_fixed(samples[0], whole.fraction, 8).astype(np.int8)[0]
    write_checkpoint(options.output, Checkpoint({
        "epoch": 0, "arch": source.arch, "state_dict": arrays, NETWORK: plan, "sample": sample,
    }))  # fmt: skip
    for node in left:
        print(f"Left to the application: {node}")
    formats = ", ".join(map(str, whole.fractions))
    print(f"k of the input {whole.fraction}, of the output {formats}")
    if not is_enough(agreement, len(some), path):
        worst = costliest(graph, ranges, some[:_FEW])
        cure = "Train it with normalization, or use --device Q15."
        warn(agreement, path, f"; {worst} costs most", cure)
    deploy_it(path, options.output, "MCU")
    print(written_for_cores(str(options.output), "MCU"))
    return 0


def _lowered(whole: Whole, name: str, path: str) -> StepGraph:
    """Return the steps of a graph in whole numbers. Raises InputError E670 where there are none."""
    lowering = Lowering(whole.graph, name)
    refuse([replace(one, remedy=_SCALE) if one.remedy == QUANTIZE else one
            for one in lowering.refusals], path, BY)  # fmt: skip
    return lowering.graph()


def _check_finite(graph: Graph, path: str) -> None:
    """Raise InputError E507 for weights that are no numbers."""
    for node in graph.nodes:
        values = [one.constant for one in node.inputs]
        if not all(one is None or np.isfinite(one).all() for one in values):
            raise InputError("E507", f"{node.place} holds weights that are no finite numbers", path,
                             "Train the network again.")  # fmt: skip


def _compare(graph: Graph, samples: list[Float64s], expected: list[Float64s], path: str) -> None:
    """Raise InputError E668 where operators compute something else than the network itself."""
    for number in range(len(expected[0])):
        results = passes.results(graph, samples[number])
        for value, reference in zip(results, expected, strict=True):
            if value is None:
                continue
            own = reference[number].ravel()
            if not np.isfinite(own).all():
                raise InputError("E740", f"the network makes no finite number of sample {number}",
                                 "--calibrate", "Choose samples for which it does.")  # fmt: skip
            limit = _TOLERANCE * max(float(np.abs(own).max(initial=0)), 1e-9)
            if value.size != own.size or not (np.abs(value.ravel() - own) <= limit).all():
                raise InputError(
                    "E668", "the imported network computes something else", path,
                    "Write it with modules of PyTorch's own, without hooks, without changes in "
                    "place.",
                )  # fmt: skip


def _results(graph: Graph, samples: list[Float64s]) -> list[Float64s]:
    """Return the results of a graph, each of all samples."""
    each = zip(*(passes.results(graph, one) for one in samples), strict=True)
    return [np.concatenate([np.asarray(one).ravel() for one in parts]) for parts in each]


def _agreement(expected: list[Float64s], whole: Whole, samples: list[Float64s]) -> float:
    """Return how results in whole numbers correlate with others; of several the smallest."""
    integers = [to_fixed(one, whole.fraction, 8).astype(np.float64) for one in samples]
    agreements = []
    results = zip(expected, _results(whole.graph, integers), whole.fractions, strict=True)
    for reference, own, fraction in results:
        a, b = reference.ravel(), np.ldexp(own, -fraction)
        if a.std() and b.std():
            agreements.append(float(np.corrcoef(a, b)[0, 1]))
        else:  # what does not change is near, or not
            agreements.append(float(np.abs(a - b).max() <= np.ldexp(1.0, -fraction)))
    return min(agreements)
