"""What quantization did to a network: formats of all layers, errors, agreement of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ai8xtools.quantization.formats import Float64s, Int64s
from ai8xtools.quantization.q15.graph import Weighted
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.values import frozen

HEADERS = ("layer", "k input", "k weights", "k bias", "k output", "bias <<", "output >>", "g",
           "bound / 2^31", "SQNR/dB")  # fmt: skip


_STILL = 1e-12
"""Of the energy of results: what they vary by, if they do not change."""


@frozen
class Errors:
    """Energies of maps and of their errors, how often the largest result is the same one, and the
    correlation of results, 1 where they do not change.
    """

    signal: tuple[float, ...]
    noise: tuple[float, ...]
    agreeing: int
    samples: int
    correlation: float

    def sqnr_db(self, tensor: int) -> float:
        """Return the energy of a map over that of its errors in decibels."""
        if not self.noise[tensor]:
            return math.inf
        if not self.signal[tensor]:
            return -math.inf
        return 10 * math.log10(self.signal[tensor] / self.noise[tensor])


class ErrorSums:
    """Adds up the errors of batches."""

    def __init__(self, network: QuantizedNetwork) -> None:
        self._network = network
        self._signal = [0.0] * len(network.graph.shapes)
        self._noise = [0.0] * len(network.graph.shapes)
        self._agreeing = self._samples = 0
        self._moments = np.zeros((3, 3))

    def add(self, exact: Sequence[Float64s], results: Mapping[int, Int64s]) -> None:
        """Add a batch: all maps in floating point [N, C, H, W], in integers [N, H, W, C]."""
        for tensor, integers in results.items():
            expected = exact[tensor]
            values = np.ldexp(integers.astype(np.float64), -self._network.fractions[tensor])
            errors = values.transpose(0, 3, 1, 2) - expected
            self._signal[tensor] += float((expected**2).sum())
            self._noise[tensor] += float((errors**2).sum())
        output = self._network.graph.output
        expected = exact[output].transpose(0, 2, 3, 1).reshape(len(exact[output]), -1)
        integers = results[output].reshape(len(expected), -1)
        values = np.ldexp(integers.astype(np.float64), -self._network.fractions[output])
        rows = np.stack([np.ones(values.size), expected.ravel(), values.ravel()])
        self._moments += rows @ rows.T
        self._agreeing += int((expected.argmax(1) == integers.argmax(1)).sum())
        self._samples += len(expected)

    def finished(self) -> Errors:
        """Return the errors of all batches."""
        (count, *sums), products = self._moments[0], self._moments[1:, 1:]
        covariance = products - np.outer(sums, sums) / max(count, 1)
        exact, ours = covariance.diagonal() > _STILL * products.diagonal()
        spread = math.sqrt(abs(covariance[0, 0] * covariance[1, 1])) if exact and ours else 1.0
        correlation = float(covariance[0, 1]) / spread if exact else 1.0
        return Errors(tuple(self._signal), tuple(self._noise), self._agreeing, self._samples,
                      correlation)  # fmt: skip


def rows(network: QuantizedNetwork, errors: Errors) -> list[tuple[object, ...]]:
    """Return a row of `HEADERS` for each weighted step; errors are those behind its activation."""
    table: list[tuple[object, ...]] = []
    for step in network.graph.steps:
        if isinstance(step, Weighted):
            formats = network.layers[step.target].formats
            sqnr = errors.sqnr_db(network.graph.activated(step.target))
            table.append((
                step.name, formats.kx, formats.kw, formats.kb, formats.ko, formats.bias_lshift,
                formats.out_rshift, formats.guard_bits, f"{formats.bound / 2**31:.3f}",
                f"{sqnr:.1f}",
            ))  # fmt: skip
    return table
