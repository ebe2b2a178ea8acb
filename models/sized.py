"""Networks of any size for the user's own data; --model auto picks the widest one that fits.

`sized2d_W` is for pictures, `sized1d_W` for sounds, `sizedseries_W` for time series, `sizedrow_W`
for rows of numbers, `sizedmasks_W` for the class of each pixel of a picture, `sizedboxes_W` for
objects in it, `sizedresidual_W` for finding rows and series unlike those of training; W is the
number of channels of their first layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory
from models.ai85tinierssd import CONV, POOL, TinierSSD
from models.ai85unetsmall import AI85UNet

Maker = Callable[..., nn.Module]

_MOST_FEATURES = 1024
"""Inputs of a fully connected layer."""
_CODE = 8
_LAST_PIXELS = 16
_WIDEST = 64
WIDTHS = (32, 16, 8)
SERIES_WIDTHS = (64, *WIDTHS)
MASK_WIDTHS = (16, 8)
_SERIES_KERNELS = (9, 5, 3)
_MOST_STEPS = 256
"""Longer maps are pooled in front of a convolution."""
_MOST_POOLED = 16
_LARGEST_MAP = 16
"""Rows or columns of the map that a detector looks at first."""
_MULTIPLE = 8
"""Sides of pictures that are halved three times."""


class Sized2d(nn.Module):
    """Convolutions that double their channels, halving the picture, and a fully connected layer."""

    def __init__(
        self,
        width: int = 32,
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),
        **kwargs: Any,
    ) -> None:
        super().__init__()
        kwargs |= {"bias": True}
        rows, columns = dimensions
        layers = [ai8x.FusedConv2dBNReLU(num_channels, width, 3, padding=1, **kwargs)]
        while rows * columns > _LAST_PIXELS:
            if min(rows, columns) < 2:
                raise ValueError(f"pictures of {dimensions[0]}x{dimensions[1]} are too narrow")
            rows, columns = rows // 2, columns // 2
            wider = min(2 * width, _WIDEST)
            layers.append(ai8x.FusedMaxPoolConv2dBNReLU(width, wider, 3, padding=1, **kwargs))
            width = wider
        self.features = nn.Sequential(*layers)
        self.fc = ai8x.Linear(width * rows * columns, num_classes, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.fc(self.features(x).flatten(1))


class Sized1d(nn.Module):
    """The same over time; the first layer mixes the channels of each moment."""

    def __init__(
        self,
        width: int = 32,
        num_classes: int = 10,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__()
        kwargs |= {"bias": True}
        length = dimensions[0]
        layers = [ai8x.FusedConv1dBNReLU(num_channels, width, 1, **kwargs)]
        while length > _LAST_PIXELS // 2:
            length //= 2
            wider = min(2 * width, _WIDEST)
            layers.append(ai8x.FusedMaxPoolConv1dBNReLU(width, wider, 3, padding=1, **kwargs))
            width = wider
        self.features = nn.Sequential(*layers)
        self.fc = ai8x.Linear(width * length, num_classes, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.fc(self.features(x).flatten(1))


class SizedSeries(nn.Module):
    """Convolutions of falling width, the mean over time, and a fully connected layer.

    What is found may be anywhere in the series.
    """

    def __init__(
        self,
        width: int = 64,
        num_classes: int = 10,
        num_channels: int = 1,
        dimensions: tuple[int, int] = (128, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__()
        kwargs |= {"bias": True}
        steps, channels = dimensions[0], num_channels
        layers: list[nn.Module] = []
        for widest in _SERIES_KERNELS:
            kernel = min(widest, max(1, steps - 1 + steps % 2))
            padding = min(2, kernel // 2) if channels <= _WIDEST else 0
            if layers and steps > _MOST_STEPS:
                steps //= 2
                layer = ai8x.FusedMaxPoolConv1dBNReLU
            else:
                layer = ai8x.FusedConv1dBNReLU
            steps += 2 * padding - kernel + 1
            layers.append(layer(channels, width, kernel, padding=padding, **kwargs))
            channels = width
        self.features = nn.Sequential(*layers)
        self.mean = nn.Sequential(*(ai8x.AvgPool1d(size, size) for size in _windows(steps)))
        self.fc = ai8x.Linear(width, num_classes, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.fc(self.mean(self.features(x)).flatten(1))


def _windows(steps: int) -> tuple[int, ...]:
    """Return the sizes of pools that turn a map into one step, and leave out the fewest of its
    last steps."""
    if steps <= _MOST_POOLED:
        return (steps,) if steps > 1 else ()
    sizes = [size for size in range(_MOST_POOLED, 1, -1) if steps // size <= _MOST_POOLED]
    chains = ((size, *_windows(steps // size)) for size in sizes or (_MOST_POOLED,))
    return max(chains, key=math.prod)


class SizedRow(nn.Module):
    """Three fully connected layers."""

    def __init__(
        self,
        width: int = 32,
        num_classes: int = 10,
        num_channels: int = 16,
        dimensions: tuple[int, int] = (1, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__()
        kwargs |= {"bias": True}
        inputs = num_channels * dimensions[0]
        if inputs > _MOST_FEATURES:
            raise ValueError(f"{inputs} numbers are more than the {_MOST_FEATURES} of a layer")
        self.fc1 = ai8x.FusedLinearReLU(inputs, 2 * width, **kwargs)
        self.fc2 = ai8x.FusedLinearReLU(2 * width, 2 * width, **kwargs)
        self.fc3 = ai8x.Linear(2 * width, num_classes, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return a score for each class."""
        return self.fc3(self.fc2(self.fc1(x.flatten(1))))


