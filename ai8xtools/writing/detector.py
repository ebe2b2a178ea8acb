"""How objects are found in the outputs of a detector with prior boxes, as constants of C.

Source: docs/applications.md, "What becomes of the outputs".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ai8xtools.values import frozen
from ai8xtools.writing.library import LibraryOutput, Shape

ONE = 1 << 16
"""Of places in the picture, and of overlaps."""
_SCORE = 1 << 30
_CENTRE, _SIZE = 10, 5
"""Scales of locations relative to a prior box, as in training."""
_LOCATIONS = 4
_LIMITS = {"min_score": (0, 1), "max_overlap": (0, 1), "top_k": (1, 1e6)}
_LARGEST_EXPONENT = 20
_CANDIDATES = 1024
"""Most boxes that programs look at by default."""
_CLOSE = 1e-5


@frozen
class BoxMap:
    """The boxes that two outputs describe, `locations` and `scores` by their numbers: for each of
    rows x columns pixels one of each of `sizes` (width, height in 1/`ONE` of the picture)."""

    locations: int
    scores: int
    rows: int
    columns: int
    sizes: tuple[tuple[int, int], ...]


@frozen
class Detector:
    """What a checkpoint says: see `Detector.of`. `names` are those of the classes, without the
    background, which is class 0."""

    facts: Mapping[str, Any]
    names: tuple[str, ...]

    def constants(self, outputs: Sequence[LibraryOutput]) -> dict[str, Any]:
        """Return what the C needs, for outputs of a project.

        Raises ValueError with a reason for facts of another network, and boxes in no regular order.
        """
        try:
            priors = np.array(self.facts["priors"], np.float64).reshape(-1, 4)
            order = np.array(self.facts["order"], np.int64)
            divisors = [float(one) for one in self.facts["divisors"]]
            limits = {key: float(self.facts["parameters"][key])
                      for key in _LIMITS}  # fmt: skip
            names = [_plain(str(name)) for name in self.facts["outputs"]]
            exponents = [round(math.log2(one)) for one in divisors]
            locations, scores = order[: 4 * len(priors)], order[4 * len(priors) :]
            classes = len(scores) // len(priors)
        except (LookupError, TypeError, ValueError, ZeroDivisionError, OverflowError) as exc:
            raise ValueError(f"its description is damaged ({type(exc).__name__}: {exc})") from None
        sound = all(0 <= one <= _LARGEST_EXPONENT for one in exponents) and all(
            low <= limits[key] <= high for key, (low, high) in _LIMITS.items()
        )
        if not sound:
            raise ValueError("its description has a number that cannot be")
        if [2.0**one for one in exponents] != divisors or classes != len(self.names) + 1:
            raise ValueError("its description is of another network")
        numbered = {_plain(one.name): number for number, one in enumerate(outputs)}
        if not {*names} <= {*numbered}:
            raise ValueError(f"the project has no output {min({*names} - {*numbered})}")
        numbers = [numbered[name] for name in names]
        maps = tuple(_maps(priors, (locations, scores), classes, numbers, outputs))
        return {
            "maps": maps, "classes": classes,
            "centre": _CENTRE << exponents[0], "rate": round(_rate(exponents[0]) / _SIZE),
            "score_rate": round(_rate(exponents[1])),
            "least": round(limits["min_score"] * _SCORE),
            "overlap": round(limits["max_overlap"] * ONE), "most": int(limits["top_k"]),
            "candidates": min(max(4 * int(limits["top_k"]), 128), _CANDIDATES,
                              len(priors) * (classes - 1)),
        }  # fmt: skip


def _rate(exponent: int) -> float:
    """Return by how much an integer changes the logarithm to base 2 of its power, in 2^-32."""
    return float(math.ldexp(math.log2(math.e), 32 - exponent))


def _maps(
    priors: Any,
    positions: Sequence[Any],
    classes: int,
    numbers: Sequence[int],
    outputs: Sequence[LibraryOutput],
) -> Iterator[BoxMap]:
    """Yield the maps of boxes; ValueError unless all places are as they are written here.

    `positions` are those of locations and scores, counted in the values of outputs `numbers`.
    """
    starts = np.cumsum([0, *(outputs[number].shape.size for number in numbers)])
    first = 0
    while first < len(priors):
        pairs = [*zip(positions, (_LOCATIONS, classes), strict=True)]
        indices = [_output_at(int(places[size * first]), starts) for places, size in pairs]
        shape = outputs[numbers[indices[0]]].shape
        boxes, rest = divmod(shape.channels, _LOCATIONS)
        count = shape.pixels * boxes
        part = priors[first : first + count]
        regular = not rest and 0 < count == len(part)
        regular = regular and np.allclose(part, _regular(part[:boxes], shape), atol=_CLOSE)
        for (places, size), place in zip(pairs, indices, strict=True):
            expected = Shape(boxes * size, shape.rows, shape.columns)
            regular = regular and outputs[numbers[place]].shape == expected
            actual = places[size * first : size * (first + count)]
            regular = regular and np.array_equal(actual, starts[place] + _places(expected))
        if not regular:
            raise ValueError("its boxes are in no order that is known")
        sizes = np.round(part[:boxes, 2:] * ONE).astype(int).tolist()
        yield BoxMap(numbers[indices[0]], numbers[indices[1]], shape.rows, shape.columns,
                     tuple((width, height) for width, height in sizes))  # fmt: skip
        first += count


def _output_at(index: int, starts: Any) -> int:
    """Return the number of the output, of those from `starts` on, that holds a value."""
    place = int(np.searchsorted(starts, index, "right")) - 1
    if not 0 <= place < len(starts) - 1:
        raise ValueError("its description is of another network")
    return place


def _places(shape: Shape) -> Any:
    """Return where the values of each pixel are in an output by channel, row and column."""
    values = np.arange(shape.size).reshape(shape.channels, shape.rows, shape.columns)
    return values.transpose(1, 2, 0).reshape(-1)


def _regular(boxes: Any, shape: Shape) -> Any:
    """Return the boxes of all pixels; those of the first are given."""
    y, x = np.mgrid[: shape.rows, : shape.columns].reshape(2, -1)
    centres = np.stack([(x + 0.5) / shape.columns, (y + 0.5) / shape.rows], 1)
    sizes = np.tile(boxes[:, 2:], (shape.pixels, 1))
    return np.concatenate([centres.repeat(len(boxes), 0), sizes], 1)


def _plain(name: str) -> str:
    """Return the name of a layer as networks and projects both have it."""
    return name.replace(".", "_")
