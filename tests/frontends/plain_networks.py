"""Ordinary PyTorch networks, as their authors write them; nothing here knows ai8x."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResNet8(nn.Module):
    """The network for CIFAR-10 of MLPerf Tiny: 3x32x32 to 10."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.block1 = Block(16, 16, 1)
        self.block2 = Block(16, 32, 2)
        self.block3 = Block(32, 64, 2)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.block3(self.block2(self.block1(self.stem(x))))
        return self.fc(functional.avg_pool2d(x, 8).flatten(1))


class Block(nn.Module):
    def __init__(self, taken: int, given: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(taken, given, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(given)
        self.conv2 = nn.Conv2d(given, given, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(given)
        self.skip = nn.Conv2d(taken, given, 1, stride) if taken != given else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.skip(x))


class DsCnn(nn.Module):
    """Keyword spotting of MLPerf Tiny: 1x49x10 to 12; `first` is the kernel of its first layer."""

    def __init__(self, first: Any = (10, 4), channels: int = 64) -> None:
        super().__init__()
        padding = [k // 2 for k in first]
        self.first = nn.Conv2d(1, channels, first, stride=2, padding=padding)
        self.bn = nn.BatchNorm2d(channels)
        self.blocks = nn.Sequential(*(separable(channels, channels) for _ in range(4)))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(torch.relu(self.bn(self.first(x))))
        return self.fc(torch.flatten(self.pool(x), 1))


def separable(taken: int, given: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(taken, taken, 3, stride, 1, groups=taken, bias=False), nn.BatchNorm2d(taken),
        nn.ReLU(), nn.Conv2d(taken, given, 1, bias=False), nn.BatchNorm2d(given), nn.ReLU(),
    )  # fmt: skip


class MobileNet(nn.Module):
    """Visual wake words of MLPerf Tiny: MobileNet 0.25, 3x96x96 to 2."""

    def __init__(self, width: float = 0.25) -> None:
        super().__init__()
        rows = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
                (256, 512, 2), *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1)]  # fmt: skip
        first = int(32 * width)
        self.features = nn.Sequential(
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(),
            *(separable(int(a * width), int(b * width), s) for a, b, s in rows),
        )  # fmt: skip
        self.head = nn.Linear(int(1024 * width), 2)

    def forward(self, x: Tensor) -> Tensor:
        return functional.log_softmax(self.head(self.features(x).mean((2, 3))), 1)


class Autoencoder(nn.Module):
    """Anomaly detection of MLPerf Tiny: 640 numbers through a neck of 8."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
        steps: list[nn.Module] = []
        for taken, given in itertools.pairwise(sizes):
            steps += [nn.Linear(taken, given), nn.BatchNorm1d(given), nn.ReLU()]
        self.net = nn.Sequential(*steps[:-2])

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.flatten(1))


class Various(nn.Module):
    """Functions and methods in place of modules, joins, differences, pooling behind sums."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding="same")
        self.b = nn.Conv2d(8, 8, 1, stride=2)
        self.c = nn.Conv2d(8, 8, 3, padding=1)
        self.d = nn.Conv2d(16, 12, 3, padding=1)
        self.bn = nn.BatchNorm2d(12)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(12 * 4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(self.a(x), 2).relu()
        y = self.b(x)
        z = functional.avg_pool2d(self.c(x).abs(), 2)
        x = torch.cat([y - z, z], dim=1)
        x = functional.adaptive_max_pool2d(functional.relu(self.bn(self.d(x))), 2)
        return torch.softmax(self.fc(self.drop(x.view(x.size(0), -1))), dim=1)


class Series(nn.Module):
    """Convolutions along time: 8x64 to 4."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(8, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 8, 3, dilation=2), nn.ReLU(), nn.AvgPool1d(4), nn.Flatten(),
            nn.Linear(56, 4),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class Hourglass(nn.Module):
    """A transposed convolution and its concatenation with what lies before."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1)
        self.out = nn.Conv2d(11, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.up(torch.relu(self.down(x))))
        return self.out(torch.cat((x, y), 1))


class Digits(nn.Module):
    """A small network for the digits of scikit-learn: 1x8x8 to 10."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.same = nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.fc(torch.relu(self.same(x) + x).mean((2, 3)))


def Broad() -> nn.Sequential:
    """Padding of a series of more than 64 channels, which MAX78002 does not have: 80x16."""
    return nn.Sequential(nn.Conv1d(80, 8, 3, padding=2), nn.ReLU())


class Padded(nn.Module):
    """Pooling with padding behind activations, average pooling with padding, joins of one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.maximum = nn.MaxPool2d(3, 2, 1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.average = nn.AvgPool2d(3, 1, 1)
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maximum(torch.cat([self.conv(x).relu()], 1))
        return self.fc(self.average(self.second(x)).mean((2, 3)))


class Enlarging(nn.Module):
    """Enlarged in the two ways of U-Nets, a map of more than 1024 values, sizes from the data."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 40, 3, padding=1)
        self.up = nn.ConvTranspose2d(40, 20, 2, stride=2)
        self.twice = nn.Upsample(scale_factor=2)
        self.fc = nn.Linear(20 * 256, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(torch.relu(self.conv(x)), 2)
        x = self.twice(functional.avg_pool2d(self.up(x), x.shape[-1] // 2))
        x = functional.interpolate(x, scale_factor=2.0)
        return self.fc(x.flatten(1))


class Normalized(nn.Module):
    """Batch normalization of the input, of pooled data and of a sum, behind no layer: 3x8x8."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.bn, self.sum = (nn.BatchNorm2d(n) for n in (3, 8, 8))
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(128, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(self.conv(self.first(x)).relu(), 2)
        return self.fc(self.sum(self.bn(x) + x).relu().flatten(1))


class FromInput(nn.Module):
    """A shortcut from the input, whose sum with limited data has a factor of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x + functional.relu6(self.first(x))
        out: Tensor = self.fc(functional.relu(self.second(x)).mean((2, 3)))
        return out


class Shortcut(nn.Module):
    """A shortcut without weights, as in CIFAR ResNets: every second pixel, channels of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(x).relu()
        short = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4))
        x = torch.relu(self.conv2(x) + short)
        return self.fc(x.mean(3).mean(2).squeeze())


class Averages(nn.Module):
    """Padding of its own, limits, a transposed convolution of stride 1, large windows."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(3, 8, 3))
        self.turned = nn.ConvTranspose2d(8, 8, 3, padding=1)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.turned(torch.clamp(self.body(functional.pad(x, (0, 0))), min=0)).clip(0)
        most = torch.amax(functional.max_pool2d(x, 2), (2, 3)).unsqueeze(2).squeeze(2)
        mean = self.average(x)[:, :, 0, 0]
        both = functional.avg_pool2d(x, (18, 24)).flatten(1)
        return self.fc(torch.cat([most, mean, both], 1))
