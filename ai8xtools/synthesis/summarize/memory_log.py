"""The data memory over time in words and as a picture, for the verbose log.

Source: docs/hardware/memory.md, "Data memory"; docs/hardware/streaming.md, "Registers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.memory import DataRange, MemoryStep, numbers_text
from ai8xtools.synthesis.place.lifetimes import memory_steps
from device import Chip
from device.chip import INSTANCES, WORD_BYTES

CELL_BYTES = 512
_FREE, _SEVERAL = -3, -2
_NAMES = {_FREE: ".", _SEVERAL: "*", -1: "i"}


def memory_log(network: MappedNetwork, rings: Mapping[int, int]) -> Iterator[str]:
    """Yield for each executed layer what it reads, writes, what else is alive, and where it is.

    `rings` are the words of the ring buffers, by the layer that reads them. In the picture a line
    is a memory instance, or several that hold the same, and a cell CELL_BYTES of it; instances in
    which nothing is alive are left out. The last line tells how much is needed at most.
    """
    chip = network.chip
    width = 1 if len(network.layers) < 10 else len(str(network.layers[-1].index)) + 1
    yield f"One cell is {CELL_BYTES} bytes: the layer whose output is there, i: the input,"
    yield "*: several, .: nothing that is needed."
    most, where = 0, 0
    for step in memory_steps(network, rings):
        yield f"{network.layer(step.layer)}: {_sentence(step)}"
        owners = _owners(step, chip)
        yield from _picture(owners, width)
        used = WORD_BYTES * int((owners != _FREE).sum())
        if used > most:
            most, where = used, step.layer
    total = INSTANCES * chip.instance_bytes
    yield (
        f"Data memory:   {most:,} bytes out of {total:,} bytes total "
        f"({100 * most / total:.1f}%), most at layer {where}"
    )


def _sentence(step: MemoryStep) -> str:
    parts = [f"reads {', '.join(map(_range_text, step.inputs)) or 'no memory'}"]
    parts.append(f"writes {_range_text(step.output)}")
    if step.alive:
        parts.append(f"alive: {', '.join(map(_range_text, step.alive))}")
    for loss in step.losses:
        what = "the input" if loss.owner < 0 else f"layer {loss.owner}"
        why = "which it reads itself" if loss.own_input else "which a later layer needs"
        where = f"0x{loss.begin:04x}-0x{loss.end - 1:04x}"
        parts.append(f"OVERWRITES {what} at {where}, {why}")
    return "; ".join(parts)


def _range_text(data: DataRange) -> str:
    what = "input" if data.owner < 0 else f"layer {data.owner}"
    gap = data.step_bytes - data.piece_bytes
    apart = f" with gaps of {gap}" if gap else ""
    return (
        f"{what} at 0x{data.begin:04x}-0x{data.end - 1:04x}{apart}"
        f" in {numbers_text(data.instances)}"
    )


def _owners(step: MemoryStep, chip: Chip) -> NDArray[np.int16]:
    """Return who needs each word: [instance, word]; words beyond the memory are left out."""
    owners = np.full((INSTANCES, chip.instance_bytes // WORD_BYTES), _FREE, np.int16)
    for data in step.ranges:
        words = data.words() // WORD_BYTES
        words = words[words < owners.shape[1]]
        for instance in data.instances:
            before = owners[instance, words]
            owners[instance, words] = np.where(before == _FREE, data.owner, _SEVERAL)
    return owners


def _picture(owners: NDArray[np.int16], width: int) -> Iterator[str]:
    """Yield a line for each content that memory instances have; they are named in front."""
    cells = owners.reshape(len(owners), -1, CELL_BYTES // WORD_BYTES)
    highest = cells.max(axis=2)
    occupied = np.where(cells == _FREE, highest[..., None], cells)
    alike = (occupied == highest[..., None]).all(axis=2)
    shown = np.where(alike, highest, _SEVERAL)
    contents: dict[tuple[int, ...], list[int]] = {}
    for instance, row in enumerate(shown.tolist()):
        contents.setdefault(tuple(row), []).append(instance)
    for row, numbers in contents.items():
        if any(owner != _FREE for owner in row):
            picture = "".join(_NAMES.get(owner, str(owner)).rjust(width) for owner in row)
            yield f"  {numbers_text(tuple(numbers)):>12} {picture}"
