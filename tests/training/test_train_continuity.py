"""Runs that are repeated, killed and resumed, or divided among processes end with the same bits."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ai8xtools.checkpoint import read_checkpoint
from tests.training.starting import Training

ROOT = Path(__file__).parents[2]
TINY = Path(__file__).with_name("tiny")
POLICY = "start_epoch: 4\nweight_bits: 8\n"
SCHEDULE = """
lr_schedulers:
  plateau: {class: ReduceLROnPlateau, mode: max, factor: 0.5, patience: 0}
  cosine: {class: CosineAnnealingWarmRestarts, T_0: 3}
policies:
  - {lr_scheduler: plateau, starting_epoch: 1, ending_epoch: 6, frequency: 1}
  - {lr_scheduler: cosine, starting_epoch: 2, ending_epoch: 9, frequency: 1}
"""
OPTIONS = [
    "--model", "tinynormalized", "--use-bias", "--optimizer", "Adam", "--lr", "0.01", "-b", "16",
    "--epochs", "8", "--qat-policy", "qat.yaml", "--cpu", "-j", "0",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TINY, tmp_path, dirs_exist_ok=True)
    (tmp_path / "qat.yaml").write_text(POLICY)
    (tmp_path / "schedule.yaml").write_text(SCHEDULE)
    monkeypatch.chdir(tmp_path)


def _start(*options: str, processes: int = 0) -> Training:
    return Training([*OPTIONS, *options], processes)


def _launch(*options: str) -> tuple[int, str]:
    """Run train.py in two processes as users do; return the exit status and what is printed."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *launch, str(ROOT / "train.py"), *OPTIONS, *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout


def _train(name: str, *options: str, processes: int = 0) -> Path:
    """Run train.py to its end and return the log folder."""
    status, output = _start("--name", name, *options, processes=processes).finish()
    assert status == 0, output
    (folder,) = Path("logs").glob(f"{name}___*")
    return folder


def _state(folder: Path, name: str = "qat_checkpoint") -> dict[str, torch.Tensor]:
    file = folder / f"{folder.name.partition('___')[0]}_{name}.pth.tar"
    state: dict[str, torch.Tensor] = _load(file)["state_dict"]
    return state


def _load(file: Path) -> dict[str, Any]:
    with torch.serialization.safe_globals([torch.optim.Adam, torch.optim.SGD]):
        content: dict[str, Any] = torch.load(file, weights_only=True)
    return content


def _same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def _metrics(folder: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    for epoch in metrics["epochs"]:
        epoch.pop("seconds", None)
    return metrics


def test_repeated_runs_write_the_same_bytes() -> None:
    options = ("--dataset", "tinynoise", "--deterministic", "--seed", "3", "--epochs", "5")
    folders = [_train(name, *options) for name in ("a", "b")]
    for kind in ("checkpoint", "best", "qat_checkpoint", "qat_best"):
        files = [next(folder.glob(f"?_{kind}.pth.tar")) for folder in folders]
        assert files[0].read_bytes() == files[1].read_bytes()
    other = _train("c", "--dataset", "tinynoise", "--deterministic", "--seed", "4", "--epochs", "5")
    assert not _same(_state(folders[0]), _state(other))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "workers"), [("tinynoise", "0"), ("tinynoise", "2"), ("tinyquicknoise", "0")]
)
def test_a_run_killed_again_and_again_ends_like_an_undisturbed_one(
    dataset: str, workers: str
) -> None:
    options = ("--dataset", dataset, "--compress", "schedule.yaml", "-j", workers)
    undisturbed = _train("whole", *options, "--deterministic")
    moments = random.Random(workers + dataset)
    kills, epochs, resume = 0, 0, ["--deterministic"]
    while kills < 3:
        process = _start(*options, "--name", f"part{kills}", *resume)
        wanted = moments.randrange(3)  # epochs of this part, and of the next one some of the time
        for line in process.lines:
            if "Saving checkpoint" in line:
                wanted -= 1
            if wanted < 0:
                break
        if not process.wait(moments.random() * 0.05):
            process.kill()
        process.finish()
        kills += 1
        found = sorted(Path("logs").glob("part*/*checkpoint.pth.tar"), key=_epoch_of)
        if found:
            epochs, resume = _epoch_of(found[-1]) + 1, ["--resume-from", str(found[-1])]
        if epochs == 8:
            break
    assert epochs
    last = _train("end", *options, *resume) if epochs < 8 else found[-1].parent
    assert _same(_state(undisturbed), _state(last))
    assert _same(_state(undisturbed, "qat_best"), _state(last, "qat_best"))
    if epochs < 8:
        assert _metrics(undisturbed) == _metrics(last)


