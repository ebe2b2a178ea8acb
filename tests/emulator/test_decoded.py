"""Decoding and estimates against loops written from the specification, on random layers."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.decode import own_input
from ai8xtools.emulator.decode.config import Kernels, LayerConfig, LayerKind, WritePointer
from ai8xtools.emulator.decode.cycles import network_cycles
from ai8xtools.emulator.decode.fifo import fifo_image, push_image, surplus_words
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.decode.locations import (
    input_bytes,
    output_bytes,
    output_locations,
    unused_lanes,
    words_of,
)
from ai8xtools.emulator.decode.weights import columns_of, depthwise_bias, layer_bias, layer_kernels
from ai8xtools.emulator.machine.execution import LayerExecution
from ai8xtools.emulator.machine.kernels import DecodedKernels
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE, FAST_FIFO_DATA
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT

KINDS = tuple(LayerKind)


def drawn(draw: random.Random, kind: LayerKind) -> LayerConfig:
    """Return a layer in which every quantity is drawn, whether or not a program can have it."""
    taps = draw.choice([(1, 1), (3, 3), (2, 3), (4, 1)])
    pool = draw.choice([(1, 1), (2, 2), (2, 3), (3, 1)])
    pooled = draw.randint(4, 7), draw.randint(4, 7)
    stride = draw.randint(1, 3)
    passes, slots = draw.randint(1, 4), draw.randint(1, 9)
    inputs = dataclasses.replace(
        INPUT,
        size=tuple((n - 1) * stride + w for n, w in zip(pooled, pool, strict=True)),
        pooled=pooled,
        pad=(draw.randint(0, taps[0] - 1), draw.randint(0, taps[1] - 1)),
        pooling=pool != (1, 1),
        pool=pool,
        stride=stride,
        operands=draw.randint(1, 3),
        pool_first=draw.random() < 0.5,
        passes=passes,
        read_word=draw.randint(0, 50),
        read_gap=draw.randint(0, 2),
    )
    output = dataclasses.replace(
        OUTPUT,
        slots=slots,
        passes=draw.randint(1, 3),
        gap=draw.randint(0, 2),
        wide=draw.random() < 0.3,
        pointers=tuple(WritePointer(draw.randint(0, 15), draw.randint(0, 99)) for _ in range(4)),
        bias_offsets=tuple(draw.choice([None, 0, 5, 32]) for _ in range(4)),
    )
    enabled = [draw.choice([0, draw.getrandbits(16), 0xF, 0x30]) for _ in range(4)]
    if not any(enabled):
        enabled[draw.randrange(4)] = 0x7
    first = next(group for group, mask in enumerate(enabled) if mask)
    count = passes * draw.choice([1, 1, 2, slots])
    start = draw.randint(0, 4)
    return dataclasses.replace(
        LAYER,
        kind=kind,
        base_group=0 if kind is LayerKind.CONVOLUTION else first,
        enabled=tuple(enabled),
        transposed=draw.random() < 0.2,
        input=inputs,
        kernels=Kernels(taps, 8, 8 * start, start * taps[0] * taps[1], count, False, False),
        output=output,
    )


def layers(kind: LayerKind, count: int = 150) -> Iterator[LayerConfig]:
    draw = random.Random(kind.value)
    for _ in range(count):
        yield drawn(draw, kind)


def processors_of(config: LayerConfig) -> list[int]:
    return [p for p in range(64) if config.enabled[p // 16] >> p % 16 & 1]


def table_of_latency(config: LayerConfig, slots: int, flatten: bool) -> int:
    """Return the cycles of docs/hardware/execution.md, "Latency", in its names."""
    inputs = config.input
    p, n = inputs.passes, inputs.operands
    w = inputs.pool[0] * inputs.pool[1]
    rows, columns = inputs.pooled
    last = inputs.pooling and n > 1 and not inputs.pool_first
    if config.kind is LayerKind.PASSTHROUGH:
        if inputs.pooling:
            p = 2 * p - 1
        d = p * (n * w + 1) if last else p * n * (w + 1)
        return rows * columns * (d + p * slots)
    if config.transposed:
        rows, columns = 2 * rows, 2 * columns
    (kh, kw), (ph, pw) = config.kernels.shape, inputs.pad
    outs = columns + 2 * pw - kw + 1
    k = config.kernels.count // p
    m = p if last else 1
    d = p * (n * w + 1) if last else p * n * (w + 1)
    e = 2 * p if last else 2 * p * n
    edge = 2 * pw * (e + 1)
    row = pw * (e + 1) + m * ((kw - 1 - pw) * (d + 1) + (outs - pw) * d) + pw * e
    bottom = pw * (e + 1) + m * ((kw - 1 - pw) * (e + 1) + (outs - pw) * e) + pw * e
    outputs = p * outs * k + (p == 1 and k == 1)
    ahead = kh - 1 - ph
    total = ph * (edge + m * columns * (e + 1)) + ahead * (edge + m * columns * (d + 1))
    total += (rows - ahead) * row + ph * bottom + (rows - ahead + ph) * outputs + flatten
    if last:
        again = (rows + 2 * ph - kw + 1) * pw + (columns + 2 * pw - kh + 1) * ph - ph * pw
        total += again * (config.kernels.start // 9)
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_latency_is_that_of_the_table(kind: LayerKind) -> None:
    for number, config in enumerate(layers(kind)):
        slots, flatten = number % 5, number % 2
        streaming = dataclasses.replace(config, layer=1, stream_start=4)
        fields = {"ONED": {"time_slots": slots - 1}, "POST": {"flatten": 3 * flatten}}
        memory = cast(Any, SimpleNamespace(register=lambda _, name, f=fields: f[name]))
        wanted = table_of_latency(config, slots, bool(flatten))
        once, again = network_cycles(memory, [config, streaming])
        assert (once.estimate, once.uncertain) == (wanted, False)
        assert again.estimate == -(-3 * wanted // 2)
        assert (again.uncertain, again.layer) == (True, 1)
        inputs, (rows, columns) = config.input, config.output_size
        window = inputs.pool[0] * inputs.pool[1]
        pixels = inputs.pooled[0] * inputs.pooled[1]
        assert once.fetches == pixels * window * inputs.passes * inputs.operands
        kernels = rows * columns * config.kernels.count
        assert once.steps == (0 if kind is LayerKind.PASSTHROUGH else kernels)
        # A start layer has a start with every FIFO, and streams only with a ring buffer
        fed = dataclasses.replace(config, stream_start=4)
        ringed = dataclasses.replace(fed, ring_words=9)
        assert [network_cycles(memory, [c])[0].uncertain for c in (fed, ringed)] == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_read_where_the_registers_say(kind: LayerKind) -> None:
    for config in layers(kind, 25):
        inputs, size = config.input, 1024
        instance, offset = input_bytes(config, size)
        for i, p in enumerate(processors_of(config)):
            for o in range(inputs.operands):
                for n in range(inputs.passes):
                    for x in (0, 1, inputs.size[0] * inputs.size[1] - 1):
                        word = inputs.read_word + o
                        word += (x * inputs.passes + n) * inputs.operands * (inputs.read_gap + 1)
                        assert instance[i, o, n, x] == p // 4
                        assert offset[i, o, n, x] == (4 * word + p % 4) % size
        planar = dataclasses.replace(inputs, chw=True, passes=1, operands=1)
        _, offset = input_bytes(dataclasses.replace(config, input=planar), size)
        assert (offset == 4 * inputs.read_word + np.arange(inputs.size[0] * inputs.size[1])).all()


def places(config: LayerConfig) -> list[tuple[int, int, int]]:
    """Return instance, lane and first word of each output, in the order of calculation."""
    output = config.output
    step = (4 if output.wide else 1) * (output.gap + 1)
    found = []
    if config.kind is LayerKind.CONVOLUTION:
        start = output.pointers[config.base_group]
        for number in range(output.passes):
            for slot in range(output.slots):
                unit = (4 * start.instance + slot) % 64
                found.append((unit // 4, unit % 4, start.word + number * step))
        return found
    used = processors_of(config)
    for number in range(config.input.passes):
        for p in used:
            start = output.pointers[p // 16]
            own = [q for q in used if q // 16 == p // 16]
            if config.kind is LayerKind.PASSTHROUGH:
                slot = own[0] % 4 + own.index(p)
            else:  # in front of the first processor of the layer nothing is written
                first = used[0] if p // 16 == used[0] // 16 else p // 16 * 16
                slot = p - first + max(config.kernels.count // config.input.passes - 1, 0)
            unit = (4 * start.instance + slot) % 64
            if config.broadcast:
                unit = p
            found.append((unit // 4, unit % 4, start.word + number * step))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_go_where_the_registers_say(kind: LayerKind) -> None:
    for number, drawn_layer in enumerate(layers(kind)):
        config = dataclasses.replace(
            drawn_layer, broadcast=kind is LayerKind.DEPTHWISE and number % 3 == 0
        )
        place, wanted = output_locations(config), places(config)
        columns = place.instance.tolist(), place.lane.tolist(), place.word.tolist()
        assert list(zip(*columns, strict=True)) == wanted
        output = config.output
        step = output.passes * (4 if output.wide else 1) * (output.gap + 1)
        words = words_of(config, place, 3)
        instances, offsets = output_bytes(config, place, 3)
        for i, (instance, lane, word) in enumerate(wanted):
            for x in range(3):
                expected = word + x * step + (lane if output.wide else 0)
                assert words[i, x] == expected
                of = 4 * expected + np.arange(4) if output.wide else 4 * expected + lane
                assert (offsets[i, x] == of).all()
                assert (instances[i, x] == instance).all()


def test_unused_lanes_are_those_without_kernels_that_nobody_reads() -> None:
    draw, compared = random.Random(3), Counter[bool]()
    for config in layers(LayerKind.CONVOLUTION, 300):
        output, start = config.output, config.start
        empty = np.array([[draw.random() < 0.5 for _ in range(output.slots)]] * output.passes)
        weights = np.zeros((output.passes * output.slots, 2, 1, 1), np.int64)
        weights[~empty.reshape(-1), draw.randrange(2)] = -1
        reads = dataclasses.replace(config.input, read_word=start.word + draw.choice([0, 0, 1]))
        mask = tuple(draw.getrandbits(16) for _ in range(4))
        following = dataclasses.replace(config, enabled=mask, input=reads)
        readers = processors_of(following) if reads.read_word == start.word else None
        wanted, gaps = [], 0
        for n in range(output.passes):
            seen = False
            for slot in range(output.slots):
                wanted.append(gaps)
                if readers is None:
                    continue
                unread = (4 * start.instance + slot) % 64 not in readers
                seen |= not unread
                gaps += bool(empty[n, slot]) and unread and (seen or output.passes > 1)
        found = unused_lanes(config, weights, following)
        assert found.tolist() == np.reshape(wanted, empty.shape).tolist()
        assert not unused_lanes(config, weights, None).any()
        compared[gaps > 0] += 1
    assert min(compared[True], compared[False]) > 20


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", [LayerKind.CONVOLUTION, LayerKind.DEPTHWISE])
def test_kernels_are_cut_out_of_the_stream(kind: LayerKind, bits: int) -> None:
    """Byte 8 of a column is the first of its stream, the last tap the first of its kernel."""
    memory = Memory(MAX78000)
    memory.kernels[:] = np.random.default_rng(bits).integers(0, 256, memory.kernels.shape)
    per_byte = 8 // bits
    draw = random.Random(bits)
    for config in layers(kind, 12):
        passes = config.input.passes
        outputs = config.output.slots * config.output.passes
        if kind is LayerKind.CONVOLUTION:
            count, skipped, stored = passes * outputs, 0, passes * outputs
        else:
            # registers may count fewer than there are passes: the others are not there
            count = draw.choice([passes, 2 * passes, 4 * passes, passes - 1, 0])
            stored = max(count, passes)
            outputs, skipped = 1, stored - passes
        if kind is LayerKind.CONVOLUTION and draw.random() < 0.5:
            # the last ones are not counted, and are not there; registers may even count none
            count -= draw.choice([1, 1, count, count + 3])
        kernels = dataclasses.replace(config.kernels, bits=bits, count=count)
        config = dataclasses.replace(config, kernels=kernels)
        found = layer_kernels(memory, config, binary=False, quad=False)
        rows, columns = kernels.shape
        taps = rows * columns
        wanted = np.zeros((len(config.processors), stored, taps), int)
        for i, p in enumerate(processors_of(config)):
            for number in range(max(count, 0)):
                for tap in range(taps):
                    at = kernels.start + number // per_byte * taps + taps - 1 - tap
                    byte = int(memory.kernels[p, at // 9, 8 - at % 9])
                    value = byte >> number % per_byte * bits & (1 << bits) - 1
                    wanted[i, number, tap] = value - (value >> bits - 1 << bits)
        shape = len(config.processors), outputs, passes, rows, columns
        assert np.array_equal(found, wanted[:, skipped:].reshape(shape))
        whole = columns_of(config)
        used = {(kernels.start + i) // 9 for i in range(-(-count // per_byte) * taps)}
        assert set(range(whole.start, whole.stop)) == used or not used
        binary = layer_kernels(memory, config, binary=True, quad=False)
        present = list(range(max(count, 0) - skipped)) if bits == 1 else []
        flat = binary.reshape(len(binary), -1, taps)
        assert (flat[:, present] == 1 + 2 * found.reshape(flat.shape)[:, present]).all()
        assert bits == 1 or np.array_equal(binary, found)


def value_of(byte: int, number: int, bits: int) -> int:
    """Return the signed value of `bits` bits that is the number-th of a byte."""
    value = byte >> number * bits & (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_four_outputs_at_once_read_the_four_parts(bits: int) -> None:
    """docs/hardware/memory.md, "Four outputs at a time"; for 3x3 kernels."""
    memory = Memory(MAX78002)
    memory.kernels[:] = np.random.default_rng(bits).integers(0, 256, memory.kernels.shape)
    per_byte = 8 // bits
    for slots, passes, begin in ((8, 1, 0), (8, 2, 2052), (24, 3, 1004)):
        kernels = Kernels((3, 3), bits, 0, 9 * begin, slots * passes, False, True)
        config = dataclasses.replace(
            LAYER,
            enabled=(0x5, 0, 0x8, 0),
            kernels=kernels,
            input=dataclasses.replace(INPUT, passes=passes),
            output=dataclasses.replace(OUTPUT, slots=slots),
        )
        found = layer_kernels(memory, config, binary=False, quad=False)
        order = [*range(0, slots, 4), *range(1, slots, 4), *range(2, slots, 4), *range(3, slots, 4)]
        listed = [(output, n) for output in order for n in range(passes)]
        columns = -(-len(listed) // per_byte)
        for i, p in enumerate((0, 2, 35)):
            for number, (output, n) in enumerate(listed):
                part, place = divmod(number // per_byte, -(-columns // 4))
                column = memory.kernels[p, part * 1024 + begin % 1024 + place].tolist()
                wanted = [value_of(column[tap], number % per_byte, bits) for tap in range(9)]
                assert found[i, output, n].reshape(-1).tolist() == wanted


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_outputs_of_a_quad_layer_are_dealt_out_to_the_groups(bits: int) -> None:
    """Each group has every fourth output, packed like those of any layer."""
    memory = Memory(MAX78000)
    memory.kernels[:] = np.random.default_rng(bits).integers(0, 256, memory.kernels.shape)
    per_byte = 8 // bits
    for slots, begin in ((4 * per_byte, 0), (32, 12)):
        kernels = Kernels((3, 3), bits, 0, 9 * begin, slots, False, False)
        output = dataclasses.replace(OUTPUT, slots=slots)
        config = dataclasses.replace(LAYER, enabled=(0x5, 0, 0, 0), kernels=kernels, output=output)
        found = layer_kernels(memory, config, binary=False, quad=True)
        for i, p in enumerate((0, 2)):
            for number in range(slots):
                group, own = number % 4, number // 4
                column = memory.kernels[p + 16 * group, begin + own // per_byte].tolist()
                wanted = [value_of(column[tap], own % per_byte, bits) for tap in range(9)]
                assert found[i, number, 0].reshape(-1).tolist() == wanted


def test_kernels_are_decoded_again_when_others_have_been_written() -> None:
    decoded, memory, modes = DecodedKernels(), Memory(MAX78000), {"binary": 0}
    before = decoded.of(memory, LAYER, modes, quad=False)
    assert decoded.of(memory, LAYER, modes, quad=False) is before
    memory.kernels[:] = 1
    memory.kernel_version += 1
    assert (decoded.of(memory, LAYER, modes, quad=False).values != before.values).any()


@pytest.mark.parametrize("kind", [LayerKind.CONVOLUTION, LayerKind.DEPTHWISE])
def test_only_binary_kernels_of_unsure_outputs_do_not_count_as_used(kind: LayerKind) -> None:
    """A bit of zero is a weight of one there, so that nobody can tell an output without kernels."""
    decoded, memory = DecodedKernels(), Memory(MAX78000)
    memory.kernels[:] = 0xFF
    for bits, binary, passes, slots in product((1, 2, 8), (0, 1), (1, 2), (9, 16)):
        count = passes * slots if kind is LayerKind.CONVOLUTION else 1
        config = dataclasses.replace(
            LAYER,
            kind=kind,
            enabled=(0xF, 0, 0x11, 0),
            kernels=Kernels((1, 1), bits, 0, 0, count, False, False),
            output=dataclasses.replace(OUTPUT, slots=slots, passes=passes),
        )
        used = decoded.of(memory, config, {"binary": binary}, quad=False).used.reshape(-1).tolist()
        unsure = 0
        if binary and bits == 1:
            unsure = 6 if kind is LayerKind.DEPTHWISE else slots if passes > 1 else 7
        assert used == [True] * (len(used) - unsure) + [False] * unsure
        assert len(used) == (6 if kind is LayerKind.DEPTHWISE else count)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_biases_begin_where_the_registers_of_each_group_say(chip: Chip) -> None:
    """In steps of four bytes where four outputs are made at a time, or of a broadcast layer."""
    lctl = chip.layer_registers["LCTL"].by_name
    modes = product((0, 1), (0, 1), (0, 1), (0, 4))
    for number, (four, depthwise, spread, step) in enumerate(modes):
        draw, memory = random.Random(number), Memory(chip)
        wanted: list[int | None] = []
        for group in range(4):
            fields = {"calcx4": four, "depthwise": depthwise, "bias": draw.randrange(2)}
            fields["bias_offset"] = draw.randrange(chip.bias_bytes // 4)
            words = {"POST": fields, "ENA": {"processors": 1}, "WPTR_TOFFS": {"words": step}}
            if "depthwise_broadcast" in lctl:
                words["LCTL"] = {"depthwise_broadcast": spread}
            for name, values in words.items():
                address = DEFAULT_APB_BASE + chip.layer_address(group, 3, name)
                memory.registers[address] = chip.layer_registers[name].pack(**values)
            broadcast = "LCTL" in words and depthwise and spread and not step
            unit = 4 if four or broadcast else 1
            wanted.append(unit * fields["bias_offset"] if fields["bias"] else None)
        assert decode_layer(memory, 3).output.bias_offsets == tuple(wanted)


def test_a_layer_whose_groups_share_the_outputs_has_the_channels_of_group_0() -> None:
    """That is the start layer with the mode of one FIFO for all groups, and no other."""
    draw = random.Random(6)
    for quad, first, _ in product((0, 1), (False, True), range(6)):
        memory = Memory(MAX78000)
        address = DEFAULT_APB_BASE + MAX78000.control_address(0, "CTL")
        memory.registers[address] = MAX78000.control_registers["CTL"].pack(fifo_quad=quad)
        masks = tuple(draw.randrange(1, 1 << 16) for _ in range(4))
        config = dataclasses.replace(LAYER, enabled=masks)
        execution = LayerExecution(memory, config, (), [], first=first)
        alone = quad and first
        assert execution.config.processors == tuple(
            16 * group + n
            for group in range(1 if alone else 4)
            for n in range(16)
            if masks[group] >> n & 1
        )


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_kernels_behind_the_memory_are_refused(chip: Chip) -> None:
    memory = Memory(chip)
    ends = 9 * memory.kernels.shape[1]
    for start, refused in ((ends - 18, False), (ends - 9, True)):
        kernels = dataclasses.replace(LAYER.kernels, shape=(3, 3), start=start, count=2)
        output = dataclasses.replace(OUTPUT, slots=2)
        config = dataclasses.replace(LAYER, kernels=kernels, output=output)
        if not refused:
            assert layer_kernels(memory, config, binary=False, quad=False).size == 18
            continue
        with pytest.raises(EmulatorError) as caught:
            layer_kernels(memory, config, binary=False, quad=False)
        assert caught.value.code == "E832"
        assert f" {ends + 9} " in caught.value.message
        assert str(ends) in caught.value.message


@pytest.mark.parametrize("bypass", [False, True])
def test_more_kernels_than_a_memory_could_hold_are_refused_before_room_is_made(
    bypass: bool,
) -> None:
    kernels = dataclasses.replace(LAYER.kernels, shape=(3, 3), bypass=bypass)
    output = dataclasses.replace(OUTPUT, passes=1 << 35, slots=64)
    config = dataclasses.replace(LAYER, kernels=kernels, output=output)
    with pytest.raises(EmulatorError) as caught:
        layer_kernels(Memory(CHIPS[0]), config, binary=False, quad=False)
    assert caught.value.code == "E832" and "at most" in caught.value.message


def test_biases_follow_each_other_in_the_first_group_with_some() -> None:
    draw = random.Random(5)
    for config in layers(LayerKind.CONVOLUTION):
        output = config.output
        shape = output.passes, output.slots
        gaps = np.cumsum([draw.randrange(2) for _ in range(shape[0] * shape[1])]).reshape(shape)
        skip, quad = draw.random() < 0.5, draw.random() < 0.3
        group, index = layer_bias(config, gaps, skip_first=skip, quad=quad)
        users = [g for g in range(4) if output.bias_offsets[g] is not None]
        for n in range(shape[0] * shape[1]):
            place = divmod(n, output.slots)
            if not users:
                wanted = 0, -1
            elif quad:
                wanted = n % 4, (output.bias_offsets[n % 4] or 0) + n // 4
            else:
                first = output.bias_offsets[users[0]]
                assert first is not None
                wanted = users[0], first + n - int(gaps[place]) + skip
            assert (group[place], index[place]) == wanted


def test_biases_of_depthwise_layers_stand_in_each_group() -> None:
    for number, drawn_layer in enumerate(layers(LayerKind.DEPTHWISE)):
        config = dataclasses.replace(drawn_layer, broadcast=number % 3 == 0)
        used, offsets = processors_of(config), config.output.bias_offsets
        group, index = depthwise_bias(config)
        assert index.shape == (config.input.passes, len(used))
        for n in range(config.input.passes):
            for i, p in enumerate(used):
                own = p // 16
                first = used[0] if own == used[0] // 16 else 16 * own
                span = used[-1] - first + 1 if own == used[-1] // 16 else 16
                offset = offsets[own]
                if offset is None:
                    wanted = -1
                elif config.broadcast:
                    wanted = offset + 16 * n + 4 * (p % 4) + p % 16 // 4
                else:
                    wanted = offset + n * span + p - first
                assert (group[n, i], index[n, i]) == (own, wanted)


def fed(draw: random.Random, *, chw: bool, groups: tuple[int, ...]) -> LayerConfig:
    enabled = tuple(draw.choice([1, 3, 0xB]) if g in groups else 0 for g in range(4))
    size = draw.randint(1, 5), draw.randint(1, 5)
    if chw:
        enabled = tuple(min(mask, 1) for mask in enabled)
    inputs = dataclasses.replace(INPUT, size=size, pooled=size, chw=chw)
    return dataclasses.replace(LAYER, enabled=enabled, input=inputs)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("chw", [False, True])
@pytest.mark.parametrize("groups", [(0,), (0, 1), (1, 3), (0, 1, 2, 3)])
def test_words_of_fifos_hold_the_image(groups: tuple[int, ...], chw: bool, fast: bool) -> None:
    draw, random_values = random.Random(str((groups, chw))), np.random.default_rng(1)
    for _ in range(8):
        config, memory = fed(draw, chw=chw, groups=groups), Memory(MAX78000)
        if fast:
            memory.pushes = {FAST_FIFO_DATA: [1]}
        used, pixels = processors_of(config), config.input.size[0] * config.input.size[1]
        image = random_values.integers(-128, 128, (len(used), *config.input.size))
        push_image(memory, config, image)
        count = -(-pixels // 4) if chw else pixels
        words: dict[int, list[int]] = {}
        for g in groups:
            held = np.zeros((count, 4), np.uint8)
            for i, p in enumerate(used):
                data = image[i].reshape(-1).astype(np.int8).view(np.uint8)
                if p // 16 == g and chw:
                    held.reshape(-1)[:pixels] = data
                elif p // 16 == g:
                    held[:, p % 4] = data
            words[g] = [int.from_bytes(bytes(row), "little") for row in held.tolist()]
        numbers = {group: address for address, group in memory.addresses.fifos.items()}
        turns = [words[g][i] for i in range(count) for g in groups]
        by_group = {numbers[g]: words[g] for g in groups}
        assert memory.pushes == ({FAST_FIFO_DATA: turns} if fast else by_group)
        assert (fifo_image(memory, config)[0] == image).all()
        assert surplus_words(memory, config) == ({}, count)
        for pushed in memory.pushes.values():
            pushed += [7] * (len(groups) if fast else 1)
        assert surplus_words(memory, config) == (dict.fromkeys(groups, 1), count)
        for pushed in memory.pushes.values():
            del pushed[-(len(groups) + 1 if fast else 2) :]
        with pytest.raises(EmulatorError) as caught:
            fifo_image(memory, config)
        assert caught.value.code == "E833"
        assert f"got {count - 1} words" in caught.value.message
        memory.pushes = {}
        with pytest.raises(EmulatorError, match="got 0 words"):
            fifo_image(memory, config)


def test_own_input_stands_where_the_layer_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, values = random.Random(8), np.random.default_rng(8)
    for config in layers(LayerKind.CONVOLUTION, 25):
        memory, inputs = Memory(MAX78000), config.input
        monkeypatch.setattr(own_input, "first_layer", lambda _, c=config: c)
        used = processors_of(config)
        shape = inputs.operands * inputs.passes * len(used), *inputs.size
        assert own_input.input_shape(memory) == shape
        image = values.integers(-128, 128, shape)
        own_input.set_input(memory, image)
        instance, offset = input_bytes(config, memory.data_bytes.shape[1])
        for _ in range(20):
            o, n = draw.randrange(inputs.operands), draw.randrange(inputs.passes)
            i, y = draw.randrange(len(used)), draw.randrange(inputs.size[0])
            x = draw.randrange(inputs.size[1])
            place = i, o, n, y * inputs.size[1] + x
            channel = (o * inputs.passes + n) * len(used) + i
            byte = memory.data_bytes[instance[place], offset[place]]
            assert byte == image[channel, y, x] & 0xFF
        assert memory.data_written.sum() == len({*zip(instance.flat, offset.flat, strict=True)})
        for wrong in (image[:-1], image.astype(float)):
            with pytest.raises(ValueError, match="shape"):
                own_input.set_input(memory, wrong)
        for far in (-129, 128):
            with pytest.raises(ValueError, match="128"):
                own_input.set_input(memory, np.full(shape, far))
