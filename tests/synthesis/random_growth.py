"""A random network while it grows: what its layers are drawn from.

Used by the modules that draw operators, weights and places of a layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st
from numpy.typing import NDArray

from device import Chip
from tests.synthesis.random_memory import Budget, Held

Choice = TypeVar("Choice")
Keys = dict[str, Any]
Array = NDArray[Any]
FEW = (1, 2, 3, 4, 5, 8, 12, 16)
CHANNELS = (*FEW, *FEW, 7, 17, 31, 32, 33, 48, 60, 63, 64, 65, 66, 72, 100, 128, 130, 200)
LARGEST_DIM = 20


@dataclass(frozen=True)
class Goal:
    """What the output of a branch must be, so that another layer can join it with others."""

    channels: int
    mask: int
    offset: int
    gap: int
    pooling: Keys
    passing: bool


@dataclass
class Growing:
    """A network to which layers are added.

    `weights_of` tells by layer which of the `kernels` it uses; `near_stream` is set in a streaming
    layer and in the first one behind it. A `careful` one avoids what is legal and warned of, since
    the words of the vendor's tool, and so ours, are not what the chip needs.
    """

    draw: st.DrawFn
    chip: Chip
    port: str
    budget: Budget
    stream: int
    layers: list[Keys] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    kernels: list[Array] = field(default_factory=list)
    biases: list[Array] = field(default_factory=list)
    weights_of: list[int | None] = field(default_factory=list)
    binary: bool = False
    careful: bool = True

    @property
    def older(self) -> bool:
        """Whether the chip is of the kind of MAX78000."""
        return not self.chip.has_extended_modes

    @property
    def streams(self) -> bool:
        """Whether the next layer streams."""
        return len(self.layers) < self.stream

    @property
    def near_stream(self) -> bool:
        """Whether 1x1 kernels of the next layer run as 3x3."""
        return self.streams or 0 < self.stream == len(self.layers)

    def chance(self, percent: int) -> bool:
        """Draw true in so many of a hundred cases; false is simpler."""
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def one_of(self, values: Sequence[Choice]) -> Choice:
        """Draw one of the values; the first is the simplest."""
        return self.draw(st.sampled_from(values))


@dataclass
class Plan:
    """A layer that is being drawn: its input, its keys and what follows from them."""

    read: Held
    kind: str
    keys: Keys
    pooled: tuple[int, int]
    out_dim: tuple[int, int] = (1, 1)
    taps: tuple[int, ...] = ()
    stored_taps: int = 1
    lead: int = 0
    surplus: int = 0

    @property
    def has_weights(self) -> bool:
        return self.kind != "none"

    @property
    def depthwise(self) -> bool:
        return self.kind.startswith("depthwise")

    @property
    def pixels(self) -> int:
        """Pixels that a flattened layer reads, else 1."""
        return self.pooled[0] * self.pooled[1] if self.kind == "flatten" else 1
