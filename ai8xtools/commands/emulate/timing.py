"""Estimated time: the files of --profile and --vcd, and the note about measured times."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.diagnostics import note
from ai8xtools.emulator import Board


def write_time_files(board: Board, options: EmulateOptions) -> None:
    """Write what the options ask for, complete or not at all, also of a program that failed.

    Of a program that set up no accelerator there is nothing to write. Raises OSError.
    """
    if options.profile is None and options.vcd is None:
        return
    # which other runs do without
    from ai8xtools.emulator.report.timeline import timeline
    from ai8xtools.emulator.report.trace_events import trace_events
    from ai8xtools.emulator.report.vcd import value_changes

    recording = board.time.recording()
    if recording is None:
        return
    events = timeline(recording)
    if options.profile is not None:
        write_bytes(options.profile, trace_events(events).encode())
    if options.vcd is not None:
        write_bytes(options.vcd, value_changes(events).encode())


def describe_times(board: Board) -> Iterator[str]:
    """Yield a line that explains the times that the program has measured."""
    runs = board.time.runs
    if not runs:
        return
    run = runs[-1]
    time = {"count": run.total_cycles, "mhz": run.mhz, "microseconds": run.microseconds}
    note(cycles={**time, "estimated": True})
    if not board.time.measured:
        return
    yield (
        f"note: times measured by the program are estimates; the last inference: "
        f"{run.total_cycles:,} cycles at {run.mhz:g} MHz, {run.microseconds:,.0f} us"
    )
