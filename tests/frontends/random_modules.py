"""Random networks of ordinary torch modules, and what they compute with integers.

A network is a chain of blocks, each of one to three modules, with branches that are added or
joined; shapes shrink to single pixels. Some layers have weights that are all zero, nearly all
zero, of one magnitude, or all equal, with biases.

`Integers` is the second implementation: torch runs the network itself, module by module, in
float64, with the integers of a checkpoint in place of the weights; only the rounding behind each
layer is written here, from docs/hardware/arithmetic.md. Nothing of it knows layers of the chip.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

_OPERATORS = (nn.Conv1d, nn.Conv2d, nn.Linear)
_NORMALIZATIONS = (nn.BatchNorm1d, nn.BatchNorm2d)


class Branches(nn.Module):
    """Two branches whose results are added or joined; `skip` takes the data past the first."""

    def __init__(self, first: nn.Module, second: nn.Module, how: str) -> None:
        super().__init__()
        self.first, self.second, self.how = first, second, how

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x), self.second(x)
        return torch.cat((a, b), 1) if self.how == "join" else self.sum(a, b)

    def sum(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b


class Mean(nn.Module):
    """The mean over a map, as people write it."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return self.whole(x.mean(self.axes))

    def whole(self, x: Tensor) -> Tensor:
        return x


class Maximum(nn.Module):
    """The largest value of each channel."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        return x.amax(self.axes)


class Every(nn.Module):
    """Every n-th pixel."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        n = self.step
        return x[:, :, ::n, ::n] if x.dim() == 4 else x[:, :, ::n]


