"""train.py --exit: a second head is trained, and the margin at which it ends the network chosen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.exits import exit_of
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.commands.quantize.arguments import parse as parse_quantize
from ai8xtools.commands.quantize.quantize import quantize
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.loop.exits import ExitChoice, choose
from tests.training.conftest import Done

Train = Callable[..., Done]
EXIT = ("--exit", "1", "--device", "MAX78002")


def test_from_training_to_firmware(tiny: Train, tmp_path: Path) -> None:
    """The margin that training tells is that of the generated program."""
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    done = tiny("ai85digitsnet", "digits", *EXIT, "--epochs", "2", "--qat-policy", "qat.yaml")
    assert done.status == 0, done.error
    found = re.search(r"behind layer 1: with a margin of (\d+), ([\d.]+) % of 143 val", done.output)
    assert found, done.output
    assert re.search(r"==> Top1: [\d.]+ .* Exit: [\d.]+", done.output)
    result = tmp_path / "q.pth.tar"
    best = str(done.folder / "qat_best.pth.tar")
    assert quantize(parse_quantize([best, str(result), "--device", "MAX78002"])) == 0
    np.save("sample.npy", np.full((1, 8, 8), 30))
    words = ["--device", "MAX78002", "--model", "ai85digitsnet", "--dataset", "digits"]
    words += ["--checkpoint-file", str(result), "--sample-input", "sample.npy"]
    assert create_project(parse([*words, "--test-dir", str(tmp_path), "--prefix", "net"])) == 0
    assert f"#define CNN_EXIT_MARGIN {found[1]}\n" in (tmp_path / "net" / "cnn.h").read_text()


@pytest.mark.parametrize("seed", range(8))
def test_the_margin_is_the_smallest_allowed(seed: int) -> None:
    """Against all margins tried one by one; scores are coarse, so that many margins are equal."""
    random = torch.Generator().manual_seed(seed)
    last, early = torch.randint(-9, 9, (2, 60, 4), generator=random).float()
    labels = torch.randint(4, (60,), generator=random)
    last[torch.arange(60), labels] += 5
    loss = seed / 40
    two = early.topk(2, 1).values
    leads = (two[:, 0] - two[:, 1]).long()
    right = last.argmax(1) == labels

    def result(margin: int) -> ExitChoice:
        stops = leads >= margin
        with_exit = torch.where(stops, early.argmax(1) == labels, right)
        means = (float(part.double().mean()) for part in (stops, with_exit, right))
        return ExitChoice(margin, *means)

    tried = [result(margin) for margin in sorted({*leads.tolist(), int(leads.max()) + 1} - {0})]
    expected = next(one for one in tried if one.accuracy >= one.full_accuracy - loss - 1e-9)
    chosen = choose(last, early, labels, loss)
    assert chosen.margin == expected.margin
    assert chosen.share == pytest.approx(expected.share)
    assert chosen.accuracy == pytest.approx(expected.accuracy)
    assert chosen.full_accuracy == pytest.approx(expected.full_accuracy)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("--exit", "4", "--device", "MAX78002"), 1, "E636"),
        (("--exit", "1", "--device", "MAX78000"), 2, "only MAX78002 can start behind an exit"),
        ((*EXIT, "--regression"), 2, "not together with --regression"),
    ],
)
def test_what_can_have_no_exit(words: tuple[str, ...], status: int, text: str, tiny: Train) -> None:
    done = tiny("ai85digitsnet", "digits", *words)
    assert done.status == status
    assert text in done.error
    assert not Path("logs").exists()


@pytest.mark.parametrize("entry", [3, {}, {"layer": 1}, {"layer": True, "margin": 2},
                                   {"layer": 1, "margin": 2**31}])  # fmt: skip
def test_damaged_entries_of_checkpoints(entry: Any) -> None:
    with pytest.raises(CheckpointError, match="early_exit") as caught:
        exit_of({"early_exit": entry}, "q.pth.tar")
    assert isinstance(caught.value, InputError)
    assert caught.value.code == "E506"
