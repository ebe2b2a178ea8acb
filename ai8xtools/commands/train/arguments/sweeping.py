"""The options of train.py that search settings by many trainings, and the file that names them.

Source: docs/training.md, "Searching settings".
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ai8xtools.commands.train.arguments import converters as values
from ai8xtools.training.policies.complaints import Complaints
from ai8xtools.training.policies.yaml_file import read_section
from ai8xtools.values import frozen

TRIALS = 20
_OWN = frozenset({
    "--name", "--out-dir", "--evaluate", "--fits", "--resume-from", "--dataset", "--device",
    "--nas", "--summary", "--yaml-template", "--sweep", "--trials", "--sweep-dir",
    "--budget-cycles", "--budget-flash", "--firmware", "--save-sample", "--help", "--version",
})  # fmt: skip
"""What is the same in all trials, chosen by the search itself, or ends a run before it trains."""
_LISTED = "the options of train.py for training (see --help)"
_RANGE = ("from", "to", "log", "step")


@frozen
class Range:
    """Numbers from `low` to `high`, both included; whole ones if all bounds are."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether values are integers."""
        return all(isinstance(one, int) for one in (self.low, self.high, self.step or 0))


Space = Mapping[str, Range | tuple[str | bool, ...]]
"""By option of train.py: numbers, or words to choose from; true stands for an option by itself."""


@frozen
class Sweep:
    """What to search: `space` by option; `words` are those of each training."""

    space: Space
    trials: int
    folder: str
    cycles: int | None
    flash: int | None
    words: tuple[str, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group."""
    add = parser.add_argument_group("search of settings").add_argument
    add("--sweep", metavar="FILE",
        help="train repeatedly with settings from a file (YAML: options, each with values to "
             "choose from or a range)")  # fmt: skip
    add("--trials", type=values.count, default=TRIALS, metavar="N",
        help="trainings of --sweep, including those already in its folder "
             f"(default: {TRIALS})")  # fmt: skip
    add("--sweep-dir", default="sweep", metavar="DIR",
        help="folder of --sweep; a search in it is continued (default: sweep)")  # fmt: skip
    add("--budget-cycles", type=values.count, metavar="N",
        help="of --sweep: leave out networks that need more cycles")  # fmt: skip
    add("--budget-flash", type=values.count, metavar="BYTES",
        help="of --sweep: leave out networks that need more flash")  # fmt: skip


def conflicts(args: argparse.Namespace) -> dict[str, bool]:
    """Return messages about options that do not go together, and whether they do not."""
    own = {
        "--trials": args.trials != TRIALS, "--sweep-dir": args.sweep_dir != "sweep",
        "--budget-cycles": args.budget_cycles is not None,
        "--budget-flash": args.budget_flash is not None,
    }  # fmt: skip
    others = {
        "--evaluate": args.evaluate, "--fits": args.fits is not None, "--nas": args.nas,
        "--summary": args.summary is not None, "--resume-from": args.resume_from is not None,
        "--yaml-template": args.yaml_template is not None, "--name": args.name is not None,
    }  # fmt: skip
    return {f"{option}: add --sweep": used and args.sweep is None
            for option, used in own.items()} | {
        f"--sweep: not together with {option}": used and args.sweep is not None
        for option, used in others.items()
    }  # fmt: skip


def sweep_of(
    args: argparse.Namespace, words: Sequence[str], options: Mapping[str, argparse.Action]
) -> Sweep | None:
    """Take the options of this group out of `args`; return what they ask for.

    `options` are all of train.py. InputError E699 for a file that is none of settings.
    """
    path = args.sweep
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_options(own)
    rest = tuple(own.parse_known_args(words)[1])
    taken = [vars(args).pop(one.dest) for one in own._actions]
    if path is None:
        return None
    _, trials, folder, cycles, flash = taken
    return Sweep(_space(path, options), trials, folder, cycles, flash, rest)


def _space(path: str, options: Mapping[str, argparse.Action]) -> Space:
    complaints = Complaints("E699", path)
    section = read_section(complaints)
    allowed = tuple(
        one[2:]
        for one, action in options.items()
        if one.startswith("--") and one not in _OWN and action.help != argparse.SUPPRESS
    )
    for key in [key for key in section if key not in allowed]:
        complaints.unknown(section, key, allowed, "settings to search", _LISTED)
    space: dict[str, Range | tuple[str | bool, ...]] = {}
    for key in (key for key in section if key in allowed):
        value = section[key]
        read = _range(value) if isinstance(value, dict) else _choices(value)
        if read is None:
            complaints.wrong(section, key, "a list of values, or a range {from: A, to: B}, which "
                             "may have log: true or step: C")  # fmt: skip
        else:
            space[f"--{key}"] = read
    if not section:
        complaints.add("no option is named", section)
    complaints.refuse()
    return space


def _choices(value: object) -> tuple[str | bool, ...] | None:
    types = (str, int, float, bool)
    if not isinstance(value, list) or not value or not all(type(one) in types for one in value):
        return None
    return tuple(one if isinstance(one, bool) else str(one) for one in value)


def _range(value: Mapping[Any, Any]) -> Range | None:
    numbers = [value.get(key) for key in ("from", "to", "step")]
    log = value.get("log", False)
    if set(value) - {*_RANGE} or not isinstance(log, bool):
        return None
    if not all(_is_number(one) for one in numbers[:2]):
        return None
    low, high, step = numbers
    assert low is not None and high is not None
    if low >= high or (log and low <= 0):
        return None
    if step is not None and (log or not _is_number(step) or not 0 < step <= high - low):
        return None
    return Range(low, high, log, step)


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
