"""The pictures of each epoch: as they are, and deformed copies, fresh or out of a pool.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ai8xtools.training.lowbit.pictures import PictureAugmentation, augmented, codes, reduced
from ai8xtools.training.lowbit.recipe import Recipe
from ai8xtools.training.lowbit.teacher import logits_of
from ai8xtools.values import frozen


@frozen
class Pictures:
    """uint8 images [N, 1, rows, columns] with labels int64 [N]."""

    images: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Pictures:
        """Return the same on a device."""
        return Pictures(self.images.to(device), self.labels.to(device))


@frozen
class Samples:
    """Codes int8 [N, 256], and the teacher's logits of them if there is one."""

    codes: Tensor
    logits: Tensor | None


class Epochs:
    """Gives the samples of one epoch after the other."""

    def __init__(
        self,
        training: Pictures,
        recipe: Recipe,
        generator: torch.Generator,
        teacher: nn.Module | None = None,
    ) -> None:
        self._training, self._generator, self._teacher = training, generator, teacher
        self._how = PictureAugmentation(recipe.rotation1, recipe.rotation2, elastic=recipe.elastic)
        self._copies = recipe.augmentation_copies if recipe.augmentation else 0
        self._plain = self._samples(codes(reduced(training.images)))
        count = recipe.augmentation_pool if self._copies else 0
        self._pool = [self._deformed() for _ in range(max(count, 0))]

    def _samples(self, values: Tensor) -> Samples:
        logits = None if self._teacher is None else logits_of(self._teacher, values)
        return Samples(values.to(torch.int8), logits)

    def _deformed(self) -> Samples:
        return self._samples(augmented(self._training.images, self._how, self._generator))

    def samples(self, epoch: int) -> tuple[Samples, Tensor]:
        """Return the samples of an epoch, and the labels int64 [N]."""
        numbers = range(epoch * self._copies, (epoch + 1) * self._copies)
        pool = self._pool
        parts = [
            self._plain,
            *(pool[i % len(pool)] if pool else self._deformed() for i in numbers),
        ]
        logits = [part.logits for part in parts if part.logits is not None]
        together = Samples(
            torch.cat([part.codes for part in parts]), torch.cat(logits) if logits else None
        )
        return together, self._training.labels.repeat(len(parts))
