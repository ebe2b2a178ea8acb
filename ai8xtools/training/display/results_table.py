"""Results of single test samples as tables.

Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor, nn

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.display.scores import probabilities
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.observers import Context, Observer, Phase, Seen
from ai8xtools.training.tasks.classification import Classification

_PARTS = ("ytrue", "ypred", "x")


class ResultsTable(Observer):
    """Writes PREFIX_ytrue.csv, PREFIX_ypred.csv and PREFIX_x.csv after the test, one line a sample.

    They hold the label, the probability of each class (or the numbers of a regression), and the
    mean of each input channel. Raises InputError when the folder cannot be written to.
    """

    def __init__(self, context: Context) -> None:
        assert context.options.save_csv is not None
        self._prefix = context.options.save_csv
        self._task = context.task
        self._log = context.log
        self._batches: list[tuple[Tensor, Tensor, Tensor]] = []
        _check_folder(Path(self._prefix).parent)

    def seen(self, batch: Seen) -> None:
        """Keep the numbers of a test batch."""
        if batch.phase == "test":
            predicted = probabilities(self._task, batch.outputs).flatten(1)
            means = batch.inputs.flatten(2).mean(2)
            self._batches.append((batch.targets, predicted, means))

    def finished(self, phase: Phase, _epoch: int | None, _scores: Scores, _m: nn.Module) -> None:
        """Write the tables."""
        if phase != "test" or not self._batches:
            return
        truth, predicted, means = (
            torch.cat(parts).cpu() for parts in zip(*self._batches, strict=True)
        )
        self._batches.clear()
        labels = self._task.labels
        if isinstance(self._task, Classification):
            lines = [[labels[index]] for index in truth.tolist()]
        else:
            truth = truth.reshape(len(truth), -1)
            lines = _numbers(truth)
        names = labels if len(labels) == predicted.shape[1] else _numbered("y", predicted, "")
        heads = (
            ["truth"] if len(lines[0]) == 1 else _numbered("truth", truth.flatten(1), ""),
            names,
            _numbered("x", means, "_mean"),
        )
        tables = zip(heads, (lines, _numbers(predicted), _numbers(means)), strict=True)
        paths = [f"{self._prefix}_{part}.csv" for part in _PARTS]
        with contextlib.ExitStack() as stack:  # all files appear together when they are complete
            files = [stack.enter_context(atomic.atomic_file(path)) for path in paths]
            for file, (head, rows) in zip(files, tables, strict=True):
                _write(file, head, rows)
        self._log.say(f"Saved the results of {len(lines)} samples to {', '.join(paths)}")


def _check_folder(folder: Path) -> None:
    """Raise InputError if the folder cannot be made or written to."""
    try:
        atomic.make_folders(folder)
        problem = None if os.access(folder, os.W_OK) else "no permission to write"
    except OSError as exc:
        problem = exc.strerror
    if problem:
        raise InputError(
            "E644", f"no files can be written to {folder}: {problem}", "--save-csv",
            "Choose another prefix.",
        )  # fmt: skip


def _numbered(name: str, values: Tensor, end: str) -> list[str]:
    """Return a heading for each column of [N, columns]."""
    return [f"{name}_{index}{end}" for index in range(values.shape[1])]


def _numbers(values: Tensor) -> list[list[str]]:
    """Return the rows of [N, columns] as text with all digits of float32."""
    return [[f"{value:.8g}" for value in row] for row in values.tolist()]


def _write(file: BinaryIO, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table with comma-separated columns."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    file.write(text.getvalue().encode())
