"""What a wrong word means to the network: kernel, bias or pixel, searched value by value."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from ai8xtools.answer import Answer, LayerAnswer, LayerForm
from ai8xtools.emulator.comparison.places import describe_wrong
from ai8xtools.emulator.comparison.words import input_places
from ai8xtools.emulator.comparison.wrong import ByteChange, Kind, WrongWord
from ai8xtools.emulator.decode.config import Kernels, LayerConfig, LayerKind
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.packing import Made, pack, set_field, start, taps_of
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT
from tests.emulator.test_compared import answer_of
from tests.emulator.test_decoded import places, processors_of
from tests.emulator.test_random_programs import bias_place, network

Span = tuple[int, int]


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_words_of_input_are_where_the_chip_has_them_and_nowhere_outside(chip: Chip) -> None:
    memory = Memory(chip)
    last = chip.instance_bytes // 4 - 2
    for instance, word in product(range(16), (0, 1, last)):
        start = DEFAULT_APB_BASE + chip.data_address(instance, 4 * word)
        found = input_places(memory, start, 2)
        assert [x.tolist() for x in found] == [[instance] * 2, [word, word + 1]]
    step = chip.instance_stride
    every = range(DEFAULT_APB_BASE, DEFAULT_APB_BASE + chip.data_address(15) + 9 * step, step)
    for address in every:  # whatever an answer file says
        found_there = np.stack(input_places(memory, address, 1), axis=1)
        assert (found_there >= 0).all() and (found_there < memory.data.shape[:2]).all()


def known(config: LayerConfig, order: Sequence[int]) -> LayerAnswer:
    """Return what an answer file tells of a layer: its channels are some of the outputs."""
    where = np.array([places(config)[output] for output in order], np.int64).reshape(-1, 3)
    return LayerAnswer(
        number=config.layer, name="", shape=(len(order), 1, 1), wide=config.output.wide,
        is_output=False, step=1, places=where, form=LayerForm.FULL, values=None,
    )  # fmt: skip


def spans(text: str, what: str) -> Iterator[tuple[str, Span]]:
    """Yield the names and numbers of all `what 3` and `whats 3 to 5` of a text."""
    for name, first, last in re.findall(rf"({what})s? (\d+)(?: to (\d+))?", text):
        yield name, (int(first), int(last or first))


def span(numbers: set[int]) -> Span:
    return min(numbers), max(numbers)


def output_text(config: LayerConfig, order: Sequence[int], outputs: set[int]) -> str:
    """Return what outputs are called: channels if the file knows some of them."""
    every = places(config)
    listed = {every[output]: number for number, output in enumerate(order)}
    numbers = {listed[every[output]] for output in outputs if every[output] in listed}
    name = "output channel" if numbers else "output"
    first, last = span(numbers or outputs)
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"


def kernel_bits(memory: Memory, c: LayerConfig) -> dict[tuple[int, int, int, int], list[list[int]]]:
    """Return for each bit of kernel memory (processor, column, byte, bit) what it belongs to.

    That is the output (of a depth-wise layer 0), the input channel, row and column of the kernel.
    """
    k, used, passes = c.kernels, processors_of(c), c.input.passes
    found: dict[tuple[int, int, int, int], list[list[int]]] = {}
    outputs = c.output.slots * c.output.passes if c.kind is LayerKind.CONVOLUTION else 1
    columns = outputs * passes * 9 * k.bits // (taps_of(c) * 8)
    part = max(-(-columns // 4), 1)
    for output, n, (i, p), tap in product(
        range(outputs), range(passes), enumerate(used), range(taps_of(c))
    ):
        number = output * passes + n
        if c.kind is LayerKind.DEPTHWISE:
            number = k.count - passes + n
        if k.four_at_once:
            number = (output % 4 * (outputs // 4) + output // 4) * passes + n
        elif number >= k.count:
            continue
        at = k.start + number // (8 // k.bits) * taps_of(c) + taps_of(c) - 1 - tap
        column = at // 9
        if k.four_at_once:
            which, place = divmod(column - k.start // 9, part)
            column = which * memory.chip.kernel_part_columns + k.start // 9 % 1024 + place
        for bit in range(k.bits):
            key = p, column, 8 - at % 9, number % (8 // k.bits) * k.bits + bit
            place = [output, n * len(used) + i, *divmod(tap, k.shape[1])]
            found.setdefault(key, []).append(place)
    return found


def programs(
    chip: Chip, count: int
) -> Iterator[tuple[Memory, list[Made], Answer, list[list[int]]]]:
    """Yield memories with layers, and what an answer file says of these."""
    draw = random.Random(f"places of {chip.name}")
    for seed in range(count):
        accelerator, layers, _ = network(draw, chip, seed)
        orders = []
        for made in layers:
            every = range(len(places(made.config)))
            orders.append(draw.sample(every, draw.randint(0, len(every))))
        answers = [known(m.config, order) for m, order in zip(layers, orders, strict=True)]
        yield accelerator.memory, layers, answer_of(*answers), orders


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_wrong_bit_of_a_kernel_is_that_of_its_output_channel_and_tap(chip: Chip) -> None:
    draw, told = random.Random(2), Counter[bool]()
    for memory, layers, answer, orders in programs(chip, 10):
        bits = [
            kernel_bits(memory, made.config)
            if made.config.kind is not LayerKind.PASSTHROUGH and not made.config.kernels.bypass
            else {}
            for made in layers
        ]
        tried = [draw.choice([*some]) for some in bits if some for _ in range(4)]
        tried += [(draw.randrange(64), draw.randrange(40), draw.randrange(9), 3) for _ in range(3)]
        for processor, column, byte, bit in tried:
            change = ByteChange(processor, column, byte, 1 << bit)
            address = DEFAULT_APB_BASE + chip.kernel_address(processor, column)
            word = WrongWord(Kind.KERNEL, "cnn_load_weights", address, 1, 3, (change,))
            text = describe_wrong(memory, answer, word)
            wanted = []
            for made, of_layer, order in zip(layers, bits, orders, strict=True):
                found = of_layer.get((processor, column, byte, bit))
                if not found:
                    continue
                inputs, taps = {f[1] for f in found}, {(f[2], f[3]) for f in found}
                first, last = span(inputs)
                channels = f"channel {first}" if first == last else f"channels {first} to {last}"
                line = f"kernel of layer {made.config.layer}, "
                if made.config.kind is LayerKind.DEPTHWISE:
                    line += channels
                else:
                    line += output_text(made.config, order, {f[0] for f in found})
                    line += f", input {channels}"
                row, of_row = next(iter(taps))
                line += f", {len(taps)} taps" if len(taps) > 1 else f", row {row} column {of_row}"
                wanted.append(line)
            assert [line for line in wanted if line not in text] == []
            assert text.count("kernel of layer") == len(set(wanted))
            assert f"processor {processor} kernel column {column}" in text
            told[bool(wanted)] += 1
    assert min(told.values()) > 5


def test_layer_with_kernels_beyond_the_memory_hides_no_other() -> None:
    told = 0
    for memory, layers, answer, _ in programs(MAX78000, 25):
        with_kernels = [
            one.config
            for one in layers
            if one.config.kind is not LayerKind.PASSTHROUGH and not one.config.kernels.bypass
        ]
        if len(with_kernels) < 2:
            continue
        broken, last = with_kernels[0], with_kernels[-1]
        for group in range(4):
            for field in ("first", "last"):
                set_field(memory, broken.layer, group, ("MCNT", field), 0xFFFF)
        processor, column, byte, bit = next(iter(kernel_bits(memory, last)))
        change = ByteChange(processor, column, byte, 1 << bit)
        word = WrongWord(Kind.KERNEL, "cnn_load_weights", 0x50180000, 1, 3, (change,))
        text = describe_wrong(memory, answer, word)
        assert f"kernel of layer {last.layer}, " in text
        assert f"kernel of layer {broken.layer}, " not in text
        place = bias_place(memory.chip, last, 0, first=False)
        if place is not None:
            word = WrongWord(Kind.BIAS, "cnn_load_bias", 0, 1, 2, (ByteChange(*place, 0, 3),))
            assert f"bias of layer {last.layer}, " in describe_wrong(memory, answer, word)
        told += 1
    assert told > 2


def test_kernels_of_a_layer_whose_groups_share_the_outputs_belong_to_channels_of_group_0() -> None:
    memory, slots, begin = Memory(MAX78000), 8, 12
    config = dataclasses.replace(
        LAYER, enabled=(0x5,) * 4, with_kernels=(0x5,) * 4,
        kernels=Kernels((3, 3), 8, 8 * begin, 9 * begin, slots // 4, False, False),
        input=dataclasses.replace(INPUT, size=(4, 4), pooled=(4, 4)),
        output=dataclasses.replace(OUTPUT, slots=slots),
    )  # fmt: skip
    pack(memory, Made(config, begin, is_start=True), quad=True)
    answer = answer_of(known(config, range(slots)))
    for quad in (1, 0):
        start(memory, 0, 0, fifo=1, fifo_quad=quad)
        assert decode_layer(memory, 0).processors == config.processors
        for group, (channel, unit), number in product(range(4), enumerate((0, 2)), range(2)):
            change = ByteChange(16 * group + unit, begin + number, 4, 1)
            word = WrongWord(Kind.KERNEL, "cnn_load_weights", 0x50180000, 1, 3, (change,))
            output = 4 * number + group if quad else number
            entry = channel if quad else 2 * group + channel
            assert (
                f"kernel of layer 0, output channel {output}, input channel {entry}, row 1 column 1"
            ) in describe_wrong(memory, answer, word)


def test_words_are_named_by_what_is_known_of_them() -> None:
    memory, answer = Memory(MAX78000), answer_of()
    fifo = DEFAULT_APB_BASE + 8
    pushed = WrongWord(Kind.PUSH, "load_input", fifo, 0x12, 0x34567890, number=7)
    assert "word 7: expected 0x00000012, found 0x34567890" in describe_wrong(memory, answer, pushed)
    block = dataclasses.replace(pushed, expected=None, actual=None)
    assert "several words" in describe_wrong(memory, answer, block)
    assert "expected" not in describe_wrong(memory, answer, block)
    changes = tuple(ByteChange(5, column, 0, 1) for column in (9, 7, 8))
    kernels = WrongWord(Kind.KERNEL, "cnn_load_weights", 0x50180000, None, None, changes)
    assert "several words of processor 5 kernel columns 7 to 9" in describe_wrong(
        memory, answer, kernels
    )
    nameless = WrongWord(Kind.REGISTER, "cnn_init", 0x40000000, 0xA, 0xB)
    assert describe_wrong(memory, answer, nameless).endswith(
        "expected 0x0000000a, found 0x0000000b"
    )


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_wrong_bias_is_that_of_the_outputs_it_is_added_to(chip: Chip) -> None:
    """A byte in front of the biases belongs to none where the first layer streams."""
    told = Counter[bool]()
    for memory, layers, answer, orders in programs(chip, 20):
        users: dict[tuple[int, int], list[tuple[int, set[int]]]] = {}
        for number, made in enumerate(layers):
            c = made.config
            if c.kind is LayerKind.PASSTHROUGH:
                continue
            for output in range(len(places(c))):
                place = bias_place(memory.chip, c, output, first=number == 0)
                if place is None:
                    continue
                listed = users.setdefault(place, [])
                if not listed or listed[-1][0] != number:
                    listed.append((number, set()))
                listed[-1][1].add(output)
        edges = {(g, i + n) for g, i in users for n in (-1, 0, 1) if i + n >= 0}
        streams = any(made.config.ring_words for made in layers)
        for group, index in sorted(edges)[:: 1 if streams else 5]:
            change = ByteChange(group, index, 0, 3)
            address = DEFAULT_APB_BASE + chip.bias_address(group, index)
            word = WrongWord(Kind.BIAS, "cnn_load_bias", address, 1, 2, (change,))
            text = describe_wrong(memory, answer, word)
            wanted = []
            for number, outputs in users.get((group, index), []):
                c = layers[number].config
                wanted.append(f"bias of layer {c.layer}, {output_text(c, orders[number], outputs)}")
            assert [line for line in wanted if line not in text] == []
            assert text.count("bias of layer") == len(set(wanted))
            told[bool(wanted)] += 1
    assert min(told.values()) > 3


def test_a_wrong_pixel_is_that_of_the_first_layer_that_reads_it() -> None:
    for memory, layers, answer, _ in programs(MAX78000, 8):
        held: dict[tuple[int, int], tuple[int, set[int], int]] = {}
        for number, made in enumerate(layers):
            c, i = made.config, made.config.input
            used = processors_of(c)
            for (n, p), pixel in product(enumerate(used), range(i.size[0] * i.size[1])):
                for o, of_pass in product(range(i.operands), range(i.passes)):
                    word = i.read_word + o + (pixel * i.passes + of_pass) * i.operands
                    word = i.read_word + pixel // 4 if i.chw else word
                    channel = (o * i.passes + of_pass) * len(used) + n
                    layer, channels, at = held.setdefault((p // 4, word), (number, set(), pixel))
                    if layer == number:
                        channels.add(channel)
                        held[p // 4, word] = layer, channels, min(at, pixel)
        for (instance, word), (number, channels, pixel) in sorted(held.items())[::7]:
            c = layers[number].config
            address = DEFAULT_APB_BASE + MAX78000.data_address(instance, 4 * word)
            wrong = WrongWord(Kind.INPUT, "load_input", address, 1, 2)
            text = describe_wrong(memory, answer, wrong)
            row, column = divmod(pixel, c.input.size[1])
            assert f"input of layer {c.layer}, channel" in text
            named = dict(spans(text, "(?<=, )channel"))
            assert named["channel"] == span(channels)
            if len(channels) == 1:
                assert f"row {row}, column {column}" in text
        nowhere = DEFAULT_APB_BASE + MAX78000.data_address(3, 4 * 0x1FFF)
        assert "input of" not in describe_wrong(
            memory, answer, WrongWord(Kind.INPUT, "load_input", nowhere, 1, 2)
        )


def test_fields_of_a_wrong_register_are_named() -> None:
    memory, answer = Memory(MAX78000), answer_of()
    register = MAX78000.layer_registers["LCTL2"]
    address = DEFAULT_APB_BASE + MAX78000.layer_address(2, 3, "LCTL2")
    draw = random.Random(1)
    for _ in range(30):
        values = [
            {field.name: draw.choice([0, 1, 2]) for field in register.fields} for _ in range(2)
        ]
        wanted, found = (register.pack(**fields) for fields in values)
        word = WrongWord(Kind.REGISTER, "cnn_configure", address, wanted, found)
        text = describe_wrong(memory, answer, word)
        for field in register.fields:
            one, other = (fields[field.name] for fields in values)
            assert (f"{field.name} {one} became {other}" in text) == (one != other)
        assert f"0x{wanted:08x}" in text and f"0x{found:08x}" in text
        surplus = dataclasses.replace(word, expected=0, surplus=True)
        assert "nothing" in describe_wrong(memory, answer, surplus)
