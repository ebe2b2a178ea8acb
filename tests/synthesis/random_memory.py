"""Processor masks, data memory and budgets for random networks: all legal, nothing clever."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from device import Chip
from device.masks import group_slice, lowest_bit
from tests.synthesis.networks import mask

INPUT = -1
"""In sources and owners: the sample."""


@dataclass(frozen=True)
class Held:
    """What a layer can read: outputs of layers (or the sample) as they stand in data memory.

    `channels` counts those of one operand; `gap` words are left free behind each word of a single
    operand; `planar` data and data that comes from a FIFO have one reader, the first layer.
    """

    sources: tuple[int, ...]
    channels: int
    dim: tuple[int, int]
    mask: int
    offset: int
    operands: int = 1
    gap: int = 0
    planar: bool = False
    fifo: bool = False

    @property
    def several_readers(self) -> bool:
        """Whether more than one layer may read it."""
        return not self.planar and not self.fifo and self.operands == 1


@dataclass
class Budget:
    """What is left of the memories that layers share."""

    chip: Chip
    columns: int = field(init=False)
    bias_bytes: int = field(init=False)
    live: dict[int, tuple[int, int]] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.columns = self.chip.kernel_columns - 16
        self.bias_bytes = self.chip.bias_bytes - 16

    @property
    def largest(self) -> int:
        """Bytes of data memory that one output may take."""
        return self.chip.instance_bytes // 8

    def place(self, draw: st.DrawFn, owner: int, size: int, lead: int = 0) -> int:
        """Return an offset with `size` bytes behind and `lead` bytes in front that nobody needs."""
        begin = 4 * draw(st.sampled_from([0, 0, 1, 7, 64, self.largest // 4]))
        for first, end in sorted(self.live.values()):
            if begin < end and first < begin + lead + size:
                begin = end
        self.live[owner] = begin, begin + lead + size
        return begin + lead

    def forget_all_but(self, owners: tuple[int, ...]) -> None:
        """Free what no later layer reads and what is not delivered in the end."""
        self.live = {o: r for o, r in self.live.items() if o in owners or o in self.kept}


def output_bytes(pixels: int, passes: int, size: int, gap: int) -> int:
    """Return the bytes from the first to the last word of an output; `size` words a value."""
    return 4 * ((pixels * passes - 1) * size * (gap + 1) + size)


def draw_run(draw: st.DrawFn, share: int, *, aligned: bool, last: int = 63) -> int:
    """Draw neighbouring processors, the first one at most number `last`."""
    first = draw(st.integers(0, min(64 - share, last)))
    if aligned or draw(st.booleans()):
        first -= first % 4
    return mask(share, first)


def draw_spaced(draw: st.DrawFn, share: int) -> int | None:
    """Draw processors with equal distances; None if there are too many for that."""
    step = draw(st.sampled_from([2, 3, 4]))
    if not 1 < share <= 64 // step:
        return None
    return sum(1 << step * i for i in range(share))


def spread(channels: int, first: int = 0) -> int:
    """Return one processor of each data memory instance."""
    return sum(1 << 4 * i + first for i in range(channels))


def fifo_mask(channels: int, planar: bool) -> int:
    """Return the processors that FIFOs feed: the first ones of each group."""
    if planar:
        return sum(1 << 16 * i for i in range(channels))
    return sum(1 << 16 * (i // 4) + i % 4 for i in range(channels))


def is_packed(processors: int) -> bool:
    """Whether the processors of each group are neighbours, so that data can pass through."""
    slices = [group_slice(processors, g) for g in range(4)]
    return all(s == mask(s.bit_count(), lowest_bit(s)) for s in slices if s)


def draw_moved(draw: st.DrawFn, processors: int) -> int:
    """Draw where data passes to: the same processors, or others of the same group and lanes."""
    group = lowest_bit(processors) // 16
    inside = group_slice(processors, group)
    if inside << 16 * group != processors or draw(st.booleans()):
        return processors
    low = inside >> lowest_bit(inside) // 4 * 4
    room = (16 - low.bit_length()) // 4
    return low << 16 * group + 4 * draw(st.integers(0, room))
