"""What the accelerator and the core keep when power goes, and what wakes them."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands import targets
from ai8xtools.emulator import Board
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate
from tests.emulator.test_applications import LATER
from tests.emulator.trees import c_files, change, generate

RELOAD = "cnn_init(); cnn_load_weights(); cnn_load_bias(); cnn_configure();"
ENABLE = "cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);"
NO_BIAS = RELOAD.replace("cnn_load_bias();", "")
RETAIN = "MXC_GCFR->reg2 |= 0x00f00000;"
ALL_BUT_WEIGHTS = "cnn_init(); cnn_load_bias(); cnn_configure();"
UPM = """    mxc_wut_cfg_t timer = {MXC_WUT_MODE_ONESHOT, 0};
    MXC_WUT_GetTicks(5, MXC_WUT_UNIT_MILLISEC, &timer.cmp_cnt);
    MXC_WUT_Config(&timer); MXC_WUT_Enable(); NVIC_EnableIRQ(WUT_IRQn);
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("generated") / "digits")


def again(digits: Path, folder: Path, statements: str) -> Path:
    """Make a program that does something and computes its sample once more."""
    project = c_files(digits, folder)
    (project / "answer.npz").write_bytes((digits / "answer.npz").read_bytes())
    first = "    load_input();\n"
    text = (project / "main.c").read_text()
    begin = text.index("    cnn_load_bias();")
    end = text.index("    if (check_output()")
    inference = text[text.index(first, begin) : end]
    more = f"{statements}\n    cnn_time = 0;\n{inference}"
    (project / "main.c").write_text(f"{text[:end]}{more}{text[end:]}")
    return project


@pytest.mark.parametrize(
    ("statements", "right"),
    [
        (f"cnn_disable(); {ENABLE} {RELOAD}", True),
        pytest.param(f"cnn_disable(); {ENABLE} {NO_BIAS}", False, marks=LATER),
        (f"cnn_disable(); {ENABLE} {ALL_BUT_WEIGHTS}", False),
        pytest.param(f"cnn_disable(); {ENABLE}", False, marks=LATER),
        (f"{RETAIN} {UPM} MXC_LP_EnterMicroPowerMode(); {ALL_BUT_WEIGHTS}",
         True),
        pytest.param(f"{UPM} MXC_LP_EnterMicroPowerMode(); {ALL_BUT_WEIGHTS}", False, marks=LATER),
        pytest.param(f"{UPM} MXC_LP_EnterStandbyMode();", False, marks=LATER),
        (f"{UPM} MXC_LP_EnterLowPowerMode();", True),
    ],
    ids=["reloaded", "no bias", "no weights", "nothing", "retained", "not retained", "standby",
         "low power"],
)  # fmt: skip
def test_what_is_lost_must_be_loaded_again(
    statements: str, right: bool, digits: Path, run: Emulate, tmp_path: Path
) -> None:
    status, text = run(again(digits, tmp_path / "again", statements))
    assert (status == 0) == right, text
    assert right == text.splitlines()[-1].startswith("PASS")


def test_the_accelerator_does_not_wake_the_core_from_low_power(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "lpm")
    change(project / "main.c", ("MXC_LP_EnterSleepMode();", "MXC_LP_EnterLowPowerMode();"))
    status, text = run(project)
    assert status == 1
    assert "the interrupt of the accelerator does not wake the Arm core from this mode" in text


def test_backup_does_not_return(digits: Path, run: Emulate, tmp_path: Path) -> None:
    project = c_files(digits, tmp_path / "backup")
    body = "    MXC_LP_EnterBackupMode();\n    cnn_init();"
    change(project / "main.c", ("    cnn_init();", body))
    assert "E825 the program enters a mode from which the chip starts anew" in run(project)[1]


