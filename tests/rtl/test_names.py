"""No file of a test takes the place of another, whatever names the options give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.emit.rtl import emit_rtl
from ai8xtools.synthesis.program import Program
from ai8xtools.writing.files import distinct
from tests.rtl.by_hand import FIFO, camera, rtl_options
from tests.synthesis.programs import program, summary


def test_distinct_files_are_kept() -> None:
    assert distinct([("a", 1), ("b/a", 2)], reserved=("c",)) == {"a": 1, "b/a": 2}


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("b", "taken")])
def test_files_in_the_place_of_others_are_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(DiagnosticError, match="E072"):
        distinct(((path, "") for path in paths), reserved=("taken",))


NAMES = ("runtest_filename", "c_filename", "weight_filename", "sample_filename",
         "sample_output_filename", "log_filename", "camera")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("taken", ["run_test.sv", "weights.h", "sampledata.h", "out.h", "log.txt",
                                   "camera.csv", "test.c"])  # fmt: skip
def test_any_name_given_to_two_files_is_refused(name: str, taken: str) -> None:
    """Every file that is written under a name of its own is refused under one that is taken."""
    made: Program = FIFO if "camera" in (name, taken.split(".")[0]) else program()
    chosen = rtl_options({"sample_output_filename": "out.h"})
    if made is FIFO:
        chosen = replace(chosen, camera=camera())
    given = taken.removesuffix(".c") if name == "c_filename" else taken
    if name == "camera":
        changed = replace(chosen, camera=camera(filename=given))
    elif name == "runtest_filename":
        changed = replace(chosen, runtest_filename=given)
    else:
        changed = replace(chosen, project=replace(chosen.project, **{name: given}))
    before, count = emit_rtl(made, summary(), chosen), len(emit_rtl(made, summary(), chosen))
    assert taken in before
    try:
        assert len(emit_rtl(made, summary(), changed)) == count
    except DiagnosticError as refusal:
        assert "E072" in str(refusal)
