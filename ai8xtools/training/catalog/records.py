"""Checks of the records in the lists `models` and `datasets` of users' files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from types import ModuleType
from typing import Any, NoReturn

from ai8xtools.diagnostics.errors import InputError

_EXAMPLES = {
    "models": '[{"name": "mynet", "min_input": 1, "dim": 2}]',
    "datasets": '[{"name": "mydata", "input": (1, 8, 8), "output": ("no", "yes"), "loader": load}]',
}


def records_of(module: ModuleType, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the list `kind` of a module, none without a list.

    Raises InputError E661 for something else than a list of dictionaries with names.
    """
    records = getattr(module, kind, ())
    if isinstance(records, ModuleType):  # `import models` is no list
        return
    if not isinstance(records, list | tuple):
        _refuse(module, kind, f"`{kind}` is a {_type(records)}; it must be a list of dictionaries")
    for record in records:
        if not isinstance(record, dict):
            _refuse(module, kind, f"`{kind}` holds {_shown(record)}; its entries are dictionaries")
        name = record.get("name")
        if not isinstance(name, str) or not name:
            fault = "has no 'name'" if name is None else f"has the name {_shown(name)}"
            _refuse(module, kind, f"an entry of `{kind}` {fault}; it must be a string")
        yield record


def check_model(module: ModuleType, record: Mapping[str, Any]) -> None:
    """Raise InputError E661 for a record of a network with unusable values."""
    check = _Checker(module, "models", record)
    check("name", str.islower, "in lower case, as --model is read")
    check("dim", _is_dimension, "1 for inputs (C, L), 2 for inputs (C, H, W)")
    check("min_input", _is_positive, "the smallest width of inputs, from 1", needed=False)


def check_dataset(module: ModuleType, record: Mapping[str, Any]) -> None:
    """Raise InputError E661 for a record of a data set with unusable values."""
    check = _Checker(module, "datasets", record)
    check("input", _is_shape, "(C, H, W) or (C, L), whole numbers from 1")
    check("output", _is_labels, "a list of the labels, at least one")
    check("loader", callable, "a function: its name without quotation marks")
    _check_loader(check, record["loader"])
    check("weight", _is_numbers, "a list of numbers, one for each label", needed=False)
    check("collate", callable, "a function", needed=False)
    check("visualize", callable, "a function", needed=False)
    check("fold_ratio", _is_positive, "a whole number from 1", needed=False)


class _Checker:
    """Refuses values of one record."""

    def __init__(self, module: ModuleType, kind: str, record: Mapping[str, Any]) -> None:
        self._module = module
        self._kind = kind
        self._record = record

    def __call__(
        self, key: str, fits: Callable[[Any], bool], expected: str, needed: bool = True
    ) -> None:
        """Raise InputError unless the value of `key` fits; None counts as absent."""
        value = self._record.get(key)
        if value is None and not needed:
            return
        if value is None:
            self.refuse(f"has no {key!r}; it must be {expected}")
        if not fits(value):
            self.refuse(f"has the {key} {_shown(value)}; it must be {expected}")

    def refuse(self, fault: str) -> NoReturn:
        """Raise InputError with what is wrong with the record."""
        name = self._record["name"]
        _refuse(self._module, self._kind, f"the entry {name!r} of `{self._kind}` {fault}")


def _check_loader(check: _Checker, loader: Callable[..., Any]) -> None:
    """Compare the parameters of a loader with what it is called with."""
    try:
        signature = inspect.signature(loader)
    except (ValueError, TypeError):  # a callable without a signature
        return
    try:
        signature.bind(("data", None), True, True)
    except TypeError as exc:
        name = getattr(loader, "__name__", "loader")
        check.refuse(
            f"has the loader {name}{signature}, which cannot be called with "
            f"((folder, args), load_train, load_test): {exc}"
        )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_dimension(value: Any) -> bool:
    return _is_positive(value) and value <= 3  # 3 stands for 2 in older files


def _is_shape(value: Any) -> bool:
    return (
        isinstance(value, list | tuple) and len(value) in (2, 3) and all(map(_is_positive, value))
    )


def _is_labels(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes) and len(value) > 0


def _is_numbers(value: Any) -> bool:
    return _is_labels(value) and all(hasattr(number, "__float__") for number in value)


def _refuse(module: ModuleType, kind: str, message: str) -> NoReturn:
    raise InputError(
        "E661", message, str(module.__file__), f"For example: {kind} = {_EXAMPLES[kind]}"
    )


def _type(value: Any) -> str:
    name = type(value).__name__
    return {"dict": "dictionary", "str": "string"}.get(name, name)


def _shown(value: Any) -> str:
    """Return a value for a message, in one line of moderate length."""
    text = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
