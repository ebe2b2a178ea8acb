"""Pooling, operator, kernel and padding of a random layer."""

from __future__ import annotations

from typing import Any

from device.channels import passes
from tests.synthesis.random_growth import Goal, Growing, Keys, Plan


def draw_pooling(growing: Growing, dim: tuple[int, int], *, single: bool = False) -> Keys:
    """Draw a window and a stride that leave something; `single`: exactly one pixel."""
    kind = growing.one_of(["max_pool", "avg_pool", "max_pool", "avg_pool", ""])
    if single:
        kind, window, stride = kind or "max_pool", list(dim), growing.one_of([1, 2, 4])
        if max(dim) > 16:
            return {}
        return {kind: window, "pool_stride": stride}
    stride = growing.one_of([1, 2, 2, 3, 4])
    if not kind:
        return {"pool_stride": stride}
    limit = growing.one_of([2, 3, 5, 16])
    window = [growing.one_of(range(1, min(limit, n) + 1)) for n in dim]
    dilation: Keys = {}
    if not growing.older and growing.chance(25):
        most = [
            min(15, n - 1) // (w - 1) if w > 1 else 16 for w, n in zip(window, dim, strict=True)
        ]
        dilation = {"pool_dilation": [growing.one_of(range(1, m + 1)) for m in most]}
    shown = window[0] if window[0] == window[1] else window
    return {kind: shown, "pool_stride": stride, **dilation}


def pooled_dim(dim: tuple[int, int], keys: Keys) -> tuple[int, int]:
    """Return the size that pooling leaves.

    Source: docs/hardware/arithmetic.md, "Pooling".
    """
    window = pair(keys.get("max_pool", keys.get("avg_pool", 1)))
    stride, dilation = pair(keys.get("pool_stride", 1)), pair(keys.get("pool_dilation", 1))
    rows, columns = (
        (n - (w - 1) * d - 1) // s + 1
        for n, w, s, d in zip(dim, window, stride, dilation, strict=True)
    )
    return rows, 1 if dim[1] == 1 else columns


def pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def put_pooling(growing: Growing, plan: Plan, goal: Goal | None) -> None:
    """Put pooling in front, where the hardware can."""
    read = plan.read
    several = passes(read.channels) > 1
    as_rows = (
        growing.older
        and several
        and read.operands * passes(read.channels) != (read.operands + passes(read.channels))
    )
    transposed = plan.kind in ("convtranspose2d", "depthwise_t") and growing.careful  # W373
    if plan.kind == "flatten" or transposed or (read.operands > 1 and as_rows):
        return
    if goal is not None:
        plan.keys |= goal.pooling
    elif growing.chance(40):
        single = growing.older and several and plan.kind == "none"
        plan.keys |= draw_pooling(growing, read.dim, single=single)
    plan.pooled = pooled_dim(read.dim, plan.keys)
    window = pair(plan.keys.get("max_pool", plan.keys.get("avg_pool", 1)))
    active = window != (1, 1) and (read.dim[1] > 1 or window[0] > 1)
    if active and read.operands == 2 and growing.chance(40):
        plan.keys["pool_first"] = False


def put_operator(growing: Growing, plan: Plan, goal: Goal | None) -> None:
    """Choose the kernel and its padding."""
    keys, kind = plan.keys, plan.kind
    plan.out_dim = plan.pooled
    if kind in ("linear", "flatten"):
        keys["op"] = growing.one_of(["Linear", "FC", "MLP"])
        plan.taps = ()
        if kind == "flatten":
            keys["flatten"], plan.out_dim = True, (1, 1)
    elif kind in ("conv2d", "depthwise2d", "bypass"):
        _square_kernel(growing, plan, goal)
    elif kind in ("convtranspose2d", "depthwise_t"):
        keys["op"] = "ConvTranspose2d"
        least = min(plan.pooled)
        keys["pad"] = pad = growing.one_of([p for p in (1, 0, 2) if 2 * least + 2 - 2 * p > 0])
        plan.taps, plan.stored_taps = (3, 3), 9
        rows, columns = plan.pooled
        plan.out_dim = 2 * rows + 2 - 2 * pad, 2 * columns + 2 - 2 * pad
    elif kind == "conv1d":
        _series_kernel(growing, plan, goal)
    if plan.depthwise:
        keys["groups"] = plan.read.channels
    if kind == "bypass":
        keys["bypass"] = True


def _square_kernel(growing: Growing, plan: Plan, goal: Goal | None) -> None:
    keys, least = plan.keys, min(plan.pooled)
    side = growing.one_of([1, 3])
    padding = [p for p in (1, 0, 2) if least + 2 * p >= 3]
    if goal is not None or (growing.streams and growing.older):
        padding = [1]  # MAX78000 ends a stream with rows of padding
    pad = growing.one_of(padding) if side == 3 else 0
    keys |= {"op": "Conv2d", "kernel_size": f"{side}x{side}", "pad": pad}
    plan.taps = (side, side)
    plan.stored_taps = 9 if growing.near_stream else side * side
    plan.out_dim = plan.pooled[0] + 2 * pad - side + 1, plan.pooled[1] + 2 * pad - side + 1


def _series_kernel(growing: Growing, plan: Plan, goal: Goal | None) -> None:
    keys, length = plan.keys, plan.pooled[0]
    padded = growing.older or passes(plan.read.channels) == 1
    likely = [1, 3, 2, 3, 2, 5, *range(4, 10)] if goal is None else [1, 3, 5] if padded else [1]
    taps = growing.one_of(likely)
    pad = taps // 2 if goal else growing.one_of([0, 1, 2]) if padded else 0
    pad = min(pad, taps - 1)
    taps = min(taps, length + 2 * pad)
    pad = min(pad, taps - 1) if not goal else pad
    dilation = 1
    if goal is None and taps > 1:
        reach = (length + 2 * pad - 1) // (taps - 1)
        free = taps <= 3 and pad == 0 and plan.pooled == plan.read.dim and not _reduces(keys)
        most = min(reach, 100 if free else 8 // (taps - 1))
        dilation = growing.one_of(range(2, most + 1)) if most > 1 and growing.chance(60) else 1
    keys |= {"op": "Conv1d", "kernel_size": taps, "pad": pad}
    if dilation > 1:
        keys["dilation"] = dilation
    span = (taps - 1) * dilation
    plan.taps, plan.stored_taps = (taps,), span + 1 if span < 9 else 9
    plan.out_dim = length + 2 * pad - span, 1
    if dilation > 1 and span >= 9:
        plan.lead = dilation if taps == 3 else 0
        plan.surplus = -(-plan.read.dim[0] // dilation) * dilation - plan.out_dim[0]


def _reduces(keys: Keys) -> bool:
    return any(k in keys for k in ("max_pool", "avg_pool", "pool_stride"))
