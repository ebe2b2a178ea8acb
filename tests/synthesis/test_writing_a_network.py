"""The example of docs/writing-a-network.md is a network, and its formulas are those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ai8xtools.commands.loader.arguments import arguments, parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.pipeline import synthesize
from device import MAX78000, MAX78002
from device.channels import channels_per_pass, passes
from tests.conftest import ROOT
from tests.synthesis.emulated import emulated

PAGE = (ROOT / "docs" / "writing-a-network.md").read_text()


def block(language: str) -> str:
    """Return the only block of the page in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def test_example_becomes_a_project_without_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python"), {})
    Path("example.yaml").write_text(block("yaml"))
    options = parse(shlex.split(block("shell").replace("\\\n", ""))[2:])
    assert create_project(options) == 0
    assert (tmp_path / "projects" / "example" / "cnn.c").is_file()
    made = synthesize(options.config_file, options.chip, options.resolve, options.encode)
    assert [str(d) for d in made.warnings if d.severity is not Severity.NOTICE] == []
    assert emulated(made.program).wrong == []


def test_named_options_exist() -> None:
    text = arguments().format_help()
    assert [name for name in re.findall(r"`(--[a-z-]+)", PAGE) if name not in text] == []


def test_table_of_passes_is_true() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| `(.*)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 6
    for channels, count, processors, mask in rows:
        assert passes(int(channels)) == int(count)
        assert channels_per_pass(int(channels)) == int(processors)
        assert int(mask.replace(".", ""), 16).bit_count() == int(processors)


def test_table_of_the_machine_is_true() -> None:
    for chip, column in ((MAX78000, 1), (MAX78002, 2)):
        cells = {
            row.split(" | ")[0].strip("| "): row.split(" | ")[column].strip("| ")
            for row in PAGE.splitlines()
            if row.startswith("| ")
        }
        assert cells["layers"] == str(chip.max_layers)
        assert hex(chip.instance_bytes) in cells["data memory: 16 instances of"]
        columns = cells["kernel memory of a processor, columns of 9 bytes"]
        assert columns.startswith(str(chip.kernel_columns))
        assert str(chip.kernel_columns_first) in columns
        assert cells["biases of each group"] == str(chip.bias_bytes)
        assert cells["rows and columns of an image"] == str(chip.max_dimension)
        assert cells["streaming layers"] == str(chip.max_streaming_layers)
