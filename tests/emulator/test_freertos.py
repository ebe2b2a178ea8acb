"""Firmware with FreeRTOS: tasks, queues, semaphores, notifications, events, timers, buffers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.emulator.conftest import PROJECT, Emulate
from tests.emulator.trees import verdict

FIRMWARE = Path(__file__).with_name("firmware") / "freertos"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """The project by hand, with its main() replaced by tasks."""
    folder = tmp_path / "tasks"
    shutil.copytree(PROJECT, folder)
    shutil.copytree(FIRMWARE, folder, dirs_exist_ok=True)
    program = (folder / "main.c").read_text()
    (folder / "main.c").write_text(program.split("int main(void)")[0])
    return folder


def test_tasks_share_the_network(tasks: Path, run: Emulate) -> None:
    """A frame comes every 50 ticks; when none has come for 200, the program ends."""
    status, text = run(tasks)
    assert status == 0, text
    lines = [line for line in text.splitlines() if line.startswith("frame ")]
    assert [line.split(" at ")[0] for line in lines] == ["frame 0", "frame 1", "frame 2"]
    times = [int(line.split()[-1]) for line in lines]
    assert all(
        abs(found - wanted) <= 1 for found, wanted in zip(times, (50, 100, 150), strict=True)
    )
    # of four tasks one has ended; the idle task and that of the timers are two more
    assert "4 beats, 5 tasks, priority 2, log\n" in text
    assert verdict(text) == ("PASS", "(3 inferences)")
    assert "headers that are not here" not in text


def test_kernel_in_the_tree_is_left_out(tasks: Path, run: Emulate) -> None:
    """It is made for the exceptions of the core, by which tasks cannot be switched here."""
    kernel = tasks / "FreeRTOS"
    kernel.mkdir()
    head = "/*\n * FreeRTOS Kernel V10.4.6\n */\n#error of the kernel\n"
    for name in ("tasks.c", "port.c", "heap_4.c", "FreeRTOS.h", "portmacro.h"):
        (kernel / name).write_text(head)
    (tasks / "Makefile").write_text(
        "TARGET=MAX78000\nVPATH=. FreeRTOS\nIPATH=. FreeRTOS\n"
        "SRCS=main.c program.c cnn.c tasks.c port.c heap_4.c\n"
    )
    status, text = run(tasks)
    assert status == 0, text


def test_tasks_on_the_other_core_are_refused(tasks: Path, run: Emulate) -> None:
    (tasks / "Makefile").write_text("TARGET=MAX78000\nRISCV_CORE=1\n")
    status, text = run(tasks)
    assert status == 1
    assert "() of FreeRTOS is used by the program of the RISC-V core" in text


def test_tasks_that_wait_for_ever_are_told(
    tasks: Path, run: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai8xtools.emulator.firmware.progress.PATIENCE", 100)
    program = tasks / "program.c"
    program.write_text(program.read_text().replace("xSemaphoreGiveFromISR(done, &woken);", ""))
    status, text = run(tasks)
    assert status == 1
    assert "E825 the program sleeps and only its timers wake it" in text
    assert "the accelerator has finished" in text
