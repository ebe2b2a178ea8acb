"""Packets of gdb's remote protocol on a socket.

Source: the manual of gdb, "Remote Protocol", sections "Overview" and "Packet Acknowledgment".
"""

from __future__ import annotations

import select
import socket

INTERRUPT = b"\x03"
"""What gdb sends, outside of packets, to stop a running program."""
_ESCAPE, _ESCAPED_BY = 0x7D, 0x20
_SPECIAL = b"#$}*"
_CHUNK_BYTES = 4096


class Connection:
    """A connection to gdb. It is `closed` once gdb has gone."""

    def __init__(self, channel: socket.socket) -> None:
        self.closed = False
        self.acknowledges = True
        """Whether each packet is answered by a sign that it has arrived."""
        self._channel = channel
        self._received = b""

    def receive(self) -> bytes | None:
        """Return the content of the next packet, or INTERRUPT; None if gdb has gone."""
        while True:
            packet = self._next()
            if packet is not None:
                return packet
            if not self._fill():
                return None

    def send(self, content: bytes) -> None:
        """Send a packet."""
        escaped = bytearray()
        for byte in content:
            if byte in _SPECIAL:
                escaped += bytes((_ESCAPE, byte ^ _ESCAPED_BY))
            else:
                escaped.append(byte)
        self._write(b"$%b#%02x" % (bytes(escaped), sum(escaped) % 256))

    def interrupted(self) -> bool:
        """Tell, without waiting, whether gdb wants to stop the program, or has gone."""
        while not self.closed and select.select([self._channel], [], [], 0)[0]:
            self._fill()
        self._received = self._received.lstrip(b"+-")
        if self._received.startswith(INTERRUPT):
            self._received = self._received[1:]
            return True
        return self.closed

    def close(self) -> None:
        """End the connection."""
        self.closed = True
        self._channel.close()

    def _next(self) -> bytes | None:
        """Take the next whole packet out of what was received."""
        while self._received:
            if self._received.startswith(INTERRUPT):
                self._received = self._received[1:]
                return INTERRUPT
            if not self._received.startswith(b"$"):
                self._received = self._received[1:]
                continue
            end = self._received.find(b"#")
            if end < 0 or len(self._received) < end + 3:
                return None
            raw, check = self._received[1:end], self._received[end + 1 : end + 3]
            self._received = self._received[end + 3 :]
            right = check.lower() == b"%02x" % (sum(raw) % 256)
            if self.acknowledges:
                self._write(b"+" if right else b"-")
            if right:
                return _unescaped(raw)
        return None

    def _fill(self) -> bool:
        try:
            data = self._channel.recv(_CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        self._received += data
        return True

    def _write(self, data: bytes) -> None:
        if self.closed:
            return
        try:
            self._channel.sendall(data)
        except OSError:
            self.close()


def _unescaped(raw: bytes) -> bytes:
    if _ESCAPE not in raw:
        return raw
    content, escaped = bytearray(), False
    for byte in raw:
        if escaped:
            content.append(byte ^ _ESCAPED_BY)
        elif byte != _ESCAPE:
            content.append(byte)
        escaped = not escaped and byte == _ESCAPE
    return bytes(content)
