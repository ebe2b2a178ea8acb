"""The command line of emulate.py: what it prints and how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.emulator.by_hand import one_by_one

Variant = Callable[..., Path]


def emulate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "emulate.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


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
    with np.load(path) as archive:
        content = {**archive, **arrays}
    np.savez(path, **{name: array for name, array in content.items() if array is not None})


def test_passing_project_ends_with_pass(project: Path) -> None:
    result = emulate(project)
    assert result.returncode == 0
    assert "*** PASS ***" in result.stdout
    assert result.stdout.endswith("PASS (1 inference)\n")


def test_verbose_shows_the_layers(project: Path) -> None:
    assert (
        "layer 0: 2x2, convolution 3x3 pad 1, 8 bit, 2 outputs 2x2"
        in emulate(project, "--verbose").stdout
    )


def test_failing_project_shows_where_and_the_registers(variant: Variant) -> None:
    result = emulate(variant(("0x0f02", "0x0f03")))
    assert result.returncode == 1
    assert "data memory instance 0 word 2049" in result.stdout
    assert "layer 0 output 0 to 1, row 0, column 1" in result.stdout
    assert "last_output=8" in result.stdout
    assert result.stdout.endswith("FAIL\n")


def test_suspicious_layer_is_shown_though_it_passes(variant: Variant) -> None:
    result = emulate(variant(("0x000f000f", "0x0000000f")))
    assert "warning: layer 0: ENA enables kernels of processors" in result.stdout


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (("    cnn_init();", "    cnn_init(;"), "error: the project does not compile: "),
        (("    cnn_init();", "    while (1) {}"), "error: the program does not finish within 1 s"),
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
        "0x50402000, layer 0 output 0, row 0, column 0: expected 0x00000002, found 0x00000001"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_text("no archive"), "not a NumPy archive"),
        (lambda path: path.unlink(), "No such file"),
        (lambda path: change(path, size=None), "lacks the array size"),
        (lambda path: change(path, size=[4]), "differ in length"),
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


def test_device_of_recorded_words_must_be_named(recording: Path) -> None:
    result = emulate("--words", recording)
    assert result.returncode == 1
    assert "option --device" in result.stderr
