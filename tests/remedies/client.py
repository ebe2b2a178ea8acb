"""A client that applies remedies mechanically: all it knows is docs/messages.schema.json.

It runs a command with `--diagnostics json`, applies the first edit of an error, and runs it again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]
MOST_RUNS = 3


@dataclass
class Repair:
    """What became of a command: its words at the end, the edits, and the last run."""

    words: list[str]
    status: int = -1
    edits: list[Message] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    output: str = ""


def repair(words: Sequence[str], folder: Path, *, most: int = MOST_RUNS) -> Repair:
    """Run a tool in a folder until it succeeds, at most so often, with an edit between two runs."""
    done = Repair([*words])
    for number in range(most):
        ran = subprocess.run(
            [sys.executable, *done.words, "--diagnostics", "json"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        done.status, done.output = ran.returncode, ran.stderr
        done.messages = json.loads(ran.stdout)
        wrong = [m for m in done.messages if m["severity"] == "error"]
        edit = next((m["edit"] for m in wrong if m["edit"] is not None), None)
        if done.status == 0 or edit is None or number == most - 1:
            break
        done.edits.append(edit)
        if not apply(edit, done.words, folder):
            break
    return done


def apply(edit: Message, words: list[str], folder: Path) -> bool:
    """Apply an edit to a file or to the words of the command; return whether that was possible."""
    if edit["file"] is None:
        return _apply_to_words(edit, words)
    path = folder / edit["file"]
    text = path.read_bytes().decode()
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: edit["line"] - 1]) + edit["column"] - 1
    if not text[start:].startswith(edit["old"]):
        return False
    path.write_bytes((text[:start] + edit["new"] + text[start + len(edit["old"]) :]).encode())
    return True


def _apply_to_words(edit: Message, words: list[str]) -> bool:
    option, old, new = edit["option"], edit["old"], edit["new"]
    if not old:
        words += [option, new] if new else [option]
        return True
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name != option:
            continue
        if old == option and new:
            words[at] = f"{new}{equals}{value}"
        elif old == option:
            end = at + 1
            while end < len(words) and not words[end].startswith("--"):
                end += 1
            del words[at:end]
        elif equals and value == old:
            words[at] = f"{option}={new}"
        elif old in words[at + 1 :]:
            words[words.index(old, at + 1)] = new
        else:
            return False
        return True
    return False
