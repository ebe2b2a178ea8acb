"""The cost of steps on a core: amounts of work, and instructions and cycles for each.

The coefficients are measured with programs of random layers on the emulated cores. Source:
docs/memory-levels.md, "Cost".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Elements,
    Insert,
    Pool,
    Roll,
    Step,
    Windows,
)
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.plan.layers import windows_at_once
from ai8xtools.values import frozen

FILE = Path(__file__).parent.parent / "costs.json"
_KERNELS = ("nn_", "planes ", "channels ")
"""How the names of what computes products begin."""
START = "start"
"""The amount that every inference has."""


@frozen
class Cost:
    """Instructions, and cycles as the emulator estimates them."""

    instructions: float = 0.0
    cycles: float = 0.0


def work_of(step: Step, kernels: Mapping[int, Kernel]) -> dict[str, float]:
    """Return the amounts of work of a step, by name."""
    match step:
        case Convolution():
            return _of_convolution(step, kernels[step.target])
        case Pool():
            pixels = prod(step.out_size)
            kind = "pool mean" if step.kind.averages else "pool max"
            return {
                f"{kind} values": pixels * step.channels * prod(step.window),
                f"{kind} results": pixels * step.channels,
                f"{kind} taps": pixels * prod(step.window),
                f"{kind} rows": step.out_size[0],
            }
        case Combine():
            values = prod(step.size) * step.channels
            return {
                "join operands": values * len(step.sources),
                "join results": values,
                "join rows": step.size[0],
            }
        case Elements():
            values = prod(step.size) * step.channels
            return {"join operands": values * len(step.sources), "join results": values,
                    "join rows": step.size[0]}  # fmt: skip
        case Windows():
            values = prod(step.out_size) * step.channels
            return {"pool mean values": values * prod(step.window), "pool mean results": values}
        case Copy():
            runs = sum(piece.count for piece in step.pieces)
            return {
                "copied bytes": sum(piece.count * piece.length for piece in step.pieces),
                "copied runs": runs,
            }
        case Insert() | Roll():
            return {"copied runs": 1}


def _of_convolution(step: Convolution, kernel: Kernel) -> dict[str, float]:
    rows, columns = step.out_size
    at_once, calls = columns, rows
    amounts: dict[str, float] = {}
    if step.pool is not None:
        pool = step.pool
        windows = windows_at_once(step, kernel)
        rows = pool.out_size[0] * pool.window[0]
        columns = pool.out_size[1] * pool.window[1]
        at_once = windows * pool.window[1]
        calls = rows * -(-pool.out_size[1] // windows)
        kind = "keep mean" if pool.kind.averages else "keep max"
        amounts = {
            f"{kind} values": rows * columns * step.filters,
            f"{kind} results": rows * pool.out_size[1] * step.filters,
            f"{kind} calls": rows * pool.out_size[1],
        }
    packed = kernel.pack(step)
    pixels, weights = rows * columns, packed.values.nbytes
    runs = packed.runs or weights / max(packed.flush, 1)
    whole, rest = divmod(columns, at_once)
    tail = whole * (at_once % kernel.pixels) + rest % kernel.pixels
    name = kernel.function
    if step.transposed:  # most places of the kernel fall between pixels
        weights //= step.spread[0] * step.spread[1]
        runs /= step.spread[0] * step.spread[1]
        name += ", transposed"
    if step.channels == 1:
        name += ", one channel"
    elif step.channels % 4:
        name += ", odd channels"
    return amounts | {
        f"{name} weights": pixels * weights,
        f"{name} runs": pixels * runs,
        f"{name} tail": rows * tail * weights,
        f"{name} inputs": pixels * step.kernel[0] * step.kernel[1] * step.channels,
        f"{name} taps": pixels * step.kernel[0] * step.kernel[1],
        f"{name} values": pixels * step.filters,
        f"{name} pixels": pixels,
        f"{name} calls": calls,
    }


def total_work(
    steps: Sequence[Step], kernels: Mapping[int, Kernel], shares: Mapping[int, float] | None = None
) -> dict[str, float]:
    """Return the amounts of work of steps, or of their shares, with what every inference has."""
    total: dict[str, float] = {START: 1}
    for step in steps:
        share = 1 if shares is None else shares[step.target]
        for name, amount in work_of(step, kernels).items():
            total[name] = total.get(name, 0) + amount * share
    return total


@functools.cache
def coefficients() -> Mapping[str, Mapping[str, Cost]]:
    """Return the cost of each amount of work, by core and name."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        core: {name: Cost(*pair) for name, pair in rates.items()} for core, rates in content.items()
    }


def predicted(work: Mapping[str, float], core: str) -> Cost | None:
    """Return the cost of work on a core; None if this core or one of the kernels was not measured.

    Of a kernel that was measured with other channels only, these count.
    """
    measured = coefficients().get(core)
    if measured is None:
        return None
    rates = {name: _rate(measured, name) for name in work}
    if None in rates.values():
        return None
    terms = [(amount, rate) for name, amount in work.items() if (rate := rates[name]) is not None]
    return Cost(
        sum(amount * rate.instructions for amount, rate in terms),
        sum(amount * rate.cycles for amount, rate in terms),
    )


def _rate(measured: Mapping[str, Cost], name: str) -> Cost | None:
    """Return what an amount of work costs; None of a kernel that was not measured."""
    kinds, _, amount = name.rpartition(" ")
    while kinds:
        if (cost := measured.get(f"{kinds} {amount}")) is not None:
            return cost
        kinds = kinds.rpartition(", ")[0]
    return measured.get(name, None if name.startswith(_KERNELS) else Cost())
