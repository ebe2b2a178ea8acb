"""Which target a command line is for: argparse reads --device first, with what stands for it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from ai8xtools.commands.targets.registry import Target, targets

TRAIN = "train.py"


class _UndecidedError(Exception):
    """The command line is wrong; the parser of a target will say so."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UndecidedError(message)


def last_device(words: Sequence[str]) -> list[str]:
    """Return a command line without --device before the last, as with every option the last counts:
    the parser of one target would refuse what another takes."""
    *earlier, last = [n for n, word in enumerate(words) if word.split("=")[0] == "--device"] or [0]
    values = {n + 1 for n in earlier if words[n] == "--device" and n + 1 < last}
    return [word for n, word in enumerate(words) if n not in {*earlier, *values}]


def select(tool: str, words: Sequence[str]) -> Target:
    """Return the target that a command line of a tool is for."""
    candidates = targets(tool)
    try:
        selection = _read(tool, words, abbreviated=tool != TRAIN)
    except _UndecidedError:  # of a beginning that several options have
        selection = _read(tool, words, abbreviated=False)
    by_model = (one for one in candidates if selection.model in one.models)
    by_name = (one for one in candidates if str(selection.device).upper() in one.names)
    chosen: Target = selection.chosen or next(by_model, None) or next(by_name, candidates[0])
    return chosen


def _read(tool: str, words: Sequence[str], *, abbreviated: bool) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=abbreviated)
    parser.set_defaults(chosen=None, model=None)
    parser.add_argument("--device", nargs="?", default="")
    if tool == TRAIN:
        parser.add_argument("-a", "--arch", "--model", dest="model", nargs="?")
    for one in targets(tool):
        if one.option is not None:
            parser.add_argument(one.option, action="store_const", const=one, dest="chosen")
    return parser.parse_known_args(words)[0]
