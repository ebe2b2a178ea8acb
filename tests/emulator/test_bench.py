"""A program with a serial line in the emulator, in the place of a board: data sets through it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.commands.emulate import bench
from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulated_board import EmulatedBoard, runner_of
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator.sensors import Line
from ai8xtools.reading.system import Terminal
from tests.bench.lines import Fault, Noise
from tests.emulator.conftest import Emulate
from tests.emulator.test_applications import CHIP, CORE, create

INPUTS = 6
Runner = Callable[[Line], None]


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("chip"), CHIP, "bench")


@pytest.fixture(scope="module")
def board(chip: Path) -> Runner:
    """What runs the program, in the place of a board."""
    return runner_of(chip, None, parse([str(chip)]))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "inputs.npy"
    np.save(path, np.random.default_rng(0).integers(-128, 128, (INPUTS, 1, 8, 8), np.int8))
    return path


class Faulty:
    """A line to a board that restarts after each of the numbers of requests, with faults."""

    def __init__(self, run: Runner, resets: tuple[int, ...] = (), faults: int = 0) -> None:
        rng = random.Random(1)
        kinds = ["lose", "double", "change", "noise"]
        made = [Fault(rng.randrange(400), rng.choice(kinds), rng.getrandbits(60))
                for _ in range(2 * faults)]  # fmt: skip
        self._there, self._back = Noise(made[:faults]), Noise(made[faults:])
        self._run, self._resets, self._written = run, resets, 0
        self._board = EmulatedBoard(run).__enter__()

    def close(self) -> None:
        self._board.__exit__()

    def read(self, seconds: float) -> bytes:
        return self._back.of(self._board.read(seconds))

    def write(self, data: bytes) -> None:
        self._written += 1
        if self._written in self._resets:
            self.close()
            self._board = EmulatedBoard(self._run).__enter__()
        self._board.write(self._there.of(data))


@contextlib.contextmanager
def plugged(monkeypatch: pytest.MonkeyPatch, line: Any) -> Iterator[None]:
    """Have the port lead to a line."""

    @contextlib.contextmanager
    def opened(_name: str, _baud: int) -> Iterator[Any]:
        yield line

    monkeypatch.setattr(bench, "opened", opened)
    try:
        yield
    finally:
        line.close()


def test_a_board_is_as_emulator_and_simulation_whatever_the_line_does(
    chip: Path, board: Runner, data: Path, run: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Faulty(board, resets=(3, 9), faults=12)
    with plugged(monkeypatch, line):
        status, text = run(chip, "--serial", "tty", "--baud", "921600", "--input", data)
    assert status == 0
    assert "Board at tty: network net, input 1x8x8, output 10x1x1 of 32 bits\n" in text
    retries, resets = map(int, re.findall(r"requests repeated: (\d+), restarts.*: (\d+)", text)[0])
    assert retries >= 8 and resets >= 2
    assert "An inference took 77 µs (median; longest: 77 µs); estimated by the emulator: 77" in text
    assert f"As the emulator: {INPUTS} inputs\n" in text
    assert f"As the simulation of digits-chw-ai85.yaml: {INPUTS} inputs\n" in text
    assert text.endswith(f"PASS ({INPUTS} inputs on the board)\n")


def test_the_same_without_accelerator_and_accuracy(
    data: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = create(tmp_path, CORE, "bench")
    labels = tmp_path / "labels.npy"
    np.save(labels, np.zeros(INPUTS, np.int64))
    line = Faulty(runner_of(core, "cortex-m4", parse([str(core)])))
    with plugged(monkeypatch, line):
        status, text = run(core, "--serial", "tty", "--input", data, "--labels", labels)
    assert status == 0 and "requests repeated: 0, restarts of the board: 0\n" in text
    assert f"As the simulation of digits-chw-ai85.yaml: {INPUTS} inputs\n" in text
    assert "An inference took" not in text  # its clock is to be written
    assert "==> Confusion:" in text and "Accuracy of the firmware: " in text
    np.save(labels, np.full(INPUTS, 400))
    with plugged(monkeypatch, line):
        status, text = run(core, "--serial", "tty", "--input", data, "--labels", labels)
    assert status == 1 and "a label is 400; the network has 10 outputs" in text
    assert "Board at" not in text


def test_a_board_that_computes_something_else_fails(
    chip: Path, data: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bit of a bias is another one: only the board has it."""
    other = create(tmp_path, CHIP, "bench")
    source = other / "main.c"
    text = source.read_text()
    good = "return (uint8_t)(value >> (8u * (at % shape[3])));"
    assert good in text
    source.write_text(text.replace(good, good.replace("value", "(value ^ (input[9] > 0))")))
    line = Faulty(runner_of(other, None, parse([str(other)])))
    with plugged(monkeypatch, line):
        status, text = run(chip, "--serial", "tty", "--input", data)
    wrong = int((np.load(data)[:, 0, 1, 1] > 0).sum())
    assert status == 1 and 0 < wrong < INPUTS
    assert f"{wrong} of {INPUTS} inputs depart from the emulator:\n  input " in text
    assert f"{wrong} of {INPUTS} inputs depart from the simulation of digits-chw" in text
    assert text.endswith("FAIL\n")


