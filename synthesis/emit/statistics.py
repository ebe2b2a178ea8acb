"""Operations, memory use and latency as users know them, shared by the log and C comments.

Source: spec/generated-project.md sections 8.3 and 8.4.
"""

from __future__ import annotations

from synthesis.program import LayerStatistics, Operations, Statistics


def format_statistics(statistics: Statistics) -> list[str]:
    """Return the lines of the summary of operations and resources."""
    repeat = statistics.repeat
    total = _sum([layer.operations for layer in statistics.layers], repeat)
    lines = ["SUMMARY OF OPS", f"Hardware: {_operations(total)}"]
    lines += [
        f"  {_label(layer)}: {_operations(_sum([layer.operations], repeat))}"
        for layer in statistics.layers
    ]
    weights, biases = statistics.weight_bytes, statistics.bias_bytes
    return [
        *lines,
        "",
        "RESOURCE USAGE",
        f"Weight memory: {_usage(weights, statistics.weight_bytes_total)}",
        f"Bias memory:   {_usage(biases, statistics.bias_bytes_total)}",
    ]


def format_latency(statistics: Statistics) -> list[str]:
    """Return the lines of the latency estimate; empty where the chip's timing is not known."""
    rows = [("Startup", statistics.startup_cycles, "")]
    for layer in statistics.layers:
        if layer.cycles is None:
            return []
        rows.append((_label(layer), layer.cycles, " (est)" if layer.cycles_estimated else ""))
    total = sum(cycles for _, cycles, _ in rows)
    width = max(len(name) for name, _, _ in rows)
    digits = max(len(f"{total:,}"), 10)
    return [
        "ESTIMATED LATENCY",
        *(f"{name:{width}} {cycles:{digits},}{note}" for name, cycles, note in rows),
        f"{'':{width}} {'':=>{digits}}",
        f"{'Total':{width}} {total:{digits},} cycles",
    ]


def _label(layer: LayerStatistics) -> str:
    return f"Layer {layer.index}" + (f" ({layer.name})" if layer.name else "")


def _sum(parts: list[Operations], repeat: int) -> Operations:
    return Operations(
        *(
            repeat * sum(getattr(part, field) for part in parts)
            for field in ("macc", "comp", "add", "mul", "bitwise")
        )
    )


def _operations(count: Operations) -> str:
    return (
        f"{count.total:,} ops ({count.macc:,} macc; {count.comp:,} comp; {count.add:,} add; "
        f"{count.mul:,} mul; {count.bitwise:,} bitwise)"
    )


def _usage(used: int, total: int) -> str:
    return f"{used:,} bytes out of {total:,} bytes total ({100 * used / total:.1f}%)"
