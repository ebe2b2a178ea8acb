"""Refused commands tell their cure as an edit, which the client applies."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import parse as parse_emulation
from ai8xtools.commands.emulate.cure import emulate_or_cure
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.commands.loader.cure import with_cure
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Edit, Place, diagnostics_of, run
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.meant import edit_of
from ai8xtools.diagnostics.outcome import recorded
from ai8xtools.synthesis.cure import applied
from tests.remedies.__main__ import words_of
from tests.remedies.client import apply
from tests.remedies.planted import broken_projects
from tests.robustness.starts import DESCRIPTION, own_starts

START = next(own_starts())
TEXT = START.files[DESCRIPTION].decode()
WRITTEN = ("--test-dir", ".", "--prefix", "p", "--no-log")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files of the digits network, in which the tools run."""
    monkeypatch.chdir(tmp_path)
    for name, content in START.files.items():
        Path(name).write_bytes(content)
    return tmp_path


def refused(*words: str) -> list[Diagnostic]:
    """Return the errors of a command line with the cure."""
    options = parse([*words, *WRITTEN])
    with pytest.raises((DiagnosticError, ToolError, OSError)) as caught:
        create_project(options)
    return [d for d in with_cure(options, diagnostics_of(caught.value)) if d.severity.is_error]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    pad: 1", "    pad: 0"),
        ("    out_offset: 0x2000", "    out_offset: 8K"),
        ("    processors: 0x0000.ffff.ffff.ffff", "    processors: 0x0000.ffff.ffff.fff"),
        ("    processors: 0x0000.ffff.ffff.ffff", "    processors: 0xO0000.ffff.ffff.ffff"),
        ("    pool_stride: 2\n", ""),
        ("    flatten: true", "    flatten: ture"),
        ("    flatten: true", "   flatten: true"),
        ("    flatten: true", "    flatten = true"),
        ("    kernel_size: 3x3", "    kernel_size: 3*3"),
        ("  - name: conv3\n", "    name: conv3\n"),
        ("    activate: ReLU\n\n", "    activate: ReLU\n    activate: ReLU\n\n"),
        ("    activate: ReLU", "    activate: *relu"),
        ("arch: ai85digitsnet\n", ""),
        ("arch: ai85digitsnet\n", "arch: 5\n"),
    ],
)  # fmt: skip
def test_a_description_is_cured(folder: Path, old: str, new: str) -> None:
    assert old in TEXT
    Path(DESCRIPTION).write_text(TEXT.replace(old, new, 1))
    edits = [d.edit for d in refused(*START.args) if d.edit is not None]
    text = applied(Path(DESCRIPTION).read_text(), edits[0])
    Path(DESCRIPTION).write_text(text)
    create_project(parse([*START.args, *WRITTEN]))
    cured = words_of(folder / "p")
    Path(DESCRIPTION).write_text(TEXT)
    create_project(parse([*START.args, *WRITTEN, "--overwrite"]))
    assert words_of(folder / "p") == cured


def test_the_remedy_says_the_same_in_words(folder: Path) -> None:
    Path(DESCRIPTION).write_text(TEXT.replace("out_offset: 0x2000", "out_offset: 8K", 1))
    [error] = refused(*START.args)
    assert error.remedy == "Perhaps: '0x2000' instead of '8K' at net.yaml:17:17."


def test_the_error_that_is_cured_has_the_edit(folder: Path) -> None:
    Path("p").mkdir()
    Path(DESCRIPTION).write_text(TEXT.replace("out_offset: 0x2000", "out_offset: 8K", 1))
    assert {d.code: d.edit is not None for d in refused(*START.args)} == {
        "E060": False, "E109": True,
    }  # fmt: skip


def test_another_file_of_the_folder_is_the_cure_where_one_is_wrong(folder: Path) -> None:
    Path("net.pth.tar").rename("net-q.pth.tar")
    error, *_ = refused(*START.args)
    assert error.edit == Edit(
        Place(option="--checkpoint-file"), "net.pth.tar", "net-q.pth.tar", certain=False
    )
    assert "--checkpoint-file net-q.pth.tar instead of net.pth.tar" in str(error.remedy)


