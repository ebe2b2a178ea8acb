"""train.py --sweep: settings are searched by many trainings, each a process of its own.

The trials stand in a journal, from which several processes and machines may take. Networks that do
not fit the chip, or exceed the budget, are not trained.

Source: docs/training.md, "Searching settings".
"""

from __future__ import annotations

import csv
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from json import JSONDecoder
from pathlib import Path
from typing import Any

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.train.arguments.sweeping import Range, Sweep
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import tables
from ai8xtools.reading.progress import Progress
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values.accuracy import measured_of
from ai8xtools.writing.diagram import DiagramSeries, Panel, axis, drawn
from datasets.errors import library
from datasets.own.settings import kind_and_path
from device import chip_of_die

_CHIP = "integers of the chip"
_NAME, _SCORE, _TEST = "name", "score", "test"
_CYCLES, _FLASH, _REASON = "cycles", "flash", "reason"
_LOW = ("loss", "mse")
"""Parts of names of scores of which the lowest is the best."""
_SPLIT = ("--validation-split", "0.2")
"""Of the user's own data, which a recipe would train on without validation."""
_TABLE, _PICTURE, _JOURNAL = "trials.csv", "front.svg", "trials.journal"


def run(sweep: Sweep, options: TrainingOptions) -> int:
    """Do the trials that are missing; print the best ones. Status 1 if none came to its end."""
    optuna: Any = library("optuna", "searches settings", "--sweep")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = Path(sweep.folder)
    folder.mkdir(parents=True, exist_ok=True)
    journal = optuna.storages.journal
    storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(folder / _JOURNAL)))
    named = json.dumps([sweep.words, sweep.space], default=asdict)
    if any(one.study_name != named for one in storage.get_all_studies()):
        raise InputError(
            "E696", "this folder holds a search with another command line or other settings",
            sweep.folder, "Name another one by --sweep-dir.",
        )  # fmt: skip
    directions = ["maximize", "minimize"]
    study = optuna.create_study(
        storage=storage, study_name=named, load_if_exists=True, directions=directions
    )
    begun = len(study.get_trials(deepcopy=False))
    seed = options.seed + begun if options.deterministic else None
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    state = optuna.trial.TrialState
    line, trials = Progress("Trials", sweep.trials), partial(study.get_trials, deepcopy=False)
    while (done := sum(one.state != state.FAIL for one in trials())) < sweep.trials:
        line.reach(done)
        trial = study.ask()
        try:
            values = _tried(trial, sweep, options, folder)
        except _LeftOutError as reason:
            trial.set_user_attr(_REASON, str(reason))
            study.tell(trial, state=state.PRUNED)
            print(f"Trial {trial.number}: {reason}", flush=True)
        except BaseException:
            study.tell(trial, state=state.FAIL)  # it does not count
            raise
        else:
            study.tell(trial, values)
            noted = trial.user_attrs
            print(
                f"Trial {trial.number}: {noted[_NAME]} {noted[_SCORE]:.6g}, "
                f"{noted[_CYCLES]:,} cycles", flush=True,
            )  # fmt: skip
    return _report(study, sweep, folder)


class _LeftOutError(Exception):
    """Why a trial was left out."""


def _tried(trial: Any, sweep: Sweep, options: TrainingOptions, folder: Path) -> tuple[float, float]:
    """Train with the settings of a trial; return its validation (more is better), and cycles."""
    own = kind_and_path(options.dataset) is not None and "validation_split" in options.unset
    words = [*(_SPLIT if own else ()), *sweep.words, *_words(trial, sweep)]
    fits = _called([*words, "--fits", "json"], folder / f"{trial.number}-fits.log")
    text = fits.stdout
    if fits.returncode or "[\n" not in text:
        raise _LeftOutError(f"does not fit: {_last(text)}")
    listed, _ = JSONDecoder().raw_decode(text, text.index("[\n"))
    chip = chip_of_die(options.device)
    takes = None if chip is None else {one["chip"]: one for one in listed}.get(chip.name)
    if takes is None:
        raise _LeftOutError("--fits does not know this chip")
    cycles, flash = takes["cycles"], takes["memories"]["flash"]["used"]
    for what, value, most in ((_CYCLES, cycles, sweep.cycles), (_FLASH, flash, sweep.flash)):
        trial.set_user_attr(what, value)
        if most is not None and value > most:
            raise _LeftOutError(f"beyond the budget: {value:,} of {most:,} ({what})")
    place = ["--out-dir", str(folder), "--name", f"trial-{trial.number}"]
    done = _called([*words, *place], folder / f"{trial.number}-train.log")
    if done.returncode:
        raise _LeftOutError(f"training ended with status {done.returncode}: {_last(done.stdout)}")
    (metrics,) = folder.glob(f"trial-{trial.number}___*/metrics.json")
    record = json.loads(metrics.read_bytes())
    name, score = next((key, value) for key, value in record["best"].items() if key != "epoch")
    measured = measured_of(record.get("accuracy", {}).get(_CHIP))
    for what, noted in ((_NAME, name), (_SCORE, score), (_TEST, str(measured or ""))):
        trial.set_user_attr(what, noted)
    return -score if any(part in name for part in _LOW) else score, float(cycles)


