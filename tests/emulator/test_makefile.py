"""The reader of make syntax: variables, conditionals, functions; nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.emulator.project.makefile import MAX_CHARACTERS, Makefile, MakefileError


def read(folder: Path, text: str) -> Makefile:
    (folder / "Makefile").write_text(text)
    makefile = Makefile(folder)
    makefile.read(folder / "Makefile")
    return makefile


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("X = a  # comment", "a"),
        ("X = a\nX += b", "a b"),
        ("A = 1\nX = $(A)\nA = 2", "2"),
        ("A = 1\nX := ${A}\nA = 2", "1"),
        ("X = a\nX ?= b", "a"),
        ("X ?= b", "b"),
        ("override X := a \\\n\tb \\\n  c", "a b c"),
        ("export X=a", "a"),
        ("N = X\n$(N) = a", "a"),
        ("X = $$HOME", "$HOME"),
        ("S = a.c b.c\nX = $(S:.c=.o)", "a.o b.o"),
        ("X = $(patsubst %.c,obj/%.o,a.c b.h)", "obj/a.o b.h"),
        ("X = $(subst a,b,cat,a)", "cbt,b"),
        ("X = $(strip  a   b )", "a b"),
        ("X = $(filter %.c,a.c b.h)-$(filter-out %.c,a.c b.h)", "a.c-b.h"),
        ("X = $(sort b a b) $(words b a b) $(word 2,p q) $(firstword p q) $(lastword p q)",
         "a b 3 q p q"),
        ("X = $(dir a/b.c c) $(notdir a/b.c) $(basename a/b.c) $(suffix a/b.c)",
         "a/ ./ b.c a/b .c"),
        ("X = $(addprefix -I,a b) $(addsuffix /x,a) $(join a b,1 2)", "-Ia -Ib a/x a1 b2"),
        ("X = $(if $(A),yes,no)$(or $(A),z)$(and a,$(A))", "noz"),
        ("X = $(foreach n,1 2,<$(n)>)", "<1> <2>"),
        ("f = $(2)$(1)\nX = $(call f,a,b)", "ba"),
        ("X = $(shell echo evil)$(info b)$(warning c)$(error d)$(eval Y=1)", ""),
        ("X != echo evil", ""),
        ("define X\nlong\nendef", ""),
        ("target: X = a\n\tX = b", ""),
        ("X = $(unclosed", ""),
    ],
)  # fmt: skip
def test_value_of_a_variable(text: str, value: str, tmp_path: Path) -> None:
    assert read(tmp_path, text).value("X").strip() == value


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('ifeq "$(A)" "1"', True), ("ifeq ($(A),1)", True), ("ifeq ($(A), 2)", False),
        ("ifneq '$(A)' '1'", False), ("ifdef A", True), ("ifndef B", True), ("ifdef B", False),
        ("ifeq ($(strip $(subst 1,2,$(A))),2)", True), ("ifeq nonsense", False),
    ],
)  # fmt: skip
def test_conditions(condition: str, holds: bool, tmp_path: Path) -> None:
    text = f"A = 1\n{condition}\nX = yes\nifeq (1,1)\nY = in\nendif\nelse\nX = no\nendif\n"
    makefile = read(tmp_path, text)
    assert makefile.value("X") == ("yes" if holds else "no")
    assert makefile.value("Y") == ("in" if holds else "")


def test_chain_of_conditions(tmp_path: Path) -> None:
    text = "A=2\nifeq ($(A),1)\nX=1\nelse ifeq ($(A),2)\nX=2\nelse ifeq (1,1)\nX=3\nelse\nX=4\n"
    assert read(tmp_path, text).value("X") == "2"


def test_files_are_found_in_and_beside_the_project_only(tmp_path: Path) -> None:
    folder = tmp_path / "all" / "project"
    for name in ("src/b.c", "src/a.c", "main.c", "../common/c.c", "../../outside/d.c"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    text = "X = $(wildcard *.c src/*.c ../common/*.c ../../outside/*.c /etc/*.conf)"
    assert read(folder, text).words("X") == ["main.c", "src/a.c", "src/b.c", "../common/c.c"]


def test_other_makefiles_of_the_project_are_included(tmp_path: Path) -> None:
    (tmp_path / "project.mk").write_text("X = a\n")
    (tmp_path.parent / "outside.mk").write_text("X = b\n")
    text = "include ./project.mk\n-include missing.mk\ninclude ../outside.mk\nX += c\n"
    assert read(tmp_path, text).value("X") == "a c"


@pytest.mark.parametrize(
    "text",
    [
        "X = $(X) a",
        "include Makefile",
        "\n".join(["A0 = " + "x" * 100, *(f"A{i + 1} = " + f"$(A{i})" * 10 for i in range(9))])
        + "\nX = $(A9)",
    ],
)
def test_endless_makefiles_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(MakefileError):
        assert len(read(tmp_path, text).value("X")) <= MAX_CHARACTERS
