"""What differs in the results that an application gets: their bytes, order and number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator.comparison.places import channels_of
from ai8xtools.emulator.decode.locations import output_bytes
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import Side
from ai8xtools.emulator.firmware.marking import random_bytes
from ai8xtools.emulator.firmware.samples import expected_words
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.words.addresses import DATA
from ai8xtools.reading import source_text

Integers = NDArray[np.int64]

_BYTE, _LARGEST_SCALE = 256, 7
_FILLING = 8  # bytes behind the last value
_COUNT = re.compile(r"#[ \t]*+define[ \t]++\w*?CNN_NUM_OUTPUTS[ \t]++(\d{1,9})\b")


def output_differences(
    theirs: Side, ours: Side, answers: Mapping[int, LayerAnswer]
) -> Iterator[Difference]:
    """Yield how the results differ that cnn_unload() delivers, and their number in cnn.h."""
    counts = _count(theirs), _count(ours)
    if counts[0] != counts[1]:
        shown = ("not given" if count is None else str(count) for count in counts)
        yield Difference(
            Subject.OUTPUT, f"CNN_NUM_OUTPUTS is {next(shown)} there, {next(shown)} here"
        )
    for side, name in ((theirs, "the network there"), (ours, "the network here")):
        if side.problem:
            text = f"{name} does not run, so that its output is not compared: {side.problem}"
            yield Difference(Subject.OUTPUT, text)
            return
    for text in _delivered(theirs, ours, answers):
        yield Difference(Subject.OUTPUT, text)


def answer_differences(theirs: Side, ours: Side) -> Iterator[Difference]:
    """Yield words of the known answer that are expected otherwise; nothing if one has no file."""
    one, two = _expected(theirs), _expected(ours)
    if one is None or two is None:
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
            yield Difference(Subject.ANSWER, text)


def _expected(side: Side) -> dict[int, tuple[int, int]] | None:
    path = side.network.sources.results
    if path is None:
        return None
    words = expected_words(source_text(path))
    return {address: (mask, value) for address, mask, value in words}


def _count(side: Side) -> int | None:
    """Return CNN_NUM_OUTPUTS of the headers beside the network."""
    for folder in dict.fromkeys(path.parent for path in side.network.sources.files):
        for path in sorted(folder.glob("*.h")):
            match = _COUNT.search(source_text(path))
            if match is not None:
                return int(match[1])
    return None


def _delivered(theirs: Side, ours: Side, answers: Mapping[int, LayerAnswer]) -> Iterator[str]:
    one, two = theirs.places, ours.places
    if one is None or two is None:
        return
    lacking = [not side.network.has("unload") for side in (theirs, ours)]
    if any(lacking):
        if not all(lacking):
            yield f"cnn_unload() is {'here' if lacking[0] else 'there'} only"
        return
    if not (one.of_program and two.of_program):
        yield from _computed(theirs, ours)
        return
    size = ours.loaded.memory.data_bytes.shape[1]
    yield from compared_places(
        one.instance * size + one.offset,
        two.instance * size + two.offset,
        lambda key: _byte(ours, answers, key),
    )


def compared_places(there: Integers, here: Integers, named: Callable[[int], str]) -> Iterator[str]:
    """Compare from where the bytes of two results come; `named` says what stands in a place."""
    common = min(len(there), len(here))
    wrong = np.flatnonzero(there[:common] != here[:common])
    if len(there) != len(here):
        longer, where = (there, "there") if len(there) > common else (here, "here")
        more = f"; the first {common} are the same" if not len(wrong) else ""
        if (
            not len(wrong)
            and not np.isin(longer[common:], (there, here)[len(there) > common]).any()
        ):
            more += f", the others {where} are {named(int(longer[common]))} and the like"
        yield f"cnn_unload() delivers {len(there)} bytes there, {len(here)} here{more}"
    if not len(wrong):
        return
    first = int(wrong[0])
    same = np.array_equal(np.sort(there), np.sort(here))
    shown = (named(int(keys[first])) for keys in (there, here))
    yield (
        f"cnn_unload() delivers {'the same bytes in another order' if same else 'other bytes'}, "
        f"{len(wrong)} of {common}: byte {first} is {next(shown)} there, {next(shown)} here"
    )


def _computed(theirs: Side, ours: Side) -> Iterator[str]:
    """Compare the results of functions that do more than to copy, with the same random data."""
    words = {**theirs.network.board.bus.words, **ours.network.board.bus.words}
    addresses = np.array(sorted(words), np.int64)
    _, area, _ = ours.loaded.memory.addresses.split(addresses)
    data = addresses[area == DATA].tolist()
    values = np.frombuffer(random_bytes(4 * len(data), 0), "<u4").tolist()
    there, here = (
        side.network.delivered(dict(zip(data, values, strict=True))) for side in (theirs, ours)
    )
    if there == here:
        return
    if len(there) != len(here):
        yield f"cnn_unload() delivers {len(there)} bytes there, {len(here)} here"
    if there == here[: len(there)] or here == there[: len(here)]:
        return
    yield relation(there, here) or _others(there, here)


def _others(there: bytes, here: bytes) -> str:
    wrong = [
        number for number, pair in enumerate(zip(there, here, strict=False)) if len({*pair}) > 1
    ]
    count = min(len(there), len(here))
    return f"{len(wrong)} of {count} bytes are others for the same data, from byte {wrong[0]} on"


def relation(there: bytes, here: bytes) -> str:
    """Say how two results for the same data go together; empty if that is not known.

    What one has behind the end of the other does not count.
    """
    for wide, narrow, where in ((there, here, "there"), (here, there, "here")):
        if 0 <= len(wide) - 2 * len(narrow) <= _FILLING:
            return _of_widths(wide[: 2 * len(narrow)], narrow, where)
    count = min(len(there), len(here)) // 2
    one, two = (np.frombuffer(part, "<u2", count).astype(np.int64) for part in (there, here))
    for lost, kept, where in ((one, two, "there"), (two, one, "here")):
        excess = [_BYTE * 2**scale for scale in range(_LARGEST_SCALE + 1)]
        matching = [(lost == kept % number) & (lost != kept) for number in excess]
        if np.array_equal(np.logical_or.reduce(matching), one != two):
            numbers = [str(n) for n, match in zip(excess, matching, strict=True) if match.any()]
            return f"negative values are {' or '.join(numbers)} too large {where}: no sign"
    return ""


def _of_widths(wide: bytes, narrow: bytes, where: str) -> str:
    values = np.frombuffer(wide, "<u2").astype(np.int64)
    for kind, text in (("<i1", "with their sign"), ("<u1", "without their sign")):
        if np.array_equal(values, np.frombuffer(narrow, kind).astype(np.int64) % (_BYTE * _BYTE)):
            other = {"here": "there", "there": "here"}[where]
            return f"values of 8 bits take 16 {where}, {text}, and 8 {other}"
    return ""


def _byte(side: Side, answers: Mapping[int, LayerAnswer], key: int) -> str:
    """Say what a byte of data memory is: a value of a layer, if one has written it."""
    size = side.loaded.memory.data_bytes.shape[1]
    assert side.run is not None
    for done in reversed(side.run.layers):
        value = _value(done, size, key)
        if value is None:
            continue
        output, pixel, byte = value
        config = done.config
        answer = answers.get(config.layer)
        channel = channels_of(config, answer).get(output, output) if answer else output
        row, column = divmod(pixel, done.output.shape[2])
        part = f", byte {byte}" if config.output.wide else ""
        return f"layer {config.layer}, channel {channel}, row {row}, column {column}{part}"
    instance, offset = divmod(key, size)
    return f"data memory instance {instance} byte {offset}, which no layer writes"


def _value(done: LayerRun, size: int, key: int) -> tuple[int, int, int] | None:
    """Return output, pixel and byte of a value that stands in a byte of data memory."""
    instance, offset = output_bytes(done.config, done.place, done.output[0].size)
    matches = np.argwhere(instance * size + offset % size == key)
    if not len(matches):
        return None
    output, pixel, *byte = matches[0].tolist()
    return output, pixel, byte[0] if byte else 0
