"""What the user should know about a project beside its result."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.commands.emulate.recordings import Played
from ai8xtools.emulator import Board
from ai8xtools.emulator.firmware.progress import IMAGES, INPUTS
from ai8xtools.emulator.sensors import UART

_SILENT = ("LED_",)
"""Functions of LEDs, which nearly every program has; shown with --verbose only."""
_SENSORS = (*INPUTS, "MXC_DMA", "MXC_I2C", "Microphone_Power")
_SHOWN = 40


def show_notes(board: Board, verbose: bool) -> None:
    """Print how the program was compiled, before it runs."""
    for note in board.notes:
        print(f"note: {note}")
    if verbose:
        for loop in board.repetitions:
            print(f"note: {loop}, as programs do to measure power")


def show_stand_ins(board: Board, played: Played, verbose: bool) -> None:
    """Print which functions without hardware behind them the program has called."""
    for line in _stand_ins(board, played, verbose):
        print(line)


def _stand_ins(board: Board, played: Played, verbose: bool) -> Iterator[str]:
    called = board.progress.stand_ins
    source = board.sensors.source
    file = None if source is None else played.of(source)
    if source is not None and file is not None and not verbose:
        called = {name: count for name, count in called.items() if not name.startswith(_SENSORS)}
        shown = source.upper() if source == UART else source
        yield f"note: the {shown} delivers {board.sensors.delivered} of {file}"
    yield from played.unused(source)
    if board.sensors.serial.awaited and played.uart is None and board.inferences:
        yield "note: the program looks for bytes from the UART, and none are sent: --uart FILE"
    names = [name for name in called if verbose or not name.startswith(_SILENT)]
    for name in names[:_SHOWN]:
        if name.startswith("no "):  # which a driver has told the program
            yield f"warning: {name}"
            continue
        label = name if " " in name else f"{name}()"
        what = "gives random pixels" if name in IMAGES else "does nothing"
        yield f"note: {label} is a stand-in that {what} (called {_times(called[name])})"
    if len(names) > _SHOWN:
        yield f"note: {len(names) - _SHOWN} more stand-ins were called"
    sources = board.progress.input_stand_ins()
    if sources and file is None and board.inferences and not board.progress.passed:
        yield (
            f"warning: the input of the network is not real: {sources[0]}() would have delivered it"
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
