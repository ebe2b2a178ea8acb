"""Teachers, whose logits a low-bit network learns beside the labels: float networks, mixtures.

Distillation: Hinton et al., Distilling the Knowledge in a Neural Network, 2015.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.lowbit.pictures import SIZE

_PART, _MORE = 500, 5000
"""Samples that teachers see at once, on CPU and GPU."""
_UNIT = 64.0
"""Codes up to 127 are divided by this."""
_BATCH = 128
_LEAST, _MOST = 1e-4, 4e-3
"""Learning rates of the last and of the fastest step."""


class Teacher(nn.Module):
    """Five 3x3 convolutions and a linear layer; takes codes [N, 256], gives logits [N, classes].

    `width` is the number of channels of the first convolution.
    """

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        widths = (1, width, width, 2 * width, 2 * width, 3 * width)
        shape = zip(widths[:-1], widths[1:], (1, 2, 1, 2, 1), strict=True)
        self.body = nn.Sequential(*(part for sizes in shape for part in _block(*sizes)))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(3 * width * 16, classes))

    def forward(self, codes: Tensor) -> Tensor:
        """Return the logits."""
        pictures = codes.reshape(-1, 1, SIZE, SIZE).float() / _UNIT
        with torch.autocast(codes.device.type, torch.bfloat16):
            logits: Tensor = self.head(self.body(pictures))
        return logits.float()


class Mixture(nn.Module):
    """Several teachers: their probabilities at a temperature are averaged."""

    def __init__(self, teachers: Sequence[nn.Module], temperature: float) -> None:
        super().__init__()
        self.teachers, self._temperature = nn.ModuleList(teachers), temperature

    def forward(self, codes: Tensor) -> Tensor:
        """Return logits [N, classes] that have the averaged probabilities at the temperature."""
        logits = torch.stack([teacher(codes) for teacher in self.teachers])
        each = (logits / self._temperature).log_softmax(2)
        return self._temperature * (each.logsumexp(0) - math.log(len(self.teachers)))


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
        order = shuffled(len(data), generator).split(_BATCH)
        schedule = schedule or torch.optim.lr_scheduler.OneCycleLR(
            optimizer, _MOST, total_steps=epochs * len(order) + 1, final_div_factor=_MOST / _LEAST
        )
        teacher.train()
        total = torch.zeros((), dtype=torch.float64, device=data.device)
        for chosen in order:
            optimizer.zero_grad()
            loss = functional.cross_entropy(teacher(data[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach().double() * len(chosen)
        tell(epoch, float(total) / len(data))
    teacher.eval()


def shuffled(count: int, generator: torch.Generator) -> Tensor:
    """Return the numbers below `count` in random order."""
    return torch.randperm(count, generator=generator, device=generator.device)


def logits_of(teacher: nn.Module, codes: Tensor) -> Tensor:
    """Return the logits [N, classes] of codes [N, 256] in float16."""
    teacher.eval()
    part = _PART if codes.device.type == "cpu" else _MORE
    with torch.no_grad():
        return torch.cat([teacher(one).half() for one in codes.split(part)])


def distilled(logits: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """Return the divergence of a network's logits from those of its teacher, as a loss."""
    targets = (taught.float() / temperature).softmax(1)
    predictions = (logits / temperature).log_softmax(1)
    return functional.kl_div(predictions, targets, reduction="batchmean") * temperature**2
