"""Findings about memories: biases, channels nobody reads, layers without part, lost output."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from itertools import product

import numpy as np
import pytest

from ai8xtools.emulator.checks.biases import bias_hints, check_biases
from ai8xtools.emulator.checks.finding import LayerFinding, LayerReport, Severity, WrongField
from ai8xtools.emulator.checks.loaded_kernels import check_kernels
from ai8xtools.emulator.checks.network import layers_without_part, unread_channels
from ai8xtools.emulator.checks.overwrites import check_writes
from ai8xtools.emulator.decode.config import LayerConfig, LayerKind, WritePointer
from ai8xtools.emulator.state.data_memory import DataMemory
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.packing import set_field, start
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT
from tests.emulator.test_random_programs import bias_place

EACH_CHIP = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)


@EACH_CHIP
def test_the_first_bias_that_was_never_loaded_is_told(chip: Chip) -> None:
    draw, numbers, memory = random.Random(1), np.random.default_rng(1), Memory(chip)
    size, seen = chip.bias_bytes, Counter[bool]()
    for _ in range(150):
        memory.bias_written[:] = numbers.random(memory.bias_written.shape) < 0.7
        shape = draw.randint(1, 3), draw.randint(1, 4)
        group = np.array([[draw.randrange(4) for _ in range(shape[1])] for _ in range(shape[0])])
        places = [-1, 0, 1, size - 1, size, size + 1, draw.randrange(size)]
        index = np.array([[draw.choice(places) for _ in range(shape[1])] for _ in range(shape[0])])
        used = np.array([[draw.random() < 0.5 for _ in range(shape[1])] for _ in range(shape[0])])
        report = LayerReport(memory, LAYER, [])
        check_biases(report, group, index, used)
        lacking = [
            (int(group[at]), int(index[at]))
            for at in np.ndindex(*shape)
            if used[at]
            and index[at] >= 0
            and (index[at] >= size or not memory.bias_written[group[at], index[at]])
        ]
        seen[bool(lacking)] += 1
        assert len(report.findings) == bool(lacking)
        if lacking:
            (finding,), (first, number) = report.findings, lacking[0]
            address = DEFAULT_APB_BASE + chip.bias_address(first, number)
            assert (finding.processor, finding.address) == (16 * first, address)
            assert f"bias {number} of group {first} " in finding.message
            assert f"({len(lacking)} such" in finding.message
    assert min(seen.values()) > 20


def biased(draw: random.Random, number: int, *, streams: bool) -> LayerConfig:
    kind = draw.choice([LayerKind.CONVOLUTION, LayerKind.CONVOLUTION, *LayerKind])
    enabled = tuple(draw.choice([0, 0b11, 0b110]) for _ in range(2))
    enabled = (*enabled, 0, 0) if any(enabled) else (1, 0, 0, 0)
    offsets: list[int | None] = [None] * 4
    if kind is not LayerKind.PASSTHROUGH:
        for group in draw.sample(range(2), draw.randrange(3)):
            offsets[group] = draw.choice([0, 3, 6, 8])
    output = dataclasses.replace(
        OUTPUT, slots=draw.randint(1, 3), passes=draw.randint(1, 2), bias_offsets=tuple(offsets)
    )
    return dataclasses.replace(
        LAYER, layer=number, kind=kind, enabled=enabled, output=output, ring_words=int(streams)
    )


@EACH_CHIP
def test_hints_where_biases_are_lacking_or_loaded_for_nobody(chip: Chip) -> None:
    draw, told = random.Random(chip.name), Counter[object]()
    memory = Memory(chip)
    for _ in range(250):
        memory.registers.clear()
        memory.bias_written[:], memory.bias[:] = False, 0
        streams = draw.random() < 0.3
        layers = [biased(draw, n, streams=streams) for n in range(2)]
        places: list[set[tuple[int, int]]] = []
        for c in layers:
            for group, offset in enumerate(c.output.bias_offsets):
                fields = {"bias": int(offset is not None), "bias_offset": offset or 0}
                for name, value in fields.items():
                    set_field(memory, c.layer, group, ("POST", name), value)
            processors = len(c.processors)
            count = c.output.slots * c.output.passes
            count = count if c.kind is LayerKind.CONVOLUTION else processors
            found = {
                place
                for n in range(count)
                if c.kind is not LayerKind.PASSTHROUGH
                and (place := bias_place(chip, c, n, first=False)) is not None
            }
            if streams and chip is MAX78000:
                found |= {(group, index + 1) for group, index in found}
            places.append(found)
        used = places[0] | places[1]
        for group, index in used:
            memory.bias_written[group, index] = draw.random() < 0.8
        for index in draw.choice([(), (), (20,), (20, 21, 22), (20, 21, 22, 23)]):
            memory.bias_written[0, index] = True
            memory.bias[0, index] = draw.choice([0, 0, 3])
        findings = [
            LayerFinding(n, "", address=DEFAULT_APB_BASE + chip.bias_address(g, 1))
            for n, g in product(range(2), range(2))
            if draw.random() < 0.2
        ]
        findings.append(LayerFinding(0, "", address=None))
        findings.append(LayerFinding(1, "", address=DEFAULT_APB_BASE + chip.data_address(1)))
        complaints = {
            (f.layer, g)
            for f in findings
            for g in range(2)
            if f.address == DEFAULT_APB_BASE + chip.bias_address(g, 1)
        }
        wanted: list[tuple[int, WrongField, Severity]] = []
        for group in range(4):
            loaded = {n for n in range(40) if memory.bias_written[group, n]}
            spare = sorted(n for n in loaded if (group, n) not in used)
            fitting = []
            for c, own in zip(layers, places, strict=True):
                outputs = c.output.slots * c.output.passes
                nothing = not any(g == group for g, _ in own)
                if nothing and c.kind is not LayerKind.PASSTHROUGH and len(spare) == outputs:
                    fitting.append(c.layer)
            for c, own in zip(layers, places, strict=True):
                offset = c.output.bias_offsets[group] or 0
                if (c.layer, group) in complaints and spare:
                    wrong = WrongField(group, "POST", "bias_offset", spare[0], offset)
                    wanted.append((c.layer, wrong, Severity.NOTE))
                elif (c.layer, group) in complaints:
                    some = any(g == group and n in loaded for g, n in own)
                    severity = Severity.NOTE if some else Severity.ERROR
                    wanted.append((c.layer, WrongField(group, "POST", "bias", 0, 1), severity))
                elif fitting == [c.layer] and any(memory.bias[group, n] for n in spare):
                    wrong = WrongField(group, "POST", "bias", 1, 0)
                    wanted.append((c.layer, wrong, Severity.NOTE))
        found_hints = list(bias_hints(memory, layers, findings))
        assert [(f.layer, f.wrong, f.severity) for f in found_hints] == wanted
        told.update((w.field, w.expected > 0, s) for _, w, s in wanted)
        memory.bias_written[:] = True  # as after a memory test
        assert not list(bias_hints(memory, layers, findings))
    assert len(told) == 4 and min(told.values()) > 3


def test_offset_of_biases_counts_as_the_register_does() -> None:
    """In fours where four outputs are made at a time."""
    for unit, offset, begin in product((1, 4), (0, 1, 2), (12, 20)):
        memory = Memory(MAX78002)
        set_field(memory, 0, 0, ("POST", "bias_offset"), offset)
        output = dataclasses.replace(OUTPUT, bias_offsets=(unit * offset, None, None, None))
        config = dataclasses.replace(LAYER, output=output)
        memory.bias_written[0, begin] = True
        address = DEFAULT_APB_BASE + MAX78002.bias_address(0, 0)
        (hint,) = bias_hints(memory, [config], [LayerFinding(0, "", address=address)])
        assert hint.wrong is not None
        told = begin // unit if offset else begin
        assert (hint.wrong.expected, hint.wrong.actual) == (told, offset)


def test_channels_that_nobody_reads_though_others_are_read() -> None:
    draw, seen = random.Random(3), Counter[object]()
    data = DataMemory.of(Memory(MAX78000))
    for _ in range(400):
        count, pixels = draw.randint(1, 12), draw.choice([1, 1, 2, 3])
        processors = np.array(
            draw.sample(range(14), count) if count < 4 else sorted(draw.sample(range(14), count))
        )
        addresses = np.array(draw.sample(range(1000), count))
        output = np.array(
            [
                draw.choice([[[0] * pixels], [[5] * pixels], [list(range(pixels))]])
                for _ in range(count)
            ]
        )
        readers = {int(p): draw.choice([3, 4]) for p in processors if draw.random() < 0.6}
        data.readers = {2: readers} if readers or draw.random() < 0.5 else {}
        remains = draw.random() < 0.5
        data.writer[0, 0] = 2 if remains else -1
        finding = unread_channels(2, processors, addresses, output, data)
        alive = [
            any(v != row[0] for v in row) if pixels > 1 else row[0] != 0
            for row in output.reshape(count, -1).tolist()
        ]
        if not readers:
            seen["none"] += 1
            assert (finding is not None) == remains
            if finding is not None:
                assert (finding.processor, finding.address) == (processors[0], addresses[0])
                assert finding.severity is Severity.NOTE
            continue
        left = sorted(
            int(p) for p, lives in zip(processors, alive, strict=True) if lives and p not in readers
        )
        assert (finding is not None) == bool(left)
        if finding is None:
            continue
        at = next(n for n in range(count) if alive[n] and processors[n] == left[0])
        assert (finding.layer, finding.processor, finding.address) == (2, left[0], addresses[at])
        numbers = re.search(
            r"processor ([\d, ]+?)(?: and (\d+) more)?, though (.*?) do", finding.message
        )
        assert numbers
        assert [int(n) for n in numbers[1].split(",")] == left[:8]
        assert int(numbers[2] or 0) == max(len(left) - 8, 0)
        assert [int(n) for n in re.findall(r"\d+", numbers[3])] == sorted(set(readers.values()))
        read = [n for n in range(count) if processors[n] in readers]
        in_front = bool(read) and all(n < read[0] for n in range(count) if processors[n] in left)
        assert finding.severity is (Severity.NOTE if in_front else Severity.WARNING)
        seen[finding.severity, len(left) > 8] += 1
    assert min(seen.values()) > 2


@EACH_CHIP
def test_layers_without_part_are_told(chip: Chip) -> None:
    draw, memory = random.Random(4), Memory(chip)
    for _ in range(60):
        memory.registers.clear()
        last = draw.choice([0, 2, 4, chip.max_layers - 2, chip.max_layers - 1])
        start(memory, 0, last)
        above = sorted(
            draw.sample(
                range(min(last + 1, chip.max_layers), chip.max_layers),
                min(draw.randrange(3), chip.max_layers - 1 - last),
            )
        )
        for layer in above:
            set_field(memory, layer, draw.randrange(4), ("ENA", "processors"), 2)
        visited = []
        for number in range(3):
            enabled = tuple(draw.choice([0, 0, 0, 5]) for _ in range(4))
            kernels = tuple(draw.choice([0, 0, 7]) for _ in range(4))
            visited.append(
                dataclasses.replace(LAYER, layer=number, enabled=enabled, with_kernels=kernels)
            )
        found = list(layers_without_part(memory, visited))
        wanted = []
        for c in visited:
            if not any(c.enabled):
                for group, mask in enumerate(c.with_kernels):
                    if mask:
                        wanted.append((c.layer, WrongField(group, "ENA", "processors", mask, 0)))
                wanted.append((c.layer, None))
        wanted += [(above[0], None)] if above else []
        assert [(f.layer, f.wrong) for f in found] == wanted
        if above:
            numbers = {int(n) for n in re.findall(r"layers? (\d+)", found[-1].message)}
            assert found[-1].address == DEFAULT_APB_BASE + chip.control_address(0, "LCNT_MAX")
            assert numbers == {last, above[0]}
            assert (f"to {above[-1]} have" in found[-1].message) == (len(above) > 1)
        for finding, (layer, wrong) in zip(found, wanted, strict=True):
            if wrong is None and layer < 3 and not (above and layer == above[0]):
                assert finding.address == DEFAULT_APB_BASE + chip.layer_address(0, layer, "ENA")


def test_output_behind_the_memory_or_on_output_that_nobody_read() -> None:
    draw, seen = random.Random(5), Counter[object]()
    memory = Memory(MAX78002)
    target = DataMemory.of(memory)
    limit, stride = MAX78002.instance_bytes, MAX78002.instance_stride
    for _ in range(150):
        target.writer[:] = -1
        count = draw.randint(1, 6)
        begin = draw.choice([0, 40, limit - 8, stride - 8])
        instance = np.array([draw.randrange(3) for _ in range(count)])
        offset = begin + np.array([draw.randrange(20) for _ in range(count)])
        for _ in range(12):
            target.writer[draw.randrange(3), (begin + draw.randrange(20)) % stride] = (
                draw.randrange(1, 4)
            )
        target.readers = {n: {0: 9} for n in range(1, 4) if draw.random() < 0.4}
        report = LayerReport(memory, dataclasses.replace(LAYER, layer=3), [])
        check_writes(report, target, instance, offset)
        wanted = []
        beyond = [(int(i), int(o)) for i, o in zip(instance, offset, strict=True) if o >= limit]
        if beyond:
            i, o = beyond[0]
            place = DEFAULT_APB_BASE + MAX78002.data_address(i, o // 4 * 4)
            wanted.append((4 * i + o % 4, place, f"word {o // 4} ", f"({len(beyond)} such"))
        for layer in range(1, 3):
            if layer in target.readers:
                continue
            hit = [
                (int(i), int(o) % stride)
                for i, o in zip(instance, offset, strict=True)
                if target.writer[i, o % stride] == layer
            ]
            if len(hit) > 1:
                i, o = hit[0]
                place = DEFAULT_APB_BASE + MAX78002.data_address(i, o // 4 * 4)
                wanted.append((4 * i + o % 4, place, f"of layer {layer} ", f"({len(hit)} bytes)"))
        assert len(report.findings) == len(wanted)
        for finding, (processor, address, *texts) in zip(report.findings, wanted, strict=True):
            assert (finding.processor, finding.address) == (processor, address)
            assert all(text in finding.message for text in texts)
            assert finding.severity is Severity.WARNING
        seen[len(wanted)] += 1
    assert len(seen) > 2


def test_kernels_of_outputs_that_a_layer_reads_must_be_there() -> None:
    """Of lanes that the reader leaves out none are needed; without a reader, of lanes with some."""
    draw, memory, told = random.Random(6), Memory(MAX78000), Counter[bool]()
    for _ in range(200):
        slots, word = draw.randint(1, 9), draw.choice([0, 8])
        place = draw.choice([0, 15])
        pointers = (WritePointer(place, word),) * 4
        output = dataclasses.replace(OUTPUT, slots=slots, pointers=pointers)
        kernels = dataclasses.replace(LAYER.kernels, shape=(3, 3), count=slots)
        config = dataclasses.replace(LAYER, output=output, kernels=kernels)
        readers = []
        for _ in range(draw.randrange(3)):
            mask = draw.getrandbits(12) & draw.getrandbits(12)
            inputs = dataclasses.replace(
                INPUT,
                read_word=draw.choice([word, word - 1, word + 1]),
                operands=draw.randint(1, 2),
            )
            readers.append(dataclasses.replace(LAYER, enabled=(mask, 0, 0, 0), input=inputs))
        loaded = [draw.random() < 0.7 for _ in range(slots)]
        memory.kernels_written[:] = False
        memory.kernels_written[0, :slots] = loaded
        needed = None
        for reader in readers:
            first = reader.input.read_word
            units = [p for p in range(16) if reader.enabled[0] >> p & 1]
            used = [(4 * place + n) % 64 in units for n in range(slots)]
            if word in range(first, first + reader.input.operands) and any(used):
                needed = used
                break
        if needed is None:
            whole = [n for n in range(slots) if loaded[n]]
            needed = [
                (loaded[n] and n >= min(4, slots) - 1)
                or n == slots - 1
                or n > (whole[-1] if whole else -1)
                for n in range(slots)
            ]
        report = LayerReport(memory, config, [])
        check_kernels(report, readers)
        lacking = [n for n in range(slots) if needed[n] and not loaded[n]]
        assert len(report.findings) == bool(lacking)
        if lacking:
            address = DEFAULT_APB_BASE + MAX78000.kernel_address(0, lacking[0])
            assert report.findings[0].address == address
            assert f"({len(lacking)} such" in report.findings[0].message
        told[bool(lacking)] += 1
    assert min(told.values()) > 40
