"""Serial ports of the computer, through pyserial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ai8xtools.diagnostics.errors import InputError, reason_of


class _Port:
    def __init__(self, port: Any) -> None:
        self._port = port

    def read(self, seconds: float) -> bytes:
        self._port.timeout = seconds
        first = self._port.read(1)
        return bytes(first + self._port.read(self._port.in_waiting)) if first else b""

    def write(self, data: bytes) -> None:
        self._port.write(data)


@contextmanager
def opened(name: str, baud: int) -> Iterator[_Port]:
    """Open the port of a name, such as /dev/ttyACM0 or COM3, with `baud` bits per second.

    Raises InputError (E885): pyserial is missing, or the port cannot be used, now or later.
    """
    try:
        import serial
    except ImportError:
        raise InputError(
            "E885", "the package pyserial is not installed; it opens serial ports", name,
            "Install it: pip install pyserial",
        ) from None  # fmt: skip
    try:
        with serial.Serial(name, baud, timeout=0) as port:
            yield _Port(port)
    except (serial.SerialException, OSError, ValueError) as exc:
        raise InputError(
            "E885", f"the port cannot be used: {reason_of(exc)}", name,
            "Name the port of the board: `python -m serial.tools.list_ports`.",
        ) from None  # fmt: skip
