"""Mend broken projects with a client that knows only the schema: `make measure WHAT=remedies`.

A project is repaired if its accelerator words are those of the original after at most three runs.
The exit status is 1 below 90 %.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from ai8xtools.answer import FILE_NAME, read_answer
from tests.remedies.client import Repair, repair
from tests.remedies.further import MAKERS as FURTHER
from tests.remedies.planted import MAKERS, PROJECT, Broken, broken_projects

GOAL = 0.9


def words_of(project: Path) -> list[bytes]:
    """Return the words that a project writes, as its answer file has them."""
    answer = read_answer(project / FILE_NAME)
    parts = (answer.registers, answer.biases, answer.kernels, answer.inputs, answer.pushes)
    return [getattr(part, name.name).tobytes() for part in parts for name in fields(part)]


def attempt(broken: Broken, folder: Path) -> tuple[Repair, bool]:
    """Break a project in an empty folder and mend it; also return whether it is as before."""
    _write(broken.sound_files, folder)
    ran = subprocess.run([sys.executable, *broken.sound], cwd=folder, capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert ran.returncode == 0, (broken, ran.stderr)
    project = folder / PROJECT
    right, whole = words_of(project), _content(project)
    for name in broken.sound_files.keys() - broken.files.keys():
        (folder / name).unlink()
    _write(broken.files, folder)
    if broken.edit_c is not None:
        broken.edit_c(project)
        done = repair(broken.words, folder)
        return done, f"As in {FILE_NAME}" in done.output or _content(project) == whole
    (project / FILE_NAME).unlink()
    done = repair(broken.words, folder)
    return done, done.status == 0 and words_of(project) == right


def _content(project: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in project.iterdir() if file.is_file()}


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def main() -> int:
    """Print the table of what was planted and repaired; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="a group")
    parser.add_argument("--further", action="store_true", help="draw further kinds of mistakes")
    parser.add_argument("--show", action="store_true", help="print what is not repaired")
    options = parser.parse_args()
    planted, repaired, silent = Counter[str](), Counter[str](), Counter[str]()
    makers = FURTHER if options.further else MAKERS
    for broken in broken_projects(options.count, options.seed, makers):
        if options.only not in (None, broken.group):
            continue
        with tempfile.TemporaryDirectory() as name:
            done, right = attempt(broken, Path(name))
        sys.stdout.flush()
        for kind in (broken.group, f"  {broken.kind}", "all"):
            key = f"{broken.group}/{kind}" if kind[0] == " " else kind
            planted[key] += 1
            repaired[key] += right
            silent[key] += done.status == 0 and not done.edits and not right
        if options.show and not right:
            print(f"### {broken.group} / {broken.kind} / {broken.what}: status {done.status}")
            for edit in done.edits:
                print(f"    {edit['file']}:{edit['line']} {edit['option']}: "
                      f"{edit['old']!r} -> {edit['new']!r}")  # fmt: skip
            for m in done.messages[:3]:
                print(f"    {m['code']} {m['file']}:{m['line']} {m['option']}: {m['message']}"
                      f" | {m['remedy']}")  # fmt: skip
            print(*("    > " + x for x in done.output.splitlines()[-3:]), sep="\n", flush=True)
    print(f"{'':28} {'planted':>8} {'repaired':>9} {'valid, so unnoticed':>20}")
    for key in sorted(planted, key=lambda k: (k == "all", k)):
        name = key.partition("/")[2] or key
        print(f"{name:28} {planted[key]:8} {repaired[key]:9} {silent[key]:20}")
    return int(repaired["all"] < GOAL * planted["all"])


if __name__ == "__main__":
    sys.exit(main())
