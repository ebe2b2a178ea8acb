"""gdb on the emulated core: the protocol by a scripted client, and gdb itself where it is."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.debugging import served
from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.gdb import GdbServer
from ai8xtools.emulator.cpu.gdb.target import REGISTERS
from ai8xtools.emulator.project.tree import TreeOptions
from tests.conftest import ROOT
from tests.emulator.trees import verdict

SECONDS = 30
OPTIONS = TreeOptions(flags=("-O0", "-g"))
SP, PC = 13, 15


class Client:
    """What gdb would send, packet by packet; every answer must come within `SECONDS`."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.received = b""

    def send(self, content: bytes) -> None:
        self.socket.sendall(b"$%b#%02x" % (content, sum(content) % 256))

    def packet(self) -> bytes:
        while True:
            start = self.received.find(b"$")
            end = self.received.find(b"#", start)
            if start >= 0 and 0 <= end <= len(self.received) - 3:
                content = self.received[start + 1 : end]
                assert int(self.received[end + 1 : end + 3], 16) == sum(content) % 256
                self.received = self.received[end + 3 :]
                return content
            data = self.socket.recv(4096)
            assert data, "the server has gone"
            self.received += data

    def ask(self, content: bytes) -> bytes:
        self.send(content)
        return self.packet()

    def register(self, number: int) -> int:
        return int.from_bytes(bytes.fromhex(self.ask(b"p%x" % number).decode()), "little")

    def memory(self, address: int, size: int) -> bytes:
        return bytes.fromhex(self.ask(b"m%x,%x" % (address, size)).decode())


class Session:
    """A program that runs in a thread with a server, and a client of it."""

    def __init__(self, project: Path) -> None:
        self.board = Board.with_project(project, options=OPTIONS)
        self.server = GdbServer(0)
        self.board.attach(self.server)
        self.result: Any = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.client = Client(self.server.port)

    def _run(self) -> None:
        try:
            self.result = self.board.run(float("inf"))
        except EmulatorError as error:
            self.result = error

    def address(self, name: str) -> int:
        address = self.board.core.image.symbols[name]
        return address - address % 2

    def end(self) -> Any:
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        return self.result


@pytest.fixture
def start() -> Iterator[Callable[[Path], Session]]:
    sessions: list[Session] = []

    def call(project: Path) -> Session:
        sessions.append(Session(project))
        return sessions[-1]

    yield call
    for session in sessions:
        session.client.socket.close()
        session.end()


def test_a_program_is_followed_from_reset_to_its_end(
    project: Path, start: Callable[[Path], Session]
) -> None:
    session = start(project)
    client = session.client
    assert client.ask(b"?") == b"T05thread:1;"
    assert client.register(PC) == session.address("reset_handler")
    main = session.address("main")
    assert client.ask(b"Z0,%x,2" % main) == b"OK"
    assert client.ask(b"c") == b"T05thread:1;"
    assert client.register(PC) == main
    stack = client.register(SP)
    assert client.ask(b"s") == b"T05thread:1;"
    assert client.register(PC) in (main + 2, main + 4)
    assert client.register(SP) < stack  # main() begins by saving registers
    assert client.ask(b"z0,%x,2" % main) == b"OK"
    assert client.ask(b"vCont;c") == b"W00"
    assert session.end().passed


def test_a_watched_variable_stops_the_program_that_changes_it(
    project: Path, start: Callable[[Path], Session]
) -> None:
    session = start(project)
    client, place = session.client, session.board.core.image.symbols["cnn_time"]
    assert client.ask(b"Z2,%x,4" % place) == b"OK"
    assert client.ask(b"c") == b"T05watch:%x;thread:1;" % place
    assert int.from_bytes(client.memory(place, 4), "little") > 0
    assert client.ask(b"Z2,50400000,4") == b"E01"  # written by the accelerator
    assert client.ask(b"Z2,%x,100" % place) == b"E01"
    assert client.ask(b"Z3,%x,4" % place) == b""
    assert client.ask(b"z2,%x,4" % place) == b"OK"
    assert client.ask(b"c") == b"W00"
    assert session.end().passed