class Twice(nn.Module):
    """The same layer two times."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x))


class Drawing:
    """Draws a network for inputs of `shape` [C, H, W] or [C, L] from a seed."""

    def __init__(self, seed: int, depthwise: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.images = bool(self.random.random() < 0.65)
        self.depthwise = depthwise and self.images
        sizes = (1, 2, 3, 3, 4, 5, 6, 6, 7, 9, 12, 13, 14)
        axes = 2 if self.images else 1
        self.shape = (self._one(1, 2, 3, 5), *(self._one(*sizes) for _ in range(axes)))
        if self._one(*range(8)) == 0:  # windows may have up to 16 rows
            self.shape = (self.shape[0], self._one(20, 33, 40), *self.shape[2:])
        steps: list[nn.Module] = []
        at = self.shape
        for _ in range(self._one(1, 2, 2, 3, 4)):
            block = self._block(at)
            with torch.no_grad():
                at = tuple(block.eval()(torch.zeros(1, *at)).shape[1:])
            steps.append(block)
        self.network = nn.Sequential(*steps, *self._end(at)).eval()
        for module in self.network.modules():
            self._spoil(module)

    def _one(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def _block(self, at: tuple[int, ...]) -> nn.Module:
        kind = self._one(*["layer", "pool", "both"] * 2, "branches", "branches", "other")
        if kind == "other":
            return self._other(at)
        if kind == "pool":
            return self._pool(at)
        if kind == "both":
            layer = self._layer(at, at[0] if self._one(0, 1) else None)
            with torch.no_grad():
                between = tuple(layer.eval()(torch.zeros(1, *at)).shape[1:])
            return nn.Sequential(layer, self._pool(between))
        if kind == "branches":
            return self._branches(at)
        return self._layer(at)

    def _other(self, at: tuple[int, ...]) -> nn.Module:
        kind = self._one("normalization", "every", "twice")
        if kind == "normalization":
            return (nn.BatchNorm2d if self.images else nn.BatchNorm1d)(at[0])
        if kind == "every":
            return Every(self._one(2, 3))
        return Twice(self._layer(at, at[0], same=True))

    def _branches(self, at: tuple[int, ...]) -> nn.Module:
        how = self._one("add", "add", "join")
        channels = self._one(2, 4, 6) if self._one(0, 1) or how == "join" else at[0]
        first = self._layer(at, channels, same=True)
        second: nn.Module = self._layer(at, channels, same=True)
        if how == "add" and channels == at[0] and self._one(0, 1):
            second = nn.Identity()
        made: nn.Module = Branches(first, second, how)
        return nn.Sequential(made, nn.ReLU()) if self._one(0, 1) else made

    def _layer(
        self, at: tuple[int, ...], channels: int | None = None, same: bool = False
    ) -> nn.Module:
        """Return a convolution with what may follow it."""
        taken, smallest = at[0], min(at[1:])
        given = channels or self._one(1, 3, 4, 7, 8)
        bias = bool(self._one(0, 1, 1, 1))
        if self.images:
            kernel = self._one(1, 3) if same or smallest > 2 else 1
            padding = kernel // 2 if same else self._one(*range(kernel // 2 + 1))
            stride = 1 if same else self._one(1, 1, 1, 2, 3)
            groups = taken if self.depthwise and taken > 1 and self._one(0, 0, 1) else 1
            given = taken if groups > 1 and channels in (None, taken) else given
            groups = groups if given == taken else 1
            op: Any = nn.Conv2d(taken, given, kernel, stride, padding, groups=groups, bias=bias)
        else:
            kernel = self._one(*(k for k in (1, 3, 5) if same or k <= smallest))
            padding = kernel // 2 if same else self._one(*range(min(kernel // 2, 2) + 1))
            stride = 1 if same else self._one(1, 1, 1, 2, 3)
            dilation = self._one(1, 1, 2) if not same and 2 * kernel <= smallest else 1
            op = nn.Conv1d(taken, given, kernel, stride, padding, dilation, bias=bias)
        steps: list[nn.Module] = [op]
        if self._one(0, 0, 1):
            steps.append((nn.BatchNorm2d if self.images else nn.BatchNorm1d)(given))
        if self._one(0, 1, 1):
            steps.append(nn.ReLU())
        return nn.Sequential(*steps)

    def _pool(self, at: tuple[int, ...]) -> nn.Module:
        """Return a pooling: windows up to the map, strides beyond the rest of it."""
        sizes = at[1:]
        average = bool(self._one(0, 1))
        if self._one(0, 0, 0, 1):
            divisors = [[d for d in range(1, n + 1) if n % d == 0] for n in sizes]
            names = ("AdaptiveAvgPool" if average else "AdaptiveMaxPool") + f"{len(sizes)}d"
            out = tuple(self._one(*d) for d in divisors)
            made: nn.Module = getattr(nn, names)(out if self.images else out[0])
            return made
        window = [self._one(*range(1, min(n, 4) + 1)) for n in sizes]
        if self._one(0, 1, 1) or max(window) == 1:
            window = [min(2, min(sizes))] * len(sizes)
        if sizes[0] > 19 and self._one(0, 1):
            window[0] = self._one(8, 15, 18, 20, sizes[0])
        stride = self._one(None, None, None, 1, 2, 3, 4)
        if stride is None and len(set(window)) > 1:
            fits = [n - w < max(window) for n, w in zip(sizes, window, strict=True)]
            stride = None if all(fits) or self._one(0, 1) else self._one(1, 2)
        name = ("AvgPool" if average else "MaxPool") + f"{len(sizes)}d"
        size = tuple(window) if self.images else window[0]
        pool: nn.Module = getattr(nn, name)(size, stride)
        return pool

    def _end(self, at: tuple[int, ...]) -> list[nn.Module]:
        kind = self._one("linear", "linear", "linear", "mean", "convolution", "nothing")
        given = self._one(1, 3, 4)
        if kind == "mean":
            whole = Maximum if self._one(0, 0, 1) else Mean
            return [whole((2, 3) if self.images else (2,)), nn.Linear(at[0], given)]
        if kind == "convolution":
            conv = nn.Conv2d if self.images else nn.Conv1d
            return [conv(at[0], given, 1), nn.Flatten()]
        if kind == "linear":
            count = int(np.prod(at))
            return [nn.Flatten(), nn.Linear(count, given, bias=bool(self._one(0, 1, 1)))]
        conv = nn.Conv2d if self.images else nn.Conv1d
        return [conv(at[0], given, 1)]

    @torch.no_grad()
    def _spoil(self, module: nn.Module) -> None:
        """Draw parameters; some weights are zero, sparse, of one magnitude or equal."""
        generator = torch.Generator().manual_seed(int(self.random.integers(1 << 31)))
        if isinstance(module, _NORMALIZATIONS):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0, 0.3, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
            module.weight.uniform_(-1.5, 1.5, generator=generator)
            module.bias.normal_(0, 0.3, generator=generator)
        if not isinstance(module, _OPERATORS):
            return
        weight = module.weight
        weight.normal_(0, weight[0].numel() ** -0.5, generator=generator)
        if module.bias is not None:
            module.bias.normal_(0, 0.3, generator=generator)
        kind = self._one(*["plain"] * 6, "zero", "zero", "sparse", "signs", "equal", "channel")
        if kind == "zero":
            weight.zero_()
        elif kind == "sparse":
            weight.mul_(torch.rand(weight.shape, generator=generator) < 0.1)
        elif kind == "signs":
            weight.copy_(weight.sign() * 0.25)
        elif kind == "equal":
            weight.fill_(self._one(-0.25, -0.125, 0.5))
        elif kind == "channel":
            weight[0] = 0


class Integers:
    """A network with the integers of a checkpoint: `run` takes and gives integers."""

    def __init__(
        self, network: nn.Module, state: Mapping[str, NDArray[Any]], wide: frozenset[str]
    ) -> None:
        self._network = copy.deepcopy(network).double().eval()
        self._state, self._wide, self._sums = state, wide, 0
        for name, module in self._network.named_modules():
            self._replace(name, module)

    def _replace(self, name: str, module: Any) -> None:
        """Let a module compute with integers."""
        activation = f"{name.replace('.', '_')}_activation"
        if f"{name}.op.weight" in self._state:
            module.forward = self._operator(name, module)
        elif f"{activation}.op.weight" in self._state:  # behind a sum: a layer of its own
            ones = self._operator(activation, None)
            module.forward = lambda x: ones(x).clamp(min=0)
        elif isinstance(module, _NORMALIZATIONS):
            module.forward = lambda x: x  # part of the layer in front of it
        elif "Avg" in type(module).__name__:
            module.register_forward_hook(lambda _module, _taken, given: toward_zero(given))
        elif isinstance(module, Mean):
            module.whole = toward_zero
        elif isinstance(module, Branches):
            module.sum = self._sum

    def _sum(self, a: Tensor, b: Tensor) -> Tensor:
        """Return a sum; one that has a layer is that of the channels of both."""
        name = f"add_{self._sums}" if self._sums else "add"
        self._sums += 1
        if f"{name}.op.weight" not in self._state:
            return (a + b).clamp(-128, 127)
        data = a if torch.equal(a, b) else torch.cat((a, b), 1)
        result: Tensor = self._operator(name, None)(data)
        return result

    def _operator(self, name: str, module: Any) -> Any:
        """Return what a layer computes: sums, bias, shift, rounding, limits."""
        weight = torch.from_numpy(self._state[f"{name}.op.weight"]).double()
        bits = int(self._state[f"{name}.weight_bits"].item())
        shift = int(self._state[f"{name}.output_shift"].item()) + 8 - bits
        bias = self._state.get(f"{name}.op.bias")
        steps = None if bias is None else torch.from_numpy(bias).double() / 2.0 ** (bits - 1) * 128

        def compute(x: Tensor) -> Tensor:
            if isinstance(module, nn.Linear):
                sums = functional.linear(x, weight, steps)
            else:
                convolve: Any = functional.conv2d if weight.ndim == 4 else functional.conv1d
                settings = (
                    (1, 0, 1, x.shape[1] // weight.shape[1])
                    if (not isinstance(module, _OPERATORS))
                    else (module.stride, module.padding, module.dilation, module.groups)
                )
                sums = convolve(x, weight, steps, *settings)
            if name in self._wide:
                return sums
            return torch.floor(sums * 2.0 ** (shift - 7) + 0.5).clamp(-128, 127)

        return compute

    @torch.no_grad()
    def run(self, data: Tensor) -> NDArray[np.int64]:
        """Return the results for integers [N, C, ...]."""
        self._sums = 0
        found: NDArray[np.int64] = self._network(data.double()).numpy().astype(np.int64)
        return found


def toward_zero(mean: Tensor) -> Tensor:
    """Return averages of integers without their fractions."""
    return (mean + mean.sign() * 1e-9).trunc()
