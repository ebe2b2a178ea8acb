"""Time series as data of one's own."""

from __future__ import annotations

import math
import shutil
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st

import ai8x
from ai8xtools.commands.loader.prepare_code import prepare_header
from ai8xtools.commands.train.arguments.parser import parse
from ai8xtools.commands.train.recipe import with_recipe
from datasets.errors import DatasetError
from datasets.own.augmentation import Augmentation
from datasets.own.preparation import Preparation
from datasets.own.series_augmentation import SERIES
from datasets.own.sets import load, open_data
from datasets.own.settings import USUAL, DataSettings
from models.sized import sizedseries_8  # type: ignore[attr-defined]

ARGS = Namespace(act_mode_8bit=False, truncate_testset=False)


def opened(path: Path, **settings: Any) -> tuple[Any, Any, Any]:
    chosen = DataSettings(**settings).over(USUAL)
    data = open_data("series", str(path), chosen)
    return data, *load(data, chosen, ARGS, (True, True))


def arrays(path: Path, **given: Any) -> Path:
    np.savez(path, **given)
    return path


def waves(count: int = 12, channels: int = 2, steps: int = 20, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(count, channels, steps))


def test_channels_are_scaled_by_their_range_in_training(tmp_path: Path) -> None:
    x, y = waves(40) * [[[1.0], [100.0]]], np.arange(40) % 2
    x[:, 0] += 1000
    file = arrays(tmp_path / "x.npz", x_train=x, y_train=y, x_test=x * 9, y_test=y)
    data, train, test = opened(file)
    assert data.preparation.shape == (2, 20, 1) and data.classes == ("0", "1")
    inputs, labels = train.batch(torch.arange(40))
    assert inputs.shape == (40, 2, 20) and labels.tolist() == y.tolist()
    assert (inputs.amin((0, 2)) == -1).all() and (inputs.amax((0, 2)) == 127 / 128).all()
    assert (inputs.std((0, 2)) > 0.2).all()
    assert (test.batch(torch.arange(40))[0][:, 0] == 127 / 128).all()


def test_one_spike_takes_no_bits_from_the_others(tmp_path: Path) -> None:
    x = waves(60, 1, 100)
    x[0, 0, 0] = 1e6
    _, train, _ = opened(arrays(tmp_path / "x.npz", x=x, y=np.arange(60) % 2))
    assert train.batch(torch.arange(len(train)))[0].std() > 0.2


def test_a_constant_channel_is_nothing(tmp_path: Path) -> None:
    x = waves()
    x[:, 1] = 7
    _, train, _ = opened(arrays(tmp_path / "x.npz", x=x, y=np.arange(12) % 2))
    assert not train.batch(torch.arange(4))[0][:, 1].any()


def test_long_series_are_folded_into_channels(tmp_path: Path) -> None:
    x = np.sort(waves(8, 2, 1030), 2)
    data, train, _ = opened(arrays(tmp_path / "x.npz", x=x, y=np.arange(8) % 2))
    how = data.preparation
    assert how.fold == 4 and how.shape == (8, 258, 1)
    straight = train[0][0].reshape(2, 4, 258).transpose(1, 2).reshape(2, 1032)
    assert (straight.diff() >= 0).all() and (straight[:, 1030:] == straight[:, 1029:1030]).all()


def test_one_axis_less_is_one_channel(tmp_path: Path) -> None:
    data, *_ = opened(arrays(tmp_path / "x.npz", x=waves()[:, 0], y=np.arange(12) % 3))
    assert data.preparation.shape == (1, 20, 1)


