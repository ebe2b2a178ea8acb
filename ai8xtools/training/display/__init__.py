"""Displays of a run besides its log: TensorBoard, tables and pictures.

Each function of `MAKERS` makes an observer if the options ask for it, and imports what it needs.
Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ai8xtools.training.display.remaining import Remaining
from ai8xtools.training.display.requirements import check
from ai8xtools.training.loop.observers import Context, Observer
from ai8xtools.training.options import TrainingOptions

__all__ = ["MAKERS", "check", "reporters"]

Maker = Callable[[Context], Observer | None]


def _event_options(options: TrainingOptions) -> list[str]:
    """Return the options that show something in TensorBoard only."""
    shown = {
        "--param-hist": options.param_hist,
        "--pr-curves": options.pr_curves,
        "--embedding": options.embedding,
    }
    return [name for name, is_wanted in shown.items() if is_wanted]


def show_graph(context: Context) -> None:
    """Send the graph of the network to TensorBoard if that is used."""
    if context.log.events is None:
        if idle := _event_options(context.options):
            context.log.warn(f"{', '.join(idle)}: nothing is shown without --enable-tensorboard")
        return
    from ai8xtools.training.display.events import add_graph

    add_graph(context)


def _display(option: str, module: str, name: str, *, events: bool = False) -> Maker:
    """Return the maker of an observer that an option requests, of TensorBoard where `events`."""

    def make(context: Context) -> Observer | None:
        value = getattr(context.options, option)
        if value is None or value is False or (events and context.log.events is None):
            return None
        observers = importlib.import_module(f"{__name__}.{module}")
        observer: Observer = getattr(observers, name)(context)
        return observer

    return make


def reporters(context: Context) -> list[Observer]:
    """Return the observers that report to services (--track), and that of the terminal."""
    line: list[Observer] = [Remaining(context.options.epochs)]
    if not context.options.track:
        return line
    from ai8xtools.training.display.trackers import tracker_of

    return line + [tracker_of(name, context) for name in context.options.track]


MAKERS: tuple[Maker, ...] = (
    show_graph,
    _display("param_hist", "events", "Histograms", events=True),
    _display("pr_curves", "events", "Curves", events=True),
    _display("embedding", "events", "Projector", events=True),
    _display("confusion", "events", "ConfusionPicture", events=True),
    _display("save_csv", "results_table", "ResultsTable"),
    _display("shap", "attributions", "Attributions"),
    _display("qat_diagnostics", "quantization", "QuantizationDiagnostics"),
)
