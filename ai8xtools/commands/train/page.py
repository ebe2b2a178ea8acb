"""The page of a training (--report): how good it is, and how it came about, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ai8xtools import __version__
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values.accuracy import capitalized, measured_of

_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 15, 620, 220
_SIDES = ("training", "validation")
_CHIP = "integers of the chip"
_TESTED = {"test": "Test, last epoch", "test_best": "Test, best epoch"}


def page(options: TrainingOptions, metrics: Mapping[str, Any]) -> str:
    """Return the page of a run; `metrics` are those of its metrics.json."""
    from ai8xtools.writing.templates import render  # few ask for a page

    epochs = metrics["epochs"]
    judged = metrics.get("accuracy", {})
    return render(
        "report/training.html.j2",
        model=options.arch, dataset=options.dataset, command_line=options.command_line,
        tool=f"train.py {__version__}", results=[*_results(metrics, judged)],
        measured=measured_of(judged.get(_CHIP)),
        curves=[_curve(name, epochs, metrics.get("best")) for name in _names(epochs)],
        heads=_heads(epochs), rows=[*_rows(epochs)],
    )  # fmt: skip


def _results(
    metrics: Mapping[str, Any], judged: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield title, value and explanation of what was measured of test samples."""
    samples = f"{metrics.get('sizes', {}).get('test', 0):,} test samples"
    for key, title in _TESTED.items():
        for name, value in _numbers(metrics.get(key)):
            if name != "loss":
                yield f"{title}: {name}", f"{value:.4g}", samples
    for name, entry in judged.items():
        measure = measured_of(entry)
        if measure is not None:
            title, _, rest = str(measure).partition(" (")
            yield f"{capitalized(name)}: {measure.title}", title, rest.removesuffix(")")


def _names(epochs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what training and validation have measured, the loss first."""
    sides = [epoch.get(side) or {} for epoch in epochs for side in _SIDES]
    names = dict.fromkeys(name for side in sides for name, _ in _numbers(side))
    return sorted(names, key=lambda name: name != "loss")[:3]


def _numbers(values: Mapping[str, Any] | None) -> list[tuple[str, float]]:
    return [(n, v) for n, v in (values or {}).items() if isinstance(v, int | float)]


def _curve(
    name: str, epochs: Sequence[Mapping[str, Any]], best: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the lines of a number over the epochs, in pixels of the diagram."""
    sides = {
        side: [(e["epoch"], e[side][name]) for e in epochs if name in (e.get(side) or {})]
        for side in _SIDES
    }
    values = [value for points in sides.values() for _, value in points]
    least, greatest = min(values), max(values)
    first, last = epochs[0]["epoch"], epochs[-1]["epoch"]

    def x(epoch: float) -> str:
        return f"{_LEFT + _WIDTH * (epoch - first) / max(1, last - first):.1f}"

    def point(epoch: int, value: float) -> tuple[str, str, str]:
        y = _TOP + _HEIGHT * (1 - (value - least) / ((greatest - least) or 1))
        return x(epoch), f"{y:.1f}", f"epoch {epoch}, {value:.4g}"

    begun = next((e["epoch"] for e in epochs if e.get("qat")), None)
    chosen = dict(sides["validation"]).get((best or {}).get("epoch"))
    return {
        "title": capitalized(name), "least": f"{least:.4g}", "greatest": f"{greatest:.4g}",
        "first": first, "last": last, "qat": x(begun) if begun else None,
        "lines": [(side, [point(*one) for one in points]) for side, points in sides.items()],
        "best": None if chosen is None or best is None else point(best["epoch"], chosen),
    }  # fmt: skip


def _heads(epochs: Sequence[Mapping[str, Any]]) -> list[str]:
    sides = [f"{side} {name}" for side in _SIDES for name in _names(epochs)]
    return ["epoch", "QAT", "learning rate", *sides, "seconds"]


def _rows(epochs: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    names = _names(epochs)
    for epoch in epochs:
        values = [(epoch.get(side) or {}).get(name) for side in _SIDES for name in names]
        yield [
            str(epoch["epoch"]), "yes" if epoch.get("qat") else "",
            f"{epoch.get('learning_rate', 0):.3g}",
            *("" if value is None else f"{value:.4g}" for value in values),
            f"{epoch.get('seconds', 0):.1f}",
        ]  # fmt: skip
