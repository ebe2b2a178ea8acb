"""One random legal layer: what it reads, what it does, and where its output goes."""

from __future__ import annotations

import numpy as np

from device.channels import channels_per_pass, passes
from device.masks import lowest_bit
from tests.synthesis import random_memory as memory
from tests.synthesis.networks import mask
from tests.synthesis.random_growth import LARGEST_DIM, Goal, Growing, Keys, Plan
from tests.synthesis.random_memory import Held
from tests.synthesis.random_operators import put_operator, put_pooling
from tests.synthesis.random_weights import put_weights


def add_layer(growing: Growing, read: Held, *, final: bool, goal: Goal | None = None) -> Held:
    """Draw a layer that reads `read`, add it, and return its output."""
    read, reshaped = _reshape(growing, read, goal)
    kind = growing.one_of(_kinds(growing, read, goal))
    keys: Keys = {"processors": hex(read.mask), **reshaped}
    plan = Plan(read, kind, keys, read.dim)
    _name_sources(growing, plan)
    _combine(growing, plan)
    put_pooling(growing, plan, goal)
    put_operator(growing, plan, goal)
    channels = put_weights(growing, plan, goal)
    held = _write(growing, plan, channels, final, goal)
    if growing.streams:
        keys["streaming"] = True
    growing.layers.append(keys)
    growing.sources.append(read.sources)
    return held


def _reshape(growing: Growing, read: Held, goal: Goal | None) -> tuple[Held, Keys]:
    """Read the pixels as a series, or a series as an image, now and then."""
    pixels = read.dim[0] * read.dim[1]
    plain = goal is None and not growing.near_stream and growing.layers and read.gap == 0
    if not plain or not growing.chance(10):
        return read, {}
    rows = growing.one_of([pixels, *(n for n in range(1, pixels) if pixels % n == 0)])
    dim = rows, pixels // rows
    if max(dim) > 256:
        return read, {}
    changed = Held(**{**vars(read), "dim": dim})
    return changed, {"in_dim": dim[0] if dim[1] == 1 and growing.chance(50) else list(dim)}


def _kinds(growing: Growing, read: Held, goal: Goal | None) -> list[str]:
    """Return the operators that the chip has for such an input."""
    count = passes(read.channels)
    full = read.channels == count * channels_per_pass(read.channels)
    beyond = growing.older and count > 1 and count * read.operands != count + read.operands
    alone = read.operands > 1 and beyond
    series = read.dim[1] == 1 and read.operands == 1
    kinds = [] if alone else ["conv2d", "conv2d"]
    fast = growing.port == "fast" and not growing.layers
    may_pass = memory.is_packed(read.mask) and (goal is None or goal.passing) and not fast
    if may_pass and (growing.older or not growing.streams):
        kinds.append("none")
    if growing.streams:
        return kinds
    kinds += [] if alone else ["linear"]
    kinds += ["conv1d"] * 5 if series else []
    if goal is not None:
        return kinds
    if not alone and max(read.dim) <= LARGEST_DIM // 2:
        kinds.append("convtranspose2d")
    size = read.channels * read.dim[0] * read.dim[1]
    hwc = not (read.planar or read.fifo) or not growing.careful  # W375
    plain = read.operands == 1 and read.gap == 0 and hwc
    if plain and full and read.dim[0] * read.dim[1] <= 256 and size <= 4096:
        kinds.append("flatten")
    if not growing.older:
        kinds += _newer_kinds(growing, read, full)
    return kinds


def _newer_kinds(growing: Growing, read: Held, full: bool) -> list[str]:
    """Return what only MAX78002 has."""
    kinds = []
    first = lowest_bit(read.mask)
    run = read.mask >> first == mask(read.mask.bit_count())
    if read.channels > 1 and run and (first + read.mask.bit_count() <= 16 or first % 4 == 0):
        kinds += ["depthwise2d", "depthwise2d"]
        kinds += ["depthwise_t"] if max(read.dim) <= LARGEST_DIM // 2 else []
    if full and not (growing.near_stream and growing.careful):  # W378
        kinds.append("bypass")
    return kinds