def _words(trial: Any, sweep: Sweep) -> list[str]:
    """Return the settings of a trial as words of the command line."""
    words: list[str] = []
    for option, among in sweep.space.items():
        if not isinstance(among, Range):
            value: object = trial.suggest_categorical(option, list(among))
        elif among.whole:
            value = trial.suggest_int(option, among.low, among.high, log=among.log,
                                      step=among.step or 1)  # fmt: skip
        else:
            value = trial.suggest_float(option, among.low, among.high, log=among.log,
                                        step=among.step)  # fmt: skip
        if value is not False:
            words += [option] if value is True else [f"{option}={value}"]
    return words


def _called(words: Sequence[str], log: Path) -> subprocess.CompletedProcess[str]:
    """Run train.py with these words; what it prints goes to a file, too."""
    start = [] if sys.argv[0].endswith(".exe") else [sys.executable]
    command = [*start, sys.argv[0], *words]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    log.write_text(f"{shlex.join(command)}\n{done.stdout}", encoding="utf-8")
    return done


def _last(text: str) -> str:
    """Return the line of an error in what a tool printed, or the last one."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["it printed nothing"])[-1]


def _report(study: Any, sweep: Sweep, folder: Path) -> int:
    """Write table and picture, print the Pareto front; return the exit status."""
    trials = study.get_trials(deepcopy=False)
    complete = [one for one in trials if one.values]
    _write_table(trials, sweep, folder / _TABLE)
    if not complete:
        print(f"No trial came to its end; {folder / _TABLE} tells why.")
        return 1
    front = sorted(study.best_trials, key=lambda one: one.values[1])
    name = front[0].user_attrs[_NAME]
    rows = [[one.number, f"{one.user_attrs[_SCORE]:.6g}", f"{one.user_attrs[_CYCLES]:,}",
             f"{one.user_attrs[_FLASH]:,}", one.user_attrs[_TEST], shlex.join(_again(one.params))]
            for one in front]  # fmt: skip
    print(f"\n{len(complete)} of {len(trials)} trials came to their end. No other is as good with "
          "as few cycles:")  # fmt: skip
    headers = ["Trial", f"{name} (validation)", "Cycles", "Flash", f"Test, {_CHIP}", "Settings"]
    print(tables.table(rows, headers))
    groups = (("all", complete, False), ("best", front, True))
    lines = [
        DiagramSeries(
            title, [(one.values[1], one.user_attrs[_SCORE]) for one in some], joined=joined
        )
        for title, some, joined in groups
    ]
    axes = (axis("cycles", [one.values[1] for one in complete]),
            axis(name, [one.user_attrs[_SCORE] for one in complete]))  # fmt: skip
    atomic.write_bytes(folder / _PICTURE, drawn([Panel(*axes, lines)], (420, 300), 1, []).encode())
    best = max(front, key=lambda one: one.values[0])
    print(f"\nTable: {folder / _TABLE}, picture: {folder / _PICTURE}\nThe best one again:")
    print(f"  python {shlex.join(['train.py', *sweep.words, *_again(best.params)])}")
    return 0


def _again(parameters: Mapping[str, object]) -> list[str]:
    """Return the words of settings that were tried."""
    return [option if value is True else f"{option}={value}"
            for option, value in parameters.items() if value is not False]  # fmt: skip


def _write_table(trials: Sequence[Any], sweep: Sweep, path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    noted = (_NAME, _SCORE, _TEST, _CYCLES, _FLASH, _REASON)
    writer.writerow(["trial", "state", *noted, *sweep.space])
    for one in trials:
        writer.writerow([one.number, one.state.name.lower(),
                         *(one.user_attrs.get(name, "") for name in noted),
                         *(one.params.get(option, "") for option in sweep.space)])  # fmt: skip
    atomic.write_bytes(path, text.getvalue().encode())
