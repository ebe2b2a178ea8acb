"""A float network whose logits a low-bit network learns beside the labels.

Distillation: Hinton et al., Distilling the Knowledge in a Neural Network, 2015.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.lowbit.pictures import SIZE

_PART = 500
_UNIT = 64.0
"""Codes up to 127 are divided by this."""
_BATCH = 128
_LEAST, _MOST = 1e-4, 4e-3
"""Learning rates of the last and of the fastest step."""


class Teacher(nn.Module):
    """Five 3x3 convolutions and a linear layer; takes codes [N, 256], gives logits [N, classes]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        shape = ((1, 32, 1), (32, 32, 2), (32, 64, 1), (64, 64, 2), (64, 96, 1))
        self.body = nn.Sequential(*(part for sizes in shape for part in _block(*sizes)))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(96 * 16, classes))

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits."""
        pictures = codes.reshape(-1, 1, SIZE, SIZE).float() / _UNIT
        with torch.autocast("cpu", torch.bfloat16):
            logits: Tensor = self.head(self.body(pictures))
        return logits.float()


def _block(inputs: int, outputs: int, stride: int) -> Iterator[nn.Module]:
    yield nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    yield nn.BatchNorm2d(outputs)
    yield nn.ReLU(inplace=True)


def train_teacher(
    teacher: Teacher,
    epochs: int,
    epoch_data: Callable[[int], tuple[Tensor, Tensor]],
    generator: torch.Generator,
    tell: Callable[[int, float], None],
) -> None:
    """Train a teacher in place on the codes and labels of each epoch; `tell` gets its mean loss."""
    optimizer = torch.optim.AdamW(teacher.parameters(), lr=_MOST, weight_decay=1e-3)
    schedule: torch.optim.lr_scheduler.OneCycleLR | None = None
    for epoch in range(epochs):
        data, labels = epoch_data(epoch)
        order = torch.randperm(len(data), generator=generator).split(_BATCH)
        schedule = schedule or torch.optim.lr_scheduler.OneCycleLR(
            optimizer, _MOST, total_steps=epochs * len(order) + 1, final_div_factor=_MOST / _LEAST
        )
        teacher.train()
        total = 0.0
        for chosen in order:
            optimizer.zero_grad()
            loss = functional.cross_entropy(teacher(data[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        tell(epoch, total / len(data))
    teacher.eval()


def logits_of(teacher: Teacher, codes: Tensor) -> Tensor:
    """Return the logits [N, classes] of codes [N, 256] in float16."""
    teacher.eval()
    with torch.no_grad():
        return torch.cat([teacher(part).half() for part in codes.split(_PART)])


def distilled(logits: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """Return the divergence of a network's logits from those of its teacher, as a loss."""
    targets = (taught.float() / temperature).softmax(1)
    predictions = (logits / temperature).log_softmax(1)
    return functional.kl_div(predictions, targets, reduction="batchmean") * temperature**2
