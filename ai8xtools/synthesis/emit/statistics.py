"""Operations, memory use and latency as users know them, shared by the log and C comments.

Source: docs/generated-project.md, "The log".
"""

from __future__ import annotations

from ai8xtools.synthesis.summary import LatencyTerms, LayerStatistics, Operations, Statistics


def format_statistics(statistics: Statistics) -> list[str]:
    """Return the lines of the summary of operations and resources."""
    repeat = statistics.repeat
    total = _sum([layer.operations for layer in statistics.layers], repeat)
    lines = ["SUMMARY OF OPS", f"Hardware: {_operations(total)}"]
    products = [layer.products for layer in statistics.layers if layer.products is not None]
    if products:
        lines.append(f"True MACs: {repeat * sum(products):,}")
    lines += [
        f"  {_label(layer)}: {_operations(_sum([layer.operations], repeat))}"
        for layer in statistics.layers
    ]
    return [*lines, "", "RESOURCE USAGE", *format_resources(statistics)]


def format_resources(statistics: Statistics) -> list[str]:
    """Return the lines about the memory of weights and biases."""
    weights, biases = statistics.weight_bytes, statistics.bias_bytes
    return [
        f"Weight memory: {_usage(weights, statistics.weight_bytes_total)}",
        f"Bias memory:   {_usage(biases, statistics.bias_bytes_total)}",
    ]


def format_latency(statistics: Statistics) -> list[str]:
    """Return the lines of the latency estimate; empty where the chip's timing is not known.

    Where a layer has them, the terms of its estimate follow.
    """
    if any(layer.cycles is None for layer in statistics.layers):
        return []
    cycles = [layer.cycles or 0 for layer in statistics.layers]
    total = statistics.startup_cycles + sum(cycles)
    width = max(map(len, ("Startup", *map(_label, statistics.layers))))
    digits = max(len(f"{total:,}"), 10)

    def line(name: str, cycles: int, note: str = "") -> str:
        return f"{name:{width}} {cycles:{digits},}{note}"

    lines = ["ESTIMATED LATENCY", line("Startup", statistics.startup_cycles)]
    for layer, own in zip(statistics.layers, cycles, strict=True):
        lines.append(line(_label(layer), own, " (est)" if layer.cycles_estimated else ""))
        if layer.latency is not None:
            lines += _latency_terms(layer.latency, own)
    estimated = any(layer.cycles_estimated for layer in statistics.layers)
    lines.append(f"{'':{width}} {'':=>{digits}}")
    return [*lines, line("Total", total, " cycles (est)" if estimated else " cycles")]


def _latency_terms(terms: LatencyTerms, cycles: int) -> list[str]:
    """Return the quantities behind a layer's cycles, and the summands that are not zero."""
    rows = [
        (name, f"{count:,} x {each:,}", count * each)
        for name, count, each in terms.summands
        if count * each
    ]
    if cycles > terms.total:
        rows.append(("streaming, half as much again", "", cycles - terms.total))
    width = max((len(name) for name, *_ in rows), default=0)
    product = max((len(text) for _, text, _ in rows), default=0)
    digits = len(f"{cycles:,}")
    return [
        "    " + ", ".join(f"{name} {value:,}" for name, value in terms.quantities),
        *(f"    {name:{width}}  {text:>{product}}  {sum_:{digits},}" for name, text, sum_ in rows),
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
