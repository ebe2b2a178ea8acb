"""ai8xize.py --device MCU: what it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai8xtools.commands import targets
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import CopyEngine, compile_plain, run_plain
from ai8xtools.software.profile import names
from benchmarks.mlperf_tiny import Network
from tests.conftest import ROOT
from tests.software.compiled import SANITIZED, compiler, passed, run_project

DIGITS = [
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
]  # fmt: skip


def create(folder: Path, *words: str, device: str = "MCU") -> int:
    line = ["--device", device, *DIGITS, "--prefix", "net", "--test-dir", str(folder), *words]
    return targets.main("ai8xize.py", line)


def refusal(folder: Path, *words: str) -> str:
    with pytest.raises(DiagnosticError) as caught:
        create(folder, *words)
    assert not (folder / "net").exists()
    return str(caught.value)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize(("scheme", "optimization"), [("resident", "-O3"), ("rows", "-O0")])
def test_digits_pass_on_this_computer(scheme: str, optimization: str, tmp_path: Path) -> None:
    assert create(tmp_path, "--mcu", "rp2040", "--scheme", scheme) == 0
    files = {path.name: path.read_text() for path in (tmp_path / "net").iterdir()}
    assert ("cnn_run_rows" in files["cnn.h"]) == (scheme == "rows")
    result = run_project(files, tmp_path / "built", [optimization])
    assert passed(result), result.stderr
    assert "*** PASS ***" in result.stdout
    data = files["sampledata.h"].replace("OUTPUT_DATA { \\\n", "OUTPUT_DATA { \\\n 1 +")
    assert data != files["sampledata.h"]
    changed = files | {"sampledata.h": data}
    wrong = run_project(changed, tmp_path / "wrong", [optimization])
    assert "!!! FAIL !!!" in wrong.stdout and wrong.returncode == 1


@pytest.mark.parametrize(("mcu", "scheme"), [("rp2040", "rows"), ("stm32l4r5", "resident")])
def test_cross_build_of_the_project(mcu: str, scheme: str, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None or not list(_newlib()):
        pytest.skip("arm-none-eabi-gcc and its C library are not installed")
    assert create(tmp_path, "--mcu", mcu, "--scheme", scheme) == 0
    result = subprocess.run(
        ["make", "-C", tmp_path / "net", "-f", "Makefile.ARM"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0 and "(TOTALS)" in result.stdout, result.stderr
    assert (tmp_path / "net/libcnn.a").is_file() and (tmp_path / "net/main.elf").is_file()


def _newlib() -> Iterator[Path]:
    """Yield the C library beside the cross compiler."""
    words = ["arm-none-eabi-gcc", "-print-file-name=rdimon.specs"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return (path for path in [Path(found)] if path.is_absolute() and path.is_file())


def test_project_has_makefiles_of_its_core_a_readme_and_a_log(tmp_path: Path) -> None:
    assert create(tmp_path, "--mcu", "esp32c3", "--scheme", "rows") == 0
    text = {path.name: path.read_text() for path in (tmp_path / "net").iterdir()}
    assert "CPU ?= -march=rv32imc -mabi=ilp32\n" in text["Makefile.RISCV"]
    assert "Makefile.ARM" not in text and "make -f Makefile.RISCV" in text["README.md"]
    assert "cnn_run_rows" in text["README.md"] and "`nn_conv_lanes`" in text["README.md"]
    assert "Plan: rows" in text["log.txt"] and "esp32c3 (rv32imc)" in text["log.txt"]
    assert create(tmp_path, "--mcu", "rp2040", "--no-log", "--overwrite") == 0
    assert not (tmp_path / "net/log.txt").exists()
    assert not (tmp_path / "net/Makefile.RISCV").exists()


def test_plan_and_page_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "plan.html"
    assert create(tmp_path, "--mcu", "nrf52832", "--plan-report", "--report", str(page)) == 0
    told = capsys.readouterr().out
    assert "Plan: resident" in told and "Flash: " in told
    assert "<svg" in page.read_text() and "scratch" in page.read_text()


def test_a_network_that_does_not_fit_is_refused_with_the_deciding_tensor(tmp_path: Path) -> None:
    told = refusal(tmp_path, "--mcu", "ch32v003")
    assert "E905" in told and "bytes of flash" in told
    assert "those of layer 1 (conv2) alone take 13,824" in told
    assert "alone takes" in refusal(tmp_path, "--mcu", "stm32f103c8", "--l1", "1500")


def test_fits_has_a_column_for_each_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert targets.main("ai8xize.py", ["--fits", *DIGITS]) == 0
    table = capsys.readouterr().out.split("--device MCU")[1]
    assert all(name in table for name in names())
    assert "ch32v003 has 16,384 bytes of flash" in table


def test_unknown_microcontroller_names_the_nearest(tmp_path: Path) -> None:
    assert "stm32f103c8" in refusal(tmp_path, "--mcu", "stm32f103")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--prefix", "../../x"), "E071"),
        (("--log-filename", "../evil"), "E071"),
        (("--log-filename", "main.c"), "E072"),
        (("--log-filename", "Makefile"), "E072"),
    ],
)
def test_names_that_lead_out_of_the_project_or_replace_its_files_are_refused(
    words: tuple[str, ...], code: str, tmp_path: Path
) -> None:
    folder = tmp_path / "inner" / "project"
    with pytest.raises(DiagnosticError) as refused:
        create(folder, "--mcu", "rp2040", *words)
    assert [d.code for d in refused.value.diagnostics] == [code]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_without_a_microcontroller_the_project_is_portable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path) == 0
    captured = capsys.readouterr()
    assert "option --mcu: notice: no microcontroller is named" in captured.out + captured.err
    assert "[N958]" in captured.out + captured.err
    files = {path.name: path.read_text() for path in (tmp_path / "net").glob("*.[ch]")}
    assert "#define NN_FOR_PORTABLE 1" in files["nn_kernels.h"]
    assert not [*(tmp_path / "net").glob("Makefile.*")]
    assert passed(run_project(files, tmp_path / "run"))


def strided(folder: Path) -> list[str]:
    """Return the options of a network with strides, a kernel of 5x4 and a large window."""
    made = Network("free", (1, 45, 9))
    made.conv(4, (5, 4), stride=2, pad=(2, 1))
    made.conv(4, depthwise=True, stride=2)
    made.linear(3, avg_pool=[*made.shape[1:]], pool_stride=[17, 1])
    return made.files(folder)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_strides_and_kernels_of_every_size_pass_on_this_computer(tmp_path: Path) -> None:
    words = [*strided(tmp_path), "--prefix", "net", "--test-dir", str(tmp_path), "--overwrite"]
    words = ["--device", "MCU", "--mcu", "stm32l4r5", *words]
    for scheme in ("resident", "rows"):
        assert targets.main("ai8xize.py", [*words, "--scheme", scheme]) == 0
        files = {path.name: path.read_text() for path in (tmp_path / "net").glob("*.[ch]")}
        result = run_project(files, tmp_path / scheme, SANITIZED)
        assert passed(result), result.stderr
    with pytest.raises(DiagnosticError, match=r"'kernel_size' is 5x4, conv2d takes 1x1, 3x3"):
        targets.main("ai8xize.py", [*words, "--like", "MAX78002"])


def test_images_that_cannot_be_counted_in_16_bits_are_refused(tmp_path: Path) -> None:
    made = Network("long", (1, 1 << 16, 1))
    made.conv(1, (1, 1), stride=64, pad=(0, 0))
    words = [*made.files(tmp_path), "--prefix", "net", "--test-dir", str(tmp_path)]
    with pytest.raises(DiagnosticError, match="image of 65,536 rows"):
        targets.main("ai8xize.py", ["--device", "MCU", "--mcu", "stm32l4r5", *words])


def test_limits_of_a_chip_hold_on_demand(tmp_path: Path) -> None:
    assert create(tmp_path, "--mcu", "stm32l4r5", "--like", "MAX78000") == 0
    text = (
        (ROOT / "networks/digits-chw-ai85.yaml")
        .read_text()
        .replace("out_offset: 0x2000", "out_offset: 0x9000", 1)
    )
    file = tmp_path / "far.yaml"
    file.write_text(text)
    words = ["--mcu", "stm32l4r5", "--config-file", str(file), "--overwrite"]
    assert create(tmp_path, *words) == 0
    with pytest.raises(DiagnosticError, match="MAX78000"):
        create(tmp_path, *words, "--like", "MAX78000")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("core: cortex-m4\nflash: 64K\nl1: 20K\nstak: 1K\n", ":4:1: error: unknown key 'stak'"),
        ("core: cortex-m4\nflash: -64K\nl1: 20K\n", ":2:8: error: flash is -65536"),
        ("core: cortex-m5\nflash: 64K\nl1: 20K\n", ":1:7: error: core 'cortex-m5'"),
        ("core: cortex-m0plus\nflash: 64K\nl1: 2K\nsimd: dsp\n", ":4:7: error: cortex-m0plus has"),
        ("core: rv32ec\nflash: 64K\nl1: 2K\nstack: 4K\n", ":4:8: error: a stack of 4096"),
        ("core: rv32ec\nflash: 64K\nl1: 2K\nbw21: 4\n", ":4:7: error: bw21 is given for l2"),
        ("core: rv32ec\nflash: 64K\n", "'l1' is missing"),
        ("core: rv32ec\nflash: 64K\nL1: 2K\n", "Did you mean 'l1'?"),
        ("core: rv32ec\nflash: 8192M\nl1: 2K\n", ":2:8: error: flash is 8192M; cores address"),
        ("core: rv32ec\nflash: 64K\nl1: 2K\nl2: 4K\nbw21: 1e-320\n", ":5:7: error: bw21 is 1e"),
        ("core: rv32ec\nflash: 64K\nl1: 2K\nl4: 1M\n", ":4:1: error: 'l4': a profile has up to"),
        ("core: [\n", "it is not YAML"),
        ("core: rv32ec\nflash: 64K\nl1: {a: 2K}\n", ":3:1: error: keys and values are words"),
        ("core: rv32ec\nflash: 64K\nl1: 1.5K\n", ":3:5: error: l1 '1.5K' is not a number"),
        ("core: rv32ec\ncore: rv32ec\nflash: 64K\nl1: 2K\n", ":2:1: error: 'core' is given twice"),
    ],
)
def test_profile_with_a_mistake_names_line_and_column(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert said in refusal(tmp_path, "--mcu", str(file))


LEVELS = "core: cortex-m4\nflash: 64K\nl1: 4K\nstack: 1K\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("l2: 2K\n", "5:5: error: l2 has 2048 bytes, l1 4096: levels further away are larger"),
        ("l2: 64K\nl3: 32K\n", "6:5: error: l3 has 32768 bytes, l2 65536"),
        ("l2: 64K\nbw21: 0\n", "6:7: error: bw21 is 0; a memory must transfer bytes"),
        ("l3: 1M\nbw31: -1\n", "6:7: error: bw31 is -1; a memory must transfer bytes"),
        ("l3: 1M\nbw31: fast\n", "6:7: error: bw31 'fast' is not a number"),
        ("l2: 64K\nl3: 1M\nbw21: 1\nbw31: 2.5\n", "8:7: error: bw31 is 2.5, bw21 1"),
        ("weights: l3\n", "5:10: error: weights cannot be in l3, which has no bytes"),
        ("t_dma: 20\n", "5:8: error: t_dma is given for dma, which has no channels"),
        ("dma: -2\n", "5:6: error: dma is -2; it must be positive"),
    ],
)
def test_levels_that_cannot_be_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(LEVELS + text)
    assert said in refusal(tmp_path, "--mcu", str(tmp_path / "my.yaml"))


def test_network_with_weights_in_a_memory_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LEVELS + "l2: 32K\nl3: 1M\nl3_writable: true\nweights: l3\ndma: 3\n"
    (tmp_path / "my.yaml").write_text(text)
    assert create(tmp_path, "--mcu", str(tmp_path / "my.yaml"), "--plan-report") == 0
    told = capsys.readouterr().out
    assert "bytes of l1 (plan: memory levels)" in told and "weights in l3" in told
    assert "Copied: " in told and "filters at a time" in told
    files = {path.name for path in (tmp_path / "net").iterdir()}
    assert {"nn_levels.c", "nn_levels.h", "nn_copies.c", "plan.json"} <= files


def test_engine_of_the_emulator_copies_what_the_plan_says(tmp_path: Path) -> None:
    text = LEVELS + "l2: 32K\nl3: 1M\nl3_writable: true\nweights: l3\ndma: 3\n"
    (tmp_path / "my.yaml").write_text(text)
    assert create(tmp_path, "--mcu", str(tmp_path / "my.yaml")) == 0
    project, core = tmp_path / "net", ARCHITECTURES["cortex-m4"]
    plan = json.loads((project / "plan.json").read_text())
    engine = CopyEngine()
    run = run_plain(compile_plain(project, core, engine=True), engine=engine)
    assert run.passed and engine.idle
    assert engine.bytes_copied == [plan["copied"][n] for n in ("inputs", "weights", "outputs")]
    assert run.arena_used == plan["arena_bytes"]
    levels = (project / "nn_levels.c").read_text()
    early = levels.replace("nn_copy_wait(NN_INPUT);", ";")
    assert early != levels
    (project / "nn_levels.c").write_text(early)
    engine = CopyEngine()
    run = run_plain(compile_plain(project, core, engine=True), engine=engine)
    assert run.passed is False and not engine.idle


def test_levels_that_are_too_small_name_what_is_missing(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--mcu", "rp2040", "--l1", "2130", "--scheme", "planes", "--l2", "9K")
    assert "bytes of l1 at least, rp2040 has 2,130: " in said and "are missing" in said


def test_levels_of_a_file_that_are_too_small_name_its_line(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("core: cortex-m4\nflash: 64K\nl1: 850\nl2: 64K\nstack: 256\n")
    said = refusal(tmp_path, "--mcu", str(file))
    assert f"{file}:3:5: error: " in said and "of l1 at least, my has 850: " in said
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--l1", "64K", "--l2", "32K"], "--l2: error: l2 has 32768 bytes, a nearer level 65536"),
        (["--l2", "512K", "--l3", "512K"], "--l3: error: l3 has 524288 bytes, a nearer level"),
    ],
)
def test_options_with_levels_in_the_wrong_order_are_refused(
    words: list[str], said: str, tmp_path: Path
) -> None:
    assert said in refusal(tmp_path, "--mcu", "rp2040", *words)
    assert not (tmp_path / "net").exists()


def test_levels_that_are_there_are_planned_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, "--mcu", "stm32h743", "--plan-report") == 0
    told = capsys.readouterr().out
    assert "bytes of l1 (plan: memory levels)" in told and "would take" in told
    assert create(tmp_path, "--mcu", "stm32h743", "--l1", "2M", "--overwrite") == 0
    assert "of RAM" in capsys.readouterr().out


def test_profile_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = refusal(tmp_path, "--mcu", "none.yaml")
    assert "none.yaml: error: it cannot be read" in told and "[E904]" in told


@pytest.mark.parametrize("option", [["--fifo"], ["--riscv"], ["--timer", "0"], ["--rtl"]])
def test_options_of_the_accelerator_are_refused_by_name(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        targets.main("ai8xize.py", ["--device", "MCU", "--mcu", "rp2040", *option, *DIGITS])
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert option[0] in told and "is for --device MAX78000" in told


def test_options_that_only_place_are_accepted_with_a_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(tmp_path, "--mcu", "rp2040", "--overlap-data") == 0
    captured = capsys.readouterr()
    assert "option --overlap-data: notice" in captured.out + captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "MCU", "--container", "n.nnb"], "--mcu: is required"),
        (["--device", "MAX78000", "--mcu", "rp2040"], "--mcu: is for --device MCU"),
        (["--device", "MCU", "--mcu", "rp2040", "--container", "n.nnb", "--report", "r.html"],
         "argument --report: containers have none"),
        (["--device", "MCU", "--mcu", "rp2040", "--container", "n.nnb", "--plan-report"],
         "argument --plan-report: containers have none"),
    ],
)  # fmt: skip
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        targets.main("ai8xize.py", [*words, *DIGITS, "--prefix", "net", "--test-dir", "out"])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err
