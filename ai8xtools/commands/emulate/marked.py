"""Detection and segmentation metrics of firmware, as train.py measures them.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ai8xtools.commands.emulate.output_maps import OutputMap
from ai8xtools.commands.emulate.own_data import Samples
from ai8xtools.emulator import EmulatorError
from ai8xtools.reading import MIB, read_bytes
from ai8xtools.training.loop.metrics import confusion_matrix
from ai8xtools.training.losses.boxes import overlap
from ai8xtools.training.losses.multibox import Objects, Parameters, detect
from ai8xtools.training.tasks.classification import mean_overlap, overlaps
from ai8xtools.training.tasks.detection import DetectionMeter
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Mean
from datasets.own.preparation import DETECTOR_FILE

Integers = NDArray[np.int64]
_SHOWN = 5
_LARGEST = 64 * MIB
_FITS = 0.5
"""Boxes that overlap by less are not around the same object."""


@frozen
class Map:
    """An output of the layer `name` for all inputs: `values` int64 [N, C, H, W]."""

    name: str
    values: Integers


def by_maps(values: Integers, maps: Sequence[OutputMap] | None, project: Path) -> list[Map]:
    """Return values [N, value] by outputs; EmulatorError E863 if it is not known which is which."""
    if maps is None:
        raise EmulatorError(
            "E863", "it is not known which values of the output are which", str(project),
            "Generate the project again, with its answer.npz.",
        )  # fmt: skip
    result, first = [], 0
    for output in maps:
        ordered = np.zeros((len(values), int(np.prod(output.shape))), np.int64)
        ordered[:, output.order] = values[:, first : first + len(output.order)]
        first += len(output.order)
        result.append(Map(output.name, ordered.reshape(len(values), *output.shape)))
    return result


def show_marks(maps: Sequence[Map], samples: Samples, project: Path) -> str | None:
    """Print how well the outputs fit the marks; return a sentence if it is hardly better than
    chance. Raises EmulatorError E863 for outputs that cannot be read."""
    quality = _overlap(maps, samples) if isinstance(samples.labels, Tensor) else _precision(
        maps, samples, project)  # fmt: skip
    print(f"{quality.title} of the firmware: {quality}")
    return quality.doubt


def _overlap(maps: Sequence[Map], samples: Samples) -> Mean:
    """Print the overlaps of classes, and where most pixels are wrong."""
    masks, count = samples.labels.long(), len(samples.classes)
    expected = count, *masks.shape[1:]
    if len(maps) != 1 or maps[0].values.shape[1:] != expected:
        sizes = ", ".join("x".join(map(str, one.values.shape[1:])) for one in maps)
        raise EmulatorError(
            "E863", f"the network has outputs of {sizes}, {count} classes of pixels need "
            f"{'x'.join(map(str, expected))}", None, "Generate the project without --stop-after.",
        )  # fmt: skip
    predicted = torch.from_numpy(maps[0].values).argmax(1)
    matrix = confusion_matrix(predicted, masks, count)
    parts = [f"{name}: {share:.3f}" for name, share in
             zip(samples.classes, overlaps(matrix), strict=True) if share is not None]  # fmt: skip
    overlap = mean_overlap(matrix, len(masks))
    print("    ".join([f"==> mIoU: {100 * overlap.share:.3f}", *parts]))
    wrong = (predicted != masks).flatten(1).double().mean(1).numpy()
    for number in np.argsort(-wrong, kind="stable")[:_SHOWN].tolist():
        share = f"{100 * wrong[number]:.1f} % of the pixels are wrong"
        print(f"input {number} ({samples.names[number]}): {share}")
    return overlap


def _precision(maps: Sequence[Map], samples: Samples, project: Path) -> Mean:
    """Print the precision of classes, and the pictures with most mistakes."""
    outputs, priors, parameters = _detected(maps, project)
    targets = Objects.of(samples.labels[torch.arange(len(samples.labels))])
    meter = DetectionMeter(priors, parameters, samples.classes)
    meter.add(outputs, targets)
    mean = Mean("mAP", meter.values(final=True)["mAP"], len(targets), 0.0)
    classes = meter.by_class()["mAP"].items()
    parts = [f"{name}: {value:.5f}" for name, value in classes if value is not None]
    print("    ".join([f"==> mAP: {mean.share:.5f}", *parts]))
    rows = []
    detections = detect(outputs, priors, parameters)
    for (boxes, labels), (there, kinds, scores) in zip(targets, detections, strict=True):
        fits = overlap(boxes, there[scores > 0]) >= _FITS
        fits &= labels[:, None] == kinds[scores > 0]
        rows.append((int((~fits.any(1)).sum()), int((~fits.any(0)).sum()), len(labels)))
    for number in sorted(range(len(rows)), key=lambda n: -sum(rows[n][:2]))[:_SHOWN]:
        missed, none, count = rows[number]
        if missed + none:
            print(f"input {number} ({samples.names[number]}): {count - missed} of {count} objects "
                  f"found, {none} boxes around nothing")  # fmt: skip
    return mean


def _detected(
    maps: Sequence[Map], project: Path
) -> tuple[tuple[Tensor, Tensor], Tensor, Parameters]:
    """Return locations and scores as in training, prior boxes, and which objects count as found."""
    path = project / DETECTOR_FILE
    try:
        facts = json.loads(read_bytes(path, _LARGEST))
        named = {_plain(one.name): one.values for one in maps}
        values = [named[_plain(name)].reshape(len(named[_plain(name)]), -1)
                  for name in facts["outputs"]]  # fmt: skip
        priors = torch.tensor(facts["priors"], dtype=torch.float32)
        order = np.array(facts["order"])
        flat = torch.from_numpy(np.concatenate(values, 1)[:, order]).float()
        parts = flat.split([4 * len(priors), len(order) - 4 * len(priors)], 1)
        locations, scores = (
            part.unflatten(1, (len(priors), -1)) / divisor
            for part, divisor in zip(parts, facts["divisors"], strict=True)
        )
        return (locations, scores), priors, Parameters(**facts["parameters"])
    except (OSError, LookupError, TypeError, ValueError, RuntimeError) as exc:
        raise EmulatorError(
            "E863", f"it does not say how objects are found in the outputs ({type(exc).__name__}: "
            f"{exc})", str(path), "Generate the project again, from a checkpoint that train.py "
            "wrote for boxes, without --stop-after.",
        ) from exc  # fmt: skip


def _plain(name: str) -> str:
    """Return the name of a layer as networks and projects both have it."""
    return name.replace(".", "_")
