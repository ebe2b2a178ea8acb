"""Small changes of a command line of ai8xize.py that may be the cure of what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice, pairwise
from pathlib import Path

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.diagnostics import Diagnostic, Edit, Place
from ai8xtools.reading import ForeignFileError
from device import CHIPS

_FILES = {
    "--config-file": (".yaml", ".yml"),
    "--checkpoint-file": (".tar", ".pth", ".pt", ".safetensors", ".onnx"),
    "--sample-input": (".npy",),
    "--weight-input": (".npy",),
    "--bias-input": (".npy",),
}
_MOST_FILES = 1000
_MOST_NEAR = 8


def option_changes(words: Sequence[str], errors: Sequence[Diagnostic]) -> Iterator[Edit]:
    """Yield other files of the same folder for the options, other names, the other chip."""
    options = dict(zip(words, [*words[1:], ""], strict=True))
    for option, endings in _FILES.items():
        if option in options:
            if _concerned(option, options[option], errors):
                yield from _others(option, options[option], _near_files(options[option], endings))
        elif option != "--checkpoint-file" or "--weight-input" not in options:
            stem = option.strip("-").split("-")[0]
            files = _near_files(f"{stem}{endings[0]}", endings)
            yield from (Edit(Place(option=option), "", name, certain=False) for name in files)
    text = " ".join(f"{d.message} {d.remedy or ''}" for d in errors)
    named = re.findall(r"[\w.-]*\w", text)
    named += _trained_on(options.get("--checkpoint-file"))
    if "--model" in options:
        near = get_close_matches(options["--model"], named, _MOST_NEAR)
        yield from _others("--model", options["--model"], dict.fromkeys([*near, *named]))
    if "--model" in options and "--dataset" in options:
        yield from _others("--dataset", options["--dataset"], _data_sets(options))
    for option in dict.fromkeys(re.findall(r"--[a-z-]+", text)):
        if option in options and option not in (*_FILES, "--device", "--model"):
            yield Edit(Place(option=option), option, "", certain=False)
    if "--device" in options:
        yield from _others("--device", options["--device"], [chip.name for chip in CHIPS])


def of_another_kind(words: Sequence[str]) -> Iterator[Edit]:
    """Yield another file for each option that names a file with an ending that it does not take."""
    for option, word in pairwise(words):
        if option in _FILES and not word.endswith(_FILES[option]):
            yield from _others(option, word, _near_files(word, _FILES[option]))


def _concerned(option: str, path: str, errors: Sequence[Diagnostic]) -> bool:
    """Whether errors are about a file; a description that is there has its errors inside."""
    if option == "--config-file":
        return not Path(path).exists() or not path.endswith(_FILES[option])
    name = Path(path).name
    texts = (f"{d.place} {d.message} {d.remedy}" for d in errors)
    return any(option in one or name in one for one in texts)


def _others(option: str, old: str, values: Sequence[str] | dict[str, None]) -> Iterator[Edit]:
    yield from (Edit(Place(option=option), old, x, certain=False) for x in values if x != old)


def _near_files(path: str, endings: tuple[str, ...]) -> list[str]:
    """Return files with these endings in the folder of a path, the most similar names first."""
    folder = Path(path).parent
    try:
        names = [x.name for x in islice(folder.iterdir(), _MOST_FILES) if x.name.endswith(endings)]
    except OSError:
        return []
    near = get_close_matches(Path(path).name, sorted(names), _MOST_NEAR, cutoff=0)
    return [str(folder / name) for name in near]


def _trained_on(path: str | None) -> list[str]:
    """Return the names of model and data set that a checkpoint tells."""
    try:
        checkpoint = None if path is None else read_checkpoint(path)
    except (CheckpointError, ForeignFileError, OSError):
        return []
    return [] if checkpoint is None or checkpoint.arch is None else [checkpoint.arch]


def _data_sets(options: Mapping[str, str]) -> list[str]:
    """Return the names of data sets: those that stand in the name of the checkpoint, the others.

    The model is known by then, so that PyTorch is loaded anyway.
    """
    from ai8xtools.training.catalog.discovery import find_datasets

    names = find_datasets()
    parts = re.findall(r"\w+", Path(options.get("--checkpoint-file", "")).name.lower())
    near = get_close_matches(options["--dataset"], names, _MOST_NEAR)
    return sorted(names, key=lambda name: (name.lower() not in parts, name not in near))


def changed_words(words: Sequence[str], edit: Edit) -> list[str]:
    """Return a command line after an edit of a value."""
    option = edit.place.option or ""
    if not edit.old:
        return [*words, option, edit.new]
    at = words.index(option)
    if not edit.new:
        behind = next((n for n in range(at + 1, len(words)) if words[n].startswith("--")), None)
        return [*words[:at], *(words[behind:] if behind is not None else ())]
    at = words.index(edit.old, at)
    return [*words[:at], edit.new, *words[at + 1 :]]
