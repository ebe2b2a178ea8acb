"""Maximum pooling of pairs, faster where no gradient is needed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.layers.rounding import is_recorded


def pooled(pool: Any, x: Tensor) -> Tensor:
    """Return `pool(x)`.

    PyTorch's maximum pooling also finds the place of each maximum, which only gradients need. The
    maximum of the rows and then of the columns is the same value in two thirds of the time.
    """
    if not _is_of_pairs(pool) or not _is_plain(x) or pool._forward_hooks or pool._forward_pre_hooks:
        result: Tensor = pool(x)
        return result
    height, width = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2
    rows = torch.maximum(x[:, :, 0:height:2], x[:, :, 1:height:2])
    return torch.maximum(rows[..., 0:width:2], rows[..., 1:width:2])


def _is_of_pairs(pool: Any) -> bool:
    """Return whether a module takes the maximum of 2x2 pixels, each of them once."""
    if type(pool) is not nn.MaxPool2d:
        return False
    sizes = (2, (2, 2))
    others = (pool.padding, pool.dilation, pool.ceil_mode, pool.return_indices)
    return (
        pool.kernel_size in sizes and pool.stride in sizes and others == (0, 1, False, False)
    )  # fmt: skip


def _is_plain(x: Tensor) -> bool:
    """Return whether a tensor lies in the CPU's memory pixel by pixel, and nobody follows it."""
    followed = torch.is_grad_enabled() and x.requires_grad
    return (
        not (followed or is_recorded())
        and x.device.type == "cpu"
        and x.is_contiguous(memory_format=torch.channels_last)
        and min(x.shape[2:]) >= 2
    )
