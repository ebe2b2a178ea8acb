"""The remote protocol of gdb, for the program on an emulated core."""

from ai8xtools.emulator.cpu.gdb.server import GdbServer

__all__ = ["GdbServer"]
