"""Extreme inputs: no sum of a guarded network leaves 32 bits (`make measure WHAT=qformat-guard`).

Every weighted layer gets extreme inputs of its own, not only those that the layers before it can
make: random ones, and for each filter those whose signs are those of its weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from ai8xtools.quantization.formats import Int64s, limits
from ai8xtools.quantization.q15.execute import weighted_sums
from ai8xtools.quantization.q15.floating import measure
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder, Weighted
from ai8xtools.quantization.q15.network import QuantizedNetwork, quantize_network

_BATCH = 25
_RANDOM = np.random.default_rng(7)


def largest_sums(network: QuantizedNetwork, count: int) -> Iterator[tuple[str, int]]:
    """Yield each weighted step with the largest magnitude of its sums in `count` inputs."""
    for step in network.graph.steps:
        if not isinstance(step, Weighted):
            continue
        layer = network.layers[step.target]
        largest = 0
        for first in range(0, count, _BATCH):
            data = _extremes(network, step, first, min(_BATCH, count - first))
            sums = weighted_sums(step, layer, data)
            largest = max(largest, int(sums.max()), -int(sums.min()) - 1)
        yield step.name, largest


def _extremes(network: QuantizedNetwork, step: Weighted, first: int, count: int) -> Int64s:
    """Return inputs of a step: every second one random, the others made for a filter."""
    channels, rows, columns = network.graph.shapes[step.source]
    ends = np.array(limits(network.bits))
    data = _RANDOM.choice(ends, (count, rows, columns, channels)).astype(np.int64)
    kernels = network.layers[step.target].weights
    for place in range(0, count, 2):
        kernel = kernels[(first + place) // 2 % len(kernels)]  # [row, column, channel]
        worst = np.where(kernel < 0, *(ends if place % 4 else ends[::-1]))
        part = data[place, : kernel.shape[0], : kernel.shape[1]]
        if step.groups > 1:
            part[:, :, (first + place) // 2 % channels] = worst[: len(part), : part.shape[1], 0]
        else:
            part[:] = worst[: len(part), : part.shape[1]]
    return data


def random_network(bits: int, seed: int) -> QuantizedNetwork:
    """Return a quantized network of four layers with random weights and samples."""
    random = np.random.default_rng(seed)
    channels = int(random.integers(1, 17))
    builder = GraphBuilder((channels, 12, 12))
    tensor = 0
    for number in range(3):
        filters, size = int(random.integers(1, 33)), int(random.choice([1, 3, 5]))
        weights = random.laplace(0, 2.0 ** random.integers(-12, 8), (filters, channels, size, size))
        offsets = random.normal(0, 2.0 ** random.integers(-8, 4), filters)
        tensor = builder.convolution(f"conv{number}", tensor, weights, offsets)
        tensor = builder.clip(f"relu{number}", tensor, 0, np.inf)
        channels = filters
    inputs = int(np.prod(builder.shape(tensor)))
    tensor = builder.linear("fc", tensor, random.normal(size=(10, inputs)), None)
    graph: Graph = builder.finished(tensor)
    ranges = measure(graph, [random.normal(size=(4, *graph.shapes[0]))]).largest
    return quantize_network(graph, ranges, ranges, bits, Guard.WORST)


def main() -> int:
    """Print the largest sums of some networks; the status is 1 if one leaves 32 bits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000, help="for each layer")
    parser.add_argument("--networks", type=int, default=5)
    args = parser.parse_args()
    bad = 0
    for seed in range(args.networks):
        for bits in (16, 8):
            found = [*largest_sums(random_network(bits, seed), args.inputs)]
            bad += sum(largest >= 1 << 31 for _, largest in found)
            shares = ", ".join(f"{name} {largest / 2**31:.3f}" for name, largest in found)
            print(f"network {seed}, {bits} bits, sums / 2^31: {shares}", flush=True)
    print(f"{bad} layers left 32 bits in {args.inputs} inputs each")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
