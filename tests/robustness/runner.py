"""Runs the loader on a case in a process of its own and judges how it ended.

The words of what it accepts are executed by the emulator and must give the known answer.

A case is a fork of this process, which has imported everything already: that takes milliseconds, a
crash or an endless loop ends with it, and its memory can be limited and measured.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import ai8xize
from ai8xtools.commands.loader import create
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.soundness import unsound
from ai8xtools.diagnostics import run
from ai8xtools.emulator import EmulatorError
from ai8xtools.synthesis.pipeline import Synthesis
from tests.robustness.cases import FOLDER, Case
from tests.synthesis.emulated import emulated

TIME_LIMIT_S = 10
"""Of processor time; a case may wait six times as long, as on a machine with other work."""
MEMORY_LIMIT_BYTES = 2 << 30
DEFECT = 70
"""Exit status of a case that ended with an exception."""
OTHER_RESULT = 71
"""Exit status of a case whose words give another result than its known answer."""
_FEWEST_FILES = 12
_IMPORTED_LATE = (
    "ai8xtools.commands.loader.create", "ai8xtools.commands.loader.arguments",
    "ai8xtools.synthesis.resolve.onnx_tensors", "ai8xtools.synthesis.resolve.table", "zipfile",
)  # fmt: skip
"""Modules that the loader imports within functions: here, so that no case has to."""
_NEVER = {"E001": "interrupted", "E003": "out of memory", "E009": "a defect"}


@dataclass(frozen=True)
class Outcome:
    """How a case ended. `files` are those that were there at the end, `temporary` what was left."""

    case: Case
    status: int
    output: str
    errors: str
    seconds: float
    peak_bytes: int
    files: Mapping[str, bytes]
    temporary: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether a project was made."""
        return self.status == 0

    @cached_property
    def diagnostics(self) -> list[dict[str, Any]]:
        """The messages of the loader; ValueError if it printed something else."""
        _, bracket, rest = f"\n{self.output}".rpartition("\n[")
        found: list[dict[str, Any]] = json.loads(bracket + rest)
        return found

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """The errors among them."""
        return [d for d in self.diagnostics if d["severity"] == "error"]

    @property
    def placed(self) -> bool:
        """Whether every error names a line of the description that the description has."""
        lines = self.case.files[self.case.start.description].count(b"\n") + 2
        return all(
            d["file"] == self.case.start.description
            and d["line"] is not None
            and 1 <= d["line"] <= max(lines, _lines_of_yaml(self.case))
            and (d["column"] or 0) >= 1
            for d in self.complaints
        )

    def failure(self) -> str | None:
        """Return what is wrong with the way it ended; None: nothing."""
        if self.status == DEFECT:
            return f"exception: {self.errors.strip().splitlines()[-1][:200]}"
        if self.status == OTHER_RESULT:
            return f"another result: {self.errors.strip().splitlines()[-1][:200]}"
        if self.status in (-signal.SIGPROF, -signal.SIGALRM):
            return f"no end within {TIME_LIMIT_S} s"
        if self.status not in (0, 1):
            return f"signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        if self.peak_bytes > MEMORY_LIMIT_BYTES:
            return f"{self.peak_bytes >> 20} MiB of memory"
        if self.temporary:
            return f"temporary files left: {', '.join(self.temporary[:3])}"
        try:
            return self._failed_success() if self.accepted else self._failed_refusal()
        except ValueError:
            return f"messages that are no JSON: {self.output[:100]!r}"

    def _failed_success(self) -> str | None:
        """A success must leave a whole project and nothing else."""
        made = {path for path in self.files if path.startswith(FOLDER + "/")}
        empty = [path for path in made if not self.files[path]]
        if self.complaints:
            return "success with errors"
        if len(made) < _FEWEST_FILES or empty:
            return f"an incomplete project of {len(made)} files ({empty})"
        wrong = _differences(self.case.files, self.files, made)
        return f"files changed: {', '.join(wrong[:3])}" if wrong else None

    def _failed_refusal(self) -> str | None:
        """A refusal must say why, where, and change nothing."""
        codes = [d["code"] for d in self.complaints]
        if not codes or codes == ["E011"]:  # diagnostics tells that nothing was told
            return "refused without an error"
        for code, what in _NEVER.items():
            if code in codes:
                return f"{what}: {self.complaints[0]['message'][:200]}"
        wrong = _differences(self.case.files, self.files, set())
        if wrong:
            return f"files changed: {', '.join(wrong[:3])}"
        if self.case.target == "description" and not self.placed:
            return f"no line: {next(d for d in self.complaints)}"
        if not all(d["file"] or d["option"] for d in self.complaints):
            return f"no place: {self.complaints[0]}"
        return None


