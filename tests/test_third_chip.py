"""A chip more is a value more: made-up chips go through everything without another change."""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

import ai8x
import ai8xize
import emulate
import quantize
from ai8xtools import devices
from ai8xtools.diagnostics import DiagnosticError, run
from ai8xtools.layers.chips import Dev
from device import CHIPS, Chip, chip_named
from tests.conftest import ROOT
from tests.made_up_chips import MADE_UP, SMALL, UNPIPELINED
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import describe
from tests.synthesis.random_networks import random_networks
from tests.synthesis.test_random_networks import encoded, trying
from tools.rtl_program import TestProgram

DIGITS = (
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
)  # fmt: skip
each_chip = pytest.mark.parametrize("chip", MADE_UP, ids=lambda chip: chip.name)


@pytest.fixture(autouse=True)
def made_up_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tools know the made-up chips; nothing else is told of them."""
    monkeypatch.setattr("device.family.CHIPS", (*CHIPS, *MADE_UP))


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Run a script with a command line; return its exit status."""

    def call(script, *words: str) -> int:  # type: ignore[no-untyped-def]
        monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, words)])
        return run(script.main)

    return call


@each_chip
def test_project_passes_on_the_emulated_chip(tool, chip, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    report = tmp_path / "report.html"
    options = ("--softmax", "--zero-sram", "--verify", "--report", report)
    words = ("--device", chip.name, "--test-dir", tmp_path, "--prefix", "digits", *DIGITS)
    assert tool(ai8xize, *words, *options) == 0, capsys.readouterr().err
    assert "verified" in capsys.readouterr().out
    assert f"on {chip.name}" in report.read_text()
    assert tool(emulate, tmp_path / "digits") == 0, capsys.readouterr().err
    assert "*** PASS ***" in capsys.readouterr().out


@each_chip
@pytest.mark.parametrize("options", ["--rtl --zero-sram", "--rtl-preload", "--rtl --fifo --riscv"])
def test_rtl_test_passes_on_the_emulated_chip(tool, chip, options, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    words = ("--device", chip.name, "--test-dir", tmp_path, "--prefix", "net", *DIGITS)
    assert tool(ai8xize, *words, *options.split()) == 0, capsys.readouterr().err
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    running = TestProgram(folder, chip)
    assert running.run(), running.console


@each_chip
def test_layers_of_the_chip_are_counted(tool, chip, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    layer = {"operation": "passthrough", "processors": 1}
    for more in (0, 1):
        file = tmp_path / f"{more}.yaml"
        file.write_text(describe(*[layer] * (chip.max_layers + more)))
        words = ("--device", chip.name, "--test-dir", tmp_path, "--prefix", "net")
        sample = tmp_path / "sample.npy"
        np.save(sample, np.arange(16).reshape(1, 4, 4))
        assert tool(ai8xize, *words, "--config-file", file, "--sample-input", sample) == more
    assert f"beyond the last layer {chip.max_layers - 1} of {chip.name}" in capsys.readouterr().err


def test_options_that_a_chip_lacks_name_the_chips_that_have_them(tool, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    words = ("--test-dir", tmp_path, "--prefix", "net", *DIGITS)
    assert tool(ai8xize, "--device", SMALL.name, "--read-ahead", *words) == 1
    assert "use --device MAX78002 or MAX78010" in capsys.readouterr().err
    assert tool(ai8xize, "--device", UNPIPELINED.name, "--pipeline", *words) == 1
    assert "MAX78010 does not support it" in capsys.readouterr().err


@each_chip
@trying(20)
@given(data=st.data())
def test_random_networks_compute_what_is_expected(chip, tmp_path, data) -> None:  # type: ignore[no-untyped-def]
    drawn = data.draw(random_networks(chip=chip))
    try:
        program = encoded(drawn, tmp_path)[-1]
    except DiagnosticError:  # legal on the chips that the drawing is made for
        reject()
    assert emulated(program).wrong == []


@each_chip
def test_quantizer_takes_the_chip(tool, chip, tmp_path) -> None:  # type: ignore[no-untyped-def]
    trained = ROOT / "trained/digits-ai85digitsnet-qat8.pth.tar"
    out = tmp_path / "q.pth.tar"
    assert tool(quantize, trained, out, "--device", chip.name) == 0
    wanted = ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"
    assert out.stat().st_size == pytest.approx(wanted.stat().st_size, rel=0.1)


@each_chip
def test_layers_know_the_limits_of_the_chip(chip: Chip) -> None:
    assert devices.device(chip.name) == devices.device(f"ai{chip.die}") == chip.die
    assert devices.partnum(chip.die) == chip.name
    for name in (chip.die, chip.name):
        ai8x.set_device(name, simulate=False, round_avg=True, verbose=False)
    made: Dev | None = ai8x.dev
    assert made is not None and type(made).__name__ == f"DevAI{chip.die}"
    assert (made.name, made.WEIGHT_DEPTH) == (chip.name, chip.kernel_columns_first)
    ai8x.MaxPool2d(2, dilation=chip.max_pool_dilation)
    with pytest.raises(AssertionError, match=f"{chip.name} allows 1 to {chip.max_pool_dilation}"):
        ai8x.MaxPool2d(2, dilation=chip.max_pool_dilation + 1)
    ai8x.Conv1d(128, 4, 3, padding=1)
    ai8x.FusedConv2dAbs(4, 4, 3)


def test_depthwise_layers_name_every_chip_that_has_them() -> None:
    ai8x.set_device(SMALL.die, simulate=False, round_avg=False, verbose=False)
    with pytest.raises(AssertionError, match="MAX78010 or MAX78002|MAX78002 or MAX78010"):
        ai8x.Conv2d(4, 4, 3, groups=4)
    ai8x.set_device(UNPIPELINED.die, simulate=False, round_avg=False, verbose=False)
    ai8x.Conv2d(4, 4, 3, groups=4)


def test_names_are_refused_with_all_chips() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="MAX78004"):
        devices.device("MAX78003")
    with pytest.raises(ValueError, match="MAX78010 .or 90."):
        chip_named("MAX78003")
