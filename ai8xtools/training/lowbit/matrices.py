"""Optimizers of low-bit networks: Muon for hidden matrices of weights, Adam for all else.

Muon: K. Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from ai8xtools.training.lowbit.network import LowBitNetwork
from ai8xtools.training.lowbit.recipe import Recipe

_MUON_LEAST = 64
"""Muon takes hidden weights with more elements than this."""


class _StackMuon(torch.optim.Muon):
    """Muon for weights [rows, columns] and for stacks of them [windows, rows, columns].

    Each matrix of a stack is a parameter of its own in the memory of the stack.
    """

    def __init__(self, stacks: list[nn.Parameter], rate: float, momentum: float) -> None:
        shaped = [stack.detach().reshape(-1, *stack.shape[-2:]) for stack in stacks]
        self._stacks = stacks
        self._matrices = [[nn.Parameter(one) for one in stack] for stack in shaped]
        super().__init__(
            [matrix for matrices in self._matrices for matrix in matrices],
            lr=rate, momentum=momentum, nesterov=True, weight_decay=0.0, ns_steps=5,
            adjust_lr_fn="original",
        )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> None:
        """Take a step with the gradients of the stacks."""
        for stack, matrices in zip(self._stacks, self._matrices, strict=True):
            assert stack.grad is not None
            gradients = stack.grad.reshape(-1, *stack.shape[-2:])
            for matrix, gradient in zip(matrices, gradients, strict=True):
                matrix.grad = gradient
        super().step(closure)


def optimizers_of(
    network: LowBitNetwork, recipe: Recipe
) -> list[tuple[torch.optim.Optimizer, float]]:
    """Return the optimizers of a network with their learning rates."""
    hidden = list(_hidden(network, recipe.muon_head)) if recipe.optimizer == "Muon" else []
    others = [p for p in network.parameters() if not any(p is q for q in hidden)]
    optimizers: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.Adam(others, lr=recipe.lr, fused=True), recipe.lr)
    ]
    if hidden:
        muon = _StackMuon(hidden, recipe.muon_lr, recipe.muon_momentum)
        optimizers.append((muon, recipe.muon_lr))
    return optimizers


def _hidden(network: LowBitNetwork, head: bool) -> Iterator[nn.Parameter]:
    """Yield the weights of dense layers and of windows, without those of the last layer."""
    last = network.layers[-1].weight
    for parameter in network.parameters():
        large = parameter.ndim in (2, 3) and parameter.numel() > _MUON_LEAST
        if large and (head or parameter is not last):
            assert isinstance(parameter, nn.Parameter)
            yield parameter
