"""The complaint about a flattened layer whose weights are for another number of values."""

from __future__ import annotations

from ai8xtools.synthesis.network import Size


def remedy_of_flattened(inputs: int, channels: int, available: Size) -> str:
    """Say which size in front of a flattened layer would suit weights for so many `inputs`.

    The layer in front gives `channels` of the size `available`.
    """
    text = f"The weights are for {inputs} inputs"
    pixels, rest = divmod(inputs, channels)
    if rest:
        return f"{text}, no multiple of {channels} channels: check the layers in front."
    side = round(pixels**0.5)
    size = f"{side}x{side}" if side * side == pixels else f"{pixels} pixels"
    what = "pooling or a layer" if pixels < available[0] * available[1] else "padding"
    return (
        f"{text}, {channels} channels of {size}: perhaps {what} is missing in front of this layer."
    )