def test_arrays_may_lie_beside_each_other(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", waves())
    np.save(tmp_path / "y.npy", np.arange(12) % 2)
    found = [opened(tmp_path)[0], opened(tmp_path / "x.npy")[0]]
    assert found[0].preparation == found[1].preparation


def test_people_of_tests_are_in_no_training(tmp_path: Path) -> None:
    groups, y = np.arange(60) // 10, np.arange(60) % 2
    x = np.broadcast_to(groups[:, None, None].astype(float), (60, 1, 5))
    _, train, test = opened(arrays(tmp_path / "x.npz", x=x, y=y, groups=groups))
    seen = [
        set(part.batch(torch.arange(len(part)))[0].flatten().tolist()) for part in (train, test)
    ]
    assert seen[0].isdisjoint(seen[1]) and 5 <= len(test) <= 20


def test_a_series_that_ends_earlier_is_padded_and_told(tmp_path: Path) -> None:
    x = waves()
    x[3, :, 15:] = np.nan
    data, train, _ = opened(arrays(
        tmp_path / "x.npz", x_train=x, y_train=np.arange(12) % 2, x_test=x, y_test=np.arange(12) % 2
    ))  # fmt: skip
    padded = train[3][0]
    assert (padded[:, 15:] == padded[:, 14:15]).all()
    assert any("1 of 12 series are shorter than 20 steps" in line for line in data.notes)


X, Y = waves(), np.arange(12) % 2
CUT = np.where((np.arange(20) > 8) & (Y[:, None, None] > 0), np.nan, X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": X[:, :, None], "y": Y}, "x is 12x2x1x20"),
        ({"x": X, "y": Y / 2}, "labels are float64"),
        ({"x": X, "y": Y[:5]}, "one label for each sample"),
        ({"x": np.where(X[3, 1, 7] == X, np.nan, X), "y": Y}, "x[3, 1, 7] is not"),
        ({"x": CUT, "y": Y}, "x[1] has 9 steps, the longest series 20"),
        ({"x": X, "y": Y, "groups": Y}, "no group can be kept for tests"),
        ({"x": X, "y": Y, "groups": Y[:3]}, "x is 12x2x20, groups is 3"),
        ({"x": np.zeros((4, 1, 9000), np.int8), "y": Y[:4]}, "9000 steps are too large"),
        ({"x": X[:, :, :0], "y": Y}, "x is 12x2x0"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :1], "y_test": Y}, "x_test has 1"),
    ],
)
def test_series_that_cannot_be_used_are_refused(tmp_path: Path, given: Any, message: str) -> None:
    file = arrays(tmp_path / "x.npz", **given)
    with pytest.raises(DatasetError) as refusal:
        opened(file)
    found = refusal.value
    assert message in found.message and str(found.place) == str(file) and found.remedy
    assert (found.code == "E616") == ("groups" in given and len(given["groups"]) == len(X))


@drawn(
    st.lists(st.tuples(*[st.floats(-(2.0**127), 2.0**127, width=32)] * 2), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4]), st.integers(0, 99),
)  # fmt: skip
def test_numbers_become_integers_of_their_range(ranges: Any, fold: int, seed: int) -> None:
    low, high = np.sort(np.array(ranges), 1).T
    how = Preparation(
        "series", (len(low) * fold, 3, 1), low=tuple(low), high=tuple(high), fold=fold
    )
    assert Preparation.of(how.as_dict()) == how
    share = np.random.default_rng(seed).random((2, len(low), 3 * fold))
    values = low[:, None] * (1 - share) + high[:, None] * share
    folded = how.of_numbers(values)[..., 0]
    found = folded.reshape(2, len(low), fold, 3).transpose(0, 1, 3, 2).reshape(values.shape)
    wanted = np.clip(256 * share - 128, -128, 127) * (high > low)[:, None]
    exact = (high - low)[:, None] > 1e-3 * np.abs(values).max()
    assert (np.abs(found - wanted) <= 1.01).all(where=exact)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="compiles C")
