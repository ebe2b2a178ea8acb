"""Slow checks of the stages against each other, for `--debug`.

A check raises AssertionError: what it finds is a defect of the tool, not of a network.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.simulate import Activations, LayerTrace
from ai8xtools.synthesis.simulate.passes import pass_sums
from device.channels import channels_per_pass
from device.chip import BIAS_UNIT

Check = Callable[[Network, Activations], None]


def sums_grow_to_the_accumulators(network: Network, activations: Activations) -> None:
    """The sums of the passes, one after the other, end where the simulation does."""
    for layer in map(network.layer, network.simulated):
        if layer.has_weights:
            _compare_sums(layer, activations.traces[layer.index])


def _compare_sums(layer: Layer, trace: LayerTrace) -> None:
    total = pass_sums(trace.value, layer, channels_per_pass(layer.in_channels))[-1].astype(np.int64)
    if layer.bias is not None:
        total += BIAS_UNIT * layer.bias[:, None, None]
    assert np.array_equal(total, trace.accumulator), f"{layer}: the sums of its passes differ"


CHECKS: tuple[Check, ...] = (sums_grow_to_the_accumulators,)


def cross_check(network: Network, activations: Activations) -> None:
    """Run all checks; the simulation must have kept its traces."""
    for check in CHECKS:
        check(network, activations)
