"""Layers drawn at random, and their registers as docs/hardware/registers.md gives them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    Kernels,
    LayerConfig,
    LayerKind,
    Output,
    WritePointer,
)
from ai8xtools.emulator.state.memory import Memory
from device import MAX78000, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.test_arithmetic import INPUT, LAYER

Fields = dict[str, dict[str, int]]


@dataclasses.dataclass(frozen=True)
class Made:
    """A layer, and what its configuration does not tell.

    `column` is the first of its kernels; `rest` are columns of the image behind the last window.
    """

    config: LayerConfig
    column: int = 0
    read_ahead: bool = False
    tcalc: bool = False
    line_first: int = 0
    is_start: bool = False


def taps_of(config: LayerConfig) -> int:
    return config.kernels.shape[0] * config.kernels.shape[1]


def line_words(config: LayerConfig) -> int:
    """Return the words of a line buffer."""
    if config.kind is LayerKind.PASSTHROUGH:
        return 1
    pixels = config.input.pooled[1] * (2 if config.transposed else 1)
    return max(0, pixels + 2 * config.input.pad[1] - config.kernels.shape[1]) + 1


def used_units(config: LayerConfig) -> list[int]:
    """Return how many processors each group with some has."""
    return [mask.bit_count() for mask in config.enabled if mask]


def time_slots(config: LayerConfig) -> int:
    counts, words = used_units(config), 4 if config.output.wide else 1
    if config.kind is LayerKind.CONVOLUTION:
        return 0
    if config.kind is LayerKind.PASSTHROUGH:
        return max((n - 1) // 4 for n in counts)
    if config.broadcast:
        return max(min(n, 4) * words - 1 for n in counts)
    return max(n * words - 1 for n in counts)


def fields_of(chip: Chip, made: Made) -> Fields:
    """Return the fields that are the same in all groups, by register."""
    c = made.config
    i, o, k = c.input, c.output, c.kernels
    through = c.kind is LayerKind.PASSTHROUGH
    several, far = i.operands > 1, chip.write_pointer_words
    stretch = 2 if c.transposed else 1
    flat = k.shape == (1, 1) and not c.transposed and not c.conv1d and not through
    long = i.passes > 16
    unit = 8 if k.bypass else k.bits
    oned = {
        "time_slots": time_slots(c),
        "kernel_remainder": 0 if through else 9 * made.column % taps_of(c),
        "kernel_length": k.shape[0] if c.conv1d else int(flat or (through and not several)),
        "conv1d": int(c.conv1d),
        "elementwise": int(several),
        "operation": i.operation.value,
        "pool_first": int(i.pool_first),
        "elementwise_convolution": int(several and not through),
        "operands": i.operands - 1,
    }
    choffs = (4 if o.wide else 1) * (o.gap + 1) if o.passes > 1 else 0
    if through:
        slots = far if sum(used_units(c)) > 4 or (several and i.passes > 1) else far // 4
    elif c.kind is LayerKind.DEPTHWISE:
        slots = 0 if c.broadcast else far
    else:
        slots = int(flat)
    lctl = {
        "always": 1,
        "chw": int(i.chw),
        "pool": int(i.pooling),
        "max_pool": int(i.max_pool),
        "relu": int(o.activation is ActivationFunction.RELU),
        "shared_output": 1,
        "wide": int(o.wide),
    }
    last = k.first + (k.count - 1) * unit
    result: Fields = {
        "ONED": oned,
        "WPTR_TOFFS": {"words": slots},
        "WPTR_MOFFS": {"words": 0 if through else far},
        "WPTR_CHOFFS": {"words": choffs},
        "RPTR_BASE": {"word": i.read_word},
        "LCTL2": {
            "passes": (i.passes - 1) % 16,
            "write_step": o.gap if through else o.passes * (o.gap + 1) - 1,
            "last_output": 0 if through else (o.slots - 1) * unit,
        },
        "POST": {
            "shift": abs(o.shift),
            "shift_right": int(o.shift < 0),
            "flatten_high": (i.passes - 1) // 16,
            "weight_size": {8: 0, 1: 1, 2: 2, 4: 3}[k.bits],
            "time_slots": int(c.kind is not LayerKind.CONVOLUTION),
            "one_by_one": int(through and not several),
            "absolute": int(o.activation is ActivationFunction.ABS),
            "flatten": int(long),
            "transposed": int(c.transposed),
            "calcx4": int(k.four_at_once),
            "depthwise": int(c.kind is LayerKind.DEPTHWISE),
            "tcalc": int(made.tcalc),
        },
        "STRIDE": {"stride": i.stride - 1},
    }
    line = made.line_first, made.line_first + line_words(c) - 1
    if (c.conv1d or flat) and not (c.stream_start and not made.is_start):
        line = (i.passes - 1, 2 * i.passes - 1) if long else (0, 0)
    result["TPTR"] = {"first": line[0], "last": line[1]}
    reach = [(w - 1) * d for w, d in zip(i.pool, i.pool_dilation, strict=True)]
    result |= {"PRCNT": {"last": reach[0]}, "PCCNT": {"last": reach[1]}}
    size = [n * stretch for n in i.size]
    if chip.counts_by_step:
        result["PRCNT"]["dilation"] = i.pool_dilation[0] - 1
        result["PCCNT"]["dilation"] = 0 if c.conv1d else i.pool_dilation[1] - 1
        ends = [(n - 1 - r) // i.stride * i.stride for n, r in zip(size, reach, strict=True)]
        words = i.operands * i.passes * (i.read_gap + 1)
        skip = size[1] - ends[1]
        rows = (1 if c.conv1d else skip) + (i.stride - 1) * size[1]
        for name, end, pad, left in zip(
            ("RCNT", "CCNT"), ends, i.pad, (rows * words, skip), strict=True
        ):
            result[name] = {
                "last": end, "pad": max(pad - 1, 0), "padded": int(pad > 0), "skip": left,
            }  # fmt: skip
        result["STRIDE"]["words"] = i.stride * words
        if not through:
            lctl |= {"kernel_rows": k.shape[0] - 1, "kernel_columns": k.shape[1] - 1}
        ahead = 0
        if made.read_ahead:
            ahead = (i.passes - 1) // 4 if made.tcalc else i.passes - 1
        lctl |= {"read_ahead": int(made.read_ahead), "bypass": int(k.bypass)}
        lctl["shift_count"] = ahead
        if c.broadcast:
            lctl["shift_count"] |= 8
        result |= {"MCNT1": {"last": 0 if through else last}, "MCNT2": {"first": k.first}}
        if through:
            computed = time_slots(c)
        elif c.kind is LayerKind.DEPTHWISE:
            computed = (time_slots(c) + 1) * i.passes - 1
        else:
            computed = (o.slots * o.passes * i.passes - 1) // (4 if k.four_at_once else 1)
        result["OCHAN"] = {"last": o.slots - 1 if k.bypass else computed}
        jumps = c.next_layer is not None and c.next_layer != c.layer + 1
        result["NXTLYR"] = {"layer": c.next_layer or 0, "jump": 1} if jumps else {}
    else:
        for name, length, pad in zip(("RCNT", "CCNT"), size, i.pad, strict=True):
            result[name] = {"last": length + 2 * pad - 1, "pad": pad}
        result["MCNT"] = {"first": 0 if through else k.first, "last": last}
        if through:
            result["MCNT"] = {"first": 0, "last": 8 * (o.passes - 1)}
    result["LCTL"] = lctl
    return result


def pack(memory: Memory, made: Made, *, quad: bool = False) -> None:
    """Write the registers of a layer into all groups."""
    chip, c = memory.chip, made.config
    shared = fields_of(chip, made)
    unit = 4 if c.broadcast or c.kernels.four_at_once else 1
    others = sum(1 << g for g in c.used_groups if g != c.base_group)
    for group in range(4):
        own = {name: dict(values) for name, values in shared.items()}
        own["WPTR_BASE"] = {
            "pointer": c.output.pointers[group].instance * chip.write_pointer_words
            + c.output.pointers[group].word
        }
        own["ENA"] = {"processors": c.enabled[group], "kernels": c.with_kernels[group]}
        offset = c.output.bias_offsets[group]
        if offset is not None:
            own["POST"] |= {"bias": 1, "bias_offset": offset // unit}
        if c.kind is LayerKind.CONVOLUTION and group == c.base_group and not quad:
            own["LCTL"]["sources"] = others
        if c.layer < chip.max_streaming_layers:
            own["STREAM1"] = {"start": c.stream_start}
            own["FMAX"] = {"words": c.ring_words}
        for name, values in own.items():
            known = {n: v for n, v in values.items() if n in chip.layer_registers[name].by_name}
            address = DEFAULT_APB_BASE + chip.layer_address(group, c.layer, name)
            memory.registers[address] = chip.layer_registers[name].pack(**known)


def start(memory: Memory, first: int, last: int, **modes: int) -> None:
    """Write the control registers: all groups are enabled."""
    chip = memory.chip
    for group in range(4):
        for name, fields in {
            "LCNT_MAX": {"first": first, "last": last},
            "CTL": {"enable": 1, "clock_enable": 1, **modes},
        }.items():
            address = DEFAULT_APB_BASE + chip.control_address(group, name)
            memory.registers[address] = chip.control_registers[name].pack(**fields)


def set_field(memory: Memory, layer: int, group: int, place: tuple[str, str], value: int) -> None:
    """Give a field of a register another value."""
    name, field = place
    address = DEFAULT_APB_BASE + memory.chip.layer_address(group, layer, name)
    known = memory.chip.layer_registers[name].by_name[field]
    memory.registers[address] = known.set(memory.registers.get(address, 0), value)


def _masks(draw: random.Random, most: int) -> tuple[int, ...]:
    while True:
        bits = [draw.choice([0, 0, draw.getrandbits(16), 0xF, 0x30, 1]) for _ in range(4)]
        kept = []
        for mask in bits:
            units = [n for n in range(16) if mask >> n & 1][:most]
            kept.append(sum(1 << n for n in units))
        if any(kept):
            return tuple(kept)


def drawn(
    draw: random.Random,
    chip: Chip,
    number: int = 0,
    kind: LayerKind = LayerKind.CONVOLUTION,
    *,
    is_start: bool = False,
    next_layer: int | None = None,
    single: bool = False,
    most: int = 16,
) -> Made:
    """Return a layer in which everything is drawn.

    `single`: one operand and pass, for FIFOs; `most`: processors of a group.
    """
    by_step = chip.counts_by_step
    through, depthwise = kind is LayerKind.PASSTHROUGH, kind is LayerKind.DEPTHWISE
    long = kind is LayerKind.CONVOLUTION and not single and draw.random() < 0.15
    conv1d = not depthwise and not through and not long and draw.random() < 0.2
    transposed = not through and not long and not conv1d and draw.random() < 0.2
    operands = 1 if single or long else draw.choice([1, 1, 1, 2, 3])
    if long or (through and by_step):
        shape = (1, 1)
    elif through:
        shape = (1, 1) if operands == 1 else (3, 3)
    elif conv1d:
        shape = (draw.randint(1, 9), 1)
    elif by_step:
        shape = (draw.randint(1, 4), draw.randint(1, 4))
    else:
        shape = draw.choice([(1, 1), (3, 3)])
    if transposed:
        shape = (3, 3)
    pads = [0, 0] if through else [draw.randint(0, min(n - 1, 3)) for n in shape]
    pool = draw.choice([(1, 1), (1, 1), (2, 2), (2, 3), (3, 1)])
    pool = (1, 1) if long else (pool[0], 1) if conv1d else pool
    stride = 1 if transposed else draw.choice([1, 1, 2, 3])
    pooling = pool != (1, 1)
    spread = tuple(draw.randint(1, 2) if by_step and w > 1 else 1 for w in pool)
    stretch = 2 if transposed else 1
    pooled = (
        [
            max(-(-(n - 2 * p) // stretch), 1) + draw.randint(0, 3)
            for n, p in zip(shape, pads, strict=True)
        ]
        if not through
        else [draw.randint(1, 4), draw.randint(1, 4)]
    )
    if conv1d:
        pooled[1] = 1
    rest = [0 if by_step else draw.randrange(stride), draw.randrange(stride)]
    if conv1d:
        rest[1] = 0
    size = [
        (n - 1) * stride + (w - 1) * d + 1 + r
        for n, w, d, r in zip(pooled, pool, spread, rest, strict=True)
    ]
    several = operands > 1
    passes = 1 if single else draw.choice([1, 1, 2, 3])
    if long:
        passes, size, pooled, stride = draw.randint(17, 40), [1, 1], [1, 1], 1
    inputs = dataclasses.replace(
        INPUT,
        size=tuple(size), pooled=tuple(pooled), pad=tuple(pads), pooling=pooling,
        max_pool=draw.random() < 0.6, pool=pool, pool_dilation=spread, stride=stride,
        operands=operands,
        operation=draw.choice([*ElementwiseOperation]) if several else ElementwiseOperation.SUB,
        pool_first=several and pooling and draw.random() < 0.5,
        passes=passes, chw=single and draw.random() < 0.4,
        read_word=draw.randint(0, 40),
        read_gap=draw.randint(0, 2) if by_step and passes <= 16 else 0,
    )  # fmt: skip
    wide = not through and draw.random() < 0.3
    enabled = _masks(draw, min(most, 4) if wide or single else most)
    if inputs.chw:
        enabled = tuple(int(bool(mask)) for mask in enabled)
    elif single:
        enabled = tuple(mask % 16 for mask in enabled)
        enabled = enabled if any(enabled) else (3, 0, 0, 0)
    broadcast = depthwise and draw.random() < 0.4
    first_group = next(g for g in range(4) if enabled[g])
    base = 0 if kind is LayerKind.CONVOLUTION else first_group
    four = by_step and kind is LayerKind.CONVOLUTION and draw.random() < 0.2
    four = four and shape[0] * shape[1] <= 9
    bypass = by_step and kind is LayerKind.CONVOLUTION and not four and draw.random() < 0.15
    bits = 8 if through or bypass else draw.choice([1, 2, 4, 8])
    out_passes = passes if kind is not LayerKind.CONVOLUTION else draw.choice([1, 1, 2])
    slots = 1 if through else 4 * draw.randint(1, 3) if four else draw.randint(1, 9)
    if four and passes * out_passes * slots * bits % 32:
        bits = 8  # else the last column may have no part
    taps = shape[0] * shape[1]
    column = draw.randint(0, 30)
    while 9 * column % taps > (0 if four else 15):
        column -= 1
    unit = 8 if bypass else bits
    first = 8 * (9 * column // taps)
    count = passes * out_passes * slots
    if depthwise:
        count = passes * draw.randint(1, 4)
    if bypass:
        count = slots * out_passes
    if four and is_start:
        count = -(-count * unit // 4) // unit
    if through:
        first = 8 * (out_passes - 1) if by_step else 0
        last = 0 if by_step else 8 * (out_passes - 1)
        count, column = (last - first) // 8 + 1, 0
    begin = first // 8 * taps + (0 if through else 9 * column % taps)
    biases: list[int | None] = [None] * 4
    step = 4 if four or broadcast else 1
    if not through and draw.random() < 0.7:
        if depthwise:
            biases = [step * draw.randint(0, 9) if mask else None for mask in enabled]
        else:
            biases[draw.choice([0, *(g for g in range(4) if enabled[g])])] = step * draw.randint(
                0, 9
            )
    word = draw.randint(0, 60)
    same = WritePointer(draw.randrange(16), word)
    own = tuple(WritePointer(draw.randrange(16), word) for _ in range(4))
    activations = [ActivationFunction.NONE, ActivationFunction.RELU, ActivationFunction.ABS]
    output = Output(
        slots=slots, passes=out_passes, gap=draw.randint(0, 2), wide=wide,
        shift=0 if through else draw.randint(-15, 15),
        activation=ActivationFunction.NONE if through else draw.choice(activations),
        bias_offsets=tuple(biases),
        pointers=own if not (kind is LayerKind.CONVOLUTION or broadcast) else (same,) * 4,
    )  # fmt: skip
    config = dataclasses.replace(
        LAYER,
        layer=number, kind=kind, base_group=base, enabled=enabled,
        with_kernels=(0, 0, 0, 0) if through or bypass else enabled,
        broadcast=broadcast, transposed=transposed, conv1d=conv1d, input=inputs,
        kernels=Kernels(shape, bits, first, begin, count, bypass, four),
        output=output, next_layer=next_layer,
    )  # fmt: skip
    read_ahead = by_step and not broadcast and passes <= 7 and draw.random() < 0.3
    tcalc = read_ahead and draw.random() < 0.5
    return Made(config, column, read_ahead, tcalc, 0, is_start)


def kinds_of(chip: Chip) -> Sequence[LayerKind]:
    every = [*LayerKind]
    return every if chip is not MAX78000 else [k for k in every if k is not LayerKind.DEPTHWISE]
