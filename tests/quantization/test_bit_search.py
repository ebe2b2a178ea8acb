"""The search for widths: what a budget allows, what is measured, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.quantize import searcher
from ai8xtools.commands.quantize.arguments import parse
from ai8xtools.commands.quantize.quantize import quantize
from ai8xtools.commands.quantize.searcher import budget_bytes, policy_text
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import bit_search
from ai8xtools.quantization.bit_search import Sensitivity, Step, within
from ai8xtools.training.policies import qat
from device import Chip
from tests.conftest import ROOT

DIGITS = str(ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar")


def words(output: Path, *more: str) -> list[str]:
    return [DIGITS, str(output), "--device", "MAX78000", "--calibrate", "digits",
            "--calibration-samples", "32", "--search-bits", *more]  # fmt: skip


def test_bits_within_the_budget_and_their_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, policy = tmp_path / "q.pth.tar", tmp_path / "policy.yaml"
    quantize(parse(words(output, "--budget", "40%", "--write-policy", str(policy))))
    state = read_checkpoint(str(output)).state_dict
    names = ("conv1", "conv2", "conv3", "fc")
    bits = {name: int(state[f"{name}.weight_bits"].item()) for name in names}
    sizes = {name: state[f"{name}.op.weight"].size for name in names}
    assert sum(sizes[n] * bits[n] for n in names) <= 0.4 * 8 * sum(sizes.values())
    assert max(bits.values()) > 2  # not simply the fewest
    read = qat.read_policy(str(policy))
    assert {n: read["overrides"].get(n, read)["weight_bits"] for n in names} == bits
    rows = [line for line in capsys.readouterr().out.splitlines() if "conv1:" in line]
    assert "100.0%" in rows[0]
    assert "conv1:1 conv2:1 conv3:1 fc:1" in rows[-1]
    assert [row.startswith("*") for row in rows].count(True) == 1
    for name in names:  # integers of the width
        weights = state[f"{name}.op.weight"]
        assert weights.min() >= -(2 ** (bits[name] - 1))
        assert weights.max() < 2 ** (bits[name] - 1)


@pytest.mark.parametrize("budget", ["1000", "5%"])
def test_budget_that_no_bits_meet_is_refused_at_once(budget: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fewest bits") as caught:
        quantize(parse(words(tmp_path / "q.pth.tar", "--budget", budget)))
    assert caught.value.code == "E713"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("budget", ["", "x", "-3", "%", "4.5"])
def test_budget_that_is_no_number_is_wrong_usage(budget: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words(tmp_path / "q.pth.tar", "--budget", budget))
    assert caught.value.code == 2


@pytest.mark.parametrize("dropped", ["--calibrate", "--budget"])
def test_search_needs_samples_and_a_budget(dropped: str, tmp_path: Path) -> None:
    given = words(tmp_path / "q.pth.tar", "--budget", "5000")
    place = given.index(dropped)
    with pytest.raises(SystemExit):
        parse(given[:place] + given[place + 2 :])


def test_best_step_within_the_budget_wins() -> None:
    steps = [Step({"a": 8}, 80, 40, 1), Step({"a": 4}, 40, 20, 1), Step({"a": 2}, 20, 21, 1)]
    assert within(steps, 100) is steps[0]
    assert within(steps, 40) is steps[2]
    with pytest.raises(InputError, match="19 bytes are less"):
        within(steps, 19)


def test_each_step_adds_the_least_noise_for_the_bytes_that_it_frees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kept(_: Any, bits: dict[str, int], *__: Any) -> Step:
        return Step(dict(bits), 0, 0, 1)

    monkeypatch.setattr(bit_search, "_measured", kept)
    random = np.random.default_rng(3)
    for _ in range(20):
        noise = {name: dict(zip((8, 4, 2, 1), np.sort(random.random(4)), strict=True))
                 for name in "abc"}  # fmt: skip
        counts = {name: int(random.integers(1, 50)) for name in "abc"}
        layers = [Sensitivity(name, counts[name], {}, noise[name]) for name in "abc"]
        steps: list[Any] = [one.bits for one in bit_search.search(layers, None, None, [])]  # type: ignore[arg-type]
        assert steps[0] == dict.fromkeys("abc", 8)
        for before, after in pairwise(steps):
            (name,) = (name for name in "abc" if before[name] != after[name])
            price = {}
            for other in "abc":
                for fewer in (1, 2, 4):
                    held = before[other]
                    freed = -(-counts[other] * held // 8) - -(-counts[other] * fewer // 8)
                    if fewer < held and freed > 0:
                        price[other, fewer] = (noise[other][fewer] - noise[other][held]) / freed
            assert price[name, after[name]] == min(price.values())
        last = steps[-1]
        assert all(-(-counts[n] * last[n] // 8) == -(-counts[n] // 8) for n in "abc")


def test_budget_is_bytes_or_a_share() -> None:
    assert budget_bytes("1234", 5000) == 1234
    assert budget_bytes("12.5%", 5000) == 625


def test_policy_names_only_what_differs() -> None:
    text = policy_text({"a": 2, "b": 8, "c": 2})
    assert "weight_bits: 2\noverrides:\n  b:\n    weight_bits: 8\n" in text
    assert "overrides" not in policy_text({"a": 2, "c": 2})


@pytest.mark.parametrize(("most", "chosen"), [(8, 0), (4, 1), (2, 2), (1, None)])
def test_fits_takes_the_most_bits_that_the_chip_holds(
    most: int, chosen: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [Step({"a": 8, "b": 8}, 80, 40, 1), Step({"a": 4, "b": 8}, 60, 30, 1),
             Step({"a": 2, "b": 8}, 50, 20, 1)]  # fmt: skip

    def found(options: Any, chips: Sequence[Chip]) -> list[Any]:
        """Judge by the bits of layer a in the policy, on the chip that was asked for."""
        policy = qat.read_policy(options.qat_policy)
        bits = policy["overrides"].get("a", policy)["weight_bits"]
        fit = SimpleNamespace(fits=bits <= most, reasons=(f"{bits} bits are too many",))
        other = SimpleNamespace(fits=False, reasons=("another chip",))
        return [fit if chip.die == options.device else other for chip in chips]

    monkeypatch.setattr(searcher, "fits_of_run", found)
    given = parse(words(tmp_path / "q.pth.tar", "--budget", "fits"))
    assert given.calibration is not None
    asked = given.network, given.calibration
    if chosen is not None:
        assert searcher.first_that_fits(steps, *asked, "x") is steps[chosen]
        return
    with pytest.raises(InputError, match="2 bits are too many") as caught:
        searcher.first_that_fits(steps, *asked, "x")
    assert caught.value.code == "E713"