def _epoch_of(path: Path) -> int:
    epoch = read_checkpoint(path).epoch
    assert epoch is not None
    return epoch


def test_a_run_with_a_seed_nobody_knows_is_resumed_with_it() -> None:
    whole = _train("whole", "--dataset", "tinynoise", "--epochs", "3")
    first = _state(whole, "checkpoint")
    source = next(whole.glob("whole_checkpoint.pth.tar"))
    resumed = [
        _state(_train(name, "--dataset", "tinynoise", "--resume-from", str(source)))
        for name in ("a", "b")
    ]
    assert _same(*resumed)
    assert not _same(first, resumed[0])


def test_changed_options_of_a_resumed_run_are_named() -> None:
    whole = _train("whole", "--dataset", "tinyclasses", "--epochs", "1")
    source = next(whole.glob("*_checkpoint.pth.tar"))
    options = ("--dataset", "tinyclasses", "--resume-from", str(source), "--epochs", "2")
    folder = _train("again", *options, "-b", "8", "--deterministic", "--seed", "5")
    log = next(folder.glob("*.log")).read_text()
    assert "--batch-size was 16 and is now 8" in log
    assert "--seed 5 has no effect" in log
    assert "--validation-split" not in log.partition("Dataset sizes")[2]


def test_quantized_training_is_recognized_by_the_weights() -> None:
    whole = _train("whole", "--dataset", "tinyclasses", "--epochs", "6")
    source = str(next(whole.glob("*_qat_checkpoint.pth.tar")))
    plain = ("--dataset", "tinyclasses", "--qat-policy", "None", "--mixed-precision")
    resumed = _train("resumed", *plain, "--resume-from", source)
    loaded = _train("loaded", *plain, "--exp-load-weights-from", source, "--epochs", "1")
    for folder in (resumed, loaded):
        names = {path.name.partition("_")[2] for path in folder.glob("*.pth.tar")}
        assert names == {"qat_best.pth.tar", "qat_checkpoint.pth.tar"}
        assert all(epoch["qat"] for epoch in _metrics(folder)["epochs"][6:])
        assert "--mixed-precision has no effect" in next(folder.glob("*.log")).read_text()


def test_without_the_best_checkpoint_a_resumed_run_warns(tmp_path: Path) -> None:
    whole = _train("whole", "--dataset", "tinyclasses", "--epochs", "3", "--lr", "1e-9")
    moved = tmp_path / "moved_checkpoint.pth.tar"
    state = _load(whole / "whole_checkpoint.pth.tar")
    run = state["extras"]["run"]
    run["epochs"][0]["values"]["Top1"] = 101.0
    torch.save(state, moved)
    options = ("--dataset", "tinyclasses", "--resume-from", str(moved))
    folder = _train("resumed", *options, "--qat-policy", "None", "--epochs", "4")
    log = next(folder.glob("*.log")).read_text()
    assert "the best checkpoint so far, of epoch 0, is not beside it" in log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "dataset", "batch", "refinements"),
    [
        ("tinynormalized", "tinynoise", "16", ()),
        ("tinynormalized", "tinyquicknoise", "16", ()),
        ("tinynormalized", "tinynoise", "15", ("--mixup", "0.4", "--ema", "0.9")),
        ("tinyclassifier", "tinynoise", "43", ()),  # the last batch: one sample, two processes
        ("tinyclassifier", "tinyweighted", "15", ("--mixup", "1", "--label-smoothing", "0.1")),
        ("tinysegmenter", "tinypixels", "15", ("--clip-gradient", "0.1")),
    ],
)
def test_two_processes_train_like_one(
    model: str, dataset: str, batch: str, refinements: tuple[str, ...]
) -> None:
    # SGD: Adam would blow up the rounding errors of gradients that are 0, before normalization
    options = ("--model", model, "--dataset", dataset, "-b", batch, "--deterministic", *refinements)
    options += ("--optimizer", "SGD", "--lr", "0.1", "--epochs", "5")
    one = _train("one", *options)
    two = _train("two", *options, processes=2)
    assert {path.name for path in Path("logs").iterdir()} == {one.name, two.name}
    for kind in ("checkpoint", "qat_checkpoint"):
        a, b = _state(one, kind), _state(two, kind)
        assert a.keys() == b.keys()
        for name, tensor in a.items():
            torch.testing.assert_close(b[name], tensor, rtol=1e-4, atol=1e-5, msg=name)
    losses = [
        [epoch["training"]["loss"] for epoch in _metrics(folder)["epochs"]] for folder in (one, two)
    ]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)


