"""A network, its layout and a chip looked at together: what `check`, `place` and `encode` read.

Nothing is decided here: everything follows from the three.
Source: docs/hardware/execution.md, "Quantities of a layer".
"""

from ai8xtools.synthesis.mapping.hardware import Hardware
from ai8xtools.synthesis.mapping.mapped import MappedLayer, MappedNetwork, map_layers, map_network

__all__ = ["Hardware", "MappedLayer", "MappedNetwork", "map_layers", "map_network"]
