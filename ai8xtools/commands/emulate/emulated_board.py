"""A bench program in the emulator, in the place of the board that it is for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ai8xtools.commands.emulate.arguments import DEFAULT_LEVEL, EmulateOptions
from ai8xtools.commands.emulate.plain import accelerator_source, library_of
from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import BENCH, PlainSensor, compile_plain, run_plain, sensor_of
from ai8xtools.emulator.sensors import ClosedLineError, Line, Recorded, line_pair

_FOREVER = float("inf")
_AGAIN_SECONDS = 0.05


def check_bench(project: Path, core: str | None, option: str) -> None:
    """Raise EmulatorError (E805) for a project with another program, or one for a core that is not
    named."""
    if project.is_dir() and sensor_of(project) != BENCH:
        raise EmulatorError(
            "E805", "the program of the project takes no inputs over a serial line", option,
            "Generate it with --application bench.",
        )  # fmt: skip
    if project.is_dir() and core is None and accelerator_source(project) is None:
        raise EmulatorError(
            "E805", "the project is for any core, and none is named", option,
            f"Name one with --core: {', '.join(ARCHITECTURES)}.",
        )  # fmt: skip


def runner_of(project: Path, core: str | None, options: EmulateOptions) -> Callable[[Line], None]:
    """Compile a project; return a function that runs it from reset, until its line is closed.

    `core` runs it without the accelerator. Raises EmulatorError as the compiler and the board do.
    """
    if core is None:

        def run(line: Line) -> None:
            recorded = Recorded(line=line)
            board = Board(
                firmware.image, options.chip or firmware.chip, options.apb_base,
                wrapper=firmware.wrapper, recorded=recorded,
            )  # fmt: skip
            board.run(_FOREVER)

        from ai8xtools.emulator.firmware.compiling import compile_firmware

        firmware = compile_firmware(project, options.tree)
        return run
    sources, flags = library_of(project)
    program = compile_plain(
        project, ARCHITECTURES[core], f"-O{options.optimization or DEFAULT_LEVEL}", flags, sources,
        sensor=True, seconds=options.tree.seconds,
    )  # fmt: skip

    def run_alone(line: Line) -> None:
        run_plain(program, sensor=PlainSensor(BENCH, Recorded(line=line)), time_limit=_FOREVER)

    return run_alone


class EmulatedBoard:
    """A program at the other end of `line`, while the block runs."""

    def __init__(self, run: Callable[[Line], None]) -> None:
        self._end, board = line_pair()
        self._error: BaseException | None = None

        def execute() -> None:
            try:
                run(board)
            except Exception as exc:
                self._error = exc
            finally:
                board.close()

        self._thread = threading.Thread(target=execute, daemon=True)

    def __enter__(self) -> EmulatedBoard:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        while self._thread.is_alive():  # a core that is just about to run is not stopped by once
            self._end.close()
            self._thread.join(_AGAIN_SECONDS)

    def read(self, seconds: float) -> bytes:
        """Return what has come; raises the error that has ended the program."""
        try:
            return self._end.read(seconds)
        except ClosedLineError:
            raise self._error or EmulatorError("E821", "the program has ended") from None

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._end.write(data)
