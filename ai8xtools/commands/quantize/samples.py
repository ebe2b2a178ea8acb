"""Calibration samples: a data set by name, or an array FILE.npy or FILE.npz."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from ai8xtools.commands.quantize.arrays import SUFFIXES, read_samples
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import Float64s
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.catalog.own_data import dataset_named
from datasets.own.settings import OF_PICTURES, OPEN, DataSettings, kind_and_path

OPTION = "--calibrate"
_SERIES = 3  # axes of kernels of one dimension


class _Array:
    """Samples of an array; they have no targets."""

    def __init__(self, values: Tensor) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return samples, and zeros in place of targets."""
        return self._values[indices], torch.zeros(len(indices))


def data_set(
    name: str,
    weights: Collection[Any],
    checkpoint: str | None,
    option: str = OPTION,
    *,
    series: bool = False,
    settings: DataSettings = OPEN,
) -> DatasetEntry:
    """Return the data set of a name, or one of the samples of a file.

    `weights` are the tensors of the network: the last matrix tells the number of classes; `option`
    is the one that names the samples. A network takes series if `series` says so, or if it has
    kernels of one dimension and none of two. `settings` say how pictures become samples. Raises
    InputError E740 for a file that holds none, E687 for settings of other data.
    """
    kind = kind_and_path(name)
    if settings != OPEN and (kind is None or kind[0] not in OF_PICTURES):
        raise InputError(
            "E687", "--resize, --stretch, --grayscale, --fold do not apply to such samples", name,
            "Leave out the options; they are for pictures in folders (folder:DIR).",
        )  # fmt: skip
    axes = [len(tensor.shape) for tensor in weights]
    if kind is not None or not name.lower().endswith(SUFFIXES):
        series = series or max(axes, default=0) == _SERIES
        return dataset_named(name, option, settings, checkpoint, series=series)
    values = read_samples(name)
    if values.ndim not in (2, 3, 4) or values.dtype.kind not in "fiu":
        raise InputError(
            "E740",
            f"an array of shape {values.shape} and type {values.dtype} holds no samples",
            name,
            "Write numbers as [sample, channel, row, column], [sample, channel, time] or "
            "[sample, value].",
        )
    samples = torch.from_numpy(values.astype("float32"))
    channels, rows, columns = (*values.shape[1:], 1, 1)[:3]
    matrices = [tensor.shape[0] for tensor in weights if len(tensor.shape) > 1]
    classes = tuple(range(matrices[-1] if matrices else 1))
    return DatasetEntry(
        name, (channels, rows, columns), classes, lambda *_: (_Array(samples), None), None
    )


def as_maps(batch: Tensor) -> Float64s:
    """Return inputs as [N, C, H, W] in float64; axes that they lack have the size 1."""
    array: Float64s = batch.double().numpy()
    return array.reshape(*array.shape, *([1] * (4 - array.ndim)))
