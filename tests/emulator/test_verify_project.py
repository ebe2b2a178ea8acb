"""`ai8xize.py --verify-project`: the words of an edited project against those of the options."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from tests.conftest import ROOT
from tests.emulator.trees import change, generate, one_file

Compare = Callable[..., tuple[int, str]]
DIGITS = (
    "--config-file", ROOT / "networks" / "digits-chw-ai85.yaml",
    "--checkpoint-file", ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar",
    "--sample-input", ROOT / "tests" / "sample_digits.npy",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    return generate(tmp_path_factory.mktemp("made") / "digits")


@pytest.fixture
def edited(made: Path, tmp_path: Path) -> Path:
    """A project to be edited."""
    shutil.copytree(made, tmp_path / "digits")
    return tmp_path / "digits"


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Compare:
    """Compare a project; return the status and what is said."""

    def call(project: Path, *options: str, chip: str = "MAX78000") -> tuple[int, str]:
        words = ["--device", chip, "--test-dir", tmp_path / "unused", "--prefix", "x", *DIGITS,
                 "--verify-project", project, *options]  # fmt: skip
        try:
            status = create_project(parse([str(word) for word in words]))
        except DiagnosticError as refusal:
            return 1, "\n".join(map(str, refusal.diagnostics))
        except ToolError as error:
            return 1, f"{error.code} {error.message}"
        finally:
            assert not (tmp_path / "unused").exists()
        return status, capsys.readouterr().out

    return call


def test_project_with_the_same_words(made: Path, edited: Path, compare: Compare) -> None:
    """Other text, other comments, and an answer file that is gone: the words count."""
    assert compare(made) == (0, f"verified 8033 accelerator words of {made}\n")
    (edited / "answer.npz").unlink()
    change(edited / "main.c", ("int main(void)\n{", 'int main(void)\n{\n    printf("mine");'))
    assert compare(edited, "--softmax")[0] == 0


def test_project_of_2020_with_the_same_words_but_other_control_words(
    made: Path, tmp_path: Path, compare: Compare
) -> None:
    folder = one_file(made, tmp_path / "old")
    assert compare(folder)[0] == 0
    text = (folder / "main.c").read_text()
    clear = re.search(r"\*\(\(volatile uint32_t \*\) 0x50100000\) = 0x[0-9a-f]+;", text)
    assert clear is not None
    change(folder / "main.c", (clear[0], f"{clear[0]}\n    {clear[0]}"))
    assert "(group 0 CTL, write" in compare(folder)[1]


def test_first_wrong_words_are_named(edited: Path, compare: Compare) -> None:
    """One register, two words of one block of kernels, a bias, and the input."""
    lines = (edited / "cnn.c").read_text()
    register = re.search(r"0x50100410\) = 0x[0-9a-f]{8}", lines)
    kernels = re.findall(r"0x[0-9a-f]{8}", (edited / "weights.h").read_text())
    assert register is not None
    change(edited / "cnn.c", (register[0], "0x50100410) = 0x00002400"))
    pair = f"{kernels[2]}, {kernels[3]}"
    other = ", ".join(f"0x{int(word, 16) ^ 1:08x}" for word in kernels[2:4])
    change(edited / "weights.h", (pair, other), ("  0xf6, 0xff", "  0xf6, 0xfe"))
    status, text = compare(edited)
    assert status == 1
    found = [line.partition("wrong word: ")[2] for line in text.splitlines()]
    assert found[0].startswith(
        f"cnn_load_weights: 0x50180000, processor 0 kernel column 0, kernel of layer 0, output "
        f"channel 0, input channel 0, row 1 column 0: expected {kernels[2]}, found"
    )
    assert f"expected {kernels[3]}, found" in found[1]
    assert "bias 1, bias of layer 3" in found[2]
    assert "group 0 layer 0 WPTR_MOFFS: expected 0x00002000, found 0x00002400 (words" in found[3]
    assert "4 words differ from the program [E840]" in text


def test_functions_that_stop_show_the_words_before(edited: Path, compare: Compare) -> None:
    change(edited / "weights.h", ("0x50180000", "0x00180000"))
    status, text = compare(edited)
    assert status == 1
    assert "cnn_load_weights() writes to address 0x00180001" in text
    assert "next comes cnn_load_weights: 0x50180000, processor 0 kernel column 0" in text


@pytest.mark.parametrize(
    ("folder", "options", "message"),
    [
        ("missing", {}, "E800 no such folder"),
        (".", {}, "E800"),
        ("digits", {"chip": "MAX78002"}, "E803 the program is for MAX78000"),
        ("other", {}, "registers have other values [E844]"),
    ],
)
def test_what_is_no_project_of_the_network(
    folder: str, options: dict[str, str], message: str, edited: Path, project: Path,
    compare: Compare,
) -> None:  # fmt: skip
    shutil.copytree(project, edited.parent / "other")
    status, text = compare(edited.parent / folder, **options)
    assert status == 1
    assert message in text


def test_no_project_is_written_beside(edited: Path, compare: Compare) -> None:
    text = compare(edited, "--verify")[1]
    assert "option --verify-project: error: it cannot be used together with --verify" in text
