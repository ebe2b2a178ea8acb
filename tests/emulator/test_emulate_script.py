"""The command line of emulate.py: what it prints and how it ends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.by_hand import one_by_one
from tests.emulator.trees import verdict
from tests.run_script import run_script

Variant = Callable[..., Path]


def emulate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_script("emulate.py", *arguments)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A 1x1 convolution as recorded words, with its first result expected."""
    words = one_by_one(np.array([[[1, 2], [3, -128]]]), np.array([[100]]))
    size, address, value = np.array(words.rows).T
    path = tmp_path / "words.npz"
    np.savez(
        path,
        phase=np.full(len(size), 4),
        size=size,
        addr=address,
        value=value,
        expected_addr=[0x50402000],
        expected_value=[1],
        expected_mask=[0xFF],
    )
    return path


def change(path: Path, **arrays: object) -> None:
    """Replace arrays of a recording; None removes one, a function computes it from the old."""
    with np.load(path) as archive:
        content = {**archive, **arrays}
        content |= {name: new(archive[name]) for name, new in arrays.items() if callable(new)}
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


def test_passing_project_ends_with_pass(project: Path) -> None:
    result = emulate(project)
    assert result.returncode == 0
    assert "*** PASS ***" in result.stdout
    assert verdict(result.stdout) == ("PASS", "(1 inference)")


def test_verbose_shows_the_layers(project: Path) -> None:
    assert (
        "layer 0: 2x2, convolution 3x3 pad 1, 8 bit, 2 outputs 2x2"
        in emulate(project, "--verbose").stdout
    )


def test_failing_project_shows_where_and_the_registers(variant: Variant) -> None:
    result = emulate(variant(("0x0f02", "0x0f03")))
    assert result.returncode == 1
    assert "1 words of the output differ" in result.stdout
    assert (
        "First difference: layer 0, channel 0, row 0, column 1 (0x50402004): expected 3, found 2\n"
        in result.stdout
    )
    assert "last_output=0x8" in result.stdout
    assert result.stdout.endswith("FAIL\n")


def test_first_of_several_differences_is_shown(variant: Variant) -> None:
    """In the order of channels, rows and columns, whatever the program looks at first."""
    result = emulate(variant(("0x0a01, 0x0f02, 0x1403", "0x0b01, 0x0f02, 0x1404")))
    assert "2 words of the output differ" in result.stdout
    assert "layer 0, channel 0, row 1, column 0 (0x50402008): expected 4, found 3" in result.stdout
    assert result.stdout.count("Data mismatch") == 1  # what the program printed, no more


def test_program_that_goes_on_after_a_difference_is_understood(variant: Variant) -> None:
    values = ("0x0a01, 0x0f02, 0x1403", "0x0b01, 0x0f02, 0x1404")
    goes_on = ("            return CNN_FAIL;", "            wrong = 1;")
    end = ("        }\n    return CNN_OK;", "        }\n    return wrong ? CNN_FAIL : CNN_OK;")
    start = ("int check_output(void)\n{", "int check_output(void)\n{\n    int wrong = 0;")
    result = emulate(variant(values, goes_on, end, start))
    assert "2 words of the output differ" in result.stdout
    assert "layer 0, channel 0, row 1, column 0 (0x50402008): expected 4, found 3" in result.stdout


def test_program_that_prints_no_numbers_shows_the_word_it_read_last(variant: Variant) -> None:
    numbers = "(%d/%d) at address 0x%08x: Expected 0x%08x, read 0x%08x"
    silent = emulate(variant(("0x0f02", "0x0f03"), (numbers, "%d %d %d %d %d")))
    assert silent.returncode == 1
    assert "data memory instance 0 word 2049" in silent.stdout
    assert "It holds layer 0 channel 0 to 1, row 0, column 1." in silent.stdout
    assert "last_output=0x8" in silent.stdout


@pytest.mark.parametrize("name", ["trace.txt", "trace.csv"])
def test_trace_holds_the_registers_field_by_field(name: str, project: Path, tmp_path: Path) -> None:
    path = tmp_path / name
    assert emulate(project, "--trace", path).returncode == 0
    lines = [line.replace(",", " ").split() for line in path.read_text().splitlines()]
    assert lines[0] == ["address", "word", "place", "field", "value", "meaning"]
    rcnt = ["0x50100010", "0x00010003", "group", "0", "layer", "0", "RCNT"]
    assert [line[7:] for line in lines if line[:7] == rcnt] == [
        ["last", "3", "last", "row"],
        ["pad", "1", "pad", "rows"],
    ]