@pytest.mark.parametrize("kind", ["series", "features"])
def test_the_c_code_prepares_as_in_training(tmp_path: Path, kind: str) -> None:
    low, high = (-1.7, 3.0, 0.1), (2.3, 3.0, 1e5)
    fold = 2 if kind == "series" else 1
    shape = (6, 4, 1) if kind == "series" else (3, 1, 1)
    how = Preparation(kind, shape, low=low, high=high, fold=fold)
    rng = np.random.default_rng(0)
    steps = 8 if kind == "series" else 1
    values = rng.normal(size=(50, steps, 3)).astype(np.float32) * np.float32([3, 1, 1e5])
    grid = (np.arange(steps) / 8 - 0.5).astype(np.float32)  # halves, which are rounded to even
    values[0, :, 0] = np.float32(0.3) + grid * np.float32(4 / 256)
    header = prepare_header(how)
    assert header is not None
    (tmp_path / "prepare.h").write_text(header)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "prepare.h"\n'
        "int main(void) { static float in[PREPARE_SIZE]; static int8_t out[PREPARE_SIZE];\n"
        "while (fread(in, sizeof in, 1, stdin) == 1) { prepare_input(in, out);\n"
        "fwrite(out, sizeof out, 1, stdout); } return 0; }\n"
    )
    command = [
        "gcc",
        "-std=c99",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "main.c",
        "-o",
        "main",
        "-lm",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    data = values.tobytes()
    out = subprocess.run([tmp_path / "main"], input=data, capture_output=True, check=True).stdout
    found = np.frombuffer(out, np.int8).reshape(50, *shape)
    numbers = values.transpose(0, 2, 1) if kind == "series" else values[:, 0]
    assert np.array_equal(found, how.of_numbers(numbers))
    assert len(np.unique(found)) > 20


@pytest.mark.parametrize("fold", [1, 4])
@pytest.mark.parametrize("name", SERIES)
def test_series_are_changed_mildly_and_keep_their_steps_in_order(name: str, fold: int) -> None:
    """A series that rises all the time goes on rising, whatever happens to its time."""
    torch.manual_seed(3)
    ramp = torch.linspace(-0.9, 0.7, 80).expand(30, 2, 80)
    folded = ramp.unflatten(2, (-1, fold)).transpose(2, 3).flatten(1, 2)
    made = Augmentation((name,), "series", fold)(folded)
    assert made.shape == folded.shape and not torch.equal(made, folded)
    assert made.min() >= -1 and made.max() <= 127 / 128
    series = made.unflatten(1, (-1, fold)).transpose(2, 3).flatten(2)
    assert (series - ramp).abs().max() < 0.4
    if name != "jitter":
        assert (series.diff(dim=2) >= -1e-6).all()
    if name in ("shift", "crop", "warp"):  # time is that of all channels
        torch.testing.assert_close(series[:, 0], series[:, 1])


def test_the_recipe_leaves_what_the_command_line_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = arrays(tmp_path / "x.npz", x=waves(40), y=np.arange(40) % 2)
    words = ["--dataset", f"series:{file}", "--model", "sizedseries_8"]
    taken, _ = parse([*words, "--lr", "0.5", "--epochs", "3"])
    options = with_recipe(taken)
    assert (options.lr, options.epochs) == (0.5, 3)
    assert (options.optimizer, options.no_validation, options.ema) == ("adamw", True, 0.99)
    assert options.epoch_samples == 75 * options.batch_size and options.own.augment == ("scale",)
    said = capsys.readouterr().out
    assert "--optimizer adamw" in said and "--lr " not in said and "--no-validation" in said
    plain, _ = parse(["--dataset", "digits", "--model", "ai85digitsnet"])
    assert with_recipe(plain) is plain


@pytest.mark.parametrize("steps", [24, 40])
def test_the_mean_of_a_series_is_that_of_its_last_steps_too(steps: int) -> None:
    """Pools of at most 16 steps may leave out one in 16 of what is found."""
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    network = sizedseries_8(num_classes=2, num_channels=1, dimensions=(steps, 1))
    found = network.features(torch.zeros(1, 1, steps)).shape[-1]
    averaged = math.prod(pool.pool.kernel_size[0] for pool in network.mean)
    assert found * 15 / 16 <= averaged <= found


def test_the_recipe_of_numbers_and_anomalies(tmp_path: Path) -> None:
    """Neither has labels to smooth, nor samples that may be scaled; a threshold needs others."""
    file = arrays(tmp_path / "x.npz", x=waves(40), y=np.arange(40) % 2)
    words = ["--dataset", f"series:{file}", "--model", "sizedseries_8"]
    for more, held in ((["--regression"], None), (["--anomaly", "0"], 0.2)):
        options = with_recipe(parse([*words, *more])[0])
        assert options.own.augment == ("jitter",) and options.label_smoothing == 0
        assert options.no_validation == (held is None)
        assert held is None or options.validation_split == held


@pytest.mark.parametrize("count", [20, 400, 700])
def test_small_sets_get_enough_steps_and_large_ones_are_passed_whole(
    tmp_path: Path, count: int
) -> None:
    file = tmp_path / "x.npz"
    x, y = np.zeros((count, 4, 4), np.uint8), np.arange(count) % 2
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y)
    options = with_recipe(parse(["--dataset", f"npz:{file}", "--model", "sized2d_8"])[0])
    assert options.own.augment == ("shift", "light") and 8 <= options.batch_size <= 32
    steps = (options.epoch_samples or count) / options.batch_size
    assert steps >= 20 and (options.epoch_samples is None) == (count == 700)
    np.savez(file, x_train=x[:, 0], y_train=y, x_test=x[:, 0], y_test=y)
    options = with_recipe(parse(["--dataset", f"npz:{file}", "--model", "sizedrow_8"])[0])
    assert not options.own.augment  # of features
