"""What the checks ask of registers and memories, against searches of all possibilities."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from ai8xtools.emulator import EmulatorError, LayerFinding, NetworkRun
from ai8xtools.emulator.checks.finding import LayerReport, Severity
from ai8xtools.emulator.checks.impossible import refuse_impossible
from ai8xtools.emulator.checks.loaded_kernels import _used_slots, check_kernels
from ai8xtools.emulator.checks.overwrites import check_own_input
from ai8xtools.emulator.checks.registers import (
    check_layer,
    control_rules,
    groups,
    kernel_rules,
    shape_rules,
)
from ai8xtools.emulator.checks.registers.facts import LayerFacts, Rule
from ai8xtools.emulator.checks.registers.rings import shared_words
from ai8xtools.emulator.decode.config import Kernels, LayerConfig, LayerKind, WritePointer
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT

Allowed = dict[tuple[str, str], list[int]]


def facts_of(chip: Chip, config: LayerConfig = LAYER, **fields: dict[str, int]) -> LayerFacts:
    """Return facts of a layer with these fields of registers in all groups."""
    memory = Memory(chip)
    for name, values in fields.items():
        for group in range(4):
            address = DEFAULT_APB_BASE + chip.layer_address(group, 0, name)
            memory.registers[address] = chip.layer_registers[name].pack(**values)
    return LayerFacts(memory, config)


def allowed(rule: Rule, facts: LayerFacts) -> Allowed:
    return {(e.register, e.field): list(e.allowed) for e in rule(facts)}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_padding_is_smaller_than_the_kernel(chip: Chip) -> None:
    """One chip counts the padding from 0; the other from 1 where a bit says that there is some."""
    for rows, columns, top, side in product((0, 1, 3), (1, 2), range(4), range(3)):
        for kind, conv1d in product(LayerKind, (False, True)):
            config = dataclasses.replace(
                LAYER,
                kind=kind,
                conv1d=conv1d,
                input=dataclasses.replace(INPUT, pad=(top, side)),
                kernels=dataclasses.replace(LAYER.kernels, shape=(rows, columns)),
            )
            found = allowed(shape_rules.counts, facts_of(chip, config))
            wanted: Allowed = {}
            for name, taps, pad in (("RCNT", rows, top), ("CCNT", columns, side)):
                kernel = taps if kind.has_kernels else 1
                if pad < kernel or (conv1d and name == "CCNT"):
                    continue
                if not chip.counts_by_step:
                    wanted[name, "pad"] = [v for v in range(16) if v == 0 or v < kernel]
                elif kernel > 1:
                    wanted[name, "pad"] = [v for v in range(16) if v + 1 < kernel]
                else:
                    wanted[name, "padded"] = [0]
            if conv1d:
                wanted |= {("CCNT", "last"): [0], ("CCNT", "pad"): [0]}
            assert found == wanted


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_fields_of_operands_agree(chip: Chip) -> None:
    names = ("operation", "pool_first", "elementwise_convolution", "operands")
    for elementwise, several, kind, pooling in product((0, 1), (0, 2), LayerKind, (False, True)):
        config = dataclasses.replace(
            LAYER, kind=kind, input=dataclasses.replace(INPUT, pooling=pooling)
        )
        oned = {"elementwise": elementwise, "operands": several}
        found = allowed(shape_rules.operands, facts_of(chip, config, ONED=oned))
        if not elementwise:
            wanted = {("ONED", name): [0] for name in names}
        elif not several:
            wanted = {("ONED", "elementwise"): [0]}
        else:
            convolves = int(kind is not LayerKind.PASSTHROUGH)
            wanted = {("ONED", "elementwise_convolution"): [convolves]}
            wanted |= {} if pooling else {("ONED", "pool_first"): [0]}
            told = next(iter(shape_rules.operands(facts_of(chip, config, ONED=oned)))).reason
            assert ("no" in told.split()) == (not convolves)
        assert found == wanted


def test_steps_of_windows_leave_the_rest_of_a_line_and_of_the_rows_between() -> None:
    """The words behind the last window of a row are counted one by one up to the next row."""
    for stride, pool, dilation, conv1d in product((1, 2, 3), (1, 2), (1, 2), (False, True)):
        config = dataclasses.replace(
            LAYER,
            conv1d=conv1d,
            input=dataclasses.replace(
                INPUT, stride=stride, pool=(1, pool), pool_dilation=(1, dilation)
            ),
        )
        for last, skip, each, padded in product(range(4), (1, 3), (1, 2), (0, 1)):
            count = {"last": last, "skip": skip, "pad": 1, "padded": padded}
            facts = facts_of(
                MAX78002, config, RCNT=count, CCNT=count, STRIDE={"words": each * stride}
            )
            span = (
                1 if conv1d else len(range(0, pool * dilation, dilation)) * dilation - dilation + 1
            )
            begun = [v for v in range(last + 1) if v % stride == 0]
            width = 1 if conv1d else last + skip
            passed = [(y, x) for y in range(stride) for x in range(width)]
            behind = [at for at in passed if at >= (0, 0 if conv1d else last)]
            wanted: Allowed = {
                ("CCNT", "skip"): [v for v in range(99) if span <= v < span + stride],
                ("RCNT", "skip"): [len(behind) * each],
            }
            for name in ("RCNT", "CCNT"):
                wanted |= {} if padded else {(name, "pad"): [0]}
                wanted |= {(name, "last"): [begun[-1]]} if begun[-1] != last else {}
            assert allowed(shape_rules.steps, facts) == wanted
        assert not allowed(shape_rules.steps, facts_of(MAX78000, config))


def test_windows_reach_to_their_last_pixel() -> None:
    for rows, columns, dilation, conv1d in product(range(5), range(5), (1, 2, 3), (False, True)):
        for transposed in (False, True):
            config = dataclasses.replace(LAYER, conv1d=conv1d, transposed=transposed)
            facts = facts_of(
                MAX78002, config, STRIDE={"words": 1},
                PRCNT={"last": rows, "dilation": dilation - 1},
                PCCNT={"last": columns, "dilation": dilation - 1},
            )  # fmt: skip
            wanted: Allowed = {("LCTL", "pool"): [int(rows + columns > 0)]}
            wanted |= {("PCCNT", "last"): [0]} if conv1d else {}
            for name, last in (("PRCNT", rows), ("PCCNT", columns)):
                pixels = range(0, last + 1, dilation)
                wanted |= {(name, "last"): [pixels[-1]]} if pixels[-1] != last else {}
            wanted |= {("STRIDE", "stride"): [0]} if transposed else {}
            assert allowed(shape_rules.pooling, facts) == wanted


def test_time_slots_are_those_of_the_fullest_group() -> None:
    draw = random.Random(1)
    for kind, wide, broadcast in product(LayerKind, (False, True), (False, True)):
        for _ in range(20):
            masks = tuple(draw.getrandbits(16) & draw.getrandbits(16) for _ in range(4))
            masks = masks if any(masks) else (1, 0, 0, 0)
            config = dataclasses.replace(
                LAYER,
                kind=kind,
                enabled=masks,
                broadcast=broadcast and kind is LayerKind.DEPTHWISE,
                output=dataclasses.replace(OUTPUT, wide=wide),
            )
            most = max(mask.bit_count() for mask in masks)
            words = 4 if wide else 1
            slots = {
                LayerKind.CONVOLUTION: 0,
                LayerKind.PASSTHROUGH: -(-most // 4) - 1,
                LayerKind.DEPTHWISE: words * (min(most, 4) if config.broadcast else most) - 1,
            }
            found = allowed(kernel_rules.slots, facts_of(MAX78000, config))
            assert found == {("ONED", "time_slots"): [slots[kind]]}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_kernels_begin_where_a_column_does(chip: Chip) -> None:
    name = "MCNT" if chip is MAX78000 else "MCNT2"
    for taps, first, remainder in product(((1, 1), (3, 3), (2, 2), (5, 1)), range(81), range(3)):
        size = taps[0] * taps[1]
        kernels = dataclasses.replace(LAYER.kernels, shape=taps, first=first)
        config = dataclasses.replace(LAYER, kernels=kernels)
        facts = facts_of(chip, config, ONED={"kernel_remainder": remainder})
        whole = [n for n in range(0, 81, 8) if n <= first][-1]
        fitting = [9 * n - first // 8 * size for n in range(99)]
        fitting = [rest for rest in fitting if 0 <= rest < size]
        wanted: Allowed = {}
        if first != whole:
            wanted = {(name, "first"): [whole]}
        elif remainder not in fitting:
            wanted = {("ONED", "kernel_remainder"): fitting} if fitting else {(name, "first"): [0]}
        assert allowed(kernel_rules.first_kernel, facts) == wanted
        if first == whole:
            four = dataclasses.replace(
                config, kernels=dataclasses.replace(kernels, four_at_once=True)
            )
            assert not allowed(kernel_rules.first_kernel, LayerFacts(facts.memory, four))


def test_outputs_count_in_weight_bits() -> None:
    for bits, bypass, last in product((1, 2, 4, 8), (False, True), (*range(25), *range(488, 512))):
        kernels = dataclasses.replace(LAYER.kernels, bits=bits, bypass=bypass)
        facts = facts_of(
            MAX78002, dataclasses.replace(LAYER, kernels=kernels), LCTL2={"last_output": last}
        )
        found = allowed(kernel_rules.outputs, facts)
        right = [(n * (8 if bypass else bits)) for n in range(64)]
        if last in right:
            assert not found
        else:
            listed = found["LCTL2", "last_output"]
            assert set(listed) <= set(right)
            nearest = [n for n in right if n < last][-1]
            assert last > right[-1] or listed == [n for n in right if n >= nearest]


def test_numbers_of_kernels_are_those_of_the_outputs() -> None:
    """One by one: an output is counted in each pass, four of them at once as one."""
    domain = product(LayerKind, (1, 2, 4, 8), (1, 2, 3), (1, 4, 5, 8), (False, True))
    for kind, bits, passes, slots, four in domain:
        first = 16
        kernels = dataclasses.replace(
            LAYER.kernels, bits=bits, first=first, count=slots * passes, four_at_once=four
        )
        config = dataclasses.replace(
            LAYER, kind=kind, kernels=kernels,
            input=dataclasses.replace(INPUT, passes=passes),
            output=dataclasses.replace(OUTPUT, slots=slots),
        )  # fmt: skip
        facts = facts_of(MAX78002, config, ONED={"time_slots": slots})
        found = allowed(kernel_rules.last_kernel, facts) | allowed(kernel_rules.channels, facts)
        if kind is LayerKind.PASSTHROUGH:
            assert found == {("MCNT1", "last"): [0], ("OCHAN", "last"): [slots]}
            continue
        if kind is LayerKind.DEPTHWISE:
            counted = [n for n in range(1, 5 * passes) if n % passes == 0]
            computed = len([*product(range(slots + 1), range(passes))]) - 1
        else:
            counted = [len([*product(range(slots), range(passes))])]
            begun = [n for n in range(counted[0]) if n % 4 == 0] if four else range(counted[0])
            computed = len(begun) - 1
        numbers = [range(first, 9999, bits)[n - 1] for n in counted]
        if four:  # steps of a weight in each of the four parts
            numbers = [first + max(range(0, n * bits, 4)) // 4 + 1 - bits for n in counted]
        assert set(found["MCNT1", "last"]) >= set(numbers) and len(found["MCNT1", "last"]) < 5
        assert found["OCHAN", "last"] == [computed]


def test_sums_are_made_of_the_other_groups() -> None:
    for masks, kind in product(product((0, 5), repeat=4), LayerKind):
        if not any(masks):
            continue
        sums = kind is LayerKind.CONVOLUTION
        base = 0 if sums else next(g for g in range(4) if masks[g])
        config = dataclasses.replace(LAYER, kind=kind, enabled=masks, base_group=base)
        facts = facts_of(MAX78000, config)
        for group in config.used_groups:
            (rule,) = control_rules.sources(facts, group)
            others = [g for g in range(1, 4) if masks[g]] if sums and group == base else []
            assert list(rule.allowed) == [sum(1 << g for g in others)]
            if sums and group == base:
                assert [int(c) for c in rule.reason if c.isdigit()] == others


def drawn_groups(draw: random.Random) -> LayerFacts:
    """Return a layer whose groups differ in a field of a register, or do not."""
    values = [draw.choice([0, 3, 3, 7]) for _ in range(4)]
    masks = tuple(draw.choice([0, 1]) for _ in range(4))
    config = dataclasses.replace(LAYER, enabled=masks if any(masks) else (1, 0, 0, 0))
    facts = facts_of(MAX78000, config)
    for group, value in enumerate(values):
        address = DEFAULT_APB_BASE + MAX78000.layer_address(group, 0, "TPTR")
        facts.memory.registers[address] = MAX78000.layer_registers["TPTR"].pack(last=value)
    return facts


def test_groups_that_differ_from_the_others_are_named() -> None:
    draw = random.Random(2)
    for _ in range(150):
        facts = drawn_groups(draw)
        values = [facts.read("TPTR", group)["last"] for group in range(4)]
        used = facts.config.used_groups
        others = [g for g in range(4) if g not in used and values[g]]
        assert list(groups.copies(facts)) == others

        def rank(value: int, values: list[int] = values, facts: LayerFacts = facts) -> list[int]:
            own = [values[g] for g in facts.config.used_groups]
            copies = [values[g] for g in groups.copies(facts)]
            return [own.count(value), copies.count(value), int(value == values[0])]

        best = max({values[g] for g in used}, key=rank)
        wrong = [(g, best, values[g]) for g in used if values[g] != best]
        found = list(groups.differences(facts))
        assert [(w.group, w.expected, w.actual) for w in found] == wrong
        assert {(w.register, w.field) for w in found} <= {("TPTR", "last")}
        own, copied = {values[g] for g in used}, {values[g] for g in others}
        deviates = len(own) == len(copied) == 1 and own != copied
        expected = [(used[0], *copied, *own)] if deviates else []
        found = list(groups.deviations(facts))
        assert [(w.group, w.expected, w.actual) for w in found] == expected


def test_groups_that_say_otherwise_are_all_the_other_ones() -> None:
    draw, told = random.Random(3), 0
    for _ in range(60):
        facts = drawn_groups(draw)
        for finding in check_layer(facts):
            _, _, others = finding.message.partition("(as in group")
            if any(c.isdigit() for c in others):
                assert finding.wrong is not None
                used = [g for g in facts.config.used_groups if g != finding.wrong.group]
                assert [int(c) for c in others if c.isdigit()] == used
                told += 1
    assert told > 10


@pytest.mark.parametrize("several", [False, True])
def test_the_group_with_the_last_bias_adds_it(several: bool) -> None:
    """A bias in groups of which none begins at 0, or one does; all the others add none."""
    for offsets in product((None, 0, 1, 4), repeat=4):
        used = [offset for offset in offsets if offset is not None]
        if not used or len({*used}) < len(used) or (len(used) > 1) != several:
            continue
        output = dataclasses.replace(OUTPUT, bias_offsets=offsets)
        facts = facts_of(MAX78000, dataclasses.replace(LAYER, output=output))
        owner = offsets.index(max(used))
        for group, offset in enumerate(offsets):
            found = allowed_in(group, facts)
            wanted = {} if offset is not None else {("POST", "bias_offset"): [0]}
            if offset is not None and group != owner:
                wanted[("POST", "bias")] = [0]
            assert found == wanted


def allowed_in(group: int, facts: LayerFacts) -> Allowed:
    return {(e.register, e.field): list(e.allowed) for e in control_rules.bias(facts, group)}


def refused(config: LayerConfig, chip: Chip = MAX78000, *, fifo: bool = False) -> bool:
    try:
        refuse_impossible(LayerReport(Memory(chip), config, []), fifo)
    except EmulatorError as error:
        assert error.code == "E832"
        return True
    return False


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_registers_that_describe_no_layer_are_refused(chip: Chip) -> None:
    def changed(**fields: object) -> LayerConfig:
        return dataclasses.replace(LAYER, input=dataclasses.replace(INPUT, **fields))

    assert not refused(LAYER, chip)
    assert refused(dataclasses.replace(LAYER, enabled=(0, 0, 0, 0)), chip)
    for rows, count, width, stride, dilation in product((5, 6), (1, 2, 4), (1, 2), (1, 2), (1, 2)):
        windows = [i * stride + j * dilation for i in range(count) for j in range(width)]
        for turned in (False, True):
            size, pooled, pool, apart = (
                (other, 1)[::-1] if turned else (other, 1)
                for other in (rows, count, width, dilation)
            )
            config = changed(
                size=size, pooled=pooled, pooling=True, pool=pool, pool_dilation=apart,
                stride=stride,
            )  # fmt: skip
            assert refused(config, chip) == (max(windows) >= rows)
            if width == 1:  # without pooling, the stride leaves out pixels
                inputs = dataclasses.replace(config.input, pooling=False, pool=(3, 3))
                config = dataclasses.replace(config, input=inputs)
                assert refused(config, chip) == (max(windows) >= rows)
    limit = chip.max_frame_words
    for words in (limit, limit + 1):
        config = changed(size=(1, words), pooled=(1, 1))
        assert refused(config, chip) == (words > limit)
    half = changed(size=(1, limit // 2 + 1), passes=2)
    assert refused(half, chip)
    assert refused(dataclasses.replace(half, input=dataclasses.replace(
        half.input, passes=1, operands=2)), chip)  # fmt: skip
    for passes, operands, chw, fifo in product((1, 2), (1, 2), (False, True), (False, True)):
        config = changed(passes=passes, operands=operands, chw=chw)
        several = passes * operands > 1
        assert refused(config, chip, fifo=fifo) == (several and (chw or fifo))
    for field, value in (("passes", 0), ("gap", -1)):
        output = dataclasses.replace(OUTPUT, **{field: value})
        assert refused(dataclasses.replace(LAYER, output=output), chip)
    for field in ("size", "pooled"):
        for empty in ((0, 1), (1, 0)):
            assert refused(changed(**{field: empty}), chip)
    assert refused(dataclasses.replace(LAYER, kernels=Kernels((3, 3), 8, 0, 0, 1, False, False)))


def overwriting(draw: random.Random) -> LayerConfig:
    """Return a layer that writes near its input."""
    pool = draw.choice([(1, 1), (2, 2), (1, 2)])
    pooled, stride = (draw.randint(3, 5), draw.randint(3, 5)), draw.randint(1, 2)
    taps = draw.choice([(1, 1), (3, 3), (2, 1)])
    pad = (draw.randrange(taps[0]), draw.randrange(taps[1]))
    inputs = dataclasses.replace(
        INPUT,
        size=tuple((n - 1) * stride + w for n, w in zip(pooled, pool, strict=True)),
        pooled=pooled,
        pad=pad,
        pooling=pool != (1, 1),
        pool=pool,
        stride=stride,
        read_word=10,
    )
    kernels = dataclasses.replace(LAYER.kernels, shape=taps)
    transposed = taps == (3, 3) and draw.random() < 0.3
    return dataclasses.replace(LAYER, input=inputs, kernels=kernels, transposed=transposed)


def clashes(config: LayerConfig, start: int) -> Iterator[bool]:
    """Yield of each word that is input and output whether it is written too early.

    The pixels of the pooled image come in reading order; a value is written when the last pixel
    under its kernel has come, or would have come if it is padding.
    """
    inputs, (rows, columns) = config.input, config.output_size
    pixels = list(np.ndindex(*inputs.pooled))
    users: dict[int, int] = {}
    for number, (i, j) in enumerate(pixels):
        for a, b in np.ndindex(*inputs.pool):
            word = (i * inputs.stride + a) * inputs.size[1] + j * inputs.stride + b
            users[inputs.read_word + word] = number
    (high, wide), (top, side) = config.kernels.shape, inputs.pad
    image = range(inputs.read_word, inputs.read_word + inputs.size[0] * inputs.size[1])
    for number, (y, x) in enumerate(np.ndindex(rows, columns)):
        last = (
            y + high - 1 - top if high > 1 else y,
            x + wide - 1 - side if wide > 1 else x,
        )
        if config.transposed:
            last = last[0] // 2, last[1] // 2
        come = max(n for n, pixel in enumerate(pixels) if pixel <= last)
        if start + number in image:
            yield users.get(start + number, -1) > come


def test_output_over_its_own_input_is_told_as_the_pixels_come() -> None:
    draw, seen = random.Random(7), set()
    for _ in range(150):
        config, start = overwriting(draw), draw.randint(0, 20)
        memory, pixels = Memory(MAX78000), int(np.prod(config.output_size))
        report = LayerReport(memory, config, [])
        numbers = np.arange(pixels)
        write = np.zeros(1, np.int64), start + numbers[None], numbers
        check_own_input(report, input_bytes(config, memory.data_bytes.shape[1]), write)
        wanted = list(clashes(config, start))
        found = [finding.severity for finding in report.findings]
        severity = Severity.WARNING if any(wanted) else Severity.NOTE
        assert found == ([severity] if wanted else [])
        if wanted:
            count = sum(wanted) or len(wanted)
            assert f"({count} words)" in report.findings[0].message
        seen |= set(found)
    assert seen == {Severity.WARNING, Severity.NOTE}


def test_each_kernel_column_that_is_lacking_is_told() -> None:
    draw = random.Random(9)
    readers = [dataclasses.replace(LAYER, layer=1, enabled=(0xFFFF, 0, 0, 0))]  # of all outputs
    for shape, bits in product([(1, 1), (2, 3), (3, 3), (4, 1)], (1, 2, 8)):
        slots, passes = draw.randint(2, 9), draw.randint(1, 3)
        if bits == 1:  # the last byte of a tap has one kernel
            slots, passes = 3, 3
        count, start = slots * passes, 9 * draw.randint(0, 3)
        config = dataclasses.replace(
            LAYER,
            enabled=(0b101, 0, 1, 0),
            input=dataclasses.replace(INPUT, passes=passes),
            kernels=Kernels(shape, bits, 0, start, count, False, False),
            output=dataclasses.replace(OUTPUT, slots=slots),
        )
        blocks = -(-count // (8 // bits))
        columns = sorted({(start + i) // 9 for i in range(blocks * shape[0] * shape[1])})
        for processor, column in product((0, 2, 32), columns):
            memory = Memory(MAX78000)
            memory.kernels_written[np.ix_([0, 2, 32], columns)] = True
            report = LayerReport(memory, config, [])
            check_kernels(report, readers)
            assert report.findings == []
            memory.kernels_replaced[processor, column] = True
            check_kernels(report, readers)
            memory.kernels_replaced[processor, column] = False
            memory.kernels_written[processor, column] = False
            check_kernels(report, readers)
            address = DEFAULT_APB_BASE + MAX78000.kernel_address(processor, column)
            assert [(f.processor, f.address) for f in report.findings] == 2 * [(processor, address)]


def test_outputs_that_nobody_reads_exist_but_for_lanes_that_another_layer_may_have() -> None:
    """Those without any kernels, and those in front of the last one of an instance."""
    for count in range(1, 8):
        config = dataclasses.replace(LAYER, output=dataclasses.replace(OUTPUT, slots=count))
        for loaded in product([False, True], repeat=count):
            missing = [not any(loaded[slot:]) for slot in range(count)]
            wanted = [
                slot == count - 1 or missing[slot] or (loaded[slot] and slot >= 3)
                for slot in range(count)
            ]
            assert _used_slots(config, [], np.array(loaded)).tolist() == wanted


def test_ring_buffers_are_apart_if_no_word_is_in_both() -> None:
    draw, told = random.Random(11), 0
    for _ in range(300):
        layers = []
        for number in range(2):
            size = draw.randint(1, 4), draw.randint(1, 4)
            inputs = dataclasses.replace(
                INPUT, size=size, pooled=size, passes=draw.randint(1, 2),
                read_word=draw.randint(0, 20),
            )  # fmt: skip
            pointers = (WritePointer(draw.randint(0, 2), draw.randint(0, 20)),) * 4
            layers.append(dataclasses.replace(
                LAYER, layer=number, enabled=(draw.choice([1, 0x11, 0x10]), 0, 0, 0), input=inputs,
                output=dataclasses.replace(
                    OUTPUT, slots=draw.choice([1, 4, 5]), pointers=pointers,
                    passes=draw.randint(1, 2),
                ),
                ring_words=draw.randint(1, 12), stream_start=1,
            ))  # fmt: skip
        memory = Memory(MAX78000)
        address = DEFAULT_APB_BASE + MAX78000.control_address(0, "CTL")
        control = MAX78000.control_registers["CTL"]
        memory.registers[address] = control.pack(fifo=1, streaming=1)
        parts = []
        for layer in layers:
            inputs = layer.input
            words = min(layer.ring_words, inputs.size[0] * inputs.size[1] * inputs.passes)
            used = {p // 4 for p in range(16) if layer.enabled[0] >> p & 1}
            begin = inputs.read_word
            parts.append({(i, w) for i in used for w in range(begin, begin + words)})
        last = layers[-1]
        start, output = last.start, last.output
        words = last.output_size[0] * last.output_size[1] * output.passes
        units = range(start.instance, start.instance + -(-output.slots // 4))
        parts.append({(i, w) for i in units for w in range(start.word, start.word + words)})
        wanted = sum(bool(parts[a] & parts[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        facts = LayerFacts(memory, last, before=(layers[0],), is_start=False)
        found = list(shared_words(facts))
        assert len(found) == wanted
        assert all(f.layer == 1 and f.severity is Severity.ERROR for f in found)
        told += wanted
        memory.registers[address] = control.pack(fifo=1)
        assert not list(shared_words(facts))
    assert told > 50


def test_errors_of_a_run_are_the_findings_of_that_severity() -> None:
    findings = [LayerFinding(n, "", severity=s) for n, s in enumerate(2 * list(Severity))]
    wrong = [finding.layer for finding in NetworkRun([], findings).errors]
    assert wrong == [n for n, s in enumerate(2 * list(Severity)) if s is Severity.ERROR]
