from __future__ import annotations

import errno
import io
import json

from diagnostics import (
    Diagnostic,
    DiagnosticError,
    Place,
    Severity,
    as_json,
    print_diagnostics,
    run,
)


def test_diagnostic_prints_place_message_code_and_remedy() -> None:
    place = Place(file="net.yaml", line=12, column=5)
    found = Diagnostic("E204", "pad is 3, the limit is 2", place, "Use pad 0, 1 or 2.")
    assert str(found) == (
        "net.yaml:12:5: error: pad is 3, the limit is 2 [E204]\n  Use pad 0, 1 or 2."
    )


def test_option_is_a_place() -> None:
    assert str(Place(option="--boost")) == "option --boost"


def test_text_stream_gets_no_colour_codes() -> None:
    stream = io.StringIO()
    print_diagnostics([Diagnostic("W1", "careful", severity=Severity.WARNING)], stream)
    assert stream.getvalue() == "warning: careful [W1]\n"


def test_json_holds_every_field() -> None:
    [row] = json.loads(as_json([Diagnostic("E204", "no", Place(file="a", line=1, column=2))]))
    assert row["code"] == "E204"
    assert (row["file"], row["line"], row["column"]) == ("a", 1, 2)
    assert row["severity"] == "error"


def test_run_prints_all_diagnostics_and_returns_1(capsys) -> None:
    def main() -> int:
        raise DiagnosticError([Diagnostic("E1", "first"), Diagnostic("E2", "second")])

    assert run(main) == 1
    err = capsys.readouterr().err
    assert "first [E1]" in err and "second [E2]" in err and "Traceback" not in err


def test_run_explains_a_full_disk(capsys) -> None:
    def main() -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "out.bin")

    assert run(main) == 1
    assert "out.bin: error: No space left on device [E002]" in capsys.readouterr().err


def test_run_turns_ctrl_c_into_a_message(capsys) -> None:
    def main() -> int:
        raise KeyboardInterrupt

    assert run(main) == 1
    assert "interrupted" in capsys.readouterr().err


def test_run_prints_the_refusal_of_a_room_that_does_not_know_diagnostics(capsys) -> None:
    class Refused(Exception):
        code, message, place, remedy = "E501", "not a checkpoint", "x.pth.tar", "Train first."

    def main() -> int:
        raise Refused

    assert run(main) == 1
    assert capsys.readouterr().err == (
        "x.pth.tar: error: not a checkpoint [E501]\n  Train first.\n"
    )
