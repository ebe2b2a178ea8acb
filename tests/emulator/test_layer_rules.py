"""What checks expect of control bits, pointers and kernels: all small cases of each rule."""

from __future__ import annotations

import dataclasses
import random
from itertools import product

import numpy as np
import pytest

from ai8xtools.emulator.checks.finding import WrongField
from ai8xtools.emulator.checks.registers import (
    control_rules,
    kernel_rules,
    pointer_rules,
    shape_rules,
)
from ai8xtools.emulator.checks.registers.facts import GroupRule, LayerFacts
from ai8xtools.emulator.checks.registers.images import fits_better
from ai8xtools.emulator.decode.config import Kernels, LayerConfig, LayerKind, WritePointer
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.packing import drawn, pack, set_field, start
from tests.emulator.test_arithmetic import INPUT, LAYER, OUTPUT
from tests.emulator.test_check_rules import Allowed, allowed, facts_of

EACH_CHIP = pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)


def in_group(rule: GroupRule, facts: LayerFacts, group: int) -> Allowed:
    return {(e.register, e.field): list(e.allowed) for e in rule(facts, group)}


def with_groups(config: LayerConfig, **fields: dict[str, list[int]]) -> LayerFacts:
    """Return facts of a layer with fields of registers, one value for each group."""
    facts = facts_of(MAX78000, config)
    for name, values in fields.items():
        for field, of_groups in values.items():
            for group, value in enumerate(of_groups):
                set_field(facts.memory, 0, group, (name, field), value)
    return facts


