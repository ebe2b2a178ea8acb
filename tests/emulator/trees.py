"""Trees of firmware as others write them, made of a generated project and code around it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.conftest import ROOT
from tests.run_script import run_script

GENERATED_HEADERS = ("cnn.h", "weights.h", "sampledata.h", "sampleoutput.h")


def generate(folder: Path, *options: str, chip: str = "MAX78000") -> Path:
    """Write the digits project with further options of ai8xize.py; return its folder."""
    done = run_script(
        "ai8xize.py", "--device", chip, "--test-dir", folder.parent,
        "--prefix", folder.name, "--config-file", ROOT / "networks" / "digits-chw-ai85.yaml",
        "--checkpoint-file", ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar",
        "--sample-input", ROOT / "tests" / "sample_digits.npy", "--overwrite", *options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def c_files(project: Path, folder: Path) -> Path:
    """Copy the C files and headers of a project, nothing else, into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*project.glob("*.c"), *project.glob("*.h")]:
        shutil.copy(path, folder)
    return folder


def verdict(text: str) -> tuple[str, str]:
    """Return the first word of the last line of an output, and its notes in parentheses."""
    last = text.splitlines()[-1]
    return last.split()[0], last[last.rindex("(") :] if "(" in last else ""


def change(path: Path, *replacements: tuple[str, str]) -> None:
    """Replace texts in a file; each must occur."""
    text = path.read_text()
    for old, new in replacements:
        assert old in text, f"{old!r} is not in {path.name}"
        text = text.replace(old, new)
    path.write_text(text)


def one_file(project: Path, folder: Path) -> Path:
    """Make a project of 2020: everything in main.c, loaded by one function, awaited by polling."""
    c_files(project, folder)
    network = (folder / "cnn.c").read_text()
    program = (folder / "main.c").read_text()
    body = "\n".join(line for line in network.splitlines() if not line.startswith("#include"))
    body = re.sub(r"void CNN_ISR\(void\).*?\n}\n", "", body, flags=re.DOTALL)
    body = body.replace("MXC_NVIC_SetVector(CNN_IRQn, CNN_ISR);", "").replace("GCFR", "BBFC")
    parts = {
        name: re.search(
            rf"^\w[^\n;]* {name}\(void\)\n{{.*?^}}\n", program, re.DOTALL | re.MULTILINE
        )
        for name in ("load_input", "check_output")
    }
    arrays = re.findall(r"^static const uint32_t [^;]*;", program, re.MULTILINE)
    texts = {name: found[0] for name, found in parts.items() if found}
    assert set(texts) == set(parts)
    (folder / "cnn.c").unlink()
    (folder / "softmax.c").unlink()
    (folder / "cnn.h").rename(folder / "tornadocnn.h")
    (folder / "main.c").write_text(
        OLD_MAIN.format(network=body, arrays="\n".join(dict.fromkeys(arrays)), **texts)
    )
    return folder


OLD_MAIN = """\
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "mxc_sys.h"
#include "bbfc_regs.h"
#include "fcr_regs.h"
#include "icc.h"
#include "led.h"
#include "tmr.h"
#include "tmr_utils.h"
#include "tornadocnn.h"
#include "weights.h"
#include "sampledata.h"
#include "sampleoutput.h"

volatile uint32_t cnn_time;
{arrays}

void fail(void)
{{
    printf("\\n*** FAIL ***\\n\\n");
    while (1);
}}

void cnn_wait(void)
{{
    while ((*((volatile uint32_t *) 0x50100000) & (1 << 12)) != 1 << 12);
    CNN_COMPLETE;
    cnn_time = MXC_TMR_SW_Stop(MXC_TMR0);
}}

{network}
{load_input}
{check_output}
int cnn_load(void)
{{
    cnn_init();
    cnn_load_weights();
    cnn_load_bias();
    cnn_configure();
    load_input();
    return cnn_start();
}}

int main(void)
{{
    MXC_ICC_Enable(MXC_ICC0);
    SYS_Clock_Select(5, MXC_TMR0);
    SystemCoreClockUpdate();
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    printf("\\n*** CNN Test digits ***\\n");
    MXC_TMR_SW_Start(MXC_TMR0);
    if (!cnn_load()) fail();
    cnn_wait();
    if (!check_output()) fail();
    printf("\\n*** PASS ***\\n\\n");
    printf("Time for CNN: %d us\\n\\n", cnn_time);
    while (1);
}}
"""
