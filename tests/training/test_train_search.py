"""Architecture search with train.py --nas: stages, resuming, and the network that is chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ai8xtools.training.saving import checkpoints

Train = Callable[..., Any]
POLICY = """
start_epoch: 1
validation_freq: 2
elastic_kernel: {num_epochs: 1}
elastic_depth: {num_epochs: 2}
elastic_width: {num_epochs: 1}
kd_params: {teacher_model: TEACHER, temperature: 2}
evolution_search: {population_size: 3, num_iter: 2, constraints: {max_cycles: 2500}}
"""
NAMES = ["nas_stg0_lev0", "nas_stg1_lev1", "nas_stg2_lev1", "nas_stg3_lev3"]


def _search(tiny: Train, *options: str, teacher: str = "full_model") -> Any:
    Path("nas.yaml").write_text(POLICY.replace("TEACHER", teacher))
    policy = () if "--nas-policy" in options else ("--nas-policy", "nas.yaml")
    epochs = () if "--epochs" in options else ("--epochs", "5")
    return tiny("tinyelastic", "tinyclasses", "--nas", *policy, *epochs, *options)


def _state(path: Path) -> dict[str, torch.Tensor]:
    return checkpoints.read(str(path)).state


def test_search_resumes_as_uninterrupted_and_its_network_trains_and_deploys(tiny: Train) -> None:
    whole = _search(tiny)
    assert whole.status == 0, whole.error
    folder = whole.folder
    for name in NAMES:
        assert (folder / f"{name}_checkpoint.pth.tar").exists()
    epochs = whole.metrics["epochs"]
    assert epochs[0]["validation"]["loss"] > 0
    networks = [None if e["validation"] is None else len(e["validation"]["networks"])
                for e in epochs[1:]]  # fmt: skip
    assert networks[1:3] != [None, None]
    found = json.loads((folder / "nas_search.json").read_text())
    assert found["chosen"]["cycles"] <= 2500
    assert found["chosen"] in found["measured"]

    part = _search(tiny, "--epochs", "3")
    assert part.status == 0, part.error
    source = part.folder / "nas_stg2_lev1_checkpoint.pth.tar"
    resumed = _search(tiny, "--resume-from", str(source))
    assert resumed.status == 0, resumed.error
    last = f"{NAMES[-1]}_checkpoint.pth.tar"
    before, after = _state(folder / last), _state(resumed.folder / last)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (resumed.folder / "nas_search.json").read_text() == (
        folder / "nas_search.json"
    ).read_text()
    again = _search(tiny, "--resume-from", str(resumed.folder / last))
    assert again.status == 0, again.error
    assert json.loads((again.folder / "nas_search.json").read_text()) == found

    file, weights = folder / "nas_network.py", folder / "nas_network.pth.tar"
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    tuned = tiny(
        f"{file}:NASNetwork", "tinyclasses", "--exp-load-weights-from", str(weights),
        "--epochs", "2", "--qat-policy", "qat.yaml",
    )  # fmt: skip
    assert tuned.status == 0, tuned.error
    assert (tuned.folder / "qat_best.pth.tar").exists()


@pytest.mark.parametrize("teacher", ["full_model", "prev_stage_model"])
def test_teacher_is_found_or_asked_for(teacher: str, tiny: Train) -> None:
    done = _search(tiny, "--epochs", "3", teacher=teacher)
    assert done.status == 0, done.error
    source = done.folder / "nas_stg2_lev1_checkpoint.pth.tar"
    name = {"full_model": "nas_stg0_lev0", "prev_stage_model": "nas_stg1_lev1"}[teacher]
    kept = (done.folder / f"{name}_checkpoint.pth.tar").rename("teacher.pth.tar")
    resume = ("--resume-from", str(source), "--epochs", "4")
    lost = _search(tiny, *resume, teacher=teacher)
    assert lost.status == 1
    assert f"at the end of {name}" in lost.error
    assert "--nas-kd-resume-from" in lost.error
    wrong = _search(tiny, *resume, "--nas-kd-resume-from", str(source), teacher=teacher)
    assert wrong.status == 1
    assert "it is of epoch 2; the teacher is the state after epoch" in wrong.error
    assert "[E694]" in wrong.error
    named = _search(tiny, *resume, "--nas-kd-resume-from", str(kept), teacher=teacher)
    assert named.status == 0, named.error
    assert (named.folder / f"{name}_checkpoint.pth.tar").exists()


def test_checkpoint_of_other_stages_is_refused(tiny: Train) -> None:
    done = _search(tiny, "--epochs", "2")
    source = str(done.folder / "nas_stg1_lev1_checkpoint.pth.tar")
    other = ("--nas-stage-transition-list", "[(1, 2, 1)]")
    refused = _search(tiny, "--resume-from", source, *other)
    assert refused.status == 1
    assert "[[0, 0, 0], [1, 1, 1]]" in refused.error and "[E693]" in refused.error
    assert "--nas-stage-transition-list" in refused.error


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("{max_cycles: 5}", "max_cycles is 5, it has"),
        ("{width_options: [5]}", "The layers of this network have widths 2, 4, 6, 8"),
    ],
)
def test_constraints_that_nothing_meets_are_refused_before_training(
    constraints: str, message: str, tiny: Train
) -> None:
    Path("hard.yaml").write_text(POLICY.replace("TEACHER", "full_model").replace(
        "{max_cycles: 2500}", constraints
    ))  # fmt: skip
    done = _search(tiny, "--nas-policy", "hard.yaml")
    assert (done.status, message in done.error) == (1, True), done.error
    assert not Path("logs").exists()


@pytest.mark.parametrize(
    ("model", "options", "status", "message"),
    [
        ("tinyclassifier", ("--nas",), 1, "is not elastic: there is nothing to choose from [E695]"),
        ("tinyelastic", ("--nas", "--nas-policy", "none.yaml"), 1, "there is no such file"),
        ("tinyelastic", ("--nas", "--evaluate"), 2, "measures the chosen network"),
        ("tinyelastic", ("--nas", "--kd-teacher", "tinylarge"), 2, "leave out --kd-teacher"),
        ("tinyelastic", ("--nas", "--compiler-mode", "default"), 2, "not compiled"),
        ("tinyelastic", ("--nas", "--nas-kd-resume-from", "x"), 2, "add --resume-from"),
        ("tinyelastic", ("--nas-stage-transition-list", "[]"), 2, "add --nas"),
        ("tinyelastic", ("--nas", "--nas-stage-transition-list", "[]x"), 1, "not such a list"),
    ],
)
def test_what_cannot_be_searched_is_named(
    model: str, options: tuple[str, ...], status: int, message: str, tiny: Train
) -> None:
    done = tiny(model, "tinyclasses", *options)
    assert (done.status, message in done.error) == (status, True), done.error
    assert not Path("logs").exists()
