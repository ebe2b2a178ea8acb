"""What is said of a flattened layer whose weights are for another number of values."""

from __future__ import annotations

from ai8xtools.synthesis.network import Size


def remedy_of_flattened(inputs: int, channels: int, given: Size) -> str:
    """Say which size in front of a flattened layer would suit weights for so many `inputs`.

    The layer in front gives `channels` of the size `given`.
    """
    text = f"The weights are for {inputs} inputs"
    pixels, rest = divmod(inputs, channels)
    if rest:
        return f"{text}, no multiple of {channels} channels: check the layers in front."
    side = round(pixels**0.5)
    size = f"{side}x{side}" if side * side == pixels else f"{pixels} pixels"
    what = "pooling or a layer" if pixels < given[0] * given[1] else "padding"
    return (
        f"{text}, {channels} channels of {size}: perhaps {what} is missing in front of this layer."
    )
