"""`ai8xize.py --compare-project`: one planted difference of each kind, told in words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.answer import LayerAnswer, read_answer
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.outcome import recorded
from ai8xtools.emulator.differences.comparing import word_differences
from ai8xtools.emulator.differences.difference import Subject
from ai8xtools.emulator.differences.output import compared_places, relation
from ai8xtools.emulator.differences.side import LoadedWords, read_side
from ai8xtools.emulator.state.memory import Memory
from device import MAX78000
from device.chip import DEFAULT_APB_BASE, POWER_CONTROL
from tests.emulator.test_verify_project import DIGITS
from tests.emulator.trees import change, generate, one_file

Compare = Callable[..., tuple[int, list[str]]]
Answers = dict[int, LayerAnswer]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    return generate(tmp_path_factory.mktemp("made") / "digits")


@pytest.fixture(scope="module")
def loaded(made: Path) -> tuple[LoadedWords, Answers]:
    """What the project has written before the network starts, and its layers by number."""
    answers = {layer.number: layer for layer in read_answer(made / "answer.npz").layers}
    return read_side(made, MAX78000, DEFAULT_APB_BASE).loaded, answers


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Compare:
    """Compare a project; return the status and the lines that are printed."""

    def call(project: Path, *options: str) -> tuple[int, list[str]]:
        words = ["--device", "MAX78000", "--test-dir", tmp_path / "unused", "--prefix", "x",
                 *DIGITS, "--compare-project", project, *options]  # fmt: skip
        try:
            status = create_project(parse([str(word) for word in words]))
        except DiagnosticError as refusal:
            return 1, [*map(str, refusal.diagnostics)]
        except ToolError as error:
            return 1, [f"{error.code} {error.message}"]
        finally:
            assert not (tmp_path / "unused").exists()
        return status, capsys.readouterr().out.splitlines()

    return call


def test_the_same_project_and_one_of_2020(made: Path, tmp_path: Path, compare: Compare) -> None:
    assert compare(made) == (0, ["the same words"])
    status, lines = compare(one_file(made, tmp_path / "old"))
    assert (status, lines[-1]) == (1, "2 differences: behaviour 2; 0 unexplained")
    assert lines[:3] == [
        "behaviour:",
        "  the program measures its time there only",
        "  the program sleeps here only",
    ]
    assert lines[-2].startswith("  one function loads network and input (SDK of 2020)")


def test_known_answer_without_words(made: Path, tmp_path: Path, compare: Compare) -> None:
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    (folder / "sampleoutput.h").write_text("#define SAMPLE_OUTPUT { 0 }\n")
    status, lines = compare(folder)
    assert (status, lines[-1]) == (1, "10 differences: known answer 10; 0 unexplained")
    assert "there expected is nothing, here 0x" in lines[1]


def test_planted_in_the_c(made: Path, tmp_path: Path, compare: Compare) -> None:
    """Input, output, known answer, clock, calls, waiting, files, order of control writes."""
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    (folder / "extra.h").touch()
    expected = re.search(
        r"0xffffffff, 0x00000004, (0x[0-9a-f]{8})", (folder / "sampleoutput.h").read_text()
    )
    sample = re.search(r"0x[0-9a-f]{8}", (folder / "sampledata.h").read_text())
    assert expected is not None and sample is not None
    change(folder / "sampleoutput.h", (expected[1], "0x12345678"))
    other = f"0x{int(sample[0], 16) ^ 0x100:08x}"
    change(folder / "sampledata.h", (sample[0], other))
    change(folder / "cnn.h", ("CNN_NUM_OUTPUTS 10", "CNN_NUM_OUTPUTS 12"))
    change(
        folder / "main.c",
        ("CNNCLKDIV_DIV1", "CNNCLKDIV_DIV4"),
        (
            "    cnn_load_bias();\n    cnn_configure();",
            "    cnn_configure();\n    cnn_load_bias();",
        ),
        ("    cnn_disable();\n", ""),
        ("        MXC_LP_EnterSleepMode(); // Wait for the interrupt\n", ""),
    )
    change(folder / "cnn.c", ("0x50408000;", "0x50410000;"))
    with recorded(()) as outcome:
        status, lines = compare(folder)
    assert status == 1
    assert outcome.facts["verdict"] == "failed" and outcome.facts["reason"] == lines[-1]
    text = "\n".join(lines)
    for line in (
        "input:\n  1 of 64 values of the sample differ, from channel 0, row 0, column 1 on: there "
        "-127, here -128",
        "CNN_NUM_OUTPUTS is 12 there, 10 here",
        "cnn_unload() delivers other bytes, 16 of 40: byte 16 is layer 3, channel 8, row 0, column "
        "0, byte 0 there, layer 3, channel 4, row 0, column 0, byte 0 here",
        "known answer:\n  0x50400000 (data memory instance 0 word 0): there expected is 0x12345678",
        "CNNCLKDIV_DIV4) there, cnn_enable(",
        "the program calls cnn_disable() here only",
        "main() calls cnn_enable, cnn_init, cnn_load_weights, cnn_configure, cnn_load_bias, ",
        "the program sleeps here only",
        "files:\n  extra.h is there only",
    ):
        assert line in text
    assert lines[-1].endswith("; 0 unexplained")
    assert lines[-1].startswith("8 differences: input 1, layout of the output 2, known answer 1, ")


def _write(address: int, value: int) -> Callable[[Memory], None]:
    return lambda memory: memory.registers.__setitem__(address, value)


def _kernel(memory: Memory) -> None:
    memory.kernels[0, 0, 8] ^= 1


def _kernel_of_no_layer(memory: Memory) -> None:
    memory.kernels[63, 700, 3] = 9


def _moved_kernels(memory: Memory) -> None:
    """Layer 3 finds its kernels four columns later."""
    memory.kernels = memory.kernels.copy()
    config = LoadedWords.of(memory, has_input=True).layers[3]
    first = config.kernels.start // 9
    memory.kernels[:, first + 40 : first + 120] = memory.kernels[:, first : first + 80].copy()
    for group in range(4):
        address = memory.addresses.apb_base + memory.chip.layer_address(group, 3, "MCNT")
        word = memory.registers.get(address, 0)
        register = memory.chip.layer_registers["MCNT"]
        for name in ("first", "last"):
            field = register.by_name[name]
            word = field.set(word, field.unpack(word) + 40 * 9 * 8)
        memory.registers[address] = word


def _bias(memory: Memory) -> None:
    memory.bias[np.nonzero(memory.bias)[0][0], np.nonzero(memory.bias)[1][0]] += 1


def _bias_of_no_layer(memory: Memory) -> None:
    memory.bias[3, 500] = 1


def _data_of_no_layer(memory: Memory) -> None:
    memory.data[15, 2000] = 1


def _sample(memory: Memory) -> None:
    memory.data[0, 3] ^= 0x80


def _power(memory: Memory) -> None:
    number = next(i for i, w in enumerate(memory.control) if w[0] == POWER_CONTROL)
    memory.control[number] = POWER_CONTROL, 3


def _lacking_write(memory: Memory) -> None:
    del memory.control[7]


def _swapped(memory: Memory) -> None:
    memory.control.append(memory.control.pop(2))


_RCNT = MAX78000.layer_address(0, 1, "RCNT") + DEFAULT_APB_BASE


@pytest.mark.parametrize(
    ("plant", "subject", "text"),
    [
        (
            _write(_RCNT, 0x0001000D),
            Subject.REGISTERS,
            "layer 1 (conv2), RCNT, group 0: last is there 13, here 9 (last row)",
        ),
        (
            _kernel,
            Subject.KERNELS,
            "layer 0 (conv1), output channel 0, input channel 0, row 2 column 2: there",
        ),
        (
            _kernel_of_no_layer,
            Subject.UNEXPLAINED,
            "processor 63 kernel column 700): there 000000090000000000, here 00",
        ),
        (_bias, Subject.BIASES, "layer 3 (fc), channel"),
        (_bias_of_no_layer, Subject.UNEXPLAINED, "(group 3 bias 500): there 1, here 0"),
        (
            _sample,
            Subject.INPUT,
            "1 of 64 values of the sample differ, from channel 0, row 1, column 4",
        ),
        (
            _data_of_no_layer,
            Subject.UNEXPLAINED,
            "(data memory instance 15 word 2000): there 0x00000001, here 0x00000000",
        ),
        (_power, Subject.REGISTERS, "power register 0: there 0x3, here 0x7 (power of the groups)"),
        (_lacking_write, Subject.ORDER, "is written here only"),
        (_swapped, Subject.ORDER, "is control write"),
    ],
)
def test_planted_in_the_words(
    plant: Callable[[Memory], None],
    subject: Subject,
    text: str,
    loaded: tuple[LoadedWords, Answers],
) -> None:
    ours, answers = loaded
    memory = ours.memory.snapshot()
    memory.control = [*memory.control]
    plant(memory)
    every = word_differences(LoadedWords.of(memory, has_input=True), ours, answers)
    told = [one for one in every if one.subject.counts]
    assert [one.subject for one in told] == [subject], told
    assert text in told[0].text


def test_registers_that_make_no_sense_are_told_and_nothing_is_read_by_them(
    loaded: tuple[LoadedWords, Answers],
) -> None:
    """Images of gigabytes, more kernels than the memory has bits, thousands of control writes."""
    ours, answers = loaded
    memory = ours.memory.snapshot()
    for plant in (_kernel, _sample, _bias):  # so that all layers are looked at
        plant(memory)
    for address in memory.registers:
        if address not in memory.addresses.ordered:
            memory.registers[address] = 0xFFFFFFFF
    memory.control = [(POWER_CONTROL, number) for number in range(100_000)]
    other = LoadedWords.of(memory, has_input=True)
    told = [one.text for one in word_differences(other, ours, answers)]
    assert any("the registers of the first layer make no sense there" in text for text in told)
    assert any("its kernels can only be read here" in text for text in told)
    assert any("100000 control writes there" in text for text in told)


def test_layers_are_summed_up(loaded: tuple[LoadedWords, Answers]) -> None:
    ours, answers = loaded
    memory = ours.memory.snapshot()
    _write(_RCNT, 0x0001000D)(memory)
    told = [*word_differences(LoadedWords.of(memory, has_input=True), ours, answers)]
    assert [one.text for one in told[:2]] == [
        "there layer 1: 12x8, max pool 2x2 stride 2, convolution 3x3 pad 1, 8 bit, 48 outputs 6x4, "
        "shift -1, ReLU, to instance 0 word 0x0",
        "here  layer 1: 8x8, max pool 2x2 stride 2, convolution 3x3 pad 1, 8 bit, 48 outputs 4x4, "
        "shift -1, ReLU, to instance 0 word 0x0",
    ]
    assert not told[0].subject.counts


def test_kernels_in_other_places_are_the_same(loaded: tuple[LoadedWords, Answers]) -> None:
    ours, answers = loaded
    memory = ours.memory.snapshot()
    _moved_kernels(memory)
    told = [*word_differences(LoadedWords.of(memory, has_input=True), ours, answers)]
    assert "layer 3 (fc): the same kernels in other places of the kernel memory" in {
        one.text for one in told
    }


@pytest.mark.parametrize(
    ("there", "here", "text"),
    [
        ([5, -3], [5, -3], ""),
        ([5, 253], [5, -3], "negative values are 256 too large there: no sign"),
        ([20, 1012], [20, -12], "negative values are 1024 too large there: no sign"),
        ([20, -12], [20, 1012], "negative values are 1024 too large here: no sign"),
        (
            [5, 253, 1012, 9],
            [5, -3, -12],
            "negative values are 256 or 1024 too large there: no sign",
        ),
        ([5, 4], [5, -3], ""),
    ],
)
def test_how_16_bit_results_go_together(there: list[int], here: list[int], text: str) -> None:
    results = (np.array(values).astype("<i2").tobytes() for values in (there, here))
    assert relation(*results) == text or there == here


@pytest.mark.parametrize(("second", "text"), [(-3, "with their sign"), (253, "without their sign")])
def test_16_bits_beside_8(second: int, text: str) -> None:
    wide, narrow = np.array([5, second]).astype("<i2"), np.array([5, -3]).astype("<i1")
    told = relation(wide.tobytes(), narrow.tobytes())
    assert told == f"values of 8 bits take 16 there, {text}, and 8 here"
    assert "take 16 here" in relation(narrow.tobytes(), wide.tobytes())


@pytest.mark.parametrize(
    ("there", "here", "text"),
    [
        ([0, 1, 2, 3], [0, 1, 2], "4 bytes there, 3 here; the first 3 are the same, the others "
         "there are byte 3 and the like"),
        ([0, 2], [0, 1, 2], "other bytes, 1 of 2: byte 1 is byte 2 there, byte 1 here"),
        ([0, 2, 1], [0, 1, 2], "the same bytes in another order, 2 of 3: byte 1 is byte 2 there"),
    ],
)  # fmt: skip
def test_where_bytes_of_results_come_from(there: list[int], here: list[int], text: str) -> None:
    """The vendor's tool copies whole groups of four processors."""
    told = compared_places(np.array(there), np.array(here), lambda key: f"byte {key}")
    assert text in "; ".join(told)


def test_interfaces_of_two_generations(tmp_path: Path, compare: Compare) -> None:
    """The same 8-bit result: bytes there, 16 bits here; the words are the same."""
    folder = generate(tmp_path / "digits", "--output-width", "8")
    status, lines = compare(folder, "--output-width", "8", "--sdk", "studio")
    assert status == 1
    assert lines[:4] == [
        "layout of the output:",
        "  CNN_NUM_OUTPUTS is 10 there, 5 here",
        "  cnn_unload() delivers 10 bytes there, 20 here",
        "  values of 8 bits take 16 here, with their sign, and 8 there",
    ]


def test_what_cannot_be_compared(made: Path, tmp_path: Path, compare: Compare) -> None:
    assert compare(tmp_path / "missing") == (1, ["E800 no such folder"])
    assert (
        "--compare-project: error: it cannot be used together with --verify"
        in compare(made, "--verify")[1][0]
    )
