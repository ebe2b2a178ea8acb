"""Random layers of ai8x.py, described apart from it, so that others can compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from hypothesis import strategies as st

import ai8x

KINDS = ("Conv2d", "Conv1d", "ConvTranspose2d", "Linear")


@dataclass(frozen=True)
class RandomLayer:
    """What a layer computes, and the size of its input; sizes are of one or two dimensions."""

    kind: str
    inputs: int
    outputs: int
    size: tuple[int, ...]
    kernel: int = 1
    padding: int = 0
    dilation: int = 1
    stride: int = 1
    groups: int = 1
    bias: bool = True
    pooling: str | None = None
    pool_size: tuple[int, ...] = ()
    pool_stride: int = 1
    pool_dilation: int = 1
    activation: str | None = None
    wide: bool = False
    batchnorm: str | None = None
    bits: int = 8
    quantile: float = 1.0
    die: int = 85
    round_avg: bool = False
    seed: int = 0

    def set_device(self, simulate: bool) -> None:
        ai8x.set_device(self.die, simulate, self.round_avg, verbose=False)

    def make(self) -> Any:
        """Return the layer in the arithmetic of the chosen device, with PyTorch's parameters."""
        torch.manual_seed(self.seed)
        if self.kind == "Linear":
            return ai8x.Linear(
                self.inputs, self.outputs, bias=self.bias, activation=self.activation,
                wide=self.wide,
            )  # fmt: skip
        more: dict[str, Any] = {}
        if self.pooling:
            size = self.pool_size if self.kind != "Conv1d" else self.pool_size[0]
            more = {"pool_size": size, "pool_stride": self.pool_stride}
            more |= {"pool_dilation": self.pool_dilation}
        if self.kind != "Conv1d":
            more["op"] = self.kind
        kind = ai8x.Conv1d if self.kind == "Conv1d" else ai8x.Conv2d
        return kind(
            self.inputs, self.outputs, self.kernel, pooling=self.pooling, padding=self.padding,
            dilation=self.dilation, stride=self.stride, groups=self.groups, bias=self.bias,
            activation=self.activation, wide=self.wide, batchnorm=self.batchnorm, **more,
        )  # fmt: skip

    def integers(self, batch: int = 2) -> torch.Tensor:
        """Return input as the accelerator takes it."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (batch, self.inputs, *self.size)
        return torch.randint(-128, 128, shape, generator=generator).float()


@st.composite
def random_layers(
    draw: st.DrawFn,
    kinds: Sequence[str] = KINDS,
    activations: Sequence[str | None] = (None, "ReLU", "Abs"),
    batchnorm: bool = False,
) -> RandomLayer:
    """Draw a layer that is legal on its chip."""
    kind, die = draw(st.sampled_from(kinds)), draw(st.sampled_from([85, 87]))
    channels = st.integers(1, 6)
    dimensions = {"Linear": 0, "Conv1d": 1}.get(kind, 2)
    size = tuple(draw(st.integers(6, 12)) for _ in range(dimensions))
    wide = draw(st.integers(0, 3)) == 0
    layer = RandomLayer(
        kind, draw(channels), draw(channels), size,
        bias=draw(st.booleans()),
        activation=None if wide else draw(st.sampled_from(activations)),
        wide=wide,
        bits=draw(st.sampled_from([1, 2, 4, 8, 8])),
        quantile=draw(st.sampled_from([1.0, 1.0, 0.9931, 0.61])),
        die=die,
        round_avg=draw(st.booleans()),
        seed=draw(st.integers(0, 1 << 16)),
    )  # fmt: skip
    if kind == "Linear":
        return replace(layer, inputs=draw(st.integers(1, 60)))
    layer = draw(_pooled(layer))
    layer = draw(_with_kernel(layer))
    if batchnorm and layer.bias:
        layer = replace(layer, batchnorm=draw(st.sampled_from([None, "Affine", "NoAffine"])))
    return layer


@st.composite
def _pooled(draw: st.DrawFn, layer: RandomLayer) -> RandomLayer:
    """Put pooling in front, now and then."""
    pooling = draw(st.sampled_from([None, "Max", "Avg"]))
    if pooling is None:
        return layer
    sides = [draw(st.integers(1, 3)) for _ in layer.size]
    newer = layer.die == 87 and pooling == "Max"
    return replace(
        layer,
        pooling=pooling,
        pool_size=tuple(sides),
        pool_stride=draw(st.integers(1, 3)),
        pool_dilation=draw(st.integers(1, 2)) if newer else 1,
    )


@st.composite
def _with_kernel(draw: st.DrawFn, layer: RandomLayer) -> RandomLayer:
    """Choose kernel, padding, dilation, stride and groups that leave something."""
    layer = replace(layer, padding=draw(st.integers(0, 2)))
    if layer.kind == "Conv1d":
        kernel = draw(st.integers(1, 9))
        most = 8 // (kernel - 1) if kernel > 1 else 3
        layer = replace(layer, kernel=kernel, dilation=draw(st.integers(1, most)))
    elif layer.kind == "Conv2d":
        strides = (1,) if layer.pooling else (1, 1, 2, 3)
        layer = replace(
            layer, kernel=draw(st.sampled_from([1, 3])), stride=draw(st.sampled_from(strides))
        )
    else:
        layer = replace(layer, kernel=3, stride=2)
    if layer.die == 87 and draw(st.booleans()):
        layer = replace(layer, groups=layer.inputs, outputs=layer.inputs)
    least = 1 + (layer.kernel - 1) * layer.dilation - 2 * layer.padding
    needed = max(least, 1 if layer.kind != "ConvTranspose2d" else 2)
    taps = layer.pool_size or tuple(1 for _ in layer.size)
    enlarged = tuple(
        max(n, (t - 1) * layer.pool_dilation + 1 + (needed - 1) * layer.pool_stride)
        for n, t in zip(layer.size, taps, strict=True)
    )
    return replace(layer, size=enlarged)
