"""What is drawn, which tests are run, and a campaign in a small tree."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.mutants.__main__ import arguments, rooms_of
from tests.mutants.cs import CFile
from tests.mutants.drawing import draw
from tests.mutants.mutant import Mutant, changed_lines, read, write
from tests.mutants.nearest import Measured, batches, moved, noted, packed
from tests.mutants.pythons import PythonFile

WORDING = '''"""Some 1 + 2 text."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    A = int | None
B = dict[str, int] | None
def f(a: int | None, *, b: "x" = None) -> tuple[int, 3 + 4]:
    """Return 1 + 1."""
    assert a > 3
    c: int | float = a
    print(1 + 2, f"{a + 1}")
    raise ValueError(f"{a + 3}" + str(a - 1))
@lru_cache(maxsize=3)
def g(): zip(a, b, strict=True)
class C:
    def __repr__(self):
        return str(1 + 2) if self.x else ""
'''


def _all(file: PythonFile | CFile, line: int) -> set[str]:
    found = {file.drawn(line, random.Random(seed)) for seed in range(40)}
    return {text for text in found if text is not None}


def test_what_changes_only_wording_or_types_is_not_drawn() -> None:
    file = PythonFile(WORDING)
    assert {line: _all(file, line) for line in range(1, WORDING.count("\n") + 1)} == {
        line: set() for line in range(1, WORDING.count("\n") + 1)
    }


def test_python_is_changed_in_one_place() -> None:
    text = "def f(a):\n    return a + 1 if a < 2 else 0\n"
    found = _all(PythonFile(text), 2)
    changed = {changed_lines("f.py", text, one) for one in found}
    assert {one.line for one in changed} == {2}
    assert {one.applied(text) for one in changed} == found
    for kept in ("a + 1", "a < 2", "else 0"):
        assert any(kept not in one for one in found)


def test_exceptions_of_other_modules_do_not_stop_the_drawing() -> None:
    file = PythonFile("try:\n    f(1)\nexcept (zipfile.BadZipFile, OSError):\n    pass\n")
    drawn = {text for seed in range(30) for text in [file.drawn(3, random.Random(seed))] if text}
    assert all("zipfile.BadZipFile" in text for text in drawn)


def test_c_is_changed_outside_of_comments_strings_and_labels() -> None:
    text = (
        'int f(int a) { /* 1 + 1 */\n    g("1 < 2");\n    return a < 7;\n    "1:\\n" "b 1b\\n"\n}\n'
    )
    file = CFile(text)
    assert [len(_all(file, line)) for line in range(1, 6)] == [0, 0, 4, 0, 0]
    assert len(_all(CFile('"sub sp, #36\\n"'), 1)) == 2
    assert _all(CFile("a = b < c ? b : c;"), 1) == {"a = b > c ? b : c;"}
    assert len(_all(CFile("a = b < c ? d : c;"), 1)) == 2


def _tree(root: Path) -> Path:
    for room, count in (("quantization", 30), ("layers", 10)):
        (root / room).mkdir(parents=True)
        lines = "".join(f"x{n} = f({n}) + {n}\n" for n in range(count))
        (root / room / "a.py").write_text(lines)
    return root


def test_a_seed_determines_what_is_drawn_and_rooms_have_shares_by_lines(tmp_path: Path) -> None:
    root = _tree(tmp_path)
    rooms = ["quantization", "layers"]
    found = draw(root, rooms, 12, 5)
    assert found == draw(root, rooms, 12, 5) != draw(root, rooms, 12, 6)
    assert sorted(one.room for one in found) == ["layers"] * 3 + ["quantization"] * 9
    assert len({(one.file, one.line) for one in found}) == 12
    write(tmp_path / "drawn.json", found)
    assert read(tmp_path / "drawn.json") == found


def test_a_defect_is_found_where_its_lines_moved_to_and_nowhere_else() -> None:
    mutant = Mutant("f.py", "    a = 1", "    a = 2", line=2)
    assert mutant.applied("b\n    a = 1\nc") == "b\n    a = 2\nc"
    assert mutant.applied("    a = 1\nb\nc") == "    a = 2\nb\nc"
    assert mutant.key() == Mutant("f.py", "a = 1", "a = 2").key()
    for text in ("nothing", "    a = 1\n\n    a = 1"):
        with pytest.raises(ValueError, match=r"f\.py"):
            mutant.applied(text)


def test_lines_are_found_again_by_their_text() -> None:
    before = "a\nb\nc\nd"
    assert [moved(before, "new\na\nb\nc\nd", line) for line in range(2, 6)] == [1, 2, 3, 4]
    assert [moved(before, "a\nc\nd", line) for line in (1, 2, 3)] == [1, 3, 4]
    assert packed([7, 3, 8, 9]) == "3,7-9"


def test_tests_of_the_line_come_first_the_nearest_before_others(tmp_path: Path) -> None:
    (tmp_path / "quantization").mkdir()
    text = "def f():\n    return 1\ndef g():\n    return 2\n"
    (tmp_path / "quantization/a.py").write_text(text)
    measured = {}
    for folder in ("quantization", "software"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        name = f"tests/{folder}/test_a.py"
        (tmp_path / name).touch()
        hits = {f"{name}::slow": "2", f"{name}::quick": "2", f"{name}::other": "4"}
        seconds = {f"{name}::slow": 9.0, f"{name}::quick": 0.1, f"{name}::other": 0.1}
        lines, texts = {"quantization/a.py": hits}, {"quantization/a.py": noted(text)}
        measured[name] = Measured("", "", 0.5, seconds, [], lines, texts)
    mutant = Mutant("quantization/a.py", "    return 1", "    return 2", 2, room="quantization")
    near, far = "tests/quantization/test_a.py", "tests/software/test_a.py"
    assert batches(tmp_path, mutant, measured, {f"{far}::slow"}, 60) == [
        (near, [f"{near}::quick"]), (far, [f"{far}::quick"]), (near, [f"{near}::slow"]),
        (near, [f"{near}::other"]), (far, [f"{far}::other"]),
    ]  # fmt: skip
    assert batches(tmp_path, mutant, measured, set(), 0.3) == [(near, [f"{near}::quick"])]


def test_a_campaign_tells_what_was_noticed_and_leaves_the_tree_alone(tmp_path: Path) -> None:
    room, tests = tmp_path / "ai8xtools/quantization", tmp_path / "tests"
    room.mkdir(parents=True)
    shutil.copytree(
        Path(__file__).parent, tests / "mutants", ignore=shutil.ignore_patterns("test*")
    )
    text = "def larger(a, b):\n    c = 5\n    if a > b:\n        return a\n    return b\n"
    (room / "a.py").write_text(text)
    (tests / "quantization").mkdir()
    (tests / "quantization/test_a.py").write_text(
        "from ai8xtools.quantization.a import larger\n"
        "def test_larger():\n    assert larger(1, 2) == 2\n"
        "def test_broken():\n    assert larger(1, 2) == 3\n"
    )
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    changes = [("a > b", "a < b"), ("a > b", "a >= b"), ("= 5", "= 6"), ("return a", "return 7")]
    write(tmp_path / "list.json", [Mutant("ai8xtools/quantization/a.py", *one) for one in changes])
    equal = (
        '[[defect]]\nfile = "ai8xtools/quantization/a.py"\nold = "= 5"\nnew = "= 6"\n'
        'why = "unused"\n'
    )
    (tests / "mutants/equivalent.toml").write_text(equal)
    command = [sys.executable, "-m", "tests.mutants", "--list", "list.json", "--jobs", "1"]
    command += ["--json", "results.json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    fates = {one["mutant"]["new"]: one["fate"] for one in results}
    assert fates == {
        "a < b": "noticed", "a >= b": "survived", "= 6": "equivalent", "return 7": "survived",
    }  # fmt: skip
    assert "fails without a mutant: tests/quantization/test_a.py::test_broken" in ended.stdout
    assert (room / "a.py").read_text() == text


def test_equivalent_mutants_are_of_lines_that_exist() -> None:
    known = tomllib.loads((ROOT / "tests/mutants/equivalent.toml").read_text())["defect"]
    for one in known:
        assert one["why"] and one["new"] != one["old"]
        lines = {line.strip() for line in (ROOT / one["file"]).read_text().splitlines()}
        assert lines.issuperset(line.strip() for line in one["old"].splitlines()), one


def test_rooms_that_do_not_exist_are_refused() -> None:
    assert rooms_of(["synthesis/encode"]) == rooms_of(["ai8xtools/synthesis/encode"])
    assert len(rooms_of(["synthesis", "synthesis/place"])) == 6
    with pytest.raises(SystemExit):
        arguments(["--rooms", "layers", "synthesis/encodes"])
