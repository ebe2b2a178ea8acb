"""Programs run from Python with inputs of one's own, and what simulations are compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai8xtools.emulator import AddressMap, LoadedNetwork, Writes
from ai8xtools.emulator.report.departure import (
    Departure,
    SimulatedChannel,
    departure_of_layers,
    departure_of_words,
)
from device import MAX78000
from tests.emulator.by_hand import one_by_one

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def program(project: Path) -> LoadedNetwork:
    return LoadedNetwork.of_project(project, "MAX78000")


def test_project_runs_with_its_own_input(program: LoadedNetwork) -> None:
    assert program.input_shape == (4, 2, 2)
    run = program.run()
    assert run.output().tolist() == [[[1, 2], [3, 0]], [[10, 15], [20, 25]]]
    assert run.output(0) is run.output()
    with pytest.raises(KeyError):
        run.output(1)


@given(seed=SEEDS)
def test_project_runs_with_another_input(program: LoadedNetwork, seed: int) -> None:
    image = np.random.default_rng(seed).integers(-128, 128, (4, 2, 2))
    run = program.run(image)
    half = (image[[0, 3]] * 64 + np.array([0, 5 * 128])[:, None, None] + 64) >> 7
    assert run.output().tolist() == np.clip(half, 0, 127).tolist()
    assert run.findings == []


def test_runs_do_not_influence_each_other(program: LoadedNetwork) -> None:
    program.run(np.zeros((4, 2, 2), np.int8))
    assert program.run().output().tolist() == [[[1, 2], [3, 0]], [[10, 15], [20, 25]]]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 2, 3), int), r"shape \(4, 2, 2\), not int64 \(4, 2, 3\)"),
        (np.zeros((4, 2, 2)), "integers"),
        (np.full((4, 2, 2), 128), "-128 to 127"),
    ],
)
def test_input_of_another_shape_or_range_is_refused(
    program: LoadedNetwork, image: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        program.run(image)


@pytest.mark.parametrize(
    "name",
    [
        "max78000-mnist",
        "max78002-mnist",
        "fifostream-15ch-hwc",
        "own-fifo-stream-chw",
        "opt-fast-fifo-quad-mnist",
        "eltwiseadd-5op-31ch",
        "burnin_64x8x8",
    ],
)
def test_the_own_input_set_by_hand_gives_the_same(name: str, shared: Path) -> None:
    """Reading the recorded input back and setting it again changes nothing; another input does."""
    recording = shared / "kat" / "cases" / name / "golden.npz"
    chip = "MAX78002" if "78002" in name else "MAX78000"
    program = LoadedNetwork.of_words(recording, chip)
    random = np.random.default_rng(1)
    images = [random.integers(-128, 128, program.input_shape) for _ in range(2)]
    outputs = [program.run(image).output() for image in (*images, images[0])]
    assert (outputs[0] == outputs[2]).all()
    assert (outputs[0] != outputs[1]).any()


def two_layers() -> LoadedNetwork:
    words = one_by_one(np.array([[[1, 2], [3, 4]]]), np.array([[128 // 2], [-128]]))
    return LoadedNetwork(MAX78000, Writes.of(words.rows))


def channels(run_output: np.ndarray) -> list[SimulatedChannel]:
    return [SimulatedChannel(0, lane, 0x800, values) for lane, values in enumerate(run_output)]


def test_layers_that_are_as_simulated_do_not_depart() -> None:
    run = two_layers().run()
    assert departure_of_layers(run, AddressMap(MAX78000), {0: channels(run.output())}) is None


def test_first_value_that_departs_from_the_simulation_is_named() -> None:
    run = two_layers().run()
    simulated = run.output().copy()
    simulated[1, 1, 0] += 5
    simulated[1, 1, 1] += 1
    found = departure_of_layers(run, AddressMap(MAX78000), {0: channels(simulated)})
    assert isinstance(found, Departure)
    assert str(found) == ("layer 0, channel 1, row 1, column 0 (0x50402008): expected 2, found -3")


def test_channel_that_is_not_delivered_is_named() -> None:
    run = two_layers().run()
    elsewhere = [SimulatedChannel(3, 1, 0x800, run.output()[0])]
    found = departure_of_layers(run, AddressMap(MAX78000), {0: elsewhere})
    assert found == "layer 0 does not deliver channel 0 at instance 3 lane 1 word 2048"


def test_wrong_words_of_32_bits_are_told_as_numbers() -> None:
    words = one_by_one(np.array([[[-1]]]), np.array([[100], [50]]), lctl={"wide": 1})
    run = LoadedNetwork(MAX78000, Writes.of(words.rows)).run()
    wrong = [(0x50402004, 0, 0xFFFFFFCE), (0x50402000, 1, 0xFFFFFF9C)]
    found = departure_of_words(run, AddressMap(MAX78000), wrong)
    assert str(found) == "layer 0, channel 0, row 0, column 0 (0x50402000): expected 1, found -100"
    assert departure_of_words(run, AddressMap(MAX78000), [(0x50406000, 1, 2)]) is None
