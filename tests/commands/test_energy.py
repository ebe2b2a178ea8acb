"""Estimates of energy: the published model, calibration by measurements, and what is refused."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ai8xize
from ai8xtools.commands.loader.measured_energy import read_measurements
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.synthesis.measured_energy import calibrated, doubts
from ai8xtools.values.estimate import Estimate
from device import MAX78000, MAX78002
from device.energy import Counts, energies
from tests.conftest import ROOT

PUBLISHED = ROOT.parent / "shared" / "spec" / "energy.json"
MNIST = (
    "--config-file", str(ROOT / "networks/mnist-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/mnist-ai85net5-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_mnist.npy"), "--fits",
)  # fmt: skip
COUNTS = (
    Counts(8_100_000, 757_900, 75_000, 16_000),
    Counts(7_740_000, 228_200, 72_000, 1_024),
    Counts(3_980_000, 69_900, 37_200, 4_096),
)
"""Of three networks that differ in processors a cycle."""
Fits = Callable[..., tuple[int, str]]


@pytest.fixture
def fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Fits:
    """Run ai8xize.py --fits of MNIST; return the status and all that it prints."""

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["ai8xize.py", *MNIST, *words])
        try:
            status = run(ai8xize.main)
        except SystemExit as exc:
            status = int(exc.code or 0)
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return call


def line(counts: Counts, planted: dict[str, float], mhz: float, idle: float = 0.0094) -> str:
    """Return what a monitor prints of a network on a board with the planted constants."""
    phases = [
        (words * planted[f"{kind}_nj"] * 1e-9, words * planted[f"{kind}_ns"] * 1e-9)
        for kind, words in (("word", counts.load_words), ("input", counts.input_words))
    ]
    joules = (planted["a"] * counts.processor_cycles + planted["b"] * counts.cycles) * 1e-12
    seconds = planted["factor"] * counts.cycles / mhz / 1e6
    phases.append((phases[1][0] + joules, phases[1][1] + seconds))
    return ",".join(f"{e:.6g},{t:.6g},{idle:.6g},{e / t + idle:.6g}" for e, t in phases)


@pytest.mark.parametrize("seed", range(4))
def test_planted_constants_are_found_again(seed: int, tmp_path: Path) -> None:
    numbers = random.Random(seed)
    planted = {
        "a": numbers.uniform(15, 40), "b": numbers.uniform(400, 1200),
        "factor": numbers.uniform(1, 1.4),
        "word_nj": numbers.uniform(8, 30), "input_nj": numbers.uniform(8, 30),
        "word_ns": numbers.uniform(150, 400), "input_ns": numbers.uniform(150, 400),
    }  # fmt: skip
    log = tmp_path / "log.csv"
    log.write_text("# three networks\n" + "".join(
        f"{c.processor_cycles},{c.cycles},{c.load_words},{c.input_words},{line(c, planted, 200)}\n"
        for c in COUNTS
    ))  # fmt: skip
    found = calibrated(read_measurements(str(log)), COUNTS[0], 200)
    for name, value in (
        ("a", found.processor_cycle_pj), ("b", found.cycle_pj), ("factor", found.time_factor),
        ("word_nj", found.word_nj), ("input_nj", found.input_nj), ("word_ns", found.word_ns),
        ("input_ns", found.input_ns),
    ):  # fmt: skip
        assert value == pytest.approx(planted[name], rel=0.02), name


def test_one_network_scales_both_constants(tmp_path: Path) -> None:
    """Active and idle power and the time of an inference: so many joules it takes."""
    log = tmp_path / "log.csv"
    log.write_text("0.2,0.01,0.001\n")
    found = calibrated(read_measurements(str(log)), COUNTS[1], 200)
    made = energies(COUNTS[1], MAX78002, 200, 50, pipelined=True, volts=1.1, calibration=found)
    assert made.inference.value == pytest.approx(0.19 * 0.001)
    assert made.inference.high == pytest.approx(1.15 * made.inference.value)
    assert found.processor_cycle_pj / found.cycle_pj == pytest.approx(27.5 / 770)
    published = energies(COUNTS[1], MAX78002, 200, 50, pipelined=True, volts=1.1)
    assert (made.input, made.weights) == (published.input, published.weights)


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing\n", "1,2\n", "1,2,x\n", "0.1,0.2,0.001\n", "nan,0.1,1\n", "1e400,1,1\n",
        "1,1,0,1,1,1,0,1,2,2,0,1\n",  # zero watts
        "1,1,.1,2,1,1,.1,1.1,3,2,.1,1.6\n",  # 1 J for 1.9 W in a second
        "1,1,.1,1.1,1,1,.1,1.1,1,1,.1,1.1\n",  # the inference takes nothing
        "0,5,1,1,0.2,0.01,0.001\n", "2.5,5,1,1,0.2,0.01,0.001\n",
        "1e308,1e-308,1e308\n", "0.2,0.01,1e-300\n",
        "inf,5,1,1,0.2,0.01,0.001\n", "nan,5,1,1,0.2,0.01,0.001\n",
    ],
)  # fmt: skip
def test_lines_that_no_meter_prints(text: str, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(text)
    with pytest.raises(InputError) as caught:
        read_measurements(str(log))
    assert caught.value.code == "E073"


def test_phases_that_are_too_short_are_told(tmp_path: Path) -> None:
    planted = {"a": 27.5, "b": 770, "factor": 1, "word_nj": 12, "input_nj": 12, "word_ns": 280,
               "input_ns": 280}  # fmt: skip
    log = tmp_path / "log.csv"
    log.write_text(line(Counts(4_000_000, 70_000, 40_000, 4_000), planted, 200))
    assert [text.split()[0] for text in doubts(read_measurements(str(log)))] == ["inference"]


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published measurements are not here")
def test_ranges_hold_what_was_published() -> None:
    networks = json.loads(PUBLISHED.read_text())["max78002"]["networks"]
    held = 0
    for one in networks:
        if not one["in_fit"]:
            continue
        found = one["counts"]
        counts = Counts(found["processor_cycles"], found["cycles"], one["weight_bytes"] // 4, 0)
        made = energies(counts, MAX78002, 200, 50, pipelined=True, volts=1.0)
        measured = one["inference"]["energy_uj"] * 1e-6
        assert made.inference.low <= measured <= made.inference.high, one["name"]
        assert made.weights.value == pytest.approx(one["weights"]["energy_uj"] * 1e-6, rel=0.06)
        held += 1
    assert held == 11


def test_supply_clock_and_chip() -> None:
    def of(volts: float, mhz: float = 200, *, pipelined: bool = True) -> Estimate:
        return energies(COUNTS[2], MAX78002, mhz, 50, pipelined=pipelined, volts=volts).inference

    assert of(1.1).value == pytest.approx(1.21 * of(1.0).value)
    slow = [of(1.0, mhz, pipelined=False).value for mhz in (30, 15, 7.5)]
    milliwatts = 1e3 * (slow[2] - slow[1]) / (COUNTS[2].cycles / 1e6 * (1 / 7.5 - 1 / 15))
    assert milliwatts == pytest.approx(6.6)
    assert slow == sorted(slow)
    words = [
        energies(COUNTS[2], MAX78002, 200, mhz, pipelined=True, volts=1.0).weights.value
        for mhz in (200, 50, 30)
    ]
    assert [word / COUNTS[2].load_words * 1e9 for word in words] == pytest.approx([25.5, 12.1, 7.2])
    first = energies(COUNTS[2], MAX78000, 50, 50, pipelined=False, volts=1.1).inference
    assert first.value == pytest.approx(of(1.0).value)
    assert first.high == pytest.approx(1.4 * first.value)


def test_command_line(fits: Fits, tmp_path: Path) -> None:
    status, text = fits("--supply-voltage", "1.0", "--period", "1")
    words = " ".join(text.split())
    assert status == 0
    assert " energy 90 uJ (54 to 130) 90 uJ (68 to 110) " in words
    assert " power, one in 1 s, LPM not known 1.4 mW (1.4 to 1.5) " in words
    assert "MAX78002: from published measurements of the vendor's kit at 1.0 V" in text
    log = tmp_path / "log.csv"
    log.write_text("0.2,0.01,0.001\n")
    status, text = fits("json", "--device", "MAX78002", "--energy-calibration", str(log))
    chips = {one["chip"]: one for one in json.loads(text)}
    assert status == 0
    assert chips["MAX78002"]["energy"]["source"] == "calibrated"
    assert chips["MAX78002"]["energy"]["joules"]["inference"]["value"] == pytest.approx(0.00019)
    assert chips["MAX78000"]["energy"]["source"] == "published"
    assert chips["MAX78002"]["counts"]["cycles"] == 70157
    mcu = chips["nrf52832"]
    assert mcu["milliseconds"] == pytest.approx(mcu["cycles"] / 64e3, rel=1e-4)
    joules = mcu["energy"]["joules"]["inference"]
    assert joules["value"] == pytest.approx(173e-12 * mcu["cycles"], rel=1e-4)
    assert joules["low"] < joules["value"] / 1.3 and joules["high"] > 1.3 * joules["value"]
    assert chips["stm32f746"]["energy"] is None


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("--energy-calibration", "log.csv"), 2, "add --device"),
        (("--device", "MAX78002", "--energy-calibration", "absent.csv"), 1, "absent.csv"),
        (("--period", "0"), 2, "is not a time"), (("--period", "nan"), 2, "is not a time"),
        (("--supply-voltage", "3.3"), 2, "invalid choice"),
    ],
)  # fmt: skip
def test_wrong_options(words: tuple[str, ...], status: int, text: str, fits: Fits) -> None:
    found, said = fits(*words)
    assert found == status
    assert text in said
