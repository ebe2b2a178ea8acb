"""Blocks of layers from which networks are made: Fire, residual bottlenecks, MBConv.

The names of their attributes decide the names in checkpoints. `add_layers` gives a network the
layers of a table. As with `ai8x`, call `ai8x.set_device` before making any.
Source: docs/layers.md, "Blocks".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import ai8x

Row = tuple[Any, ...]
"""(name, class in ai8x, input channels, output channels, kernel size, padding[, {keywords}])."""


def add_layers(network: nn.Module, rows: Iterable[Row], **common: Any) -> None:
    """Give `network` the layers of a table, in its order; their names become attributes.

    The keywords of a row win over `common`. Layers that pool do so by 2 with stride 2 unless a row
    says `pool_size` and `pool_stride`.
    """
    for name, kind, inputs, outputs, kernel, padding, *own in rows:
        keywords = {**common, **(own[0] if own else {})}
        layer = getattr(ai8x, kind)(inputs, outputs, kernel, padding=padding, **keywords)
        network.add_module(name, layer)


def with_inputs(rows: Sequence[Row], channels: int) -> tuple[Row, ...]:
    """Return the layers of a table, the first for so many input channels."""
    return ((*rows[0][:2], channels, *rows[0][3:]), *rows[1:])


def factory(
    network: Callable[..., nn.Module], *first: Any, **defaults: Any
) -> Callable[..., nn.Module]:
    """Return the function of a network that train.py calls; its keywords are the class's.

    `first` are arguments of the class that the function sets, `defaults` are its own defaults.
    """

    def make(pretrained: bool = False, **kwargs: Any) -> nn.Module:
        assert not pretrained, "there are no built-in weights"
        return network(*first, **{**defaults, **kwargs})

    return make


def records(dim: int, *names: str) -> list[dict[str, Any]]:
    """Return the list `models` that train.py reads: networks for inputs of `dim` dimensions."""
    return [{"name": name, "min_input": 1, "dim": dim} for name in names]


class Chain(nn.Module):
    """The layers of a table one behind the other, and `fc`, fully connected, with 32-bit results.

    `features` are the values that `fc` reads, `fc_bias` None is `bias`; `batchnorm` is that of the
    other layers.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        features: int,
        num_classes: int,
        *,
        bias: bool,
        fc_bias: bool | None = None,
        batchnorm: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        normalized = {} if batchnorm is None else {"batchnorm": batchnorm}
        add_layers(self, rows, bias=bias, **normalized, **kwargs)
        self.fc = ai8x.Linear(
            features, num_classes, bias=bias if fc_bias is None else fc_bias, wide=True, **kwargs
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        *layers, last = self.children()
        for layer in layers:
            x = layer(x)
        scores: Tensor = last(x.flatten(1))
        return scores


class Fire(nn.Module):
    """Squeeze to few channels, then expand them by 1x1 and 3x3 kernels side by side.

    Input [N, in_planes, H, W], output [N, expand1x1_planes + expand3x3_planes, H, W].
    """

    def __init__(
        self,
        in_planes: int,
        squeeze_planes: int,
        expand1x1_planes: int,
        expand3x3_planes: int,
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.squeeze_layer = ai8x.FusedConv2dReLU(in_planes, squeeze_planes, 1, bias=bias, **kwargs)
        self.expand1x1_layer = ai8x.FusedConv2dReLU(
            squeeze_planes, expand1x1_planes, 1, bias=bias, **kwargs
        )
        self.expand3x3_layer = ai8x.FusedConv2dReLU(
            squeeze_planes, expand3x3_planes, 3, padding=1, bias=bias, **kwargs
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the channels of both expansions, 1x1 first."""
        x = self.squeeze_layer(x)
        return torch.cat((self.expand1x1_layer(x), self.expand3x3_layer(x)), dim=1)


class _Bottleneck(nn.Module):
    """What both residual bottlenecks share: expansion by 1x1 kernels, and the way past the block.

    Input [N, in_channels, H, W], output [N, out_channels, H / stride, W / stride]. The input is
    added to the result where both have the same shape.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        expansion_factor: float,
        stride: int = 1,
        bias: bool = False,
        depthwise_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.hidden_channels = round(in_channels * expansion_factor)
        self.conv1: Any = ai8x.Empty()
        if self.hidden_channels != in_channels:
            self.conv1 = ai8x.FusedConv2dBNReLU(
                in_channels, self.hidden_channels, 1, bias=bias, **kwargs
            )
        self.adds = stride == 1 and in_channels == out_channels
        self._add_layers(out_channels, stride, bias, depthwise_bias, **kwargs)
        self.resid = ai8x.Add() if self.adds else ai8x.Empty()

    def _middle(
        self, convolution: str, outputs: int, stride: int, bias: bool, activation: str,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Return the 3x3 layer, which pools by `stride` first and normalizes if it has a bias."""
        pooling: dict[str, int] = {}
        if stride > 1:
            pooling = {"pool_size": stride, "pool_stride": stride}
        name = f"{'MaxPool' if pooling else ''}{convolution}{'BN' if bias else ''}{activation}"
        fused = "" if name == "Conv2d" else "Fused"
        make = getattr(ai8x, fused + name)
        return make(self.hidden_channels, outputs, 3, padding=1, bias=bias, **pooling, **kwargs)

    def _add_layers(
        self, outputs: int, stride: int, bias: bool, depthwise_bias: bool, **kwargs: Any
    ) -> None:
        """Add the layers behind the expansion."""
        raise NotImplementedError

    def _joined(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = self.resid(y, x) if self.adds else y
        return result


class ResidualBottleneck(_Bottleneck):
    """Expand by 1x1, filter each channel by 3x3, contract by 1x1; MAX78002 only.

    `bias` must be True, since the 1x1 layers are normalized; `depthwise_bias` gives the depthwise
    layer bias and normalization. With `stride` > 1 the depthwise layer pools by it first.
    """

    def _add_layers(
        self, outputs: int, stride: int, bias: bool, depthwise_bias: bool, **kwargs: Any
    ) -> None:
        self.conv2 = self._middle(
            "DepthwiseConv2d", self.hidden_channels, stride, depthwise_bias, "ReLU", **kwargs
        )
        self.conv3 = ai8x.FusedConv2dBN(self.hidden_channels, outputs, 1, bias=bias, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        return self._joined(x, self.conv3(self.conv2(self.conv1(x))))


class ConvResidualBottleneck(_Bottleneck):
    """Expand by 1x1, then contract by a full 3x3 convolution without activation.

    `bias` must be True where there is an expansion; `depthwise_bias` gives the 3x3 layer bias and
    normalization. With `stride` > 1 it pools by it first.
    """

    def _add_layers(
        self,
        outputs: int,
        stride: int,
        bias: bool,  # noqa: ARG002 - the only layer is the 3x3 one
        depthwise_bias: bool,
        **kwargs: Any,
    ) -> None:
        self.conv2 = self._middle("Conv2d", outputs, stride, depthwise_bias, "", **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        return self._joined(x, self.conv2(self.conv1(x)))


def bottleneck_rows(
    block: type[_Bottleneck],
    settings: Iterable[Sequence[int]],
    depthwise_bias: bool,
    reduced_depthwise_bias: bool = False,
    **kwargs: Any,
) -> nn.ModuleList:
    """Make rows of bottlenecks from `settings` [repeat, in, out, stride, factor].

    The first block of a row reads `in` channels and pools by `stride`, the others keep the shape.
    With `reduced_depthwise_bias` every second one of a row does without `depthwise_bias`.
    """
    rows = nn.ModuleList()
    for repeat, inputs, outputs, stride, factor in settings:
        first, other = (inputs, outputs, factor, stride), (outputs, outputs, factor, 1)
        blocks = nn.Sequential()
        for number in range(repeat):
            depthwise = depthwise_bias and not (reduced_depthwise_bias and number % 2)
            shape = other if number else first
            blocks.append(block(*shape, depthwise_bias=depthwise, **kwargs))
        rows.append(blocks)
    return rows


class MBConvBlock(nn.Module):
    """The inverted bottleneck of EfficientNetV2: expand, filter, contract; all normalized.

    `fused` filters while expanding, otherwise a depthwise layer does (MAX78002 only). `se_ratio`
    adds squeeze and excitation with `in_channels` * `se_ratio` channels, which needs a sigmoid and
    a product, hence is for floating point only. `stride` belongs to the k x k layer.

    Input [N, in_channels, H, W], output [N, out_channels, H', W']. `bias` must be True.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        bias: bool = False,
        se_ratio: float | None = None,
        expand_ratio: int = 1,
        fused: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        common = {"eps": 1e-3, "momentum": 0.01, "bias": bias, **kwargs}
        hidden = in_channels * expand_ratio
        wide = {"kernel_size": kernel_size, "stride": stride, "padding": (kernel_size - 1) // 2}
        self.expands, self.fused = expand_ratio != 1, fused
        if stride != 1 and fused and not self.expands:
            raise AssertionError(f"stride={stride}: a fused block without expansion has no k x k")
        self.squeezes = se_ratio is not None
        self.adds = stride == 1 and in_channels == out_channels
        if self.expands:
            shape = wide if fused else {"kernel_size": 1}
            self.expand_conv = ai8x.FusedConv2dBNReLU(in_channels, hidden, **shape, **common)
        if not fused:
            self.depthwise_conv = ai8x.FusedDepthwiseConv2dBNReLU(hidden, hidden, **wide, **common)
        if se_ratio is not None:
            few = max(1, int(in_channels * se_ratio))
            self.se_reduce = ai8x.FusedConv2dReLU(hidden, few, 1, bias=bias, **kwargs)
            self.se_expand = ai8x.Conv2d(few, hidden, 1, bias=bias, **kwargs)
        self.project_conv = ai8x.FusedConv2dBN(hidden, out_channels, 1, **common)
        self.resid = ai8x.Add() if self.adds else ai8x.Empty()

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        y = self.expand_conv(x) if self.expands else x
        if not self.fused:
            y = self.depthwise_conv(y)
        if self.squeezes:
            means = y.mean(dim=(2, 3), keepdim=True)
            y = y * torch.sigmoid(self.se_expand(self.se_reduce(means)))
        y = self.project_conv(y)
        result: Tensor = self.resid(y, x) if self.adds else y
        return result