class SizedMasks(AI85UNet):
    """A U-Net; pictures need sides that are multiples of 8."""

    def __init__(
        self,
        width: int = 16,
        num_classes: int = 2,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (64, 64),
        **kwargs: Any,
    ) -> None:
        if any(side % _MULTIPLE for side in dimensions):
            rows, columns = dimensions
            raise ValueError(
                f"pictures of {columns}x{rows} have no sides that are multiples of {_MULTIPLE}"
            )
        widths = width, 2 * width, 4 * width, 4 * width, 16
        kwargs |= {"bias": True}
        super().__init__(widths, num_classes, num_channels, dimensions, **kwargs)


class SizedBoxes(TinierSSD):
    """A detector that looks at maps of up to 16, 8 and 2 pixels a side.

    Convolutions halve the picture and double their channels, up to 64, in front of the first map.
    """

    def __init__(
        self,
        width: int = 32,
        num_classes: int = 2,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (64, 64),
        aspect_ratios: Sequence[Sequence[float]] = 3 * ((1.0, 2.0, 0.5),),
        device: Any = "cpu",
        **kwargs: Any,
    ) -> None:
        side, channels = max(dimensions), num_channels
        layers: list[ai8x_blocks.Row] = []
        while not layers or side > _LARGEST_MAP:
            kind = POOL if layers else CONV
            side //= 2 if layers else 1
            layers.append((f"layer{len(layers)}", kind, channels, width, 3, 1))
            channels, width = width, min(2 * width, _WIDEST)
        layers.append(("deep", CONV, channels, width, 3, 1))
        layers.append(("small", CONV, width, 32, 3, 1))
        layers += [("medium", POOL, 32, 32, 3, 1), ("large", POOL, 32, 32, 3, 1)]
        self.base_layers = tuple(layers)
        self.sources = {"small": 0.2, "medium": 0.4, "conv12_2": 0.7}
        kwargs |= {"bias": True}
        super().__init__(
            num_classes, num_channels, dimensions=dimensions, aspect_ratios=aspect_ratios,
            device=device, **kwargs,
        )  # fmt: skip


class SizedResidual(nn.Module):
    """An autoencoder: what is left of a row of numbers without what their code tells."""

    def __init__(
        self,
        width: int = 32,
        num_classes: int = 2,
        num_channels: int = 16,
        dimensions: tuple[int, int] = (1, 1),
        **kwargs: Any,
    ) -> None:
        super().__init__()
        del num_classes
        kwargs |= {"bias": True}
        inputs = num_channels * dimensions[0]
        if inputs > _MOST_FEATURES:
            raise ValueError(f"{inputs} numbers are more than the {_MOST_FEATURES} of a layer")
        code = max(1, min(_CODE, inputs // 2))
        self.encoder1 = ai8x.FusedLinearReLU(inputs, 2 * width, **kwargs)
        self.encoder2 = ai8x.Linear(2 * width, code, **kwargs)
        self.decoder1 = ai8x.FusedLinearReLU(code, 2 * width, **kwargs)
        self.decoder2 = ai8x.Linear(2 * width, inputs, **kwargs | {"bias": False})
        self.residual = ai8x.Sub()

    def forward(self, x: Tensor) -> Tensor:
        """Return by how much each number differs from the expected one."""
        row = x.flatten(1)
        code = self.encoder2(self.encoder1(row))
        return self.residual(row, self.decoder2(self.decoder1(code)))


def _makers(kind: Maker, name: str, widths: Sequence[int] = WIDTHS) -> dict[str, Maker]:
    """Return functions by name, a width each."""
    return {f"{name}_{width}": factory(kind, width) for width in widths}


_MAKERS = {
    **_makers(Sized2d, "sized2d"),
    **_makers(Sized1d, "sized1d"),
    **_makers(SizedSeries, "sizedseries", SERIES_WIDTHS),
    **_makers(SizedRow, "sizedrow"),
    **_makers(SizedResidual, "sizedresidual"),
    **_makers(SizedBoxes, "sizedboxes"),
    **_makers(SizedMasks, "sizedmasks", MASK_WIDTHS),
}
globals().update(_MAKERS)
models = [
    {
        "name": name,
        "min_input": 1,
        "dim": 2 if name.startswith(("sized2d", "sizedboxes", "sizedmasks")) else 1,
    }
    for name in _MAKERS
]