def test_silent_boards_and_other_networks_end_in_a_message(
    chip: Path, board: Runner, data: Path, run: Emulate, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    class Silent:
        def read(self, seconds: float) -> bytes:  # noqa: ARG002
            return b""

        def write(self, data: bytes) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr(bench, "_LEAST_SECONDS", 0.01)
    with plugged(monkeypatch, Silent()), pytest.raises(ToolError, match="not answer") as caught:
        run(chip, "--serial", "tty", "--baud", "10000000", "--input", data)
    assert caught.value.code == "E886"
    other = tmp_path / "net"
    other.mkdir()
    for file in filter(Path.is_file, chip.iterdir()):
        text = file.read_bytes()
        (other / file.name).write_bytes(text.replace(b"0x6E, 0x65, 0x74,", b"0x6E, 0x65,"))
    monkeypatch.setattr(bench, "_LEAST_SECONDS", 1.0)
    with plugged(monkeypatch, Faulty(board)), pytest.raises(ToolError, match="has network net,"):
        run(other, "--serial", "tty", "--input", data)


def test_a_pseudo_terminal_is_a_port_of_the_board(
    chip: Path, board: Runner, data: Path, run: Emulate
) -> None:
    """As --serve does it, through pyserial."""
    pytest.importorskip("serial")
    terminal, done = Terminal.opened(), threading.Event()
    if terminal is None:
        pytest.skip("this system has no pseudo-terminals")
    assert Path(terminal.name).exists()

    class Ended(Exception):
        pass

    class Theirs:
        def read(self, seconds: float) -> bytes:
            if done.is_set():
                raise Ended
            return terminal.read(seconds)

        def write(self, data: bytes) -> None:
            terminal.write(data)

    def serve() -> None:
        with contextlib.suppress(Ended), EmulatedBoard(board) as emulated:
            bench.relay(emulated, Theirs())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        status, text = run(chip, "--serial", terminal.name, "--input", data)
    finally:
        done.set()
        thread.join()
    assert status == 0 and text.endswith(f"PASS ({INPUTS} inputs on the board)\n")


def test_what_is_wrong_with_inputs_is_told_before_a_port_is_opened(
    chip: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(_name: str, _baud: int) -> None:
        raise AssertionError

    monkeypatch.setattr(bench, "opened", opened)
    np.save(tmp_path / "wrong.npy", np.zeros((2, 1, 7, 8), np.int8))
    status, text = run(chip, "--serial", "tty", "--input", tmp_path / "wrong.npy")
    assert status == 1 and "E816 the input must have the shape 1x8x8" in text


def test_serving_ends_with_control_c_and_needs_pseudo_terminals(
    chip: Path, run: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pressed:
        name = "/dev/pts/9"
        sent = b""

        def __enter__(self) -> Pressed:
            return self

        def __exit__(self, *_raised: object) -> None:
            pass

        def read(self, seconds: float) -> bytes:  # noqa: ARG002
            if self.sent:
                raise KeyboardInterrupt
            return b""

        def write(self, data: bytes) -> None:
            Pressed.sent += data

    monkeypatch.setattr(bench.Terminal, "opened", Pressed)
    status, text = run(chip, "--serve")
    assert status == 0
    assert text == "Serial port: /dev/pts/9 (until Ctrl-C)\nDONE (the board is switched off)\n"
    assert Pressed.sent.startswith(b"\0") and b"net" in Pressed.sent
    monkeypatch.setattr(bench.Terminal, "opened", lambda: None)
    status, text = run(chip, "--serve")
    assert status == 1 and "E805 this system has no pseudo-terminals" in text


def test_programs_for_any_core_need_the_name_of_one(
    data: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = create(tmp_path, ("--device", "MCU"), "bench")
    for words in (("--serve",), ("--serial", "tty", "--input", data)):
        status, text = run(project, *words)
        assert status == 1 and "E805" in text and "Name one with --core: cortex-m0plus" in text
    line = Faulty(runner_of(project, "rv32imc", parse([str(project)])))
    with plugged(monkeypatch, line):
        status, text = run(project, "--serial", "tty", "--input", data, "--core", "rv32imc")
    assert status == 0 and f"As the emulator: {INPUTS} inputs\n" in text


def test_a_program_that_never_answers_is_told_of(
    chip: Path, data: Path, run: Emulate, tmp_path: Path
) -> None:
    """Without a board: its twin in the emulator is the first that has to answer."""
    other = create(tmp_path, CHIP, "bench")
    source = other / "sensor.c"
    text = source.read_text()
    source.write_text(text.replace("MXC_UART_GetRXFIFOAvailable(LINE) != 0", "0"))
    assert source.read_text() != text
    with pytest.raises(ToolError, match="the board does not answer") as caught:
        run(other, "--serial", "tty", "--input", data, "--time-limit", "1")
    assert caught.value.place == f"{other} in the emulator"
    assert caught.value.remedy == "Give it more time with --time-limit."


def test_programs_that_wait_for_a_line_are_not_run_without_one(
    chip: Path, run: Emulate, project: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = run(chip)
    assert status == 1 and "E805 the program takes inputs over a serial line, and nothing" in text
    assert "Add --serve" in text and "--application minimal" in run(chip, "--power")[1]
    for words in (("--serve",), ("--serial", "tty", "--input", data)):
        status, text = run(project, *words)
        assert status == 1 and "E805 the program of the project takes no inputs over a" in text
    for words in (("--serial", "tty"), ("--baud", "9600"), ("--serve", "--input", data),
                  ("--serial", "tty", "--input", data, "--fast"), ("--serve", "--gdb", "0"),
                  ("--serial", "tty", "--input", data, "--baud", "0")):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            run(chip, *words)
        assert ended.value.code == 2
    capsys.readouterr()


def test_heads_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All outputs go back as they are."""
    with pytest.raises(DiagnosticError, match="--application bench"):
        create(tmp_path, CHIP, "bench", "--head", "top-k")
    with pytest.raises(SystemExit):
        create(tmp_path, CORE, "bench", "--head", "top-k")
    assert "--application bench gives all outputs back" in capsys.readouterr().err
    assert not os.listdir(tmp_path)
