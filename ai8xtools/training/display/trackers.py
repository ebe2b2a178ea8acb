"""MLflow and Weights & Biases as observers (--track); each is imported only when it is named.

Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import nn

from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.observers import Context, Observer, Phase
from ai8xtools.training.options import TrainingOptions
from datasets.errors import library

_PROJECT = "max78000"
_LONGEST = 500
"""Characters of a parameter that MLflow takes."""


def tracker_of(name: str, context: Context) -> Observer:
    """Return the observer for `mlflow` or `wandb`; InputError E624 where it is not installed."""
    module = library(name, "records trainings", "--track")
    return MlflowTracker(module, context) if name == "mlflow" else WandbTracker(module, context)


def _settings(options: TrainingOptions) -> dict[str, Any]:
    return {key: value for key, value in asdict(options).items() if value is not None}


def _numbers(phase: Phase, scores: Scores) -> dict[str, float]:
    """Return losses and scores as `validation/top1`."""
    titled = {**scores.losses, **scores.values}
    return {f"{phase}/{name.lower().replace(' ', '_')}": value for name, value in titled.items()}


class MlflowTracker(Observer):
    """Reports to the server of MLFLOW_TRACKING_URI, by default to files below the working folder.

    The experiment is MLFLOW_EXPERIMENT_NAME or the default one.
    """

    def __init__(self, library: Any, context: Context) -> None:
        self._library, self._folder = library, str(context.log.folder)
        self._epoch, self._complete = 0, False
        library.start_run(run_name=context.log.folder.name)
        library.log_params(
            {key: str(value)[:_LONGEST] for key, value in _settings(context.options).items()}
        )

    def finished(self, phase: Phase, epoch: int | None, scores: Scores, _model: nn.Module) -> None:
        """Report the scores of a pass."""
        self._epoch = self._epoch if epoch is None else epoch
        self._library.log_metrics(_numbers(phase, scores), step=self._epoch)

    def ended(self, metrics: Mapping[str, Any]) -> None:
        """Report the test of the best epoch, and keep the log folder with the run."""
        self._library.log_metrics(_best(metrics), step=self._epoch)
        self._library.log_artifacts(self._folder)
        self._complete = True

    def close(self) -> None:
        """End the run."""
        self._library.end_run("FINISHED" if self._complete else "FAILED")


class WandbTracker(Observer):
    """Reports to Weights & Biases; WANDB_MODE=offline keeps everything in the log folder."""

    def __init__(self, library: Any, context: Context) -> None:
        folder = context.log.folder
        self._epoch, self._complete = 0, False
        self._run = library.init(
            project=_PROJECT, name=folder.name, dir=str(folder), config=_settings(context.options)
        )

    def finished(self, phase: Phase, epoch: int | None, scores: Scores, _model: nn.Module) -> None:
        """Report the scores of a pass."""
        self._epoch = self._epoch if epoch is None else epoch
        self._run.log(_numbers(phase, scores), step=self._epoch)

    def ended(self, metrics: Mapping[str, Any]) -> None:
        """Report the test of the best epoch."""
        self._run.log(_best(metrics), step=self._epoch)
        self._complete = True

    def close(self) -> None:
        """End the run."""
        self._run.finish(exit_code=int(not self._complete))


def _best(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of the test of the best epoch as `test_best/top1`."""
    scores = metrics.get("test_best", {})
    return {
        f"test_best/{name}": value
        for name, value in scores.items()
        if isinstance(value, int | float)
    }
