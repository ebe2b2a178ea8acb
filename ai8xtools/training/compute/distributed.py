"""Training divided among processes, one for each CUDA device or machine, started by `torchrun`.

Each process computes a share of every batch; gradients are averaged (DistributedDataParallel), and
batch normalization sees the whole batch, so that the weights are those of a single process. Process
0, the leader, alone writes files and messages. All processes measure the whole validation set.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from ai8xtools.diagnostics.errors import InputError


@dataclass(frozen=True, slots=True)
class Share:
    """The rank of this process and the number of processes; `device` is its rank on the machine."""

    rank: int = 0
    processes: int = 1
    device: int = 0

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    @property
    def divided(self) -> bool:
        """Whether there are other processes."""
        return self.processes > 1

    def of(self, indices: Tensor) -> Tensor:
        """Return this process's part of the samples [N] of a batch; all where N is too small."""
        if len(indices) < self.processes:
            return indices
        return indices.tensor_split(self.processes)[self.rank]

    def weight(self, divisor: Tensor, samples: int, device: torch.device) -> Tensor | float:
        """Return by how much this process's mean loss counts in the mean of all.

        `divisor` (scalar) is what the mean was divided by, 0 for a part without any object;
        `samples` stand in for it where all parts are so.
        """
        if not self.divided:
            return 1.0
        own = torch.stack([divisor.cpu(), torch.tensor(float(samples))]).to(device)
        every = own.clone()
        distributed.all_reduce(every)
        shares = own / every.clamp(min=1e-30) * self.processes
        return torch.where(every[0] > 0, *shares)

    def mean(self, losses: Mapping[str, Tensor], weight: Tensor | float) -> dict[str, Tensor]:
        """Return the weighted means of losses (scalars) over all processes."""
        if not self.divided:
            return {name: loss.detach() for name, loss in losses.items()}
        stacked = torch.stack([loss.detach() for loss in losses.values()]) * weight
        distributed.all_reduce(stacked)
        return dict(zip(losses, stacked / self.processes, strict=True))

    def agree(self, value: Any) -> Any:
        """Return the leader's value to all processes."""
        if not self.divided:
            return value
        values = [value]
        distributed.broadcast_object_list(values)
        return values[0]

    def together(self, values: list[Any]) -> list[Any]:
        """Return the values of all processes, in the order of the processes."""
        if not self.divided:
            return values
        every: list[list[Any]] = [[] for _ in range(self.processes)]
        distributed.all_gather_object(every, values)
        return [value for part in every for value in part]

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """Let the leader run first, so that the others find what it has downloaded or written."""
        if self.divided and not self.leads:
            distributed.barrier()
        yield
        if self.divided and self.leads:
            distributed.barrier()


UNDIVIDED = Share()


def share_of_process() -> Share:
    """Return the share that `torchrun` has given this process; everything without it."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if any(name not in os.environ for name in names):
        return UNDIVIDED
    try:
        return Share(*(int(os.environ[name]) for name in names))
    except ValueError as exc:
        raise InputError(
            "E658", f"one of {', '.join(names)} is not a number: {exc}", "environment",
            "Start with torchrun, or unset them.",
        ) from exc  # fmt: skip


@contextmanager
def connected(share: Share, device: torch.device) -> Iterator[None]:
    """Connect the processes for as long as the context lasts.

    Raises InputError when they cannot connect.
    """
    if not share.divided:
        yield
        return
    backend = "gloo" if device.type == "cpu" else "nccl"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        distributed.init_process_group(backend)
    except (RuntimeError, ValueError) as exc:
        raise InputError(
            "E697", f"the {share.processes} processes cannot connect: {exc}", "torchrun",
            "Start them with torchrun; compare --rdzv-endpoint on all machines.",
        ) from exc  # fmt: skip
    try:
        yield
    finally:
        distributed.destroy_process_group()


def together(model: nn.Module, device: torch.device) -> nn.Module:
    """Return a wrapper that runs `model` and averages its gradients over all processes."""
    ids = [device.index] if device.type == "cuda" else None
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    return DistributedDataParallel(model, device_ids=ids, find_unused_parameters=True)


def average_gradients(parameters: Iterator[Tensor], processes: int) -> None:
    """Average the gradients of parameters outside of the model, those of the criterion."""
    for parameter in parameters:
        if parameter.grad is not None:
            distributed.all_reduce(parameter.grad)
            parameter.grad /= processes


def normalize_together(model: nn.Module) -> None:
    """Let batch normalization of the model use the batches of all processes."""
    for module in model.modules():
        kind = _TOGETHER.get(type(module))
        if kind is not None:
            module.__class__ = kind


class _Sum(torch.autograd.Function):
    """The sum of the tensors of all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Return the sum."""
        total = x.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        """Return the sum of the gradients."""
        return _Sum.forward(_ctx, gradients[0])


def _sum(x: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(x)
    return total


class _Together(nn.modules.batchnorm._BatchNorm):
    """Batch normalization over the samples of all processes, on every kind of device."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize x [N, C, ...], in float32 also where convolutions use fewer bits."""
        if not self.training:
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return self._normalized(x.float()).to(x.dtype)

    def _normalized(self, x: Tensor) -> Tensor:
        dims = [dim for dim in range(x.ndim) if dim != 1]
        shape = [1, -1] + [1] * (x.ndim - 2)
        count = torch.tensor(float(x.numel() // x.shape[1]), device=x.device)
        distributed.all_reduce(count)
        mean = _sum(x.sum(dims)) / count
        centred = x - mean.view(shape)
        variance = _sum(centred.square().sum(dims)) / count
        with torch.no_grad():
            self._keep(mean, variance * count / (count - 1))
        y = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is None:
            return y
        return y * self.weight.view(shape) + self.bias.view(shape)

    def _keep(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running mean and the running unbiased variance."""
        if self.running_mean is None or self.running_var is None:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
        rate = self.momentum
        if rate is None:
            assert self.num_batches_tracked is not None
            rate = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, rate)
        self.running_var.lerp_(variance, rate)


class _BatchNorm1d(_Together, nn.BatchNorm1d):
    pass


class _BatchNorm2d(_Together, nn.BatchNorm2d):
    pass


_TOGETHER: dict[type, type] = {nn.BatchNorm1d: _BatchNorm1d, nn.BatchNorm2d: _BatchNorm2d}
