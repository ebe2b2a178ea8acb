"""The table of how long layers take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ai8xtools.emulator.decode.cycles import STARTUP_CYCLES, Cycles, network_cycles

__all__ = ["STARTUP_CYCLES", "Cycles", "format_cycles", "network_cycles"]


def format_cycles(layers: Iterable[Cycles], analytic: Mapping[int, int] | None = None) -> list[str]:
    """Return a table of the layers and their sum; `analytic` has other estimates by layer."""
    rows = list(layers)
    estimates = analytic or {}
    sums = Cycles(
        -1,
        STARTUP_CYCLES + sum(row.estimate for row in rows),
        sum(row.fetches for row in rows),
        sum(row.steps for row in rows),
        any(row.uncertain for row in rows),
    )
    heads = ["layer", "cycles", "fetches", "kernel steps"] + (["analytic"] if estimates else [])

    def cells(name: str, row: Cycles, other: int | None) -> Iterator[str]:
        yield name
        yield f"{row.estimate:,}" + (" (est)" if row.uncertain else "")
        yield f"{row.fetches:,}"
        yield f"{row.steps:,}"
        if estimates:
            yield "" if other is None else f"{other:,}"

    table = [heads, *(list(cells(str(row.layer), row, estimates.get(row.layer))) for row in rows)]
    table.append(list(cells("total", sums, STARTUP_CYCLES + sum(estimates.values()))))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