def _lines_of_yaml(case: Case) -> int:
    """YAML ends lines at further characters; a message counts as YAML does."""
    text = case.files[case.start.description].decode("utf-8", "replace")
    return len(text.splitlines()) + 1


def _differences(
    before: Mapping[str, bytes], after: Mapping[str, bytes], expected: set[str]
) -> list[str]:
    """Return the files that changed, vanished or appeared without being expected."""
    kept = {f"{FOLDER}/notes.txt"} & before.keys()
    return sorted(
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) and (path not in expected or path in kept)
    )


def run_case(case: Case, keep: Path | None = None) -> Outcome:
    """Run the loader on a case; `keep` names a folder in which the files stay."""
    base = Path(tempfile.mkdtemp(prefix="robustness-"))
    try:
        return _run_in(case, base)
    finally:
        if keep is not None:
            shutil.copytree(base, keep, dirs_exist_ok=True)
        shutil.rmtree(base)


def _run_in(case: Case, base: Path) -> Outcome:
    work, temporary = base / "work", base / "tmp"
    temporary.mkdir()
    for name, content in case.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    started = time.monotonic()
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    child = os.fork()
    if child == 0:
        _be_the_loader(case, base)
    _, waited, usage = os.wait4(child, 0)
    return Outcome(
        case,
        os.waitstatus_to_exitcode(waited),
        (base / "stdout").read_text("utf-8", "replace"),
        (base / "stderr").read_text("utf-8", "replace"),
        time.monotonic() - started,
        usage.ru_maxrss << 10,
        _files(work),
        tuple(str(path) for path in temporary.iterdir()),
    )


def _files(folder: Path) -> dict[str, bytes]:
    """Return every file by its path; an empty folder counts as a file without content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def _be_the_loader(case: Case, base: Path) -> NoReturn:
    """Do what `ai8xize.py` does, within limits, and end the process."""
    status = DEFECT
    try:
        _redirect(base)
        _limit()
        os.chdir(base / "work")
        os.environ["AI8X_TRACEBACK"] = "1"
        tempfile.tempdir = str(base / "tmp")
        sys.argv = ["ai8xize.py", *case.args]  # with --diagnostics json
        made = _recorded()
        status = run(ai8xize.main)
        if status == 0 and any(_computes_otherwise(one) for one in made):
            status = OTHER_RESULT
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 2
    except BaseException:
        traceback.print_exc(limit=-12)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _recorded() -> list[Synthesis]:
    """Return a list that gets what the loader makes in this process from now on."""
    made: list[Synthesis] = []
    real = create.synthesized

    def synthesized(options: LoaderOptions) -> Synthesis:
        made.append(real(options))
        return made[-1]

    create.synthesized = synthesized
    return made


def _computes_otherwise(made: Synthesis) -> bool:
    """Execute the words with the emulator; say whether they give another result, and which.

    Where a warning says that the chip is not expected to compute it, nothing is compared.
    """
    if unsound(made.warnings):
        return False
    try:
        wrong = emulated(made.program).wrong
    except EmulatorError as error:
        print(f"emulator: {error.code} {error.message}", file=sys.stderr)
        return True
    if wrong:
        print(f"{len(wrong)} words differ: (address, expected, found) {wrong[0]}", file=sys.stderr)
    return bool(wrong)


def _redirect(base: Path) -> None:
    """Send what the loader prints to files."""
    for number, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDWR | (os.O_CREAT if number else 0)
        os.dup2(os.open(base / name, flags, 0o666), number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _limit() -> None:
    """Limit the time, with a note of where it went, and the memory beyond what there is now."""
    faulthandler.disable()  # what pytest enables would write past the redirected streams
    faulthandler.register(signal.SIGPROF, file=2, chain=True)
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 6 * TIME_LIMIT_S)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_LIMIT_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
