"""Every command of the manual and the README is one that the tools take."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ai8xtools.checkpoint.errors import UnreadableFileError
from ai8xtools.commands.emulate import arguments as emulate
from ai8xtools.commands.targets import targets
from ai8xtools.commands.targets.arguments import select
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "trained" / "README.md"]
_COMMAND = re.compile(
    r"^(?:    |\$ )?(?:\S*python3? )?(?P<tool>train|quantize|ai8xize|emulate)\.py (?P<words>.*)$"
)
_PLACEHOLDER = re.compile(r"\.\.\.|[][]|^[A-Z]$|◀")


def commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield tool and words of the commands in the blocks of a page, but for those with gaps."""
    text = re.sub(r"\\\n\s*", " ", page.read_text())
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        match = _COMMAND.match(line)
        if match is None or not (fenced or line.startswith("    ")):
            continue
        words = shlex.split(re.split(r" && | > ", match["words"])[0], comments=True)
        if not any(_PLACEHOLDER.search(word) for word in words):
            yield f"{match['tool']}.py", words


COMMANDS = [(page, tool, words) for page in PAGES for tool, words in commands(page)]


@pytest.mark.parametrize(
    ("page", "tool", "words"), COMMANDS,
    ids=[f"{page.stem}: {tool} {' '.join(words)}"[:70] for page, tool, words in COMMANDS],
)  # fmt: skip
def test_tools_take_the_command(page: Path, tool: str, words: list[str]) -> None:
    parser = emulate.arguments() if tool == "emulate.py" else select(tool, words).parser(tool)
    missing = [word for word in words if word.endswith(".pth.tar") and not Path(word).is_file()]
    with contextlib.suppress(*[UnreadableFileError] * bool(missing)):  # made by the line before
        parser.parse_args(words)


@pytest.mark.parametrize("tool", ["train.py", "quantize.py", "ai8xize.py", "emulate.py"])
def test_misspelled_options_are_not_taken(tool: str) -> None:
    with pytest.raises(SystemExit):
        test_tools_take_the_command(ROOT, tool, ["x", "--cuont"])


def test_there_are_commands_of_every_tool() -> None:
    used = {tool for _, tool, _ in COMMANDS}
    assert {"train.py", "quantize.py", "ai8xize.py", "emulate.py"} == used
    assert len(COMMANDS) > 90 and len(targets()) > 3
