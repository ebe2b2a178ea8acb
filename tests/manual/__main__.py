"""`python -m tests.manual [PAGE ...]`: execute the commands of all pages, or of some.

Prints a line for each block: how many commands worked, or why it is not run. Ends with status 1 if
one fails, with what it printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.conftest import ROOT
from tests.manual.pages import PAGES, Block, blocks

LIMIT_SECONDS = 3600
_SHOWN_LINES = 12


def fresh(folder: Path) -> Path:
    """Return a copy of the checkout as it is after `make setup`, with what is not committed yet."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    environment = Path(sys.prefix)
    (folder / ".venv").mkdir()
    for entry in environment.iterdir():
        if entry.name.startswith(".installed"):
            (folder / ".venv" / entry.name).touch()
        else:
            (folder / ".venv" / entry.name).symlink_to(entry)
    return folder


def execute(block: Block, folder: Path) -> str | None:
    """Run a block in a folder; return what it printed last if it fails."""
    if "file" in block.notes:
        path = folder / block.notes["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if not block.commands:
            return None
    path = os.pathsep.join([str(folder / ".venv/bin"), str(folder), os.environ["PATH"]])
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.script()],
            cwd=folder, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=LIMIT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it takes more than {LIMIT_SECONDS} s"
    if done.returncode == 0:
        return None
    return "\n".join([*done.stdout.splitlines()[-_SHOWN_LINES:], f"status {done.returncode}"])


def run_page(page: Path, counts: Counter[str]) -> None:
    """Run the blocks of a page in a fresh folder, one after the other."""
    found = [*blocks(page)]
    if not any(b.commands and "not run" not in b.notes for b in found):
        found = [block for block in found if "not run" in block.notes]
    with tempfile.TemporaryDirectory(prefix="manual-") as name:
        folder = fresh(Path(name)) if any("not run" not in b.notes for b in found) else Path(name)
        for block in found:
            count = len(block.commands)
            if "not run" in block.notes:
                counts["not run"] += count
                print(f"{block.place}: {count} not run: {block.notes['not run']}", flush=True)
                continue
            start = time.monotonic()
            failure = execute(block, folder)
            counts["executed" if failure is None else "failed"] += count
            if count or failure:
                what = "executed" if failure is None else f"FAILED\n{failure}"
                print(
                    f"{block.place}: {count} {what} ({time.monotonic() - start:.0f} s)", flush=True
                )


def main() -> int:
    """Run the pages; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.manual")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", default=PAGES)
    counts: Counter[str] = Counter()
    for page in parser.parse_args().pages:
        run_page(page.resolve(), counts)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
