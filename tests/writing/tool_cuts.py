"""Power cuts while the tools themselves write: a part of `make faults`.

Each tool writes an output into new folders, and then another version of it. Of the recording all
states that a cut may leave are compared with the promise, and the tool runs again on a disk with
each of some. A recording is compared with what strace sees, where that is installed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from tests.conftest import ROOT
from tests.writing.all_tools import TOOLS, quietly, train, work
from tests.writing.disk import Disk, Named, Reported, Synced
from tests.writing.power_cuts import Case, Promise, complaints
from tests.writing.recording import Recording

TOGETHER = {
    "ai8xize": ["a/b/net/*"], "ai8xize --container": ["a/b/net/*"],
    "quantize --safetensors": ["a/b/q.*"],
}  # fmt: skip
LOGS = ["logs/*/*.log", "latest_log_file"]
SAMPLES, RUNS = 200, 30
"""Random subsets of steps at each moment; states in which the tool runs again."""


def case_of(tool: str) -> Case:
    """Return a tool's work, which begins without any of the folders."""
    return Case(
        Promise(TOGETHER.get(tool, ())),
        [partial(_write, tool, version) for version in (0, 1)],
    )


def _write(tool: str, version: int, top: Path) -> None:
    work(tool, top / "a" / "b", version, inputs=top.parent)()


def recorded_training(top: Path) -> Disk:
    """Record a training of two epochs; it reports when an epoch's numbers are saved."""
    shutil.copytree(ROOT / "tests" / "training" / "tiny", top / "folder")
    from ai8xtools.training.saving.logs import Log

    recording, save = Recording(top / "folder"), Log.save_metrics

    def saved(log: Any) -> None:
        save(log)
        recording.report()

    with mock.patch.object(Log, "save_metrics", saved), recording.running():
        train(top, "new")
    return recording.disk


def measure(tool: str, top: Path) -> tuple[Disk, int, int, set[str]]:
    """Return the recording of a tool, the states looked at, the runs again, and what was wrong."""
    (top / "cuts").mkdir()
    if tool == "train":
        promise, disk = Promise(growing=LOGS), recorded_training(top / "cuts")
    else:
        case = case_of(tool)
        promise, disk = case.promise, case.recorded(top / "cuts")
    states = [*disk.prefixes(), *disk.cuts(SAMPLES)]
    wrong = {*complaints(disk, promise, states)}
    runs = [] if tool == "train" else states[:: 1 + len(states) // RUNS]
    for state in runs:  # in the same place: a project names its own folder
        shutil.rmtree(top / "cuts")
        (top / "cuts").mkdir()
        wrong |= {case.again(state, disk.reported()[-1], top / "cuts") or ""}
    return disk, len(states), len(runs), wrong - {""}


def seen_by_strace(tool: str, top: Path) -> tuple[list[str], list[str]]:
    """Run a tool under strace; return the steps as recorded, and as strace tells them."""
    log, folder = top / "strace", top / "traced"
    folder.mkdir()
    command = [
        "strace",
        "-f",
        "-y",
        "-s",
        "4096",
        "-o",
        str(log),
        "-e",
        "trace=file,fsync,fdatasync",
    ]
    program = [sys.executable, "-m", "tests.writing.tool_cuts", "--record", str(folder), tool]
    done = subprocess.run(
        [*command, *program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    recorded = [line[2:] for line in done.stdout.splitlines() if line.startswith("> ")]
    return recorded, [*_told(log.read_text(), str(folder))]


_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) = (\d+)(?:<(.*)>)?$", re.MULTILINE)
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"((?:[^"\\]|\\.)*)"')


def _told(text: str, top: str) -> Iterator[str]:
    """Yield the names that change below a folder, and the files and folders synced."""
    known: set[Path] = set()
    for call, arguments, _, _ in _CALL.findall(text):
        if call in ("fsync", "fdatasync"):
            path = arguments.partition("<")[2].removesuffix(">")
            if path.startswith(top):
                yield "sync"
            continue
        paths = [Path(os.path.normpath(Path(*found))) for found in _PATH.findall(arguments)]
        if call.startswith("symlink"):
            paths = paths[1:]
        names = [path for path in paths if path.is_relative_to(top) and str(path) != top]
        if call.startswith(("open", "creat")):
            names = [path for path in names if "O_CREAT" in arguments and path not in known]
        elif not call.startswith(("mkdir", "rename", "unlink", "rmdir", "link", "symlink")):
            continue
        elif call.startswith("link"):
            names = names[-1:]
        if names:
            known |= {*names}
            yield " and ".join(f"name {path.name}" for path in names)


def recorded_steps(tool: str, top: Path) -> Iterator[str]:
    """Yield the names that change, and the syncs, as recorded."""
    disk = case_of(tool).recorded(top)
    for number, step in enumerate(disk.steps):
        if isinstance(step, Named):
            yield disk.named(number)
        elif isinstance(step, Synced):
            yield "sync"


def main() -> int:
    """Print a table; 1 if a promise was broken, or strace saw other steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", metavar="TOOL")
    parser.add_argument("--record", metavar="DIR", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.record is not None:
        with quietly():
            steps = [*recorded_steps(args.tools[0], args.record)]
        print(*(f"> {step}" for step in steps), sep="\n")
        return 0
    print(f"{'tool':24} {'steps':>5} {'syncs':>5} {'states':>7} {'again':>5} strace wrong")
    failed = False
    for tool in args.tools or [*TOOLS, "train"]:
        with tempfile.TemporaryDirectory() as name:
            with quietly():
                disk, states, runs, wrong = measure(tool, Path(name))
            same = "-"
            if shutil.which("strace") and tool != "train":
                recorded, told = seen_by_strace(tool, Path(name))
                same = "same" if recorded == told else "OTHER"
        syncs = sum(isinstance(step, Synced) for step in disk.steps)
        steps = sum(not isinstance(step, Reported) for step in disk.steps)
        print(f"{tool:24} {steps:5} {syncs:5} {states:7} {runs:5} {same:6} {len(wrong)}", *wrong,
              flush=True)  # fmt: skip
        failed |= bool(wrong) or same == "OTHER"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
