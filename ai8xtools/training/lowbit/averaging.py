"""The moving average of the weights of a training.

B. T. Polyak and A. B. Juditsky, Acceleration of stochastic approximation by averaging, 1992; here
with weights that fall exponentially.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import copy

import torch

from ai8xtools.training.lowbit.network import LowBitNetwork


class WeightAverage:
    """A network whose weights follow those of one in training.

    After each step they are `factor` times what they were plus the rest times those of the
    training; the mean of all steps as long as there are few of them.
    """

    def __init__(self, network: LowBitNetwork, factor: float) -> None:
        self.network = copy.deepcopy(network)
        self._trained, self._factor, self._steps = network, factor, 0

    def restart(self) -> None:
        """Forget all steps up to now."""
        self._steps = 0

    def step(self) -> None:
        """Take the weights after a step into the average."""
        part = 1 - min(self._factor, self._steps / (self._steps + 1))
        self._steps += 1
        pairs = zip(self.network.parameters(), self._trained.parameters(), strict=True)
        with torch.no_grad():
            for averaged, trained in pairs:
                averaged.lerp_(trained, part)

    def take_clips(self) -> None:
        """Take the clip scalars of the training."""
        pairs = zip(self.network.quantizers(), self._trained.quantizers(), strict=True)
        for averaged, trained in pairs:
            averaged.s.copy_(trained.s)