def test_trace_of_recorded_words_and_of_programs_that_go_wrong(
    recording: Path, variant: Variant, tmp_path: Path
) -> None:
    path = tmp_path / "trace.txt"
    emulate("--words", recording, "--device", "MAX78000", "--trace", path)
    assert "kernel_length" in path.read_text()
    folder = variant(("0x000f000f", "0x00000000"))  # no processor
    result = emulate(folder, "--trace", path)
    assert result.returncode == 1
    assert "there is nothing to execute" in result.stderr
    assert "group 0 layer 0 ENA" in path.read_text()


def test_cycles_are_estimated(project: Path) -> None:
    lines = [line.split() for line in emulate(project, "--cycles").stdout.splitlines()]
    assert ["layer", "cycles", "fetches", "kernel", "steps"] in lines
    assert ["0", "52", "4", "8"] in lines


def test_wrong_registers_fail_though_the_program_passes(variant: Variant) -> None:
    result = emulate(variant(("0x000f000f", "0x0000000f")))
    assert result.returncode == 1
    assert "*** PASS ***" in result.stdout
    assert (
        "error: layer 0: group 0, ENA (0x50100710) kernels: expected 0xf, found 0 (the processors "
        "that take part)"
    ) in result.stdout
    assert result.stdout.endswith("whatever the result: see the errors above.\nFAIL\n")


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (("    cnn_init();", "    cnn_init(;"), "error: the project does not compile: "),
        (
            ("    cnn_init();", "    for (volatile int i = 0;; i++) {}"),
            "error: the program does not finish within 1 s",
        ),
    ],
)
def test_errors_are_one_message_and_status_1(
    replacement: tuple[str, str], message: str, variant: Variant
) -> None:
    result = emulate(variant(replacement), "--time-limit", "1")
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["project", "--words", "x.npz"],
        ["project", "--time-limit", "0"],
        ["project", "--device", "MAX32"],
        ["project", "--dump", "x.npz"],
        ["project", "--decompile", "out", "--prove"],
    ],
)
def test_wrong_usage_has_status_2(arguments: list[str]) -> None:
    assert emulate(*arguments).returncode == 2


@pytest.mark.parametrize("base", ["0x3", "0x100000000", "-4096", "base"])
def test_impossible_base_address_is_refused(project: Path, base: str) -> None:
    result = emulate(project, f"--apb-base={base}")
    assert result.returncode == 2
    assert "argument --apb-base: " in result.stderr


@pytest.mark.parametrize("base", ["0x10000000", "0x40000000"])
def test_base_address_where_something_else_stands_is_refused(project: Path, base: str) -> None:
    result = emulate(project, f"--apb-base={base}")
    assert result.returncode == 1
    assert f"at {base} overlaps" in result.stderr


def test_file_instead_of_a_folder_is_called_so(project: Path) -> None:
    result = emulate(project / "main.c")
    assert result.returncode == 1
    assert "main.c: error: it is a file, not a folder" in result.stderr


def test_words_are_executed_and_data_memory_is_written(recording: Path, tmp_path: Path) -> None:
    result = emulate("--words", recording, "--device", "MAX78000", "--dump", tmp_path / "d.npz")
    assert result.returncode == 0
    assert result.stdout == "1 of 1 expected words are right\nPASS\n"
    with np.load(tmp_path / "d.npz") as data:
        values = dict(zip(data["addr"].tolist(), data["value"].tolist(), strict=True))
    assert [values[0x50402000 + 4 * i] for i in range(4)] == [1, 2, 2, 0x9C]


