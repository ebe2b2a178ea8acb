"""Serial ports of the computer, through pyserial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ai8xtools.diagnostics.errors import InputError, reason_of

_WRITE_SECONDS = 10.0
"""After which a port that takes no bytes is given up."""


class _Port:
    """A port that is open; reading and writing raise InputError E885 once it is not any more."""

    def __init__(self, port: Any, name: str, failures: tuple[type[Exception], ...]) -> None:
        self._port, self._name, self._failures = port, name, failures

    def read(self, seconds: float) -> bytes:
        try:
            self._port.timeout = seconds
            first = self._port.read(1)
            return bytes(first + self._port.read(self._port.in_waiting)) if first else b""
        except self._failures as exc:
            raise _unusable(self._name, exc) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._failures as exc:
            raise _unusable(self._name, exc) from None


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
    failures = (serial.SerialException, OSError, ValueError)
    try:
        port = serial.Serial(name, baud, timeout=0, write_timeout=_WRITE_SECONDS)
    except failures as exc:
        raise _unusable(name, exc) from None
    with port:
        yield _Port(port, name, failures)


def _unusable(name: str, exc: Exception) -> InputError:
    return InputError(
        "E885", f"the port cannot be used: {reason_of(exc)}", name,
        "Name the port of the board: `python -m serial.tools.list_ports`.",
    )  # fmt: skip
