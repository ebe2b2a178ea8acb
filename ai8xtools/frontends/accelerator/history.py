"""The rolling buffer of a network of several frames.

The chip computes the features of one frame in each inference. A layer moves the others up by one
entry, and the layer that computes the features writes them behind.
Source: docs/own-models.md, "Networks of several frames".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ai8xtools.frontends.layers import HISTORY, INPUT, DescribedLayer, RollingBuffer, unused


def why_not(
    entries: Sequence[DescribedLayer], inputs: Sequence[int], shape: Sequence[int]
) -> str | None:
    """Return why features of a frame cannot be remembered; None if they can.

    `inputs` are the layers that compute them, `shape` [F] or [F, 1, 1] what they are.
    """
    if len(inputs) != 1 or inputs[0] in (INPUT, HISTORY):
        return "only the result of a layer can be remembered from frame to frame"
    if math.prod(shape[1:]) > 1:
        sizes = "x".join(map(str, shape))
        return f"the features of a frame are {sizes}, only those of one pixel can be remembered"
    if entries[inputs[0]].wide:
        return "results of 32 bits cannot be remembered"
    return None


def remember(entries: list[DescribedLayer], index: int, frames: int, node: str) -> RollingBuffer:
    """Let a layer write behind the features of the frames before, which a new layer moves up.

    The new layer stands in front of it: those from `index` on get another number.
    """
    names = [entry.name for entry in entries]
    channels = entries[index].shape[0]
    buffer = RollingBuffer(unused("history", names), frames, channels)
    keys = {"op": "Passthrough", "in_dim": frames - 1, "in_channels": channels, "buffer_shift": 1}
    shape = (channels, frames - 1)
    moving = DescribedLayer(unused("move", names), (HISTORY,), None, keys, shape, shape, node=node)
    for entry in entries:
        entry.inputs = moved(entry.inputs, index)
    entries.insert(index, moving)
    entries[index + 1].keys["buffer_insert"] = 1
    return buffer


def moved(inputs: Sequence[int], index: int) -> tuple[int, ...]:
    """Return numbers of layers after one was put in front of `index`."""
    return tuple(number + (number >= index) for number in inputs)
