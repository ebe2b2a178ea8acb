"""ai8xize.py --device CMSIS-NN: calls of Arm's functions, and what they cannot compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.loader.arguments import parse
from commands.loader.create import create_project
from diagnostics import DiagnosticError
from software.cmsis.build import planned_calls
from software.lower import lower
from tests.conftest import ROOT
from tests.software.calls import differs, files_of_calls, profile_of
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.known_answers import read_network
from tests.software.operators import NETWORKS, network_of

DIGITS = [
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
]  # fmt: skip
needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


def create(folder: Path, *words: str, device: tuple[str, ...] = ("--device", "CMSIS-NN")) -> int:
    line = [*device, *DIGITS, "--prefix", "net", "--test-dir", str(folder), *words]
    return create_project(parse(line))


def text_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "net").iterdir()}


@needs_compiler
def test_digits_pass_on_this_computer_with_the_interface_of_the_reference(tmp_path: Path) -> None:
    assert create(tmp_path) == 0
    files = text_of(tmp_path)
    wanted = "int cnn_run(const q7_t *input, int input_size, q31_t **output, int *output_size)"
    assert wanted in files["cnn.c"] and wanted in files["cnn.h"]
    result = run_project(files, tmp_path / "built", SANITIZED)
    assert passed(result), result.stderr
    data = files["sampledata.h"].replace("OUTPUT_DATA { \\\n", "OUTPUT_DATA { \\\n 1 +")
    wrong = run_project(files | {"sampledata.h": data}, tmp_path / "wrong")
    assert "!!! FAIL !!!" in wrong.stdout and wrong.returncode == 1


def test_calls_stand_in_the_order_of_the_layers_and_functions_that_nobody_calls_are_left_out(
    tmp_path: Path,
) -> None:
    assert create(tmp_path) == 0
    files = text_of(tmp_path)
    plan = json.loads(files["plan.json"])
    kernels = [step["kernel"] for part in plan["segments"] for step in part["steps"]]
    assert kernels == [
        "arm_convolve_HWC_q7_basic", "arm_maxpool_q7_HWC", "arm_convolve_HWC_q7_fast",
        "arm_convolve_HWC_q7_fast", "arm_fully_connected_q7_q31",
    ]  # fmt: skip
    assert "arm_relu_q7(" in files["arm_nn.c"] and "arm_depthwise" not in files["arm_nn.c"]
    assert '#include "arm_nn.h"' in files["cnn.h"] and "int8_t q7_t" in files["arm_nn.h"]


@pytest.mark.parametrize("device", [(), ("--device", "MAX78000")])
def test_older_spelling_beside_a_chip(
    device: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--cmsis-software-nn", "--fc-layer", "--embedded-code", "--top-level", "cnn")
    assert create(tmp_path, *words, device=device) == 0
    captured = capsys.readouterr()
    for option in ("--fc-layer", "--embedded-code", "--top-level"):
        assert f"option {option}: notice" in captured.out + captured.err
    assert "arm_fully_connected_q7_q31" in text_of(tmp_path)["cnn.c"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "MCU", "--mcu", "rp2040", "--cmsis-nn", "x"], "is for --device CMSIS-NN"),
        (["--device", "MAX78000", "--fc-layer"], "is for --device CMSIS-NN"),
        (["--device", "84", "--cmsis-software-nn"], "'84' is the predecessor of these chips"),
        (["--cmsis-software-nn", "--rtl"], "no RTL without the accelerator"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([*words, *DIGITS, "--prefix", "net", "--test-dir", "out"])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_options_of_the_accelerator_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match=r"--fifo: error: only the accelerator has this"):
        create(tmp_path, "--fifo")
    assert not (tmp_path / "net").exists()


@needs_compiler
def test_images_that_do_not_fit_are_computed_by_rows_with_kernels_of_ours(tmp_path: Path) -> None:
    assert create(tmp_path, "--l1", "3K") == 0
    files = text_of(tmp_path)
    assert "arm_convolve" not in files["cnn.c"]
    assert "own kernel: calls on whole images would need 3,786 bytes of RAM" in files["log.txt"]
    assert passed(run_project(files, tmp_path / "built", SANITIZED))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("groups", "the library has no grouped convolution"),
        ("transposed", "the library has no transposed convolution"),
        ("32 bits", "results of 32 bits follow from fully connected layers only"),
        ("shifts", "the library shifts to the right only"),
        ("concatenation", "the library neither concatenates nor copies"),
        ("pooling of every kind", "the library averages rows before columns on some cores"),
        ("several outputs", ""),
        ("only pooled", ""),
    ],
)
def test_what_the_library_cannot_compute_has_kernels_of_ours(name: str, reason: str) -> None:
    network = network_of(NETWORKS[name])
    found = " ".join(planned_calls(lower(network), profile_of("cortex-m4")).reasons.values())
    assert reason in found
    assert differs(network, 4) is None


@needs_compiler
@pytest.mark.parametrize("name", ["mnistxs", "nonsqpool", "s3p2avg"])
def test_known_answers(name: str, shared: Path, tmp_path: Path) -> None:
    network, _ = read_network(shared / "kat-software/cmsis-software-nn" / f"{name}.json")
    result = run_project(files_of_calls(network), tmp_path, SANITIZED)
    assert passed(result), result.stderr
