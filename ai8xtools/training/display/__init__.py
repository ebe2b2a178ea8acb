"""Displays of a run besides its log: TensorBoard, tables and pictures.

Each function of `MAKERS` makes an observer if the options ask for it, and imports what it needs.
Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

from ai8xtools.training.display.requirements import check
from ai8xtools.training.loop.observers import Context, Observer
from ai8xtools.training.options import TrainingOptions

__all__ = ["MAKERS", "check", "reporters"]


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


def show_histograms(context: Context) -> Observer | None:
    """Watch the weights (--param-hist)."""
    if context.log.events is None or not context.options.param_hist:
        return None
    from ai8xtools.training.display.events import Histograms

    return Histograms(context)


def show_curves(context: Context) -> Observer | None:
    """Show precision and recall (--pr-curves)."""
    if context.log.events is None or not context.options.pr_curves:
        return None
    from ai8xtools.training.display.events import Curves

    return Curves(context)


def show_points(context: Context) -> Observer | None:
    """Show outputs as points (--embedding)."""
    if context.log.events is None or not context.options.embedding:
        return None
    from ai8xtools.training.display.events import Projector

    return Projector(context)


def show_confusion(context: Context) -> Observer | None:
    """Show the confusion matrix as a picture (--confusion)."""
    if context.log.events is None or not context.options.confusion:
        return None
    from ai8xtools.training.display.events import ConfusionPicture

    return ConfusionPicture(context)


def write_tables(context: Context) -> Observer | None:
    """Write the results of single test samples (--save-csv)."""
    if context.options.save_csv is None:
        return None
    from ai8xtools.training.display.results_table import ResultsTable

    return ResultsTable(context)


def draw_attributions(context: Context) -> Observer | None:
    """Draw which pixels contribute to which class (--shap)."""
    if context.options.shap is None:
        return None
    from ai8xtools.training.display.attributions import Attributions

    return Attributions(context)


def show_quantization(context: Context) -> Observer | None:
    """Show what quantization does to each layer (--qat-diagnostics)."""
    if not context.options.qat_diagnostics:
        return None
    from ai8xtools.training.display.quantization import QuantizationDiagnostics

    return QuantizationDiagnostics(context)


def reporters(context: Context) -> list[Observer]:
    """Return the observers that report to services (--track)."""
    if not context.options.track:
        return []
    from ai8xtools.training.display.trackers import tracker_of

    return [tracker_of(name, context) for name in context.options.track]


MAKERS = (
    show_graph,
    show_histograms,
    show_curves,
    show_points,
    show_confusion,
    write_tables,
    draw_attributions,
    show_quantization,
)
