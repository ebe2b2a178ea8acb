"""ai8xize.py --device CMSIS-NN: calls of Arm's functions, and what they cannot compute."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ai8xtools.commands import targets
from ai8xtools.commands.emulate.arguments import parse as parse_emulation
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import Conv, Gemm, Pool, Reshape
from ai8xtools.software.cmsis.build import planned_calls
from ai8xtools.software.cmsis.choice import choose_calls
from ai8xtools.software.graph import Convolution
from ai8xtools.software.lower import lower
from ai8xtools.software.operators.lower import Lowering
from tests.conftest import ROOT
from tests.software.calls import differs, files_of_calls, operators_differ, profile_of
from tests.software.calls_answers import wrong_calls, wrong_functions
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.graphs import Maker
from tests.software.known_answers import read_network
from tests.software.library_stand_in import write_stand_in
from tests.software.operators import NETWORKS, Small, _w, network_of

DIGITS = [
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
]  # fmt: skip
needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


def create(folder: Path, *words: str, device: tuple[str, ...] = ("--device", "CMSIS-NN")) -> int:
    line = [*device, *DIGITS, "--prefix", "net", "--test-dir", str(folder), *words]
    return targets.main("ai8xize.py", line)


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
        (["--device", "MCU", "--mcu", "rp2040", "--fc-opt"], "is for --device CMSIS-NN"),
        (["--device", "84", "--cmsis-software-nn"], "'84' is the predecessor of these chips"),
        (["--cmsis-software-nn", "--rtl"], "is for --device MAX78000"),
        (["--device", "CMSIS-NN", "--fifo"], "is for --device MAX78000"),
        (["--device", "CMSIS-NN", "--l2", "64K"], "argument --l2: is for --device MCU"),
        (["--device", "CMSIS-NN", "--scheme", "planes"], "planes is for --device MCU"),
    ],
)
def test_wrong_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        targets.main("ai8xize.py", [*words, *DIGITS, "--prefix", "net", "--test-dir", "out"])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


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
def test_images_that_are_not_square() -> None:
    """The library's short forms take them for square ones, and pool them wrongly."""
    network = network_of(NETWORKS["one channel"])
    calls = planned_calls(lower(network), profile_of("cortex-m4")).calls.values()
    assert {call.function for call in calls} == {
        "arm_convolve_HWC_q7_basic_nonsquare", "arm_maxpool_q7_HWC_nonsquare",
    }  # fmt: skip
    assert differs(network, 4) is None


@needs_compiler
def test_relu_of_32_bits_is_ours() -> None:
    layers = "\n- {op: linear, flatten: true, output_width: 32, activate: ReLU}\n"
    network = network_of(Small(layers, (3, 2, 2), (_w(5, 12),)))
    made = planned_calls(lower(network), profile_of("cortex-m4"))
    assert [*made.reasons.values()] == ["the library has no ReLU of 32 bits"]
    assert differs(network, 4) is None


