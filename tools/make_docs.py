#!/usr/bin/env python3
"""Write docs/errors.md, docs/options.md, docs/pictures and networks/schema.json from the code.

In other pages of docs/ it writes what stands between the markers `begin` and `end`.

tools/make_docs.py            write these files
tools/make_docs.py --check    write nothing; status 1 if a file is not up to date
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics import run
from ai8xtools.synthesis.check import CONSTRAINTS
from ai8xtools.synthesis.parse.keys import (
    DATA_BUFFER_KEYS,
    GLOBAL_KEYS,
    LAYER_KEYS,
    UNLOAD_KEYS,
    Key,
)
from ai8xtools.synthesis.parse.schema import description_schema
from tools.manual import chips, examples, registers
from tools.manual.completion import completion_script
from tools.manual.markdown import filled, marked
from tools.manual.options import options_page
from tools.manual.pictures import PICTURES

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"[EWN]\d{3}")
SOURCES = ("*.py", "ai8xtools/**/*.py", "datasets/**/*.py", "tools/*.py")
CATALOGUE = Path(__file__).resolve().parent / "manual" / "codes.toml"
"""The groups of codes, and the meaning of each that is not said beside its check."""
BLANK = "…"
"""Stands in a message for what differs from case to case."""
_REGISTERING = ("constraint", "layer_constraint")
"""Decorators that make a function the constraint of a code."""
_REASONED = ("rules.py", "limits.py", "rings.py")
"""Modules in which the docstring of a function says why it complains."""
_COMPLAINING = "_complain"
"""So begin the names of functions elsewhere whose docstring does."""


@dataclass
class Explanation:
    """What the code says about one code: why, with which messages, and of what it is true."""

    reasons: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        """Note a message unless nothing of it is fixed or it is known."""
        message = re.sub(f"{BLANK}+", BLANK, message)
        if message.strip(f"{BLANK} :,.'") and message not in self.messages:
            self.messages.append(message)


# Codes, from the source

_CODES = re.compile(rb"\b[EWN]\d{3}\b|Complaints|Finding|import .*\b[A-Z_]{3,}\b")
"""What a module has that names codes, or takes them from another one."""


@cache
def explanations(root: Path) -> dict[str, Explanation]:
    """Return every code of the source with its messages and reasons."""
    entries: defaultdict[str, Explanation] = defaultdict(Explanation)
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            if path != Path(__file__).resolve():
                text = path.read_bytes()
                if _CODES.search(text):
                    _scan(ast.parse(text), path.name in _REASONED, entries, root)
    for constraint in CONSTRAINTS:
        entries[constraint.code].reasons.append(constraint.reason)
        entries[constraint.code].kinds.append(constraint.kind)
    return dict(entries)


def _scan(tree: ast.Module, rules: bool, entries: Mapping[str, Explanation], root: Path) -> None:
    """Collect the codes of a module; `rules` means that docstrings of functions are reasons."""
    constants = _imported_constants(tree, root) | _constants(tree)
    collecting = _collected(tree, constants)
    if collecting:
        for message in _complaints(tree):
            entries[collecting].add(message)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            code = _constraint_code(node)
            if code:
                for message in _findings(node, tree):
                    entries[code].add(message)
            for code, expression in _calls(node, constants):
                entries[code]  # also a code whose message is not in the source has a row
                for message in _named_texts(expression, node, tree):
                    entries[code].add(message)
                reason = " ".join((ast.get_docstring(node) or "").split())
                reasoned = rules or node.name.startswith(_COMPLAINING)
                if reasoned and reason and reason not in entries[code].reasons:
                    entries[code].reasons.append(reason)


def _constants(tree: ast.Module) -> dict[str, str | None]:
    """Return the texts that a module gives names to."""
    return {
        _name(node.targets[0]): _text(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }


def _imported_constants(tree: ast.Module, root: Path) -> dict[str, str | None]:
    """Return the texts that a module takes from others of the project."""
    texts: dict[str, str | None] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(x.name.isupper() for x in node.names):
            path = root / f"{(node.module or '').replace('.', '/')}.py"
            if path.is_file():
                named = _constants(ast.parse(path.read_bytes()))
                texts |= {x.name: named[x.name] for x in node.names if x.name in named}
    return texts


def _collected(tree: ast.Module, constants: Mapping[str, str | None]) -> str | None:
    """Return the code with which a module collects complaints (`Complaints(CODE, path)`)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == "Complaints" and node.args:
            return _text(node.args[0]) or constants.get(_name(node.args[0]))
    return None


