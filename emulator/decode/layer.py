"""From layer registers to what a layer is: the inverse of encoding.

Source: docs/hardware/registers.md, "Layer registers, field by field".
"""

from __future__ import annotations

from device.chip import FLATTEN_LONG, GROUPS
from emulator.decode.config import (
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
from emulator.state.memory import INSTANCES, Memory

_WEIGHT_BITS = (8, 1, 2, 4)
_COLUMN_UNITS = 8  # kernel addresses count eighths of an 8-bit kernel


def decode_layer(memory: Memory, layer: int) -> LayerConfig:
    """Decode the registers of a hardware layer.

    They are read from group 0, except those that may differ from group to group.
    """
    enable = [memory.register(layer, "ENA", group) for group in range(GROUPS)]
    post = memory.register(layer, "POST")
    lctl = memory.register(layer, "LCTL")
    kind = _kind(post, lctl)
    broadcast = (
        kind is LayerKind.DEPTHWISE
        and bool(lctl.get("depthwise_broadcast"))
        and not memory.register(layer, "WPTR_TOFFS")["words"]
    )
    streams = layer < memory.chip.max_streaming_layers
    conv1d = bool(memory.register(layer, "ONED")["conv1d"])
    return LayerConfig(
        layer=layer,
        kind=kind,
        enabled=tuple(word["processors"] for word in enable),
        with_kernels=tuple(word["kernels"] for word in enable),
        broadcast=broadcast,
        transposed=bool(post["transposed"]),
        conv1d=conv1d,
        input=_input(memory, layer),
        kernels=_kernels(memory, layer),
        output=_output(memory, layer, kind, 4 if post["calcx4"] or broadcast else 1),
        stream_start=memory.register(layer, "STREAM1")["start"] if streams else 0,
        ring_words=memory.register(layer, "FMAX")["words"] if streams else 0,
        next_layer=_next_layer(memory, layer),
    )


def _kind(post: dict[str, int], lctl: dict[str, int]) -> LayerKind:
    if post["depthwise"]:
        return LayerKind.DEPTHWISE
    if post["time_slots"] and not lctl.get("bypass"):
        return LayerKind.PASSTHROUGH
    return LayerKind.CONVOLUTION


def _passes(memory: Memory, layer: int) -> int:
    post = memory.register(layer, "POST")
    high = post["flatten_high"] if post["flatten"] else 0
    return high * FLATTEN_LONG + memory.register(layer, "LCTL2")["passes"] + 1


def _input(memory: Memory, layer: int) -> Input:
    oned, lctl = memory.register(layer, "ONED"), memory.register(layer, "LCTL")
    transposed = bool(memory.register(layer, "POST")["transposed"])
    windows = memory.register(layer, "PRCNT"), memory.register(layer, "PCCNT")
    dilation = windows[0].get("dilation", 0) + 1, windows[1].get("dilation", 0) + 1
    pool = windows[0]["last"] // dilation[0] + 1, windows[1]["last"] // dilation[1] + 1
    stride_register = memory.register(layer, "STRIDE")
    stride = 1 if transposed else stride_register["stride"] + 1
    operands = oned["operands"] + 1 if oned["elementwise"] else 1
    passes = _passes(memory, layer)
    decode_size = _size_by_steps if memory.chip.counts_by_step else _size_by_pixels
    size, pooled, pad = decode_size(memory, layer, stride, pool, dilation)
    if oned["conv1d"]:
        size, pooled, pad = (size[0], 1), (pooled[0], 1), (pad[0], 0)
    if transposed:  # the registers count the stretched image, which is not what is pooled
        size = size[0] // 2, size[1] // 2
        reach = [(width - 1) * step for width, step in zip(pool, dilation, strict=True)]
        pooled = size[0] - reach[0], size[1] - reach[1]
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
        read_word=memory.register(layer, "RPTR_BASE")["word"],
        read_gap=max(gap, 0),
    )


def _size_by_pixels(
    memory: Memory, layer: int, stride: int, pool: Pair, _dilation: Pair
) -> tuple[Pair, Pair, Pair]:
    """Size, pooled size and pad: the registers count rows and columns with padding."""
    counts = memory.register(layer, "RCNT"), memory.register(layer, "CCNT")
    pad = counts[0]["pad"], counts[1]["pad"]
    size = counts[0]["last"] + 1 - 2 * pad[0], counts[1]["last"] + 1 - 2 * pad[1]
    pooled = (size[0] + stride - pool[0]) // stride, (size[1] + stride - pool[1]) // stride
    return size, pooled, pad


