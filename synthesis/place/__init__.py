"""Fourth stage: where kernels, biases and data of each layer stand in the chip's memories.

Source: spec/memory.md.
"""

from synthesis.place.placement import (
    BiasRange,
    KernelMemory,
    KernelRange,
    Placement,
    PlaceOptions,
    place,
    place_what_fits,
)

__all__ = [
    "BiasRange",
    "KernelMemory",
    "KernelRange",
    "PlaceOptions",
    "Placement",
    "place",
    "place_what_fits",
]
