"""quantize.py --device Q15 and Q7: a network in floating point becomes C with integers.

Source: docs/q15.md.
"""

from __future__ import annotations

from ai8xtools.checkpoint import write_checkpoint
from ai8xtools.commands.deliver import Folder, deliver
from ai8xtools.commands.following import deploy_it, written_for_cores
from ai8xtools.commands.q15.arguments import Q15Options
from ai8xtools.commands.q15.mcu import quantize_mcu
from ai8xtools.commands.q15.mcu_arguments import McuOptions
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.quantization.integers import WIDE
from ai8xtools.quantization.q15.file import StoredNetwork, to_checkpoint
from ai8xtools.quantization.q15.formats import Guard, NoKernelError
from ai8xtools.quantization.q15.graph import Graph
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.reading import real_path, tables
from ai8xtools.software.profile import ANY
from ai8xtools.software.q15.build import need_of
from ai8xtools.software.q15.calls import Program, program
from ai8xtools.software.q15.emit import COLUMN_MAJOR, ROW_MAJOR, Sample, emit


def quantize_q15(options: Q15Options) -> int:
    """Write the project and print the report; return the exit status."""
    if options.is_checkpoint:
        refuse_overwriting([("OUTPUT", str(options.output))], (options.case.input,))
    else:
        _folder(options).check()
    from ai8xtools.commands.q15.network import read_case  # here: it needs torch
    from ai8xtools.commands.quantize.agreement import is_enough, refuse_low, warn
    from ai8xtools.quantization.q15.execute import execute, quantize_input
    from ai8xtools.quantization.q15.floating import compute, measure
    from ai8xtools.quantization.q15.network import quantize_network
    from ai8xtools.quantization.q15.report import HEADERS, ErrorSums, rows

    try:
        case = read_case(options.case)
        graph, samples = case.graph, case.samples
        if options.column_major:
            graph, samples = graph.transposed(), [part.swapaxes(2, 3) for part in samples]
        ranges = measure(graph, samples, options.percentile)
        network = quantize_network(
            graph, ranges.percentile, ranges.largest, options.bits, options.guard
        )
    except NoKernelError as refusal:
        if not options.is_usual:
            raise
        bits = min(options.bits, WIDE)
        print(f"No kernel of {options.bits} bits for all of it ({refusal.message}): it becomes "
              f"operators of {bits} bits in sums of 8 by 8")  # fmt: skip
        return quantize_mcu(McuOptions(options.case, str(options.output), options.least), bits)
    sums = ErrorSums(network)
    sample = None
    for part in samples:
        integers = quantize_input(network, part)
        maps = execute(network, integers)
        sums.add(compute(graph, part), maps)
        sample = sample or Sample(integers[0], maps[graph.output][0])
    assert sample is not None
    errors = sums.finished()
    refuse_low(errors.correlation, options.least, "floating point", options.case.input,
               "Train it with normalization")  # fmt: skip
    code = program(network)
    sizes = need_of(network, code, ANY)
    written = _write(options, network, code, sample, case.arch)
    table = tables.table(rows(network, errors), HEADERS)
    print(f"Calibrated with {errors.samples} samples of {case.dataset}:\n{table}")
    print(_summary(options, graph, errors.agreeing, errors.samples))
    if not is_enough(errors.correlation, errors.samples, options.case.input):
        warn(errors.correlation, options.case.input, "", "Train it with normalization.")
    if case.left:
        print(f"Left to the application: {', '.join(case.left)}")
    print(
        f"Memory: {sizes.arena:,} bytes of RAM, {sizes.weights:,} bytes of weights; "
        f"k of the input {network.fractions[0]}, of the output {network.fractions[graph.output]}"
    )
    print(written)
    return 0


def _write(
    options: Q15Options,
    network: QuantizedNetwork,
    code: Program,
    sample: Sample,
    arch: str | None,
) -> str:
    """Write the checkpoint or the project; return what was written."""
    if options.is_checkpoint:
        stored = StoredNetwork(network, sample.input, options.column_major)
        write_checkpoint(options.output, to_checkpoint(stored, arch))
        deploy_it(options.case.input, str(options.output), "MCU")
        return written_for_cores(str(options.output), "MCU or CMSIS-NN")
    order = COLUMN_MAJOR if options.column_major else ROW_MAJOR
    name = real_path(options.output).name
    files = emit(network, sample, name, options.command_line, options.core, order, code=code)
    return f"Wrote {deliver(files, _folder(options))}"


def _folder(options: Q15Options) -> Folder:
    return Folder(options.output, options.overwrite, (options.case.input,))


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