def _size_by_steps(
    memory: Memory, layer: int, stride: int, pool: Pair, dilation: Pair
) -> tuple[Pair, Pair, Pair]:
    """Size, pooled size and pad: the registers count up to the last window's first pixel.

    Rows below the last window are not in the registers, nor are they read.
    """
    counts = memory.register(layer, "RCNT"), memory.register(layer, "CCNT")
    pad = (
        counts[0]["pad"] + 1 if counts[0]["padded"] else 0,
        counts[1]["pad"] + 1 if counts[1]["padded"] else 0,
    )
    pooled = counts[0]["last"] // stride + 1, counts[1]["last"] // stride + 1
    rows = (pooled[0] - 1) * stride + (pool[0] - 1) * dilation[0] + 1
    return (rows, counts[1]["last"] + counts[1]["skip"]), pooled, pad


def _kernels(memory: Memory, layer: int) -> Kernels:
    oned, lctl = memory.register(layer, "ONED"), memory.register(layer, "LCTL")
    post = memory.register(layer, "POST")
    shape = (3, 3)
    if oned["conv1d"]:
        shape = (oned["kernel_length"], 1)
    elif "kernel_rows" in lctl:
        shape = (lctl["kernel_rows"] + 1, lctl["kernel_columns"] + 1)
    elif oned["kernel_length"] == 1:
        shape = (1, 1)
    if "MCNT" in memory.chip.layer_registers:
        mcnt = memory.register(layer, "MCNT")
        first, last = mcnt["first"], mcnt["last"]
    else:
        first = memory.register(layer, "MCNT2")["first"]
        last = memory.register(layer, "MCNT1")["last"]
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


def _output(memory: Memory, layer: int, kind: LayerKind, bias_unit: int) -> Output:
    lctl, lctl2 = memory.register(layer, "LCTL"), memory.register(layer, "LCTL2")
    posts = [memory.register(layer, "POST", group) for group in range(GROUPS)]
    wide = bool(lctl["wide"])
    passes, gap = 1, lctl2["write_step"]
    channel_step = memory.register(layer, "WPTR_CHOFFS")["words"]
    if not kind.has_kernels:
        passes = _passes(memory, layer)
    elif channel_step:
        gap = channel_step // (WIDE_WORDS if wide else 1) - 1
        passes = (lctl2["write_step"] + 1) // max(gap + 1, 1)
    unit = _COLUMN_UNITS if lctl.get("bypass") else _WEIGHT_BITS[posts[0]["weight_size"]]
    shift = posts[0]["shift"]
    return Output(
        slots=lctl2["last_output"] // unit + 1,
        passes=passes,
        gap=gap,
        wide=wide,
        shift=-shift if posts[0]["shift_right"] else shift,
        activation=_activation(lctl, posts[0]),
        bias_offsets=tuple(p["bias_offset"] * bias_unit if p["bias"] else None for p in posts),
        pointers=tuple(_pointer(memory, layer, group) for group in range(GROUPS)),
    )


def _activation(lctl: dict[str, int], post: dict[str, int]) -> ActivationFunction:
    if lctl["relu"]:
        return ActivationFunction.RELU
    return ActivationFunction.ABS if post["absolute"] else ActivationFunction.NONE


def _pointer(memory: Memory, layer: int, group: int) -> WritePointer:
    pointer = memory.register(layer, "WPTR_BASE", group)["pointer"]
    instance, word = divmod(pointer, memory.chip.write_pointer_words)
    return WritePointer(instance % INSTANCES, word)


def _next_layer(memory: Memory, layer: int) -> int | None:
    """Source: docs/hardware/execution.md, "Order of layers"."""
    if layer == memory.control_register("LCNT_MAX")["last"]:
        return None
    if memory.chip.has_next_layer:
        following = memory.register(layer, "NXTLYR")
        if following["stop"]:
            return None
        if following["jump"]:
            return following["layer"]
    return layer + 1
