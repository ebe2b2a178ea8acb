"""Options that read files: each is in the table of the sweep, and some of the sweep itself."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.robustness.foreign import FILES, TABLE, prepare, run_case
from tools.manual.options import parsers

_PLACES = ("FILE", "DIR", "PROJECT_DIR", "INPUT", "OUTPUT", "S", "PATHS", "KEYFILE", "FILE.nnb")
WRITTEN = frozenset({
    "--debug-report", "--report", "--write-config", "--test-dir", "OUTPUT", "--write-policy",
    "--out_path", "--out-dir", "--copy-output-folder", "--yaml-template", "--dump", "--trace",
    "--profile", "--vcd", "--container", "--sweep-dir", "--result-json", "--junit",
    "--decompile",
})  # fmt: skip
_SLOW = re.compile("--calib|--device (FIXED|Q15|Q7)|--container")
"""Command lines for which PyTorch is imported, or much is built: `make fuzz` runs them."""
ELSEWHERE = {
    "--out_arch": "a name", "--time-limit": "seconds", "--eclipse-includes": "text of a project",
    "--exclude": "a pattern", "--scaf-scale": "a number",
    "--include": "a folder for the compiler",
}  # fmt: skip


def _named(tool: str) -> Iterator[str]:
    """Yield the options of a tool that name a file or folder."""
    for name, make in parsers().items():
        for action in make()._actions if name.startswith(f"{tool}.py") else ():
            if action.metavar in _PLACES and action.help != argparse.SUPPRESS:
                yield next((o for o in action.option_strings if o.startswith("--")), action.metavar)


@pytest.mark.parametrize("tool", dict.fromkeys(reads.tool for reads in TABLE))
def test_every_option_that_names_a_file_is_in_the_table(tool: str) -> None:
    covered = {reads.option for reads in TABLE if reads.tool == tool}
    assert {*_named(tool)} - covered - WRITTEN - ELSEWHERE.keys() == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("foreign")
    prepare(made, trained=False)
    return made


@pytest.mark.parametrize("file", ["pipe", "random"])
@pytest.mark.parametrize(
    "reads",
    [r for r in TABLE if r.tool not in ("train", "emulate") and not _SLOW.search(r.words)],
    ids=str,
)
def test_loader_quantizer_and_fuser_refuse(folder: Path, reads: object, file: str) -> None:
    assert file in FILES
    ended = run_case(reads, file, folder)  # type: ignore[arg-type]
    assert ended.failure() is None, ended.text
