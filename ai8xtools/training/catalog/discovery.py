"""Find models and data sets: every Python file of models/ and datasets/ lists what it offers.

Searched are the folders beside train.py and those of the same name in the working directory; where
both offer a name, the working directory wins.
Source: docs/own-models.md.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.own_code import SOURCES as SOURCES
from ai8xtools.training.catalog.own_code import folders, place_of, ready_for, remedy_of
from ai8xtools.training.catalog.records import check_dataset, check_model, records_of

Entry = TypeVar("Entry")
Named = TypeVar("Named", "ModelEntry", "DatasetEntry")


LAYER_KEYWORDS = ("weight_bits", "bias_bits", "quantize_activation")
"""Arguments that networks pass to each of their layers when they compute with integers."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A network: `make(**keywords)` returns the module; `dim` is 1 or 2, the kind of its input.

    `dr` means that it takes the keyword `dimensionality`, the length of its output. `notice` means
    that an entry of the same name in another file is ignored.
    """

    name: str
    make: Callable[..., Any]
    min_input: int
    dim: int
    dr: bool = False
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A data set: input (C, H, W) or (C, L, 1), labels, and `loader((folder, args), train, test)`.

    `weight` are the factors of the classes in the loss, or None. `regression` means that targets
    are numbers, `collate` makes a batch of samples (None: they are stacked), `visualize(batch,
    args)` makes images of inputs, `fold_ratio` is how the images were folded. `own` is the
    `training.catalog.own_data.Source` of files of the user. `notice` is that of `ModelEntry`.
    """

    name: str
    input: tuple[int, ...]
    output: tuple[Any, ...]
    loader: Callable[..., tuple[Any, Any]]
    weight: tuple[float, ...] | None
    regression: bool = False
    collate: Callable[..., Any] | None = None
    visualize: Callable[..., Any] | None = None
    fold_ratio: int | None = None
    own: Any = None
    notice: str | None = None


def find_models() -> dict[str, ModelEntry]:
    """Return all networks by name. Raises InputError when a file or its list cannot be used."""
    entries = []
    for module, record in _records("models"):
        check_model(module, record)
        name, dim = record["name"], record["dim"]
        dr = bool(record.get("dr", False))
        make = _function(module, record)
        entries.append((module, ModelEntry(name, make, record.get("min_input") or 1, dim, dr)))
    return _by_name(entries)


def find_datasets() -> dict[str, DatasetEntry]:
    """Return all data sets by name. Raises InputError when a file or its list cannot be used."""
    entries = []
    for module, record in _records("datasets"):
        check_dataset(module, record)
        size = tuple(record["input"])
        entry = DatasetEntry(
            record["name"],
            size if len(size) == 3 else (*size, 1),
            tuple(record["output"]),
            record["loader"],
            tuple(record["weight"]) if record.get("weight") is not None else None,
            bool(record.get("regression", False)),
            record.get("collate"),
            record.get("visualize"),
            record.get("fold_ratio"),
        )
        entries.append((module, entry))
    return _by_name(entries)


def _by_name(pairs: Iterable[tuple[ModuleType, Named]]) -> dict[str, Named]:
    """Return the last entry of each name, with a notice where it replaces another."""
    entries: dict[str, Named] = {}
    files: dict[str, str] = {}
    for module, entry in pairs:
        name, file = entry.name, str(module.__file__)
        if name in entries:
            entry = replace(entry, notice=f"{name} is that of {file}, not of {files[name]}")
        entries[name], files[name] = entry, file
    return entries


_OF_THE_VENDOR = re.compile(r"ai8[4-9]\w+|ir_(?:se_)?\d+\w*|faceid\w*|mobilefacenet\w*")


def choose(entries: Mapping[str, Entry], name: str, option: str) -> Entry:
    """Return the entry `name`; InputError with the nearest names when there is none."""
    if name in entries:
        return entries[name]
    lower = {other.lower(): other for other in entries}
    same = [name.lower()] if name.lower() in lower else None
    near = [lower[word] for word in same or difflib.get_close_matches(name.lower(), lower, n=3)]
    remedy = f"Perhaps you mean {' or '.join(near)}." if near else f"Known: {', '.join(entries)}."
    what = f"{name!r} is not known"
    if _OF_THE_VENDOR.fullmatch(name):
        what = f"{name!r} is not here; its name is like those of the vendor's tools"
    raise InputError("E601", what, option, remedy)


def _records(kind: str) -> Iterable[tuple[ModuleType, dict[str, Any]]]:
    """Yield each record of the list `kind` in the files of the folders `kind`, in name order."""
    for folder in folders(kind):
        for file in sorted(folder.glob("*.py")):
            if file.stem == "__init__":
                continue
            module = _import(file, kind)
            for record in records_of(module, kind):
                yield module, record


class Imports:
    """Imports the user's files again when it is unpickled in a process that was not forked."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[list[tuple[str, str]]]]:
        modules = [(name, str(module.__file__)) for name, module in sys.modules.items()
                   if _ELSEWHERE in name]  # fmt: skip
        return _import_all, ([(file, name.partition(_ELSEWHERE)[0]) for name, file in modules],)


def _import_all(files: Sequence[tuple[str, str]]) -> Imports:
    for file, kind in files:
        _import(Path(file), kind)
    return Imports()


_ELSEWHERE = "_of_working_directory_"


def _import(file: Path, kind: str) -> ModuleType:
    """Import a file whose name may hold characters that module names cannot."""
    own = file.parent == SOURCES / kind
    stem = file.stem.replace(".", "_")
    name = f"{kind}.{file.stem}" if own else f"{kind}{_ELSEWHERE}{stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and (own or loaded.__file__ == str(file)):
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        ready_for(file)
        spec.loader.exec_module(module)
    except Exception as exc:
        del sys.modules[name]
        raise InputError(
            "E602",
            f"the file cannot be imported: {type(exc).__name__}: {exc}",
            place_of(exc) or str(file),
            remedy_of(exc, f"Correct it, or move it out of {kind}/."),
        ) from exc
    return module


def _function(module: ModuleType, record: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function of the module that has the model's name."""
    function = getattr(module, record["name"], None)
    if not callable(function):
        raise InputError(
            "E661",
            f"`models` lists {record['name']!r}, but there is no function of this name",
            str(module.__file__),
            "Define it, or take the entry out of the list.",
        )
    result: Callable[..., Any] = function
    return result
