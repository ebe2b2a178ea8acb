"""Sketches of Arduino: the text that a compiler of C++ takes.

The files of a sketch are one text, the functions that it defines are declared, and main() calls
setup() once and loop() for ever.
"""

from __future__ import annotations

import re
from pathlib import Path

from ai8xtools.reading import real_path, source_text

SKETCH = ".ino"
_HIDDEN = re.compile(
    r"//.*|/\*[\s\S]*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|^[ \t]*#.*",
    re.MULTILINE,
)
_FUNCTION = re.compile(
    r"^[ \t]*+(?!(?:else|return|struct|class|enum|union|namespace|template|extern|typedef|using)\b)"
    r"(?P<head>[A-Za-z_][\w \t*&:<>,]*?[ \t*&](?P<name>\w+)\s*\((?P<arguments>[^(){};]*)\))\s*\{",
    re.MULTILINE,
)
_DEFAULT = re.compile(r"\s*=[^,]*")
_MAIN = 'extern "C" int main(void) { setup(); for (;;) loop(); }\n'


def first_files(sketches: list[Path]) -> list[Path]:
    """Return one file for each folder of sketches: that with the name of the folder, or setup()."""
    first: dict[Path, Path] = {}
    for path in sorted(sketches, key=lambda p: (p.stem != real_path(p.parent).name, p)):
        held = first.setdefault(path.parent, path)
        if held.stem != real_path(held.parent).name and _sets_up(path) and not _sets_up(held):
            first[path.parent] = path
    return [*first.values()]


def sketch_text(first: Path) -> str:
    """Return the text of a sketch by its first file; the others follow in the order of names."""
    others = sorted(path for path in first.parent.glob(f"*{SKETCH}") if path != first)
    parts, position = [], None
    for path in (first, *others):
        text = source_text(path, "surrogateescape")
        parts.append(f'#line 1 "{_quoted(path)}"\n{text}\n')
        if path == first:
            position = _first_function(text)
    whole = "".join(parts)
    declared = "".join(f"{head};\n" for head in _heads(whole))
    line = parts[0][: parts[0].index("\n") + 1 + position].count("\n") if position else 1
    split = parts[0].index("\n") + 1 + (position or 0)
    own = f'{declared}#line {line} "{_quoted(first)}"\n'
    return whole[:split] + own + whole[split:] + _MAIN


def _sets_up(path: Path) -> bool:
    return any(match["name"] == "setup" for match in _functions(source_text(path)))


def _quoted(path: Path) -> str:
    return str(real_path(path)).replace("\\", "/")


def _functions(text: str) -> list[re.Match[str]]:
    """Return the functions that are defined outside of braces."""
    bare = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found, depth, seen = [], 0, 0
    for match in _FUNCTION.finditer(bare):
        depth += bare.count("{", seen, match.start()) - bare.count("}", seen, match.start())
        seen = match.start()
        if depth == 0:
            found.append(match)
    return found


def _first_function(text: str) -> int:
    return next((match.start() for match in _functions(text)), 0)


def _heads(text: str) -> list[str]:
    """Return what declares the functions, without the values of arguments that may be left out."""
    return [match["head"] for match in _functions(text) if not _DEFAULT.search(match["arguments"])]
