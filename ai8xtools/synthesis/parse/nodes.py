"""YAML text to nodes with positions, refusing everything that is not plain data.

PyYAML's `compose` gives the tree without constructing objects, so a tag can never run code. This
module adds what it does not do: duplicate keys, foreign tags and recursive aliases are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, DiagnosticError, Effects, Place, refused
from ai8xtools.reading import ForeignFileError, read_bytes, where_else
from ai8xtools.reading.text import has_foreign_digits, line
from ai8xtools.reading.yaml_errors import context_of, explained, remedy_of

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = {_CORE + kind for kind in ("null", "bool", "int", "float", "str", "timestamp")}
_TAGS = _SCALAR_TAGS | {_CORE + "map", _CORE + "seq", _CORE + "merge", _CORE + "value"}
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_constructor = yaml.constructor.SafeConstructor()

_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK = "\r\n|[\n\r\x85\u2028\u2029]"
"""Where YAML 1.1 ends a line."""

MAX_FILE_BYTES = 4 << 20
MAX_DEPTH = 32
MAX_EVENTS = 30_000
"""More keys, values and beginnings and ends of lists than 128 layers with every key have."""
MAX_KEY_LENGTH = 80


def read_text(path: str) -> str:
    """Return a description file's text; a missing or undecodable file is a DiagnosticError."""
    try:
        data = read_bytes(path, MAX_FILE_BYTES)
    except ForeignFileError as exc:
        raise refused(
            "E101",
            f"cannot read the network description: {exc.strerror}",
            Place(path, 1, 1) if exc.size else Place(file=path),
            "Name a network description; the largest ones have a few kilobytes.",
        ) from None
    except OSError as exc:
        raise refused(
            "E101",
            f"cannot read the network description: {exc.strerror or exc}",
            Place(file=path),
            where_else(path)
            if isinstance(exc, FileNotFoundError)
            else "Check the path given to --config-file.",
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise refused(
            "E102",
            f"byte 0x{data[exc.start]:02x} is not UTF-8 text",
            Place(path, line, exc.start - data.rfind(b"\n", 0, exc.start)),
            "Save the file with UTF-8 encoding.",
        ) from None


def place_of(node: yaml.Node, file: str) -> Place:
    """Return where a node begins."""
    return Place(file, node.start_mark.line + 1, node.start_mark.column + 1)


def compose(text: str, file: str) -> yaml.MappingNode:
    """Return the root mapping of a document of plain data; raise DiagnosticError otherwise."""
    _refuse_control_characters(text, file)
    try:
        _refuse_size(text, file)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as exc:
        raise DiagnosticError(_syntax_error(exc, text, file)) from None
    if root is None:
        raise refused(
            "E103",
            "the network description is empty",
            Place(file, 1, 1),
            "It needs the keys arch, dataset and layers.",
        )
    problems = list(_foreign(root, file, [], set()))
    if problems:
        raise DiagnosticError(problems)
    if not isinstance(root, yaml.MappingNode):
        raise refused(
            "E103",
            f"the network description is {kind_of(root)}, not a mapping of keys",
            place_of(root, file),
            "It needs the keys arch, dataset and layers.",
        )
    return root


def _refuse_control_characters(text: str, file: str) -> None:
    """Refuse characters that YAML forbids; the parser would not say where they stand."""
    character = _CONTROL.search(text)
    if character is None:
        return
    breaks = list(re.finditer(_LINE_BREAK, text[: character.start()]))
    column = character.start() - (breaks[-1].end() if breaks else 0) + 1
    raise refused(
        "E102",
        f"the character U+{ord(character.group()):04X} is not allowed in YAML",
        Place(file, len(breaks) + 1, column),
        'Remove it; in quotes it can be written as an escape such as "\\x07".',
    )


def _refuse_size(text: str, file: str) -> None:
    """Refuse nesting that would exhaust the stack of the composer, and what would take minutes."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        mark = event.start_mark
        if depth > MAX_DEPTH and mark is not None:
            place = Place(file, mark.line + 1, mark.column + 1)
            raise refused("E111", f"nested deeper than {MAX_DEPTH} levels", place)
        if count > MAX_EVENTS and mark is not None:
            place = Place(file, mark.line + 1, mark.column + 1)
            raise refused(
                "E101",
                f"the file holds more than {MAX_EVENTS} keys and values up to here",
                place,
                "Name a network description; the largest ones have a few thousand.",
            )


def _syntax_error(exc: yaml.YAMLError, text: str, file: str) -> Diagnostic:
    mark = getattr(exc, "problem_mark", None)
    problem = getattr(exc, "problem", None) or str(exc).splitlines()[0]
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file=file)
    context = context_of(exc)
    remedy = remedy_of(problem)
    better = explained(problem, text, mark.line, mark.column) if mark else None
    if better is not None:
        problem, remedy, context = *better, ""
    message = f"not valid YAML: {problem}" + (f" ({context})" if context else "")
    return Diagnostic("E102", message, place, remedy)


def _foreign(node: yaml.Node, file: str, path: list[int], seen: set[int]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each foreign tag and recursive alias."""
    if id(node) in path:
        yield Diagnostic(
            "E111",
            "this list or mapping contains itself",
            place_of(node, file),
            "Write the values out instead of using an alias here.",
        )
        return
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.tag not in _TAGS:
        yield Diagnostic(
            "E106",
            f"the tag {_short(node.tag, 80)!r} is not allowed; nothing was executed",
            place_of(node, file),
            "A network description holds plain numbers, texts, lists and mappings only.",
        )
    children: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        children = list(node.value)
    elif isinstance(node, yaml.MappingNode):
        children = [part for pair in node.value for part in pair]
    path.append(id(node))
    for child in children:
        yield from _foreign(child, file, path, seen)
    path.pop()


def kind_of(node: yaml.Node) -> str:
    """Say in words what a node is, with its text if it is short."""
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    word = {
        "null": "empty",
        "bool": "the boolean",
        "int": "the integer",
        "float": "the number",
        "str": "the text",
    }.get(node.tag.removeprefix(_CORE), "the text")
    digits = ", with digits other than 0 to 9" if has_foreign_digits(node.value) else ""
    return word if word == "empty" else f"{word} {_short(node.value)!r}{digits}"


def _short(text: str, most: int = 40) -> str:
    return line(text) if len(text) <= most else line(text[: most - 3]) + "..."


def scalar(node: yaml.Node) -> int | float | bool | str | None:
    """Return the value of a scalar node by the YAML 1.1 rules; other nodes give a ValueError."""
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("not a scalar")
    kind = node.tag.removeprefix(_CORE)
    if kind in ("int", "float") and has_foreign_digits(node.value):
        raise ValueError("digits other than 0 to 9")
    try:
        if kind == "int":
            return int(_constructor.construct_yaml_int(node))
        if kind == "float":
            return float(_constructor.construct_yaml_float(node))
        if kind == "bool":
            return bool(_constructor.construct_yaml_bool(node))
    except (KeyError, IndexError) as exc:  # an explicit tag on another text
        raise ValueError(f"not of the kind {kind}") from exc
    return None if kind == "null" else str(node.value)


def mapping_items(
    node: yaml.MappingNode, file: str, problems: list[Diagnostic], effects: Effects = NO_EFFECTS
) -> list[tuple[str, yaml.Node, yaml.Node]]:
    """Return (key, key node, value node) of a mapping.

    Duplicate and odd keys become problems with these effects.
    """
    items: list[tuple[str, yaml.Node, yaml.Node]] = []
    first: dict[str, int] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            problems.append(
                Diagnostic(
                    "E114",
                    f"a key cannot be {kind_of(key_node)}",
                    place_of(key_node, file),
                    effects=effects,
                )
            )
            continue
        key = str(key_node.value)
        if len(key) > MAX_KEY_LENGTH:
            problems.append(
                Diagnostic(
                    "E114",
                    f"a key of {len(key)} characters, the longest known one has fewer than "
                    f"{MAX_KEY_LENGTH}",
                    place_of(key_node, file),
                    "Check quotes and colons on this line and the ones before.",
                    effects=effects,
                )
            )
            continue
        if key in first:
            problems.append(
                Diagnostic(
                    "E104",
                    f"the key '{key}' stands here for the second time, first in line {first[key]}",
                    place_of(key_node, file),
                    "Remove one of the two.",
                    effects=effects,
                )
            )
            continue
        first[key] = key_node.start_mark.line + 1
        items.append((key, key_node, value_node))
    return items
