"""The report of a project for a microcontroller: what it takes, where the time goes, what it gives.

Facts and names are those of the report for the accelerator where both have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commands.loader.options import LoaderOptions
from software.build import Built
from software.cost import predicted, total_work, work_of
from software.emit.page import plan_page
from software.graph import Convolution, Step
from software.profile import Profile
from synthesis.emit.report_pictures import Picture, picture_of
from synthesis.network import Network
from synthesis.report.build import output_range
from synthesis.report.values import OutputRange
from synthesis.simulate import simulate
from values import frozen

VERSION = 1
"""Of the JSON twin; whoever changes a name or its meaning raises it."""
_PIXELS = 60_000
"""Of all pictures of a page."""


@frozen
class StepRow:
    """A step of the plan: estimated cycles, and the output for the sample behind a layer's last."""

    layer: int
    name: str
    kind: str
    kernel: str
    products: int
    cycles: float | None
    share: float
    shape: str
    result: OutputRange | None = None
    picture: Picture | None = None


def report_of(
    built: Built, profile: Profile, network: Network, options: LoaderOptions
) -> tuple[str, str]:
    """Return page and JSON of a project."""
    made = simulate(network, average_rounding=options.encode.average_rounding).outputs
    rows = tuple(_rows(built, network, made))
    plan = built.plan
    whole = predicted(total_work(plan.graph.steps, plan.kernels), plan.core.name)
    cycles = None if whole is None else round(whole.cycles)
    needs = (("RAM", built.need.ram, profile.l1), ("Flash", built.need.flash, profile.flash))
    page = plan_page(
        built, profile, options.project.name,
        {"rows": rows, "needs": needs, "cycles": cycles, "sentence": _sentence(rows, cycles)},
    )  # fmt: skip
    return page, _json(built, options, needs, rows, cycles)


def _rows(
    built: Built, network: Network, made: Mapping[int, NDArray[np.int64]]
) -> Iterator[StepRow]:
    plan = built.plan
    steps = plan.graph.steps
    last = {step.layer: number for number, step in enumerate(steps)}
    costs = [predicted(work_of(step, plan.kernels), plan.core.name) for step in steps]
    measure = [
        cost.cycles if cost is not None else float(_products(step))
        for step, cost in zip(steps, costs, strict=True)
    ]
    whole = max(sum(measure), 1.0)
    wide = {layer.index: layer.output_width != 8 for layer in network.layers}
    for number, (step, cost) in enumerate(zip(steps, costs, strict=True)):
        values = made.get(step.layer) if last[step.layer] == number else None
        tensor = plan.graph.tensors[step.target] if step.target < len(plan.graph.tensors) else None
        kernel = plan.kernels[step.target].function if isinstance(step, Convolution) else ""
        yield StepRow(
            step.layer,
            step.name,
            type(step).__name__.lower(),
            plan.calls[step.target].function if step.target in plan.calls else kernel,
            _products(step),
            None if cost is None else cost.cycles,
            measure[number] / whole,
            "" if tensor is None else f"{tensor.channels}×{tensor.rows}×{tensor.columns}",
            None if values is None else output_range(values, wide=wide[step.layer]),
            None if values is None else picture_of(step.layer, values, _PIXELS // len(last)),
        )


def _products(step: Step) -> int:
    return step.macs if isinstance(step, Convolution) else 0


def _sentence(rows: tuple[StepRow, ...], cycles: int | None) -> str:
    """Say where most of the time goes."""
    slowest = max(rows, key=lambda row: row.share)
    products = sum(row.products for row in rows)
    if cycles is None:
        return (
            f"Cycles of this core were not measured. {slowest.share:.0%} of the "
            f"{products:,} multiplications are in {slowest.name}."
        )
    kernel = f", in {slowest.kernel}" if slowest.kernel else ""
    return (
        f"An inference takes about {cycles:,} cycles (estimated), {products / max(cycles, 1):.2f} "
        f"multiplications in each; {slowest.share:.0%} of them go into {slowest.name}{kernel}."
    )


def _json(
    built: Built,
    options: LoaderOptions,
    needs: tuple[tuple[str, int, int], ...],
    rows: tuple[StepRow, ...],
    cycles: int | None,
) -> str:
    plan = built.plan
    facts: dict[str, Any] = {
        "version": VERSION,
        "tool": f"ai8xize.py {options.project.tool_version}",
        "command_line": options.project.command_line,
        "name": options.project.name,
        "core": plan.core.name,
        "fits": True,
        "scheme": str(plan.scheme),
        "needs": [{"what": what, "unit": "bytes", "used": n, "of": of} for what, n, of in needs],
        "multiplications": sum(row.products for row in rows),
        "cycles": cycles,
        "slowest_layer": max(rows, key=lambda row: row.share).layer,
        "steps": [
            {
                "layer": row.layer, "name": row.name, "kind": row.kind,
                "kernel": row.kernel or None, "multiplications": row.products,
                "cycles": None if row.cycles is None else round(row.cycles),
                "share": row.share, "output": row.shape,
                "result": None if row.result is None else {
                    "low": row.result.low, "high": row.result.high,
                    "limits": list(row.result.limits),
                    "at_limits": row.result.at_limits, "zeros": row.result.zeros,
                },
            }
            for row in rows
        ],
        "memory": [
            {"name": b.name, "bytes": b.size, "offset": b.offset, "first": b.first, "last": b.last}
            for b in plan.blocks
        ],
    }  # fmt: skip
    return json.dumps(facts, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
