"""Broken projects of further kinds, which were drawn after the cures had been written."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.conftest import ROOT
from tests.remedies.planted import (
    PROJECT,
    Broken,
    Maker,
    Random,
    _described,
    _loading,
    _starts,
    broken_model,
)
from tests.robustness.mistakes import lines_of, with_line
from tests.robustness.starts import CHECKPOINT, DESCRIPTION

Lines = list[str]
Edit = Callable[[Random, Lines], str | None]


def _doubled(rng: Random, lines: Lines) -> str:
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    lines.insert(at, lines[at])
    return f"line {at + 1} twice"


def _lost(rng: Random, lines: Lines) -> str:
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    return f"line {at + 1} left out: {lines.pop(at)!r}"


def _exchanged(rng: Random, lines: Lines) -> str:
    at = rng.choice([n for n in range(len(lines) - 1) if lines[n] != lines[n + 1]])
    lines[at : at + 2] = lines[at + 1], lines[at]
    return f"lines {at + 1} and {at + 2} exchanged"


def _cut(rng: Random, lines: Lines) -> str:
    at = rng.randrange(len(lines) * 3 // 4, len(lines))
    del lines[at:]
    return f"nothing from line {at + 1} on"


def _indented(rng: Random, lines: Lines) -> str | None:
    at = rng.choice([n for n, line in enumerate(lines) if line.strip()])
    lines[at] = rng.choice((" ", "    ")) + lines[at]
    return f"line {at + 1} further to the right"


def _split(rng: Random, lines: Lines) -> str:
    at = rng.choice([n for n, line in enumerate(lines) if line.strip().count(" ")])
    first, _, rest = lines[at].strip().partition(" ")
    lead = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines[at : at + 1] = [lead + first, rest]
    return f"line {at + 1} in two"


_OF_LINES: tuple[Edit, ...] = (_doubled, _lost, _exchanged, _cut, _indented, _split)


def _layers_exchanged(rng: Random, text: str) -> str | None:
    parts = re.split(r"(?m)^(?=\s*- )", text)
    if len(parts) < 4:
        return None
    at = rng.randrange(1, len(parts) - 1)
    parts[at : at + 2] = parts[at + 1], parts[at]
    return "".join(parts)


def _other_name(rng: Random, text: str) -> str | None:
    line = rng.choice([x for x in lines_of(text) if "_" in x.key] or [None])  # type: ignore[list-item]
    if line is None:
        return None
    head, *rest = line.key.split("_")
    name = rng.choice(("-".join((head, *rest)), "".join((head, *rest)),
                       head + "".join(map(str.title, rest)), line.key.upper()))  # fmt: skip
    return with_line(text, line.number, f"{line.lead}{name}: {line.value}")


def _comment(rng: Random, text: str) -> str | None:
    signs = [x.start() for x in re.finditer("#", text)]
    at = rng.choice(signs) if signs else None
    return None if at is None else text[:at] + text[at + 1 :]


def _bracket(rng: Random, text: str) -> str:
    line = rng.choice(lines_of(text))
    value = rng.choice((f"{line.value}]", f"[{line.value}]", f'"{line.value}', f"{line.value}:"))
    return with_line(text, line.number, f"{line.lead}{line.key}: {value}")


def _lined(rng: Random, text: str) -> str | None:
    lines = text.split("\n")
    return "\n".join(lines) if rng.choice(_OF_LINES)(rng, lines) else None


def description(rng: Random) -> Broken | None:
    """A line, a layer, a comment or a name of a description."""
    start = rng.choice(_starts(trained=rng.randrange(2) == 0))
    text = start.files[DESCRIPTION].decode()
    makers = (_layers_exchanged, _other_name, _comment, _bracket, _lined, _lined)
    maker = rng.choice(makers)
    changed = maker(rng, text)
    if changed in (None, text):
        return None
    return _described(start, str(changed), maker.__name__.strip("_"), "")


def options(rng: Random) -> Broken | None:
    """Signs of a command line, its values, and paths."""
    start = rng.choice(_starts(trained=rng.randrange(2) == 0))
    words = list(start.args)
    at = rng.choice([n for n, word in enumerate(words[:-1]) if word.startswith("--")])
    valued = not words[at + 1].startswith("--")
    kind = rng.choice(("one dash", "underscore", "value left out", "sign between", "glued",
                       "path", "ending", "capitals"))  # fmt: skip
    match kind:
        case "one dash":
            words[at] = words[at][1:]
        case "underscore":
            words[at] = f"--{words[at][2:].replace('-', '_')}"
        case "value left out" if valued:
            del words[at + 1]
        case "sign between" if valued:
            words.insert(at + 1, "=")
        case "glued" if valued:
            words[at : at + 2] = [words[at] + words[at + 1]]
        case "path" if valued and "." in words[at + 1]:
            words[at + 1] = f"{rng.choice(('networks', 'trained', '..'))}/{words[at + 1]}"
        case "ending" if valued and "." in words[at + 1]:
            words[at + 1] = words[at + 1].rpartition(".")[0]
        case "capitals":
            words[at] = words[at].upper()
        case _:
            return None
    if tuple(words) == start.args:
        return None
    return Broken("options", kind, f"{start.name}: {words}", _loading(start, (*words,)),
                  _loading(start), dict(start.files), dict(start.files))  # fmt: skip


def checkpoint(rng: Random) -> Broken | None:
    """A file that has another name than the command line says."""
    start = rng.choice([x for x in _starts() if CHECKPOINT in x.files])
    name = rng.choice(("best.pth.tar", "net.pth", "net-q.pth.tar", "Net.pth.tar", "net.pth.tar.1"))
    files = {name if file == CHECKPOINT else file: data for file, data in start.files.items()}
    return Broken("checkpoint", "renamed", f"{start.name}: {name}", _loading(start),
                  _loading(start), files, dict(start.files))  # fmt: skip


def model(rng: Random) -> Broken | None:
    """A line of a model of a user's own, or what stands before a name in it."""
    text = (ROOT / "models/ai85digitsnet.py").read_text().replace("ai85digitsnet", "mynet")
    code = text.index("import ai8x")
    head, body = text[:code], text[code:]
    kind = rng.choice(("word left out", "line", "line"))
    lines = body.split("\n")
    match kind:
        case "word left out":
            place = rng.choice([*re.finditer(r"\b(?:self\.|ai8x\.|return |def |=|\*\*)", body)])
            changed = body[: place.start()] + body[place.end() :]
        case _:
            kind = rng.choice(_OF_LINES)(rng, lines) or ""
            changed = "\n".join(lines)
    return broken_model(re.sub(r" \d.*|:.*", "", kind), kind, text, head + changed)


def edited_c(rng: Random) -> Broken | None:
    """A line of the C of a project, or a whole file of it."""
    start = rng.choice(_starts(trained=rng.randrange(2) == 0))
    words, seed = (str(ROOT / "emulate.py"), PROJECT), rng.randrange(1 << 30)

    def edit(project: Path) -> str | None:
        rng = Random(seed)
        file = project / rng.choice(("cnn.c", "weights.h", "main.c", "sampledata.h"))
        if rng.randrange(6) == 0:
            file.unlink()
            return f"{file.name} is gone"
        lines = file.read_text().split("\n")
        told = rng.choice((_doubled, _lost, _exchanged, _cut))(rng, lines)
        file.write_text("\n".join(lines))
        return f"{file.name}: {told}"

    broken = Broken("C", "lines", start.name, words, _loading(start), dict(start.files),
                    dict(start.files), edit)  # fmt: skip
    return replace(broken, what=f"{start.name} {seed}")


MAKERS: tuple[Maker, ...] = (description, description, options, checkpoint, model, edited_c)
