"""Vibration spectra of a motor and bits of a modem, from made-up recordings."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datasets import afsk
from datasets import samplemotordatalimerick as motor
from datasets.errors import DatasetError

HEALTHY, FAULTY = "0600_GoB_GS_BaLo_WA_1.csv", "0600_BaB_GS_BaLo_WA_1.csv"
RATE = 20000
SECONDS = 2


def _recording(path: Path, hertz: float) -> None:
    """Write a vibration of one frequency around a voltage at rest that differs by axis."""
    time = np.arange(SECONDS * RATE) / RATE
    rest = np.array([0.9, 0.8, 1.0])
    wave = np.sin(2 * np.pi * hertz * time)[:, None] * [0.01, 0.02, 0.005]
    rng = np.random.default_rng(0)
    voltages = rest + wave + rng.normal(0, 1e-4, wave.shape)
    lines = [f"{t:.5f};" + ";".join(f"{v:.6f}" for v in row) for t, row in
             zip(time, voltages, strict=True)]  # fmt: skip
    lines[0] += ";" + ";".join(map(str, rest))
    path.write_text("\n".join(lines))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("scipy")
    root = tmp_path_factory.mktemp("data")
    folder = root / motor._FOLDER
    folder.mkdir(parents=True)
    _recording(folder / HEALTHY, 200)
    _recording(folder / FAULTY, 400)
    return root


def _loaded(name: str, data: Path, args: Namespace) -> tuple[Any, Any]:
    loader: Any = next(r for r in motor.datasets if r["name"].endswith(name))["loader"]  # type: ignore[attr-defined]
    return loader((str(data), args))


WINDOWS = (SECONDS * RATE // 10 - 500) // 125 + 1


def test_healthy_windows_are_divided_and_anomalies_only_test(data: Path, args: Namespace) -> None:
    training = int(WINDOWS * 0.8)
    normal = WINDOWS - training - 3  # three windows share samples with those that train
    sizes = {
        "ForTrain": (training, normal),
        "ForEvalWithAnomalyLabel": (training, normal + WINDOWS),
        "ForEvalWithSignal": (training, normal + WINDOWS),
    }
    for name, expected in sizes.items():
        train, test = _loaded(name, data, args)
        assert (len(train), len(test)) == expected
        x, targets = test.batch(torch.arange(2))
        assert (x.shape, x.dtype) == ((2, 256, 3), torch.float32)
        if name == "ForEvalWithAnomalyLabel":
            assert targets.dtype == torch.int64
            assert sorted(test.targets.tolist()) == [0] * normal + [1] * WINDOWS
            assert train.targets.unique().tolist() == [0]
        else:
            assert torch.equal(x, targets)


def test_records() -> None:
    outputs = [record["output"] for record in motor.datasets]
    assert outputs == [("signal",), ("normal", "anomaly"), ("signal",)]
    assert all(record["input"] == (256, 3) for record in motor.datasets)
    assert [record.get("regression", False) for record in motor.datasets] == [True, False, True]


def test_a_spectrum_has_its_peak_at_the_frequency(data: Path, integers: Namespace) -> None:
    _, test = _loaded("ForTrain", data, integers)
    assert len(test) == 1
    x = test[0][0]
    assert x.argmax(0).tolist() == [50, 50, 50]  # 200 Hz in bins of 4 Hz
    assert x.max(0).values.tolist() == [127] * 3
    assert torch.equal(x[[0, 1, 2, -10, -1]], torch.full((5, 3), -128.0))
    assert torch.equal(x, x.round())


def test_the_voltage_at_rest_does_not_count(data: Path) -> None:
    acceleration = motor.read_acceleration(data / motor._FOLDER / HEALTHY)
    assert acceleration.shape == (SECONDS * RATE, 3)
    assert np.abs(acceleration.mean(0)).max() < 0.01
    assert acceleration[:, 1].max() == pytest.approx(50 * 0.02, rel=0.05)


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        ("time;x;y;z\n", "E613", "no table"),
        ("0;1;2;3\n" * 4999, "E625", "4999 samples; a window needs 5000"),
        ("0;1;2\n" * 6000, "E613", "no table"),
        ("0;1;2;3\n" * 6000 + "0;1", "E613", "no table"),
        ("0;1;2;3\n" * 6000 + "0;1;nan;3", "E613", "finite"),
        ("\0\1\2", "E613", "no table"),
        ("", "E613", "no table"),
    ],
)
def test_other_tables_are_named(content: str, code: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DatasetError, match=message) as info:
        motor.read_acceleration(path)
    assert (info.value.code, info.value.place) == (code, str(path))


@pytest.mark.parametrize(("files", "code"), [([], "E620"), ([FAULTY], "E620")])
def test_without_a_healthy_motor_there_is_nothing_to_learn(
    files: list[str], code: str, args: Namespace, tmp_path: Path
) -> None:
    folder = tmp_path / motor._FOLDER
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_text("")
    with pytest.raises(DatasetError, match="healthy") as info:
        _loaded("ForTrain", tmp_path, args)
    assert (info.value.code, info.value.place) == (code, str(folder))
    assert "github.com/analogdevicesinc" in info.value.remedy


def _bits(folder: Path) -> None:
    (folder / "AFSK" / "bits").mkdir(parents=True)
    for bit, name in enumerate(("zeros", "ones")):
        content = np.full((20, 22), 50 + 100 * bit, np.uint8)
        (folder / "AFSK" / "bits" / f"{name}.bit").write_bytes(content.tobytes())


def test_bits_are_scaled_and_divided(args: Namespace, tmp_path: Path) -> None:
    _bits(tmp_path)
    train, test = afsk.afsk_get_datasets((str(tmp_path), args))
    assert train is not None
    assert test is not None
    assert (len(train), len(test)) == (30, 10)
    for dataset in (train, test):
        x, targets = dataset.batch(torch.arange(len(dataset)))
        assert x.shape[1:] == (1, 22)
        assert torch.equal(x[:, 0, 0], torch.where(targets == 1, 127 / 128, -1.0))
    args.truncate_testset = True
    none, first = afsk.afsk_get_datasets((str(tmp_path), args), load_train=False)
    assert none is None
    assert first is not None
    assert len(first) == 1


@pytest.mark.parametrize(("content", "code"), [(None, "E620"), (b"", "E625"), (b"x" * 23, "E625")])
def test_faulty_bits_are_named(
    content: bytes | None, code: str, args: Namespace, tmp_path: Path
) -> None:
    _bits(tmp_path)
    path = tmp_path / "AFSK" / "bits" / "ones.bit"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError) as info:
        afsk.afsk_get_datasets((str(tmp_path), args))
    assert (info.value.code, info.value.place) == (code, str(path))