def test_registers_and_memories_are_read_and_written(
    project: Path, start: Callable[[Path], Session]
) -> None:
    session = start(project)
    client = session.client
    every = bytes.fromhex(client.ask(b"g").decode())
    assert len(every) == 4 * len(REGISTERS)
    assert int.from_bytes(every[4 * PC : 4 * PC + 4], "little") == client.register(PC)
    assert client.ask(b"P3=78563412") == b"OK"
    assert client.register(3) == 0x12345678
    assert client.ask(b"G" + every.hex().encode()) == b"OK"
    assert client.register(3) == int.from_bytes(every[12:16], "little")
    ram, flash = 0x20000100, session.address("main")
    assert client.ask(b"M%x,4:01020304" % ram) == b"OK"
    assert client.ask(b"X%x,3:ab}\x03" % (ram + 4)) == b"OK"  # an escaped '#'
    assert client.memory(ram, 7) == b"\1\2\3\4ab#"
    segments = dict(session.board.core.image.segments)
    start_of, data = next((a, d) for a, d in segments.items() if a <= flash < a + len(d))
    assert client.memory(flash, 8) == data[flash - start_of : flash - start_of + 8]
    assert client.ask(b"m90000000,4") == b"E01"
    assert client.ask(b"p99") == client.ask(b"P99=00000000") == b"E01"
    assert client.ask(b"Mxyz") == b"E01"


def test_looking_at_the_accelerator_is_no_evidence(
    project: Path, start: Callable[[Path], Session]
) -> None:
    """What a debugger reads counts as little for the verdict as it changes anything."""
    session = start(project)
    client, core = session.client, session.board.core
    control = 0x50100000
    client.ask(b"Z1,%x,2" % session.address("CNN_ISR"))
    assert client.ask(b"c") == b"T05thread:1;"
    reads = list(session.board.bus.reads or ())
    word = int.from_bytes(client.memory(control, 4), "little")
    assert word == session.board.bus.words[control] != 0
    client.memory(0x50402000, 64)
    assert session.board.bus.reads == reads
    assert client.ask(b"z1,%x,2" % session.address("CNN_ISR")) == b"OK"
    assert client.ask(b"c") == b"W00"
    assert core.has("main")
    assert session.end().passed


def test_a_handler_returns_to_who_was_interrupted(
    project: Path, start: Callable[[Path], Session]
) -> None:
    session = start(project)
    client = session.client
    client.ask(b"Z0,%x,2" % session.address("emulator_interrupt"))
    assert client.ask(b"c") == b"T05thread:1;"
    back = client.register(14)
    assert session.board.core.image.function_at(back - 1) != "emulator_interrupt()"
    client.ask(b"z0,%x,2" % session.address("emulator_interrupt"))
    client.ask(b"Z0,%x,2" % (back - 1))
    assert client.ask(b"c") == b"T05thread:1;"
    assert client.register(PC) == back - 1
    assert client.ask(b"c") in (b"W00", b"T05thread:1;")


def test_ctrl_c_stops_an_endless_loop(
    variant: Callable[..., Path], start: Callable[[Path], Session]
) -> None:
    session = start(variant(("int main(void)\n{", "int main(void)\n{\n    for (;;) {}\n")))
    client = session.client
    client.send(b"c")
    client.socket.sendall(b"\x03")
    assert client.packet() == b"T02thread:1;"
    assert session.board.core.image.function_at(client.register(PC)) == "main()"
    client.send(b"k")
    outcome = session.end()
    assert not outcome.started


def test_detached_and_deserted_programs_go_on_alone(
    project: Path, start: Callable[[Path], Session]
) -> None:
    detached = start(project)
    detached.client.ask(b"Z0,%x,2" % detached.address("main"))
    detached.client.ask(b"c")
    assert detached.client.ask(b"D") == b"OK"
    assert detached.end().passed
    deserted = start(project)
    deserted.client.ask(b"?")
    deserted.client.socket.close()
    assert deserted.end().passed


