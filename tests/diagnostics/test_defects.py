"""Any error that nobody foresaw fails the test in which it happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ai8xtools.diagnostics import run
from tests.conftest import pytest_runtest_call


def broken() -> int:
    raise ZeroDivisionError("nobody foresaw this")


@pytest.mark.defect
def test_defects_are_noted_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(broken) == 1
    assert "[E009]" in capsys.readouterr().err
    assert "nobody foresaw this" in Path(os.environ["AI8X_DEFECTS"]).read_text()


def test_a_noted_defect_fails_a_test_that_does_not_mean_it(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Path(os.environ["AI8X_DEFECTS"])
    call = pytest_runtest_call(request.node)
    next(call)
    noted.write_text("ZeroDivisionError: nobody foresaw this\n")
    with pytest.raises(pytest.fail.Exception, match="nobody foresaw this"):
        call.send(None)
    assert not noted.exists()
