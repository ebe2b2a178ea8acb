"""Compiled templates are kept, and never change what is rendered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, TemplateNotFound

from ai8xtools.writing.compiled import CompiledLoader, store_of
from tests.conftest import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two templates, one of which includes the other."""
    made = tmp_path / "templates"
    (made / "parts").mkdir(parents=True)
    (made / "page.j2").write_text("{% include 'parts/word.j2' %} {{ number + 1 }}\n")
    (made / "parts" / "word.j2").write_text("number")
    return made


@pytest.fixture(autouse=True)
def bytecode_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def environment(folder: Path, settings: bytes = b"") -> Environment:
    return Environment(loader=CompiledLoader(folder, folder.parent / "store", settings))


def rendered(made: Environment) -> str:
    return made.get_template("page.j2").render(number=2)


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("compiled although it was kept")


def test_kept_templates_are_not_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rendered(environment(folder)) == "number 3"
    monkeypatch.setattr(Environment, "compile", refuse)
    assert rendered(environment(folder)) == "number 3"


@pytest.mark.parametrize("name", ["page.j2", "parts/word.j2"])
def test_a_changed_template_counts_as_it_is_now(folder: Path, name: str) -> None:
    rendered(environment(folder))
    before = (folder / name).stat()
    (folder / name).write_text((folder / name).read_text().replace("number", "figure"))
    os.utime(folder / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    figure = environment(folder).get_template("page.j2").render(number=2, figure=4)
    assert figure == ("number 5" if name == "page.j2" else "figure 3")


@pytest.mark.parametrize("damage", ["cut", "empty", "altered", "other", "folder"])
def test_a_damaged_store_counts_as_empty(folder: Path, damage: str) -> None:
    rendered(environment(folder))
    store = folder.parent / "store"
    content = bytearray(store.read_bytes())
    content[-9] ^= 1
    store.unlink()
    if damage == "folder":
        store.mkdir()
    else:
        texts = {"cut": content[:-5], "empty": b"", "altered": content, "other": b"x" * 500}
        store.write_bytes(texts[damage])
    assert rendered(environment(folder)) == "number 3"


def test_code_made_with_other_settings_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered(environment(folder))
    monkeypatch.setattr(Environment, "compile", refuse)
    with pytest.raises(AssertionError, match="compiled"):
        rendered(environment(folder, b"other"))


def test_nothing_is_written_where_python_writes_no_bytecode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(environment(folder)) == "number 3"
    assert [path.name for path in folder.parent.iterdir()] == ["templates"]


def test_a_folder_that_cannot_be_written_does_not_matter(folder: Path) -> None:
    blocked = folder / "page.j2" / "store"
    assert rendered(Environment(loader=CompiledLoader(folder, blocked, b""))) == "number 3"


def test_missing_template_is_named(folder: Path) -> None:
    with pytest.raises(TemplateNotFound, match=r"other\.j2"):
        environment(folder).get_template("other.j2")


def test_set_up_compiles_modules_and_templates(tmp_path: Path) -> None:
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, ROOT / "tools" / "precompile.py"], env=variables, check=True, timeout=60
    )
    inside = tmp_path / ROOT.relative_to("/")
    assert (inside / "templates" / store_of(ROOT / "templates").name).is_file()
    for name in ("devices", "commands/loader/create", "synthesis/pipeline", "emulator/__init__"):
        assert (inside / f"ai8xtools/{name}.{sys.implementation.cache_tag}.pyc").is_file()
