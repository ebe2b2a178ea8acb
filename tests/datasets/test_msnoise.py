"""Noises of MS-SNSD as classes, from made-up recordings."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datasets import audio, msnoise
from datasets.errors import DatasetError


def _record(name: str) -> dict[str, Any]:
    return next(r for r in msnoise.datasets if r["name"] == name)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for part in ("noise_train", "noise_test"):
        folder = tmp_path / "MSnoise" / "raw" / part
        folder.mkdir(parents=True)
        for name, level in (("Babble_1", 0.25), ("Babble_2", 0.25), ("Air_Port_1", 0.1004)):
            audio.write_wav(folder / f"{name}.wav", np.full(20000, level, np.float32))
    return tmp_path


def test_names_of_files_are_classes(data: Path, args: Namespace) -> None:
    train, test = _record("MSnoise")["loader"]((str(data), args))
    for dataset in (train, test):
        assert sorted({dataset[i][1] for i in range(len(dataset))}) == [0, 1]
        x, target = dataset[0]
        assert x.shape == (128, 128)
        assert target == 0  # Air_Port, in alphabetical order
    assert float(test[len(test) - 1][0].max()) == 0.25


def test_only_exact_items_keep_sixteen_bits(
    data: Path, args: Namespace, integers: Namespace
) -> None:
    level = round(0.1004 * 32768) / 32768
    items = {
        name: _record(name)["loader"]((str(data), args))[1][0][0]
        for name in ("MSnoise", "MSnoise_unquantized")
    }
    assert float(items["MSnoise"][0, 0]) == round(level * 128) / 128
    assert float(items["MSnoise_unquantized"][0, 0]) == level
    _, test = _record("MSnoise_unquantized")["loader"]((str(data), integers))
    assert len(test) == 1
    assert torch.equal(test[0][0], torch.full((128, 128), 13.0))


def test_test_cuts_are_the_same_each_time(data: Path, args: Namespace) -> None:
    ramp = np.linspace(-1, 0.9, 30000, dtype=np.float32)
    for part in ("noise_train", "noise_test"):
        audio.write_wav(data / "MSnoise" / "raw" / part / "A_1.wav", ramp)
    train, test = _record("MSnoise_unquantized")["loader"]((str(data), args))
    assert torch.equal(test[0][0], test[0][0])
    assert not torch.equal(test[0][0], test[1][0])
    assert not torch.equal(train[0][0], train[0][0])
    x = test[0][0]
    steps = x.t().flatten()  # channel c at time t is sample 128*t + c
    assert bool((steps[1:] >= steps[:-1]).all())


def test_too_many_classes_and_missing_folders_are_named(data: Path, args: Namespace) -> None:
    for number in range(16):
        path = data / "MSnoise" / "raw" / "noise_test" / f"N{number}_1.wav"
        audio.write_wav(path, np.zeros(100, np.float32))
    with pytest.raises(DatasetError, match="of 18 classes .*; MSnoise has 16"):
        _record("MSnoise")["loader"]((str(data), args))
    with pytest.raises(DatasetError, match="the folder of noises is missing"):
        _record("MSnoise")["loader"]((str(data / "absent"), args))
