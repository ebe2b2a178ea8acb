"""From layer registers to what a layer is: the inverse of encoding.

Source: docs/hardware/registers.md, "Layer registers, field by field".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ai8xtools.emulator.decode.config import (
    WIDE_WORDS,
    ActivationFunction,
    ElementwiseOperation,
    Input,
    Kernels,
    LayerConfig,
    LayerKind,
    Output,
    Pair,
    WritePointer,
)
from ai8xtools.emulator.state.memory import INSTANCES, Memory
from device import Chip
from device.chip import FLATTEN_LONG, GROUPS

Fields = Callable[[str], dict[str, int]]
"""Gives the fields of a register of the layer by the name of the register."""

_WEIGHT_BITS = (8, 1, 2, 4)
_COLUMN_UNITS = 8  # kernel addresses count eighths of an 8-bit kernel


def decode_layer(memory: Memory, layer: int) -> LayerConfig:
    """Decode the registers of a hardware layer.

    They are those of its base group, except for what groups have of their own: processors, write
    pointers and biases. Copies in other groups that the layer uses are compared by
    `emulator.checks.registers`.
    """
    enable = [memory.register(layer, "ENA", group) for group in range(GROUPS)]
    base = _base_group(memory, layer, [bool(word["processors"]) for word in enable])
    read = partial(memory.register, layer, group=base)
    post = read("POST")
    kind = _kind(post, read("LCTL"))
    broadcast = (
        kind.has_kernels
        and not kind.sums_channels
        and bool(read("LCTL").get("depthwise_broadcast"))
        and not read("WPTR_TOFFS")["words"]
    )
    streams = layer < memory.chip.max_streaming_layers
    return LayerConfig(
        layer=layer,
        kind=kind,
        base_group=base,
        enabled=tuple(word["processors"] for word in enable),
        with_kernels=tuple(word["kernels"] for word in enable),
        broadcast=broadcast,
        transposed=bool(post["transposed"]),
        conv1d=bool(read("ONED")["conv1d"]),
        input=_input(read, memory.chip),
        kernels=_kernels(read, memory.chip),
        output=_output(
            read,
            kind,
            _bias_offsets(memory, layer, 4 if post["calcx4"] or broadcast else 1),
            tuple(_pointer(memory, layer, group) for group in range(GROUPS)),
        ),
        stream_start=read("STREAM1")["start"] if streams else 0,
        ring_words=read("FMAX")["words"] if streams else 0,
        next_layer=_next_layer(memory, layer, base),
    )


def _base_group(memory: Memory, layer: int, taking_part: list[bool]) -> int:
    """Return the group whose registers describe the layer.

    Sums of a convolution are made in group 0, also where it has no processor of the layer; all
    else happens in the groups that have processors, of which the first is taken.
    """
    if taking_part[0] or not any(taking_part):
        return 0
    first = taking_part.index(True)
    read = partial(memory.register, layer, group=first)
    return 0 if _kind(read("POST"), read("LCTL")).sums_channels else first


def _kind(post: dict[str, int], lctl: dict[str, int]) -> LayerKind:
    if post["depthwise"]:
        return LayerKind.DEPTHWISE
    if post["time_slots"] and not lctl.get("bypass"):
        return LayerKind.PASSTHROUGH
    return LayerKind.CONVOLUTION


def _passes(read: Fields) -> int:
    post = read("POST")
    high = post["flatten_high"] if post["flatten"] else 0
    return high * FLATTEN_LONG + read("LCTL2")["passes"] + 1


def _input(read: Fields, chip: Chip) -> Input:
    oned, lctl = read("ONED"), read("LCTL")
    transposed = bool(read("POST")["transposed"])
    windows = read("PRCNT"), read("PCCNT")
    dilation = windows[0].get("dilation", 0) + 1, windows[1].get("dilation", 0) + 1
    pool = windows[0]["last"] // dilation[0] + 1, windows[1]["last"] // dilation[1] + 1
    stride_register = read("STRIDE")
    stride = 1 if transposed else stride_register["stride"] + 1
    operands = oned["operands"] + 1 if oned["elementwise"] else 1
    passes = _passes(read)
    decode_size = _size_by_steps if chip.counts_by_step else _size_by_pixels
    size, pooled, pad = decode_size(read, stride, pool, dilation)
    if oned["conv1d"]:
        size, pooled, pad = (size[0], 1), (pooled[0], 1), (pad[0], 0)
    if transposed:  # the registers count the stretched image, which is not what is pooled
        size = size[0] // 2, size[1] // 2
        pooled = (
            size[0] - (pool[0] - 1) * dilation[0],
            size[1] - (pool[1] - 1) * dilation[1],
        )
    # Flattened layers keep the distance of their channels' passes: their gap is none
    gap = stride_register.get("words", 0) // (stride * operands * passes) - 1
    return Input(
        size=size,
        pooled=pooled,
        pad=pad,
        pooling=bool(lctl["pool"]),
        max_pool=bool(lctl["max_pool"]),
        pool=pool,
        pool_dilation=dilation,
        stride=stride,
        operands=operands,
        operation=ElementwiseOperation(oned["operation"]),
        pool_first=bool(oned["pool_first"]),
        passes=passes,
        chw=bool(lctl["chw"]),
        read_word=read("RPTR_BASE")["word"],
        read_gap=max(gap, 0),
    )


def _size_by_pixels(
    read: Fields, stride: int, pool: Pair, _dilation: Pair
) -> tuple[Pair, Pair, Pair]:
    """Size, pooled size and pad: the registers count rows and columns with padding."""
    counts = read("RCNT"), read("CCNT")
    pad = counts[0]["pad"], counts[1]["pad"]
    size = counts[0]["last"] + 1 - 2 * pad[0], counts[1]["last"] + 1 - 2 * pad[1]
    pooled = (size[0] + stride - pool[0]) // stride, (size[1] + stride - pool[1]) // stride
    return size, pooled, pad


def _size_by_steps(
    read: Fields, stride: int, pool: Pair, dilation: Pair
) -> tuple[Pair, Pair, Pair]:
    """Size, pooled size and pad: the registers count up to the last window's first pixel.

    Rows below the last window are not in the registers, nor are they read.
    """
    counts = read("RCNT"), read("CCNT")
    pad = (
        counts[0]["pad"] + 1 if counts[0]["padded"] else 0,
        counts[1]["pad"] + 1 if counts[1]["padded"] else 0,
    )
    pooled = counts[0]["last"] // stride + 1, counts[1]["last"] // stride + 1
    rows = (pooled[0] - 1) * stride + (pool[0] - 1) * dilation[0] + 1
    return (rows, counts[1]["last"] + counts[1]["skip"]), pooled, pad


def _kernels(read: Fields, chip: Chip) -> Kernels:
    oned, lctl = read("ONED"), read("LCTL")
    post = read("POST")
    shape = (3, 3)
    if oned["conv1d"]:
        shape = (oned["kernel_length"], 1)
    elif "kernel_rows" in lctl:
        shape = (lctl["kernel_rows"] + 1, lctl["kernel_columns"] + 1)
    elif oned["kernel_length"] == 1:
        shape = (1, 1)
    if "MCNT" in chip.layer_registers:
        mcnt = read("MCNT")
        first, last = mcnt["first"], mcnt["last"]
    else:
        first = read("MCNT2")["first"]
        last = read("MCNT1")["last"]
    bypass = bool(lctl.get("bypass"))
    bits = _WEIGHT_BITS[post["weight_size"]]
    unit = _COLUMN_UNITS if bypass else bits
    return Kernels(
        shape=shape,
        bits=bits,
        first=first,
        start=first // _COLUMN_UNITS * shape[0] * shape[1] + oned["kernel_remainder"],
        count=(last - first) // unit + 1,
        bypass=bypass,
        four_at_once=bool(post["calcx4"]),
    )


def _output(
    read: Fields,
    kind: LayerKind,
    bias_offsets: tuple[int | None, ...],
    pointers: tuple[WritePointer, ...],
) -> Output:
    lctl, lctl2, post = read("LCTL"), read("LCTL2"), read("POST")
    wide = bool(lctl["wide"])
    passes, gap = 1, lctl2["write_step"]
    channel_step = read("WPTR_CHOFFS")["words"]
    if not kind.has_kernels:
        passes = _passes(read)
    elif channel_step:
        gap = channel_step // (WIDE_WORDS if wide else 1) - 1
        passes = (lctl2["write_step"] + 1) // max(gap + 1, 1)
    unit = _COLUMN_UNITS if lctl.get("bypass") else _WEIGHT_BITS[post["weight_size"]]
    return Output(
        slots=lctl2["last_output"] // unit + 1,
        passes=passes,
        gap=gap,
        wide=wide,
        shift=-post["shift"] if post["shift_right"] else post["shift"],
        activation=_activation(lctl, post),
        bias_offsets=bias_offsets,
        pointers=pointers,
    )


def _bias_offsets(memory: Memory, layer: int, unit: int) -> tuple[int | None, ...]:
    posts = [memory.register(layer, "POST", group) for group in range(GROUPS)]
    return tuple(post["bias_offset"] * unit if post["bias"] else None for post in posts)


def _activation(lctl: dict[str, int], post: dict[str, int]) -> ActivationFunction:
    if lctl["relu"]:
        return ActivationFunction.RELU
    return ActivationFunction.ABS if post["absolute"] else ActivationFunction.NONE


def _pointer(memory: Memory, layer: int, group: int) -> WritePointer:
    pointer = memory.register(layer, "WPTR_BASE", group)["pointer"]
    instance, word = divmod(pointer, memory.chip.write_pointer_words)
    return WritePointer(instance % INSTANCES, word)


def _next_layer(memory: Memory, layer: int, group: int) -> int | None:
    """Source: docs/hardware/execution.md, "Order of layers"."""
    if layer == memory.control_register("LCNT_MAX")["last"]:
        return None
    if memory.chip.has_next_layer:
        following = memory.register(layer, "NXTLYR", group)
        if following["stop"]:
            return None
        if following["jump"]:
            return following["layer"]
    return layer + 1
