"""A debugger for the program: `emulate.py DIR --gdb PORT`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.emulator import Board

if TYPE_CHECKING:
    from ai8xtools.emulator.cpu.gdb import GdbServer

_FLAGS = ("-O0", "-g")
"""Options of the compiler with which each line of C has instructions, and gdb knows them."""


def server_for(options: EmulateOptions) -> GdbServer | None:
    """Return a server on the port that the options name, if any. Raises EmulatorError (E870)."""
    if options.gdb is None:
        return None
    from ai8xtools.emulator.cpu.gdb import GdbServer  # which other runs do without

    return GdbServer(options.gdb)


def options_for_gdb(options: EmulateOptions) -> EmulateOptions:
    """Return options that compile a program for gdb and remove the time limit."""
    flags = (*options.tree.flags, *_FLAGS)
    return replace(options, time_limit_s=float("inf"), tree=replace(options.tree, flags=flags))


@contextmanager
def served(server: GdbServer | None, board: Board) -> Iterator[None]:
    """Let gdb control the program of a board, and print how to connect; no effect without one."""
    if server is None:
        yield
        return
    board.attach(server)
    with tempfile.TemporaryDirectory(prefix="emulator-gdb-") as folder:
        program = Path(folder) / "program.elf"
        program.write_bytes((board.wrapper or board.core).image.file)
        print(f"Waiting for gdb: gdb-multiarch -ex 'target remote :{server.port}' {program}",
              flush=True)  # fmt: skip
        try:
            yield
        finally:
            server.close()
