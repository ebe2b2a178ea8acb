"""Every command of README and manual is executed or says why not, and its tool takes it."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from ai8xtools.checkpoint.errors import UnreadableFileError
from ai8xtools.commands.emulate import arguments as emulate
from ai8xtools.commands.targets import targets
from ai8xtools.commands.targets.arguments import select
from tests.conftest import ROOT
from tests.manual.__main__ import run_page
from tests.manual.pages import PAGES, Block, blocks

BLOCKS = [block for page in PAGES for block in blocks(page)]
_TOOL = re.compile(r"(?:^|\s)(?P<tool>train|quantize|ai8xize|emulate)\.py (?P<words>.*)$")
_GAP = re.compile(r"\.\.\.|[][]|^[A-Z]$|◀")


def tool_lines(block: Block) -> list[tuple[str, list[str]]]:
    """Return tool and words of the commands in a block, but for those with gaps."""
    found = []
    for line in block.commands:
        match = _TOOL.search(re.split(r" && | > ", line)[0])
        words = shlex.split(match["words"], comments=True) if match else []
        if match and not any(_GAP.search(word) for word in words):
            found.append((f"{match['tool']}.py", words))
    return found


COMMANDS = [(block, *line) for block in BLOCKS for line in tool_lines(block)]


@pytest.mark.parametrize(
    ("tool", "words"), [(tool, words) for _, tool, words in COMMANDS],
    ids=[f"{block.place}: {tool} {' '.join(words)}"[:70] for block, tool, words in COMMANDS],
)  # fmt: skip
def test_tools_take_the_command(tool: str, words: list[str]) -> None:
    parser = emulate.arguments() if tool == "emulate.py" else select(tool, words).parser(tool)
    missing = [word for word in words if word.endswith(".pth.tar") and not Path(word).is_file()]
    with contextlib.suppress(*[UnreadableFileError] * bool(missing)):  # made by the line before
        parser.parse_args(words)


@pytest.mark.parametrize("tool", ["train.py", "quantize.py", "ai8xize.py", "emulate.py"])
def test_misspelled_options_are_not_taken(tool: str) -> None:
    with pytest.raises(SystemExit):
        test_tools_take_the_command(tool, ["x", "--cuont"])


def test_there_are_commands_of_every_tool() -> None:
    used = {tool for _, tool, _ in COMMANDS}
    assert {"train.py", "quantize.py", "ai8xize.py", "emulate.py"} == used
    assert len(COMMANDS) > 110 and len(targets()) > 3


def test_commands_with_gaps_have_others_instead() -> None:
    """Placeholders would fail, or do something else than they say."""
    gaps = [
        block.place for block in BLOCKS
        if any(re.search(r"\.\.\.|\[[A-Z-]|◀", line) for line in block.commands)
        and not {"instead", "not run"} & {*block.notes}
    ]  # fmt: skip
    assert gaps == []


def test_a_page_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    run_page(ROOT / "docs/editors.md", counts)
    assert counts == {"executed": 1}, capsys.readouterr().out


def test_commands_that_fail_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: net.py -->\n```python\nx\n```\n\n    python ai8xize.py --absent\n    output\n\n"
        "<!-- not run: no board -->\n```\n$ emulate.py x\n```\n"
    )
    monkeypatch.setattr("tests.manual.pages.ROOT", tmp_path)
    monkeypatch.setattr("tests.manual.__main__.fresh", lambda folder: folder)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    counts: Counter[str] = Counter()
    run_page(page, counts)
    assert counts == {"failed": 1, "not run": 1, "executed": 0}
    told = capsys.readouterr().out
    assert "page.md:6: 1 FAILED" in told and "page.md:11: 1 not run: no board" in told
