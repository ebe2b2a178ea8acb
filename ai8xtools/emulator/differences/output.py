"""What differs in the results that an application gets: their bytes, order and number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator.comparison.places import channels_of
from ai8xtools.emulator.decode.locations import output_bytes
from ai8xtools.emulator.differences.side import Side
from ai8xtools.emulator.differences.told import Subject, Told
from ai8xtools.emulator.firmware.samples import expected_words
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.reading import source_text

Integers = NDArray[np.int64]

_COUNT = re.compile(r"#[ \t]*+define[ \t]++CNN_NUM_OUTPUTS[ \t]++(\d{1,9})\b")


def output_differences(
    theirs: Side, ours: Side, answers: Mapping[int, LayerAnswer]
) -> Iterator[Told]:
    """Yield how the results differ that cnn_unload() delivers, and their number in cnn.h."""
    counts = _count(theirs), _count(ours)
    if counts[0] != counts[1]:
        shown = ("not given" if count is None else str(count) for count in counts)
        yield Told(Subject.OUTPUT, f"CNN_NUM_OUTPUTS is {next(shown)} there, {next(shown)} here")
    for side, name in ((theirs, "the network there"), (ours, "the network here")):
        if side.problem:
            text = f"{name} does not run, so that its output is not compared: {side.problem}"
            yield Told(Subject.OUTPUT, text)
            return
    for text in _delivered(theirs, ours, answers):
        yield Told(Subject.OUTPUT, text)


def answer_differences(theirs: Side, ours: Side) -> Iterator[Told]:
    """Yield words of the known answer that are expected otherwise."""
    one, two = _expected(theirs), _expected(ours)
    if not one or not two:
        return
    for address in sorted({*one, *two}):
        there, here = one.get(address), two.get(address)
        if there != here:
            shown = (
                "nothing" if word is None else f"0x{word[1]:08x} of the bits 0x{word[0]:08x}"
                for word in (there, here)
            )
            place = ours.loaded.memory.addresses.describe(address)
            text = f"0x{address:08x} ({place}): there expected is {next(shown)}, here {next(shown)}"
            yield Told(Subject.ANSWER, text)


def _expected(side: Side) -> dict[int, tuple[int, int]]:
    path = side.network.sources.results
    words = expected_words(source_text(path)) if path else []
    return {address: (mask, value) for address, mask, value in words}


def _count(side: Side) -> int | None:
    """Return CNN_NUM_OUTPUTS of the headers beside the network."""
    for folder in dict.fromkeys(path.parent for path in side.network.sources.files):
        for path in sorted(folder.glob("*.h")):
            found = _COUNT.search(source_text(path))
            if found is not None:
                return int(found[1])
    return None


def _delivered(theirs: Side, ours: Side, answers: Mapping[int, LayerAnswer]) -> Iterator[str]:
    one, two = theirs.places, ours.places
    if one is None or two is None:
        return
    if one.of_program != two.of_program:
        copies = "copies bytes" if one.of_program else "is missing, or does more than copy bytes"
        other = "copies bytes" if two.of_program else "is missing, or does more than copy bytes"
        yield f"cnn_unload() {copies} there, {other} here"
        return
    if not one.of_program:
        return
    size = ours.loaded.memory.data_bytes.shape[1]
    there, here = one.instance * size + one.offset, two.instance * size + two.offset
    if len(there) != len(here):
        yield f"cnn_unload() delivers {len(there)} bytes there, {len(here)} here"
    common = min(len(there), len(here))
    wrong = np.flatnonzero(there[:common] != here[:common])
    if not len(wrong):
        return
    first = int(wrong[0])
    same = np.array_equal(np.sort(there), np.sort(here))
    shown = (_byte(ours, answers, int(keys[first])) for keys in (there, here))
    yield (
        f"cnn_unload() delivers {'the same bytes in another order' if same else 'other bytes'}, "
        f"{len(wrong)} of {common}: byte {first} is {next(shown)} there, {next(shown)} here"
    )


def _byte(side: Side, answers: Mapping[int, LayerAnswer], key: int) -> str:
    """Say what a byte of data memory is: a value of a layer, if one has written it."""
    size = side.loaded.memory.data_bytes.shape[1]
    assert side.run is not None
    for done in reversed(side.run.layers):
        found = _value(done, size, key)
        if found is None:
            continue
        output, pixel, byte = found
        config = done.config
        answer = answers.get(config.layer)
        channel = channels_of(config, answer).get(output, output) if answer else output
        row, column = divmod(pixel, done.output.shape[2])
        part = f", byte {byte}" if config.output.wide else ""
        return f"layer {config.layer}, channel {channel}, row {row}, column {column}{part}"
    instance, offset = divmod(key, size)
    return f"data memory instance {instance} byte {offset}, which no layer writes,"


def _value(done: LayerRun, size: int, key: int) -> tuple[int, int, int] | None:
    """Return output, pixel and byte of a value that stands in a byte of data memory."""
    instance, offset = output_bytes(done.config, done.place, done.output[0].size)
    matches = np.argwhere(instance * size + offset % size == key)
    if not len(matches):
        return None
    output, pixel, *byte = matches[0].tolist()
    return output, pixel, byte[0] if byte else 0
