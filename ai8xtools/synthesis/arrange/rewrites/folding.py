"""A sample that is flattened at once has more channels of fewer pixels.

A layer reads each pixel of what it flattens as a pass of its own, of which there are 256. The order
of the values does not change: it is that of the sample as a row of numbers.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

import math
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.arrange.tensors import last_reader
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import NETWORK_INPUT, Network
from device.channels import MAX_FLATTENED_PIXELS
from device.chip import PROCESSORS


def folded(network: Network, fixed: Layout) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network whose sample has as few pixels as a pass of channels allows."""
    first = network.first
    rows, columns = first.in_dim
    alone = not last_reader(network, NETWORK_INPUT)  # the first layer
    plain = first.flatten and first.pooled_dim == first.in_dim and not first.combination
    open_ = fixed.layers[first.index] == LayerLayout()
    if not (alone and plain and open_) or rows * columns <= MAX_FLATTENED_PIXELS:
        return network, ()
    total = first.in_channels * rows * columns
    channels = max(n for n in range(1, PROCESSORS + 1) if total % n == 0)
    pixels = total // channels
    if pixels > MAX_FLATTENED_PIXELS:
        return network, ()
    across = max(n for n in range(1, math.isqrt(pixels) + 1) if pixels % n == 0)
    dim = pixels // across, across
    taken = "x".join(map(str, (first.in_channels, rows, columns)))
    notice = first.diagnostic(
        "N429",
        f"the sample {taken} is loaded as {channels}x{dim[0]}x{dim[1]}, in the same order of "
        f"values: only {MAX_FLATTENED_PIXELS} pixels can be flattened",
        "flatten",
        severity=Severity.NOTICE,
    )
    changed = replace(first, in_channels=channels, in_dim=dim, pooled_dim=dim)
    layers = tuple(changed if x is first else x for x in network.layers)
    sample = network.sample.reshape(channels, *dim)
    return replace(network, layers=layers, sample=sample, folded=True), (notice,)