def test_layers_in_each_others_place_are_exchanged(folder: Path) -> None:
    parts = TEXT.split("\n  - ")
    parts[1:3] = parts[2], parts[1]
    Path(DESCRIPTION).write_text("\n  - ".join(parts))
    edits = [d.edit for d in refused(*START.args) if d.edit is not None]
    assert applied(Path(DESCRIPTION).read_text(), edits[0]).split() == TEXT.split()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# ", ""),
        ("  - name: conv2\n", "  - name: conv2\n  - name: conv2\n"),
        ("kernel_size: 3x3", "kernel_size:\n3x3"),
        ("arch: ", "arch:\n"),
    ],
)
def test_lines_without_a_key_are_comments_or_ends_of_others(
    folder: Path, old: str, new: str
) -> None:
    assert old in TEXT
    Path(DESCRIPTION).write_text(TEXT.replace(old, new, 1))
    edits = [d.edit for d in refused(*START.args) if d.edit is not None]
    mended = applied(Path(DESCRIPTION).read_text(), edits[0])
    assert "".join(mended.split()) == "".join(TEXT.split())


@pytest.mark.parametrize("wrong", ["-config-file", "--CONFIG-FILE"])
def test_options_in_another_form(
    folder: Path, wrong: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*START.args, *WRITTEN, "--diagnostics", "json"]
    words[words.index("--config-file")] = wrong
    monkeypatch.setattr("sys.argv", ["ai8xize.py", *words])
    with pytest.raises(SystemExit):
        run(lambda: create_project(parse(words)))
    edits = [m["edit"] for m in json.loads(capsys.readouterr().out) if m["edit"] is not None]
    assert apply(edits[0], words, folder) and words[: len(START.args)] == [*START.args]


def test_what_nothing_cures_has_no_edit(folder: Path) -> None:
    Path("net.pth.tar").unlink()
    assert [d.edit for d in refused(*START.args)] == [None]


def test_changed_c_is_told_as_the_line_that_was_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*START.args, *WRITTEN]
    monkeypatch.setattr("sys.argv", ["emulate.py", "p", "--diagnostics", "json"])
    create_project(parse(words))
    capsys.readouterr()
    shutil.copy("p/cnn.c", "cnn.c")
    changed = Path("cnn.c").read_text().replace("0x00010009; // Rows", "0x00010008; // Rows", 1)
    Path("p/cnn.c").write_text(changed)
    assert run(lambda: emulate_or_cure(parse_emulation(["p"]))) == 1
    [message] = json.loads(capsys.readouterr().out)
    assert message["code"] == "E845" and message["message"] == "the project fails: FAIL"
    assert apply(message["edit"], [], folder)
    assert Path("p/cnn.c").read_text() == Path("cnn.c").read_text()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("cnn.c", "0x00010009; // Rows", "0x00010008; // Rows"),
     ("weights.h", "0xf116fe2c", "0xf116fe3c")],
)  # fmt: skip
def test_without_the_description_the_answer_file_tells_the_word(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str
) -> None:
    create_project(parse([*START.args, *WRITTEN]))
    Path(DESCRIPTION).unlink()
    file = Path("p", name)
    text = file.read_text()
    changed = text.replace(old, new, 1)
    file.write_text(changed)
    monkeypatch.setattr("ai8xtools.commands.emulate.cure.is_read_at_once", lambda: True)
    with recorded(()) as outcome:
        assert emulate_or_cure(parse_emulation(["p", "--accelerator-only"])) == 1
    [message] = outcome.diagnostics
    assert message.edit is not None
    assert applied(changed, message.edit) == text


def test_mistakes_are_drawn_of_every_group() -> None:
    groups = {broken.group for broken in broken_projects(6, 1)}
    assert groups == {"description", "options", "checkpoint", "model", "C"}


@pytest.mark.parametrize(
    ("option", "old", "new", "words"),
    [("--a", "--a", "--b", "x --b 1 --c=2 y"), ("--a", "1", "3", "x --a 3 --c=2 y"),
     ("--a", "--a", "", "x --c=2 y"), ("--c", "2", "4", "x --a 1 --c=4 y"),
     ("--d", "", "5", "x --a 1 --c=2 y --d 5")],
)  # fmt: skip
def test_edits_of_options(option: str, old: str, new: str, words: str) -> None:
    typed = ["x", "--a", "1", "--c=2", "y"]
    edit = {"file": None, "option": option, "old": old, "new": new}
    assert apply(edit, typed, Path()) and typed == words.split()


MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, num_channels=1, **kwargs):
        super().__init__()
        self.conv1 = nn.Conv2d(
            num_channels, 8, 3, padding=1, **kwargs
        )

    def forward(self, x):
        return self.conv1(x)
"""
TWICE = "            num_channels, 8, 3, padding=1, **kwargs\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("nn.Conv2d", "nn.Conv2D", 7), ("def __init__(", "__init__(\n", 5),
     (TWICE, 2 * TWICE, 9), ("padding=1", "paddin=1", 8),
     ("self.conv1(x)", "self.con1(x)", 12), ("(self, x):", "(self, x)", 11),
     ("8, 3", "8 3", 8), ("1 = nn", "1 nn", 7), ("(x)", "(x", 12),
     ("num_channels, 8", "num_chanels, 8", 8), ("from torch import nn\n", "import math\n", 1)],
)  # fmt: skip
def test_slips_in_python_files(tmp_path: Path, old: str, new: str, line: int) -> None:
    import torch

    file = tmp_path / "net.py"
    text = MODEL.replace(old, new)
    file.write_text(text)
    error = ToolError("E662", "it fails", str(file))
    try:
        module: dict[str, object] = {"__name__": "net"}
        exec(compile(text, str(file), "exec"), module)
        module["Net"]().forward(torch.zeros(1, 1, 4, 4))  # type: ignore[operator]
    except Exception as exc:
        error.__cause__ = exc
    [diagnostic] = diagnostics_of(error)
    assert diagnostic.edit is not None and diagnostic.edit.place.line == line
    mended = applied(text, diagnostic.edit).replace("import math\n", "")
    assert ast.dump(ast.parse(mended)) == ast.dump(ast.parse(MODEL))
    assert str(diagnostic.edit) == diagnostic.remedy


@pytest.mark.parametrize(
    ("place", "words", "edit"),
    [
        (Place("nt.yaml"), "--config-file nt.yaml", ("--config-file", "nt.yaml")),
        (Place("nt.yaml"), "nt.yaml", ("nt.yaml", "nt.yaml")),
        (Place(option="--model"), "--model nt", ("--model", "nt")),
    ],
)
def test_what_a_remedy_names_is_an_edit(place: Place, words: str, edit: tuple[str, str]) -> None:
    diagnostic = Diagnostic("E601", "not here", place, "Perhaps you mean net.yaml or other.")
    found = edit_of(diagnostic, ["tool.py", *words.split()])
    assert found == Edit(Place(option=edit[0]), edit[1], "net.yaml", certain=False)


def test_what_a_remedy_names_is_looked_for_in_the_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("a: 1\nstrat_epoch: 3  # start\n")
    place = Place(str(file), 2, 1)
    diagnostic = Diagnostic("E630", "unknown key", place, "Did you mean 'start_epoch'? Others are.")
    found = edit_of(diagnostic, [])
    assert found == Edit(place, "strat_epoch", "start_epoch", certain=False)
    file.unlink()
    assert edit_of(diagnostic, []) is None


def test_options_that_hold_values_of_each_other(folder: Path) -> None:
    words = [*START.args]
    config, sample = words.index("net.yaml"), words.index("sample.npy")
    words[config], words[sample] = words[sample], words[config]
    error, *_ = refused(*words)
    assert error.edit == Edit(
        Place(option="--config-file"), "sample.npy", "net.yaml", certain=False
    )


def test_an_option_that_is_refused_is_left_out(folder: Path) -> None:
    error, *_ = refused(*START.args, "--input-split", "0")
    assert error.edit == Edit(Place(option="--input-split"), "--input-split", "", certain=False)
    assert str(error.remedy).endswith("Perhaps: leave out --input-split.")


def test_the_device_is_looked_for_among_other_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--config-file", "MAX78000", "--device", "net.yaml", "--diagnostics", "json"]
    monkeypatch.setattr("sys.argv", ["ai8xize.py", *words])
    with pytest.raises(SystemExit):
        run(lambda: create_project(parse(words)))
    edits = [message["edit"] for message in json.loads(capsys.readouterr().out)]
    assert [(e["option"], e["old"], e["new"]) for e in edits] == [
        ("--device", "net.yaml", "MAX78000")
    ]
