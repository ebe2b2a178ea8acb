"""Files about a whole run, for programs: --result-json, and --junit for systems that run tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ai8xtools import __version__
from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.diagnostics import Outcome, values_of
from ai8xtools.reading.text import cleaned
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Measured
from ai8xtools.values.error import Error
from ai8xtools.values.estimate import Estimate
from ai8xtools.values.separation import Separation

VERSION = 1
_UNITS = {"kernel columns": "columns"}
FAILURES = ("failed", "not passed")
"""Verdicts that a test system shows as failures of what was tested, not of the tool."""


@frozen
class Form:
    """A form in which the outcome of a run is written.

    `text` makes it; a file that begins otherwise than with `head` is not replaced.
    """

    option: str
    what: str
    head: str
    text: Callable[[Outcome], str]

    def write(self, path: str, outcome: Outcome) -> None:
        """Write the file, complete or not at all; raise OSError."""
        write_bytes(path, self.text(outcome).encode())


def is_foreign(path: Path, head: str) -> bool:
    """Whether a file is there that begins otherwise."""
    expected = head.encode()
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        with path.open("rb") as file:
            return file.read(len(expected)) != expected
    except (OSError, ValueError):  # writing will say why
        return False


def accuracy_facts(measured: Measured) -> dict[str, Any]:
    """Return what was measured of samples by its name, shares in percent, and how many samples."""
    match measured:
        case Error():
            measures = {"rmse": measured.rmse}
        case Separation():
            measures = {"auc": measured.auc}
        case _:
            measures = {measured.title: 100 * measured.share}
    return {"measures": measures, "samples": measured.count}


def estimate(value: Estimate, factor: float = 1.0) -> dict[str, float]:
    """Return a quantity and its range, multiplied."""
    return {name: factor * getattr(value, name) for name in ("value", "low", "high")}


def cycles_facts(count: float, mhz: float | None, milliseconds: float | None) -> dict[str, Any]:
    """Return what is estimated of the cycles of an inference."""
    microseconds = None if milliseconds is None else 1e3 * milliseconds
    return {"count": count, "mhz": mhz, "microseconds": microseconds, "estimated": True}


def memory_facts(used: Mapping[str, tuple[float, float | None]]) -> list[dict[str, Any]]:
    """Return what is taken of memories by name, and their sizes; None if nothing limits them."""
    return [
        {"name": name, "unit": _UNITS.get(name, "bytes"), "used": taken, "size": size}
        for name, (taken, size) in used.items()
    ]


def _tool(outcome: Outcome) -> str:
    return Path(outcome.words[0]).name if outcome.words else "ai8xtools"


_RESULT_HEAD = '{\n  "format": "result of a run",\n'


def _result(outcome: Outcome) -> str:
    """Return a JSON object, see docs/messages.schema.json."""
    content: dict[str, Any] = {
        "format": "result of a run",
        "version": VERSION,
        "tool": _tool(outcome),
        "tool_version": __version__,
        "status": outcome.status,
        **outcome.facts,
        "messages": values_of(outcome.diagnostics),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


_JUNIT_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ai8xtools">\n'


def _junit(outcome: Outcome) -> str:
    """Return the run as one test case, with its messages if it failed."""
    from xml.sax.saxutils import escape, quoteattr

    tool, facts = _tool(outcome), outcome.facts
    failed = facts["verdict"] in FAILURES
    broken = outcome.status != 0 and not failed
    messages = [str(d) for d in outcome.diagnostics if d.severity.is_error or not broken]
    text = cleaned("\n".join([*filter(None, [facts["reason"]]), *messages]))
    counts = f'tests="1" failures="{int(failed)}" errors="{int(broken)}" skipped="0"'
    first = text.partition("\n")[0] or f"ended with status {outcome.status}"
    subject = cleaned(facts["subject"] or tool)
    kind = "failure" if failed else "error" if broken else "system-out"
    message = f" message={quoteattr(first)}" if kind != "system-out" else ""
    return (
        f"{_JUNIT_HEAD}  <testsuite name={quoteattr(tool)} {counts}>\n"
        f"    <testcase classname={quoteattr(tool)} name={quoteattr(subject)}>\n"
        f"      <{kind}{message}>{escape(text)}</{kind}>\n"
        "    </testcase>\n  </testsuite>\n</testsuites>\n"
    )


FORMS = (
    Form(
        "--result-json",
        "write what the run found out as JSON: verdict, accuracy, cycles, memory, energy as far as "
        "they are known, and the messages",
        _RESULT_HEAD,
        _result,
    ),
    Form(
        "--junit",
        "write the run as a test case in JUnit's XML, for continuous integration",
        _JUNIT_HEAD,
        _junit,
    ),
)
