"""Tests in processes of their own, forked from one that has imported what others wrote."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PRELOADED = (
    "numpy", "torch", "yaml", "jinja2", "rich", "hypothesis", "hypothesis.strategies",
    "_pytest.assertion.rewrite", "xml.etree", "unicorn", "onnx", "coverage", "jsonschema",
    "safetensors.numpy", "multiprocessing", "concurrent.futures", "sqlite3", "difflib", "ast",
)  # fmt: skip
_LEFT_OUT = ("__pycache__", "*.pyc")
_LEFT_OUT_AT_ROOT = (".git", ".venv", "build", ".*_cache", "data", "logs", ".hypothesis")
_SLOWER, _LEAST = 10, 20.0
"""A test fails that takes so many times its seconds, and at least so many."""
_IDLE_SECONDS = 120.0
_MEMORY = 6 << 30
_FILE = 2 << 30
OPTIONS = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line",
           "-m", "not slow"]  # fmt: skip


def preload() -> None:
    """Import packages of others, none of this repository."""
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans of tests come here and are ended


def processor_seconds() -> float:
    """Return the time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@dataclass
class Task:
    """A function that runs in a fork, in a copy of the tree, and what becomes of its result."""

    work: Callable[[], Any]
    done: Callable[[dict[str, Any]], None]
    prepare: Callable[[Path], None] = lambda _: None
    restore: Callable[[Path], None] = lambda _: None
    seconds: float = 60.0


@dataclass
class _Running:
    task: Task
    pid: int
    folder: Path
    tree: Path
    end: float
    idle_since: float = field(default_factory=time.monotonic)
    used: float = 0.0
    looked: float = 0.0


