"""Teachers of face recognition: residual networks of 50, 100 and 152 layers, in floating point.

They are for computers, not for the chip: train them with `--qat-policy None`, or let a smaller
network learn from them with `--kd-teacher`. Layers and names are those of the usual checkpoints of
"improved residual" networks for faces (ArcFace, Deng et al. 2019; squeeze and excitation, Hu et al.
2018), which `--backbone-checkpoint` reads.
Source: docs/models.md, "Faces".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8x_blocks import factory
from ai8xtools.checkpoint import read_checkpoint

_DEPTHS = {50: (3, 4, 14, 3), 100: (3, 13, 30, 3), 152: (3, 8, 36, 3)}
_WIDTHS = (64, 128, 256, 512)
_FEATURES = 512
_SQUEEZE = 16
_FACE = slice(3, 6)
"""The aligned face in items of six channels."""


class _Squeeze(nn.Module):
    """Weigh the channels by what all pixels hold together."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // _SQUEEZE, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(channels // _SQUEEZE, channels, 1, bias=False)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighed channels."""
        weight: Tensor = self.sigmoid(self.fc2(self.relu(self.fc1(self.avg_pool(x)))))
        return x * weight


class _Unit(nn.Module):
    """Normalize, filter, filter with `stride`; the input is added."""

    def __init__(self, inputs: int, outputs: int, stride: int, squeeze: bool) -> None:
        super().__init__()
        self.shortcut_layer: nn.Module = nn.MaxPool2d(1, stride)
        if inputs != outputs:
            self.shortcut_layer = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )
        layers = [
            nn.BatchNorm2d(inputs),
            nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False),
            nn.PReLU(outputs),
            nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.res_layer = nn.Sequential(*layers, *([_Squeeze(outputs)] if squeeze else []))

    def forward(self, x: Tensor) -> Tensor:
        """Run the unit."""
        result: Tensor = self.res_layer(x) + self.shortcut_layer(x)
        return result


class Backbone(nn.Module):
    """A face [N, 3, H, W] as 512 features [N, 512]."""

    def __init__(self, depth: int, squeeze: bool, dimensions: tuple[int, int]) -> None:
        super().__init__()
        self.input_layer = nn.Sequential(
            nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64)
        )
        units, inputs = [], 64
        for outputs, count in zip(_WIDTHS, _DEPTHS[depth], strict=True):
            for number in range(count):
                units.append(_Unit(inputs, outputs, 1 if number else 2, squeeze))
                inputs = outputs
        self.body = nn.Sequential(*units)
        rest = -(-dimensions[0] // 16) * -(-dimensions[1] // 16)
        self.output_layer = nn.Sequential(
            nn.BatchNorm2d(512),
            nn.Dropout(),
            nn.Flatten(),
            nn.Linear(512 * rest, _FEATURES),
            nn.BatchNorm1d(_FEATURES),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the features."""
        result: Tensor = self.output_layer(self.body(self.input_layer(x)))
        return result


class FaceTeacher(nn.Module):
    """A backbone and a linear layer that keeps `dimensionality` numbers; vectors have length 1.

    Input [N, 3 or 6, H, W]; of six channels the last three count, the aligned face. Output
    [N, dimensionality]. With `backbone_checkpoint` the backbone has the weights of this file and is
    not trained any more.
    """

    def __init__(
        self,
        depth: int,
        squeeze: bool,
        num_classes: int | None = None,  # noqa: ARG002 - the interface of all networks
        num_channels: int = 3,
        dimensions: tuple[int, int] = (112, 112),
        dimensionality: int = 64,
        backbone_checkpoint: str | None = None,
        bias: bool = True,
        **kwargs: Any,  # noqa: ARG002 - widths of weights, which it does not have
    ) -> None:
        super().__init__()
        assert num_channels in (3, 6), f"{num_channels} channels: faces have 3 or 6"
        self.backbone = Backbone(depth, squeeze, dimensions)
        self.reduction = nn.Linear(_FEATURES, dimensionality, bias=bias)
        self.frozen = backbone_checkpoint is not None
        if backbone_checkpoint is not None:
            state = read_checkpoint(backbone_checkpoint, bare=True).state_dict
            tensors = {
                n.removeprefix("module.").removeprefix("backbone."): torch.from_numpy(a.copy())
                for n, a in state.items()
            }
            self.backbone.load_state_dict(tensors)
            self.backbone.requires_grad_(False)

    def train(self, mode: bool = True) -> FaceTeacher:
        """Switch between training and evaluation; a backbone that is not trained stays."""
        super().train(mode)
        if self.frozen:
            self.backbone.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors."""
        face = x[:, _FACE] if x.shape[1] > 3 else x
        return functional.normalize(self.reduction(self.backbone(face)), p=2.0, dim=1)


ir_50 = factory(FaceTeacher, 50, False)
"""The teacher of 50 layers."""
ir_101 = factory(FaceTeacher, 100, False)
"""The teacher of 101 layers."""
ir_152 = factory(FaceTeacher, 152, False)
"""The teacher of 152 layers."""
ir_se_50 = factory(FaceTeacher, 50, True)
"""The teacher of 50 layers with squeeze and excitation."""
ir_se_101 = factory(FaceTeacher, 100, True)
"""The teacher of 101 layers with squeeze and excitation."""
ir_se_152 = factory(FaceTeacher, 152, True)
"""The teacher of 152 layers with squeeze and excitation."""

models = [
    {"name": name, "min_input": 1, "dim": 3, "dr": True}
    for name in ("ir_50", "ir_101", "ir_152", "ir_se_50", "ir_se_101", "ir_se_152")
]
