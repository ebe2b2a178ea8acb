"""The report as JSON, for programs: the same facts as the page.

Names and meaning are described in docs/report.md; whoever changes one raises `VERSION`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.report.values import LayerRow, Report
from device.chip import MOST_PRODUCTS

VERSION = 1


def report_json(report: Report) -> str:
    """Return the report as JSON text."""
    return json.dumps(_facts(report), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _facts(report: Report) -> dict[str, Any]:
    return {
        "version": VERSION,
        "tool": report.tool,
        "command_line": report.command_line,
        "name": report.name,
        "arch": report.arch,
        "chip": report.chip.name,
        "fits": not report.refused,
        "accuracy": None if report.accuracy is None else asdict(report.accuracy),
        "needs": [
            {"what": need.title, "unit": need.unit, "used": need.use.used, "of": need.use.total}
            for need in report.needs
        ],
        "operations": report.operations,
        "multiplications": report.products,
        "cycles": report.cycles,
        "timing_known": report.chip.estimates_latency,
        "clock_mhz": report.clock_mhz,
        "milliseconds": report.milliseconds,
        "milliseconds_range": None
        if report.latency is None
        else [report.latency.low, report.latency.high],
        "energy": report.energies and {
            "joules": asdict(report.energies), "volts": report.energy.volts,
            "source": report.energy.source(report.chip),
        },
        "multiplications_per_cycle": report.products_per_cycle,
        "most_multiplications_per_cycle": MOST_PRODUCTS,
        "slowest_layer": None if report.slowest is None else report.slowest.index,
        "time_line": [
            {
                "what": part.title or "layer", "layer": part.layer,
                "milliseconds": part.amount, "once": part.once,
            }
            for part in report.time_line
        ],
        "layers": [_layer(layer) for layer in report.layers],
        "data_memory": [_step(report, index) for index in range(len(report.memory))],
        "instances": [
            {
                "instance": use.instance, "peak_bytes": use.peak_bytes,
                "layer": use.layer, "end": use.end,
            }
            for use in report.instances
        ],
        "reasons": [
            {"layer": layer, "key": key, "reason": reason} for layer, key, reason in report.reasons
        ],
        "messages": [message_facts(message) for message in report.diagnostics],
    }  # fmt: skip


def _layer(layer: LayerRow) -> dict[str, Any]:
    cost, result = layer.cost, layer.result
    return {
        "layer": layer.index,
        "name": layer.name,
        "line": layer.line,
        "executed": layer.executed,
        "operator": layer.operator,
        "pooling": layer.pooling,
        "sources": list(layer.sources),
        "input": list(layer.input),
        "output": list(layer.output),
        "output_width": layer.output_width,
        "operations": layer.operations,
        "passes": [layer.in_passes, layer.out_passes],
        "processors": layer.processors,
        "shift": layer.shift,
        "weight_bits": layer.weight_bits,
        "weight_bytes": layer.weight_bytes,
        "placed": layer.placed,
        "share": layer.share,
        "cycles": layer.cycles,
        "multiplications_per_cycle": None if cost is None else cost.products_per_cycle,
        "time_goes_into": None if cost is None else cost.reason,
        "result": None if result is None else {
            "low": result.low, "high": result.high, "limits": list(result.limits),
            "at_limits": result.at_limits, "zeros": result.zeros,
        },
    }  # fmt: skip


def _step(report: Report, index: int) -> dict[str, Any]:
    """Return the data memory while a layer is executed."""
    step = report.memory[index]
    kinds = (("read", step.inputs), ("written", (step.output,)), ("needed later", step.alive))
    return {
        "layer": step.layer,
        "data": [
            {
                "use": use, "owner": data.owner, "instances": list(data.instances),
                "begin": data.begin, "end": data.end, "bytes": data.size_bytes,
            }
            for use, ranges in kinds
            for data in ranges
        ],
        "losses": [
            {
                "owner": loss.owner, "instances": list(loss.instances), "begin": loss.begin,
                "end": loss.end, "own_input": loss.own_input,
            }
            for loss in step.losses
        ],
    }  # fmt: skip


def message_facts(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a message with its place."""
    place = diagnostic.place
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "remedy": diagnostic.remedy,
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "option": None if place is None else place.option,
    }
