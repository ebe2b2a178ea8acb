"""Cores without an accelerator: any program, with or without peripherals."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES, CORTEX_M4, RISCV
from ai8xtools.emulator.cpu.compiler import compile_in
from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.elf import Image, read_image
from ai8xtools.emulator.cpu.io import IoArea, Unobserved
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.cpu.port import PORT
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.firmware.compiling import SDK
from tests.cores import DIFFERENT

PROGRAM = f"""
#ifdef __riscv
#define SPILL "li s0, 1\\n ret"
#else
#define SPILL "movs r4, #1\\n bx lr"
#endif
volatile unsigned *const console = (unsigned *) {PORT:#x}u;
volatile unsigned *const sensor = (unsigned *) 0x40000000u;
static volatile int table[4] = {{1, -2, 3, -4}};
int sum(int extra) {{ for (int i = 0; i < 4; i++) extra += table[i]; return extra; }}
int shifted(int value, int bits) {{ return value >> bits; }}
__attribute__((noinline,noclone)) void nine(int a, int b, int c, int d, int e, int f, int g, int h,
    int i) {{ table[0] += a + b + c + d + e + f + g + h + i; }}
void calls(void) {{ nine(10, 11, 12, 13, 14, 15, 16, 17, 18); }}
int measure(void) {{ sensor[1] = 7; return (int) sensor[0]; }}
void endless(void) {{ for (;;) *console = '.'; }}
void spin(void) {{ for (;;) __asm__ volatile (""); }}
__attribute__((naked)) void spill(void) {{ __asm__ volatile (SPILL); }}
int reset_handler(void)
{{
    for (const char *text = "hello\\n"; *text; text++)
        *console = (unsigned) *text;
    return sum(5);
}}
"""
FLAGS = (
    *("-O1", "-ffreestanding", "-nostdlib", "-Wl,--no-gc-sections", "-Wl,--entry=reset_handler"),
    *("-T", str(SDK / "link.ld")),
)


@pytest.fixture(scope="module", params=DIFFERENT)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    source = tmp_path_factory.mktemp("plain") / "plain.c"
    source.write_text(PROGRAM)
    with Workshop(source.parent) as workshop:
        return compile_in(workshop, [source], FLAGS, ARCHITECTURES[request.param])


class Sensor:
    """A peripheral with two registers."""

    def __init__(self) -> None:
        self.written: list[tuple[int, int]] = []

    @property
    def areas(self) -> tuple[IoArea, ...]:
        return (IoArea("the sensor", 0x40000000, 0x1000, lambda *_: 42, self._write),)

    def _write(self, address: int, _width: int, value: int) -> None:
        self.written.append((address, value))


class Console(Unobserved):
    def __init__(self) -> None:
        self.printed = ""

    def text(self, character: str) -> None:
        self.printed += character


def test_a_signal_ends_a_program_that_accesses_nothing(image: Image) -> None:
    class Ended(Exception):
        """The signal was handled."""

    def end(*_: object) -> None:
        raise Ended

    core = Core(image)
    before = signal.signal(signal.SIGTERM, end)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
    try:
        with pytest.raises(Ended):
            timer.start()
            core.call("spin", time_limit=10)
    finally:
        signal.signal(signal.SIGTERM, before)
        timer.join()


def test_program_runs_and_prints_on_every_core(image: Image) -> None:
    console = Console()
    assert Core(image, observer=console).run() == 3
    assert console.printed == "hello\n"


def test_functions_are_called_with_arguments(image: Image) -> None:
    core = Core(image)
    assert core.call("sum", 100) == 98
    assert core.call("shifted", -64, 3) == -8


def test_arguments_are_found_in_registers_and_on_the_stack(image: Image) -> None:
    core, found = Core(image), list[int]()
    core.take_the_place_of(
        {"nine": lambda: found.extend(core.argument(number) for number in range(9))}
    )
    core.call("calls")
    assert found == [*range(10, 19)]


def test_peripherals_answer(image: Image) -> None:
    sensor = Sensor()
    assert Core(image, sensor).call("measure") == 42
    assert sensor.written == [(0x40000004, 7)]


def test_functions_keep_the_registers_of_their_caller(image: Image) -> None:
    core = Core(image)
    assert core.keeps_registers(lambda: core.call("sum", 1))
    assert not core.keeps_registers(lambda: core.call("spill"))


def test_access_to_nothing_names_the_function(image: Image) -> None:
    with pytest.raises(EmulatorError, match=r"measure\(\) writes to address 0x40000004") as caught:
        Core(image).call("measure")
    assert caught.value.code == "E820"


def test_program_that_does_not_end_is_stopped(image: Image) -> None:
    with pytest.raises(EmulatorError, match=r"within 0\.1 s") as caught:
        Core(image).call("endless", time_limit=0.1)
    assert caught.value.code == "E822"


def test_memory_has_the_size_and_place_of_the_device(image: Image) -> None:
    small = CoreMemory(flash_bytes=0x1000, sram_bytes=0x1000, owner="small device")
    assert Core(image, memory=small).call("sum", 0) == -2
    tiny = CoreMemory(flash_bytes=0x1000, sram_bytes=8, owner="tiny device")
    with pytest.raises(EmulatorError, match="bytes of SRAM, the tiny device has 8"):
        Core(image, memory=tiny)


def test_program_of_another_family_is_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "plain.c", tmp_path / "program.elf"
    source.write_text("int reset_handler(void) { return 0; }")
    with Workshop(tmp_path) as workshop:
        image = compile_in(workshop, [source], FLAGS, CORTEX_M4)
    assert image.architecture is CORTEX_M4
    program.write_bytes(b"\x7fELF\x01\x01" + bytes(12) + b"\x28\x00" + bytes(32))
    with pytest.raises(EmulatorError, match="not a program for the RISC-V core") as refused:
        read_image(program, RISCV)
    assert refused.value.code == "E804"
