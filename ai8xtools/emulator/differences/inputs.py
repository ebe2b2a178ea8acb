"""Input that differs: the sample value by value, or what else layers read before it is written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.decode.own_input import loaded_input
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.errors import EmulatorError

Integers = NDArray[np.int64]


def input_differences(theirs: LoadedWords, ours: LoadedWords) -> Iterator[Difference]:
    """Yield how the sample differs, and data memory that layers read and nobody has written."""
    size = ours.memory.data_bytes.shape[1]
    differing = np.flatnonzero((theirs.memory.data_bytes != ours.memory.data_bytes).reshape(-1))
    pushes = theirs.memory.pushes != ours.memory.pushes
    if not len(differing) and not pushes:
        return
    yield from _samples(theirs, ours, pushes=pushes)
    explained = np.zeros(len(differing), np.bool_)
    for number, (layer, side) in enumerate(_readers(theirs, ours)):
        instance, offset = input_bytes(side.layers[layer], size)
        read = np.isin(differing, instance * size + offset) & ~explained
        if number > 1 and read.any():
            where = int(differing[read][0])
            yield Difference(
                Subject.INPUT,
                f"layer {layer} reads {int(read.sum())} bytes of data memory that nobody writes "
                f"and that differ, the first in instance {where // size}, byte {where % size}",
            )
        explained |= read
    for where in np.unique(differing[~explained] // 4).tolist():
        instance, word = divmod(where, size // 4)
        address = ours.memory.addresses.apb_base + ours.memory.chip.data_address(instance, 4 * word)
        there, here = (int(side.memory.data[instance, word]) for side in (theirs, ours))
        yield Difference(
            Subject.UNEXPLAINED,
            f"0x{address:08x} (data memory instance {instance} word {word}): there 0x{there:08x}, "
            f"here 0x{here:08x}: no layer reads it",
        )


def _readers(theirs: LoadedWords, ours: LoadedWords) -> Iterator[tuple[int, LoadedWords]]:
    """Yield all layers of both projects, the first ones first."""
    sides = [side for side in (theirs, ours) if side.layers]
    yield from ((next(iter(side.layers)), side) for side in sides)
    yield from ((layer, side) for side in sides for layer in [*side.layers][1:])


def _samples(theirs: LoadedWords, ours: LoadedWords, *, pushes: bool) -> Iterator[Difference]:
    """Compare what the first layers read, value by value."""
    ways = ["the FIFOs" if side.memory.pushes else "data memory" for side in (theirs, ours)]
    for side, where in ((theirs, "there"), (ours, "here")):
        if side.memory.control_register("LCNT_MAX")["first"] not in side.layers:
            yield Difference(
                Subject.INPUT, f"the registers of the first layer make no sense {where}"
            )
            return
    if ways[0] != ways[1]:
        text = f"the input comes through {ways[0]} there, through {ways[1]} here"
        yield Difference(Subject.INPUT, text)
    try:
        there, here = loaded_input(theirs.memory), loaded_input(ours.memory)
    except EmulatorError as error:
        yield Difference(Subject.INPUT, error.message)
        return
    if there.shape != here.shape:
        shapes = ("x".join(map(str, part.shape)) for part in (there, here))
        yield Difference(Subject.INPUT, f"the input is {next(shapes)} there, {next(shapes)} here")
        return
    wrong = np.argwhere(there != here)
    if len(wrong):
        channel, row, column = wrong[0].tolist()
        place = channel, row, column
        yield Difference(
            Subject.INPUT,
            f"{len(wrong)} of {here.size} values of the sample differ, from channel {channel}, row "
            f"{row}, column {column} on: there {int(there[place])}, here {int(here[place])}",
        )
    elif pushes and ways[0] == ways[1]:
        words = (sum(map(len, side.memory.pushes.values())) for side in (theirs, ours))
        text = f"the FIFOs get {next(words)} words there, {next(words)} here, with the same sample"
        yield Difference(Subject.INPUT, text)
    elif ways[0] == ways[1] and not pushes and _first_bytes(theirs) != _first_bytes(ours):
        yield Difference(Subject.INPUT, "the same sample in other places of the data memory")


def _first_bytes(side: LoadedWords) -> bytes:
    """Return where the first layer reads its input, in a form that can be compared."""
    places = input_bytes(next(iter(side.layers.values())), side.memory.data_bytes.shape[1])
    return b"".join(np.ascontiguousarray(part).tobytes() for part in places)