@pytest.mark.slow
def test_two_processes_find_objects_like_one() -> None:
    Path("objects.yaml").write_text(
        "multi_box_loss: {alpha: 2, neg_pos_ratio: 3}\n"
        "nms: {min_score: 0.2, max_overlap: 0.3, top_k: 20}\n"
    )
    options = ("--model", "tinydetector", "--dataset", "tinyobjects", "--obj-detection")
    options += ("--obj-detection-params", "objects.yaml", "--optimizer", "SGD", "--deterministic")
    options += ("--qat-policy", "None", "--epochs", "2", "-b", "11")
    one, two = (_state(_train(str(n), *options, processes=n), "checkpoint") for n in (0, 2))
    for name, tensor in one.items():
        torch.testing.assert_close(two[name], tensor, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.slow
def test_two_processes_say_what_one_says() -> None:
    options = ("--dataset", "tinynoise", "--epochs", "2", "--mixed-precision", "--name", "x")
    outputs = []
    for processes in (2, 0):
        status, output = _start(*options, "--deterministic", processes=processes).finish()
        assert status == 0, output
        lines = [line for line in output.splitlines() if "[W" not in line]  # PyTorch's own
        outputs.append([line for line in lines if line.strip("* ") and "logs/" not in line])
    assert len(outputs[0]) == len(outputs[1]), "\n".join(outputs[0])


@pytest.mark.slow
def test_a_sample_that_cannot_be_read_ends_all_processes() -> None:
    status, output = _launch("--dataset", "tinybroken")
    assert status == 1
    assert "sample 7 of the data set" in output
    assert "[E009]" not in output


@pytest.mark.slow
def test_two_processes_learn_the_same_centres_of_identities() -> None:
    options = ("--model", "tinyclassifier", "--dataset", "tinyclasses", "--dr", "8")
    options += ("--qat-policy", "None", "--deterministic", "--epochs", "3", "--optimizer", "SGD")
    one, two = (
        _load(_train(name, *options, processes=n) / f"{name}_checkpoint.pth.tar")["extras"]
        for name, n in (("one", 0), ("two", 2))
    )
    for name, centres in one["loss_weights"].items():
        torch.testing.assert_close(two["loss_weights"][name], centres, rtol=1e-4, atol=1e-5)


def test_only_the_leader_evaluates() -> None:
    options = ("--dataset", "tinyclasses", "--evaluate", "--name", "test")
    _train("test", *options, processes=2)


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ({"RANK": "0", "WORLD_SIZE": "two", "LOCAL_RANK": "0"}, (), "E658"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, ("--gpus", "0,1"), "E659"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, (), "E697"),  # no MASTER_ADDR
    ],
)
def test_a_wrong_environment_is_explained(
    environment: dict[str, str], options: tuple[str, ...], message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    status, output = _start("--dataset", "tinyclasses", *options).finish()
    assert status == 1
    assert f"[{message}]" in output
    assert "Traceback" not in output
    assert not Path("logs").exists()
