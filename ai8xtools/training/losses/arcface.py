"""A loss that separates identities by angles: sub-centre ArcFace.

After Deng et al., "Sub-center ArcFace: Boosting Face Recognition by Large-Scale Noisy Web Faces"
(ECCV 2020).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class SubCenterArcFace(nn.Module):
    """Cross entropy of cosines between embeddings and learned centres, several for each class.

    Of the centres of a class the nearest counts, so that mislabelled and odd samples gather around
    one of their own. `margin` (degrees) is added to the angle to the true class: samples must be
    nearer to it than to others by as much. `scale` multiplies the cosines. `W` holds the centres,
    [size, classes * centres].
    """

    def __init__(
        self, classes: int, size: int, margin: float = 28.6, scale: float = 64.0, centres: int = 3
    ) -> None:
        super().__init__()
        self.classes = classes
        self.scale = scale
        self._cos, self._sin = math.cos(math.radians(margin)), math.sin(math.radians(margin))
        self.W = nn.Parameter(nn.init.xavier_uniform_(torch.empty(size, classes * centres)))

    def cosines(self, embeddings: Tensor) -> Tensor:
        """Return the cosines [N, classes] between embeddings [N, size] and the nearest centres."""
        all_cosines = functional.normalize(embeddings) @ functional.normalize(self.W, dim=0)
        return all_cosines.unflatten(1, (self.classes, -1)).amax(-1)

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return the scores [N, classes] of the classes, without margin."""
        return self.scale * self.cosines(embeddings)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of embeddings [N, size] with labels [N]."""
        cosines = self.cosines(embeddings)
        true = cosines.gather(1, labels.unsqueeze(1))
        sines = (1 - true.square()).clamp(min=1e-12).sqrt()
        moved = true * self._cos - sines * self._sin  # cos(angle + margin)
        # Beyond 180° the cosine would rise again: continue in a straight line with the same slope.
        moved = torch.where(true > -self._cos, moved, true - (1 - self._cos))
        return functional.cross_entropy(
            self.scale * cosines.scatter(1, labels.unsqueeze(1), moved), labels
        )
