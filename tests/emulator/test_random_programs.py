"""Networks of random layers: one value at a time in Python's integers, the machine, and batches.

Layers read and write wherever they like, in a memory full of random bytes.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator
from ai8xtools.emulator.decode.config import ElementwiseOperation, LayerConfig, LayerKind
from ai8xtools.emulator.decode.own_input import input_values, set_input
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, Chip
from tests import plain_arithmetic as plain
from tests.emulator.packing import Made, drawn, kinds_of, pack, start, taps_of
from tests.emulator.test_decoded import places, processors_of, value_of

OPERATIONS = {
    ElementwiseOperation.SUB: "sub",
    ElementwiseOperation.ADD: "add",
    ElementwiseOperation.OR: "or",
    ElementwiseOperation.XOR: "xor",
}
Image = list[list[int]]
Cells = dict[tuple[int, int], int]
"""Bytes by instance and offset; where there is none, the byte of the memory at the start."""


def bias_place(chip: Chip, c: LayerConfig, output: int, *, first: bool) -> tuple[int, int] | None:
    """Return group and number of the bias of an output, in the order of calculation."""
    offsets, used = c.output.bias_offsets, processors_of(c)
    if c.kind is LayerKind.CONVOLUTION:
        group = next((g for g in range(4) if offsets[g] is not None), 0)
        place = output + (first and c.ring_words > 0 and chip.skips_stream_bias)
    else:
        number, i = divmod(output, len(used))
        p = used[i]
        group = p // 16
        base = used[0] if group == used[0] // 16 else 16 * group
        span = used[-1] - base + 1 if group == used[-1] // 16 else 16
        place = number * span + p - base
        if c.broadcast:
            place = 16 * number + 4 * (p % 4) + p % 16 // 4
    offset = offsets[group]
    return None if offset is None else (group, offset + place)


class Plain:
    """A network, one value after the other."""

    def __init__(self, memory: Memory, layers: Sequence[Made], modes: dict[str, int]) -> None:
        self.memory, self.layers, self.modes = memory, layers, modes
        self.written: Cells = {}
        self.outputs: list[list[Image]] = []
        private: Cells | None = None
        for number, made in enumerate(layers):
            streams = number + 1 < len(layers) and layers[number + 1].config.stream_start > 0
            target: Cells = {} if streams else self.written
            self._run(made.config, private, target, first=number == 0)
            private = target if streams else None

    def _byte(self, instance: int, offset: int, private: Cells | None) -> int:
        if private is not None:
            value = private.get((instance, offset), 0)
        else:
            kept = self.memory.data_bytes[instance, offset]
            value = self.written.get((instance, offset), int(kept))
        return value - (value >> 7 << 8)

    def _operands(self, c: LayerConfig, private: Cells | None, *, first: bool) -> Iterator[Image]:
        """Yield the operands of one channel after the other: passes outside."""
        i = c.input
        rows, columns = i.size
        for n, p, o in product(range(i.passes), processors_of(c), range(i.operands)):
            image = []
            for y in range(rows):
                row = []
                for x in range(columns):
                    pixel = y * columns + x
                    if first and self.memory.pushes:
                        words = self.memory.pushes[self._fifo(p // 16)]
                        byte = pixel if i.chw else 4 * pixel + p % 4
                        value = words[byte // 4] >> 8 * (byte % 4) & 255
                        row.append(value - (value >> 7 << 8))
                        continue
                    word = i.read_word + o
                    word += (pixel * i.passes + n) * i.operands * (i.read_gap + 1)
                    byte = 4 * i.read_word + pixel if i.chw else 4 * word + p % 4
                    row.append(self._byte(p // 4, byte, private))
                image.append(row)
            yield image

    def _fifo(self, group: int) -> int:
        return next(a for a, g in self.memory.addresses.fifos.items() if g == group)

    def _pooled(self, c: LayerConfig, image: Image) -> Image:
        i = c.input
        kind = "none" if not i.pooling else "max" if i.max_pool else "avg"
        rounding = bool(self.modes.get("average_rounding")) and not c.conv1d
        window = i.pool if i.pooling else (1, 1)
        right = 1 if c.conv1d else i.stride
        found = plain.pooled(
            image, window, (i.stride, right), i.pool_dilation, kind, rounding=rounding
        )
        return [row[: i.pooled[1]] for row in found[: i.pooled[0]]]

    def _channels(self, c: LayerConfig, private: Cells | None, *, first: bool) -> list[Image]:
        count, operation = c.input.operands, OPERATIONS[c.input.operation]
        every = list(self._operands(c, private, first=first))
        channels = []
        for number in range(0, len(every), count):
            operands = every[number : number + count]
            if c.input.pool_first or count == 1:
                operands = [self._pooled(c, image) for image in operands]
            joined = [
                [plain.combined(values, operation) for values in zip(*rows, strict=True)]
                for rows in zip(*operands, strict=True)
            ]
            alone = count == 1 or c.input.pool_first
            channels.append(joined if alone else self._pooled(c, joined))
        return channels

    def _stream_byte(self, c: LayerConfig, processor: int, at: int, stored: int) -> int:
        column, byte = divmod(at, 9)
        k = c.kernels
        if k.four_at_once:
            part = -(-(stored * 9 * k.bits // (taps_of(c) * 8)) // 4)
            which, place = divmod(column - k.start // 9, part)
            column = which * self.memory.chip.kernel_part_columns + k.start // 9 % 1024 + place
        return int(self.memory.kernels[processor, column, 8 - byte])

    def _kernel(self, c: LayerConfig, processor: int, number: int, stored: int) -> Image:
        """Return the kernel of that number in the stream of a processor."""
        k, taps = c.kernels, taps_of(c)
        if k.bypass:
            return [[1] * k.shape[1] for _ in range(k.shape[0])]
        values = []
        for tap in range(taps):
            if number >= k.count and not k.four_at_once:
                values.append(0)
                continue
            at = k.start + number // (8 // k.bits) * taps + taps - 1 - tap
            byte = self._stream_byte(c, processor, at, stored)
            value = value_of(byte, number % (8 // k.bits), k.bits)
            values.append(1 + 2 * value if self.modes.get("binary") and k.bits == 1 else value)
        return [values[k.shape[1] * r : k.shape[1] * (r + 1)] for r in range(k.shape[0])]

    def _bias(self, c: LayerConfig, output: int, *, first: bool) -> int:
        place = bias_place(self.memory.chip, c, output, first=first)
        return 0 if place is None else int(self.memory.bias[place])

    def _sums(self, c: LayerConfig, channels: list[Image], *, first: bool) -> Iterator[Image]:
        used, passes = processors_of(c), c.input.passes
        pad, lying = c.input.pad, channels
        if c.transposed:
            lying = [plain.stretched(image) for image in channels]
        if c.kind is LayerKind.DEPTHWISE:
            outputs = len(channels)
        else:
            outputs = c.output.slots * c.output.passes
        stored = outputs * passes
        for output in range(outputs):
            if c.kind is LayerKind.DEPTHWISE:
                n, i = divmod(output, len(used))
                kernels = [self._kernel(c, used[i], c.kernels.count - passes + n, 0)]
                images = [lying[output]]
            else:
                at = output
                if c.kernels.four_at_once:
                    at = output % 4 * (outputs // 4) + output // 4
                kernels = [
                    self._kernel(c, p, at * passes + n, stored) for n in range(passes) for p in used
                ]
                images = lying
            bias = 128 * self._bias(c, output, first=first)
            yield [[v + bias for v in row] for row in plain.convolved(images, kernels, pad)]

    def _run(self, c: LayerConfig, private: Cells | None, target: Cells, *, first: bool) -> None:
        channels = self._channels(c, private, first=first)
        o, outputs = c.output, channels
        if c.kind is not LayerKind.PASSTHROUGH:
            outputs = [
                [
                    [
                        plain.activated(
                            value if o.wide else plain.narrowed(value, o.shift), o.activation.value
                        )
                        if not (o.wide and o.activation.value != "none")
                        else wide_activated(value, o.activation.value)
                        for value in row
                    ]
                    for row in image
                ]
                for image in self._sums(c, channels, first=first)
            ]
        self.outputs.append(outputs)
        step = (4 if o.wide else 1) * (o.gap + 1) * o.passes
        for (instance, lane, word), image in zip(places(c), outputs, strict=True):
            for pixel, value in enumerate(v for row in image for v in row):
                at = 4 * (word + pixel * step + (lane if o.wide else 0))
                if not o.wide:
                    target[instance, at + lane] = value & 255
                    continue
                for n in range(4):
                    target[instance, at + n] = value >> 8 * n & 255


def wide_activated(value: int, activation: str) -> int:
    """Apply an activation to a sum, which may have 32 bits."""
    return min(max(value, 0) if activation == "ReLU" else abs(value), 127)


def network(
    draw: random.Random, chip: Chip, seed: int
) -> tuple[Accelerator, list[Made], dict[str, int]]:
    """Return an accelerator with random memories, its layers (up to three) and modes."""
    accelerator, numbers = Accelerator(chip), np.random.default_rng(seed)
    memory = accelerator.memory
    memory.data[:] = numbers.integers(0, 1 << 32, memory.data.shape, np.uint32)
    memory.kernels[:] = numbers.integers(0, 256, memory.kernels.shape)
    memory.bias[:] = numbers.integers(-128, 128, memory.bias.shape)
    for written in (memory.data_written, memory.kernels_written, memory.bias_written):
        written[:] = True
    fed, count = draw.random() < 0.4, draw.choice([1, 2, 2, 3])
    streams = fed and draw.random() < 0.6
    order = list(range(count))
    if chip.has_next_layer and not streams:
        order = draw.sample(range(6), count)
    layers: list[Made] = []
    for n, number in enumerate(order):
        following = order[n + 1] if n + 1 < count else None
        kind = draw.choice(kinds_of(chip))
        made = drawn(
            draw, chip, number, kind, is_start=n == 0, next_layer=following,
            single=fed and n == 0, most=3,
        )  # fmt: skip
        config = made.config
        if layers and config.input.read_word == layers[-1].config.start.word:
            config = dataclasses.replace(
                config,
                input=dataclasses.replace(config.input, read_word=config.input.read_word + 1),
            )
        if fed and n == 0 and draw.random() < 0.5:
            config = dataclasses.replace(config, stream_start=3)
        if streams and n < 2:
            config = dataclasses.replace(config, stream_start=4, ring_words=50)
        layers.append(dataclasses.replace(made, config=config))
        pack(memory, layers[-1])
    modes = {
        name: draw.randrange(2)
        for name in ("average_rounding", "binary")
        if name in chip.control_registers["CTL"].by_name
    }
    start(memory, order[0], order[-1], fifo=int(fed), streaming=int(streams), **modes)
    if fed:
        first = layers[0].config.input
        pixels = first.size[0] * first.size[1]
        words = -(-pixels // 4) if first.chw else pixels
        groups = {p // 16 for p in processors_of(layers[0].config)}
        memory.pushes = {
            address: numbers.integers(0, 1 << 32, words).tolist()
            for address, group in memory.addresses.fifos.items()
            if group in groups
        }
    return accelerator, layers, modes


def copied(accelerator: Accelerator) -> Accelerator:
    """Return an accelerator with the same program, whose run changes nothing in this one."""
    other, memory = copy.copy(accelerator), copy.copy(accelerator.memory)
    memory.data, memory.data_written = memory.data.copy(), memory.data_written.copy()
    memory.pushes = {address: [*words] for address, words in memory.pushes.items()}
    other.memory = memory
    return other


def executed(accelerator: Accelerator) -> tuple[NetworkRun, Memory]:
    """Execute in a copy."""
    other = copied(accelerator)
    return other.run(), other.memory


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_network_leaves_what_plain_integers_give(chip: Chip) -> None:
    draw, seen = random.Random(chip.name), Counter[str]()
    for seed in range(18):
        accelerator, layers, modes = network(draw, chip, seed)
        plainly = Plain(accelerator.memory, layers, modes)
        before = accelerator.memory.data_bytes.copy()
        run, memory = executed(accelerator)
        assert [done.config for done in run.layers] == [made.config for made in layers]
        for done, wanted in zip(run.layers, plainly.outputs, strict=True):
            assert done.output.tolist() == wanted, done.config
        for place, value in plainly.written.items():
            before[place] = value
        assert np.array_equal(memory.data_bytes, before)
        seen["fed"] += bool(accelerator.memory.pushes)
        seen["streams"] += any(made.config.ring_words for made in layers)
    assert min(seen[name] for name in ("fed", "streams")) > 2


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_many_inputs_at_once_give_what_each_gives_alone(chip: Chip) -> None:
    draw, numbers = random.Random(chip.name), np.random.default_rng(3)
    for seed in range(7):
        accelerator, layers, _ = network(draw, chip, seed)
        _, memory = executed(accelerator)
        changed = np.nonzero(memory.data_bytes != accelerator.memory.data_bytes)
        kept = accelerator.memory.data.copy()
        batch = NetworkBatch(accelerator, (changed[0], changed[1]))
        images = numbers.integers(-128, 128, (3, *batch.shape)).astype(np.int8)
        batch.size = 2
        outputs: list[tuple[int, Any]] = []

        def keep(config: LayerConfig, output: Any, to: list[tuple[int, Any]] = outputs) -> None:
            to.append((config.layer, output))

        found = batch.run(images, keep)
        assert [n for n, _ in outputs] == 2 * [made.config.layer for made in layers]
        for number, image in enumerate(images):
            other = copied(accelerator)
            set_input(other.memory, image)
            run = other.run()
            assert np.array_equal(found[number], other.memory.data_bytes[changed])
            of_batch = outputs[number // 2 * len(layers) :]
            for (_, output), done in zip(of_batch, run.layers, strict=False):
                assert np.array_equal(output[..., number % 2], done.output)
        assert np.array_equal(accelerator.memory.data, kept)
        steps = list(batch.traced(accelerator.memory))
        run = executed(accelerator)[0]
        for (step, operands, output), done in zip(steps, run.layers, strict=True):
            assert step.config == done.config
            assert np.array_equal(output[..., 0], done.output)
            assert operands.shape[0] == step.config.input.operands
            assert operands.shape[2:] == (*step.config.input.size, 1)
        assert np.array_equal(accelerator.memory.data, kept)
        accelerator.memory.data_written[:] = False
        batch.run_in(accelerator.memory)
        assert np.array_equal(accelerator.memory.data, memory.data)
        assert accelerator.memory.data_written[changed].all()
        assert not accelerator.memory.pushes


def test_every_byte_of_the_input_is_told_by_its_values() -> None:
    """Words of FIFOs come first; the data memory that the layer reads follows."""
    draw = random.Random(5)
    for seed in range(6):
        accelerator, _, _ = network(draw, CHIPS[0], seed)
        memory = accelerator.memory
        before = input_values(memory)
        set_input(memory, np.ones(NetworkBatch(accelerator).shape, np.int64))
        assert input_values(memory) != before
