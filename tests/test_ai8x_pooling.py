"""Maximum pooling without gradients computes what PyTorch's does."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ai8xtools.layers.pooling import pooled

LAST = {"memory_format": torch.channels_last}


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (2, 3), (28, 14)])
def test_pairs_are_pooled_as_in_torch(size: tuple[int, int]) -> None:
    pool = nn.MaxPool2d(2, 2)
    x = torch.randint(-128, 128, (3, 5, *size)).float().contiguous(**LAST)
    x[0, 0, 0, 0] = float("nan")
    found = pooled(pool, x)
    assert torch.equal(found.nan_to_num(999), pool(x).nan_to_num(999))
    assert found.is_contiguous(**LAST)


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool2d(3, 2), nn.MaxPool2d(2, 1), nn.MaxPool2d((2, 3), 2), nn.AvgPool2d(2, 2),
        nn.MaxPool2d(2, 2, dilation=2), nn.MaxPool2d(2, 2, padding=1),
        nn.MaxPool2d(2, 2, ceil_mode=True),
    ],
    ids=str,
)  # fmt: skip
def test_other_pooling_is_torchs(pool: nn.Module) -> None:
    x = torch.rand(2, 4, 9, 9).contiguous(**LAST)
    assert torch.equal(pooled(pool, x), pool(x))


def test_gradients_hooks_and_traces_see_the_module() -> None:
    pool = nn.MaxPool2d(2, 2)
    x = torch.zeros(1, 1, 2, 2).contiguous(**LAST).requires_grad_()
    pooled(pool, x).sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [1, 0, 0, 0]  # of equals the first, not shares of all
    traced = torch.jit.trace(lambda y: pooled(pool, y), x.detach())
    assert "max_pool2d" in str(traced.graph)
    seen = []
    pool.register_forward_hook(lambda *_: seen.append(1))
    pooled(pool, x.detach())
    assert seen == [1]


def test_only_pixels_in_order_are_pooled_without_places(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(nn.MaxPool2d, "forward", lambda _, x: asked.append(x.shape) or x)
    x = torch.rand(2, 3, 4, 4)
    narrow = (x[:, :, :1].contiguous(**LAST), x[..., :1].contiguous(**LAST))
    for data in (x.contiguous(**LAST), x, x[0], x.contiguous(**LAST)[:, :, :2], *narrow):
        pooled(nn.MaxPool2d(2, 2), data)
    assert asked == [(2, 3, 4, 4), (3, 4, 4), (2, 3, 2, 4), (2, 3, 1, 4), (2, 3, 4, 1)]
