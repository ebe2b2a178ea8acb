"""The list of all tests, to which each generated test adds itself once.

Source: spec/generated-project.md section 9.8.
"""

from __future__ import annotations

from pathlib import Path

from checkpoint import atomic
from synthesis.emit.rtl.options import RtlOptions
from synthesis.emit.rtl.timeout import queue_name
from synthesis.program import Program

_TEST = "run_test"


def regression_line(program: Program, options: RtlOptions) -> str:
    """Return the line of a test: its path and its queue."""
    parts = ("tests", options.top_level, options.project.name, _TEST)
    path = "/".join(part for part in parts if part is not None)
    return f"{path}:{queue_name(program, options)}"


def add_test(list_file: Path, line: str) -> bool:
    """Append a line to the list unless one of its lines contains it; tell whether it was added.

    The list is replaced as a whole. Raises OSError if it cannot be read or written.
    """
    content = list_file.read_bytes() if list_file.exists() else b""
    if any(line.encode() in known for known in content.splitlines()):
        return False
    if content and not content.endswith(b"\n"):
        content += b"\n"
    atomic.write_bytes(list_file, content + f"{line}\n".encode())
    return True
