"""Measuring, in a fork, what the tests of one file execute and how long they take."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.mutant import ROOMS
from tests.mutants.nearest import file_key, packed
from tests.mutants.running import OPTIONS, processor_seconds, quiet

_SETTINGS = """[run]
data_file = {folder}/lines
parallel = True
context = ${{MUTANTS_TEST}}
core = ctrace
include =
{include}
"""


class _Measuring:
    """Names to coverage the test that runs, or its file while something is set up for all of it."""

    def __init__(self, coverage: Any, begin: float) -> None:
        self._coverage = coverage
        self._begin = begin
        self.import_seconds = 0.0
        self.seconds: dict[str, float] = {}
        self.failing: dict[str, None] = {}

    def pytest_sessionstart(self) -> None:
        quiet()

    def pytest_collection_finish(self) -> None:
        self.import_seconds = processor_seconds() - self._begin

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failing[report.nodeid] = None

    def _switch(self, name: str) -> None:
        os.environ["MUTANTS_TEST"] = name
        self._coverage.switch_context(name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        begin = processor_seconds()
        self._switch(item.nodeid)
        result = yield
        self.seconds[item.nodeid] = round(processor_seconds() - begin, 3)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        before = os.environ["MUTANTS_TEST"]
        self._switch(before.partition("::")[0])
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failing[report.nodeid] = None
        if report.skipped:
            self.seconds.pop(report.nodeid, None)


def measure(name: str) -> dict[str, Any]:
    """Run the tests of a file; called in a fork. Return the fields of `Measured`, but for texts."""
    import coverage

    begin = processor_seconds()
    folder, tree = Path(tempfile.gettempdir()), Path.cwd()
    include = "\n".join(f"    {tree / room}/*" for room in ROOMS)
    rules = folder / "coverage.ini"
    rules.write_text(_SETTINGS.format(folder=folder, include=include))
    os.environ["MUTANTS_TEST"] = ""
    os.environ["MUTANTS_OPENED"] = str(folder / "opened")
    watching = tree / "tests" / "mutants" / "watching"
    spec = importlib.util.spec_from_file_location("watching", watching / "sitecustomize.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)  # Python may have a sitecustomize of its own
    spec.loader.exec_module(module)
    module.noting(str(folder / "opened"))
    paths = (str(watching), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["COVERAGE_PROCESS_START"] = str(rules)
    measuring = coverage.Coverage(config_file=str(rules), context=None, data_suffix=True)
    measuring.config.context = None
    plugin = _Measuring(measuring, begin)
    measuring.start()
    try:
        pytest.main([*(one for one in OPTIONS if one != "-x"), name], plugins=[plugin])
    finally:
        measuring.stop()
        measuring.save()
    measuring.combine([str(folder)], keep=True)
    return {
        "key": file_key(Path(name)),
        "import_seconds": round(plugin.import_seconds, 3),
        "seconds": {k: v for k, v in plugin.seconds.items() if k not in plugin.failing},
        "failing": [*plugin.failing],
        "lines": {**_lines(measuring.get_data(), tree), **_opened(folder / "opened", tree)},
    }


def _lines(data: Any, tree: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, set[int]]] = {}
    for file in data.measured_files():
        tests = found.setdefault(Path(file).relative_to(tree).as_posix(), {})
        for line, contexts in data.contexts_by_lineno(file).items():
            for test in contexts:
                tests.setdefault(test, set()).add(line)
    return {
        file: {test: packed(lines) for test, lines in tests.items()}
        for file, tests in found.items()
    }


def _opened(log: Path, tree: Path) -> dict[str, dict[str, str]]:
    """Return for each file of C the tests that opened it, or gave its folder to a compiler."""
    found: dict[str, dict[str, str]] = {}
    for line in sorted({*log.read_text().splitlines()}) if log.exists() else ():
        test, _, name = line.partition("\t")
        path = Path(os.path.normpath(tree / name))
        inside = path.rglob("*.[ch]") if path.is_dir() else [path]
        for one in inside:
            if one.is_relative_to(tree) and one.suffix in (".c", ".h"):
                found.setdefault(one.relative_to(tree).as_posix(), {})[test] = "1"
    return found
