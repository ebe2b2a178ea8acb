"""A server of gdb's remote protocol: one program, one gdb.

Breakpoints, registers, memories, stepping, going on, Ctrl-C, detaching and ending. Watchpoints for
writing stop behind an instruction that changes a value in SRAM; others are left to gdb.
Source: the manual of gdb, "Remote Protocol".
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from ai8xtools.emulator.cpu.debugging import DebugTarget
from ai8xtools.emulator.cpu.gdb.packets import INTERRUPT, Connection
from ai8xtools.emulator.cpu.gdb.target import (
    REGISTER_BYTES,
    REGISTERS,
    memory_map,
    target_description,
)
from ai8xtools.emulator.errors import EmulatorError

_PACKET_BYTES = 0x1000
_LOOKS = 1000  # instructions between two looks at whether gdb wants to stop the program
_SIGINT, _SIGTRAP, _SIGSEGV = 2, 5, 11
_OK, _ERROR, _UNKNOWN = b"OK", b"E01", b""
_WRITE_WATCHPOINT = b"2"
_GO, _STEP = b"cC", b"sS"
_WATCHED_BYTES = 64
"""The largest value that is watched."""


class GdbServer:
    """Listens on a port of this machine; 0 chooses a free one. Gdb may connect when `run` begins.

    Raises EmulatorError (E870) if the port is not free.
    """

    def __init__(self, port: int) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("127.0.0.1", port))
            self._listener.listen(1)
        except OSError as error:
            self._listener.close()
            raise EmulatorError(
                "E870",
                f"port {port} cannot be used: {error.strerror}",
                "--gdb",
                "Choose another port, or 0 for one that is free.",
            ) from None
        self.port: int = self._listener.getsockname()[1]
        """The port on which it listens."""
        self._connection: Connection | None = None
        self._breakpoints: set[int] = set()
        self._watched: dict[tuple[int, int], bytes] = {}  # values by address and size
        self._reason = b""  # of a stop, if it is a watched value
        self._target: DebugTarget | None = None
        self._step_depth: int | None = None  # stops at the next instruction that is no deeper
        self._resumed_at: int | None = None  # its breakpoint has been reported
        self._countdown = 0
        self._signal = _SIGTRAP
        self._stops_at_once = True
        self._description = target_description().encode()

    def close(self) -> None:
        """Let go of the port and of gdb."""
        self._listener.close()
        if self._connection is not None:
            self._connection.close()

    def stops_before(self, address: int, depth: int) -> bool:
        """Tell whether the program stops: a breakpoint, a step, Ctrl-C, or its very beginning."""
        resumed, self._resumed_at = self._resumed_at, None
        self._reason = b""
        if address == resumed:
            return False
        self._signal = _SIGTRAP
        if self._watched and self._has_changed():
            return True
        if self._stops_at_once or address in self._breakpoints:
            return True
        if self._step_depth is not None and depth <= self._step_depth:
            return True
        self._countdown -= 1
        if self._countdown <= 0:
            self._countdown = _LOOKS
            if self._connection is not None and self._connection.interrupted():
                self._signal = _SIGINT
                return True
        return False

    def stopped(self, target: DebugTarget, depth: int) -> None:
        """Tell gdb, and do what it wants until the program shall go on."""
        self._step_depth = None
        self._target = target
        first, self._stops_at_once = self._stops_at_once, False
        if first:
            channel, _ = self._listener.accept()
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection = Connection(channel)
        else:
            self._send(b"T%02x%sthread:1;" % (self._signal, self._reason))
        self._serve(target, depth)
        self._resumed_at = target.read_register(target.architecture.family.position)
        self._countdown = _LOOKS

    def failed(self, target: DebugTarget, error: EmulatorError) -> None:
        """Tell gdb that the program cannot go on, and let it look around."""
        if self._connection is None or self._connection.closed:
            return
        self._signal = _SIGSEGV
        self._send(b"O" + f"{error.message}\n".encode().hex().encode())
        self._send(b"T%02xthread:1;" % self._signal)
        self._serve(target, 0)

    def ended(self, status: int | None) -> None:
        """Tell gdb that the program has ended."""
        self._send(b"W%02x" % ((status or 0) % 256))
        self.close()

    def _send(self, content: bytes) -> None:
        if self._connection is not None:
            self._connection.send(content)

    def _serve(self, target: DebugTarget, depth: int) -> None:
        """Answer packets until the program shall go on."""
        connection = self._connection
        assert connection is not None
        while True:
            packet = connection.receive()
            if packet is None:
                target.wants_detach = True  # gdb has gone: the program goes on alone
                return
            if packet == INTERRUPT:
                continue
            if self._resumes(packet, target, depth):
                return
            connection.send(self._answer(packet, target))
            if packet == b"QStartNoAckMode":
                connection.acknowledges = False

    def _resumes(self, packet: bytes, target: DebugTarget, depth: int) -> bool:
        """Do what lets the program go on; return whether the packet does."""
        action = packet
        if packet.startswith(b"vCont;"):
            action = packet[len(b"vCont;") :]
        elif packet[:1] not in (b"c", b"s", b"C", b"S", b"D", b"k") and packet[:5] != b"vKill":
            return False
        if packet.startswith((b"D", b"vKill")):
            self._send(_OK)
        if packet.startswith(b"D"):
            target.wants_detach = True
        elif packet.startswith((b"k", b"vKill")):
            target.wants_end = True
        elif action[:1] in (b"s", b"S"):
            self._step_depth = depth
        if packet[:1] in (b"c", b"s") and len(packet) > 1:
            target.write_register(
                target.architecture.family.position, _even(int(packet[1:], 16)) + 1
            )
        return True

    def _answer(self, packet: bytes, target: DebugTarget) -> bytes:
        answers: dict[bytes, Callable[[bytes, DebugTarget], bytes]] = {
            b"?": lambda *_: b"T%02xthread:1;" % self._signal,
            b"g": lambda *_: b"".join(_register(target, n) for n in range(len(REGISTERS))),
            b"G": _write_registers,
            b"p": _read_register,
            b"P": _write_register,
            b"m": _read_memory,
            b"M": _write_memory,
            b"X": _write_binary,
            b"Z": lambda packet, _: self._point(packet, target, insert=True),
            b"z": lambda packet, _: self._point(packet, target, insert=False),
            b"H": lambda *_: _OK,
            b"T": lambda *_: _OK,
        }
        answer = answers.get(packet[:1])
        try:
            return self._query(packet, target) if answer is None else answer(packet[1:], target)
        except ValueError:
            return _ERROR

    def _query(self, packet: bytes, target: DebugTarget) -> bytes:
        if packet.startswith(b"qXfer:features:read:target.xml:"):
            return _part(self._description, packet)
        if packet.startswith(b"qXfer:memory-map:read::"):
            return _part(memory_map(target.memory).encode(), packet)
        fixed = {
            b"qSupported": b"PacketSize=%x;qXfer:features:read+;qXfer:memory-map:read+;"
            b"QStartNoAckMode+;swbreak+;hwbreak+;vContSupported+" % _PACKET_BYTES,
            b"QStartNoAckMode": _OK,
            b"vCont?": b"vCont;c;C;s;S",
            b"qAttached": b"1",
            b"qC": b"QC1",
            b"qfThreadInfo": b"m1",
            b"qsThreadInfo": b"l",
            b"qSymbol": _OK,
        }
        return fixed.get(packet.split(b":")[0], _UNKNOWN)

    def _point(self, packet: bytes, target: DebugTarget, *, insert: bool) -> bytes:
        """Set or remove a breakpoint, or a watchpoint for writing."""
        kind, *numbers = packet.split(b";")[0].split(b",")
        address, size = (int(number, 16) for number in numbers)
        if kind in (b"0", b"1"):
            change = self._breakpoints.add if insert else self._breakpoints.discard
            change(_even(address))
        elif kind == _WRITE_WATCHPOINT:
            value = target.read_memory(address, min(size, _WATCHED_BYTES + 1))
            if value is None or not 0 < len(value) <= _WATCHED_BYTES:
                return _ERROR
            self._watched.pop((address, size), None)
            if insert:
                self._watched[address, size] = value
        else:
            return _UNKNOWN
        return _OK

    def _has_changed(self) -> bool:
        """Tell whether a watched value is another one, and remember which."""
        assert self._target is not None
        for (address, size), before in self._watched.items():
            value = self._target.read_memory(address, size)
            if value is not None and value != before:
                self._watched[address, size] = value
                self._reason = b"watch:%x;" % address
                return True
        return False


def _even(address: int) -> int:
    """Return an address without the mark of Thumb code."""
    return address - address % 2


def _part(document: bytes, packet: bytes) -> bytes:
    """Return the part of a document that a packet asks for."""
    offset, length = (int(number, 16) for number in packet.split(b":")[-1].split(b","))
    last = offset + length >= len(document)
    return (b"l" if last else b"m") + document[offset : offset + length]


def _register(target: DebugTarget, number: int) -> bytes:
    value = target.read_register(REGISTERS[number][1])
    return value.to_bytes(REGISTER_BYTES, "little").hex().encode()


def _read_register(packet: bytes, target: DebugTarget) -> bytes:
    number = int(packet, 16)
    return _register(target, number) if number < len(REGISTERS) else _ERROR


def _write_register(packet: bytes, target: DebugTarget) -> bytes:
    number, value = packet.split(b"=")
    return _change_register(target, int(number, 16), bytes.fromhex(value.decode()))


def _write_registers(packet: bytes, target: DebugTarget) -> bytes:
    data = bytes.fromhex(packet.decode())
    for number in range(min(len(REGISTERS), len(data) // REGISTER_BYTES)):
        first = number * REGISTER_BYTES
        _change_register(target, number, data[first : first + REGISTER_BYTES])
    return _OK


def _change_register(target: DebugTarget, number: int, data: bytes) -> bytes:
    if number >= len(REGISTERS) or len(data) != REGISTER_BYTES:
        return _ERROR
    name, register = REGISTERS[number]
    value = int.from_bytes(data, "little")
    target.write_register(register, _even(value) + 1 if name == "pc" else value)
    return _OK


def _read_memory(packet: bytes, target: DebugTarget) -> bytes:
    address, size = (int(number, 16) for number in packet.split(b","))
    data = target.read(address, min(size, _PACKET_BYTES // 2))
    return _ERROR if data is None else data.hex().encode()


def _write_memory(packet: bytes, target: DebugTarget) -> bytes:
    place, data = packet.split(b":")
    return _stored(target, place, bytes.fromhex(data.decode()))


def _write_binary(packet: bytes, target: DebugTarget) -> bytes:
    place, data = packet.split(b":", 1)
    return _stored(target, place, data)


def _stored(target: DebugTarget, place: bytes, data: bytes) -> bytes:
    address, size = (int(number, 16) for number in place.split(b","))
    if size != len(data):
        return _ERROR
    return _OK if target.write(address, data) else _ERROR
