"""Reading the small YAML files of policies, with complaints that name file and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from diagnostics.errors import InputError


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
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError as exc:
        raise InputError(code, "there is no such file", path, "Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(code, "the file is not text in UTF-8", path) from exc
    except RecursionError as exc:
        raise InputError(code, "its lists and keys are nested too deeply", path) from exc
    except ValueError as exc:  # what looks like a date but is not
        raise InputError(code, f"this is not valid YAML: {exc}", path) from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"
        problem = getattr(exc, "problem", None) or "it cannot be read"
        raise InputError(code, f"this is not valid YAML: {problem}", place) from exc
    if not isinstance(content, dict):
        raise InputError(code, "the file must hold keys with values", path)
    return content


def refuse_unknown_keys(
    found: Mapping[str, Any], known: tuple[str, ...], what: str, path: str, code: str
) -> None:
    """Raise InputError naming the first key of `found` that is not in `known`."""
    for key in found:
        if key not in known:
            raise InputError(
                code, f"unknown key {key!r} in {what}", path, f"Allowed are {', '.join(known)}."
            )
