"""--fits for microcontrollers says what generation with the same options does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import ai8xize
from ai8xtools.diagnostics import run
from tests.conftest import ROOT
from tests.software.test_qformat import saved, stored_network

DIGITS = (
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
)  # fmt: skip
LEVELED = """core: cortex-m4
flash: 16K
l1: 3K
l2: 8K
l3: 1M
l3_writable: true
weights: l3
dma: 3
stack: 1K
"""
CASES = [
    "--mcu rp2040",
    "--mcu rp2040 --l1 4K",
    "--mcu rp2040 --l1 1K",
    "--mcu rp2040 --scheme rows",
    "--mcu ch32v003",
    "--mcu ch32v002 --flash 64K",
    "--mcu stm32h743",
    "--mcu stm32h743 --l1 2K --dma",
    "--mcu nrf52832 --l1 3K --l2 64K",
    "--mcu nrf52832 --l1 3K --l2 64K --scheme first",
    "--mcu nrf52832 --l1 3K --l2 64K --scheme planes",
    "--mcu nrf52832 --l1 2500 --scheme pixels",
    "--mcu nrf52832 --scheme chain --kernels c",
    "--mcu nrf52832 --flash 8K --l3 1M",
    "--mcu nrf52832 --flash 8K --l3 16K --l1 4K",
    "--mcu leveled.yaml",
    "--mcu leveled.yaml --l1 2K",
    "--mcu leveled.yaml --scheme rows",
    "--mcu rp2040 --like MAX78000",
    "--mcu rp2040 --stop-after 1",
    "--mcu rp2040 --container net.nnb",
    "--mcu ch32v003 --container net.nnb",
    "--mcu rp2040 --container net.nnb --slot 1K",
    "--mcu rp2040 --container net.nnb --slot 512K --arena 8K",
    "--mcu rp2040 --container net.nnb --slot 2M",
]
CALLS = ["", "--mcu nrf52832", "--mcu ch32v003", "--mcu nrf52832 --l1 4K", "--cmsis-nn nowhere"]
QFORMAT = ["--mcu rp2040", "--mcu ch32v003", "--mcu ch32v002 --l1 64K", "--mcu rp2040 --flash 1K"]


def said(capsys: Any, monkeypatch: Any, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", *words])
    status = run(ai8xize.main)
    captured = capsys.readouterr()
    return status, " ".join((captured.out + captured.err).split())


def agreed(capsys: Any, monkeypatch: Any, *words: str) -> dict[str, Any] | None:
    """Return what --fits says of the microcontroller that is named; None if it was refused.

    Status, bytes and the message of a refusal are those of a real run.
    """
    status, real = said(capsys, monkeypatch, *words, "--prefix", "net")
    assert (status == 0) == Path("net").exists()
    judged, text = said(capsys, monkeypatch, *words, "--fits", "json")
    assert judged == status
    if not text.startswith("["):
        assert status == 1 and text == real
        return None
    found = json.loads(text)
    one = next(entry for entry in found if "core" in entry)
    assert one["fits"] == (status == 0)
    assert one["clock_mhz"] is one["time"] is one["load_milliseconds"] is None
    assert all(part in real for reason in one["reasons"] for part in reason.split("; "))
    if one["fits"]:
        ram = one["memories"]["SRAM"]["used"]
        flash = one["memories"]["flash"]["used"]
        assert one["plan"] == "container" or f"{ram:,}" in real
        assert one["plan"] in ("container", "levels") or f"{flash:,}" in real
    return dict(one)


@pytest.mark.parametrize("line", CASES)
def test_the_verdict_is_that_of_a_real_run(
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leveled.yaml").write_text(LEVELED)
    agreed(capsys, monkeypatch, "--device", "MCU", *DIGITS, "--test-dir", ".", *line.split())


@pytest.mark.parametrize("line", CALLS)
def test_the_verdict_for_calls_is_that_of_a_real_run(
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    agreed(capsys, monkeypatch, "--device", "CMSIS-NN", *DIGITS, "--test-dir", ".", *line.split())


@pytest.mark.parametrize("line", QFORMAT)
def test_the_verdict_for_16_bits_is_that_of_a_real_run(
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path, stored_network())
    words = ("--checkpoint-file", path, "--test-dir", ".", *line.split())
    one = agreed(capsys, monkeypatch, "--device", "MCU", *words)
    assert one is not None
    status, table = said(capsys, monkeypatch, "--device", "MCU", *words, "--fits")
    assert status == int(not one["fits"])
    assert "MAX78000 " not in table and "esp32c3" in table


def test_levels_behind_the_first_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leveled.yaml").write_text(LEVELED)
    words = ("--device", "MCU", *DIGITS, "--test-dir", ".", "--mcu", "leveled.yaml")
    one = agreed(capsys, monkeypatch, *words)
    assert one is not None and one["plan"] == "levels"
    assert one["memories"]["L2"]["used"] > 0 and one["memories"]["L3"]["available"] == 1 << 20
    _, table = said(capsys, monkeypatch, *words, "--fits")
    assert f"L2 {one['memories']['L2']['used']:,} of 8,192" in table