def called_operators() -> Graph:
    """Return operators that Arm's functions compute, and some that they nearly do."""
    m = Maker(4, 9, 9)

    def conv(data: Node, filters: int, kernel: int, after: int, groups: int = 1) -> Node:
        weights = m.numbers(filters, data.shape[1] // groups, kernel, kernel)
        pads = ((kernel // 2, after),) * 2
        layer = Conv((1, 1), pads, (1, 1), groups)
        return m(layer, data, weights, 128 * m.numbers(filters, most=20))

    a = m.to8(conv(m.given, 8, 3, 1), 9, 0)
    b = m.to8(conv(a, 8, 3, 2), 9)
    c = m.to8(conv(b, 8, 3, 1, groups=8), 8, -1, 100)
    d = m(Pool(False, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)), c)
    flat = m(Reshape((1, 8 * 25)), d)
    e = m.to8(m(Gemm(), flat, m.numbers(6, 200), 128 * m.numbers(6, most=20)), 9)
    return m.graph(m(Gemm(), e, m.numbers(5, 6), 128 * m.numbers(5, most=20)), d)


@needs_compiler
def test_operators_are_computed_by_functions_where_these_do_the_same() -> None:
    """Without symmetric padding the fast convolution would read beyond its data."""
    graph = called_operators()
    made = planned_calls(Lowering(graph, "net").graph(), profile_of("cortex-m4"))
    assert [call.function for call in made.calls.values()] == [
        "arm_convolve_HWC_q7_fast", "arm_convolve_HWC_q7_basic",
        "arm_depthwise_separable_conv_HWC_q7", "arm_maxpool_q7_HWC", "arm_fully_connected_q7",
        "arm_fully_connected_q7_q31",
    ]  # fmt: skip
    assert "the library has no element-wise operations" in made.reasons.values()
    assert operators_differ(graph) is None


def test_limits_and_places_that_the_library_does_not_have() -> None:
    steps = Lowering(called_operators(), "net").graph()
    first = steps.steps[0]
    assert isinstance(first, Convolution)
    for changed, told in (
        ({"low": -1}, "the library limits results to 8 bits, or to 0 by ReLU"),
        ({"pad": (-1, 0)}, "the library does not crop"),
    ):
        graph = replace(steps, steps=(replace(first, **changed), *steps.steps[1:]))
        assert choose_calls(graph).reasons[first.target] == told
    padded = replace(first, weights=first.weights[:, :, :1, :1], out_size=(1, 1), pad=(1, 1))
    call = choose_calls(replace(steps, steps=(padded,))).calls[first.target]
    assert call.function == "arm_convolve_HWC_q7_basic"


@needs_compiler
def test_all_bytes_of_32_bits_are_compared(tmp_path: Path) -> None:
    """The reference compares as many bytes as there are values: a quarter of them."""
    assert create(tmp_path) == 0
    files = text_of(tmp_path)
    head, comma, last = files["sampledata.h"].rpartition(",")
    value, brace, rest = last.partition("}")
    files["sampledata.h"] = f"{head}{comma}{int(value) ^ 1 << 30}{brace}{rest}"
    result = run_project(files, tmp_path / "built")
    assert result.returncode == 1 and "output 0 differs" in result.stdout


@needs_compiler
@pytest.mark.parametrize("name", ["mnistxs", "nonsqpool"])
def test_known_answers_on_this_computer_and_on_cores(name: str, shared: Path) -> None:
    file = shared / "kat-software/cmsis-software-nn" / f"{name}.json"
    assert [*wrong_calls(read_network(file)[0], file)] == []


@pytest.mark.parametrize("name", ["kws20v3", "cifar10nas", "mlpmulti", "s3p2avg"])
def test_functions_are_those_of_the_reference(name: str, shared: Path) -> None:
    file = shared / "kat-software/cmsis-software-nn" / f"{name}.json"
    assert [*wrong_functions(read_network(file)[0], file)] == []


needs_make = pytest.mark.skipif(
    compiler() is None or shutil.which("make") is None or shutil.which("cc") is None,
    reason="there is no make or no compiler",
)


def emulate_words(words: list[str]) -> int:
    return emulate(parse_emulation(words))


def make_and_run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Make a project for this computer, and run its known-answer test."""
    built = subprocess.run(
        ["make", "-C", project, *words], capture_output=True, text=True, check=False
    )
    if built.returncode:
        return built
    return subprocess.run([project / "main"], capture_output=True, text=True, check=False)


@needs_make
def test_library_of_the_user_takes_the_place_of_functions_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = write_stand_in(tmp_path / "CMSIS_5")
    assert create(tmp_path, "--cmsis-nn", str(library)) == 0
    files = text_of(tmp_path)
    assert "arm_convolve_HWC_q7_fast(" not in files["arm_nn.c"]
    assert "arm_fully_connected_q7_q31(" in files["arm_nn.c"]
    assert "ConvolutionFunctions/arm_convolve_HWC_q7_fast.c" in files["Makefile"]
    assert "arm_convolve_HWC_q7_basic_nonsquare.c" not in files["Makefile"]
    result = make_and_run(tmp_path / "net")
    assert passed(result), result.stderr
    assert emulate_words([str(tmp_path / "net"), "--core", "cortex-m4", "--count"]) == 0
    counted = capsys.readouterr().out
    assert " arm_convolve_HWC_q7_fast\n" in counted and " memcpy\n" not in counted
    moved = library.rename(tmp_path / "moved")
    assert make_and_run(tmp_path / "net", "-B").returncode != 0
    assert passed(make_and_run(tmp_path / "net", "-B", f"CMSIS_NN={moved}"))
    with pytest.raises(EmulatorError, match="the library of the project is not there") as refused:
        emulate_words([str(tmp_path / "net")])
    assert refused.value.code == "E807"


@pytest.mark.parametrize("place", ["CMSIS", "CMSIS/NN"])
def test_folder_of_the_library_itself_will_do(place: str, tmp_path: Path) -> None:
    library = write_stand_in(tmp_path / "CMSIS_5") / place
    assert create(tmp_path, "--cmsis-nn", str(library)) == 0
    taken = json.loads(text_of(tmp_path)["plan.json"])["library"]
    for path in (*taken["sources"], *taken["includes"]):
        assert Path(taken["folder"], path).exists()
    assert "NN/Include" in taken["includes"] and len(taken["includes"]) == 3


@needs_make
@pytest.mark.parametrize("name", ["only pooled", "residual", "depthwise, series", "strides"])
def test_data_that_the_library_destroys_are_spared(name: str, tmp_path: Path) -> None:
    library = write_stand_in(tmp_path / "CMSIS_5")
    network = network_of(NETWORKS[name])
    project = tmp_path / "net"
    project.mkdir()
    for path, text in files_of_calls(network, library=str(library / "CMSIS")).items():
        (project / path).write_text(text)
    flags = " ".join(SANITIZED)
    result = make_and_run(project, f"CFLAGS={flags}")
    assert passed(result), result.stderr


def refusal(folder: Path, library: Path) -> str:
    with pytest.raises(DiagnosticError) as caught:
        create(folder, "--cmsis-nn", str(library))
    assert not (folder / "net").exists()
    return str(caught.value)


def test_copy_that_is_of_no_use_is_named(tmp_path: Path) -> None:
    library = write_stand_in(tmp_path / "CMSIS_5")
    convolutions = library / "CMSIS/NN/Source/ConvolutionFunctions"
    assert "E943" in refusal(tmp_path, library.rename(tmp_path / "with blank"))
    library = (tmp_path / "with blank").rename(library)
    (convolutions / "arm_convolve_HWC_q7_fast.c").unlink()
    (library / "CMSIS/NN/Include/arm_nnfunctions.h").unlink()
    told = refusal(tmp_path, library)
    assert "E940" in told
    assert "it lacks arm_convolve_HWC_q7_fast.c, Include/arm_nnfunctions.h" in told
    (convolutions / "arm_convolve_HWC_q7_basic.c").rename(convolutions / "arm_convolve_s8.c")
    told = refusal(tmp_path, library)
    assert "E941" in told and "is newer than CMSIS 5.9.0: it has arm_convolve_s8.c" in told
    file = tmp_path / "file"
    file.write_text("")
    assert "is not a folder [E940]" in refusal(tmp_path, file)
    assert "is not a folder [E940]" in refusal(tmp_path, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "there is no CMSIS-NN in" in refusal(tmp_path, tmp_path / "empty")
