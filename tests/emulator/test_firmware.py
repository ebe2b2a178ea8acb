"""A project of C files is compiled as it is and runs from reset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.emulator import Board, EmulatorError, compile_project
from ai8xtools.emulator.firmware.compiling import target_of
from device import MAX78000

Variant = Callable[..., Path]


def run(folder: Path, seconds: float = 10) -> str:
    """Run the project and return its verdict and what it printed."""
    outcome = Board.with_project(folder).run(seconds)
    return f"{outcome.passed} {outcome.console}"


def test_program_runs_to_pass(project: Path) -> None:
    outcome = Board.with_project(project).run(10)
    assert outcome.passed
    assert outcome.exit_code == 0
    assert outcome.inferences == 1
    assert outcome.console == "\n*** CNN Inference Test by-hand ***\n\n*** PASS ***\n\n"
    assert outcome.run is not None
    assert outcome.run.findings == []


def test_project_is_found_from_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.parent)
    assert run(Path(project.name)).startswith("True")


@pytest.mark.parametrize("wait", ["(void) 0", "MXC_Delay(1000)"])
def test_program_that_does_not_sleep_is_interrupted(variant: Variant, wait: str) -> None:
    assert run(variant(("MXC_LP_EnterSleepMode()", wait))).startswith("True")


def test_interrupt_is_delivered_once_for_each_start(variant: Variant) -> None:
    again = "cnn_start(); while (cnn_time == 0) MXC_LP_EnterSleepMode(); cnn_start();"
    outcome = Board.with_project(variant(("    cnn_start();", f"    {again}"))).run(10)
    assert outcome.passed
    assert outcome.inferences == 2


def test_endless_program_ends_after_it_has_passed_and_starts_over(variant: Variant) -> None:
    forever = "while (1) { cnn_start(); while (cnn_time == 0) MXC_LP_EnterSleepMode(); }"
    outcome = Board.with_project(variant(("    cnn_disable();\n", f"    {forever}\n"))).run(10)
    assert outcome.passed
    assert outcome.exit_code is None


def test_stopped_network_continues(variant: Variant) -> None:
    stop = "*(volatile uint32_t *) 0x50100000 &= ~1; *(volatile uint32_t *) 0x50100000 |= 1;"
    assert run(variant(("    cnn_start();", f"    cnn_start(); {stop}"))).startswith("True")


def test_wrong_result_fails_and_names_the_word(variant: Variant) -> None:
    outcome = Board.with_project(variant(("0x0f02", "0x0f03"))).run(10)
    assert not outcome.passed
    assert outcome.failed_at == 0x50402004
    assert "Data mismatch (2/4) at address 0x50402004: Expected 0x00000f03" in outcome.console


def test_kernels_read_back_as_columns(variant: Variant) -> None:
    """Packed writes and plain reads meet in the same columns."""
    check = "if (*(volatile uint32_t *) 0x50180004 != 0x40 << 0) fail();"
    check += " if (*(volatile uint32_t *) 0x5018c014 != 0x40) fail();"
    assert run(variant(("    cnn_load_bias();\n", f"    cnn_load_bias(); {check}\n"))).startswith(
        "True"
    )


def test_transposing_read_port_delivers_planar_pixels(variant: Variant) -> None:
    read = """
    *(volatile uint32_t *) 0x50100310 = 0x800;
    *(volatile uint32_t *) 0x50100a10 = 0;
    *(volatile uint32_t *) 0x50100000 = 0x8 | 1 << 16 | 1 << 17;
    (void) *(volatile uint32_t *) 0x50101000;
    if (*(volatile uint32_t *) 0x50101000 != 0x19140f0a) fail();
    *(volatile uint32_t *) 0x50100000 = 0x8;
    cnn_unload(result);"""
    assert run(variant(("    cnn_unload(result);", read))).startswith("True")


@pytest.mark.parametrize(
    ("statement", "printed"),
    [
        ('printf("%d|%5u|%-4s|%08x|%%|%c", -5, 7u, "a", 0xbeefu, 65);',
         "-5|    7|a   |0000beef|%|A"),
        ('printf("[%7d] %d.%d%%", -12, 99, 5);', "[    -12] 99.5%"),
        ('printf("%lld %llu", -1234567890123LL, 18446744073709551615ULL);',
         "-1234567890123 18446744073709551615"),
        ("volatile long long a = -1234567890123LL, b = 1000;"
         ' printf("%d %d", (int) (a / b), (int) (a % b));', "-1234567890 -123"),
        ("volatile unsigned long long a = ~0ULL, b = 3; char t[2] = {0};"
         ' memset(t, (int) (a / b % 100), 1); printf("%d", t[0]);', "5"),
    ],
)  # fmt: skip
def test_c_library_prints_and_divides(statement: str, printed: str, variant: Variant) -> None:
    assert printed in run(variant(("    cnn_init();", f"    {statement}\n    cnn_init();")))


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("    cnn_init();", "    cnn_init(;", "E811", "error: expected expression"),
        ("    cnn_init();", "    unknown();", "E811", "function 'unknown'"),
        ("int check_output", "static int check", "E811", "check_output"),
        ("    cnn_init();", "    *(volatile int *) 0x60000010 = 1;", "E820",
         "main() writes to address 0x60000010, where the chip has nothing"),
        ("    cnn_start();", "    (void) *(volatile int *) 0x50080000;", "E820",
         "main() reads address 0x50080000, where the chip has nothing"),
        ("    cnn_start();", "    (void) *(volatile int *) 0x55fff000;", "E820", "0x55fff000"),
        ("    cnn_start();", "    (void) *(volatile int *) 0x50408000;", "E825", "not started"),
        ("    cnn_init();", "    *(volatile int *) 0x10000000 = 1;", "E820",
         "main() writes to address 0x10000000, which is not writable"),
        ("    cnn_init();", '    asm volatile(".word 0xffffffff");', "E820",
         "main() fails at 0x1000"),
        ("    cnn_init();", "    for (volatile int i = 0;; i++) {}", "E822",
         "does not finish within 0.5 s"),
        ("    cnn_init();", "    while (1) {}", "E825",
         "waits awake in main(), in an empty loop: the accelerator was not started"),
        ("    cnn_start();", "    ", "E825", "nothing wakes it: the accelerator was not started"),
        ("0x50108004", "0x50108804", "E830", "0x50108804 (group 0 bias 513)"),
        ("    cnn_configure();", "    ", "E831", "there is nothing to execute"),
        ("MXC_GCFR->reg0 = 0x1", "MXC_GCFR->reg0 = 0x0", "E834", "its power is off"),
        ("MXC_GCFR->reg0 = 0x1", "MXC_GCFR->reg0 = 0x2", "E834", "group 0 is started, but it is not"
         " usable: no power"),
        ("reg1 = 0x1", "reg1 = 0x2", "E834", "no power for its kernels"),
        ("reg2 = 0xe", "reg2 = 0xf", "E834", "isolated"),
        ("reg3 = 0x0", "reg3 = 0x1", "E834", "in reset"),
        ("MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CNN)", "(void) 0", "E834", "its clock is off"),
        ("0x00100009", "0x00100001", "E834",
         "group 0 takes part in layer 0, but is not enabled"),
        ("    cnn_init();", "    abort();", "E824", "abort()"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(
    old: str, new: str, code: str, message: str, variant: Variant
) -> None:
    with pytest.raises(EmulatorError) as caught:
        run(variant((old, new)), 0.5)
    assert caught.value.code == code
    assert message in caught.value.message


def test_failing_program_ends_though_it_loops(variant: Variant) -> None:
    assert run(variant(("    cnn_init();", "    fail();"))).startswith("False")


def test_folder_without_c_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="no C files"):
        compile_project(tmp_path)
    with pytest.raises(EmulatorError, match="no such folder"):
        compile_project(tmp_path / "missing")


def test_missing_compiler_is_explained(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EmulatorError) as caught:
        compile_project(project)
    assert caught.value.code == "E810"
    assert "pip install ziglang" in (caught.value.remedy or "")


def test_nothing_is_written_into_the_project(project: Path) -> None:
    before = sorted(project.iterdir())
    compile_project(project)
    assert sorted(project.iterdir()) == before


def project_for(folder: Path, chip: str) -> Path:
    """Give the project a Makefile as generated ones have."""
    (folder / "Makefile").write_text(f"# Device\nTARGET ?= {chip}\n")
    return folder


def test_makefile_tells_the_chip_and_its_memory_suffices(variant: Variant) -> None:
    folder = project_for(variant(), "MAX78000")
    assert target_of(folder) is MAX78000
    assert run(folder).startswith("True")


@pytest.mark.parametrize("makefile", [None, "TARGET = MAX32690\n", "all:\n"])
def test_target_is_unknown_without_a_makefile_that_tells(
    tmp_path: Path, makefile: str | None
) -> None:
    if makefile is not None:
        (tmp_path / "Makefile").write_text(makefile)
    assert target_of(tmp_path) is None


@pytest.mark.parametrize(
    ("object_definition", "memory", "size"),
    [
        ("__attribute__((used)) const char table[600000] = {1};", "flash", 0x80000),
        ("__attribute__((used)) char buffer[200000];", "SRAM", 0x20000),
        ("__attribute__((used)) char buffer[200000] = {1};", "SRAM", 0x20000),
    ],
)
def test_program_that_does_not_fit_is_refused_with_the_sizes(
    variant: Variant, object_definition: str, memory: str, size: int
) -> None:
    folder = project_for(variant(("int main(void)", f"{object_definition}\nint main(void)")), "85")
    with pytest.raises(EmulatorError, match=rf"needs \d{{6}} bytes of {memory}.* has {size}"):
        Board.with_project(folder)
    (folder / "Makefile").write_text("TARGET ?= MAX78002\n")
    Board.with_project(folder)


def test_stack_ends_where_the_memory_of_the_chip_ends(variant: Variant) -> None:
    deep = "char big[150000]; memset(big, 1, sizeof(big)); cnn_start();"
    with pytest.raises(EmulatorError, match="where the chip has nothing"):
        run(project_for(variant(("    cnn_start();", f"    {deep}")), "MAX78000"))


def test_project_of_another_tool_needs_nothing_but_its_c_files(variant: Variant) -> None:
    """Other file names, no Makefile, one file for all, older names of the vendor's SDK."""
    folder = variant(
        ('#include "mxc.h"', '#include "mxc_device.h"\n#include "mxc_sys.h"\n#include "icc.h"'),
        ('#include "gcfr_regs.h"', '#include "bbfc_regs.h"\n#include "fcr_regs.h"'),
        ("MXC_GCFR->", "MXC_BBFC->"),
        ("MXC_LP_EnterSleepMode();", "__WFI();"),
        ("    cnn_disable();\n", "    LED_Toggle(LED1); __NOP(); cnn_disable();\n"),
        ("MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CNN)",
         "MXC_GCR->pclkdis0 &= ~MXC_F_GCR_PCLKDIS0_CNN"),
    )  # fmt: skip
    text = "".join((folder / name).read_text() for name in ("cnn.c", "main.c"))
    (folder / "main.c").unlink()
    (folder / "cnn.c").unlink()
    (folder / "whole_network.c").write_text(text)
    assert run(folder).startswith("True")


def test_search_for_wrong_words_that_runs_out_of_time_is_not_complete(variant: Variant) -> None:
    board = Board.with_project(variant(("0x0f02", "0x0f03")))
    board.run(10)
    assert board.wrong_words() == ([(0x50402004, 0xF03, 0xF02)], True)
    assert board.wrong_words(0.0) == ([], False)