def _name_sources(growing: Growing, plan: Plan) -> None:
    """State where the input comes from, unless it is what the layer before wrote."""
    read, keys = plan.read, plan.keys
    before = len(growing.layers) - 1
    if before < 0:
        keys |= {"in_offset": hex(read.offset)} if read.offset else {}
    elif read.sources != (before,) or growing.chance(10):
        names = ["input" if s < 0 else s for s in read.sources]
        keys["in_sequences"] = names[0] if len(names) == 1 else list(names)
        keys["in_offset"] = hex(read.offset)
    if read.planar:
        keys["data_format"] = "CHW"
    if read.gap:
        keys["read_gap"] = read.gap


def _combine(growing: Growing, plan: Plan) -> None:
    """Name the element-wise operation, standing alone or in front of the operator."""
    if plan.read.operands == 1:
        if plan.kind == "none":
            plan.keys["op"] = growing.one_of(["none", "Passthrough"])
        return
    combination = growing.one_of(["add", "sub", "or", "xor"])
    alone = plan.kind == "none"
    plan.keys["op" if alone and growing.chance(50) else "eltwise"] = combination
    if alone and "op" not in plan.keys:
        plan.keys["op"] = "none"
    if plan.read.operands != 2 or growing.chance(50):
        plan.keys["operands"] = plan.read.operands


def _write(growing: Growing, plan: Plan, channels: int, final: bool, goal: Goal | None) -> Held:
    """Choose processors, offset, gap and width of the output."""
    keys, index = plan.keys, len(growing.layers)
    dim = plan.out_dim
    if goal is not None:
        keys |= {
            "output_processors": hex(goal.mask),
            "out_offset": hex(goal.offset),
            "write_gap": goal.gap,
        }
        return Held((index,), channels, dim, goal.mask, goal.offset)
    output = _output_mask(growing, plan, channels, final)
    keys["output_processors"] = hex(output)
    packed = lowest_bit(output) % 4 == 0 and memory.is_packed(output)  # W376
    free = not growing.careful or (packed and not plan.lead)  # W374
    wide = final and plan.has_weights and free and growing.chance(40)
    wide = wide and not plan.depthwise and not (growing.port == "fast" and index == 0)
    if wide:
        keys["output_width"], keys["activate"] = 32, "none"
    size, count = 4 if wide else 1, passes(channels)
    words = dim[0] * dim[1] + plan.surplus
    gap = _gap(growing, plan, count, words, size, final)
    lead = 4 * plan.lead * count
    room = memory.output_bytes(words, count, size, gap)
    if growing.streams:
        room = max(room, 0x800)
    offset = growing.budget.place(growing.draw, index, room, lead)
    keys["out_offset"] = hex(offset)
    if gap:
        keys["write_gap"] = gap
    return Held((index,), channels, dim, output, offset, gap=gap)


def _gap(growing: Growing, plan: Plan, count: int, words: int, size: int, final: bool) -> int:
    """Draw a write gap; only MAX78002 can skip it when it reads, and only in a single pass."""
    readable = final or (not growing.older and count == 1 and not growing.streams)
    if not readable or plan.lead or plan.surplus or not growing.chance(15):
        return 0
    limit = 15 if growing.older else 255
    most = min(
        5, limit // (count * size) - 1, growing.budget.largest // (4 * words * size * count) - 1
    )
    return growing.one_of(range(1, most + 1)) if most >= 1 else 0


def _output_mask(growing: Growing, plan: Plan, channels: int, final: bool) -> int:
    """Draw the output processors."""
    draw, read = growing.draw, plan.read
    share = channels_per_pass(channels)
    if not plan.has_weights:
        return memory.draw_moved(draw, read.mask)
    if plan.depthwise and growing.chance(50) and lowest_bit(read.mask) % 4 == 0:
        return read.mask
    narrow = plan.keys.get("quantization", 8) != 8
    several = channels > 64 or passes(read.channels) > 1
    used = growing.weights_of[-1]
    biased = used is None or bool(np.any(growing.biases[used]))
    other = plan.depthwise or narrow or several or plan.stored_taps != 9  # W371, W377
    # the emulator cannot tell gaps that no layer reads, which have no bias
    if not biased and not (other and growing.careful) and growing.chance(15):
        return memory.draw_spaced(draw, share) or mask(share)
    aligned = plan.depthwise or plan.kind in ("flatten", "bypass") or narrow or channels > 64
    return memory.draw_run(draw, share, aligned=aligned and growing.careful)
