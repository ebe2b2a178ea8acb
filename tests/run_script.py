"""Scripts of the repository, run in this process: a process of its own imports all anew."""

from __future__ import annotations

import contextlib
import importlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from ai8xtools.diagnostics import run


def run_script(script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a script at the root with these words; return its status and what it prints."""
    command = [script, *map(str, words)]
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", command),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            status = run(importlib.import_module(Path(script).stem).main)
        except SystemExit as usage:
            status = int(usage.code or 0)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())