class Workers:
    """So many processes at a time, each with a copy of the tree; no folder of answers beside it."""

    def __init__(self, root: Path, jobs: int, folder: Path) -> None:
        self._free = []
        for number in range(jobs):
            tree = folder / f"{number}" / "tree"
            shutil.copytree(root, tree, ignore=_left_out(root), symlinks=True)
            self._free.append(tree)
        self._running: list[_Running] = []
        self.waiting: list[Task] = []

    def run(self) -> None:
        """Run what waits, and what is added on the way."""
        try:
            while self.waiting or self._running:
                while self.waiting and self._free:
                    self._start(self.waiting.pop(0), self._free.pop())
                time.sleep(0.1)
                for one in [*self._running]:
                    self._look(one)
        finally:
            for one in self._running:
                _end(one.pid)

    def _start(self, task: Task, tree: Path) -> None:
        folder = Path(tempfile.mkdtemp(dir=tree.parent))
        task.prepare(tree)
        pid = os.fork()
        if pid == 0:
            _child(task, tree, folder)
        limit = 10 * task.seconds + 300
        self._running.append(_Running(task, pid, folder, tree, time.monotonic() + limit))

    def _look(self, one: _Running) -> None:
        # it keeps its number until it is waited for: nobody else's process is ended
        info = os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        ended = info is not None
        spent = (
            info is not None and info.si_status == signal.SIGXCPU and info.si_code != os.CLD_EXITED
        )
        fate = "time-out" if spent else "died"
        if not ended and time.monotonic() < one.looked + 1:
            return
        if not ended:
            one.looked = time.monotonic()
            memory, used = _use(one.pid)
            if used > one.used + 0.05:
                one.used, one.idle_since = used, time.monotonic()
            now = time.monotonic()
            if memory > _MEMORY:
                fate = "memory"
            elif now > one.end or now > one.idle_since + _IDLE_SECONDS:
                fate = "time-out"
            else:
                return
        _end(one.pid)
        os.waitpid(one.pid, 0)
        self._running.remove(one)
        self._reap()
        result = _result(one.folder, fate)
        one.task.restore(one.tree)
        shutil.rmtree(one.folder, ignore_errors=True)
        self._free.append(one.tree)
        one.task.done(result)

    def _reap(self) -> None:
        """End what tests have left behind."""
        mine = {one.pid for one in self._running}
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:
            return
        for pid in {int(child) for child in children} - mine:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _left_out(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Return what `copytree` asks; packages may have names that results have at the root."""
    at_root = shutil.ignore_patterns(*_LEFT_OUT, *_LEFT_OUT_AT_ROOT)
    inside = shutil.ignore_patterns(*_LEFT_OUT)
    return lambda folder, names: (at_root if Path(folder) == root else inside)(folder, names)


def _use(session: int) -> tuple[int, float]:
    """Return bytes in memory and processor seconds of the processes of a session."""
    memory, ticks = 0, 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            parts = (place / "stat").read_text().rpartition(")")[2].split()
            if int(parts[3]) == session:
                memory += int(parts[21]) * resource.getpagesize()
                ticks += sum(int(part) for part in parts[11:15])
    return memory, ticks / os.sysconf("SC_CLK_TCK")


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _result(folder: Path, fate: str) -> dict[str, Any]:
    """Return what the process wrote, or the test at which it ended."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((folder / "result").read_text())
        return found
    at, output = (
        file.read_text(errors="replace") if file.exists() else ""
        for file in (folder / "at", folder / "output")
    )
    return {"fate": fate, "test": at, "text": output.strip()[-300:]}


def _child(task: Task, tree: Path, folder: Path) -> None:
    status = 1
    try:
        os.setsid()
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(
            resource.RLIMIT_FSIZE, (_FILE, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        )
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        for number in (1, 2):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        os.environ.pop("PYTEST_XDIST_WORKER", None)
        os.chdir(tree)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        sys.path[:] = [str(tree), *(p for p in sys.path if p and not _is_ours(p))]
        importlib.invalidate_caches()
        result = task.work()
        (folder / "new").write_text(json.dumps(result))
        (folder / "new").rename(folder / "result")
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _is_ours(path: str) -> bool:
    return (Path(path) / "tests" / "mutants").is_dir()


class Chosen:
    """Runs chosen tests of a file in their order, until one fails or the time is spent."""

    def __init__(self, tests: Sequence[str], seconds: dict[str, float], end: float) -> None:
        self._place = {test: number for number, test in enumerate(tests)}
        self._seconds = seconds
        self._end = end
        self.ran = 0
        self.failed: dict[str, str] = {}

    def pytest_sessionstart(self) -> None:
        quiet()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._place]
        items[:] = sorted(chosen, key=lambda item: self._place[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = {"test": report.nodeid, "text": _told(report)}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        folder = Path(tempfile.gettempdir())
        (folder / "at").write_text(nodeid)
        allowed = max(_LEAST, _SLOWER * self._seconds.get(nodeid, 0.0))
        own = sum(os.times()[:2])
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(own + allowed) + 1, hard))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran += report.when == "call"
        if report.failed and not self.failed:
            self.failed = {"test": report.nodeid, "text": _told(report)}

    def pytest_runtest_logfinish(self) -> None:
        if processor_seconds() > self._end:
            pytest.exit("time is spent", returncode=0)


def quiet() -> None:
    """Let no property fail for the time that an example takes."""
    from hypothesis import settings

    parent = settings.get_profile(getattr(settings, "_current_profile", "default"))
    settings.register_profile("mutants", parent=parent, deadline=None)
    settings.load_profile("mutants")


def _told(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return text.strip()[:300]


def run_tests(
    parts: Sequence[tuple[str, list[str]]], seconds: dict[str, float], limit: float
) -> dict[str, Any]:
    """Run tests, file by file, in this process; called in a fork."""
    begin = processor_seconds()
    ran, fate, failed = 0, "survived", {}
    for name, tests in parts:
        chosen = Chosen(tests, seconds, begin + limit)
        pytest.main([*OPTIONS, name], plugins=[chosen])
        ran += chosen.ran
        if chosen.failed:
            fate, failed = "noticed", chosen.failed
        if chosen.failed or processor_seconds() > begin + limit:
            break
    return {"fate": fate, "ran": ran, "seconds": processor_seconds() - begin, **failed}


@contextlib.contextmanager
def workers(root: Path, jobs: int) -> Iterator[Workers]:
    """Provide processes; the copies are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        yield Workers(root, jobs, Path(folder))
