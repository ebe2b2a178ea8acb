"""Line buffers and streams: the tables of docs/hardware, value by value."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from itertools import product

import pytest

from ai8xtools.emulator.checks.registers import stream_rules, stream_values
from ai8xtools.emulator.checks.registers.facts import LayerFacts
from ai8xtools.emulator.decode.config import LayerConfig, LayerKind
from ai8xtools.emulator.decode.fifo import surplus_words
from ai8xtools.emulator.state.memory import Memory
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.packing import Made, drawn, kinds_of, line_words, set_field
from tests.emulator.test_arithmetic import INPUT, LAYER

Table = dict[tuple[str, str], tuple[int, ...]]


def control(memory: Memory, **modes: int) -> None:
    address = DEFAULT_APB_BASE + memory.chip.control_address(0, "CTL")
    memory.registers[address] = memory.chip.control_registers["CTL"].pack(**modes)


def up(value: int, unit: int) -> int:
    return next(n for n in range(value, value + unit) if n % unit == 0)


def by_window(config: LayerConfig, before: LayerConfig | None, given: int | None) -> list[int]:
    """Return start, both deltas and FMAX of MAX78000."""
    i, (high, wide) = config.input, config.input.pool
    columns, step = i.size[1], i.stride
    along = step if columns > 1 else 1
    if before is None:
        start = ((high - 1) * columns + wide) * high
        deltas = [(along - 1) * i.operands, (high - 1) * columns * i.operands]
    else:
        line = before.input.pooled[1] + 2 * before.input.pad[1]
        kernel = (1, 1) if before.kind is LayerKind.PASSTHROUGH else before.kernels.shape
        start = line * (kernel[0] - 1 + high - 1) + kernel[1] - 1 + wide + 2
        deltas = [along * i.operands, (step - 1) * line + wide * i.operands]
    ring = start if given is None else given
    ring += (high - 1) * columns + max(along, wide, 2 if config.transposed else 1)
    return [start, *deltas, up(12 if i.chw else ring, i.passes)]


def by_step(
    config: LayerConfig, before: LayerConfig | None, given: int | None, *, ahead: bool, last: bool
) -> list[int]:
    """Return start, both deltas and FMAX of MAX78002."""
    i, (high, wide) = config.input, config.input.pool
    columns, step, pad = i.size[1], i.stride, i.pad[1]
    along = step if columns > 1 else 1
    row_step = max(high * i.pool_dilation[0], step)
    column_step = max(wide * i.pool_dilation[1], along)
    padded = columns + 2 * pad
    rows_ahead = (row_step * padded + pad + 2 * column_step) * i.operands + (along if ahead else 0)
    if before is None:
        n = columns // along
        n -= n * along + wide - 1 > columns
        skip = max(0, columns - n * along)
        plain = step == 1 and high == 1
        s = column_step if plain else rows_ahead
        delta1 = along * i.operands - plain
        unit = 4 if i.chw else 1
        start, delta1 = up(s, unit) // unit, up(delta1, unit) // unit
        delta2 = delta1 + skip if step == 1 else (step - 1) * columns + skip + wide - 1
        if given is not None and given != start:
            s = given * unit
        ring = s + column_step + (along - 1) * padded
        return [start, delta1, up(delta2, unit) // unit, ring * (4 * along if i.chw else 1)]
    n = columns // column_step
    n -= n * along + wide > columns
    adjust = 0 if column_step == 1 else columns - n * column_step
    start = (pad or step) * padded + rows_ahead + (adjust * along if last else 0)
    delta1 = along * i.operands
    delta2 = adjust + (delta1 if step == 1 else (step - 1) * columns)
    ring = start if given is None else given
    ring += (i.passes - 1) * (row_step * columns + pad + column_step) + column_step
    return [start, delta1, delta2, up(ring, i.passes)]


def streaming(draw: random.Random, chip: Chip, number: int) -> Made:
    kind = draw.choice(kinds_of(chip))
    made = drawn(draw, chip, number, kind=kind, single=number == 0, most=2)
    i = made.config.input
    if draw.random() < 0.2:
        i = dataclasses.replace(i, size=(i.size[0], 1), pooled=(i.pooled[0], 1))
    config = dataclasses.replace(made.config, input=i, stream_start=1, ring_words=1)
    return dataclasses.replace(made, config=config)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_values_of_streams_are_those_of_the_tables(chip: Chip) -> None:
    draw, seen = random.Random(chip.name), Counter[object]()
    for number in range(160):
        layers = [streaming(draw, chip, n).config for n in range(3)]
        at = number % 3
        config, ahead = layers[at], bool(number % 2) and chip is MAX78002
        memory = Memory(chip)
        control(memory, fifo=1, streaming=1)
        if chip is MAX78002:
            set_field(memory, at, config.base_group, ("LCTL", "read_ahead"), int(ahead))
        before = layers[at - 1] if at else None

        def values(
            given: int | None,
            config: LayerConfig = config,
            before: LayerConfig | None = before,
            ahead: bool = ahead,
            at: int = at,
        ) -> list[int]:
            if chip is MAX78000:
                return by_window(config, before, given)
            return by_step(config, before, given, ahead=ahead, last=at == 2)

        start, delta1, delta2, ring = values(None)
        for more, less in product((0, 5, -1), (0, 1)):
            found = start + more
            if found < 1:
                continue
            wanted = values(found)[3]
            config = dataclasses.replace(config, stream_start=found, ring_words=wanted - less)
            set_field(memory, at, config.base_group, ("STREAM1", "start"), found)
            facts = LayerFacts(
                memory, config, tuple(layers[:at]), tuple(layers[at + 1 :]), is_start=at == 0
            )
            meant = found >= start and less == 0
            seen[meant] += 1
            least = wanted if meant else ring
            words = chip.instance_bytes // 4 - config.input.read_word
            allowed = {(e.register, e.field): e.allowed for e in stream_values.values(facts)}
            assert allowed == {
                ("STREAM1", "start"): range(start, 65536 if meant else start + 1),
                ("STREAM2", "delta1"): range(delta1, 65536),
                ("STREAM2", "delta2"): range(delta2, 65536),
                ("FMAX", "words"): range(least, max(words, least) + 1),
            }
            pipeline = at == 0 and delta2 > 0
            exact = {
                (e.register, e.field): list(e.allowed) for e in stream_values.exact_values(facts)
            }
            assert exact == {
                ("STREAM1", "start"): [start],
                ("STREAM2", "delta1"): [delta1],
                ("STREAM2", "delta2"): [delta2, delta2 + 1] if pipeline else [delta2],
                ("FMAX", "words"): [least],
            }
        control(memory, streaming=1)
        assert not [*stream_values.values(facts), *stream_values.frame_sizes(facts)]
        control(memory, fifo=1, streaming=1)
        beyond = dataclasses.replace(config, layer=chip.max_streaming_layers)
        assert not list(stream_values.values(dataclasses.replace(facts, config=beyond)))
    assert min(seen.values()) > 30


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_fifo_delivers_the_words_of_the_image(chip: Chip) -> None:
    """A layer that does not stream starts with the whole image."""
    for rows, columns, stride, high, chw in product((1, 5), (1, 3, 4), (1, 3), (1, 2), (0, 1)):
        inputs = dataclasses.replace(
            INPUT, size=(rows, columns), stride=stride, pool=(high, 1), chw=bool(chw)
        )
        memory = Memory(chip)
        control(memory, fifo=1)
        facts = LayerFacts(memory, dataclasses.replace(LAYER, input=inputs))
        more = stride if chip is MAX78002 else 1
        sizes = [len(range(0, n * columns, 4 if chw else 1)) for n in range(rows, rows + more)]
        frames = stream_values.frame_sizes(facts)
        assert list(frames) == list(range(sizes[0], sizes[-1] + 1))
        wanted = sizes[0] * (high if chip is MAX78000 else 1)
        (start,) = stream_values.values(facts)
        assert (start.register, start.field) == ("STREAM1", "start")
        assert start.allowed == range(wanted, 65536)
        (exact,) = stream_values.exact_values(facts)
        assert list(exact.allowed) == list(range(wanted, wanted + len(frames)))
        later = dataclasses.replace(facts, is_start=False)
        assert not [*stream_values.values(later), *stream_values.frame_sizes(later)]


def test_a_first_layer_streams_if_it_has_a_ring_or_the_next_layer_streams() -> None:
    for ring, next_start, last_start, mode in product((0, 9), (0, 4), (0, 4), (0, 1)):
        memory = Memory(MAX78000)
        control(memory, fifo=1, streaming=mode)
        following = dataclasses.replace(LAYER, layer=1, stream_start=next_start)
        config = dataclasses.replace(LAYER, ring_words=ring)
        last = dataclasses.replace(LAYER, layer=2, stream_start=last_start)
        facts = LayerFacts(memory, config, (), (following, last))
        names = {e.field for e in stream_values.values(facts)}
        streams = ring or (next_start and mode)
        assert names == ({"start", "delta1", "delta2", "words"} if streams else {"start"})
        for before, start in product(((), (LAYER,)), (0, 4)):
            later = dataclasses.replace(config, layer=1, stream_start=start)
            facts = LayerFacts(memory, later, before, (), is_start=False)
            assert bool([*stream_values.values(facts)]) == bool(ring and start and before)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_line_buffers_follow_each_other(chip: Chip) -> None:
    draw = random.Random(chip.name)
    for number in range(120):
        layers = [drawn(draw, chip, n, most=2).config for n in range(3)]
        at, streams = number % 3, draw.random() < 0.5
        config = dataclasses.replace(layers[at], stream_start=int(streams))
        if draw.random() < 0.3:
            passes = draw.choice([1, 16, 17, 18, 256])
            kernels = dataclasses.replace(config.kernels, shape=(1, 1))
            config = dataclasses.replace(
                config, kernels=kernels, input=dataclasses.replace(config.input, passes=passes)
            )
        memory = Memory(chip)
        flattened = draw.random() < 0.5
        set_field(memory, at, config.base_group, ("POST", "flatten"), int(flattened))
        order = [*layers[:at]]
        order += [dataclasses.replace(LAYER, layer=9)] if draw.random() < 0.5 else []
        draw.shuffle(order)  # executed in another order: the numbers count
        facts = LayerFacts(memory, config, tuple(order), (), is_start=at == 0)
        first = 0
        if streams and at:
            first = sum(line_words(layer) * layer.input.passes for layer in layers[:at])
        wanted = [first, first + line_words(config) - 1]
        plain = config.kernels.shape == (1, 1) and not config.transposed
        if (config.conv1d or plain) and config.kind is not LayerKind.PASSTHROUGH:
            passes = config.input.passes
            if not (streams and at):
                wanted = [passes - 1, 2 * passes - 1] if flattened and passes > 16 else [0, 0]
        found = {(e.register, e.field): list(e.allowed) for e in stream_rules.line_buffer(facts)}
        assert found == {("TPTR", "first"): [wanted[0]], ("TPTR", "last"): [wanted[1]]}


def zeros_of(chip: Chip, facts: LayerFacts) -> Table:
    """Return what the registers of streams are, from the rules of docs/hardware/streaming.md."""
    config, memory = facts.config, facts.memory
    modes = memory.control_register("CTL")
    known = DEFAULT_APB_BASE + chip.control_address(0, "CTL") in memory.registers
    stream2 = ["passes_before", "delta1", "delta2"]
    nothing = {("STREAM1", "start"): (0,), ("STREAM1", "fifo_go"): (0,)}
    result: Table = {}
    if config.layer > 7:
        return result
    if facts.is_start:
        if known and not modes["fifo"]:
            result |= nothing | {("FMAX", "words"): (0,)}
        if not config.ring_words and not modes["streaming"]:
            return result | {("STREAM2", field): (0,) for field in stream2}
        return result | {("STREAM2", "passes_before"): (0,)}
    if not config.ring_words or (known and not modes["streaming"]):
        result |= nothing
    if not config.stream_start:
        return result | {("STREAM2", f): (0,) for f in stream2} | {("FMAX", "words"): (0,)}
    passes = 0
    for layer in facts.before:
        if layer.layer < config.layer:
            count = layer.input.passes
            in_fours = memory.register(layer.layer, "POST", layer.base_group)["tcalc"]
            passes += up(count, 4) if in_fours else count
    return result | {("STREAM1", "fifo_go"): (0,), ("STREAM2", "passes_before"): (passes,)}


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_registers_of_streams_are_zero_in_layers_that_do_not_stream(chip: Chip) -> None:
    draw = random.Random(chip.name)
    domain = product((0, 1, 7, 8), (0, 4), (0, 9), (None, (0, 0), (1, 0), (1, 1), (0, 1)), (0, 1))
    for layer, start, ring, modes, is_start in domain:
        memory = Memory(chip)
        if modes is not None:
            control(memory, fifo=modes[0], streaming=modes[1])
        earlier = []
        for number in draw.sample([0, 1, 2, 6, 9], 3):
            group, passes = draw.randrange(2), draw.randint(1, 9)
            inputs = dataclasses.replace(INPUT, passes=passes)
            earlier.append(dataclasses.replace(LAYER, layer=number, base_group=group, input=inputs))
            set_field(memory, number, group, ("POST", "tcalc"), draw.randrange(2))
        config = dataclasses.replace(LAYER, layer=layer, stream_start=start, ring_words=ring)
        facts = LayerFacts(memory, config, tuple(earlier), is_start=bool(is_start))
        found = {(e.register, e.field): tuple(e.allowed) for e in stream_rules.stream(facts)}
        assert found == zeros_of(chip, facts)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_words_behind_the_image_are_left_over(chip: Chip) -> None:
    """Where registers do not tell the rows below the last window, words of these are not."""
    memory = Memory(chip)
    number = {group: address for address, group in memory.addresses.fifos.items()}
    for rows, columns, stride, chw in product((1, 3), (1, 2, 5), (1, 2, 3), (0, 1)):
        inputs = dataclasses.replace(INPUT, size=(rows, columns), stride=stride, chw=bool(chw))
        config = dataclasses.replace(LAYER, enabled=(1, 0, 1, 0), input=inputs)
        words = [len(range(0, n * columns, 4 if chw else 1)) for n in range(rows, rows + stride)]
        most = words[-1] if chip is MAX78002 else words[0]
        for more, other in product(range(-1, 14), (0, 20)):
            memory.pushes = {
                number[2]: [0] * (words[0] + more),
                number[0]: [0] * (words[0] + other),
            }
            wanted = {0: other, 2: more}
            surplus = {g: n for g, n in wanted.items() if words[0] + n > most}
            assert surplus_words(memory, config) == (surplus, words[0])
