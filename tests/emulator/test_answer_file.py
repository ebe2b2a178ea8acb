"""The verdict of emulate.py needs evidence, and the answer file tells which word is wrong."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.emulator import EmulatorError
from tests.conftest import ROOT
from tests.emulator.trees import change, verdict
from tests.run_script import run_script

Variant = Callable[..., Path]
WORD = r"0x[0-9a-f]{8}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    folder = tmp_path_factory.mktemp("made")
    done = run_script(
        "ai8xize.py", "--device", "MAX78000", "--test-dir", folder,
        "--prefix", "digits", "--config-file", ROOT / "networks" / "digits-chw-ai85.yaml",
        "--checkpoint-file", ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar",
        "--sample-input", ROOT / "tests" / "sample_digits.npy",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "digits"


def damaged(made: Path, folder: Path, name: str, number: int, pattern: str = WORD) -> Path:
    """Copy a project with the lowest bit of one of the numbers in a file inverted."""
    shutil.copytree(made, folder / "net")
    path = folder / "net" / name
    text = path.read_text()
    found = list(re.finditer(pattern, text))[number]
    value = int(found[0], 16) ^ 1
    path.write_text(f"{text[: found.start()]}0x{value:0{len(found[0]) - 2}x}{text[found.end() :]}")
    return folder / "net"


def test_program_is_as_its_answer_file_tells(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emulate(parse([str(made)])) == 0
    assert re.search(r"As in answer.npz: \d+ words, layers 0 to \d", capsys.readouterr().out)
    assert emulate(parse([str(made), "--no-answer"])) == 0
    assert "answer.npz" not in capsys.readouterr().out


def test_pass_names_what_speaks_against_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No answer file, and a sample of zeros with the output that belongs to it."""
    net = tmp_path / "net"
    shutil.copytree(made, net)
    (net / "answer.npz").unlink()
    assert emulate(parse([str(net)])) == 0
    assert verdict(capsys.readouterr().out) == ("PASS", "(1 inference; answer.npz is missing)")
    sample = net / "sampledata.h"
    sample.write_text(re.sub(WORD, "0x00000000", sample.read_text()))
    emulate(parse([str(net), "--accelerator-only"]))
    found = re.search(rf"^{WORD}( {WORD})+$", capsys.readouterr().out, re.MULTILINE)
    assert found is not None
    words = found[0].split()
    records = [
        ", ".join([address, "0xffffffff", str(len(part)), *part])
        for address, part in (
            ("0x50400000", words[:4]), ("0x50408000", words[4:8]), ("0x50410000", words[8:]),
        )
    ]  # fmt: skip
    definition = f"#define SAMPLE_OUTPUT {{ {', '.join(records)}, 0 }}\n"
    (net / "sampleoutput.h").write_text(definition)
    assert emulate(parse([str(net)])) == 0
    notes = "(1 inference; answer.npz is missing; the input is all zeros)"
    assert verdict(capsys.readouterr().out) == ("PASS", notes)


