"""Low-bit networks as torch modules: dense, depthwise convolutions, or windows in front.

The forward pass computes the integers of the engine; only the output has a learned factor.
Source: docs/low-bit.md, "Training" and "What is computed".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.quantization.lowbit import clip_scalar, clip_scalars
from ai8xtools.training.lowbit.activations import ActivationRule, requantize, whole
from ai8xtools.training.lowbit.normalized import ENGINE, activations, normalized
from ai8xtools.training.lowbit.weights import encoding_of, integer_weights, unit_of
from ai8xtools.values import frozen

IMAGE, WINDOW = 16, 8


@frozen
class LowBitArchitecture:
    """The structure of a low-bit network.

    `stem` is "dense", "cnn" (channels in `channels`) or "windows": `stride` 8, 4 or 2 gives 4, 9
    or 25 of them, whose layers have `window_widths`, `shared` or their own. `encodings` are those
    of the dense layers, whose widths are `widths` and at last `classes`. With a `norm` instead of
    the engine's scales dense layers are trained as others do; `per_output` gives each output of
    them a clip scalar of its own. `mask_groups` counts the groups of outputs of the first dense
    layer that pruning may take away. In training, `dropout` is the part of the inputs of dense
    layers, but the last one, that is zero.
    """

    stem: str
    widths: tuple[int, ...]
    classes: int
    encodings: tuple[str, ...]
    channels: int = 0
    stride: int = 8
    window_widths: tuple[int, ...] = ()
    shared: bool = True
    window_encoding: str = ""
    rule: ActivationRule = ActivationRule()
    window_rule: ActivationRule = ActivationRule()
    shared_scale: bool = False
    norm: str = ENGINE
    per_output: bool = False
    mask_groups: int = 0
    dropout: float = 0.0

    @property
    def windows(self) -> int:
        """Number of windows."""
        return ((IMAGE - WINDOW) // self.stride + 1) ** 2

    @property
    def fine(self) -> bool:
        """Whether NF levels are those for activations of four bits."""
        return self.rule.limit == 15


class LowBitWeights(nn.Module):
    """Weights of one encoding with their clip scalar `s`, or one for each output."""

    def __init__(
        self, shape: tuple[int, ...], encoding: str, fan_in: int, per_output: bool = False
    ) -> None:
        super().__init__()
        self.encoding = encoding_of(encoding)
        bound = (1 / fan_in) ** 0.5
        self.weight = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.s: Tensor
        self.register_buffer("s", torch.ones((shape[0], 1) if per_output else ()))

    def integers(self, fine: bool) -> Tensor:
        """Return the integers that the engine multiplies by."""
        return integer_weights(self.weight, self.s, self.encoding, fine)

    def update_clip(self, algorithm: str, scale: float) -> None:
        """Choose the clip scalar for the present weights."""
        weights = self.weight.detach().cpu().numpy().astype(np.float32)
        if self.s.ndim:
            scalars = clip_scalars(weights, self.encoding, algorithm, self.s.cpu().numpy(), scale)  # type: ignore[arg-type]
            self.s.copy_(torch.from_numpy(scalars).clamp(min=1e-5))
        else:
            one = clip_scalar(weights, self.encoding, algorithm, float(self.s), scale)  # type: ignore[arg-type]
            self.s.fill_(max(one, 1e-5))

    def scaled(self) -> Tensor:
        """Return the weights as the levels that they are rounded to."""
        return self.integers(False) * (self.s / unit_of(self.encoding, False))


class LowBitNetwork(nn.Module):
    """A network that takes codes [N, 256], whole numbers from -128 to 127, and gives logits."""

    def __init__(self, architecture: LowBitArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        one = architecture
        features = IMAGE * IMAGE
        if one.stem == "cnn":
            shape = (one.channels, 1, 3, 3)
            self.convs = nn.ModuleList(LowBitWeights(shape, "8bit", 9) for _ in range(3))
            features = 4 * one.channels
        elif one.stem == "windows":
            self.stem = nn.ModuleList(self._window_layers())
            features = one.windows * one.window_widths[-1]
        sizes = (features, *one.widths, one.classes)
        self.layers = nn.ModuleList(
            LowBitWeights((wide, narrow), encoding, narrow, one.per_output)
            for narrow, wide, encoding in zip(sizes[:-1], sizes[1:], one.encodings, strict=True)
        )
        self.gain = nn.Parameter(torch.zeros(()))
        if one.mask_groups:
            self.mask = nn.Parameter(torch.ones(one.mask_groups))

    def _window_layers(self) -> Iterator[LowBitWeights]:
        one = self.architecture
        sets = 1 if one.shared else one.windows
        sizes = (WINDOW * WINDOW, *one.window_widths)
        for narrow, wide in itertools.pairwise(sizes):
            yield LowBitWeights((sets, wide, narrow), one.window_encoding, narrow)

    def quantizers(self) -> Iterator[LowBitWeights]:
        """Yield all layers with weights, in the order of execution."""
        for module in self.modules():
            if isinstance(module, LowBitWeights):
                yield module

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits [N, classes]; their order is that of the engine's last sums."""
        one = self.architecture
        values = codes.float()
        if one.stem == "cnn":
            values = requantize(self._convolved(values), one.rule)
        elif one.stem == "windows":
            values = requantize(self._windowed(values), one.rule)
        if one.norm != ENGINE:
            return self._with_norms(values)
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, LowBitWeights)
            if place + 1 < len(self.layers):
                values = functional.dropout(values, one.dropout, self.training)
            sums = self._masked(functional.linear(values, layer.integers(one.fine)), place)
            if place + 1 < len(self.layers):
                values = requantize(sums, one.rule)
        last = self.layers[-1]
        assert isinstance(last, LowBitWeights)
        unit = (one.rule.limit + 1) * unit_of(last.encoding, one.fine)
        return sums * (torch.exp(self.gain) / unit)

    def _with_norms(self, values: Tensor) -> Tensor:
        """Return the logits of dense layers with norms in front of them."""
        values = values / 127
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, LowBitWeights)
            inputs = activations(
                normalized(values.relu() if place else values, self.architecture.norm)
            )
            values = self._masked(functional.linear(inputs, layer.scaled()), place)
        return values * torch.exp(self.gain)

    def _masked(self, sums: Tensor, place: int) -> Tensor:
        """Return sums [N, outputs] times the mask, which is that of the first dense layer."""
        groups = self.architecture.mask_groups
        if place or not groups:
            return sums
        return sums * self.mask.repeat_interleave(sums.shape[1] // groups)

    def prune(self, groups: int) -> None:
        """Take away the groups with the least mask; the mask of the others goes into the weights.

        From then on the mask is 0 or 1 and no longer trained.
        """
        first = self.layers[0]
        assert isinstance(first, LowBitWeights)
        with torch.no_grad():
            each = self.mask.repeat_interleave(len(first.weight) // len(self.mask))
            first.weight.mul_(each[:, None])
            weakest = self.mask.abs().argsort()[:groups]
            self.mask.fill_(1.0)
            self.mask[weakest] = 0.0
        self.mask.requires_grad_(False)

    def _convolved(self, values: Tensor) -> Tensor:
        """Return the pooled sums of the chain of convolutions, channel by channel.

        Weights are divided by the 16 that sums are: a power of two, so nothing is rounded. Pooling
        comes before the step to whole numbers, which keeps the order of values. Channels lie last
        in memory, which depthwise convolutions are fast with; on a GPU they lie first, and the
        picture is repeated: other kernels would not give whole numbers.
        """
        planes = values.reshape(-1, IMAGE, IMAGE, 1).permute(0, 3, 1, 2)
        if values.is_cuda:
            planes = planes.expand(-1, self.architecture.channels, -1, -1).contiguous()
        for place, layer in enumerate(self.convs):
            assert isinstance(layer, LowBitWeights)
            sums = functional.conv2d(planes, layer.integers(False) / 16, groups=planes.shape[1])
            planes = whole(functional.max_pool2d(sums, 2) if place else sums)
        return planes.flatten(1)

    def _windowed(self, values: Tensor) -> Tensor:
        """Return the sums of the last layer of the windows, window by window."""
        one = self.architecture
        pictures = values.reshape(-1, IMAGE, IMAGE)
        cut = pictures.unfold(1, WINDOW, one.stride).unfold(2, WINDOW, one.stride)
        tokens = cut.reshape(len(values), one.windows, WINDOW * WINDOW)
        for place, layer in enumerate(self.stem):
            assert isinstance(layer, LowBitWeights)
            weights = layer.integers(one.fine)
            if one.shared:
                sums = functional.linear(tokens, weights[0])
            else:
                sums = torch.einsum("nwi,woi->nwo", tokens, weights)
            if place + 1 < len(self.stem):
                group = one.windows if one.shared_scale else 1
                tokens = requantize(sums, one.window_rule, group)
        return sums.flatten(1)
