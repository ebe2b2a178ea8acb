"""How well firmware finds what is marked on pictures, as train.py measures it.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.output_maps import OutputMap
from ai8xtools.commands.emulate.own_data import Samples
from ai8xtools.emulator import EmulatorError
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
_SHOWN = 5


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


def show_marks(maps: Sequence[Map], samples: Samples) -> str | None:
    """Print how well the outputs fit the marks; return a sentence if it is hardly better than
    chance. Raises EmulatorError E863 for outputs that cannot be the scores of classes."""
    import torch

    from ai8xtools.training.loop.metrics import confusion_matrix
    from ai8xtools.training.tasks.classification import mean_overlap, overlaps

    masks, count = samples.labels.long(), len(samples.classes)
    expected = count, *masks.shape[1:]
    if len(maps) != 1 or maps[0].values.shape[1:] != expected:
        found = ", ".join("x".join(map(str, one.values.shape[1:])) for one in maps)
        raise EmulatorError(
            "E863", f"the network has outputs of {found}, {count} classes of pixels need "
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
    print(f"mIoU of the firmware: {overlap}")
    return overlap.doubt
