"""Tests for RTL simulation in the open test bench, with Icarus Verilog."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from tests.conftest import ROOT
from tools.rtl_demo import alter_expected_word
from tools.rtl_simulation import CameraFile, missing_tools, simulate

pytestmark = pytest.mark.skipif(
    missing_tools() is not None, reason=f"the simulator is not installed: {missing_tools()}"
)

DIGITS = (
    "--device", "MAX78000", "--config-file", "networks/digits-chw-ai85.yaml",
    "--checkpoint-file", "trained/digits-ai85digitsnet-qat8-q.pth.tar",
)  # fmt: skip
PRELOADED = ("--rtl-preload", "--rtl-preload-weights", "--result-output")


def generated(folder: Path, *options: str) -> Path:
    """Return the folder of a test of a small network."""
    words = ["ai8xize.py", *DIGITS, *options, "--prefix", "net", "--test-dir", str(folder)]
    subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, check=True)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("preloaded"), *PRELOADED)


@pytest.fixture
def test(preloaded: Path, tmp_path: Path) -> Path:
    """A test whose images the bench loads, and whose result a script verifies."""
    return shutil.copytree(preloaded, tmp_path / "test")


def test_images_lead_to_the_expected_result(test: Path, tmp_path: Path) -> None:
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert done.warnings == ""
    assert done.passed and "Results match." in done.log
    assert "The program read no result: verify-output.py compares data-output\n" in done.log
    total = (test / "latency.txt").read_text().splitlines()[0]
    assert f"CNN Cycles = {total}\n" in done.log
    assert "Loaded 0 words" not in done.log and " 0 kernels" not in done.log


def test_altered_expected_word_fails(test: Path, tmp_path: Path) -> None:
    alter_expected_word(test)
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert not done.passed and "1 errors" in done.log


@pytest.mark.parametrize("image", ["data/DRAM_x16_0_proc_0_ram_0.dat",
                                   "masks/MRAM_x16_0_proc_0_ram_0.dat"])  # fmt: skip
def test_altered_input_and_weights_fail(test: Path, tmp_path: Path, image: str) -> None:
    path = test / image
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    blank = "".join(f"{place} {'_'.join('7f' * (len(part) // 2) for part in digits.split('_'))}\n"
                    for place, digits in lines)  # fmt: skip
    path.write_text(blank)
    assert not simulate(test, "MAX78000", tmp_path / "work").passed


def test_other_latency_fails(test: Path, tmp_path: Path) -> None:
    first, *rest = (test / "latency.txt").read_text().splitlines()
    (test / "latency.txt").write_text("\n".join([str(int(first) + 1), *rest]) + "\n")
    assert not simulate(test, "MAX78000", tmp_path / "work").passed


@pytest.mark.parametrize(
    "options",
    [
        ("--rtl",),
        ("--rtl", "--no-mexpress", "--no-compact-data"),
        ("--rtl", "--riscv", "--result-output"),
        ("--rtl", "--fifo", "--log-intermediate", "--result-output"),
    ],
    ids=" ".join,
)
def test_program_loads_what_the_network_needs(options: tuple[str, ...], tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", *options)
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert done.passed, done.log
    assert ("Results match." in done.log) == ("--result-output" in options)
    assert ("compared 0 words" in done.log) == ("--result-output" in options)


@pytest.mark.parametrize("options", [("--rtl",), PRELOADED], ids=" ".join)
def test_each_start_of_one_shot_runs_a_layer(options: tuple[str, ...], tmp_path: Path) -> None:
    words = [word for word in options if word != "--result-output"]
    test = generated(tmp_path / "tests", *words, "--device", "MAX78002", "--one-shot")
    done = simulate(test, "MAX78002", tmp_path / "work")
    assert done.passed, done.log
    assert (tmp_path / "work" / "memories_3.txt").exists() and "compared 0" not in done.log


def test_names_can_be_chosen(tmp_path: Path) -> None:
    names = ("--runtest-filename", "part.svh", "--c-filename", "program")
    test = generated(tmp_path / "tests", *PRELOADED, "--riscv", *names)
    done = simulate(test, "MAX78000", tmp_path / "work", runtest="part.svh")
    assert done.passed and (test / "RISCV_PROG_flash.prog").exists(), done.log


def test_words_that_the_program_reads_are_compared(tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", "--rtl")
    program = test / "test.c"
    text = program.read_text()
    before, after = text.split("int check_output(void)", 1)
    program.write_text(before + "int check_output(void)" + after.replace("!= 0x", "!= 0x1", 1))
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert not done.passed and "the program reports a failure" in done.log
    assert "TEST FAILED" in done.log and "TEST PASSED" not in done.log


def test_max78002(tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", *PRELOADED, "--device", "MAX78002")
    done = simulate(test, "MAX78002", tmp_path / "work")
    assert done.passed and "Results match." in done.log


def test_accelerator_alone(tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", "--rtl", "--top-level", "None")
    assert not list(test.glob("*.c"))
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert done.passed, done.log
    answer = test / "output.mem"
    first, value, *rest = answer.read_text().splitlines()
    digits = "0" if value[-1] != "0" else "1"
    answer.write_text("\n".join([first, value[:-1] + digits, *rest]) + "\n")
    failed = simulate(test, "MAX78000", tmp_path / "work")
    assert not failed.passed and failed.log.count("ERROR") == 1


def test_accelerator_alone_without_words_to_compare(tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", "--rtl", "--top-level", "None", "--output-filename", "out")
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert done.passed, done.log
    (test / "out.mem").write_text("")
    failed = simulate(test, "MAX78000", tmp_path / "work")
    assert not failed.passed and "no word to compare" in failed.log
    (test / "out.mem").unlink()
    assert not simulate(test, "MAX78000", tmp_path / "work").passed


def test_accelerator_alone_without_known_answer(tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", "--rtl", "--top-level", "None", "--no-kat")
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert done.passed and "no known answer" in done.log


@pytest.mark.parametrize("options", [(), ("--input-sync", "--input-pix-clk", "3")], ids=str)
def test_camera_sends_the_sample(options: tuple[str, ...], tmp_path: Path) -> None:
    test = generated(tmp_path / "tests", "--rtl", "--fifo", "--input-csv", "cam.csv", *options)
    camera = CameraFile("cam.csv", channels=1)
    done = simulate(test, "MAX78000", tmp_path / "work", camera=camera)
    assert done.passed, done.log
    seen = [int(line, 16) for line in (tmp_path / "work" / "camera.txt").read_text().split()]
    assert seen == camera.words(test) and len(seen) == 64


def test_registers_of_every_group_count(tmp_path: Path) -> None:
    """A bit in a group above the first, with which the result is right all the same."""
    test = generated(tmp_path / "tests", "--rtl")
    program = test / "test.c"
    found = re.search(r"(0x50900018)\) = (0x\w{8}); // Rows", program.read_text())
    assert found is not None
    wrong = found[0].replace(found[2], f"0x{int(found[2], 16) ^ 1:08x}")
    program.write_text(program.read_text().replace(found[0], wrong))
    done = simulate(test, "MAX78000", tmp_path / "work")
    assert not done.passed and "TEST FAILED" in done.log
    assert re.search(rf"ERROR: layer \d+: group 2, RCNT \({found[1]}\) last: expected", done.log)
