"""Cycles estimated from executed registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.report.cycles import STARTUP_CYCLES, Cycles, format_cycles, network_cycles
from ai8xtools.emulator.words.recording import read_words
from device import MAX78000
from device.chip import DEFAULT_APB_BASE
from tests.emulator.by_hand import Words, one_by_one

OTHER_LAYERS = {  # the estimate is for other layers than those in the registers
    "opt-repeat-layers-mnist",
    "opt-zero-unused-mnist",
    "own-simulated-sequence",
}


def cycles(words: Words) -> Cycles:
    run, accelerator = words.run()
    return network_cycles(accelerator.memory, [run.layers[0].config])[0]


def test_one_pixel_costs_what_the_specification_says() -> None:
    """Worked example: 1x1 input, one channel, 3x3 kernel with pad 1."""
    words = one_by_one(np.array([[[1]]]), np.array([[1]]))
    words.layer(0, "RCNT", last=2, pad=1)
    words.layer(0, "CCNT", last=2, pad=1)
    words.layer(0, "ONED")
    assert cycles(words) == Cycles(0, 28, fetches=1, steps=1, uncertain=False)


def test_fetches_and_steps_are_counted() -> None:
    words = one_by_one(np.ones((3, 4, 4), int), np.ones((5, 3), int))
    found = cycles(words)
    assert (found.fetches, found.steps) == (16, 16 * 5)
    assert found.estimate == 16 * (2 + 5)


def test_table_shows_the_other_estimate_beside() -> None:
    rows = [Cycles(0, 1000, 10, 20, False), Cycles(2, 5, 1, 2, True)]
    assert format_cycles(rows, {0: 999}) == [
        "layer       cycles  fetches  kernel steps  analytic",
        "    0        1,000       10            20       999",
        "    2      5 (est)        1             2          ",
        "total  1,006 (est)       11            22     1,000",
    ]


def latency_cases(folder: Path) -> list[Path]:
    names = ("conv*", "pooling*", "max78000*", "opt*", "fifo*", "eltwise*", "mlp*", "own*", "mp*")
    return sorted({path for name in names for path in folder.glob(f"{name}/golden.npz")})


def test_estimates_are_those_of_the_known_answers(shared: Path) -> None:
    control = DEFAULT_APB_BASE + MAX78000.control_address(0, "CTL")
    compared, wrong = 0, {}
    for path in latency_cases(shared / "kat" / "cases")[::3]:
        with np.load(path) as golden:
            if "latency" not in golden or control not in golden["addr"]:
                continue
            wanted = int(golden["latency"].reshape(-1)[0])
        accelerator = Accelerator(MAX78000)
        accelerator.write(read_words(path).writes)
        try:
            run = accelerator.run()
        except EmulatorError:  # whether the words run is another test's subject
            continue
        layers = network_cycles(accelerator.memory, [done.config for done in run.layers])
        found = STARTUP_CYCLES + sum(layer.estimate for layer in layers)
        compared += 1
        if found != wanted:
            wrong[path.parent.name] = (found, wanted)
    assert compared > 60
    assert set(wrong) <= OTHER_LAYERS, wrong


@pytest.mark.parametrize("name", ["fifostream-15ch-hwc", "own-fifo-stream-chw"])
def test_streams_are_uncertain(name: str, shared: Path) -> None:
    accelerator = Accelerator(MAX78000)
    accelerator.write(read_words(shared / "kat" / "cases" / name / "golden.npz").writes)
    run = accelerator.run()
    layers = network_cycles(accelerator.memory, [done.config for done in run.layers])
    assert layers[0].uncertain
