"""Networks of several frames: features of the last ones stay in a rolling buffer."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor, nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.frontends.text import ModelDescription
from device import MAX78000


class Frames(nn.Module):
    """A layer for each frame, its features by another, and a layer over time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = ai8x.FusedConv2dReLU(3, 8, 3, padding=1, bias=False)
        self.features = ai8x.FusedMaxPoolConv2dReLU(8, 8, 1, pool_size=8, pool_stride=8, bias=False)
        self.series = ai8x.FusedConv1dReLU(8, 8, 3, bias=False)
        self.last = ai8x.Conv1d(8, 4, 3, bias=False, wide=True)

    def frame(self, x: Tensor) -> Tensor:
        return self.features(self.conv(x))

    def forward(self, x: Tensor) -> Tensor:
        batch, steps = x.shape[0], x.shape[1]
        y = self.frame(x.view(batch * steps, 3, 8, 8)).view(batch, steps, -1)
        return self.last(self.series(y.permute(0, 2, 1))).flatten(1)


class Untransposed(Frames):
    def forward(self, x: Tensor) -> Tensor:
        y = self.frame(x.flatten(0, 1)).flatten(1).unflatten(0, x.shape[:2])
        return self.last(self.series(y))


class Large(Frames):
    def __init__(self) -> None:
        super().__init__()
        self.features = ai8x.FusedMaxPoolConv2dReLU(8, 2, 1, pool_size=4, pool_stride=4, bias=False)


class Twice(Frames):
    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x.flatten(0, 1))
        a, b = (self.features(z).flatten(1).unflatten(0, x.shape[:2]) for z in (y, y))
        return self.last(self.series(a.transpose(1, 2)) + self.series(b.transpose(1, 2)))


def described(kind: type[nn.Module], frames: int | None = None) -> ModelDescription:
    ai8x.set_device(85, False, False, verbose=False)
    example = torch.zeros(1, 3, 8, 8)
    return describe(
        kind(), example, MAX78000, name="net", arch="net", dataset="some", frames=frames
    )


def test_the_least_number_of_frames_counts_unless_one_is_stated() -> None:
    for stated, count in ((None, 5), (7, 7)):
        found = yaml.safe_load(described(Frames, stated).text)
        assert found["data_buffer"] == [{"name": "history", "channels": 8, "dim": count}]
        keys: list[dict[str, Any]] = found["layers"]
        assert [layer["name"] for layer in keys] == ["conv", "move", "features", "series", "last"]
        assert (keys[1]["buffer_shift"], keys[1]["in_dim"]) == (1, count - 1)
        assert (keys[2]["buffer_insert"], keys[2]["in_sequences"]) == (1, "conv")
        assert (keys[3]["in_sequences"], keys[3]["in_dim"]) == ("history", count)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Untransposed, "unflatten: frames come before features here: transpose them"),
        (Large, "features of a frame are 2x2x2"),
        (Twice, "a second rolling buffer is not possible"),
    ],
)
def test_what_cannot_be_remembered_is_refused_by_name(kind: type[nn.Module], said: str) -> None:
    with pytest.raises(InputError) as refusal:
        described(kind)
    assert re.search(said, f"{refusal.value.message} {refusal.value.remedy}")
