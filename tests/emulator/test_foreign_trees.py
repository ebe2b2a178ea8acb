"""Trees of firmware as they are found: demonstrations with libraries, boards, several networks."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator.cpu.compiler import run_compiler
from tests.emulator.trees import c_files, generate, verdict

PROGRAMS = Path(__file__).with_name("firmware")
PASSED = "PASS", "(1 inference)"
ALONE = "PASS", "(1 inference of the network alone)"
Emulate = Callable[..., list[str]]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project for MAX78000."""
    return generate(tmp_path_factory.mktemp("generated") / "digits", "--softmax")


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """End programs that have passed and go on for ever sooner."""
    monkeypatch.setattr("ai8xtools.emulator.firmware.progress.QUIET_SECONDS", 0.2)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Emulate:
    """Run emulate.py; return the lines that it prints, or its error."""

    def call(*words: str | Path) -> list[str]:
        try:
            emulate(parse([str(word) for word in words]))
        except ToolError as error:
            return [*capsys.readouterr().out.splitlines(), f"{error.code} {error.message}"]
        return capsys.readouterr().out.splitlines()

    return call


def tree(digits: Path, folder: Path, name: str, sources: str = ".", headers: str = ".") -> Path:
    """Make a tree of the generated network and a program of `PROGRAMS`."""
    c_files(digits, folder)
    for pattern, place in (("*.c", sources), ("*.h", headers)):
        (folder / place).mkdir(exist_ok=True)
        for path in folder.glob(pattern) if place != "." else ():
            shutil.move(path, folder / place / path.name)
    shutil.copytree(PROGRAMS / name, folder, dirs_exist_ok=True)
    shutil.copy(PROGRAMS / "digits.h", folder / headers)
    return folder


def test_keyword_spotter(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Makefile that includes project.mk, board in a definition, chunks, percentages, no end."""
    folder = tree(digits, tmp_path / "keywords", "keywords", "src", "include")
    lines = run(folder)
    assert verdict(lines[-1]) == PASSED
    assert "Detected word: SEVEN (97.8%)" in lines
    assert not any("UNIT" in line for line in lines)
    assert verdict(run(folder, "--accelerator-only")[-1]) == ALONE


def test_camera_with_a_library_of_its_own(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Headers of displays and cards that are not here; it goes on and prints the same for ever."""
    folder = tree(digits, tmp_path / "vision", "vision", "src", "inc")
    lines = run(folder)
    assert verdict(lines[-1]) == PASSED
    named = next(line for line in lines if line.startswith("note: headers that are not here"))
    assert "adafruit_3315_touch.h" in named
    assert any("MXC_TFT_PrintFont() is a stand-in" in line for line in lines)
    assert verdict(run(folder, "--accelerator-only")[-1]) == ALONE


def test_serial_line_pins_and_formats(digits: Path, run: Emulate, tmp_path: Path) -> None:
    folder = tree(digits, tmp_path / "serial", "serial")
    lines = run(folder)
    assert verdict(lines[-1]) == PASSED
    assert "12.35%|ab    |00beef" in lines
    assert any("looks for bytes from the UART, and none are sent" in line for line in lines)


def test_functions_of_cmsis(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Powers of two: the highest input has all but a part in 2^5, in 7 bits and in 15."""
    lines = run(tree(digits, tmp_path / "cmsis", "cmsis"))
    assert verdict(lines[-1]) == PASSED
    assert lines[:5] == ["max 120 at 7", "softmax 127", "128", "0", "120 120"]
    assert {"class 7", "1414 841", "fc 1", "0 127 0"} <= set(lines)


def test_two_sources_lack_the_same_at_once(
    digits: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header and a register that both want are brought by one of them, and serve the other."""
    folder = c_files(digits, tmp_path / "both")
    for name in ("one", "two"):
        text = f'#include "max_extra.h"\nvoid {name}(void) {{ MXC_SIR->unheard_of = 1; }}\n'
        (folder / f"{name}.c").write_text(text)
    (folder / "Makefile").write_text("TARGET=MAX78000\nSRCS=main.c cnn.c softmax.c one.c two.c\n")
    together, seen = threading.Barrier(2, timeout=60), dict.fromkeys(("one.c", "two.c"), 0)

    def in_step(arguments: Sequence[str], *others: Any) -> tuple[int, str]:
        done = run_compiler(arguments, *others)
        source = Path(arguments[-1]).name
        if source in seen:
            seen[source] += 1
            if seen[source] <= 2:  # the header first, then the register
                together.wait()
        return done

    monkeypatch.setattr("ai8xtools.emulator.project.sources.run_compiler", in_step)
    text = "\n".join(run(folder))
    assert verdict(text)[0] == "PASS", text
    assert "one.c: made up, without meaning: mxc_sir_regs_t.unheard_of" in text
    assert seen == {"one.c": 3, "two.c": 3}


@pytest.fixture
def pair(digits: Path, tmp_path: Path) -> Path:
    """Two networks whose functions and headers have numbers."""
    folder = tree(digits, tmp_path / "pair", "pair")
    for number in (1, 2):
        for name in ("cnn.c", "cnn.h"):
            text = re.sub(r"\bcnn_(\w+)\(", rf"cnn_{number}_\1(", (folder / name).read_text())
            text = text.replace("memcpy32(", f"memcpy32_{number}(").replace("CNN_H", f"C{number}_H")
            text = text.replace('"cnn.h"', f'"cnn_{number}.h"')
            text = text.replace('"weights.h"', f'"weights_{number}.h"')
            text = text.replace("CNN_ISR", f"CNN_{number}_ISR")
            (folder / name.replace(".", f"_{number}.")).write_text(text)
        shutil.copy(folder / "weights.h", folder / f"weights_{number}.h")
    for name in ("cnn.c", "cnn.h", "weights.h", "softmax.c"):
        (folder / name).unlink()
    return folder


def test_two_networks(pair: Path, run: Emulate) -> None:
    assert verdict(run(pair)[-1]) == ("PASS", "(2 inferences)")
    assert "E814 it holds 2 networks: cnn_1, cnn_2" in run(pair, "--accelerator-only")[-1]
    assert verdict(run(pair, "--accelerator-only", "--exclude", "cnn_2.c")[-1]) == ALONE


def test_program_of_another_generation_beside_its_network(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    """SRCS names some of the files; others would not compile; the network is two folders up."""
    base = tmp_path / "repository"
    folder = tree(digits, base / "apps" / "cmsis", "cmsis")
    (base / "generated").mkdir()
    for name in ("cnn.c", "cnn.h", "weights.h"):
        shutil.move(folder / name, base / "generated" / name)
    (folder / "experiment.c").write_text("#error not finished\n")
    (folder / "project.mk").write_text(
        "NETWORK := ../../generated\nAUTOSEARCH = 0\nSRCS = main.c\nSRCS += cnn.c\n"
        "VPATH += . $(NETWORK)\nIPATH += . $(NETWORK)\n"
    )
    assert verdict(run(folder)[-1]) == PASSED
    (folder / "project.mk").unlink()
    shutil.copytree(base / "generated", folder.parent / "network")
    lines = run(folder, "--exclude", "experiment.c", "--include", folder.parent / "network")
    assert verdict(lines[-1]) == PASSED