def _complaints(tree: ast.Module) -> Iterator[str]:
    """Yield the messages that a module adds to its complaints."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if _name(node.func.value) != "complaints":
            continue
        if node.func.attr == "add":
            yield from _texts(node.args[0])
        elif node.func.attr == "wrong" and len(node.args) > 2:
            yield from (f"{BLANK} is {BLANK}; it must be {text}" for text in _texts(node.args[2]))


def _constraint_code(function: ast.FunctionDef) -> str | None:
    """Return the code of a function that is registered as a constraint."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and _name(decorator.func) in _REGISTERING:
            return _text(decorator.args[0])
    return None


def _findings(function: ast.FunctionDef, tree: ast.Module) -> Iterator[str]:
    """Yield the messages of a constraint, also those of a function that yields their parts."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _name(node.func) == "Finding":
            if isinstance(node.args[0], ast.Starred):
                yield from _yielded(function, tree)
            else:
                yield from _texts(node.args[0])


def _yielded(function: ast.FunctionDef, tree: ast.Module) -> Iterator[str]:
    """Yield the first text of each tuple that functions called here yield."""
    called = {_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    for helper in tree.body:
        if isinstance(helper, ast.FunctionDef) and helper.name in called:
            for node in ast.walk(helper):
                if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                    yield from _texts(node.value.elts[0])


def _calls(
    function: ast.FunctionDef, constants: Mapping[str, str | None]
) -> Iterator[tuple[str, ast.expr]]:
    """Yield (code, message) of each call with a code, or a constant for it, and what follows."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _name(node.func) not in _REGISTERING:
            for argument, following in zip_longest(node.args, node.args[1:]):
                code = _text(argument) or constants.get(_name(argument))
                if code and CODE.fullmatch(code):
                    yield code, following or ast.Constant("")


def _named_texts(
    expression: ast.expr, function: ast.FunctionDef, tree: ast.Module
) -> Iterator[str]:
    """Yield the texts of a message, also of one that is a variable or a parameter."""
    name = _name(expression) if isinstance(expression, ast.Name) else ""
    if not name:
        yield from _texts(expression)
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and name in map(_name, node.targets):
            yield from _texts(node.value)
    parameters = [one.arg for one in function.args.args if one.arg != "self"]
    for node in ast.walk(tree):
        if name in parameters and isinstance(node, ast.Call) and _name(node.func) == function.name:
            yield from (t for a in node.args[parameters.index(name) :][:1] for t in _texts(a))


