"""The pair of programs for both cores: what each does in which order, and how they are built."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.synthesis.emit import check_options
from ai8xtools.synthesis.emit.buildfiles import build_files
from ai8xtools.synthesis.program import FifoStream, Power
from ai8xtools.writing.folder import write_project
from device import MAX78002
from tests.synthesis.programs import emit, options, program, store, words

FAST = FifoStream(0, 0x400C0410, 0x400C0404, 2, words(1, 2, 3))
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "debugged, exclusive, deep sleep": {
        "riscv_debug": True, "riscv_exclusive": True, "deepsleep": True,
    },
    "spinning": {"no_wfi": True, "timer": 1, "softmax": True},
    "energy": {"energy": True},
    "forever, trimmed": {"forever": True, "clock_trim": (1, 2, 3)},
    "single file": {"api_filename": "none", "c_filename": "net"},
}  # fmt: skip


def assert_order(text: str, *wanted: str) -> None:
    position = 0
    for part in wanted:
        found = text.find(part, position)
        assert found >= 0, f"{part} is not behind what comes before it"
        position = found + len(part)


def main_of(text: str) -> str:
    return text[text.index("int main(void)") :]


def test_arm_core_starts_the_other_one_and_sleeps() -> None:
    files = emit(riscv=True)
    assert_order(
        files["main.c"],
        "void WakeISR(void)",
        "MXC_SEMA->irq0 = MXC_F_SEMA_IRQ0_EN & ~MXC_F_SEMA_IRQ0_CM4_IRQ;",
        "MXC_ICC_Enable(MXC_ICC0);",
        "MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);",
        "SystemCoreClockUpdate();",
        "MXC_FCR->urvbootaddr = (uint32_t) &__FlashStart_;",
        "MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_SMPHR);",
        "MXC_NVIC_SetVector(RISCV_IRQn, WakeISR);",
        "MXC_Delay(SEC(2));",
        "MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CPU1);",
        "MXC_LP_EnterSleepMode();",
    )
    assert "cnn_" not in files["main.c"] and "urvctrl" not in files["main.c"]


def test_riscv_core_runs_the_network_and_wakes_the_other_one() -> None:
    files = emit(riscv=True)
    assert_order(
        files["main_riscv.c"],
        '__attribute__ ((section(".rvflash_section")))\nstatic const uint32_t input_0[]',
        "MXC_ICC_Enable(MXC_ICC1);",
        "cnn_enable(",
        "cnn_start();",
        'asm volatile("wfi");',
        "check_output()",
        "cnn_disable();",
        "MXC_SEMA->irq0 = MXC_F_SEMA_IRQ0_EN | MXC_F_SEMA_IRQ0_CM4_IRQ;",
        "return 0;",
    )
    assert "MXC_SYS_Clock_Select" not in files["main_riscv.c"]
    assert_order(
        files["cnn.c"],
        'void __attribute__((interrupt("machine"))) CNN_IRQHandler(void)',
        "NVIC_ClearPendingIRQ(CNN_IRQn);",
        "NVIC_ClearPendingEVENT(CNN_IRQn);",
        "__enable_irq();",
        "NVIC_EnableIRQ(CNN_IRQn);",
        "NVIC_EnableEVENT(CNN_IRQn);",
    )
    assert "MXC_NVIC_SetVector" not in files["cnn.c"]


def test_options_of_the_pair() -> None:
    files = emit(riscv=True, riscv_debug=True, riscv_exclusive=True, deepsleep=True, debugwait=0)
    assert "Debug_Init();" in files["main_riscv.c"]
    assert "MXC_FCR->urvctrl |= 0x00000001;" in files["main.c"]
    assert_order(
        files["main.c"],
        "MXC_PWRSEQ->lppwen |= MXC_F_PWRSEQ_LPPWEN_CPU1;",
        "MXC_LP_EnterLowPowerMode();",
    )
    assert "MXC_Delay" not in files["main.c"]


def test_arm_core_spins_until_the_interrupt() -> None:
    files = emit(riscv=True, no_wfi=True)
    assert_order(main_of(files["main.c"]), "riscv_done = 0;", "while (riscv_done == 0) {")
    assert "riscv_done = 1;" in files["main.c"]
    assert "wfi" not in files["main_riscv.c"]


@pytest.mark.parametrize("changes", [{"energy": True}, {"forever": True}, {"one_shot": True}])
def test_riscv_core_never_calls_the_sleep_functions_of_the_arm_core(
    changes: dict[str, Any],
) -> None:
    text = emit(riscv=True, deepsleep=True, **changes)["main_riscv.c"]
    assert "MXC_LP_" not in text and 'asm volatile("wfi");' in text


def test_pll_is_turned_on_by_one_core_and_off_by_the_other() -> None:
    made = program(chip=MAX78002, power=Power(15, 10, "IPLL", 4, 1, 50.0))
    files = emit(made, riscv=True)
    assert "ipll_ctrl |= " in files["main.c"] and "ipll_ctrl |= " not in files["main_riscv.c"]
    assert "ipll_ctrl &= " in files["main_riscv.c"] and "ipll_ctrl &= " not in files["main.c"]


def test_fast_fifo_has_its_own_registers() -> None:
    text = emit(program(inputs=(), fifo=(FAST,)), riscv=True)["main_riscv.c"]
    assert "while ((*((volatile uint32_t *) 0x400c0404) & 0x2) != 0) {" in text
    assert "*((volatile uint32_t *) 0x400c0410) = *in0++;" in text
    assert_order(main_of(text), "cnn_start();", "load_input();")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"deepsleep": True}, [("E095", "option --deepsleep")]),
        ({"fast_fifo": True}, [("E095", "option --fast-fifo")]),
        ({"riscv": True, "riscv_cache": False}, [("E092", "option --no-riscv-cache")]),
        ({"riscv": True, "deepsleep": True, "fast_fifo": True}, []),
        ({"riscv_cache": False}, []),
        ({"riscv": True, "api_filename": "main.c"}, [("E072", "option --api-filename")]),
    ],
)
def test_what_needs_the_riscv_core(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert [(d.code, str(d.place)) for d in check_options(options(**changes))] == found


@pytest.mark.parametrize("variant", VARIANTS)
def test_compiles_for_the_core_that_runs_it(variant: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="needs a compiler for RISC-V")
    from ai8xtools.emulator.firmware.compiling import SDK

    changes = VARIANTS[variant]
    arm = f"{changes.get('c_filename', 'main')}.c"
    folder = store(emit(riscv=True, **changes), tmp_path / "net")
    targets = {
        "riscv32-freestanding": [f for f in sorted(folder.glob("*.c")) if f.name != arm],
        "thumb-freestanding-eabi": [folder / arm],
    }
    for target, sources in targets.items():
        cpu = "generic_rv32+m+c" if target.startswith("riscv") else "cortex_m4+soft_float"
        result = subprocess.run(
            [
                *(sys.executable, "-m", "ziglang", "cc", "-target", target, f"-mcpu={cpu}"),
                *("-std=gnu11", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wcast-align"),
                *("-Werror", "-I", str(folder), "-I", str(SDK / "include"), "-c"),
                *map(str, sources),
            ],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr


def test_environments_know_the_combined_file() -> None:
    made = build_files(MAX78002, options(riscv=True))
    settings = json.loads(made[".vscode/settings.json"])
    assert settings["program_file"] == "${config:project_name}-combined.elf"
    assert settings["symbol_file"] == "${config:project_name}.elf"
    assert "build/net-combined.elf" in made["net.launch"]
    assert "riscv-none-embed-" in made[".cproject"] and "RV32" in made[".cproject"]
    assert "project.mk" not in made


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_makefiles_build_both_programs_and_join_them(tmp_path: Path) -> None:
    made = build_files(
        MAX78002,
        options(riscv=True, define="A", c_filename="my", api_filename="own.c", name="net"),
    )
    write_project(made, tmp_path / "net")
    joined = _build(tmp_path)
    assert "arm: my.c / -Wall -Wcast-align -DMXC_ASSERT_ENABLE -DARM_MATH_CM4 -DA /" in joined
    assert "max78002_arm.ld / -O2 / EvKit_V1" in joined
    assert (
        "RV32: my_riscv.c own.c softmax.c / -Wall -Wcast-align -DMXC_ASSERT_ENABLE -DRV32 -DA"
        in (joined)
    )
    assert "max78002_riscv.ld / -O2 / EvKit_V1" in joined
    linker = (tmp_path / "net" / "buildrv" / "common_riscv.ld").read_text()
    assert linker == ("__FlashStart = 0x10004000;\n__FlashLength = (0x10280000 - __FlashStart);\n")
    combined = (tmp_path / "net" / "build" / "net-combined.elf").read_text()
    assert combined == ":data of arm\n:data of RV32\n:end\n", "one end record, the last one"
    _build(tmp_path, "clean")
    assert not (tmp_path / "net" / "build").exists()


def _build(folder: Path, *arguments: str) -> str:
    """Run make with a stand-in for the SDK, whose `programs` are hex files already."""
    libraries = folder / "sdk" / "Libraries"
    source = libraries / "CMSIS" / "Device" / "Maxim" / "MAX78002" / "Source" / "GCC"
    board = libraries / "Boards" / "MAX78002" / "EvKit_V1"
    for part in (source, board, libraries / "PeriphDrivers"):
        part.mkdir(parents=True, exist_ok=True)
    (board / "board.mk").write_text("")
    (libraries / "PeriphDrivers" / "periphdriver.mk").write_text("")
    (source / "max78002.mk").write_text(
        "CORE := $(or $(RISCV_CORE),arm)\n"
        "$(BUILD_DIR)/$(PROJECT).elf:\n"
        "\t@mkdir -p $(BUILD_DIR)\n"
        "\t@echo '$(CORE): $(SRCS) / $(PROJ_CFLAGS) / $(LINKERFILE) / $(MXC_OPTIMIZE_CFLAGS)'"
        " '/ $(BOARD)'\n"
        "\t@printf ':data of $(CORE)\\n:end\\n' > $@\n"
        "\t@echo '   0x10004000    __FlashStart_ = .' > $(BUILD_DIR)/$(PROJECT).map\n"
        ".PHONY: clean\nclean: ;\n"
    )
    copy = folder / "copy"
    copy.write_text('#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\ncp "$1" "$2"\n')
    copy.chmod(0o755)
    settings = (f"MAXIM_PATH={folder / 'sdk'}", f"OBJCOPY={copy}")
    result = subprocess.run(
        ["make", "-C", folder / "net", *settings, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout
