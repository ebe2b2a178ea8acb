"""Fourth stage: where kernels, biases and data of each layer stand in the chip's memories,
and how layers that stream run beside each other.

Source: docs/hardware/memory.md.
"""

from ai8xtools.synthesis.place.placement import (
    BiasRange,
    KernelMemory,
    KernelRange,
    Placement,
    PlaceOptions,
    Stream,
    check_streams,
    place,
    place_what_fits,
)

__all__ = [
    "BiasRange",
    "KernelMemory",
    "KernelRange",
    "PlaceOptions",
    "Placement",
    "Stream",
    "check_streams",
    "place",
    "place_what_fits",
]
