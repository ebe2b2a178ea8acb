"""Bytes that programs receive over a UART."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.sensors import Recorded, Sensors, line_pair
from ai8xtools.emulator.sensors.serial import CONSOLE

PROGRAM = Path(__file__).with_name("firmware") / "uart.c"
SENT = b"ABcde12 word\na line\ntranasyncopydma!x"


def test_every_way_of_receiving(tmp_path: Path) -> None:
    """In the end it waits for more than there is, and its network has not run."""
    shutil.copy(PROGRAM, tmp_path / "main.c")
    board = Board.with_project(tmp_path, recorded=Recorded(uart=SENT))
    with pytest.raises(EmulatorError, match=f"UART, and all {len(SENT)} bytes") as caught:
        board.run(10)
    assert board.console.split("\n") == [
        "registers:A", "character:B", "fifo:cde", "scanf:word", "fgets:a line", "",
        "transaction:tran", "async:asyn", "transaction by DMA:copy", "DMA:dma!", "interrupt:x", "!",
    ]  # fmt: skip
    assert (caught.value.code, board.sensors.delivered) == ("E825", f"{len(SENT)} bytes")


class _Board:
    """A board whose time only tests let pass."""

    def __init__(self, uart: bytes) -> None:
        self.now, self.ended = 0.0, False
        self.sensors = Sensors(Recorded(uart=uart))
        self.sensors.attach(lambda _address, _data: None, lambda: self.now, self.wait, self.end)

    def wait(self, microseconds: float) -> None:
        self.now += microseconds

    def end(self) -> None:
        self.ended = True


def test_registers_tell_what_was_received() -> None:
    board = _Board(bytes(range(1, 11)))
    uart = board.sensors.serial
    status, fifo = CONSOLE + 0x04, CONSOLE + 0x20
    assert uart.read(status) == 8 << 8 | 1 << 6 | 1 << 5
    assert [uart.read(fifo) for _ in range(9)] == [*range(1, 10)]
    assert (uart.read(status), uart.read(CONSOLE + 0x0C)) == (1 << 8 | 1 << 6, 1 << 4)
    assert (uart.read(fifo), uart.read(status)) == (10, 1 << 6 | 1 << 4)
    assert not board.sensors.interrupts
    assert (uart.read(CONSOLE + 0x10), uart.read(CONSOLE - 4)) == (None, None)


def test_a_line_is_sent_after_the_one_before_was_taken() -> None:
    """Programs that take all there is, and then execute it, get one command at a time."""
    uart = _Board(b"on\r\nof").sensors.serial
    assert bytes(uart.take() for _ in range(3)) == b"on\r"
    assert (uart.level(), uart.level(), uart.take(), uart.level()) == (0, 3, 10, 0)
    assert uart.level() == 2


def test_a_program_that_does_nothing_but_look_ends() -> None:
    """What its sensors and its network do meanwhile counts; one that only waits ends at once."""
    board = _Board(b"")
    uart = board.sensors.serial
    for _ in range(3):
        for _ in range(20_000):
            assert uart.level() == 0
        assert not board.ended
        board.sensors.news()
    uart.wait()
    assert board.ended and board.sensors.ended == "uart"


def test_bytes_interrupt_in_their_time() -> None:
    board = _Board(b"ab")
    uart = board.sensors.serial
    assert uart.next_us(alone=True, spins=False) == 0xFFFFFFFF and not board.ended
    uart.write(CONSOLE + 0x08, 1 << 4)
    assert uart.next_us(alone=True, spins=False) == 87 and not uart.interrupts()
    board.wait(87)
    assert uart.interrupts() and uart.level() == 1
    assert (uart.take(), uart.level(), uart.interrupts()) == (ord("a"), 0, False)
    assert (uart.level(), uart.take()) == (1, ord("b"))
    for _ in range(100):  # it may compute what it does with them
        uart.next_us(alone=True, spins=True)
    assert not board.ended
    uart.next_us(alone=True, spins=False)
    assert board.ended


def test_the_option_names_a_file_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["project", "--uart", "typed.txt"]).played.uart == "typed.txt"
    with pytest.raises(SystemExit):
        parse(["--words", "words.npz", "--uart", "typed.txt"])
    assert "--uart need PROJECT_DIR and a program with main()" in capsys.readouterr().err


def test_a_line_with_somebody_at_its_end_does_not_interrupt() -> None:
    end, _other = line_pair()
    sensors = Sensors(Recorded(line=end))
    sensors.serial.write(CONSOLE + 0x08, 1 << 4)
    assert not sensors.interrupts
    assert sensors.serial.next_us(alone=True, spins=False) == 0xFFFFFFFF
    assert sensors.ended is None
