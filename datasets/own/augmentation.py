"""Random changes of training samples, named by options.

Source: docs/own-data.md, "Augmentation".
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from datasets.errors import DatasetError
from datasets.images import RandomAffine
from datasets.own.moving import MOVES
from datasets.own.series_augmentation import SERIES, changed_series

_TURN, _SHEAR = 10, 5
"""Degrees."""
_SHARE = 10
"""Pictures and sounds are shifted by up to a tenth of their size."""
_FITTING = {
    "picture": ("mirror", "shift", "turn", "light"), "sound": ("shift", "light"), "features": (),
    "series": SERIES, "marked picture": (*MOVES, "light"),
}  # fmt: skip


class Augmentation:
    """Changes a batch of values 0..1: pictures [N, C, H, W], sounds [N, C, L] in frames.

    mirror: left to right, half of them; shift: by up to a tenth; turn: by up to 10 degrees; light:
    brightness and contrast of pictures, loudness of sounds, by up to a fifth. Those of series,
    -1..1 [N, C, L] whose steps are folded, are in `series_augmentation`; what moves pictures with
    marks is in `moves`.
    """

    def __init__(self, names: Sequence[str], kind: str, fold: int = 1) -> None:
        fitting = _FITTING[kind]
        wrong = next((n for n in names if n not in fitting), None)
        if wrong is not None:
            raise DatasetError(
                "E687", f"{wrong} does not apply to {kind.removesuffix('s')}s", "--augment",
                f"Possible: {', '.join(fitting)}." if fitting else "Leave it out.",
            )  # fmt: skip
        self.moves = {*names} & {*MOVES} if kind == "marked picture" else set()
        self._names, self._kind, self._fold = frozenset(names) - self.moves, kind, fold

    def __call__(self, x: Tensor) -> Tensor:
        """Return the changed batch."""
        if self._kind == "series":
            return changed_series(x, self._names, self._fold)
        return self._sounds(x) if self._kind == "sound" else self._pictures(x)

    def _pictures(self, x: Tensor) -> Tensor:
        count = len(x)
        if "mirror" in self._names:
            chosen = torch.rand(count, 1, 1, 1) < 0.5
            x = torch.where(chosen, x.flip(3), x)
        if self._names & {"shift", "turn"}:
            turns = "turn" in self._names
            pixels = max(x.shape[2:]) / _SHARE if "shift" in self._names else 0.0
            x = RandomAffine(_TURN if turns else 0, _SHEAR if turns else 0, pixels)(x)
        if "light" in self._names:
            contrast, brightness = torch.empty(2, count, 1, 1, 1).uniform_(-0.2, 0.2)
            x = ((x - 0.5) * (1 + contrast) + 0.5 + brightness).clamp_(0, 1)
        return x

    def _sounds(self, x: Tensor) -> Tensor:
        if "shift" in self._names:
            samples = x.transpose(1, 2).flatten(1)
            limit = samples.shape[1] // _SHARE
            shifts = torch.randint(-limit, limit + 1, (len(x),)).tolist()
            rolled = [row.roll(n) for row, n in zip(samples, shifts, strict=True)]
            x = torch.stack(rolled).unflatten(1, (x.shape[2], x.shape[1])).transpose(1, 2)
        if "light" in self._names:
            x = ((x - 0.5) * torch.empty(len(x), 1, 1).uniform_(0.8, 1.2) + 0.5).clamp_(0, 1)
        return x.contiguous()
