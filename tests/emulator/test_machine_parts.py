"""Parts of the machine against loops: words, links between layers, marks, reads, spread kernels."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from itertools import product

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.checks.finding import LayerReport
from ai8xtools.emulator.checks.reads import check_reads
from ai8xtools.emulator.decode.config import LayerKind
from ai8xtools.emulator.decode.cycles import Cycles
from ai8xtools.emulator.decode.locations import OutputLocations, input_bytes
from ai8xtools.emulator.machine.accelerator import (
    NetworkRun,
    _Progress,
    _unread,
    _written_words,
)
from ai8xtools.emulator.machine.execution import LayerExecution, LayerRun
from ai8xtools.emulator.machine.timing import Mark, MarkKind, MarkLog, TimedRun
from ai8xtools.emulator.state.data_memory import OUTSIDE, DataMemory
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE, FAST_FIFO_DATA
from tests.emulator.by_hand import one_by_one
from tests.emulator.packing import set_field, start
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT

EACH_CHIP = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)


@EACH_CHIP
def test_words_that_were_written_and_that_changed(chip: Chip) -> None:
    draw, accelerator = random.Random(1), Accelerator(chip)
    memory, base = accelerator.memory, DEFAULT_APB_BASE
    size = memory.data.shape[1]
    for _ in range(6):
        memory.data[:], memory.data_written[:] = 3, False
        wanted, changed = {}, {}
        before = memory.data.copy()
        for _ in range(draw.randrange(8)):
            instance, word = draw.randrange(16), draw.choice([0, 1, size - 1, draw.randrange(size)])
            address = base + chip.data_address(instance) + 4 * word
            memory.data[instance, word] = value = draw.choice([3, 9])
            memory.data_written[instance, 4 * word + draw.randrange(4)] = True
            wanted[address] = value
            changed[address] = value
        assert accelerator.data_words() == wanted
        assert accelerator.result_words() == wanted
        differing = {address: value for address, value in changed.items() if value != 3}
        assert accelerator.changed_words(before) == differing


def test_input_is_complete_once_each_fifo_got_the_words_of_a_frame() -> None:
    accelerator = Accelerator(MAX78000)
    memory = accelerator.memory
    for fifo, size, one, other in product((0, 1), (0, 1, 3), (None, 0, 2, 3), (None, 2, 3, 4)):
        start(memory, 0, 0, fifo=fifo)
        set_frame(memory, size)
        counts = {FAST_FIFO_DATA: one, DEFAULT_APB_BASE + 8: other}
        memory.pushes = {a: [0] * n for a, n in counts.items() if n is not None}
        got = [n for n in (one, other) if n is not None]
        assert accelerator.input_complete() == (not fifo or (bool(got) and min(got) >= size))


def set_frame(memory: Memory, size: int) -> None:
    address = DEFAULT_APB_BASE + memory.chip.control_address(0, "IFRM")
    memory.registers[address] = size


@EACH_CHIP
def test_layers_follow_the_links_until_the_last_or_one_that_ran(chip: Chip) -> None:
    draw, seen = random.Random(2), Counter[bool]()
    accelerator = Accelerator(chip)
    memory, most = accelerator.memory, chip.max_layers
    for _ in range(90):
        memory.registers.clear()
        some = [0, 1, 2, 3, most - 2, most - 1]
        first = draw.choice(some) if chip.max_start_layer else 0
        last = draw.choice(some)
        start(memory, first, last)
        takes, jumps, stops = {}, {}, {}
        for number in some:
            takes[number] = draw.random() < 0.7
            set_field(memory, number, 0, ("ENA", "processors"), int(takes[number]))
            if chip.has_next_layer:
                jumps[number] = draw.choice([None, None, *some])
                stops[number] = draw.random() < 0.1
                if jumps[number] is not None:
                    set_field(memory, number, 0, ("NXTLYR", "jump"), 1)
                    set_field(memory, number, 0, ("NXTLYR", "layer"), jumps[number])
                if stops[number]:
                    set_field(memory, number, 0, ("NXTLYR", "stop"), 1)
        wanted, number, visited = [], first, set()
        while number not in visited and number < most:
            visited.add(number)
            if takes.get(number):
                wanted.append(number)
            if number == last or stops.get(number):
                break
            target = jumps.get(number)
            number = number + 1 if target is None else target
        seen[number >= most] += 1
        if number >= most:
            with pytest.raises(EmulatorError) as caught:
                accelerator.planned_layers()
            assert caught.value.code == "E832"
            continue
        assert [config.layer for config in accelerator.planned_layers()] == wanted
    assert seen[False] > 30


def test_groups_that_take_part_must_be_enabled() -> None:
    accelerator = Accelerator(MAX78000)
    memory = accelerator.memory
    for part, enabled in product(product((0, 1), repeat=3), product((0, 1, 2, 3), repeat=3)):
        if not any(part):
            continue
        memory.registers.clear()
        for group in range(3):
            set_field(memory, 0, group, ("ENA", "processors"), part[group])
            address = DEFAULT_APB_BASE + MAX78000.control_address(group, "CTL")
            bits = {"enable": enabled[group] & 1, "clock_enable": enabled[group] >> 1}
            memory.registers[address] = MAX78000.control_registers["CTL"].pack(**bits)
        layers = accelerator.planned_layers()
        lacking = [g for g in range(3) if part[g] and enabled[g] != 3]
        if not lacking:
            groups = accelerator._enabled_groups(layers)
            assert groups == {g for g in range(3) if enabled[g] & 1}
            continue
        with pytest.raises(EmulatorError) as caught:
            accelerator._enabled_groups(layers)
        assert caught.value.code == "E834"
        assert f"group {lacking[0]} " in caught.value.message


def test_a_layer_that_cannot_be_executed_names_its_first_wrong_registers() -> None:
    """Kernels behind the memory, with and without bits that no layer has."""
    wrong = ("ONED", "RCNT", "CCNT", "LCTL2", "WPTR_TOFFS")
    for count in range(len(wrong) + 1):
        words = one_by_one(np.ones((1, 2, 2), int), np.array([[3]]))
        words.layer(0, "MCNT", first=8 * 7002, last=8 * 7002)
        for name in wrong[:count]:
            address = words.chip.layer_address(0, 0, name)
            at = [n for n, row in enumerate(words.rows) if row[1] == DEFAULT_APB_BASE + address]
            words.rows[at[-1]] = (4, DEFAULT_APB_BASE + address, words.rows[at[-1]][2] | 1 << 31)
        with pytest.raises(EmulatorError) as caught:
            words.run()
        assert caught.value.code == "E832"
        assert (caught.value.remedy or "").count("layer 0: ") == min(count, 3)


def test_marks_are_kept_in_order_and_reads_of_a_kind_counted() -> None:
    draw, log = random.Random(3), MarkLog()
    for _ in range(60):
        log.clear()
        assert list(log) == []
        wanted: list[Mark] = []
        writes = 0
        for number in range(draw.randrange(30)):
            writes += draw.choice([0, 0, 1])
            if draw.random() < 0.2:
                log.ran(writes, number)
                wanted.append(Mark(writes, MarkKind.RUN, number))
                continue
            control = draw.random() < 0.5
            log.read(writes, control=control)
            kind = MarkKind.READ_CONTROL if control else MarkKind.READ_OTHER
            if wanted and (wanted[-1].writes, wanted[-1].kind) == (writes, kind):
                wanted[-1] = Mark(writes, kind, wanted[-1].count + 1)
            else:
                wanted.append(Mark(writes, kind, 1))
        assert list(log) == wanted


def test_a_run_takes_a_cycle_and_those_of_its_layers() -> None:
    for estimates in ((), (5,), (7, 8, 100)):
        cycles = tuple(Cycles(n, estimate, 1, 1, False) for n, estimate in enumerate(estimates))
        run = TimedRun(0, (), cycles, 50.0)
        assert run.total_cycles == 1 + sum(estimates)
        assert run.microseconds == pytest.approx(run.total_cycles / 50)


def told_of_reads(
    layer: int, processors: list[int], size: tuple[int, int], stride: int, data: DataMemory,
    cells: list[list[list[tuple[int, int]]]],
) -> list[tuple[int, int, int, set[int]]]:  # fmt: skip
    """Return processor, instance, byte and numbers in each finding.

    `cells` are [processor][pass][pixel].
    """
    found: list[tuple[int, int, int, set[int]]] = []
    every = [
        (n, number, pixel, cells[n][number][pixel])
        for n in range(len(cells))
        for number in range(len(cells[0]))
        for pixel in range(len(cells[0][0]))
    ]
    unwritten = [(n, cell) for n, _, _, cell in every if not data.written[cell]]
    if unwritten:
        n, cell = unwritten[0]
        found.append((processors[n], *cell, {len(unwritten)}))
    if size == (1, 1) and stride == 1:
        return found
    for n, number, _, cell in every:
        lead = cells[n][number][0]
        own, of_first = int(data.writer[cell]), int(data.writer[lead])
        if data.written[cell] and data.written[lead] and own != of_first:
            later = max(own, of_first)
            read = sum(int(data.writer[c]) == later for *_, c in every)
            if read != np.count_nonzero(data.writer == later):
                found.append((processors[n], *cell, {own, of_first}))
            break
    return found


def test_images_that_nobody_or_two_layers_wrote() -> None:
    draw, seen = random.Random(4), Counter[int]()
    memory = Memory(MAX78000)
    data = DataMemory.of(memory)
    for _ in range(250):
        mask = draw.choice([1, 3, 0x11])
        size = draw.choice([(1, 2), (2, 2), (1, 3)])
        inputs = dataclasses.replace(INPUT, size=size, passes=draw.choice([1, 2]), read_word=2)
        config = dataclasses.replace(LAYER, layer=5, enabled=(mask, 0, 0, 0), input=inputs)
        instance, offset = input_bytes(config, memory.data_bytes.shape[1])
        data.written[:, :80], data.writer[:, :80] = draw.random() < 0.7, OUTSIDE
        for _ in range(draw.randrange(5)):
            place = draw.randrange(2), slice(draw.randrange(20), draw.randrange(20, 40))
            data.writer[place], data.written[place] = draw.choice([OUTSIDE, 2, 3]), True
        if draw.random() < 0.3:
            data.writer[:, :80], data.written[:, :80] = 2, True
        data.readers = {}
        report = LayerReport(memory, config, [])
        check_reads(report, data, instance, offset)
        cells = [
            [
                [
                    (int(instance[n, 0, number, x]), int(offset[n, 0, number, x]))
                    for x in range(offset.shape[3])
                ]
                for number in range(offset.shape[2])
            ]
            for n in range(offset.shape[0])
        ]
        used = [n for n in range(16) if mask >> n & 1]
        wanted = told_of_reads(5, used, size, 1, data, cells)
        assert len(report.findings) == len(wanted)
        for finding, (processor, unit, byte, numbers) in zip(report.findings, wanted, strict=True):
            address = DEFAULT_APB_BASE + MAX78000.data_address(unit, byte // 4 * 4)
            assert (finding.processor, finding.address) == (processor, address)
            for number in numbers:
                name = "the input" if number == OUTSIDE else str(number)
                assert name in finding.message
        of_layers = {int(data.writer[cell]) for row in cells for part in row for cell in part}
        assert set(data.readers) == of_layers
        seen[0] += any(len(numbers) == 1 for *_, numbers in wanted)
        seen[1] += any(len(numbers) == 2 for *_, numbers in wanted)
    assert min(seen[0], seen[1]) > 10
    private = DataMemory.for_stream()
    private.written[:] = True
    report = LayerReport(memory, config, [])
    check_reads(report, private, instance, offset)
    assert report.findings == []


def test_images_of_which_a_part_is_flattened() -> None:
    """Of each layer whose bytes are read, all that its lanes hold are, or some are left out."""
    draw, seen, memory = random.Random(9), Counter[int](), Memory(MAX78000)
    data = DataMemory.of(memory)
    for _ in range(300):
        mask = draw.choice([1, 3, 0x11, 0x12])
        used = [n for n in range(16) if mask >> n & 1]
        first, passes = draw.choice([0, 2]), draw.choice([1, 2, 4, 6])
        inputs = dataclasses.replace(INPUT, size=(1, 1), passes=passes, read_word=first)
        config = dataclasses.replace(LAYER, layer=5, enabled=(mask, 0, 0, 0), input=inputs)
        data.writer[:], data.written[:], data.readers = OUTSIDE, True, {}
        data.spread = {n for n in (2, 3, 4) if draw.random() < 0.3}
        for layer in draw.sample([2, 3, 4], draw.randint(0, 3)):
            begin = draw.randrange(max(first - 2, 0), first + 4)
            data.writer[:2, 4 * begin : 4 * draw.randint(begin + 1, first + 8)] = layer
        report = LayerReport(memory, config, [])
        check_reads(report, data, *input_bytes(config, memory.data_bytes.shape[1]))
        cells = [(p, p // 4, first + n) for p in used for n in range(passes)]
        writers = [int(data.writer[unit, 4 * word + p % 4]) for p, unit, word in cells]
        wanted = []
        for layer in sorted(set(writers)) if len(cells) > 1 else []:
            own = [cell for cell, writer in zip(cells, writers, strict=True) if writer == layer]
            end = max(word for *_, word in own) + 1 if layer in data.spread else 20
            there = sum(data.writer[p // 4, 4 * word + p % 4] == layer
                        for p in used for word in range(end))  # fmt: skip
            part = layer != OUTSIDE and len(own) < there
            if part or (layer == OUTSIDE and len(set(writers)) > 1):
                p, unit, word = own[0]
                text = f"output of layer {layer} ({len(own)} of {there} bytes)" if part else (
                    "as if it were output of "
                    + ", ".join(f"layer {n}" for n in sorted(set(writers)) if n != OUTSIDE) + ", at"
                )  # fmt: skip
                address = DEFAULT_APB_BASE + MAX78000.data_address(unit, 4 * word)
                wanted.append((p, address, text))
        for finding, (p, address, text) in zip(report.findings, wanted, strict=True):
            assert (finding.processor, finding.address) == (p, address)
            assert text in finding.message
        seen[len(wanted)] += 1
    assert min(seen[0], seen[1], seen[2]) > 10, seen


@EACH_CHIP
def test_units_that_watch_see_each_written_word_once_by_its_pointer(chip: Chip) -> None:
    draw, numbers, limit = random.Random(10), np.random.default_rng(10), chip.write_pointer_words
    target = DataMemory.of(Memory(chip))
    target.data[:] = numbers.integers(0, 256, target.data.shape)
    for _ in range(40):
        count, size = draw.randint(1, 6), (draw.randint(1, 2), draw.randint(1, 3))
        output = dataclasses.replace(OUTPUT, wide=draw.random() < 0.3, gap=draw.randint(0, 1))
        config = dataclasses.replace(LAYER, output=output)
        where = np.array([draw.choice([0, 1, 15]) for _ in range(count)])
        lanes = np.array([draw.randrange(4) for _ in range(count)])
        first = np.array([draw.choice([0, 5, limit - 3]) for _ in range(count)])
        places = OutputLocations(where, lanes, first)
        done = LayerRun(config, np.zeros((count, *size), np.int64), places)
        pointers = {
            limit * int(where[n]) + word
            for n in range(count)
            for pixel in range(size[0] * size[1])
            for step in [(4 if output.wide else 1) * (output.gap + 1)]
            if (word := int(first[n]) + pixel * step + (int(lanes[n]) if output.wide else 0))
            < limit
        }
        found = _written_words(done, target, chip)
        assert found.pointers.tolist() == sorted(pointers)
        for pointer, value in zip(found.pointers.tolist(), found.values.tolist(), strict=True):
            instance, word = divmod(pointer, limit)
            wanted = target.data[instance, 4 * word : 4 * word + 4].tobytes()
            assert value == int.from_bytes(wanted, "little")


def test_output_that_nobody_reads_is_told_of_all_layers_but_the_last_and_of_single_values() -> None:
    memory = Memory(MAX78000)
    own = DataMemory.of(memory)
    place = OutputLocations(np.array([1, 2]), np.array([3, 0]), np.array([7, 9]))
    for kind, (rows, columns) in product(LayerKind, ((1, 1), (1, 2))):
        for count in (1, 2):
            config = dataclasses.replace(LAYER, layer=4, kind=kind)
            some = OutputLocations(place.instance[:count], place.lane[:count], place.word[:count])
            own.writer[0, 0] = 4
            done = LayerRun(config, np.ones((count, rows, columns), np.int64), some)
            last = dataclasses.replace(done, config=dataclasses.replace(config, layer=5))
            own.writer[0, 1] = 5
            progress = _Progress(NetworkRun([done, last]), [], own, own)
            found = [(f.layer, f.processor, f.address) for f in _unread(progress, memory)]
            single = kind is LayerKind.PASSTHROUGH and rows * columns * count == 1
            address = DEFAULT_APB_BASE + MAX78000.data_address(1, 4 * 7)
            assert found == ([] if single else [(4, 4 * 1 + 3, address)])


def test_kernels_in_the_middle_column_alone_are_spread() -> None:
    """Of the nine taps of a 3x3 kernel, any of the outer columns makes it an ordinary one."""
    image = np.ones((1, 3, 3), np.int8)
    memory = Memory(MAX78000)
    memory.kernels_written[:] = memory.data_written[:] = True
    memory.data_bytes[0, :48] = image[0, 0, 0]
    for side, tap in product(((3, 3), (1, 1)), range(9)):
        taps = side[0] * side[1]
        if tap >= taps:
            continue
        memory.kernels[:] = 0
        memory.kernels[0, 0, tap if taps == 9 else 8] = 1
        memory.kernel_version += 1
        config = dataclasses.replace(
            LAYER,
            kernels=dataclasses.replace(LAYER.kernels, shape=side),
            input=dataclasses.replace(INPUT, size=(3, 3), pooled=(3, 3)),
            output=OUTPUT,
        )
        target = DataMemory.of(memory)
        run = LayerExecution(memory, config, [], [], first=True).run(target, target)
        assert isinstance(run, LayerRun)
        assert target.spread == ({0} if taps == 9 and tap % 3 == 1 else set())
        assert int(run.output[0, 0, 0]) == 0  # a 128th


def test_a_quad_layer_computes_with_the_channels_of_group_0_and_all_others_with_theirs() -> None:
    for first, quad in product((False, True), (0, 1)):
        memory = Memory(MAX78002)
        start(memory, 0, 0, fifo_quad=quad)
        config = dataclasses.replace(LAYER, enabled=(3, 5, 6, 7))
        execution = LayerExecution(memory, config, [], [], first=first)
        wanted = (3, 0, 0, 0) if first and quad else (3, 5, 6, 7)
        assert execution.config.enabled == wanted
