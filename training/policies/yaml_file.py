"""Reading the small YAML files of policies, with complaints that name file and key.

The tree of the document is judged before a value is made of it: aliases and merged keys can stand
for more than any memory holds, and the converters of a YAML library end in errors of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from diagnostics.errors import InputError
from reading import ForeignFileError, read_text
from reading.text import line

MAX_FILE_BYTES = 256 << 10
MAX_EVENTS = 10_000
MAX_DEPTH = 32
MAX_VALUES = 20_000
"""Keys and values with all aliases written out."""
MAX_NUMBER = 40
_CORE = "tag:yaml.org,2002:"
_NUMBERS = (_CORE + "int", _CORE + "float")


class _Loader(yaml.SafeLoader):
    """Refuses duplicate keys, of which YAML libraries take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping of a node; ConstructorError for a duplicate key."""
        seen: set[str] = set()
        for key in (k for k, _ in node.value if isinstance(k, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value} occurs twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_mapping(path: str, code: str) -> dict[str, Any]:
    """Return the mapping in a YAML file; InputError `code` when it is something else."""
    try:
        content = _content(read_text(path, MAX_FILE_BYTES))
    except FileNotFoundError as exc:
        raise InputError(code, "there is no such file", path, "Check the path.") from exc
    except ForeignFileError as exc:
        raise InputError(code, f"this is no policy: {exc.strerror}", path, exc.remedy) from exc
    except UnicodeDecodeError as exc:
        raise InputError(code, "the file is not text in UTF-8", path) from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"
        problem = getattr(exc, "problem", None) or "it cannot be read"
        raise InputError(code, f"this is not valid YAML: {line(problem)}", place) from exc
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as exc:
        # what a tag or its looks promise, and the text does not keep: `!!int ""`, 2024-13-45
        raise InputError(code, f"this is not valid YAML: {line(str(exc))}", path) from exc
    if not isinstance(content, dict):
        raise InputError(code, "the file must hold keys with values", path)
    return content


def shown(value: object) -> str:
    """Return a value of such a file as it may stand in a message."""
    return line(repr(value), 80)


def refuse_unknown_keys(
    found: Mapping[str, Any], known: tuple[str, ...], what: str, path: str, code: str
) -> None:
    """Raise InputError naming the first key of `found` that is not in `known`."""
    for key in found:
        if key not in known:
            allowed = f"Allowed are {', '.join(known)}."
            raise InputError(code, f"unknown key {shown(key)} in {what}", path, allowed)


def _content(text: str) -> Any:
    """Return the value of a document; YAMLError or an error of its converters."""
    _refuse_size(text)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        if _values(root, {}) > MAX_VALUES:
            raise _refused(f"its aliases stand for more than {MAX_VALUES} values", root)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _refuse_size(text: str) -> None:
    """Refuse nesting that would exhaust the stack, and what would take minutes."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _refused("its lists and keys are nested too deeply", event)
        if count > MAX_EVENTS:
            raise _refused(f"it holds more than {MAX_EVENTS} keys and values", event)


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for; a YAMLError for one that contains itself."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
            raise _refused(f"a number of {len(node.value)} characters", node)
        return 1
    if known.get(id(node)) == 0:
        raise _refused("a list or mapping that contains itself", node)
    if id(node) not in known:
        known[id(node)] = 0
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(node)]


def _refused(problem: str, at: yaml.Node | yaml.Event) -> yaml.YAMLError:
    mark: Any = at.start_mark
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
