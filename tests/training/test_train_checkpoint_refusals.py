"""Checkpoints that train.py is given for the wrong purpose, or that are none."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import quantize
from ai8xtools.diagnostics import run

Train = Callable[..., Any]
LOAD = "--exp-load-weights-from"
FLOAT, INTEGER = "trained.pth.tar", "quantized.pth.tar"


@pytest.fixture
def pair(tiny: Train) -> Train:
    """Return `tiny`, with a checkpoint of tinyclassifier and its quantized twin in the folder."""
    folder = tiny("tinyclassifier", "tinyclasses", "--use-bias").folder
    os.replace(folder / "best.pth.tar", FLOAT)
    assert run(lambda: quantize.main([FLOAT, INTEGER, "--device", "MAX78000"])) == 0
    return tiny


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ((LOAD, INTEGER), "Name the checkpoint that training wrote; a quantized"),
        (("--resume-from", INTEGER, "--epochs", "3"), "Name the checkpoint that training wrote;"),
        (("--kd-teacher", "tinyclassifier", "--kd-resume", INTEGER), "Name the checkpoint that"),
        (("-e", LOAD, INTEGER), "Add -8, or name the checkpoint that training wrote."),
    ],
)
def test_integers_are_refused_where_fractions_are_computed(
    options: tuple[str, ...], remedy: str, pair: Train
) -> None:
    done = pair("tinyclassifier", "tinyclasses", "--use-bias", *options)
    assert done.status == 1
    assert f"{INTEGER}: error: the weights are integers, but without -8" in done.error
    assert remedy in done.error
    assert "[E608]" in done.error


def test_integers_are_evaluated_with_8_and_fractions_without(pair: Train) -> None:
    evaluate = ("tinyclassifier", "tinyclasses", "--use-bias", "-e")
    assert pair(*evaluate, "-8", LOAD, INTEGER).status == 0
    assert pair(*evaluate, LOAD, FLOAT).status == 0
    done = pair(*evaluate, "-8", LOAD, FLOAT)
    assert done.status == 1
    assert "holds fractions, but -8 computes with quantized weights [E608]" in done.error


def test_integers_of_1_bit_are_recognized_and_weights_of_zero_are_not(pair: Train) -> None:
    def zero(content: dict[str, Any]) -> None:
        for name, tensor in content["state_dict"].items():
            if name.endswith((".weight", ".bias")):
                tensor.zero_()

    few = [FLOAT, INTEGER, "--device", "MAX78000", "--qat-weight-bits", "1"]
    assert run(lambda: quantize.main(few)) == 0
    _change(INTEGER, lambda content: content.pop("extras"))
    evaluate = ("tinyclassifier", "tinyclasses", "--use-bias", "-e", LOAD)
    done = pair(*evaluate, INTEGER)
    assert "E608" in done.error
    _change(FLOAT, zero)
    assert pair(*evaluate, FLOAT).status == 0


@pytest.mark.parametrize("prefix", ["", "module."])
def test_differences_are_listed_with_a_network_that_fits(prefix: str, pair: Train) -> None:
    _change(
        FLOAT,
        lambda content: content.update(
            state_dict={prefix + name: tensor for name, tensor in content["state_dict"].items()}
        ),
    )
    done = pair("tinyclassifier", "tinyclasses", "--use-bias", "-e", LOAD, FLOAT)
    assert done.status == 0, done.error
    done = pair("tinylarge", "tinyclasses", "--use-bias", "-e", LOAD, FLOAT)
    assert done.status == 1
    assert "network tinylarge (3 another shape) [E676]" in done.error
    assert "Use --model tinyclassifier." in done.error
    assert "conv.op.bias    4             8" in done.error
    done = pair("tinyrecognizer", "tinyclasses", "--use-bias", "-e", LOAD, FLOAT)
    assert "Use --model tinyclassifier." in done.error
    assert "head.op.weight            missing       4x64" in done.error
    assert "fc.op.weight              4x64          missing" in done.error


def test_tensor_that_is_missing_or_surplus_is_named(pair: Train) -> None:
    evaluate = ("tinyclassifier", "tinyclasses", "--use-bias", "-e", LOAD, FLOAT)
    _change(FLOAT, lambda content: content["state_dict"].update(other=torch.zeros(3)))
    done = pair(*evaluate)
    assert done.status == 0
    assert "no place in the model for other" in done.log
    _change(FLOAT, lambda content: content["state_dict"].pop("fc.op.weight"))
    done = pair(*evaluate)
    assert done.status == 1
    assert "(1 missing, 1 surplus) [E676]" in done.error
    assert "fc.op.weight  missing       4x64" in done.error


class _Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("executed",))


@pytest.mark.parametrize(
    ("option", "more"),
    [
        (LOAD, ()),
        ("--resume-from", ()),
        ("--kd-resume", ("--kd-teacher", "tinylarge")),
        ("--backbone-checkpoint", ()),
    ],
)
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("missing", "E501"),
        ("folder", "E501"),
        ("empty", "E502"),
        ("text", "E502"),
        ("truncated", "E503"),
        ("code", "E504"),
        ("list", "E506"),
    ],
)
def test_file_that_is_no_checkpoint_is_refused(
    kind: str, code: str, option: str, more: tuple[str, ...], tiny: Train
) -> None:
    torch.save({"state_dict": {"a.weight": torch.ones(100)}}, "whole")
    torch.save([1, 2], "list")
    Path("folder").mkdir()
    Path("empty").touch()
    Path("text").write_text("no checkpoint\n")
    Path("truncated").write_bytes(Path("whole").read_bytes()[:700])
    Path("code").write_bytes(pickle.dumps({"state_dict": _Hostile()}, 2))
    done = tiny("tinyclassifier", "tinyclasses", option, kind, *more)
    assert done.status == 1
    assert f"{kind}: error: " in done.error
    assert f"[{code}]" in done.error
    assert not Path("executed").exists()
    assert not Path("logs").exists()


def test_network_takes_the_weights_of_a_backbone(pair: Train) -> None:
    train = ("tinyrecognizer", "tinyclasses", "--lr", "1e-12", "--backbone-checkpoint")
    done = pair(*train, FLOAT)
    assert done.status == 0, done.error
    weights = [
        torch.load(path, weights_only=False)["state_dict"]["conv.op.weight"]
        for path in (FLOAT, done.folder / "best.pth.tar")
    ]
    torch.testing.assert_close(*weights)

    _change(FLOAT, lambda content: content["state_dict"].pop("conv.op.weight"))
    done = pair(*train, FLOAT)
    assert done.status == 1
    assert "option --backbone-checkpoint: error: tinyrecognizer cannot use" in done.error
    assert "KeyError: 'conv.op.weight'" in done.error
    assert "[E607]" in done.error


def test_network_without_backbone_says_so(pair: Train) -> None:
    done = pair("ai85digitsnet", "digits", "--backbone-checkpoint", FLOAT)
    assert done.status == 1
    assert "ai85digitsnet cannot use the checkpoint of a backbone" in done.error
    assert "leave the option out" in done.error


def _change(path: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of a checkpoint."""
    content = torch.load(path, weights_only=False)
    change(content)
    torch.save(content, path)