@EACH_CHIP
def test_time_slots_are_as_far_apart_as_the_manual_says(chip: Chip) -> None:
    far = 0x2000 if chip is MAX78000 else 0x8000
    masks = [(1, 0, 0, 0), (0xF, 0, 0, 0), (0x1F, 0, 0, 0), (1, 1, 1, 1), (1, 7, 0, 1)]
    domain = product(LayerKind, masks, (1, 2), (1, 2), (False, True), (False, True))
    for kind, enabled, operands, passes, pooling, broadcast in domain:
        inputs = dataclasses.replace(INPUT, operands=operands, passes=passes, pooling=pooling)
        config = dataclasses.replace(
            LAYER, kind=kind, enabled=enabled, input=inputs, broadcast=broadcast
        )
        several = sum(mask.bit_count() for mask in enabled) > 4 or (operands > 1 and passes > 1)
        if kind is LayerKind.CONVOLUTION:
            wanted = [1]
        elif kind is LayerKind.DEPTHWISE:
            wanted = [0 if broadcast else far]
        else:
            wanted = [far if several else far // 4]
            if chip is MAX78000 and not several and operands > 1 and not pooling:
                wanted = [far // 4, far]  # what are rows here may be passes
        facts = facts_of(chip, config)
        assert allowed(pointer_rules.time_slots, facts) == {("WPTR_TOFFS", "words"): wanted}
        # A layer that resets average pooling has the distance of the next
        following = dataclasses.replace(config, layer=1)
        address = DEFAULT_APB_BASE + chip.layer_address(0, 1, "WPTR_TOFFS")
        facts.memory.registers[address] = 77
        facts = dataclasses.replace(facts, behind=(following,))
        resets = kind is LayerKind.PASSTHROUGH and enabled == masks[0]
        more = [77] if resets else []
        assert allowed(pointer_rules.time_slots, facts) == {("WPTR_TOFFS", "words"): wanted + more}
        wider = dataclasses.replace(config, input=dataclasses.replace(inputs, size=(1, 2)))
        facts = dataclasses.replace(facts, config=wider)
        assert allowed(pointer_rules.time_slots, facts) == {("WPTR_TOFFS", "words"): wanted}
    for shape, conv1d, turned in product(((1, 1), (3, 3), (1, 2)), (0, 1), (0, 1)):
        kernels = dataclasses.replace(LAYER.kernels, shape=shape)
        config = dataclasses.replace(
            LAYER, kernels=kernels, conv1d=bool(conv1d), transposed=bool(turned)
        )
        flat = shape == (1, 1) and not conv1d and not turned
        found = allowed(pointer_rules.time_slots, facts_of(chip, config))
        assert found == {("WPTR_TOFFS", "words"): [int(flat)]}


@EACH_CHIP
def test_passes_stand_beside_each_other_in_the_pixels(chip: Chip) -> None:
    blank = facts_of(chip)
    for words, step, kind, wide in product(range(14), range(1, 13), LayerKind, (0, 1)):
        set_field(blank.memory, 0, 0, ("WPTR_CHOFFS", "words"), words)
        set_field(blank.memory, 0, 0, ("LCTL2", "write_step"), step - 1)
        several = (1, 2) if kind is LayerKind.PASSTHROUGH else (1,)
        for passes, operands in product(several, several):
            config = dataclasses.replace(
                LAYER,
                kind=kind,
                input=dataclasses.replace(INPUT, operands=operands),
                output=dataclasses.replace(OUTPUT, wide=bool(wide), passes=passes),
            )
            facts = dataclasses.replace(blank, config=config)
            unit = 4 if wide else 1
            found = allowed(pointer_rules.passes, facts).get(("WPTR_CHOFFS", "words"))
            if kind is LayerKind.PASSTHROUGH:
                wanted = [step * unit if passes > 1 else 0]
                if passes == 1 and chip is MAX78000 and operands > 1:
                    wanted.append(step * unit)
                assert found == wanted
                continue
            # several passes, each gap + 1 words, make the distance of two pixels
            fitting = [unit * n for n in range(1, step) for k in range(2, 99) if n * k == step]
            if words == 0 or words in fitting:
                assert found is None
            else:
                assert found == [0, *(fitting or [0])]


@EACH_CHIP
def test_pointers_are_inside_the_memory(chip: Chip) -> None:
    words, limit = (0x2000, 0x20000) if chip is MAX78000 else (0x5000, 0x80000)
    for word in (0, words - 1, words, words + 5):
        found = allowed(pointer_rules.read_pointer, facts_of(chip, RPTR_BASE={"word": word}))
        wanted = [word - words, *range(words)]
        assert found == ({("RPTR_BASE", "word"): wanted} if word >= words else {})
    field = chip.layer_registers["WPTR_BASE"].by_name["pointer"]
    for pointer in (0, limit - 1, limit, limit + 7):
        if pointer >> field.width:
            continue
        facts = facts_of(chip, WPTR_BASE={"pointer": pointer})
        found = in_group(pointer_rules.write_pointer, facts, 2)
        beyond = {("WPTR_BASE", "pointer"): [pointer - limit]}
        assert found == (beyond if pointer >= limit else {})
    for kind in LayerKind:
        found = allowed(
            pointer_rules.instances, facts_of(chip, dataclasses.replace(LAYER, kind=kind))
        )
        apart = 0 if kind is LayerKind.PASSTHROUGH else chip.write_pointer_words
        assert found == {("WPTR_MOFFS", "words"): [apart]}


def test_groups_that_write_for_themselves_begin_at_the_word_of_most() -> None:
    draw = random.Random(1)
    for number in range(120):
        kind = [*LayerKind][number % 3]
        enabled = tuple(draw.choice([0, 1]) for _ in range(4))
        enabled = enabled if any(enabled) else (0, 1, 0, 0)
        pointers = tuple(WritePointer(draw.randrange(16), draw.choice([3, 5])) for _ in range(4))
        used = [g for g in range(4) if enabled[g]]
        config = dataclasses.replace(
            LAYER, kind=kind, enabled=enabled, base_group=used[0],
            output=dataclasses.replace(OUTPUT, pointers=pointers),
        )  # fmt: skip
        words = [pointers[g].word for g in used]
        base = pointers[used[0]].word
        word = next(w for w in (base, 8 - base) if 2 * words.count(w) >= len(used))
        for group in used:
            found = in_group(pointer_rules.one_start, facts_of(MAX78000, config), group)
            place = pointers[group].instance * 0x2000 + word
            alone = kind is not LayerKind.CONVOLUTION
            assert found == ({("WPTR_BASE", "pointer"): [place]} if alone else {})


@EACH_CHIP
def test_shape_of_the_kernel_in_all_registers(chip: Chip) -> None:
    domain = product(LayerKind, ((1, 1), (3, 3), (1, 3), (4, 1)), (0, 1), (0, 1), (1, 2))
    for kind, shape, conv1d, turned, operands in domain:
        config = dataclasses.replace(
            LAYER, kind=kind, conv1d=bool(conv1d), transposed=bool(turned),
            kernels=dataclasses.replace(LAYER.kernels, shape=shape),
            input=dataclasses.replace(INPUT, operands=operands),
        )  # fmt: skip
        found = allowed(shape_rules.kernel_shape, facts_of(chip, config))
        length = ("ONED", "kernel_length")
        sides = ("LCTL", "kernel_rows"), ("LCTL", "kernel_columns")
        if kind is LayerKind.PASSTHROUGH:
            wanted: Allowed = {length: [int(operands == 1)], ("ONED", "conv1d"): [0]}
            wanted |= {side: [0] for side in sides} if chip is MAX78002 else {}
        elif conv1d:
            wanted = {length: [1, 2, 3, 4, 5, 6, 7, 8, 9]}
            if chip is MAX78002:
                wanted |= {sides[0]: [shape[0] - 1], sides[1]: [0]}
        else:
            wanted = {length: [0, 1]}
            if chip is MAX78002:
                wanted = {length: [int(shape == (1, 1) and not turned)]}
        assert found == wanted


@EACH_CHIP
def test_bits_that_every_layer_has(chip: Chip) -> None:
    masks = [(1, 0, 0, 0), (3, 0, 0, 0), (0x11, 1, 0, 0), (0x10, 0, 0x8000, 0), (0, 0, 0xC000, 0)]
    for enabled, is_start, kind, bypass in product(masks, (False, True), LayerKind, (False, True)):
        config = dataclasses.replace(
            LAYER, kind=kind, enabled=enabled,
            kernels=dataclasses.replace(LAYER.kernels, bypass=bypass, start=9, count=3),
        )  # fmt: skip
        facts = dataclasses.replace(facts_of(chip, config), is_start=is_start)
        used = [n for n in range(64) if enabled[n // 16] >> n % 16 & 1]
        planar = len({n // 4 for n in used}) == len(used)
        for written in ("no column", "by one processor", "by others"):
            kernels = np.zeros(facts.memory.kernels_written.shape, np.bool_)
            if written == "by one processor":
                kernels[used[-1], 1] = True
            elif written == "by others":
                kernels[[p for p in range(64) if p not in used]] = True
                kernels[:, :1] = kernels[:, 2:] = True
            facts.memory.kernels_written = kernels
            found = allowed(control_rules.fixed, facts)
            gaps = kind is LayerKind.CONVOLUTION and not bypass and written != "by one processor"
            wanted: Allowed = {
                ("LCTL", "always"): [1],
                ("LCTL", "shared_output"): [1, 0] if gaps else [1],
            }
            wanted |= {} if is_start or planar else {("LCTL", "chw"): [0]}
            assert found == wanted


def test_reading_ahead_counts_the_passes() -> None:
    """The top bit of the count is also that of depth-wise layers that are broadcast."""
    for passes, ahead, tcalc, spread in product((1, 2, 4, 5, 8, 9, 13), (0, 1), (0, 1), (0, 1)):
        config = dataclasses.replace(
            LAYER, broadcast=bool(spread), input=dataclasses.replace(INPUT, passes=passes)
        )
        for bit in (0, 1):  # is told where the layer is
            lctl = {"read_ahead": ahead, "depthwise_broadcast": bit}
            facts = facts_of(MAX78002, config, LCTL=lctl, POST={"tcalc": tcalc})
            count = 0
            if ahead:
                count = len(range(0, passes - 1, 1)) if not tcalc else (passes - 1) // 4
            wanted: Allowed = {} if ahead else {("POST", "tcalc"): [0]}
            wanted[("LCTL", "shift_count")] = [count | 8 * spread]
            assert allowed(control_rules.read_ahead, facts) == wanted
        facts = facts_of(MAX78000, config, POST={"tcalc": tcalc})
        assert allowed(control_rules.read_ahead, facts) == {("POST", "tcalc"): [0]}


@EACH_CHIP
def test_kind_of_the_layer_in_all_bits(chip: Chip) -> None:
    domain = product(LayerKind, (1, 2), (0, 1), (0, 3), (0, 1), (0, 4))
    for kind, operands, flatten, high, relu, shift in domain:
        config = dataclasses.replace(
            LAYER, kind=kind, input=dataclasses.replace(INPUT, operands=operands)
        )
        post = {"flatten": flatten, "flatten_high": high, "shift": shift}
        found = allowed(control_rules.kind, facts_of(chip, config, POST=post, LCTL={"relu": relu}))
        through = kind is LayerKind.PASSTHROUGH
        wanted: Allowed = {
            ("POST", "time_slots"): [int(kind is not LayerKind.CONVOLUTION)],
            ("POST", "one_by_one"): [int(through and operands == 1)],
        }
        zeros = set()
        if chip is MAX78000:
            zeros |= {"depthwise", "calcx4"}
        zeros |= {"flatten_high"} if not flatten else set() if high else {"flatten"}
        if through:
            zeros |= {"shift", "shift_right", "absolute", "transposed", "flatten"}
            wanted |= {("LCTL", "relu"): [0], ("LCTL", "wide"): [0]}
        elif relu:
            zeros.add("absolute")
        zeros |= set() if shift else {"shift_right"}
        assert found == wanted | {("POST", name): [0] for name in zeros}


def test_a_layer_jumps_or_stops() -> None:
    for jump, stop in product((0, 1), (0, 1)):
        facts = facts_of(MAX78002, NXTLYR={"jump": jump, "stop": stop})
        wanted = {} if jump and not stop else {("NXTLYR", "stop" if jump else "layer"): [0]}
        assert allowed(control_rules.next_layer, facts) == wanted
    assert allowed(control_rules.next_layer, facts_of(MAX78000)) == {}


def test_processors_that_take_part_read_kernels() -> None:
    for kind, bypass, part, reads in product(LayerKind, (0, 1), (0, 5), (0, 4)):
        config = dataclasses.replace(
            LAYER, kind=kind, enabled=(1, part, 0, 0), with_kernels=(1, reads, 0, 0),
            kernels=dataclasses.replace(LAYER.kernels, bypass=bool(bypass)),
        )  # fmt: skip
        found = in_group(control_rules.kernel_masks, facts_of(MAX78000, config), 1)
        none = kind is LayerKind.PASSTHROUGH or bypass
        wanted = {("ENA", "kernels"): [0 if none else part]}
        wanted |= {("ENA", "processors"): [reads]} if reads and not none else {}
        assert found == wanted


def test_groups_that_add_the_bias() -> None:
    """One group of a convolution; of others all that have processors, or none."""
    for kind, enabled, biased in product(
        LayerKind, product((0, 1), repeat=3), product((None, 0, 8), repeat=3)
    ):
        if not any(enabled):
            continue
        offsets = (*biased, None)
        config = dataclasses.replace(
            LAYER, kind=kind, enabled=(*enabled, 0),
            output=dataclasses.replace(OUTPUT, bias_offsets=offsets),
        )  # fmt: skip
        facts = facts_of(MAX78000, config)
        for group in range(3):
            found = in_group(control_rules.bias, facts, group)
            others = [g for g in range(3) if offsets[g] is not None and g != group]
            own, wanted = offsets[group] is not None, {}
            if not own:
                wanted[("POST", "bias_offset")] = [0]
            place = "POST", "bias"
            if kind is LayerKind.PASSTHROUGH:
                wanted[place] = [0]
            elif kind is LayerKind.CONVOLUTION:
                # the group holds the bias whose offset is not the default
                most = max((offsets[g] or 0 for g in range(3)), default=0)
                owner = next(
                    (g for g in range(3) if offsets[g] is not None and offsets[g] == most), None
                )
                if own and others and group != owner:
                    wanted[place] = [0]
            elif enabled[group] and sum(enabled) > 1:
                if not own and others:
                    wanted[place] = [1]
                elif own and not others:
                    wanted[place] = [0]
            assert found == wanted, (kind, enabled, biased, group)


def test_kernels_of_several_passes_and_of_quad_mode() -> None:
    """Numbers that agree with the outputs: up to three lanes before the first, and a short end."""
    for passes, slots, of_output, quad, first in product((1, 3), (1, 2, 5), (1, 2), (0, 1), (0, 1)):
        kernels = Kernels((3, 3), 8, 16, 18, 1, False, False)
        config = dataclasses.replace(
            LAYER, kernels=kernels, input=dataclasses.replace(INPUT, passes=passes),
            output=dataclasses.replace(OUTPUT, slots=slots, passes=of_output),
        )  # fmt: skip
        facts = dataclasses.replace(facts_of(MAX78000, config), is_start=bool(first))
        start(facts.memory, 0, 0, fifo_quad=quad)
        found = allowed(kernel_rules.last_kernel, facts)["MCNT", "last"]
        whole = slots * of_output
        counts = [whole * passes]
        if of_output > 1:
            counts = [
                n * passes for n in range(whole - 4 * of_output + 1, whole + 3 * of_output + 1)
            ]
        if quad and first:
            counts = [-(-n // 4) for n in counts]
        assert sorted(found) == sorted(16 + 8 * (n - 1) for n in counts)
        assert found == sorted(found, reverse=True)


@EACH_CHIP
def test_kernels_of_bypass_and_pass_through_layers(chip: Chip) -> None:
    name = "MCNT" if chip is MAX78000 else "MCNT1"
    for slots, passes in product((1, 3, 4), (1, 2, 3)):
        kernels = Kernels((1, 1), 8, 8, 8, 1, True, False)
        output = dataclasses.replace(OUTPUT, slots=slots, passes=passes)
        config = dataclasses.replace(LAYER, kernels=kernels, output=output)
        found = allowed(kernel_rules.last_kernel, facts_of(chip, config))
        assert found == {(name, "last"): [8 * n for n in range(slots * passes, 0, -1)]}
        assert allowed(kernel_rules.channels, facts_of(chip, config)) == {}
        config = dataclasses.replace(config, kind=LayerKind.PASSTHROUGH)
        last = allowed(kernel_rules.last_kernel, facts_of(chip, config))
        first = allowed(kernel_rules.first_kernel, facts_of(chip, config))
        steps = 8 * (passes - 1)
        assert first.pop(("ONED", "kernel_remainder")) == [0]
        if chip is MAX78000:
            assert last == {("MCNT", "last"): [steps, 0]} and first == {("MCNT", "first"): [0]}
        else:
            assert last == {("MCNT1", "last"): [0]} and first == {("MCNT2", "first"): [steps]}


def words_of(config: LayerConfig, *, read: bool) -> int:
    rows, columns = config.input.size if read else config.output_size
    return rows * columns * (config.input if read else config.output).passes


def misfits(layers: list[LayerConfig], at: int, config: LayerConfig) -> int:
    """Return how many neighbours of a layer see an image of another size."""
    writers = [x for x in layers[:at] if x.start.word == config.input.read_word]
    readers = [x for x in layers[at + 1 :] if x.input.read_word == config.start.word]
    pairs = [(x, config) for x in writers[-1:]] + [(config, x) for x in readers[:1]]
    return sum(words_of(a, read=False) != words_of(b, read=True) for a, b in pairs)


@EACH_CHIP
def test_another_value_fits_better_if_more_images_are_whole(chip: Chip) -> None:
    """Images of the layers before and behind, next to each other in the same words."""
    draw, seen = random.Random(chip.name), [0, 0]
    for _ in range(14):
        memory, layers = Memory(chip), []
        for number in range(4):
            made = drawn(draw, chip, number, most=2)
            c = made.config
            same = tuple(
                dataclasses.replace(p, word=draw.choice([7, 30])) for p in c.output.pointers
            )
            size = draw.choice([(1, 2), (2, 2), (2, 4)])
            c = dataclasses.replace(
                c, conv1d=False, transposed=False,
                input=dataclasses.replace(
                    INPUT, size=size, pooled=size, passes=draw.choice([1, 2]),
                    read_word=draw.choice([7, 30]),
                ),
                kernels=dataclasses.replace(c.kernels, shape=(1, 1)),
                output=dataclasses.replace(c.output, pointers=same),
            )  # fmt: skip
            pack(memory, dataclasses.replace(made, config=c))
            layers.append(decode_layer(memory, number))
        start(memory, 0, 3)
        for at, place in product(range(4), (("CCNT", "last"), ("RPTR_BASE", "word"))):
            own = layers[at]
            facts = LayerFacts(memory, own, tuple(layers[:at]), tuple(layers[at + 1 :]))
            value = draw.randrange(4) if place[1] == "last" else 37 - own.input.read_word
            other = copy_with(memory, own, place, value)
            kept = dict(memory.registers)
            better = misfits(layers, at, other) < misfits(layers, at, own)
            assert fits_better(facts, WrongField(0, *place, value, 0)) == better
            assert memory.registers == kept
            seen[better] += 1
    assert min(seen) > 5


def copy_with(
    memory: Memory, config: LayerConfig, place: tuple[str, str], value: int
) -> LayerConfig:
    """Return the layer with another value of a field."""
    kept = memory.registers
    memory.registers = dict(kept)
    set_field(memory, config.layer, config.base_group, place, value)
    try:
        return decode_layer(memory, config.layer)
    finally:
        memory.registers = kept
