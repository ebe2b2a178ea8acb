"""A program without accelerator on expressions: compiled C runs, its kernels do not.

Where C calls a kernel, or copies data, the data flow is told what the kernel computes of what. All
else, pointers, rings and loops, is executed on the core. It must not look at data.
Source: docs/proof.md, "Microcontrollers without the accelerator".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import truncated
from ai8xtools.emulator.cpu.core import PAGE, RAM, Core
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.proof.channels import Chain, follow_chain
from ai8xtools.emulator.proof.dataflow import ZERO, Dataflow, Mark, overlap, within
from ai8xtools.emulator.proof.kernels import (
    KERNELS,
    Convolution,
    Parameters,
    PoolParameters,
    Read,
    SlideParameters,
    convolution,
    departure,
    pixels_read,
)
from ai8xtools.emulator.proof.planes import Planes, follow_planes

Integers = NDArray[np.int64]
_Run = tuple[int, int, int]

INPUT, OUTPUT = 0x60000000, 0x68000000
"""Addresses of the input and of the result."""
_ARENAS = ("cnn_arena", "cnn_l2", "cnn_l3")
_JOINS = ("add", "sub", "or", "xor")
_WIDE_BYTES, _SUM_BYTES = 4, 2
_LARGEST = 1 << 24
_OK, _MORE = 0, 1
_RESULTS = {_OK: "CNN_OK", _MORE: "CNN_MORE"}


class _Area:
    """The bytes of an area of whole pages that hold no data; nothing may access the others."""

    def __init__(self, name: str, base: int, size: int, content: bytes, flow: Dataflow) -> None:
        self.area = IoArea(name, base, -(-size // PAGE) * PAGE, self._read, self._write)
        self.content = bytearray(content.ljust(self.area.size_bytes, b"\0"))
        self._flow = flow

    def _read(self, address: int, width: int) -> int:
        if self._holds_data("reads", address, width):
            return int.from_bytes(self._flow.constants(address, width), "little")
        first = address - self.area.base
        return int.from_bytes(self.content[first : first + width], "little")

    def _write(self, address: int, width: int, value: int) -> None:
        content = value.to_bytes(width, "little")
        if self._holds_data("writes", address, width):
            self._flow.write(address, np.frombuffer(content, np.uint8).astype(np.int64))
            return
        first = address - self.area.base
        self.content[first : first + width] = content

    def _holds_data(self, verb: str, address: int, width: int) -> bool:
        held = [self._flow.holds(one) for one in range(address, address + width)]
        if any(held) and not all(held):
            raise departure(f"the program {verb} beyond memory for data, at 0x{address:08x}")
        return held[0]


class TracedProgram:
    """A program whose kernels tell the data flow what they compute.

    Raises EmulatorError (E883) if it has no cnn_run() that is called with an input and a result.
    """

    def __init__(self, image: Image, in_bytes: int, out_bytes: int, time_limit: float) -> None:
        if "cnn_run" not in image.symbols:
            raise departure("there is no function cnn_run(in, out)")
        self.flow = Dataflow()
        self.period = 1
        """Hops of a stream after which its rings are where they were, of those seen so far."""
        self.areas = [
            _Area("input", INPUT, in_bytes, b"", self.flow).area,
            _Area("result", OUTPUT, out_bytes, b"", self.flow).area,
        ]
        self._image, self._in_bytes, self._out_bytes = image, in_bytes, out_bytes
        self._time_limit = time_limit
        self.core = Core(image, self)
        self._small = image.architecture.title == "Cortex-M0+"
        self._copying: defaultdict[int, deque[list[tuple[_Run, Integers, Integers]]]]
        self._copying = defaultdict(deque)
        self._convolutions: dict[str, list[tuple[dict[tuple[int, int], bytes], Convolution]]] = {}
        self.flow.add_region(INPUT, in_bytes)
        self.flow.add_region(OUTPUT, out_bytes)
        self._arenas = arenas = [
            (at, size) for at, size, name in image.objects if name in _ARENAS and size
        ]
        for address, size in arenas:
            self.flow.add_region(address, size)
        self._memory = self._covered(arenas)
        table = self._handlers()
        self.core.take_the_place_of(
            {name: table[name] for name in table if name in image.symbols},
            None if self._memory is None else self._memory.area,
        )

    def _covered(self, arenas: list[tuple[int, int]]) -> _Area | None:
        """Return the pages with the arenas and what is between them."""
        if not arenas:
            return None
        first = min(address for address, _ in arenas) // PAGE * PAGE
        end = max(address + size for address, size in arenas)
        size = -(-(end - first) // PAGE) * PAGE
        return _Area("arena", first, size, self.core.read_memory(first, size), self.flow)

    @property
    def state(self) -> bytes:
        """The variables of the program besides data."""
        held = [self.read(at, size) for at, size, name in self._image.objects
                if name not in _ARENAS and at >= RAM]  # fmt: skip
        return b"".join(held)

    def start(self) -> None:
        """Call cnn_init()."""
        self._call("cnn_init")

    def infer(self) -> Integers:
        """Call cnn_run() with new values in the input, and return their numbers."""
        return self._given("cnn_run", self._in_bytes, _OK)

    def hop(self, size: int, *, first: bool) -> Integers:
        """Call cnn_stream() with so many new values, and return their numbers.

        It is among the `first` ones if there were not enough for a window yet.
        """
        self.flow.forget(INPUT, self._in_bytes)
        return self._given("cnn_stream", size, _MORE if first else _OK)

    def _given(self, name: str, size: int, returned: int) -> Integers:
        numbers = self.flow.leaves(size) + np.arange(size)
        self.flow.write(INPUT, numbers)
        self.flow.forget(OUTPUT, self._out_bytes)
        self._call(name, INPUT, OUTPUT, returned=returned)
        if any(self._copying.values()):
            raise departure(f"{name}() does not wait for all of its copies")
        return numbers

    def _call(self, name: str, *arguments: int, returned: int = _OK) -> None:
        results: list[int | None] = []
        if not self.core.keeps_registers(
            lambda: results.append(self.core.call(name, *arguments, time_limit=self._time_limit))
        ):
            raise departure(f"{name}() loses registers of its caller")
        if results != [returned]:
            raise departure(f"{name}() does not return {_RESULTS[returned]}")

    def mark(self) -> Mark:
        """Return how far the program is."""
        return self.flow.mark(OUTPUT, self._out_bytes)

    def mark_all(self) -> Mark:
        """Return how far the program is, with all data that it keeps."""
        parts = [self.flow.codes(at, size) for at, size in self._arenas]
        return Mark(len(self.flow.operations), self.flow.count, np.concatenate(parts))

    def result(self, offset: int, count: int, width: int) -> Integers:
        """Return the numbers of results of `width` bytes each."""
        if width == 1:
            return self.flow.read(OUTPUT + offset + np.arange(count))
        return self.flow.read_wide(OUTPUT + offset, count, width)

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory; data must be constants."""
        if self.flow.holds(address):
            return self.flow.constants(address, size)
        memory = self._memory
        if memory is not None and overlap(address, size, memory.area.base, memory.area.size_bytes):
            first = address - memory.area.base
            return bytes(memory.content[first : first + size])
        return self.core.read_memory(address, size)

    def _handlers(self) -> dict[str, Callable[[], None]]:
        return {
            **{name: partial(self._convolve, name) for name in KERNELS},
            **{f"nn_{join}": partial(self._join, join) for join in _JOINS},
            "nn_keep_max": partial(self._keep, "max"),
            "nn_keep_sum": partial(self._keep, "sum"),
            "nn_mean": self._mean,
            "nn_pool_max": partial(self._pool, "max"),
            "nn_pool_mean": partial(self._pool, "average"),
            "nn_copy": self._copies,
            "nn_copy_start": self._start_copy,
            "nn_copy_start_2d": self._start_copies,
            "nn_copy_wait": self._end_copies,
            "nn_roll": self._roll,
            "nn_slide_move": self._slide,
            "nn_run_planes": self._planes,
            "nn_run_channels": self._chain,
            "memcpy": self._copy,
            "memmove": self._copy,
            "memset": self._set,
        }

    def _arguments(self, count: int) -> list[int]:
        return [self.core.argument(number) for number in range(count)]

    def _pointers(self, address: int, count: int) -> list[int]:
        if count > _LARGEST:
            raise departure(f"a kernel reads {count} rows")
        return [int(one) for one in np.frombuffer(self.read(address, 4 * count), "<u4")]

    def _convolve(self, name: str) -> None:
        at, rows, first, count, out, scratch = self._arguments(6)
        params = Parameters.at(at, self.read)
        conv = self._convolution(
            (name, params), lambda read: convolution(name, params, read, small=self._small)
        )
        width = _WIDE_BYTES if params.wide else 1
        places = pixels_read(params, name, self._pointers(rows, params.kernel_rows), first, count)
        if scratch % 4 or out % width or (params.wide and conv.passes_on and out % 4):
            raise departure("memory is not aligned")
        written = [(out, count * conv.filters * width), (scratch, conv.scratch_bytes)]
        numbers = self.flow.read(places)
        lost = within(places, written)
        if lost.any():
            numbers[lost] = self.flow.unknown(int(lost.sum()))
        results = self.flow.compute(conv, numbers, conv.filters, width)
        self.flow.write(out, results, width)
        self.flow.forget(scratch, conv.scratch_bytes)

    def _convolution(self, said: object, make: Callable[[Read], Convolution]) -> Convolution:
        """Return what is made of parameters and of weights, which may be read; the same if both
        are.
        """
        known = self._convolutions.setdefault(repr(said), [])
        for reads, conv in known:
            if all(self.read(*span) == content for span, content in reads.items()):
                return conv
        reads = {}

        def read(address: int, size: int) -> bytes:
            content = self.read(address, size)
            if address >= RAM:  # else it stays
                reads[address, size] = content
            return content

        known.append((reads, make(read)))
        return known[-1][1]

    def _planes(self) -> None:
        at, image, out = self._arguments(3)
        planes = Planes.at(at, self.read)
        follow_planes(self.flow, planes, self._convolution(planes, planes.convolution), image, out)

    def _chain(self) -> None:
        at, image, out = self._arguments(3)
        chain = Chain.at(at, self.read)
        convolutions = {
            number: self._convolution(link, link.convolution)
            for number, link in enumerate(chain.links)
            if link.conv
        }
        follow_chain(self.flow, chain, convolutions, image, out)

    def _join(self, name: str) -> None:
        operands, count, number, out = self._arguments(4)
        if count < 1 or count * number > _LARGEST:
            raise departure(f"{count} operands of {number} values")
        each = np.arange(number)
        places = np.array(self._pointers(operands, count))[None] + each[:, None]
        numbers = self._in_turn(places, out)
        self.flow.write(out, self.flow.compute((name, count), numbers))

    def _in_turn(self, places: Integers, out: int) -> Integers:
        """Return what is read at places [result, input] if each result is written at once."""
        numbers = self.flow.read(places)
        lost = (places >= out) & (places < out + np.arange(len(places))[:, None])
        if lost.any():
            numbers[lost] = self.flow.unknown(int(lost.sum()))
        return numbers

    def _keep(self, name: str) -> None:
        out, pixels, count, channels, again = self._arguments(5)
        if count < 1 or count * channels > _LARGEST:
            raise departure(f"a window of {count} pixels of {channels} channels")
        width = _SUM_BYTES if name == "sum" else 1
        each = np.arange(channels)
        places = pixels + each[:, None] + channels * np.arange(count)
        values = self.flow.read(places)
        lost = within(places, [(out, channels * width)])
        if lost.any():
            values[lost] = self.flow.unknown(int(lost.sum()))
        earlier = None
        if again:
            is_sum = name == "sum"
            earlier = (
                self.flow.read_wide(out, channels, width)
                if is_sum
                else (self.flow.read(out + each))
            )
        if out % width:
            raise departure("memory is not aligned")
        self.flow.write(out, self.flow.gather(name, earlier, values, width), width)

    def _mean(self) -> None:
        out, sums, number, count, rounded = self._arguments(5)
        terms = self.flow.terms(self.flow.read_wide(sums, number, _SUM_BYTES))
        if terms.shape[1] != count or overlap(out, number, sums, _SUM_BYTES * number):
            raise departure(f"an average divides {terms.shape[1]} values by {count}, or destroys "
                            "their sums")  # fmt: skip
        self.flow.write(out, self.flow.compute(("average", count, bool(rounded)), terms))

    def _pool(self, name: str) -> None:
        at, rows, out = self._arguments(3)
        pool = PoolParameters.at(at, self.read)
        size = pool.rows * pool.columns * pool.width * pool.channels
        if not 0 < size <= _LARGEST:
            raise departure(f"pooling of {size} values in a row")
        base = np.array(self._pointers(rows, pool.rows))
        column = np.arange(pool.width)[:, None] * pool.stride + (
            np.arange(pool.columns) * pool.dilation
        )
        places = (
            base[:, None] + (column * pool.channels)[:, None, None]
            + np.arange(pool.channels)[None, :, None, None]
        ).reshape(pool.width * pool.channels, -1)  # fmt: skip
        kind = (name, places.shape[1]) + ((bool(pool.rounded),) if name == "average" else ())
        self.flow.write(out, self.flow.compute(kind, self._in_turn(places, out)))

    def _copies(self) -> None:
        """Follow copies of runs."""
        for run in _runs(*self._arguments(6)):
            self._moved(*run)

    def _start_copy(self) -> None:
        channel, to, source, size = self._arguments(4)
        self._begin(channel, [(to, source, size)])

    def _start_copies(self) -> None:
        channel, *arguments = self._arguments(7)
        self._begin(channel, _runs(*arguments))

    def _begin(self, channel: int, runs: Iterable[_Run]) -> None:
        """Follow copies that are somewhere between now and when they are waited for."""
        started = []
        for to, source, size in runs:
            before = self._codes(source, size)
            if size and self.flow.holds(to):
                self.flow.forget(to, size)
            started.append(((to, source, size), before, self._codes(to, size)))
        self._copying[channel].append(started)

    def _end_copies(self) -> None:
        (channel,) = self._arguments(1)
        if not self._copying[channel]:
            raise departure(f"nothing is copied on channel {channel}")
        for (to, source, size), before, behind in self._copying[channel].popleft():
            if np.array_equal(self._codes(source, size), before) and np.array_equal(
                self._codes(to, size), behind
            ):
                self._moved(to, source, size)
            else:
                self.flow.forget(to, size)

    def _codes(self, address: int, size: int) -> Integers:
        """Return the codes of bytes; none if they are no data."""
        if not size or not self.flow.holds(address):
            return np.zeros(0, np.int64)
        return self.flow.codes(address, size).copy()

    def _roll(self) -> None:
        buffer, size, dropped = self._arguments(3)
        codes = self.flow.codes(buffer, size)
        kept = codes[min(dropped, size) :].copy()
        codes[: len(kept)] = kept
        codes[len(kept) :] = ZERO

    def _slide(self) -> None:
        at, moved = self._arguments(2)
        slide = SlideParameters.at(at, self.read)
        place, edge = np.frombuffer(self.read(moved, 4), "<u2").astype(np.int64)
        if slide.data_ring < slide.data_rows:
            place += slide.step
            place -= slide.data_ring * (place >= slide.data_ring)
            self.period = lcm(self.period, slide.data_ring // gcd(slide.data_ring, slide.step))
        else:
            size, dropped = slide.rows * slide.row_bytes, slide.hop * slide.row_bytes
            codes = self.flow.codes(slide.ring, size)
            codes[: size - dropped] = codes[dropped:].copy()
        self.period = lcm(self.period, max(slide.edge_ring, 1))
        edge = edge + 1 if edge + 1 < slide.edge_ring else 0
        self._store(moved, np.array([place, edge]).astype("<u2").tobytes())

    def _copy(self) -> None:
        to, source, size = self._arguments(3)
        self._moved(to, source, size)

    def _moved(self, to: int, source: int, size: int) -> None:
        if not size:
            return
        if not self.flow.holds(to):
            if self.flow.holds(source):
                raise departure(f"data are copied to address 0x{to:08x}, which is not for data")
            self._store(to, self.read(source, size))
        elif self.flow.holds(source):
            codes = self.flow.codes(source, size).copy()
            if overlap(to, size, source, size):
                codes[:] = self.flow.unknown(size)
            self.flow.codes(to, size)[:] = codes
        else:
            content = np.frombuffer(self.read(source, size), np.uint8)
            self.flow.write(to, content.astype(np.int64))

    def _store(self, address: int, content: bytes) -> None:
        memory = self._memory
        if memory is not None and overlap(
            address, len(content), memory.area.base, memory.area.size_bytes
        ):
            first = address - memory.area.base
            memory.content[first : first + len(content)] = content
        else:
            self.core.write_memory(address, content)

    def _set(self) -> None:
        to, value, size = self._arguments(3)
        value = truncated(value, 8)
        if self.flow.holds(to):
            self.flow.write(to, np.full(size, value))
        else:
            self._store(to, bytes([value]) * size)


def _runs(
    to: int, to_step: int, source: int, source_step: int, length: int, count: int
) -> list[_Run]:
    """Return runs of bytes: where each goes to, where it is, and its length."""
    return [(to + n * to_step, source + n * source_step, length) for n in range(count)]