def test_unexpected_word_is_shown_with_the_layer_that_wrote_it(recording: Path) -> None:
    change(recording, expected_value=[2])
    result = emulate("--words", recording, "--device", "MAX78000")
    assert result.returncode == 1
    assert (
        "0x50402000, layer 0 channel 0, row 0, column 0: expected 0x00000002, found 0x00000001"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("arrays", "passes"),
    [
        ({"expected": [[0x50402000, 1, 0xFF], [0x50402004, 2, 0xFF]]}, True),
        ({"expected": [[0x50402000, 1], [0x50402004, 2]]}, True),
        ({"expected": [[0x50402000, 1], [0x50402004, 3]]}, False),
        ({"expected_addr": [0x50402000], "expected_value": [1]}, True),
        ({"expected_addr": [0x50402000], "expected_value": [0x101]}, False),
    ],
)
def test_expected_words_may_come_as_columns_and_without_masks(
    arrays: dict[str, object], passes: bool, recording: Path
) -> None:
    change(recording, expected_addr=None, expected_value=None, expected_mask=None)
    change(recording, **arrays)
    result = emulate("--words", recording, "--device", "MAX78000")
    assert result.returncode == (0 if passes else 1), result.stderr
    assert result.stdout.endswith("PASS\n" if passes else "FAIL\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_text("no archive"), "not a NumPy archive"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: change(path, size=None), "lacks the array size [E801]"),
        (lambda path: change(path, size=[4]), "differ in length"),
        (lambda path: change(path, size=lambda size: 0 * size + 3), "a write of 3 bytes"),
        (
            lambda path: change(path, addr=np.array(["a"])),
            "array addr: it holds '<U1', not",
        ),
        (lambda path: change(path, value=lambda v: v * 0.5), "array value has the type float64"),
        (lambda path: change(path, value=lambda v: v + 2**40), "integers of 32 bits without sign"),
        (lambda path: change(path, addr=lambda a: -a), "array addr has values from -13"),
        (lambda path: change(path, expected_value=None), "need an address and a value"),
        (lambda path: change(path, expected_value=[1, 2]), "need an address and a value"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "NumPy archive"),
    ],
)
def test_damaged_recording_is_refused(
    damage: Callable[[Path], object], message: str, recording: Path
) -> None:
    damage(recording)
    result = emulate("--words", recording, "--device", "MAX78000")
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_recorded_words_of_another_device_are_told_so(recording: Path) -> None:
    controls = [0x50100000, 0x50500000]
    arrays = {"phase": [0, 0], "size": [4, 4], "addr": controls, "value": [1, 1]}
    change(recording, **{name: lambda old, new=new: [*new, *old] for name, new in arrays.items()})
    result = emulate("--words", recording, "--device", "MAX78002")
    assert result.returncode == 1
    assert "the program is for MAX78000: it writes to that chip's control" in result.stderr
    assert "0x50100000; the device is MAX78002 [E803]" in result.stderr


def test_project_of_another_device_is_told_so(project: Path) -> None:
    result = emulate(project, "--device", "MAX78002")
    assert result.returncode == 1
    assert "error: the program is for MAX78000" in result.stderr


@pytest.mark.parametrize(
    ("size", "address", "message"),
    [
        (4, 0x4FF00000, "0x4ff00000: the accelerator has no memory there"),
        (4, 0x50101800, "0x50101800 (group 0 register at offset 0x1800): the accelerator has no"),
        (4, 0x50100003, "0x50100003 (group 0 CTL): it is no multiple of the 4 bytes written"),
    ],
)
def test_words_to_nothing_are_refused(
    size: int, address: int, message: str, recording: Path
) -> None:
    row = {"phase": 4, "size": size, "addr": address, "value": 1}
    change(recording, **{name: lambda old, new=new: [*old, new] for name, new in row.items()})
    result = emulate("--words", recording, "--device", "MAX78000")
    assert result.returncode == 1
    assert message in result.stderr


def test_expected_word_that_no_layer_wrote_is_explained(recording: Path) -> None:
    change(recording, expected_addr=[0x50404000])
    result = emulate("--words", recording, "--device", "MAX78000")
    assert result.returncode == 1
    assert (
        "No executed layer wrote 0x50404000 (data memory instance 0 word 4096).\n"
        "Layer 0 ran last and wrote 0x50402000 (data memory instance 0 word 2048) to 0x5040200c "
        "(data memory instance 0 word 2051).\n"
        "Registers of layer 0 in group 0:\n" in result.stdout
    )
    assert "WPTR_BASE   pointer=0x800" in result.stdout


def test_device_of_recorded_words_must_be_named(recording: Path) -> None:
    result = emulate("--words", recording)
    assert result.returncode == 1
    assert "option --device" in result.stderr


def test_number_of_wrong_words_is_a_lower_bound_if_time_was_short() -> None:
    from ai8xtools.commands.emulate.emulate import _count_wrong

    assert _count_wrong(3, True).startswith("3 words of the output differ")
    assert _count_wrong(3, False).startswith("At least 3 words of the output differ")
