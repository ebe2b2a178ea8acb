"""Projects with a prefix: what they load, compute and tell is what the simulation says."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ai8xtools.emulator
from ai8xtools.commands import targets
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import Board
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate
from tests.software.test_library import STRICT

CHW, HWC = "digits-chw-ai85.yaml", "mnist-hwc-ai85.yaml"
_FILES = {
    CHW: ("digits-ai85digitsnet-qat8-q.pth.tar", "sample_digits.npy"),
    HWC: ("mnist-ai85net5-qat8-q.pth.tar", "sample_mnist.npy"),
}
MAIN = """#include <stdio.h>
#include "mxc.h"
#include "my_net.h"

static const int8_t values[2][MY_NET_IN_SIZE] = { HWC_VALUES, CHW_VALUES };
static uint8_t bytes[MY_NET_IN_SIZE];
static my_net_result result;

int main(void)
{
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    for (int order = MY_NET_HWC; order <= MY_NET_CHW; order++) {
        if (my_net_init() != MY_NET_OK) {
            printf("*** FAIL ***\\n");
        }
        for (int i = 0; i < MY_NET_IN_SIZE; i++) {
            bytes[i] = (uint8_t)(values[order][i] + 128);
        }
        for (int way = 0; way < 2; way++) {
            if (way == 0) {
                my_net_load_input(values[order], order);
            } else {
                my_net_load_picture(bytes, order);
            }
            my_net_run(&result);
            for (unsigned i = 0; i < MY_NET_OUT_CHANNELS; i++) {
                printf("%d ", (int)my_net_integer(&result, 0, i, 0, 0));
            }
            printf("top %u\\n", my_net_top(&result));
        }
        my_net_off();
    }
    return 0;
}
"""


def create(folder: Path, name: str, *words: str) -> Path:
    checkpoint, sample = _FILES[name]
    line = [
        "--device", "MAX78000", "--config-file", str(ROOT / "networks" / name),
        "--checkpoint-file", str(ROOT / "trained" / checkpoint),
        "--sample-input", str(ROOT / "tests" / sample), "--prefix", "net",
        "--test-dir", str(folder), "--symbol-prefix", "my_net", *words,
    ]  # fmt: skip
    assert targets.main("ai8xize.py", line) == 0
    return folder / "net"


def user(project: Path, sample: Any) -> None:
    """Put a program of a user's in the place of the known-answer test."""
    text = MAIN
    for order, values in (("CHW", sample), ("HWC", sample.transpose(1, 2, 0))):
        numbers = ", ".join(map(str, values.reshape(-1).tolist()))
        text = text.replace(f"{order}_VALUES", f"{{ {numbers} }}")
    (project / "main.c").write_text(text)


@pytest.mark.parametrize(
    ("name", "words"), [(CHW, ()), (HWC, ("--fifo",))], ids=["memory, CHW", "FIFO, HWC"]
)
def test_a_users_program_computes_what_the_simulation_says(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    project = create(tmp_path, name, "--sample-numpy-filename", "result.npy", *words)
    wanted = np.load(project / "result.npy").reshape(-1)
    user(project, np.load(ROOT / "tests" / _FILES[name][1]).astype(np.int64))
    board = Board.with_project(project)
    board.run()
    line = " ".join(map(str, wanted.tolist())) + f" top {wanted.argmax()}"
    assert board.console.splitlines() == [line] * 4


def test_data_goes_through_the_functions_of_a_library(tmp_path: Path, run: Emulate) -> None:
    project = create(tmp_path, CHW)
    np.save(tmp_path / "x.npy", np.load(ROOT / "tests" / _FILES[CHW][1])[None])
    status, text = run(str(project), "--input", str(tmp_path / "x.npy"))
    assert status == 0 and "As the accelerator alone: 1 input" in text, text
    status, text = run(str(project), "--accelerator-only")
    assert status == 0 and "PASS (1 inference of the network alone)" in text, text


def test_nothing_warns_and_all_names_have_the_prefix(tmp_path: Path) -> None:
    words = ("--softmax", "--timer", "0", "--verify-kernels", "--boost", "2.5")
    gcc = shutil.which("gcc")
    if gcc is None or platform.machine() != "x86_64":
        pytest.skip("gcc for 32 bits is not installed")
    project = create(tmp_path, CHW, "--verify", *words)
    sources = sorted(path.name for path in project.glob("*.c"))
    assert sources == ["main.c", "my_net.c", "my_net_cnn.c", "my_net_softmax.c"]
    include = Path(ai8xtools.emulator.__file__).parent / "sdk" / "include"
    strict = ("-std=c99", *STRICT, "-Wmissing-prototypes")
    command = [gcc, "-m32", "-fno-pie", "-ffreestanding", *strict,
               "-isystem", include, "-c", *sources]  # fmt: skip
    subprocess.run(command, cwd=project, check=True)
    defined = [
        word
        for path in project.glob("my_net*.h")
        for word in re.findall(r"^\s*#\s*define\s+(\w+)", path.read_text(), re.MULTILINE)
    ]
    assert [word for word in defined if not word.startswith("MY_NET_")] == []
    if shutil.which("nm") is None:
        return
    objects = [f"{source[:-2]}.o" for source in sources if source != "main.c"]
    listed = subprocess.run(["nm", "-g", "--defined-only", *objects], cwd=project, check=True,
                            capture_output=True, text=True).stdout.splitlines()  # fmt: skip
    names = [line.split()[-1] for line in listed if " " in line]
    assert names and [name for name in names if not name.startswith("my_net_")] == []


def test_bad_names_and_rtl_tests_are_refused(tmp_path: Path) -> None:
    for words, said in (
        (("--symbol-prefix", "2nd"), "'2nd' is no identifier of C"),
        (("--rtl",), "it cannot be used together with --rtl"),
    ):
        with pytest.raises(DiagnosticError, match=said):
            create(tmp_path, CHW, *words)
        assert not (tmp_path / "net").exists()
