"""The weights of an ordinary PyTorch network fit the range of the chip.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from itertools import islice

from torch import nn

from ai8xtools.frontends.modules.plain.ranges import fit_ranges
from ai8xtools.training.data.batches import Data

_BATCHES = 8
"""Batches that tell how large the data becomes."""


def scaled(model: nn.Module, data: Data) -> str:
    """Scale the weights of an imported network by some data, and return a line about it.

    All processes of a run see the same data, that of validation or test.
    """
    batches = (data.validation or data.test).of_epoch(0)
    factors = fit_ranges(model, (inputs for inputs, _ in islice(batches, _BATCHES)))
    listed = ", ".join(f"{name} x{factor:.3g}" for name, factor in factors.items())
    return f"Results of layers are scaled to the range of the chip: {listed}"
