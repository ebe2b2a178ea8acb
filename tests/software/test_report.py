"""The report of a project for a microcontroller: page and JSON."""

from __future__ import annotations

import json
from pathlib import Path

from commands.loader.arguments import parse
from commands.loader.create import create_project
from tests.conftest import ROOT


def report(folder: Path, name: str) -> None:
    create_project(
        parse([
            "--device", "MCU", "--mcu", "stm32l4r5", "--config-file",
            str(ROOT / "networks/digits-chw-ai85.yaml"), "--checkpoint-file",
            str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"), "--sample-input",
            str(ROOT / "tests/sample_digits.npy"), "--test-dir", str(folder), "--prefix", "net",
            "--overwrite", "--report", str(folder / name),
        ])
    )  # fmt: skip


def test_page_and_json_tell_what_fits_where_time_goes_and_what_comes_out(tmp_path: Path) -> None:
    report(tmp_path, "r.html")
    page, facts = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    for part in ("It fits.", "56% of them go into layer 1 (conv2)", "Outputs for the sample",
                 "Memory over time", "data:image/png;base64,"):  # fmt: skip
        assert part in page
    assert len(page) < 300_000 and "http" not in page and "<script" not in page
    assert facts["version"] == 1 and facts["fits"] and facts["core"] == "cortex-m4"
    assert [row["multiplications"] for row in facts["steps"]] == [18432, 221184, 110592, 2560]
    assert facts["multiplications"] == 352768 and facts["slowest_layer"] == 1
    assert abs(sum(row["share"] for row in facts["steps"]) - 1) < 1e-9
    assert [row["result"]["limits"] for row in facts["steps"]][-1] == [-(2**31), 2**31 - 1]
    assert {need["what"] for need in facts["needs"]} == {"RAM", "Flash"}


def test_json_alone(tmp_path: Path) -> None:
    report(tmp_path, "only.json")
    assert json.loads((tmp_path / "only.json").read_text())["name"] == "net"
    assert not (tmp_path / "only.html").exists()
