"""Pictures of trainings: error after each epoch, and error against bits and bytes of weights.

Source: docs/low-bit.md, "Accuracy".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.lowbit.arguments.drawing import PlotOptions
from ai8xtools.commands.lowbit.logs import Run, read_run
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.values import frozen
from ai8xtools.writing.diagram import DiagramSeries, Panel, axis, drawn

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.recipe import Recipe

_LEAST = 0.01
"""Percent; an error that is less is drawn here."""
_HEADS = ("name", "log", "epochs", "weights", "bytes", "bits_per_weight", "error_percent")


@frozen
class Result:
    """A training with its name in the pictures, its weights, and the bits of all together."""

    name: str
    run: Run
    weights: int
    bits: float

    @property
    def errors(self) -> tuple[float, ...]:
        """Percent of the test images that are not recognized, after each epoch."""
        return tuple(100 - accuracy for accuracy in self.run.accuracies)


def plot(options: PlotOptions) -> int:
    """Read logs, write table and pictures, print a line for each name; return the exit status."""
    outputs = [f"{options.out}{ending}" for ending in (".csv", "-curves.svg", "-bits.svg")]
    named = [_named(word) for word in options.logs]
    refuse_overwriting([(path, path) for path in outputs], [path for _, path in named])
    results = [_result(name, read_run(path), options.classes) for name, path in named]
    groups = _groups(results)
    labels = {name: _label(name, group) for name, group in groups.items()}
    texts = [_table(results), _curves(results, labels, options.most), _sizes(results, labels)]
    for path, text in zip(outputs, texts, strict=True):
        atomic.write_bytes(Path(path), text.encode())
    for label in labels.values():
        print(label)
    print(f"Wrote {', '.join(outputs)}")
    return 0


def _named(word: str) -> tuple[str, str]:
    """Return name and path of NAME=FILE or FILE; the name may be empty."""
    name, separator, path = word.partition("=")
    return (name, path) if separator and not Path(word).exists() else ("", word)


def _result(name: str, run: Run, classes: int) -> Result:
    import torch

    from ai8xtools.training.lowbit.network import LowBitNetwork

    with torch.device("meta"):
        network = LowBitNetwork(run.recipe.architecture(classes))
    counts = [
        (layer.weight.numel(), layer.encoding.bits_per_weight) for layer in network.quantizers()
    ]
    bits = sum(count * each for count, each in counts)
    return Result(name or _kind(run.recipe), run, sum(count for count, _ in counts), bits)


def _kind(recipe: Recipe) -> str:
    """Return the default name of a network."""
    stem = {"ai85cnnbit": "convolutions, ", "ai85winbit": f"{recipe.windows} windows, "}
    encodings = dict.fromkeys(recipe.encodings or (recipe.encoding,))
    return stem.get(recipe.model, "") + ", ".join(encodings)


def _groups(results: Iterable[Result]) -> Mapping[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.name, []).append(result)
    return groups


def _label(name: str, group: Sequence[Result]) -> str:
    """Return a name with the error after the last epoch, the mean if there are several runs."""
    last = [one.errors[-1] for one in group]
    if len(last) == 1:
        return f"{name}: {last[0]:.2f} %"
    return f"{name}: {sum(last) / len(last):.3f} % (mean of {len(last)})"


def _table(results: Iterable[Result]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADS)
    for one in results:
        writer.writerow([one.name, Path(one.run.path).name, len(one.errors), one.weights,
                         f"{one.bits / 8:.0f}", f"{one.bits / one.weights:.4g}",
                         f"{one.errors[-1]:.3f}"])  # fmt: skip
    return text.getvalue()


def _curves(results: Sequence[Result], labels: Mapping[str, str], most: float) -> str:
    """Return the picture of errors after each epoch, up to `most` percent."""
    groups = _groups(results)
    series = [
        DiagramSeries(labels[one.name], _up_to(most, one.errors), dotted=False, pale=True)
        for one in results
        if len(groups[one.name]) > 1
    ] + [
        DiagramSeries(
            labels[name], _up_to(most, _mean([one.errors for one in group])), dotted=False
        )
        for name, group in groups.items()
    ]
    shown = [y for one in series for _, y in one.points] or [most]
    panel = Panel(
        axis("epoch", [len(one.errors) for one in results]),
        axis("test error (%)", shown, logarithmic=True),
        series,
    )
    note = f"Errors above {most:g} % are not drawn. Behind a name is the error of the last epoch."
    pale = "Pale lines are single trainings, strong ones the mean of those of a name."
    return drawn([panel], (680, 340), 1, [note, *([pale] if len(groups) < len(results) else [])])


def _means(
    group: Sequence[Result], size_of: Callable[[Result], float]
) -> list[tuple[float, float]]:
    """Return the sizes of trainings of a name with their mean error after the last epoch."""
    by_size: dict[float, list[float]] = {}
    for one in group:
        by_size.setdefault(size_of(one), []).append(max(one.errors[-1], _LEAST))
    return [(size, sum(errors) / len(errors)) for size, errors in sorted(by_size.items())]


def _mean(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean error after each epoch that all trainings have."""
    return [sum(errors) / len(errors) for errors in zip(*runs, strict=False)]


def _up_to(most: float, errors: Sequence[float]) -> list[tuple[float, float]]:
    """Return epochs from 1 with their errors, without those that are greater than `most`."""
    return [(epoch, max(error, _LEAST)) for epoch, error in enumerate(errors, 1) if error <= most]


def _sizes(results: Sequence[Result], labels: Mapping[str, str]) -> str:
    """Return the picture of errors of the last epoch against bits and bytes."""
    errors = [max(one.errors[-1], _LEAST) for one in results]
    sizes: tuple[tuple[str, Callable[[Result], float], bool], ...] = (
        ("bits per weight", lambda one: one.bits / one.weights, False),
        ("bytes of weights", lambda one: one.bits / 8, True),
    )
    panels = []
    for title, size_of, logarithmic in sizes:
        values = [size_of(one) for one in results]
        series = [
            DiagramSeries(labels[one.name], [(value, error)], joined=False)
            for one, value, error in zip(results, values, errors, strict=True)
        ]
        for name, group in _groups(results).items():
            line = _means(group, size_of)
            if len(line) > 1:
                series.append(DiagramSeries(labels[name], line, dotted=False))
        across = axis(title, values, logarithmic=logarithmic)
        panels.append(Panel(across, axis("test error (%)", errors, logarithmic=True), series))
    note = "A dot for each training, after its last epoch; lines join the means of a name."
    return drawn(panels, (320, 260), 2, [note])
