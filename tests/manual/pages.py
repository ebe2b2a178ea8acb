"""Blocks of a page that a reader saves or executes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "trained/README.md"]
SHORT, EARLY = "--epochs 8", "--qat-policy tests/manual/qat.yaml"

_COMMENT = re.compile(r"<!--\s*(before|file|instead|not run):\s*(.*?)\s*-->", re.DOTALL)
_BLOCK = re.compile(
    r"^<!--(?s:.*?)-->|^```(?P<kind>\w*)\n(?P<fenced>(?s:.*?))^```$"
    r"|^\n(?P<indented>(?:    .*\n|\n(?=    ))+)",
    re.MULTILINE,
)
_COMMAND = re.compile(
    r"(?:\$ )?(?=(?:\S*/)?(?:python3?|py|make|torchrun|cmake|cp|ai8xize|ai8x-\w+|"
    r"(?:train|quantize|ai8xize|emulate)\.py)\s|scripts/)"
)
_TRAINING = re.compile(r"(?:train\.py|ai8x-train) (?!.*--(?:evaluate|fits|summary|yaml-template))")


@dataclass(frozen=True)
class Block:
    """A block of a page: where it begins, what it holds, and what comments say of it."""

    page: str
    line: int
    text: str
    commands: tuple[str, ...]
    notes: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def script(self) -> str:
        """Return what is executed."""
        own = self.notes.get("instead") or "\n".join(map(_short, self.commands))
        return "\n".join(filter(None, (self.notes.get("before"), own)))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks with commands and those that are saved as files."""
    text = page.read_text(encoding="utf-8")
    notes: dict[str, str] = {}
    for match in _BLOCK.finditer(text):
        comment = _COMMENT.match(match[0])
        if comment is not None:
            notes[comment[1]] = comment[2]
        if match[0].startswith("<!--"):
            continue
        indented = match["indented"]
        content = (
            match["fenced"] if indented is None else re.sub(r"^ {4}", "", indented, flags=re.M)
        )
        commands = tuple(_commands(content)) if match["kind"] in ("", "shell", None) else ()
        if commands or notes:
            first = text.count("\n", 0, match.start()) + 2
            yield Block(str(page.relative_to(ROOT)), first, content, commands, notes)
        notes = {}
    assert not notes, f"{page}: a comment without a block: {notes}"


def _commands(content: str) -> Iterator[str]:
    """Yield the command lines of a block, each as one line; the rest is what they print."""
    for line in re.sub(r"\\\n\s*", "", content).splitlines():
        match = _COMMAND.match(line)
        if match is not None:
            yield line[match.end() :]


def _short(command: str) -> str:
    """Return a training that is over soon, with QAT in it; other commands as they are."""
    if not _TRAINING.search(command):
        return command
    return f"{command} {SHORT}" + ("" if "--qat-policy" in command else f" {EARLY}")
