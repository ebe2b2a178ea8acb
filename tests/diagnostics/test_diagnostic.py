from __future__ import annotations

import errno
import io
import json
import sys

import pytest

from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Place,
    Severity,
    as_json,
    print_diagnostics,
    run,
)
from ai8xtools.diagnostics.errors import InputError


def test_diagnostic_prints_place_message_code_and_remedy() -> None:
    place = Place(file="net.yaml", line=12, column=5)
    found = Diagnostic("E204", "pad is 3, the limit is 2", place, "Use pad 0, 1 or 2.")
    assert str(found) == (
        "net.yaml:12:5: error: pad is 3, the limit is 2 [E204]\n  Use pad 0, 1 or 2."
    )


def test_option_is_a_place() -> None:
    assert str(Place(option="--boost")) == "option --boost"


def test_option_that_does_not_suit_a_file_names_both() -> None:
    place = Place(file="net.yaml", line=12, column=5).with_option("--softmax")
    assert str(place) == "net.yaml:12:5: option --softmax"


def test_text_stream_gets_no_colour_codes() -> None:
    stream = io.StringIO()
    print_diagnostics([Diagnostic("W1", "careful", severity=Severity.WARNING)], stream)
    assert stream.getvalue() == "warning: careful [W1]\n"


def test_json_holds_every_field() -> None:
    [row] = json.loads(as_json([Diagnostic("E204", "no", Place(file="a", line=1, column=2))]))
    assert row["code"] == "E204"
    assert (row["file"], row["line"], row["column"]) == ("a", 1, 2)
    assert row["severity"] == "error"


def test_run_prints_all_diagnostics_and_returns_1(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> int:
        raise DiagnosticError([Diagnostic("E1", "first"), Diagnostic("E2", "second")])

    assert run(main) == 1
    err = capsys.readouterr().err
    assert "first [E1]" in err and "second [E2]" in err and "Traceback" not in err


def test_run_explains_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "out.bin")

    assert run(main) == 1
    assert "out.bin: error: No space left on device [E002]" in capsys.readouterr().err


def test_full_standard_output_says_nothing_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    def full() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert run(full) == 1
    said = capsys.readouterr().err
    assert "untouched" not in said and "send the output of the program elsewhere" in said


def test_run_turns_ctrl_c_into_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> int:
        raise KeyboardInterrupt

    assert run(main) == 1
    assert "interrupted" in capsys.readouterr().err


def test_run_prints_the_error_of_a_room_as_one_diagnostic(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        raise InputError("E501", "not a checkpoint", "x.pth.tar", "Train first.")

    assert run(main) == 1
    assert capsys.readouterr().err == (
        "x.pth.tar: error: not a checkpoint [E501]\n  Train first.\n"
    )


REFUSED = InputError("E501", "not a checkpoint", "--file", "Train first.")


@pytest.mark.defect
@pytest.mark.parametrize(
    ("failure", "code", "field", "value"),
    [
        (DiagnosticError(Diagnostic("E204", "no", Place(file="a", line=3))), "E204", "line", 3),
        (REFUSED, "E501", "option", "--file"),
        (OSError(errno.EFBIG, "File too large", "out.bin"), "E002", "file", "out.bin"),
        (OSError(errno.EINVAL, "empty name", ""), "E002", "file", None),
        (KeyboardInterrupt(), "E001", "message", "interrupted"),
        (MemoryError(), "E003", "message", "out of memory"),
        (ZeroDivisionError("zero"), "E009", "file", None),
    ],
)
def test_every_failure_is_json_for_an_editor(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    code: str,
    field: str,
    value: object,
) -> None:
    def main() -> int:
        raise failure

    monkeypatch.setattr(sys, "argv", ["tool", "--diagnostics=json"])
    assert run(main) == 1
    output = capsys.readouterr()
    [row] = json.loads(output.out)
    assert (row["code"], row[field], output.err) == (code, value, "")


def test_run_tells_what_to_do_about_a_file_that_is_too_large(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        raise OSError(errno.EFBIG, "File too large", "out.bin")

    assert run(main) == 1
    assert "ulimit -f" in capsys.readouterr().err


@pytest.mark.defect
def test_run_raises_a_defect_again_if_the_traceback_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AI8X_TRACEBACK", "1")

    def main() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main)
