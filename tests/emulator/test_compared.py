"""What differs from an answer file is told exactly: values of layers, words of programs."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from ai8xtools.answer import PHASES, Answer, HashedWords, LayerAnswer, LayerForm
from ai8xtools.answer.content import (
    NO_WORDS,
    Registers,
    StoredBiases,
    grid_width,
    hashed_channels,
    hashed_columns,
    hashed_rows,
)
from ai8xtools.answer.hashes import BLOCK_WORDS, run_hashes
from ai8xtools.emulator import NetworkRun, Writes
from ai8xtools.emulator.comparison.layers import LayerDeparture, Pixel, _surplus, compare_layers
from ai8xtools.emulator.comparison.partial import accepted_writes, next_word, written_so_far
from ai8xtools.emulator.comparison.places import describe_wrong
from ai8xtools.emulator.comparison.words import WordComparison, compare_words
from ai8xtools.emulator.comparison.wrong import ByteChange, Kind, WrongWord
from ai8xtools.emulator.decode.locations import OutputLocations, output_locations
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.state.memory import Memory
from device import MAX78000
from device.chip import DEFAULT_APB_BASE, FIFO_DATA
from tests.emulator.by_hand import Words, one_by_one
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT

SHAPES = [(5, 9, 10), (6, 4, 7), (3, 5, 5), (4, 12, 8), (2, 1, 1), (5, 7, 20)]
Array = np.ndarray[Any, np.dtype[np.int64]]


def executed(shape: tuple[int, int, int], values: Array, number: int, *, wide: bool) -> LayerRun:
    """Return a layer that delivers values [channel, row, column], lane by lane."""
    inputs = dataclasses.replace(INPUT, size=shape[1:], pooled=shape[1:])
    output = dataclasses.replace(OUTPUT, slots=shape[0], wide=wide)
    config = dataclasses.replace(LAYER, layer=number, input=inputs, output=output)
    return LayerRun(config, values, output_locations(config))


def known_layer(
    run: LayerRun, form: LayerForm, order: list[int], *, is_output: bool = False
) -> LayerAnswer:
    """Return what an answer file keeps of it, with the channels in another order."""
    values, place = run.output[order], run.place
    width = grid_width(values.shape)
    rows = columns = None
    if form is LayerForm.CHANNELS:
        rows = hashed_channels(values)
    elif form is not LayerForm.FULL:
        rows = hashed_rows(values, width)
    if form is LayerForm.LINES:
        columns = hashed_columns(values, width)
    return LayerAnswer(
        number=run.config.layer,
        name="",
        shape=values.shape,
        wide=run.config.output.wide,
        is_output=is_output,
        step=run.config.output.step,
        places=np.stack([place.instance, place.lane, place.word], axis=1)[order],
        form=form,
        values=values if form is LayerForm.FULL else None,
        rows=rows,
        columns=columns,
    )


def answer_of(*layers: LayerAnswer, registers: Registers | None = None) -> Answer:
    none = np.zeros(0, np.uint32)
    return Answer(
        chip="MAX78000",
        apb_base=DEFAULT_APB_BASE,
        name="",
        express=False,
        registers=registers or Registers(none, none, np.zeros(0, np.uint8)),
        biases=StoredBiases(none, np.zeros(0, np.uint8)),
        kernels=NO_WORDS,
        inputs=NO_WORDS,
        pushes=NO_WORDS,
        layers=layers,
    )


def first_wrong(form: LayerForm, wanted: Array, found: Array) -> Pixel | None:
    """Return what can be told of the first wrong value: search pixel by pixel."""
    columns = wanted.shape[2]
    width = grid_width(wanted.shape)
    wrong = [place for place in np.ndindex(*wanted.shape) if wanted[place] != found[place]]
    if not wrong:
        return None
    channel, row, column = wrong[0]
    values = int(wanted[wrong[0]]), int(found[wrong[0]])
    if form is LayerForm.FULL:
        return Pixel(channel, row, column, *values)
    if form is LayerForm.CHANNELS:
        return Pixel(channel)
    cells = {divmod(y * columns + x, width) for c, y, x in wrong if c == channel}
    one_line = min(len({cell[axis] for cell in cells}) for axis in (0, 1)) == 1
    if form is LayerForm.LINES and one_line:
        return Pixel(channel, row, column, actual=values[1])
    return Pixel(channel, min(line for line, _ in cells) if width == columns else None)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("form", LayerForm)
def test_first_wrong_value_is_told_as_exactly_as_the_file_can(form: LayerForm, wide: bool) -> None:
    draw, numbers = random.Random(form.value), np.random.default_rng(int(wide))
    for shape in SHAPES:
        for count in (0, 1, 1, 1, 2, 2, 3, 9):
            values = numbers.integers(-128, 128, shape)
            order = draw.sample(range(shape[0]), shape[0])
            layer = known_layer(executed(shape, values, 3, wide=wide), form, order)
            damaged = values.copy()
            line = draw.randrange(shape[0]), draw.randrange(shape[1])
            for n in range(count):
                place = (*line, draw.randrange(shape[2]))
                if n and count == 9:
                    place = tuple(map(draw.randrange, shape))
                elif count == 3:
                    place = line[0], draw.randrange(shape[1]), shape[2] // 2
                damaged[place] = values[place] + draw.choice([-1, 1, 300])
            run = NetworkRun([executed(shape, damaged, 3, wide=wide)])
            found = compare_layers(run, answer_of(layer))
            wanted = first_wrong(form, values[order], damaged[order])
            departure = None if wanted is None else LayerDeparture(layer, wanted)
            assert (found.compared, found.missing, found.wrong_outputs) == ((3,), (), ())
            assert found.first == departure, shape


def test_layers_are_compared_in_the_order_of_execution() -> None:
    """Layers that the file does not know are left out, those not executed are missing."""
    draw = random.Random(6)
    shape = (2, 3, 3)
    right = np.arange(18).reshape(shape)
    for _ in range(60):
        numbers = draw.sample(range(8), 8)
        wrong = {n for n in numbers if draw.random() < 0.3}
        outputs = {n for n in numbers if draw.random() < 0.5}
        known, done = draw.sample(numbers, 6), draw.sample(numbers, 6)
        layers = [
            known_layer(
                executed(shape, right, n, wide=False),
                LayerForm.FULL,
                [0, 1],
                is_output=n in outputs,
            )
            for n in known
        ]
        runs = [executed(shape, right - (n in wrong), n, wide=False) for n in done]
        found = compare_layers(NetworkRun(runs), answer_of(*layers))
        compared = [n for n in done if n in known]
        departed = [n for n in compared if n in wrong]
        missing = [n for n in known if n not in done]
        assert list(found.compared) == compared
        assert list(found.missing) == missing
        assert (found.first.layer.number if found.first else None) == next(iter(departed), None)
        results = [n for n in departed if n in outputs] + [n for n in missing if n in outputs]
        assert list(found.wrong_outputs) == results


def test_channels_that_are_not_in_their_words_are_told() -> None:
    shape = (6, 3, 3)
    values = np.arange(54).reshape(shape)
    run = executed(shape, values, 0, wide=False)
    layer = known_layer(run, LayerForm.FULL, list(range(6)))
    for channel in range(6):
        for axis in range(3):
            places = layer.places.copy()
            places[channel:, axis] += 40
            moved = dataclasses.replace(layer, places=places)
            first = compare_layers(NetworkRun([run]), answer_of(moved)).first
            assert first is not None and first.pixel is None
            instance, lane, word = places[channel].tolist()
            place = f"channel {channel} at instance {instance} lane {lane} word 0x{word:x}"
            assert place in first.text
    wide = executed(shape, values, 0, wide=True)
    for done, bits in ((wide, 32), (run, 8)):
        other = dataclasses.replace(layer, wide=bits == 8)
        first = compare_layers(NetworkRun([done]), answer_of(other)).first
        assert first is not None and first.pixel is None
        assert str(bits) in first.text


def loaded(words: Words) -> tuple[NetworkRun, Memory]:
    run, accelerator = words.run()
    return run, accelerator.memory


def test_more_than_the_right_registers_deliver_is_told() -> None:
    """Further channels or pixels; not if the registers are right, or the file knows the channel."""
    image = np.arange(1, 21).reshape(1, 5, 4)
    run, memory = loaded(one_by_one(image[:, :4], np.array([[1], [2]])))
    registers = memory.registers
    stored = Registers(
        np.array([*registers], np.uint32),
        np.array([*registers.values()], np.uint32),
        np.zeros(len(registers), np.uint8),
    )
    answer = answer_of(
        known_layer(run.layers[0], LayerForm.FULL, [0, 1], is_output=True), registers=stored
    )
    assert compare_layers(run, answer, memory).first is None
    more, other = loaded(one_by_one(image[:, :4], np.array([[1], [2], [3]])))
    found = compare_layers(more, answer, other)
    assert found.first is not None and found.first.pixel is None
    assert "channel at instance 0 lane 2 word 0x800" in found.first.text
    assert found.wrong_outputs == (0,)
    assert compare_layers(more, answer).first is None  # nobody knows the right registers
    all_three = answer_of(known_layer(more.layers[0], LayerForm.FULL, [2, 0, 1]), registers=stored)
    assert compare_layers(more, all_three, other).first is None
    taller, other = loaded(one_by_one(image, np.array([[1], [2]])))
    found = compare_layers(taller, answer, other)
    assert found.first is not None and "20 pixels, not 16" in found.first.text


def test_outputs_are_too_many_beyond_those_of_the_right_registers_and_of_the_file() -> None:
    """Two channels of 16 pixels are right; the file may know others, whose places count as well."""
    draw, told = random.Random(11), Counter[str]()
    run, memory = loaded(one_by_one(np.ones((1, 4, 4), int), np.array([[1], [2]])))
    spots = [(0, 0, 0x800), (0, 1, 0x800), (0, 2, 0x800), (3, 0, 0x810), (0, 0, 0x801)]
    base = known_layer(run.layers[0], LayerForm.FULL, [0, 1])
    for _ in range(400):
        known = draw.sample(spots, draw.randint(1, 3))
        shape = len(known), *draw.choice([(2, 2), (4, 4), (4, 5)])
        layer = dataclasses.replace(base, shape=shape, places=np.array(known))
        made = draw.choices(spots[: draw.randint(1, 5)], k=draw.randint(1, 4))
        rows, columns = draw.choice([(4, 4), (4, 4), (1, 17), (3, 7)])
        config = run.layers[0].config
        place = OutputLocations(*(np.array(part) for part in zip(*made, strict=True)))
        done = LayerRun(config, np.zeros((len(made), rows, columns), np.int64), place)
        right = {*spots[:2], *known}
        other = [one for one in made if one not in right]
        wanted = ""
        if other or len(made) > max(2, len(known)):
            instance, lane, word = (other or made[max(2, len(known)) :])[0]
            wanted = f"channel at instance {instance} lane {lane} word 0x{word:x}"
        elif rows * columns > max(16, shape[1] * shape[2]):
            wanted = f"delivers {rows * columns} pixels, not {max(16, shape[1] * shape[2])}"
        found = _surplus(layer, done, memory)
        assert (found is not None) == bool(wanted)
        assert found is None or wanted in found.text
        told[wanted[:8]] += 1
        assert _surplus(layer, done, None) is None
    assert len(told) == 3 and min(told.values()) > 10, told


COLUMNS, INPUT_WORDS = (7, 13), (21, 5)
PROCESSORS = (2, 17)


def program(*, express: bool) -> tuple[list[list[tuple[int, int, int]]], Answer]:
    """Return the writes of the phases of a made-up program, and its answer file."""
    draw = random.Random(int(express))
    chip, base = MAX78000, DEFAULT_APB_BASE
    phases: list[list[tuple[int, int, int]]] = [[] for _ in range(7)]
    addresses = [base + chip.layer_address(g, n, "RCNT") for g in range(4) for n in range(6)]
    stored = []
    for number, address in enumerate(addresses):
        phase = 1 if number < 4 else 4
        stored.append((address, draw.randrange(1, 1 << 20), phase))
        phases[phase].append((4, address, stored[-1][1]))
    runs, starts = [], []
    for processor, count in zip(PROCESSORS, COLUMNS, strict=True):
        start = base + chip.kernel_address(processor, 3)
        starts.append(start)
        columns = [[draw.randrange(1, 256) for _ in range(9)] for _ in range(count)]
        words = []
        for n, column in enumerate(columns):
            parts = [column[:1], column[1:5], column[5:], [0]]
            plain = [int.from_bytes(bytes(part), "big") for part in parts]
            words += plain
            phases[2] += [(4, start + 16 * n + 4 * i, word) for i, word in enumerate(plain)]
        if express:
            data = bytes(byte for column in columns for byte in column)
            data += bytes(-len(data) % 4)
            words = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
        runs.append(np.array(words, np.uint32))
    biases = [
        (base + chip.bias_address(g, n), draw.randrange(1, 256)) for g in (0, 2) for n in (0, 1)
    ]
    phases[3] += [(4, address, value) for address, value in biases]
    inputs, places = [], []
    for instance, count in zip((1, 6), INPUT_WORDS, strict=True):
        places.append(base + chip.data_address(instance, 4 * 9))
        inputs.append(np.array([draw.randrange(1, 1 << 32) for _ in range(count)], np.uint32))
        phases[5] += [(4, places[-1] + 4 * i, int(w)) for i, w in enumerate(inputs[-1])]
    pushed = np.array([draw.randrange(1, 1 << 32) for _ in range(18)], np.uint32)
    phases[5] += [(4, base + FIFO_DATA, int(word)) for word in pushed]

    def hashed(starts: list[int], counts: list[int], words: list[Any]) -> HashedWords:
        hashes = run_hashes(words)
        return HashedWords(np.array(starts, np.uint32), np.array(counts, np.uint32), hashes)

    registers = Registers(
        np.array([a for a, _, _ in stored], np.uint32),
        np.array([v for _, v, _ in stored], np.uint32),
        np.array([p for _, _, p in stored], np.uint8),
    )
    answer = dataclasses.replace(
        answer_of(registers=registers),
        express=express,
        biases=StoredBiases(
            np.array([a for a, _ in biases], np.uint32), np.array([v for _, v in biases], np.uint8)
        ),
        kernels=hashed(starts, list(COLUMNS), runs),
        inputs=hashed(places, list(INPUT_WORDS), inputs),
        pushes=hashed([base + FIFO_DATA], [18], [pushed]),
    )
    return phases, answer


def joined(phases: list[list[tuple[int, int, int]]]) -> list[tuple[int, int, int]]:
    return [row for rows in phases for row in rows]


def memory_of(rows: list[tuple[int, int, int]]) -> Memory:
    memory = Memory(MAX78000)
    memory.write(Writes.of(rows))
    return memory


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "express"])
def loader(request: pytest.FixtureRequest) -> tuple[list[list[tuple[int, int, int]]], Answer]:
    return program(express=request.param)


def blocks_of(answer: Answer) -> int:
    return len(answer.kernels.hashes) + len(answer.inputs.hashes) + len(answer.pushes.hashes)


def test_a_right_program_has_no_wrong_word(loader: Any) -> None:
    phases, answer = loader
    compared = len(answer.registers.addresses) + len(answer.biases.addresses)
    assert compare_words(memory_of(joined(phases)), answer) == WordComparison(
        compared=compared + 16 * blocks_of(answer), blocks=2 + 1 + 2
    )
    held, biases = answer.registers, answer.biases
    for some, others in product(range(1, 4), range(len(biases.addresses) + 1)):
        fewer = dataclasses.replace(
            answer,
            registers=Registers(held.addresses[:some], held.values[:some], held.phases[:some]),
            biases=StoredBiases(biases.addresses[:others], biases.values[:others]),
        )
        found = compare_words(memory_of(joined(phases)), fewer)
        assert found.compared == some + others + 16 * blocks_of(answer)


def damages(memory: Memory, answer: Answer) -> Iterator[tuple[Memory, WrongWord]]:
    """Yield memories with one word changed, and what is wrong with them."""
    draw, base = random.Random(1), DEFAULT_APB_BASE
    for number, address in enumerate(answer.registers.addresses.tolist()):
        wrong, value = copy.copy(memory), int(answer.registers.values[number])
        wrong.registers = {**memory.registers, address: value ^ 8}
        phase = ("cnn_init", "cnn_configure")[number >= 4]
        yield wrong, WrongWord(Kind.REGISTER, phase, address, value, value ^ 8)
    for number, address in enumerate(answer.biases.addresses.tolist()):
        wrong, value = copy.copy(memory), int(answer.biases.values[number])
        wrong.bias = memory.bias.copy()
        group, index = number // 2 * 2, number % 2
        wrong.bias[group, index] ^= 5
        change = ByteChange(group, index, 0, 5)
        yield wrong, WrongWord(Kind.BIAS, "cnn_load_bias", address, value, value ^ 5, (change,))
    for run, count in enumerate(INPUT_WORDS):
        for number in range(count):
            wrong = copy.copy(memory)
            wrong.data = memory.data.copy()
            value = int(memory.data[(1, 6)[run], 9 + number])
            changed = value ^ 1 << draw.randrange(32)
            wrong.data[(1, 6)[run], 9 + number] = changed
            address = base + MAX78000.data_address((1, 6)[run], 4 * (9 + number))
            yield wrong, WrongWord(Kind.INPUT, "load_input", address, value, changed, number=number)
    fifo = base + FIFO_DATA
    for number, value in enumerate(memory.pushes[fifo]):
        wrong = copy.copy(memory)
        words = list(memory.pushes[fifo])
        words[number] ^= 1 << 31
        wrong.pushes = {fifo: words}
        yield wrong, WrongWord(Kind.PUSH, "load_input", fifo, value, value ^ 1 << 31, number=number)


def test_one_wrong_word_is_told_with_its_place(loader: Any) -> None:
    phases, answer = loader
    memory = memory_of(joined(phases))
    for wrong, word in damages(memory, answer):
        for right in (None, memory):
            found = compare_words(wrong, answer, right)
            assert found.wrong == (word,)
            assert found.wrong_inputs == (word.kind in (Kind.INPUT, Kind.PUSH))
            assert found.replaced_inputs == 0


def test_one_wrong_byte_of_a_kernel_is_told_with_its_place(loader: Any) -> None:
    phases, answer = loader
    memory, draw = memory_of(joined(phases)), random.Random(2)
    for processor, count in zip(PROCESSORS, COLUMNS, strict=True):
        for column in range(count):
            byte, mask = draw.randrange(9), draw.randrange(1, 256)
            wrong = copy.copy(memory)
            wrong.kernels = memory.kernels.copy()
            wrong.kernels[processor, 3 + column, byte] ^= mask
            for right in (None, memory):
                (word,) = compare_words(wrong, answer, right).wrong
                assert word.changes == (ByteChange(processor, 3 + column, byte, mask),)
                start = DEFAULT_APB_BASE + MAX78000.kernel_address(processor, 3 + column)
                assert (word.kind, word.phase, word.address, word.surplus) == (
                    Kind.KERNEL, "cnn_load_weights", start, False,
                )  # fmt: skip
                assert word.expected is not None and word.actual is not None
                assert (word.expected ^ word.actual).bit_count() == mask.bit_count()


def test_a_byte_in_front_of_the_biases_is_that_of_the_first_layer_if_it_streams() -> None:
    """A wrong bias is told with the output that the layer adds it to."""
    chip, base = MAX78000, DEFAULT_APB_BASE
    for first, streams in product((0, 1, 2), (0, 1)):
        memory = Memory(chip)
        address = base + chip.control_address(0, "LCNT_MAX")
        memory.registers[address] = chip.control_registers["LCNT_MAX"].pack(first=first, last=2)
        for number in range(3):
            for name, fields in {
                "ENA": {"processors": 1, "kernels": 1},
                "LCTL2": {"last_output": 8},
                "MCNT": {"last": 8},
                "POST": {"bias": 1, "bias_offset": 10 * number},
                "FMAX": {"words": 9 * streams},
                "ONED": {"kernel_length": 1},
                "TPTR": {"last": 0},
            }.items():
                place = base + chip.layer_address(0, number, name)
                memory.registers[place] = chip.layer_registers[name].pack(**fields)
        memory.kernels[:] = 1
        known = [
            LayerAnswer(
                number, "", (0, 1, 1), False, False, 1, np.zeros((0, 3), np.int64), LayerForm.FULL
            )
            for number in range(3)
        ]
        for index in range(30):
            word = WrongWord(
                Kind.BIAS, "cnn_load_bias", base + chip.bias_address(0, index), 1, 2,
                (ByteChange(0, index, 0, 3),),
            )  # fmt: skip
            layer, output = divmod(index, 10)
            output -= streams and layer == first
            text = describe_wrong(memory, answer_of(*known), word)
            assert (f"bias of layer {layer}, output {output}" in text) == (output in (0, 1))
            assert ("bias of layer" in text) == (output in (0, 1))


def test_several_wrong_words_of_a_block_are_told_apart_if_the_right_ones_are_known(
    loader: Any,
) -> None:
    phases, answer = loader
    memory = memory_of(joined(phases))
    wrong = copy.copy(memory)
    wrong.data, wrong.kernels = memory.data.copy(), memory.kernels.copy()
    wrong.data[1, [9, 11]] ^= 3
    wrong.kernels[2, 3, 2] ^= 1
    wrong.kernels[2, 4, 7] ^= 2
    vague = compare_words(wrong, answer)
    assert [(w.kind, w.expected, w.actual) for w in vague.wrong] == [
        (Kind.KERNEL, None, None), (Kind.INPUT, None, None),
    ]  # fmt: skip
    assert (vague.wrong_inputs, vague.replaced_inputs, vague.wrong[1].number) == (1, 1, 0)
    size = 9 if answer.express else 16
    of_block = [n for n in range(COLUMNS[0]) if size * n < 4 * BLOCK_WORDS]
    assert {change.place for change in vague.wrong[0].changes} == {3 + n for n in of_block}
    exact = compare_words(wrong, answer, memory)
    assert [w.changes for w in exact.wrong[:2]] == [
        (ByteChange(2, 3, 2, 1),), (ByteChange(2, 4, 7, 2),),
    ]  # fmt: skip
    assert [w.number for w in exact.wrong[2:]] == [0, 2]
    assert exact.replaced_inputs == 0


def test_words_that_the_project_does_not_write_come_last(loader: Any) -> None:
    phases, answer = loader
    memory = memory_of(joined(phases))
    address = DEFAULT_APB_BASE + MAX78000.layer_address(1, 9, "POST")
    memory.registers |= {address: 6, address + 4: 0}
    memory.registers[int(answer.registers.addresses[-1])] ^= 1
    memory.kernels[5, 10:13] = 1
    memory.kernels[5, 20, 4] = 9
    memory.kernels[2, 3 + COLUMNS[0], 0] = 1
    found = compare_words(memory, answer).wrong
    assert [w.surplus for w in found] == [False, True, True, True, True]
    kernels = {w.address: w for w in found if w.kind is Kind.KERNEL}
    wanted = [(2, 3 + COLUMNS[0]), (5, 10), (5, 20)]
    base = DEFAULT_APB_BASE
    assert sorted(kernels) == [base + MAX78000.kernel_address(*place) for place in wanted]
    last = kernels[base + MAX78000.kernel_address(5, 20)]
    assert (last.expected, last.actual) == (0, 9)
    assert last.changes[4] == ByteChange(5, 20, 4, 9)
    (register,) = [w for w in found if w.surplus and w.kind is Kind.REGISTER]
    assert (register.address, register.expected, register.actual) == (address, 0, 6)


def test_files_of_other_programs_are_told(loader: Any) -> None:
    phases, answer = loader
    memory = memory_of(joined(phases))
    known = answer.registers
    for wrong in range(len(known.addresses) + 1):
        values = known.values.copy()
        values[:wrong] ^= 1
        other = dataclasses.replace(answer, registers=dataclasses.replace(known, values=values))
        found = compare_words(memory, other)
        assert bool(found.stranger) == (wrong > len(values) / 2)
        assert len(found.wrong) == (0 if found.stranger else wrong)
    for strange in (
        dataclasses.replace(answer, chip="MAX78002"),
        dataclasses.replace(answer, chip="MAX1"),
        dataclasses.replace(answer, apb_base=0x40000000),
        dataclasses.replace(answer, kernels=answer.inputs),
    ):
        found = compare_words(memory, strange)
        assert found.stranger
        assert (found.compared, found.wrong) == (0, ())


def stops(phases: list[list[tuple[int, int, int]]]) -> Iterator[tuple[int, int]]:
    """Yield phases and numbers of words of them after which a program may stop."""
    for phase, rows in enumerate(phases):
        step = 8 if phase == 2 else 5  # kernels are written column by column
        yield from ((phase, count) for count in range(step, len(rows) + 1, step))


def test_a_program_that_stopped_has_nothing_wrong_that_it_had_still_to_write(loader: Any) -> None:
    """The next word is named; what was left out in functions that are over is wrong."""
    phases, answer = loader
    draw = random.Random(4)
    fifo = DEFAULT_APB_BASE + FIFO_DATA
    for phase, count in stops(phases):
        rows = [*joined(phases[:phase]), *phases[phase][:count]]
        memory = memory_of(rows)
        assert compare_words(memory, written_so_far(memory, answer)).wrong == ()
        rest = [*phases[phase][count:], *joined(phases[phase + 1 :])]
        following = next_word(memory, answer)
        rest = [row for row in rest if row[1] != fifo]  # of FIFOs, the words are not named
        assert (following is None) == (not rest)
        if following is not None:
            due = next(n for n, rows in enumerate(phases) if rest[0] in rows)
            assert following[0] == PHASES[due]
            assert 0 <= rest[0][1] - following[1] < 16 * max(COLUMNS)
        before = joined(phases[:phase])
        if not before:
            continue
        left_out = draw.choice(before)
        lacking = memory_of([row for row in rows if row != left_out])
        wrong = compare_words(lacking, written_so_far(lacking, answer)).wrong
        if left_out[2]:
            assert len(wrong) == 1
            assert 0 <= left_out[1] - wrong[0].address < 16 * 9  # columns of a block


def test_writes_that_are_no_error_are_those_that_are_none_alone() -> None:
    """Data, biases, and kernels of four words, among words where nothing is."""
    draw, refused = random.Random(4), 0
    for number in range(60):
        rows: list[list[tuple[int, int, int]]] = []
        for place in draw.sample(range(40), draw.randint(1, 9)):
            word = draw.getrandbits(32)
            match draw.choice(["data", "bias", "kernel", "kernel", "nothing"]):
                case "data":
                    rows.append([(4, DEFAULT_APB_BASE + MAX78000.data_address(0, 4 * place), word)])
                case "bias":
                    rows.append(
                        [(4, DEFAULT_APB_BASE + MAX78000.bias_address(0, place), word & 0xFF)]
                    )
                case "kernel":
                    first = DEFAULT_APB_BASE + MAX78000.kernel_address(number % 64, place)
                    rows.append([(4, first + 4 * n, draw.getrandbits(8)) for n in range(4)])
                case _:
                    rows.append([(4, 0x100 + 4 * place, 1)])
        wanted = Memory(MAX78000)
        for row in rows:
            if row[0][1] < 0x1000:
                refused += 1
            else:
                wanted.write(Writes.of(row))
        found = accepted_writes(Memory(MAX78000), Writes.of([w for row in rows for w in row]))
        for name in ("data", "bias", "kernels", "data_written", "bias_written", "kernels_written"):
            assert (getattr(found, name) == getattr(wanted, name)).all()
    assert refused > 30
