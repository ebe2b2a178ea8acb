"""Reading the small YAML files of policies, with complaints that name file and key.

The tree of the document is judged before a value is made of it: aliases and merged keys can stand
for more than any memory holds, and the converters of a YAML library end in errors of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import ForeignFileError, read_text, where_else
from ai8xtools.reading.text import line
from ai8xtools.reading.yaml_errors import explained, remedy_of
from ai8xtools.training.policies.complaints import Complaints, PolicySection, Position, shown

MAX_FILE_BYTES = 256 << 10
MAX_EVENTS = 10_000
MAX_DEPTH = 32
MAX_VALUES = 20_000
"""Keys and values with all aliases written out."""
MAX_NUMBER = 40
_CORE = "tag:yaml.org,2002:"
_NUMBERS = (_CORE + "int", _CORE + "float")


class _Loader(yaml.SafeLoader):
    """Makes mappings that know where their keys stand; complains about duplicate keys."""

    def __init__(self, text: str, complaints: Complaints) -> None:
        super().__init__(text)
        self._complaints = complaints

    def section(self, node: yaml.MappingNode) -> Iterator[PolicySection]:
        """Yield the mapping of a node, then fill it; complain about keys that stand there twice."""
        data = PolicySection(_position(node))
        yield data
        seen: dict[str, yaml.Node] = {}
        for key, _ in [pair for pair in node.value if isinstance(pair[0], yaml.ScalarNode)]:
            if key.value in seen:
                data.positions[key.value] = _position(key)
                first = seen[key.value].start_mark.line + 1
                self._complaints.add(
                    f"the key {line(key.value, 80)} occurs twice, first in line {first}",
                    data, key.value, "Remove one of the two.",
                )  # fmt: skip
            seen.setdefault(key.value, key)
        values = self.construct_mapping(node)
        for key_node, value_node in node.value:
            key = self.construct_object(key_node)
            data.positions[key] = _position(key_node)
            if isinstance(value_node, yaml.ScalarNode) and value_node.tag != _CORE + "str":
                data.written[key] = line(value_node.value, 80) or "empty"
        data.update(values)


def _position(node: yaml.Node) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


_Loader.add_constructor(_CORE + "map", _Loader.section)


def read_section(complaints: Complaints) -> PolicySection:
    """Return the mapping in the YAML file that the complaints are about.

    InputError when it is something else; keys that stand there twice are a complaint.
    """
    path, code = complaints.path, complaints.code
    try:
        text = read_text(path, MAX_FILE_BYTES)
        content = _content(text, complaints)
    except FileNotFoundError as exc:
        raise InputError(code, "there is no such file", path, where_else(path)) from exc
    except ForeignFileError as exc:
        raise InputError(code, f"this is no policy: {exc.strerror}", path, exc.remedy) from exc
    except UnicodeDecodeError as exc:
        raise InputError(code, "the file is not text in UTF-8", path) from exc
    except yaml.YAMLError as exc:
        raise _syntax_error(exc, text, path, code) from exc
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as exc:
        # what a tag or its looks promise, and the text does not keep: `!!int ""`, 2024-13-45
        raise InputError(code, f"this is not valid YAML: {line(str(exc))}", path) from exc
    if not isinstance(content, PolicySection):
        fault = "is empty" if content is None else f"holds {shown(content)}"
        raise InputError(code, f"the file {fault}; it must hold keys with values", path)
    return content


def _syntax_error(exc: yaml.YAMLError, text: str, path: str, code: str) -> InputError:
    """Return what a YAML library says, with the lines of where it began and where it ended."""
    mark = getattr(exc, "problem_mark", None)
    place = path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"
    problem = line(getattr(exc, "problem", None) or "it cannot be read")
    began, context = getattr(exc, "context_mark", None), getattr(exc, "context", None)
    if context and began is not None:
        problem += f" ({line(context)} that begins in line {began.line + 1})"
    remedy = remedy_of(problem)
    better = explained(problem, text, mark.line, mark.column) if mark is not None else None
    if better is not None:
        problem, remedy = better
    return InputError(code, f"this is not valid YAML: {problem}", place, remedy)


def _content(text: str, complaints: Complaints) -> Any:
    """Return the value of a document; YAMLError or an error of its converters."""
    _refuse_size(text)
    loader = _Loader(text, complaints)
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


def _values(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return how many values a node stands for; a YAMLError for one that contains itself."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
            raise _refused(f"a number of {len(node.value)} characters", node)
        return 1
    if counts.get(id(node)) == 0:
        raise _refused("a list or mapping that contains itself", node)
    if id(node) not in counts:
        counts[id(node)] = 0
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        counts[id(node)] = 1 + sum(_values(part, counts) for part in parts)
    return counts[id(node)]


def _refused(problem: str, at: yaml.Node | yaml.Event) -> yaml.YAMLError:
    mark: Any = at.start_mark
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
