"""Legal starting values for processors and data memory (docs/network-description.md).

Simple rules: channels start at a multiple of 16 processors, results at the first offset that is
free while they are needed. What the rules cannot place is noted at the layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from device import Chip
from device.channels import channels_per_pass, passes
from device.chip import PROCESSORS, PROCESSORS_PER_INSTANCE
from frontends.layers import INPUT, DescribedLayer
from training.export.processors import choose_starts

_ALIGNMENT = 0x100


@dataclass(frozen=True, slots=True)
class ResultLocation:
    """Where a result is stored: processors, byte offset, words left free after each word."""

    processors: int
    offset: int
    gap: int = 0


@dataclass(slots=True)
class _Group:
    """Results that a layer reads together and that are therefore stored together."""

    members: tuple[int, ...]
    by_elements: bool
    offset: int | None = None


@dataclass(slots=True)
class _Planner:
    """The state of placing: first processors of results, data that is needed."""

    entries: Sequence[DescribedLayer]
    chip: Chip
    shape: tuple[int, ...]
    groups: dict[int, _Group] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    fits: bool = False
    regions: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for entry in self.entries:
            if entry.join is not None:
                group = _Group(entry.inputs, entry.join == "elements")
                for member in entry.inputs:
                    self.groups.setdefault(member, group)
        results = (INPUT, *range(len(self.entries)))
        channels = {index: self.given(index)[0] for index in results}
        self.starts, self.fits = choose_starts(self.entries, channels, self.chip.kernel_columns)

    def place(self, index: int) -> ResultLocation:
        """Place the result of a layer, or the input."""
        group = self.groups.get(index)
        operands = len(group.members) if group and group.by_elements else 1
        position = group.members.index(index) if group else 0
        shift = self._shift_in_group(index, group)
        base = self.starts[index]
        if group is None or group.offset is None:
            offset = self._offset(index, group, operands)
        else:
            offset = group.offset
        if group is not None:
            group.offset = offset
        mask = (1 << channels_per_pass(self.given(index)[0])) - 1
        between = 4 * position if operands > 1 else 0
        return ResultLocation(mask << (base + shift), offset + between, operands - 1)

    def given(self, index: int) -> tuple[int, ...]:
        """Return the shape of a result."""
        return self.shape if index == INPUT else self.entries[index].given

    def _shift_in_group(self, index: int, group: _Group | None) -> int:
        """Return how many processors other parts of joined channels take before this one."""
        if group is None or group.by_elements:
            return 0
        before = group.members[: group.members.index(index)]
        return sum(self.given(member)[0] for member in before)

    def _last_use(self, index: int) -> int:
        """Return the last layer that needs a result."""
        if index != INPUT and self.entries[index].is_output:
            return len(self.entries)
        return max([index + 1, *(n for n, e in enumerate(self.entries) if index in e.inputs)])

    def _offset(self, index: int, group: _Group | None, operands: int) -> int:
        """Return the first offset that is free from when a result is written to its last use."""
        members = group.members if group else (index,)
        size = operands * max(map(self._bytes, members))
        last = max(map(self._last_use, members))
        offset = 0
        for start, end, until in sorted(self.regions):
            if until >= index and offset + size > start:
                offset = max(offset, -(-end // _ALIGNMENT) * _ALIGNMENT)
        self.regions.append((offset, offset + size, last))
        return offset

    def _bytes(self, index: int) -> int:
        """Return the bytes of a result in each memory: a word for each pixel and pass."""
        shape = self.given(index)
        wide = index != INPUT and self.entries[index].wide
        return 4 * (4 if wide else 1) * math.prod(shape[1:]) * passes(shape[0])

    def note_problems(self) -> None:
        """Add notes to the layers about what could not be placed."""
        for index in (INPUT, *range(len(self.entries))):
            notes = self.entries[max(0, index)].notes
            group = self.groups.get(index)
            operands = len(group.members) if group and group.by_elements else 1
            need = operands * self._bytes(index)
            ends = [end for start, end, _ in self.regions]
            if need > self.chip.instance_bytes:
                what = "the input" if index == INPUT else "the result"
                notes.append(
                    f"{what} takes {need} bytes, a memory has {self.chip.instance_bytes}: use "
                    "data_format: CHW, fold the data, or stream it with --fifo"
                )
            elif index == len(self.entries) - 1 and max(ends) > self.chip.instance_bytes:
                notes.append("there is no free memory for some results; change their offsets")
        for entry in self.entries:
            if entry.join == "channels":
                self._note_channels(entry)
        if not self.fits:
            self.entries[0].notes.append(
                f"the kernels do not fit in the {self.chip.kernel_columns} columns of a processor: "
                "move layers to other processors, or use fewer bits"
            )

    def _note_channels(self, entry: DescribedLayer) -> None:
        """Add notes about concatenated channels that these rules cannot place."""
        counts = [self.given(member)[0] for member in entry.inputs]
        alone = all(self.groups[member].members == entry.inputs for member in entry.inputs)
        if not alone or INPUT in entry.inputs or len(set(entry.inputs)) < len(counts):
            entry.notes.append("some of these channels are concatenated with others as well")
        whole = all(count % PROCESSORS_PER_INSTANCE == 0 for count in counts[:-1])
        if sum(counts) > PROCESSORS or not whole:
            entry.notes.append(f"{' + '.join(map(str, counts))} channels are concatenated: choose "
                               "processors, offsets and write_gap of the parts")  # fmt: skip


def place_all(
    entries: Sequence[DescribedLayer], shape: tuple[int, ...], chip: Chip
) -> dict[int, ResultLocation]:
    """Return the places of the input (INPUT) and of the result of each layer.

    Processors start at 0, unless the kernels need to be spread. Adds notes to layers for which
    there is no legal place.
    """
    planner = _Planner(entries, chip, shape)
    places = {index: planner.place(index) for index in (INPUT, *range(len(entries)))}
    planner.note_problems()
    return places
