"""Projects for the RISC-V core: the Arm core starts it and sleeps until it has finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.emulator import Board, EmulatorError, compile_project
from ai8xtools.emulator.cpu.architecture import RISCV
from ai8xtools.emulator.firmware.compiling import compile_wrapper

Pair = Callable[..., Path]
START = "    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CPU1);\n"
WAKE = "MXC_SEMA->irq0 = MXC_F_SEMA_IRQ0_EN | MXC_F_SEMA_IRQ0_CM4_IRQ;"


def test_network_runs_on_the_riscv_core_and_wakes_the_arm_core(riscv_pair: Pair) -> None:
    board = Board.with_project(riscv_pair())
    outcome = board.run(10)
    assert outcome.passed
    assert outcome.exit_code == 0  # the wrapper's: its interrupt handler has run
    assert outcome.inferences == 1
    assert board.core.architecture is RISCV


def test_program_may_spin_instead_of_sleeping(riscv_pair: Pair) -> None:
    assert Board.with_project(riscv_pair(('asm volatile("wfi")', "(void) 0"))).run(10).passed


def test_arm_core_may_spin_instead_of_sleeping(riscv_pair: Pair) -> None:
    handler = "void WakeISR(void)\n{\n"
    spinning = riscv_pair(
        (handler, f"static volatile int awake;\n{handler}    awake = 1;\n"),
        ("MXC_LP_EnterSleepMode();", "while (!awake) {}"),
    )
    outcome = Board.with_project(spinning).run(10)
    assert outcome.passed
    assert outcome.exit_code == 0
    assert outcome.inferences == 1


def test_handler_may_be_an_ordinary_function(riscv_pair: Pair) -> None:
    folder = riscv_pair(('__attribute__((interrupt("machine"))) ', ""))
    assert Board.with_project(folder).run(10).passed


def test_endless_program_ends_after_it_has_passed(riscv_pair: Pair) -> None:
    forever = 'while (1) { cnn_start(); while (cnn_time == 0) asm volatile("wfi"); }'
    outcome = Board.with_project(riscv_pair((f"    {WAKE}\n", f"    {forever}\n"))).run(10)
    assert outcome.passed
    assert outcome.exit_code is None


def test_wrong_result_fails_and_names_the_word(riscv_pair: Pair) -> None:
    outcome = Board.with_project(riscv_pair(("0x0f02", "0x0f03"))).run(10)
    assert not outcome.passed
    assert outcome.failed_at == 0x50402004


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        (START, "", "E825", "it did not start the RISC-V core"),
        ('printf("\\n*** PASS ***\\n\\n");', "return 0;", "E825", "without waking the Arm core"),
        ('asm volatile("wfi");', "for (;;) {}", "E825", "waits awake in main(), in an empty loop"),
        ('asm volatile("wfi");', "for (volatile int i = 0;; i++) {}", "E822",
         "does not finish within 0.5 s"),
        ("    cnn_init();", "    *(volatile int *) 0x60000010 = 1;", "E820",
         "main() writes to address 0x60000010"),
        ("void WakeISR(void)", "void WakeISR(void", "E811", "main.c:"),
        ("    cnn_init();", "    cnn_init(;", "E811", "main_riscv.c"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(
    old: str, new: str, code: str, message: str, riscv_pair: Pair
) -> None:
    with pytest.raises(EmulatorError) as caught:
        Board.with_project(riscv_pair((old, new))).run(0.5)
    assert caught.value.code == code
    assert message in caught.value.message


def test_divides_64_bit_numbers(riscv_pair: Pair) -> None:
    statement = (
        "volatile long long a = -1234567890123LL, b = 1000; volatile unsigned long long c = ~0ULL;"
        ' printf("%d %d %u %u", (int) (a / b), (int) (a % b), (unsigned) (c / 5 >> 32),'
        " (unsigned) (c % 1000));"
    )
    folder = riscv_pair(("    cnn_init();", f"    {statement}\n    cnn_init();"))
    assert "-1234567890 -123 858993459 615" in Board.with_project(folder).run(10).console


def test_pair_may_have_any_name(riscv_pair: Pair) -> None:
    folder = riscv_pair()
    (folder / "main_riscv.c").rename(folder / "foo_riscv.c")
    (folder / "main.c").rename(folder / "foo.c")
    assert compile_project(folder).architecture is RISCV
    assert compile_wrapper(folder) is not None
    assert Board.with_project(folder).run(10).passed


def test_flash_must_hold_both_programs(riscv_pair: Pair) -> None:
    table = "__attribute__((used)) const char table[300000] = {1};\n"
    folder = riscv_pair(("int main(void)", f"{table}int main(void)"))  # in both programs
    Board.with_project(folder)
    (folder / "Makefile").write_text("TARGET ?= MAX78000\n")
    with pytest.raises(EmulatorError, match=r"needs 6\d{5} bytes of flash.* has 524288"):
        Board.with_project(folder)
