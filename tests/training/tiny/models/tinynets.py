"""One small network for each kind of task; inputs are 1x8x8."""

from __future__ import annotations

import torch
from torch import nn

import ai8x
import ai8x_nas


class Classifier(nn.Module):
    def __init__(self, num_classes, bias, size=4, bn=None, dimensionality=None, **keywords):
        super().__init__()
        keywords = {
            key: keywords[key] for key in ("weight_bits", "bias_bits", "quantize_activation")
        }
        self.conv = ai8x.FusedMaxPoolConv2dReLU(
            1, size, 3, padding=1, bias=bias, batchnorm=bn, **keywords
        )
        self.fc = ai8x.Linear(16 * size, dimensionality or num_classes, wide=True, **keywords)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


class Segmenter(nn.Module):
    def __init__(self, num_classes, fold=1, **_):
        super().__init__()
        kind = ai8x.Conv2d if fold == 1 else ai8x.FusedMaxPoolConv2d
        self.conv = kind(1, num_classes * fold**2, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


class Detector(nn.Module):
    """Sixteen boxes of a quarter of the image, one around each of 4x4 points."""

    def __init__(self, num_classes, device, **keywords):
        super().__init__()
        keywords = {
            key: keywords[key] for key in ("weight_bits", "bias_bits", "quantize_activation")
        }
        self.conv = ai8x.FusedMaxPoolConv2dReLU(1, 8, 3, padding=1, **keywords)
        self.loc = ai8x.Conv2d(8, 4, 3, padding=1, **keywords)
        self.cl = ai8x.Conv2d(8, num_classes, 3, padding=1, **keywords)
        points = (torch.arange(4) + 0.5) / 4
        y, x = torch.meshgrid(points, points, indexing="ij")
        sizes = torch.full((16,), 0.5)
        priors = torch.stack([x.flatten(), y.flatten(), sizes, sizes], 1)
        self.register_buffer("priors_cxcy", priors.to(device), persistent=False)

    def forward(self, x):
        x = self.conv(x)
        return tuple(part(x).flatten(2).transpose(1, 2) for part in (self.loc, self.cl))


class Elastic(ai8x_nas.OnceForAll2DSequentialModel):
    def __init__(self, num_classes, num_channels, dimensions, bias, **_):
        super().__init__(
            num_classes, num_channels, dimensions, bias, n_units=2, depth_list=(2, 2),
            width_list=(8, 8), kernel_list=(3, 3),
        )  # fmt: skip


def tinyelastic(pretrained=False, **keywords):
    return Elastic(**keywords)


def tinyclassifier(pretrained=False, **keywords):
    return Classifier(**keywords)


def tinynormalized(pretrained=False, **keywords):
    return Classifier(bn="Affine", **keywords)


def tinylarge(pretrained=False, **keywords):
    return Classifier(size=8, **keywords)


def tinysegmenter(pretrained=False, **keywords):
    return Segmenter(**keywords)


def tinyfolded(pretrained=False, **keywords):
    return Segmenter(fold=2, **keywords)


def tinydetector(pretrained=False, **keywords):
    return Detector(**keywords)


models = [
    {"name": name, "min_input": 1, "dim": 2, "dr": name == "tinyclassifier"}
    for name in (
        "tinyclassifier",
        "tinynormalized",
        "tinylarge",
        "tinysegmenter",
        "tinyfolded",
        "tinydetector",
        "tinyelastic",
    )
]
