"""Second stage: a description, weights, a sample and a chip become a `Network`.

Channels, sizes, output maps and shifts are inferred here; afterwards nothing is a default any more.
Source: docs/network-description.md, "What follows from other keys"; docs/writing-a-network.md,
"Files of samples and weights".
"""

from ai8xtools.synthesis.resolve.network import (
    Parts,
    build_layers,
    gather,
    layout_of,
    network_of,
    resolve,
)

__all__ = ["Parts", "build_layers", "gather", "layout_of", "network_of", "resolve"]
