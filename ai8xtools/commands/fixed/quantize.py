"""quantize.py --device FIXED: calibrate, choose formats, write a container, report.

Source: docs/container.md, "Fixed-point weights".
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.fixed.arguments import FixedOptions
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.quantization.fixed.network import FixedNetwork, fix_network
from ai8xtools.quantization.fixed.ranges import Summary, summarize
from ai8xtools.quantization.formats import Float64s, sqnr_db
from ai8xtools.quantization.q15.graph import Graph, Weighted
from ai8xtools.reading import tables
from ai8xtools.software.container.cipher import NONCE_BYTES, read_key, tagged
from ai8xtools.software.container.execute import bytes_of, run_all
from ai8xtools.software.container.from_fixed import FixedLowering, fixed_input
from ai8xtools.software.container.pack import Seal, pack
from ai8xtools.software.container.records import Vectors
from ai8xtools.software.container.unpack import unpack
from ai8xtools.values import frozen

_HEADS = ("layer", "bits", "D", "weights", "mean", "variance", "SQNR/dB", "input", "format",
          "output", "format", "bias <<", "output >>", "output SQNR/dB")  # fmt: skip


def quantize_fixed(options: FixedOptions) -> int:
    """Write the container and print the report; return the exit status."""
    refuse_overwriting([("OUTPUT", options.output)], (options.case.input, options.key_file))
    key = None if options.key_file is None else read_key(options.key_file)
    from ai8xtools.commands.q15.network import read_case  # here: it needs torch

    case = read_case(options.case)
    ranges = map_ranges(case.graph, case.samples)
    network = fix_network(case.graph, ranges, options.rules)
    lowering = FixedLowering(network)
    errors = _errors(lowering, case.samples, options.report_samples)
    seal = None if key is None else Seal(key, os.urandom(NONCE_BYTES))
    blob = pack(lowering.container(errors.vectors, seal))
    if seal is not None:
        blob = tagged(blob, seal.key)
    unpack(blob)
    atomic.write_bytes(options.output, blob)
    rows = [_row(step, network, ranges, errors) for step in case.graph.steps
            if isinstance(step, Weighted)]  # fmt: skip
    samples = sum(map(len, case.samples))
    print(f"Calibrated with {samples} samples of {case.dataset}:")
    print(tables.table(rows, _HEADS))
    _summary(options, network, errors)
    if case.left:
        print(f"Left to the application: {', '.join(case.left)}")
    print(f"Wrote {options.output}: {len(blob):,} bytes")
    return 0


def map_ranges(graph: Graph, samples: Sequence[Float64s]) -> list[Summary | None]:
    """Return the statistics of all maps over all samples, None for unused maps.

    Raises InputError E740 for samples that are no finite numbers, that are all zero, or none.
    """
    from ai8xtools.quantization.q15.floating import check_samples, compute

    check_samples(samples)
    parts: list[list[tuple[int, Summary]]] = [[] for _ in graph.shapes]
    for part in samples:
        for number, values in enumerate(compute(graph, part)):
            if values.size:
                parts[number].append((values.size, summarize(values)))
    return [_together(summaries) if summaries else None for summaries in parts]


def _together(parts: Sequence[tuple[int, Summary]]) -> Summary:
    """Return the statistics of all numbers from those of parts."""
    counts = np.array([count for count, _ in parts], np.float64)
    means = np.array([one.mean for _, one in parts])
    variances = np.array([one.variance for _, one in parts])
    mean = float((counts * means).sum() / counts.sum())
    spread = variances + (means - mean) ** 2
    return Summary(
        min(one.low for _, one in parts),
        max(one.high for _, one in parts),
        mean,
        float((counts * spread).sum() / counts.sum()),
    )


@frozen
class Errors:
    """Errors of integers on some samples: ratios (dB) by map, and how many classes agree.

    `vectors` are the first sample and its result.
    """

    ratios: dict[int, float]
    agreeing: int
    samples: int
    vectors: Vectors


def _errors(lowering: FixedLowering, samples: Sequence[Float64s], most: int) -> Errors:
    from ai8xtools.quantization.q15.floating import compute

    network = lowering.network
    graph, container = network.graph, unpack(pack(lowering.container()))
    inputs, outputs = container.tensors[0], container.tensors[container.layers[-1].output]
    exact: dict[int, list[Float64s]] = {}
    computed: dict[int, list[Float64s]] = {}
    agreeing = count = 0
    vectors = None
    targets = [graph.activated(s.target) for s in graph.steps if isinstance(s, Weighted)]
    for sample in np.concatenate(samples)[:most]:
        maps = compute(graph, sample[None])
        integers = fixed_input(network, sample[None])[0]
        tensors = run_all(container, integers)
        for target in {*targets, graph.output}:
            values = tensors[lowering.numbers[target]].transpose(2, 0, 1)
            exact.setdefault(target, []).append(maps[target][0])
            computed.setdefault(target, []).append(np.ldexp(values, -network.fractions[target]))
        output = tensors[container.layers[-1].output]
        vectors = vectors or Vectors((bytes_of(inputs, integers),), (bytes_of(outputs, output),))
        same = exact[graph.output][-1].argmax() == computed[graph.output][-1].argmax()
        agreeing, count = agreeing + int(same), count + 1
    assert vectors is not None
    ratios = {t: sqnr_db(np.array(exact[t]), np.array(computed[t])) for t in exact}
    return Errors(ratios, agreeing, count, vectors)


def _row(
    step: Weighted, network: FixedNetwork, ranges: Sequence[Summary | None], errors: Errors
) -> list[str]:
    """Return what the report says of a layer."""
    layer, weights = network.layers[step.target], summarize(step.weights)
    target = network.graph.activated(step.target)
    bias_shift, out_shift = layer.stored_shifts
    return [
        step.name,
        str(layer.bits),
        f"{layer.by:g}",
        f"{weights.low:.3g}..{weights.high:.3g}",
        f"{weights.mean:.3g}",
        f"{weights.variance:.3g}",
        f"{sqnr_db(step.weights, layer.restored):.1f}",
        _shown(ranges[step.source]),
        _format(network, step.source),
        _shown(ranges[target]),
        _format(network, target),
        str(bias_shift),
        str(out_shift),
        f"{errors.ratios[target]:.1f}",
    ]


def _shown(summary: Summary | None) -> str:
    assert summary is not None
    return f"{summary.low:.3g}..{summary.high:.3g} ({summary.mean:.3g}, {summary.variance:.3g})"


def _format(network: FixedNetwork, tensor: int) -> str:
    fraction = network.fractions[tensor]
    return f"Q{network.data_bits - 1 - fraction}.{fraction}"


def _summary(options: FixedOptions, network: FixedNetwork, errors: Errors) -> None:
    lengths = network.lengths
    fewer = "fewer" if options.rules.few else "8"
    used = (
        "" if lengths.threshold is None else f" ({fewer} bits from {lengths.threshold:.2f} dB on)"
    )
    print(f"Weights: {lengths.size_bytes:,} bytes{used}; data of {network.data_bits} bits")
    share = 100 * errors.agreeing / errors.samples
    ratio = errors.ratios[network.graph.output]
    print(f"The largest result is that of floating point for {errors.agreeing} of "
          f"{errors.samples} samples ({share:.2f} %); output: {ratio:.1f} dB")  # fmt: skip
