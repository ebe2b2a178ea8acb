"""quantize.py --device Q15 and Q7: a network in floating point becomes C with integers.

Source: docs/q15.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from commands.q15.arguments import Q15Options, parse
from quantization.q15.formats import Guard
from quantization.q15.graph import Graph
from software.q15.emit import COLUMN_MAJOR, ROW_MAJOR, Sample, emit, sizes_of
from writing.folder import check_folder, write_project


def quantize_q15(words: Sequence[str]) -> int:
    """Write the project and print the report; return the exit status."""
    options = parse(words)
    check_folder(options.output, overwrite=options.overwrite)
    from commands.q15.network import read_case  # here: it needs torch
    from quantization.q15.execute import execute, quantize_input
    from quantization.q15.floating import compute, measure
    from quantization.q15.network import quantize_network
    from quantization.q15.report import HEADERS, ErrorSums, rows

    case = read_case(options)
    graph, samples = case.graph, case.samples
    if options.column_major:
        graph, samples = graph.transposed(), [part.swapaxes(2, 3) for part in samples]
    ranges = measure(graph, samples, options.percentile)
    network = quantize_network(
        graph, ranges.percentile, ranges.largest, options.bits, options.guard
    )
    sums = ErrorSums(network)
    sample = None
    for part in samples:
        integers = quantize_input(network, part)
        maps = execute(network, integers)
        sums.add(compute(graph, part), maps)
        sample = sample or Sample(integers[0], maps[graph.output][0])
    assert sample is not None
    errors = sums.finished()
    order = COLUMN_MAJOR if options.column_major else ROW_MAJOR
    name = options.output.resolve().name
    files = emit(network, sample, name, options.command_line, options.core, order)
    write_project(files, options.output, overwrite=options.overwrite)
    table = tabulate(rows(network, errors), HEADERS, "simple", disable_numparse=True)
    print(f"Calibrated with {errors.samples} samples of {case.dataset}:\n{table}")
    print(_summary(options, graph, errors.agreeing, errors.samples))
    if case.left:
        print(f"Left to the application: {', '.join(case.left)}")
    sizes = sizes_of(network)
    print(
        f"Memory: {sizes.arena:,} bytes of RAM, {sizes.flash:,} bytes of weights; "
        f"k of the input {network.fractions[0]}, of the output {network.fractions[graph.output]}"
    )
    print(f"Wrote {len(files)} files to {options.output}")
    return 0


def _summary(options: Q15Options, graph: Graph, agreeing: int, samples: int) -> str:
    """Return what the table does not say: agreement of results, and what the guard promises."""
    promises = {
        Guard.WORST: "no input makes a sum leave 32 bits",
        Guard.CALIBRATED: "no input up to twice as large as the samples makes a sum leave 32 bits",
        Guard.NONE: "sums may leave 32 bits and wrap around",
    }
    return (
        f"The largest result is that of floating point for {agreeing} of {samples} samples "
        f"({100 * agreeing / samples:.2f} %); {graph.macs:,} products\n"
        f"Guard {options.guard}: {promises[options.guard]}"
    )
