"""How recordings of 16384 samples become items of 128 channels and 128 time steps."""

from __future__ import annotations

from typing import Any

from torch import Tensor

import ai8x

FRAME = 128
SILENCE = 128
"""The byte of amplitude 0."""


def as_item(sound: Tensor, exact: bool, args: Any) -> Tensor:
    """Return recordings [B, 16384] of amplitudes -128..128 as items float32 [B, 128, 128].

    Channel c at time t is sample 128*t + c. Items of training are multiples of 1/128 unless
    `exact`; with `args.act_mode_8bit` they are integers -128..127 always.
    """
    if exact and not args.act_mode_8bit:
        return sound.div(128).clamp_(-1, 127 / 128).view(-1, FRAME, FRAME).transpose(1, 2)
    frames = sound.add(SILENCE).div_(256).view(-1, FRAME, FRAME)
    items: Tensor = ai8x.normalize(args)(frames).transpose(1, 2)
    return items