def test_timers_and_watchdog_take_their_time(digits: Path, run: Emulate, tmp_path: Path) -> None:
    project = c_files(digits, tmp_path / "time")
    body = f"""
    uint32_t ticks = 1, after;
{UPM}    MXC_WUT_GetTicks(380, MXC_WUT_UNIT_MICROSEC, &ticks);
    MXC_TMR_SW_Start(MXC_TMR0);
    MXC_LP_EnterSleepMode();
    after = MXC_TMR_SW_Stop(MXC_TMR0);
    printf("%u ticks, %u us\\n", (unsigned) ticks, (unsigned) after);
    MXC_WDT_Init(MXC_WDT0, 0);
    MXC_WDT_SetResetPeriod(MXC_WDT0, MXC_WDT_PERIOD_2_26);
    MXC_WDT_EnableReset(MXC_WDT0);
    MXC_WDT_Enable(MXC_WDT0);
    MXC_Delay(1300000);
    MXC_WDT_ResetTimer(MXC_WDT0);
    printf("fed\\n");
    MXC_Delay(1400000);
    MXC_WDT_ResetTimer(MXC_WDT0);
    printf("late\\n");
"""
    change(project / "main.c", ("    cnn_init();", f"{body}    cnn_init();"))
    text = run(project)[1]
    ticks, slept = map(int, re.search(r"(\d+) ticks, (\d+) us", text).groups())  # type: ignore[union-attr]
    assert ticks == 12 and abs(slept - 4975) < 50  # 163 ticks of 32,768 Hz
    assert "fed\n" in text and "late" not in text
    assert "E873 the watchdog restarts the chip: the program has not reset it for 1.3 s" in text


def test_the_clock_that_was_chosen_counts(digits: Path, tmp_path: Path) -> None:
    """A program that forgets to choose one is slower, without an error."""
    old, shown = "MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);", "cnn_init();"
    times = []
    for clock, hertz in ((old, 100_000_000), ("", 60_000_000)):
        project = c_files(digits, tmp_path / str(hertz))
        line = f'printf("%u Hz\\n", (unsigned) SystemCoreClock); {shown}'
        change(project / "main.c", (old, clock), (shown, line))
        board = Board.with_project(project)
        assert board.run().exit_code == 0
        assert f"{hertz} Hz\n" in board.console
        times.append(board.time.runs[-1].microseconds)
    assert times[1] == pytest.approx(times[0] * 50 / 30)


SWITCH = """#include <stdio.h>
#include "mxc.h"
#include "digits.h"
#include "mnist.h"
#include "digits_sampledata.h"
#include "mnist_sampledata.h"
static const uint32_t digits_words[] = DIGITS_SAMPLE_INPUT_0;
static const uint32_t mnist_words[] = MNIST_SAMPLE_INPUT_0;
static digits_result digits;
static mnist_result mnist;
static void show(int number, unsigned top, int value)
{
    printf("%d: %u %d\\n", number, top, value);
}
#define ONE(name, NAME, number) \\
    name##_init(); \\
    name##_load_input((const int8_t *) name##_words, NAME##_CHW); \\
    name##_run(&name); \\
    show(number, name##_top(&name), (int) name##_integer(&name, 0, name##_top(&name), 0, 0)); \\
    name##_off();
int main(void)
{
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    ONE(digits, DIGITS, 0) ONE(mnist, MNIST, 1) ONE(digits, DIGITS, 0) ONE(mnist, MNIST, 1)
    return 0;
}
"""


@LATER
def test_two_networks_take_turns(tmp_path: Path) -> None:
    """Of different size, in both orders: what the first leaves is gone."""
    folder, wanted = tmp_path / "both", {}
    folder.mkdir()
    for number, (name, shown) in enumerate(
        {"digits": "ai85digitsnet", "mnist": "ai85net5"}.items()
    ):
        line = [
            "--device", "MAX78000", "--config-file", f"networks/{name}-chw-ai85.yaml",
            "--checkpoint-file", f"trained/{name}-{shown}-qat8-q.pth.tar", "--sample-input",
            f"tests/sample_{name}.npy", "--prefix", name, "--test-dir", str(tmp_path),
            "--symbol-prefix", name, "--sample-numpy-filename", "result.npy",
        ]  # fmt: skip
        with contextlib.chdir(ROOT):
            assert targets.main("ai8xize.py", line) == 0
        result = np.load(tmp_path / name / "result.npy").reshape(-1)
        wanted[number] = f"{number}: {result.argmax()} {result.max()}"
        for path in (*(tmp_path / name).glob("*.c"), *(tmp_path / name).glob("*.h")):
            if path.name != "main.c":
                shutil.copy(path, folder)
    (folder / "main.c").write_text(SWITCH)
    board = Board.with_project(folder)
    board.run()
    assert board.console.splitlines() == [wanted[0], wanted[1]] * 2
    change(folder / "digits.c", ("digits_cnn_load_bias() != DIGITS_CNN_OK", "0"))
    board = Board.with_project(folder)
    board.run()
    assert board.console.splitlines()[2] != wanted[0]
