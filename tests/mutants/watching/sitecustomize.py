"""In every Python process that a measured test starts: lines by coverage, and the files opened.

Stands alone, on the search path of those processes only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

RUNTIME = f"{Path('ai8xtools', 'software', 'runtime')}"


def noting(log: str) -> None:
    """Note which C a test opens, or hands to another program, alone or as a folder."""

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            named = [args[0]]
        elif event == "subprocess.Popen":
            named = [*args[1]] if isinstance(args[1], list | tuple) else []
        else:
            return
        for one in named:
            name = os.fspath(one) if isinstance(one, str | os.PathLike) else ""
            if isinstance(name, str) and RUNTIME in name:
                line = f"{os.environ.get('MUTANTS_TEST', '')}\t{name.removeprefix('-I')}\n"
                file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(file, line.encode())
                os.close(file)

    sys.addaudithook(hook)


if __name__ == "sitecustomize" and "COVERAGE_PROCESS_START" in os.environ:
    import coverage

    noting(os.environ["MUTANTS_OPENED"])
    coverage.process_startup()
