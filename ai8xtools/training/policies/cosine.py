"""The learning rate by options: a linear warm-up, then half a cosine wave.

Source: docs/training.md, "Refinements".
"""

from __future__ import annotations

from typing import Any

from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies.schedule import ScheduleFile, read_schedule, schedule_of


def schedule_of_run(options: TrainingOptions) -> ScheduleFile | None:
    """Return the schedule of a run, from its file or its options; None if the rate is constant."""
    if options.evaluate:
        return None
    if options.compress:
        return read_schedule(options.compress)
    if options.lr_schedule is None and not options.warm_up:
        return None
    return schedule_of(_content(options), "--lr-schedule" if options.lr_schedule else "--warm-up")


def _content(options: TrainingOptions) -> dict[str, Any]:
    """Return the schedule as a file would say it.

    Epoch e of w epochs of warm-up has the rate lr * (e + 1) / (w + 1).
    """
    schedulers: dict[str, Any] = {}
    policies: list[dict[str, Any]] = []
    first, warm = options.warm_up, 1 / (options.warm_up + 1)
    if first:
        schedulers["warm_up"] = {"class": "LinearLR", "start_factor": warm, "total_iters": first}
        policies.append(_steps("warm_up", 0, first))
    if options.lr_schedule is not None:
        length = options.epochs - first
        schedulers["cosine"] = {
            "class": "CosineAnnealingLR", "T_max": length, "eta_min": options.lr_min,
        }  # fmt: skip
        policies.append(_steps("cosine", first, options.epochs))
    return {"lr_schedulers": schedulers, "policies": policies}


def _steps(name: str, first: int, end: int) -> dict[str, Any]:
    return {"lr_scheduler": name, "starting_epoch": first, "ending_epoch": end, "frequency": 1}
