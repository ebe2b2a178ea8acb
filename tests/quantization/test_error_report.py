"""quantize.py --report: the numbers against other ways to get them, the formats, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.quantize.arguments import parse
from ai8xtools.commands.quantize.error_report import costliest, report_text
from ai8xtools.commands.quantize.quantize import quantize
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.layer_errors import LayerError, NetworkErrors
from tests.conftest import ROOT

DIGITS = str(ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar")
LAYERS = ["conv1", "conv2", "conv3", "fc"]


def words(folder: Path, suffix: str, *more: str) -> list[str]:
    return [DIGITS, str(folder / "q.pth.tar"), "--device", "MAX78000",
            "--report", str(folder / f"r{suffix}"), *more]  # fmt: skip


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searched")
    quantize(parse(words(folder, ".json", "--calibrate", "digits", "--calibration-samples", "32",
                         "--search-bits", "--budget", "40%")))  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def facts(searched: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((searched / "r.json").read_text())
    return read


def test_weights_are_compared_with_the_integers_that_were_written(
    searched: Path, facts: dict[str, Any]
) -> None:
    trained = read_checkpoint(DIGITS).state_dict
    state = read_checkpoint(str(searched / "q.pth.tar")).state_dict
    for tensor in facts["tensors"]:
        name = tensor["name"]
        if name.endswith("weight"):
            layer = name.removesuffix(".op.weight")
            bits, shift = (
                int(state[f"{layer}.{k}"].item()) for k in ("weight_bits", "output_shift")
            )
            held = state[name] * 2.0 ** (shift + 1 - bits)
            noise = np.square(held - trained[name]).sum(dtype=np.float64)
            wanted = 10 * np.log10(np.square(trained[name]).sum(dtype=np.float64) / noise)
            assert tensor["bits"] == bits
            assert tensor["snr_db"] == pytest.approx(wanted, abs=1e-3)
            assert 0 <= tensor["clipped"] <= 1


def test_layers_and_results_are_measured_on_the_samples(facts: dict[str, Any]) -> None:
    assert facts["samples"] == {"dataset": "digits", "count": 32}
    assert [layer["name"] for layer in facts["layers"]] == LAYERS
    chosen = next(step for step in facts["search"] if step["chosen"])
    assert facts["results"]["snr_db"] == pytest.approx(chosen["snr_db"], abs=1e-6)
    assert facts["results"]["same"] == chosen["same"]
    assert 0.9 < facts["results"]["trained_right"] <= 1
    worst = min(facts["layers"], key=lambda layer: layer["alone_snr_db"])
    assert facts["noisiest"] == worst["name"]
    assert worst["alone_snr_db"] > facts["results"]["snr_db"]  # of all layers together
    fewest = min(chosen["bits"].values())
    assert chosen["bits"][worst["name"]] == fewest


def test_curve_runs_from_eight_bits_to_one(facts: dict[str, Any]) -> None:
    steps = facts["search"]
    assert set(steps[0]["bits"].values()) == {8}
    assert set(steps[-1]["bits"].values()) == {1}
    assert [s["bytes"] for s in steps] == sorted((s["bytes"] for s in steps), reverse=True)
    assert sum(s["chosen"] for s in steps) == 1


def test_page_has_the_tables_the_curve_and_no_foreign_markup(facts: dict[str, Any]) -> None:
    layers = [{**facts["layers"][0], "name": "<b>&"}, *facts["layers"][1:]]
    page = report_text({**facts, "layers": layers, "noisiest": "<b>&"}, "x.HTML")
    assert "&lt;b&gt;&amp; adds most noise" in page
    assert "<b>&" not in page
    assert page.count("<circle") == sum(s["snr_db"] is not None for s in facts["search"])
    assert page.count("<tr") == sum(
        len(rows) + 1 for rows in (facts["tensors"], layers, layers, facts["search"])
    )
    assert not re.search(r"https?://|<script", page)


def layer(name: str, snr: float, right: float) -> LayerError:
    return LayerError(name, 30.0, 0.0, snr, 1.0, right)


@pytest.mark.parametrize(("right", "found"), [(0.8, "b"), (0.9, None), (0.95, None)])
def test_costliest_layer_is_the_one_with_least_accuracy_alone(
    right: float, found: str | None
) -> None:
    layers = (layer("a", 10.0, 0.9), layer("b", 20.0, 0.85))
    assert costliest(NetworkErrors(layers, 9.0, 1.0, right, 0.9)) == found
    assert costliest(NetworkErrors(layers[:1], 9.0, 1.0, 0.89, 0.9)) is None


def test_weights_alone_need_no_samples_and_no_torch(tmp_path: Path) -> None:
    quantize(parse(words(tmp_path, ".txt")))
    text = (tmp_path / "r.txt").read_text()
    assert "add --report-data" in text
    assert all(f"{name}.op.weight" in text for name in LAYERS)


def test_an_unchanged_layer_has_no_error_in_the_outputs(tmp_path: Path) -> None:
    """With QAT of 8 bits only rounding is left: the results keep their largest value."""
    quantize(parse(words(tmp_path, ".json", "--report-data", "digits",
                         "--calibration-samples", "64")))  # fmt: skip
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["search"] is None
    assert found["results"]["same"] == 1
    assert all(30 < layer["alone_snr_db"] < 60 for layer in found["layers"])


@pytest.mark.parametrize(
    "given",
    [
        ["--report-data", "digits"],
        ["--report", "r", "--report-data", "digits", "--calibrate", "digits"],
    ],
)
def test_data_for_no_report_is_wrong_usage(given: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([DIGITS, "q.pth.tar", "--device", "MAX78000", *given])
    assert caught.value.code == 2


def test_report_in_place_of_another_file_is_refused(tmp_path: Path) -> None:
    for path in (DIGITS, str(tmp_path / "q.pth.tar")):
        with pytest.raises(InputError) as caught:
            quantize(parse([DIGITS, str(tmp_path / "q.pth.tar"), "--device", "MAX78000",
                            "--report", path]))  # fmt: skip
        assert caught.value.code == "E704"
    assert not list(tmp_path.iterdir())


def test_report_that_cannot_be_written_leaves_no_output(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    given = [DIGITS, str(tmp_path / "q.pth.tar"), "--device", "MAX78000"]
    with pytest.raises(OSError, match="folder"):
        quantize(parse([*given, "--report", str(tmp_path / "folder")]))
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_unfit_samples_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nosuch"):
        quantize(parse(words(tmp_path, ".txt", "--report-data", "nosuch")))
    assert not list(tmp_path.iterdir())