def test_a_program_that_fails_can_be_looked_at(
    variant: Callable[..., Path], start: Callable[[Path], Session]
) -> None:
    session = start(
        variant(("int main(void)\n{", "int main(void)\n{\n    *(volatile int *) 0x80000000 = 1;\n"))
    )
    client = session.client
    client.send(b"c")
    message = client.packet()
    assert bytes.fromhex(message[1:].decode()).startswith(b"main() writes to address 0x80000000")
    assert client.packet() == b"T0bthread:1;"
    assert session.board.core.image.function_at(client.register(PC)) == "main()"
    client.send(b"k")
    assert session.end().code == "E820"


def test_the_target_is_described(project: Path, start: Callable[[Path], Session]) -> None:
    client = start(project).client
    assert b"qXfer:features:read+" in client.ask(b"qSupported:swbreak+")
    text = b""
    while True:
        part = client.ask(b"qXfer:features:read:target.xml:%x,40" % len(text))
        text += part[1:]
        if part.startswith(b"l"):
            break
    names = [reg.get("name") for reg in ElementTree.fromstring(text).iter("reg")]
    assert names == [name for name, _ in REGISTERS]
    memories = client.ask(b"qXfer:memory-map:read::0,fff")
    kinds = [memory.get("type") for memory in ElementTree.fromstring(memories[1:])]
    assert kinds == ["ram", "flash", "ram"]
    assert client.ask(b"vMustReplyEmpty") == b""
    assert client.ask(b"Z3,20000000,4") == b""
    assert client.ask(b"QStartNoAckMode") == b"OK"


def test_a_damaged_packet_is_asked_for_again(
    project: Path, start: Callable[[Path], Session]
) -> None:
    client = start(project).client
    client.socket.sendall(b"$?#00")
    while b"-" not in client.received:
        client.received += client.socket.recv(16)
    client.received = b""
    assert client.ask(b"?") == b"T05thread:1;"


def test_a_port_in_use_is_refused() -> None:
    server = GdbServer(0)
    with pytest.raises(EmulatorError, match=f"port {server.port} cannot be used: ") as refusal:
        GdbServer(server.port)
    assert refusal.value.code == "E870"
    server.close()


def test_a_program_without_arm_core_is_refused(project: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(project, tmp_path / "riscv")
    (folder / "Makefile").write_text("RISCV_CORE=1\n")
    board = Board.with_project(folder)
    assert board.core.architecture.title == "RISC-V"
    server = GdbServer(0)
    with pytest.raises(EmulatorError, match="RISC-V core alone"), served(server, board):
        pass
    server.close()


@pytest.mark.parametrize("words", [("--gdb", "65536", "p"), ("--gdb", "x", "p"),
    ("--gdb", "1", "--words", "w.npz"), ("--gdb", "1", "--accelerator-only", "p")],
    ids=" ".join)  # fmt: skip
def test_wrong_usage_ends_with_status_2(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        parse([*words])
    assert end.value.code == 2


def test_gdb_itself_debugs_lines_of_c(project: Path, tmp_path: Path) -> None:
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        pytest.skip("gdb-multiarch is not installed")
    command = [sys.executable, "-u", ROOT / "emulate.py", project, "--gdb", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        line = next(line for line in emulator.stdout if line.startswith("Waiting for gdb: "))
        port = line.split("target remote ")[1].split("'")[0]
        script = [
            f"target remote {port}", "break main", "continue", "next", "info line",
            "break CNN_ISR", "continue", "backtrace", "finish", "print cnn_time", "continue",
        ]  # fmt: skip
        words = [word for line in script for word in ("-ex", line)]
        said = subprocess.run(
            [gdb, "-q", "-nx", "-batch", *words, line.split()[-1]],
            capture_output=True, text=True, timeout=2 * SECONDS, cwd=tmp_path, check=False,
        )  # fmt: skip
        rest = emulator.stdout.read()
        assert emulator.wait(SECONDS) == 0
    assert "Breakpoint 1, main () at " in said.stdout, said.stderr
    assert "Breakpoint 2, CNN_ISR () at " in said.stdout
    assert "in main () at " in said.stdout.split("CNN_ISR")[-1]
    assert "$1 = 1" in said.stdout
    assert "exited normally" in said.stdout
    assert verdict(rest) == ("PASS", "(1 inference)")