def _name(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _text(node: ast.expr) -> str | None:
    value = getattr(node, "value", None)
    return value if isinstance(node, ast.Constant) and isinstance(value, str) else None


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts an expression can become, with a blank for each part that is computed."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from (a + b for a in _texts(node.left) for b in _texts(node.right))
    elif isinstance(node, ast.JoinedStr):
        yield "".join(_text(part) or BLANK for part in node.values)
    else:
        yield _text(node) or BLANK


# Pages


def errors_page(entries: Mapping[str, Explanation]) -> str:
    """Return the text of docs/errors.md."""
    lines = [
        "# Messages and their codes",
        "",
        "Every message names its place, the offending value with the limit, a remedy, and a",
        "code. Errors (E) end the run with status 1 (E070 with 2); after warnings (W) and",
        "notices (N) it continues.",
        "",
        f"Options turn a few errors into warnings: {_waived('--ignore-bias-groups')},",
        f"{_waived('--ignore-hw-limits')}, `--no-error-stop` and `--overlap-data` (data",
        "that overwrites other data). The code stays the same, but the message begins with",
        "`warning`.",
        "",
        "The first digits tell the subject: [Architecture](architecture.md#diagnostics) names the",
        "ranges.",
        "",
        f"`{BLANK}` stands for values that differ from case to case. Constraints hold for every",
        "`network`, or they are limits of the `hardware`.",
        "",
        "This page is generated by `tools/make_docs.py` from the code; do not edit it.",
    ]
    for title, meanings in catalogue().items():
        columns = ["Code", "Meaning", "Messages"]
        columns += ["Holds for"] if any(entries[code].kinds for code in meanings) else []
        lines += ["", f"## {title}", "", _row(columns), _row(["---"] * len(columns))]
        for code, meaning in meanings.items():
            lines.append(_row(_error_cells(code, meaning, entries[code])[: len(columns)]))
    return "\n".join(lines) + "\n"


def catalogue() -> dict[str, dict[str, str]]:
    """Return the groups of codes with their meanings; "" where the code itself says it."""
    groups: dict[str, dict[str, str]] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return groups


def _error_cells(code: str, meaning: str, what: Explanation) -> list[str]:
    messages = "<br>".join(map(_cell, sorted(what.messages))) or "as the cause says"
    return [code, _cell(meaning or " ".join(what.reasons)), messages, ", ".join(what.kinds)]


def _waived(option: str) -> str:
    """Return an option with the codes of the constraints that it turns into warnings."""
    codes = (c.code for c in CONSTRAINTS if c.waived_by == option)
    return f"`{option}` ({', '.join(sorted(codes))})"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _key_rows(keys: Sequence[Key]) -> Iterable[str]:
    yield _row(["Key", "Accepts", "Default", "Meaning"])
    yield _row(["---"] * 4)
    for key in keys:
        names = f"`{key.name}`" + "".join(f", `{alias}`" for alias in key.aliases)
        default = "required" if key.required else key.default or "none"
        cells = (names, key.accepts.expected(), default, key.sentence)
        yield _row(map(_cell, cells))


KEYS = {
    "global-keys": GLOBAL_KEYS,
    "layer-keys": LAYER_KEYS,
    "unload-keys": UNLOAD_KEYS,
    "buffer-keys": DATA_BUFFER_KEYS,
}


def _key_table(keys: Sequence[Key]) -> Callable[[], str]:
    return lambda: "\n".join(_key_rows(keys))


BLOCKS = {
    **chips.TABLES,
    **registers.TABLES,
    **examples.TABLES,
    **{name: _key_table(keys) for name, keys in KEYS.items()},
}
"""What is written into pages, by the names of their markers."""


def schema_file() -> str:
    """Return the text of networks/schema.json."""
    return json.dumps(description_schema(), indent=1) + "\n"


# Command line


def filled_pages(root: Path) -> dict[Path, str]:
    """Return the pages that have tables and examples between markers."""
    texts = {path: path.read_text(encoding="utf-8") for path in (root / "docs").rglob("*.md")}
    return {path: filled(text, BLOCKS) for path, text in texts.items() if marked(text)}


def pages(root: Path) -> dict[Path, str]:
    """Return the text of each generated page by its path."""
    return {
        **filled_pages(root),
        root / "docs" / "errors.md": errors_page(explanations(root)),
        root / "docs" / "options.md": options_page(),
        root / "scripts" / "completion.bash": completion_script(),
        root / "networks" / "schema.json": schema_file(),
        **{root / "docs" / "pictures" / f"{name}.svg": draw() for name, draw in PICTURES.items()},
    }


def make_docs(check: bool) -> int:
    """Write the pages, or only say which ones are old; return the exit status."""
    old = {
        path: text
        for path, text in pages(ROOT).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in old.items():
        name = path.relative_to(ROOT)
        print(f"{name} is not up to date" if check else f"Wrote {name}")
        if not check:
            atomic.write_bytes(path, text.encode())
    return int(check and bool(old))


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    return parser


if __name__ == "__main__":
    sys.exit(run(lambda: make_docs(arguments().parse_args().check)))
