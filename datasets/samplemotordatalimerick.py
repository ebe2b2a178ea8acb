"""SampleMotorDataLimerick: vibration of a motor on a test rig, as spectra.

A recording holds the three axes of an accelerometer at 20 kHz. Windows of a quarter of a second
become spectra [256 bins, 3 axes]; an autoencoder learns those of the healthy motor. Of each healthy
recording the first 80 % of the windows train and those that share no sample with them test.
Source: docs/datasets.md, "Signals".
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading import read_text
from ai8xtools.reading.progress import progress
from ai8xtools.reading.system import in_order
from datasets.errors import REPLACE, DatasetError, library
from datasets.parts import BatchedSet, train_and_test

MAX_BYTES = 256 << 20
_FOLDER = Path("SampleMotorDataLimerick", "SpectraQuest_Rig_Data_Voyager_3", "Data_ADXL356C")
_HEALTHY = "_GoB_GS_BaLo_WA_"  # good bearing and shaft, balanced load, well aligned
_DECIMATION = 10  # 20 kHz to 2 kHz
_WINDOW = 500  # samples at 2 kHz: 0.25 s
_STEP = _WINDOW // 4  # 75 % overlap
_BINS = 256
_SILENT = (3, 10)  # bins without meaning at the low and the high end
_G_PER_VOLT = 50
_TRAIN_SHARE = 0.8
_NORMAL, _ANOMALY = 0, 1
_LAYOUT = (
    f"Expected in the folder of --data: {_FOLDER}/*.csv. Source: the repository CbM-Datasets of "
    "https://github.com/analogdevicesinc."
)

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Recordings:
    """Spectra float32 [N, 256, 3] of 0..1, and whether each is NORMAL or ANOMALY, int64 [N]."""

    spectra: Tensor
    states: Tensor


class SpectrumDataset(BatchedSet):
    """Spectra; a target is the state of the motor, or the input itself with `signal`."""

    def __init__(self, recordings: Recordings, signal: bool, args: Any) -> None:
        self.inputs = ai8x.normalize(args)(recordings.spectra)
        self.targets = self.inputs if signal else recordings.states
        self.length = len(self.inputs)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs [B, 256, 3] and targets of `indices` [B]."""
        return self.inputs[indices], self.targets[indices]


def read_acceleration(path: Path) -> Values:
    """Return the acceleration of a recording in g, [samples, 3].

    A line has the time, the voltages of the axes and, perhaps in the first line only, the voltages
    at rest. Raises DatasetError E613 or, when it is too short, E625.
    """
    try:
        with io.StringIO(read_text(path, MAX_BYTES)) as file:
            first = [float(text) for text in file.readline().split(";") if text.strip()]
            if len(first) < 4:
                raise ValueError(f"{len(first)} columns")
            rest = np.loadtxt(file, delimiter=";", usecols=(1, 2, 3), ndmin=2)
        voltages = np.vstack([first[1:4], rest])
        if not np.isfinite(voltages).all():
            raise ValueError("a voltage is no finite number")
    except ValueError as exc:
        raise DatasetError(
            "E613",
            f"it is no table of time and three voltages, separated by semicolons ({exc})",
            str(path),
            REPLACE,
        ) from exc
    if len(voltages) < _WINDOW * _DECIMATION:
        raise DatasetError(
            "E625",
            f"it has {len(voltages)} samples; a window needs {_WINDOW * _DECIMATION}",
            str(path),
            REPLACE,
        )
    at_rest = np.array(first[4:7]) if len(first) >= 7 else voltages.mean(0)
    return _G_PER_VOLT * (voltages - at_rest)


def spectra(acceleration: Values) -> npt.NDArray[np.float32]:
    """Return the spectra [windows, 256, 3] of an acceleration [samples, 3], each axis of 0..1."""
    signal = library("scipy.signal", "reduces the sample rate", str(_FOLDER))
    slow = signal.decimate(acceleration, _DECIMATION, axis=0)
    windows = np.lib.stride_tricks.sliding_window_view(slow, _WINDOW, axis=0)[::_STEP]
    bins = np.abs(np.fft.fft(windows, axis=2))[:, :, :_BINS].transpose(0, 2, 1)
    bins[:, : _SILENT[0]] = 0
    bins[:, -_SILENT[1] :] = 0
    bins /= np.maximum(np.linalg.norm(bins, axis=(1, 2), keepdims=True), 1e-12)
    low, high = bins.min(1, keepdims=True), bins.max(1, keepdims=True)
    scaled: npt.NDArray[np.float32] = ((bins - low) / np.maximum(high - low, 1e-12)).astype("f4")
    return scaled


def _read(folder: Path) -> tuple[Recordings, Recordings]:
    """Return the recordings that train, of the healthy motor alone, and those that test."""
    files = in_order((folder / _FOLDER).glob("*.csv"))
    healthy = [path for path in files if _HEALTHY in path.name]
    if not healthy:
        raise DatasetError(
            "E620",
            f"it has {len(files)} recordings, none of them of the healthy motor (*{_HEALTHY}*)",
            str(folder / _FOLDER),
            _LAYOUT,
        )
    train, test, states = [], [], []
    with progress("Reading the recordings of the motor", len(files)) as advance:
        for path in files:
            rows = spectra(read_acceleration(path))
            first = 0
            if path in healthy:
                end = max(1, int(len(rows) * _TRAIN_SHARE))
                train.append(rows[:end])
                first = end + _WINDOW // _STEP - 1
            test.append(rows[first:])
            states += [_NORMAL if path in healthy else _ANOMALY] * len(test[-1])
            advance(1)
    training, testing = (torch.from_numpy(np.concatenate(parts)) for parts in (train, test))
    return (
        Recordings(training, torch.full((len(training),), _NORMAL)),
        Recordings(testing, torch.tensor(states, dtype=torch.int64)),
    )


def motor_get_datasets(
    signal: bool,
    anomalies: bool,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
) -> tuple[SpectrumDataset | None, SpectrumDataset | None]:
    """Return training and test set; the latter holds the faulty motor too with `anomalies`."""
    training, testing = _read(Path(data[0]))
    if not anomalies:
        normal = testing.states == _NORMAL
        testing = Recordings(testing.spectra[normal], testing.states[normal])

    def part(trains: bool) -> SpectrumDataset:
        return SpectrumDataset(training if trains else testing, signal, data[1])

    return train_and_test(part, data[1], load_train, load_test)


_SIGNAL = {"input": (_BINS, 3), "output": ("signal",), "regression": True}

datasets = [
    {
        "name": "SampleMotorDataLimerick_ForTrain",
        **_SIGNAL,
        "loader": partial(motor_get_datasets, True, False),
    },
    {
        "name": "SampleMotorDataLimerick_ForEvalWithAnomalyLabel",
        "input": (_BINS, 3),
        "output": ("normal", "anomaly"),
        "loader": partial(motor_get_datasets, False, True),
    },
    {
        "name": "SampleMotorDataLimerick_ForEvalWithSignal",
        **_SIGNAL,
        "loader": partial(motor_get_datasets, True, True),
    },
]
