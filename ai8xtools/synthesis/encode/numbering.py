"""Numbers of the hardware layers: repetitions and inserted layers shift them.

MAX78002 needs its average-pooling accumulators reset after an element-wise layer; a small layer is
inserted for that.
Source: docs/hardware/execution.md, "Order of layers" and "Average pooling after an element-wise
layer".
"""

from __future__ import annotations

from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.values import frozen
from device import Chip


@frozen
class Numbering:
    """Hardware layer numbers of a network that is configured `repeat` times."""

    network: Network
    repeat: int
    resets: frozenset[int]

    @classmethod
    def of(cls, network: Network, chip: Chip, repeat: int) -> Numbering:
        """Find the layers that need a reset layer in front."""
        resets = set()
        for layer in network.executed():
            previous = network.predecessor(layer)
            combined = previous is not None and previous.operands > 1
            if chip.needs_average_reset and layer.pooling.average and combined:
                resets.add(layer.index)
        return cls(network, repeat, frozenset(resets))

    def inserted(self, index: int) -> int:
        """Return the number of layers inserted at or before a layer."""
        return sum(reset <= index for reset in self.resets)

    def number(self, layer: Layer, repetition: int = 0) -> int:
        """Return the hardware number of a layer."""
        count = self.count // self.repeat
        return repetition * count + layer.index + self.inserted(layer.index)

    @property
    def count(self) -> int:
        """Hardware layers of all repetitions."""
        return self.repeat * (len(self.network.layers) + len(self.resets))

    @property
    def first(self) -> int:
        """Hardware number at which execution begins."""
        return self.number(self.network.first)

    @property
    def last(self) -> int:
        """What the layer counter is compared with."""
        return self.repeat * (self.network.order[-1] + len(self.resets))
