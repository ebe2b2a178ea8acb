"""Generated C under cppcheck and clang-tidy: what they say, but for exceptions with a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ai8xtools.commands import targets
from ai8xtools.software.plan.schemes import Scheme
from tests.software.operators import NETWORKS
from tests.software.test_command import DIGITS
from tests.software.test_library import library

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "ai8xtools" / "emulator" / "sdk" / "include"
CORES = ("cortex-m4", "rv32imc", "cortex-m0plus")
"""The C of graphs on them; each takes some of the operators, in both schemes."""
ACCELERATED = (
    ("--device", "MAX78000", *DIGITS),
    ("--device", "MAX78002", *DIGITS, "--symbol-prefix", "net", "--application", "camera"),
)
"""Projects for the accelerator: the input in words of four pixels of a channel, or of one pixel."""
EXCEPTIONS = {
    "bugprone-easily-swappable-parameters": "kernels take several counts; they are called once",
    "bugprone-implicit-widening-of-multiplication-result":
        "memories are smaller than 2 GiB; a core of 32 bits widens nothing",
    "bugprone-signed-char-misuse": "int8_t is a number here, no character",
    "cert-str34-c": "the same check by its other name",
    "variableScope": "variables stand at the beginning of their function, as in C90",
    "knownConditionTrueFalse": "so in this network; code and macros serve others, too",
    "duplicateExpression": "a macro with the numbers of this kernel",
    "clarifyCalculation": "a macro of masks",
}  # fmt: skip


def said(*command: str, folder: Path) -> list[tuple[str, set[str]]]:
    """Return the complaints of a tool, each with the names of its rules."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    text = re.findall(r"^(.+: (?:warning|error|style|performance|portability): .*) \[([\w,.-]+)\]$",
                      done.stdout + done.stderr, re.MULTILINE)  # fmt: skip
    return [(message, set(rules.split(","))) for message, rules in text]


def complaints(tool: str, folder: Path) -> list[tuple[str, set[str]]]:
    """Return what a tool says of the C files of a folder."""
    files = sorted(path.name for path in folder.glob("*.c"))
    if tool == "cppcheck":
        return said("cppcheck", "--std=c99", "--quiet", *files,
                    "--enable=warning,style,performance,portability", folder=folder)  # fmt: skip
    options = ("-std=c99", "-Wno-everything", "-I.", f"-I{SDK}")
    return said("clang-tidy", "--quiet", "--checks=-*,bugprone-*,cert-*", *files, "--", *options,
                folder=folder)  # fmt: skip


def write(files: Mapping[str, str], folder: Path) -> Path:
    """Write a project."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def projects(kind: str, folder: Path) -> Iterator[Path]:
    """Yield folders with generated C."""
    if kind == "accelerator":
        for number, words in enumerate(ACCELERATED):
            where = ["--prefix", "net", "--test-dir", str(folder / str(number))]
            assert targets.main("ai8xize.py", [*words, *where]) == 0
            yield folder / str(number) / "net"
        return
    for number, name in enumerate([*NETWORKS][CORES.index(kind) :: 3 * len(CORES)]):
        scheme = (Scheme.ROWS, Scheme.RESIDENT)[number % 2]
        yield write(library(name, "net", kind, scheme)[1], folder / str(number))


@pytest.mark.parametrize("kind", [*CORES, "accelerator"])
@pytest.mark.parametrize("tool", ["cppcheck", "clang-tidy"])
def test_nothing_is_said_of_generated_c_but_for_the_exceptions(
    tool: str, kind: str, tmp_path: Path
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    unexpected = [f"{folder.name}: {message}" for folder in projects(kind, tmp_path)
                  for message, rules in complaints(tool, folder)
                  if not rules <= EXCEPTIONS.keys()]  # fmt: skip
    assert not unexpected, "\n".join(unexpected)


@pytest.mark.parametrize("tool", ["cppcheck", "clang-tidy"])
def test_defects_are_told(tool: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    (tmp_path / "a.c").write_text(
        "#include <string.h>\nint f(int n);\nint f(int n) { char a[4]; memset(a, 0, sizeof(&a)); "
        "if (n > 1) { return a[5]; } else { return a[5]; } }\n"
    )
    assert complaints(tool, tmp_path)