@pytest.mark.parametrize(
    ("file", "number", "pattern", "word"),
    [
        ("weights.h", 4, WORD, "kernel of layer 0, output channel"),
        ("weights.h", 0, r"0x[0-9a-f]{2}\b", "bias 0, bias of layer"),
        ("sampledata.h", 3, WORD, "input of layer 0, channel 0, row 1, column 4"),
        ("cnn.c", 0, r"(?<=50100410\) = )0x[0-9a-f]{8}", "group 0 layer 0 "),
    ],
)
def test_wrong_word_is_named(
    made: Path, tmp_path: Path, file: str, number: int, pattern: str, word: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    project = damaged(made, tmp_path, file, number, pattern)
    emulate(parse([str(project)]))
    first = re.search(r"First wrong word: .*", capsys.readouterr().out)
    assert first is not None and word in first[0]


def test_file_of_another_device_is_left_out(
    made: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(project, tmp_path / "net")
    shutil.copy(made / "answer.npz", tmp_path / "net")
    assert emulate(parse([str(tmp_path / "net")])) == 1
    assert "does not belong to this program and is left out" in capsys.readouterr().out
    for option in ("--words-changed", "--no-answer"):
        assert emulate(parse([str(tmp_path / "net"), option])) == 0


def test_word_that_differs_fails_whatever_the_program_reports(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A register of group 2 that changes nothing; with and without the C, on inputs, in a batch."""
    net = Path(shutil.copytree(made, tmp_path / "net"))
    text = (net / "cnn.c").read_text()
    word = re.search(r"50900590\) = (0x[0-9a-f]{8})", text)
    assert word is not None
    wrong = f"50900590) = 0x{int(word[1], 16) ^ 1 << 8:08x}"
    change(net / "cnn.c", (word[0], wrong))
    np.save(tmp_path / "inputs.npy", np.zeros((2, 1, 8, 8), np.int8))
    inputs = ["--input", str(tmp_path / "inputs.npy"), "--compare", "0"]
    for options in ([], ["--accelerator-only"], inputs, [*inputs, "--fast"],
                    [*inputs, "--accelerator-only"]):  # fmt: skip
        right = "DONE" if "--input" in options else "PASS"
        assert emulate(parse([str(net), *options])) == 1
        text = capsys.readouterr().out
        assert re.search("First wrong word: cnn_configure: 0x50900590, group 2 layer 0 ", text)
        assert text.endswith("FAIL\n")
        assert emulate(parse([str(net), *options, "--words-changed"])) == 0
        assert capsys.readouterr().out.splitlines()[-1].startswith(right)
        assert emulate(parse([str(made), *options])) == 0


_OWN = "for (int i = 0; i < 4; i++) ((volatile int *) 0x50402000)[i] = sample_output[i];"
_CHECK = "if (check_output() != CNN_OK)\n        fail();\n"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (((_CHECK, ""), ("cnn_unload(result);", "")), "never read the output"),
        ((("while (cnn_time == 0)\n        MXC_LP_EnterSleepMode();", ""), (_CHECK, ""),
          ("cnn_unload(result);", "")), "did not wait until it had finished"),
        ((("cnn_start();", ""), ("while (cnn_time == 0)\n        MXC_LP_EnterSleepMode();", ""),
          (_CHECK, "")), "never started"),
        (((_CHECK, "(void) *(volatile int *) 0x50402000;"), ("cnn_unload(result);", "")),
         "1 of 4 words of the output and compared none"),
        # cnn_unload() reads all, but nothing depends on it
        ((("for (int i = 0; i < 4; i++, source++)", "return CNN_OK;\n    int i = 0;"),),
         "4 of 4 words of the output and compared none"),
        ((("    if (check_output()", f"    {_OWN}\n    if (check_output()"),),
         "wrote 4 of 4 words of the output itself"),
    ],
)  # fmt: skip
def test_pass_needs_evidence(
    variant: Variant, changes: tuple[tuple[str, str], ...], reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert emulate(parse([str(variant(*changes))])) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("NOT PASSED: ") and reason in last


def test_a_program_that_compares_nothing_is_done(
    variant: Variant, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody says anything of its output."""
    silent = (_CHECK, ""), ('printf("\\n*** PASS ***\\n\\n");', "")
    assert emulate(parse([str(variant(*silent))])) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "DONE (1 inference; nothing is said of the output)"


def test_a_comparison_of_whatever_name_counts(
    variant: Variant, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program runs again with inverted output, which it must notice."""
    assert emulate(parse([str(variant(("check_output", "compare")))])) == 0
    assert verdict(capsys.readouterr().out) == ("PASS", "(1 inference)")


def test_a_network_that_changes_after_its_first_inference_is_told(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first inference is as in the answer file, the last one is what the program reports."""
    shutil.copytree(made, tmp_path / "net")
    change(
        tmp_path / "net" / "main.c",
        ("    if (check_output() != CNN_OK) {\n        fail();\n    }\n",
         "    *(volatile uint32_t *) 0x50108000 ^= 1;\n    load_input();\n    cnn_start();\n"
         "    while (cnn_time == 0)\n        MXC_LP_EnterSleepMode();\n"),
    )  # fmt: skip
    for options, last in (((), "FAIL"), (("--words-changed",), "NOT PASSED: the words differ")):
        assert emulate(parse([str(tmp_path / "net"), *options])) == 1
        text = capsys.readouterr().out
        assert "The program has changed the network after the first inference: " in text
        assert text.splitlines()[-1].startswith(last)


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("weights.h", "0x50180000", "0x00180000",
         "is as in answer.npz; next comes cnn_load_weights: 0x50180000, processor 0"),
        ("weights.h", "0x50180000, 0x00000101", "0x50180000, 0x00000141",
         "processor 0 kernel column 114: expected nothing, found a kernel"),
        ("cnn.c", "0x50100610", "0x30100610", "next comes cnn_configure: 0x50100610, group 0 "),
        ("cnn.c", "0x50100000) = 0x00100009", "0x50100000) = 0x00100008",
         "cnn_start: 0x50100000, group 0 CTL: expected 0x00100009, found 0x00100008 (enable 1"),
    ],
)  # fmt: skip
def test_words_are_compared_if_the_network_never_starts(
    made: Path, tmp_path: Path, file: str, old: str, new: str, line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shutil.copytree(made, tmp_path / "net")
    change(tmp_path / "net" / file, (old, new))
    with pytest.raises(EmulatorError, match="chip has nothing|accelerator was not started"):
        emulate(parse([str(tmp_path / "net")]))
    assert line in capsys.readouterr().out


def test_words_before_a_crash_are_compared(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong register of a function that is over counts, those of later ones do not."""
    project = damaged(made, tmp_path, "weights.h", 4)
    crash = "{\n    *(volatile int *) 0x30000000 = 0;"
    change(project / "cnn.c", ("int cnn_load_bias(void)\n{", f"int cnn_load_bias(void)\n{crash}"))
    with pytest.raises(EmulatorError, match="chip has nothing"):
        emulate(parse([str(project)]))
    text = capsys.readouterr().out
    assert "First wrong word: cnn_load_weights: 0x50180010, processor 0 kernel column 1" in text
    assert "also" not in text
