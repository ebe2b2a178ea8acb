"""The report of a project for a microcontroller: page and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.commands import targets
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from tests.conftest import ROOT

DIGITS = [
    "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
    "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
    "--sample-input", str(ROOT / "tests/sample_digits.npy"),
]  # fmt: skip


MCU = ("--device", "MCU", "--mcu", "stm32l4r5")


def report(folder: Path, name: str, *options: str) -> None:
    words = [*options, *DIGITS, "--test-dir", str(folder), "--prefix", "net"]
    targets.main("ai8xize.py", [*words, "--overwrite", "--report", str(folder / name)])


def test_page_and_json_tell_what_fits_where_time_goes_and_what_comes_out(tmp_path: Path) -> None:
    report(tmp_path, "r.html", *MCU)
    page, facts = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    for part in ("It fits.", "55% of them go into layer 1 (conv2)", "Outputs for the sample",
                 "Memory over time", "data:image/png;base64,"):  # fmt: skip
        assert part in page
    assert len(page) < 300_000 and "http" not in page and "<script" not in page
    assert facts["version"] == 1 and facts["fits"] and facts["core"] == "cortex-m4"
    assert [row["multiplications"] for row in facts["steps"]] == [18432, 221184, 110592, 2560]
    assert facts["multiplications"] == 352768 and facts["slowest_layer"] == 1
    assert abs(sum(row["share"] for row in facts["steps"]) - 1) < 1e-9
    assert [row["result"]["limits"] for row in facts["steps"]][-1] == [-(2**31), 2**31 - 1]
    assert {need["what"] for need in facts["needs"]} == {"RAM", "Flash"}


@pytest.mark.parametrize("target", [MCU, ("--device", "MAX78000")])
def test_the_second_file_replaces_reports_only(tmp_path: Path, target: tuple[str, ...]) -> None:
    (tmp_path / "r.json").write_text("notes")
    with pytest.raises(DiagnosticError, match="r.json is there and no report") as caught:
        report(tmp_path, "r.html", *target)
    assert caught.value.diagnostics[0].code == "E060"
    assert (tmp_path / "r.json").read_text() == "notes" and not (tmp_path / "net").exists()
    (tmp_path / "r.json").unlink()
    for _ in range(2):
        report(tmp_path, "r.html", *target)


def test_json_alone(tmp_path: Path) -> None:
    report(tmp_path, "only.json", *MCU)
    assert json.loads((tmp_path / "only.json").read_text())["name"] == "net"
    assert not (tmp_path / "only.html").exists()


def pages_of(folder: Path, *options: str) -> tuple[str, dict[str, Any], str]:
    """Return page, JSON and message of a network that is refused."""
    with pytest.raises(DiagnosticError) as caught:
        report(folder, "r.html", *options)
    assert not (folder / "net").exists()
    page, facts = (folder / "r.html").read_text(), json.loads((folder / "r.json").read_text())
    assert facts["version"] == 1 and not facts["fits"] and "It does not fit." in page
    return page, facts, str(caught.value)


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        (("--device", "MCU", "--mcu", "ch32v003"), "E905", "those of layer 1 (conv2) alone"),
        (("--device", "CMSIS-NN", "--mcu", "stm32l4r5", "--l1", "1500"), "E905", "the smallest"),
        ((*MCU, "--scheme", "planes", "--l1", "900"), "E905", "layer 1 (conv2) needs"),
        ((*MCU, "--flash", "9000", "--l2", "1M", "--l1", "64K"), "E905", "and 0 of l3"),
    ],
)
def test_a_network_that_does_not_fit_has_the_same_page(
    options: tuple[str, ...], code: str, part: str, tmp_path: Path
) -> None:
    page, facts, message = pages_of(tmp_path, *options)
    (found,) = (one for one in facts["messages"] if one["severity"] == "error")
    assert found["code"] == code and part in found["message"] and found["message"] in message
    assert found["remedy"] and found["remedy"] in page
    for need in facts["needs"]:
        over = need["used"] - need["of"]
        assert (f"{over:,} too many" in page) == (over > 0)
    for shown in ("What takes the most memory", "Where the time goes", "Memory over"):
        assert shown in page
    assert [need["what"] for need in facts["needs"]] == ["RAM", "Flash"]
    assert any(need["used"] > need["of"] for need in facts["needs"])
    assert len(facts["steps"]) == 4 and len(page) < 300_000


def test_page_says_which_plan_would_fit(tmp_path: Path) -> None:
    page, facts, _ = pages_of(tmp_path, *MCU, "--scheme", "planes", "--l1", "3400")
    assert all(need["used"] <= need["of"] for need in facts["needs"])
    assert "the plan below (resident), which needs no further memory, would" in page


def test_plans_of_memory_levels_have_the_same_page_and_json(tmp_path: Path) -> None:
    report(tmp_path, "r.html", *MCU, "--l1", "8K", "--l2", "256K", "--scheme", "first")
    page, facts = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    assert facts["fits"] and facts["scheme"] == "levels" and facts["version"] == 1
    assert [need["what"] for need in facts["needs"]] == ["L1", "L2", "Flash"]
    assert facts["multiplications"] == 352768
    assert "It fits." in page and "Outputs for the sample" in page and "Copied: " in page


def test_page_of_functions_that_are_called_has_no_cycles(tmp_path: Path) -> None:
    words = ["--device", "CMSIS-NN", "--mcu", "stm32l4r5", "--prefix", "net",
             "--config-file", str(ROOT / "networks/mnist-chw-ai85.yaml"),
             "--checkpoint-file", str(ROOT / "trained/mnist-ai85net5-qat8-q.pth.tar"),
             "--sample-input", str(ROOT / "tests/sample_mnist.npy")]  # fmt: skip
    targets.main(
        "ai8xize.py", [*words, "--test-dir", str(tmp_path), "--report", str(tmp_path / "r.html")]
    )
    facts = json.loads((tmp_path / "r.json").read_text())
    assert facts["fits"] and facts["cycles"] is None
    kernels = [row["kernel"] for row in facts["steps"] if row["layer"] == 1]
    assert kernels == ["arm_maxpool_q7_HWC", "arm_convolve_HWC_q7_fast"]


@pytest.mark.parametrize("name", ["net.yaml", "net.html"])
def test_report_never_takes_the_place_of_an_input(name: str, tmp_path: Path) -> None:
    source = Path(DIGITS[1]).read_bytes()
    (tmp_path / name).write_bytes(source)
    words = [*MCU, "--config-file", str(tmp_path / name), *DIGITS[2:], "--test-dir", str(tmp_path)]
    with pytest.raises(InputError, match="input and output are the same file"):
        targets.main("ai8xize.py", [*words, "--prefix", "net", "--report", str(tmp_path / name)])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [source]


def test_project_never_takes_the_place_of_an_input(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    described = tmp_path / "net" / "main.c"
    described.write_bytes(Path(DIGITS[1]).read_bytes())
    (tmp_path / "net.yaml").symlink_to(described)
    words = [*MCU, "--config-file", str(tmp_path / "net.yaml"), *DIGITS[2:], "--overwrite"]
    for more in ((), ("--container", str(tmp_path / "net.nnb"))):
        with pytest.raises(InputError, match="input and output are the same file"):
            targets.main(
                "ai8xize.py", [*words, "--test-dir", str(tmp_path), "--prefix", "net", *more]
            )
    assert described.read_bytes() == Path(DIGITS[1]).read_bytes()
