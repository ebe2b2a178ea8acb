"""What train.py refuses, with which words, and options that change where results go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ai8xtools.training import session
from ai8xtools.training.loop import trainer
from ai8xtools.training.loop.observers import Context, Observer, Seen

Train = Callable[..., Any]
OBJECTS = ("--obj-detection", "--obj-detection-params", "objects.yaml")
SECTIONS = {
    "multi_box_loss": "{alpha: 1, neg_pos_ratio: 3}",
    "nms": "{min_score: 0.2, max_overlap: 0.4, top_k: 20}",
}


def _parameters(**sections: str) -> None:
    texts = {**SECTIONS, **sections}
    lines = [f"{name}: {text}" for name, text in texts.items() if text]
    Path("objects.yaml").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("model", "dataset", "options", "status", "messages"),
    [
        ("tinyclassifier", "tinybroken", (), 1, ["sample 7", "file is truncated", "E663"]),
        ("tinyclassifier", "tinywronglabel", (), 1, ["a label is 9", "labels are 0 to 3", "E633"]),
        ("tinyclassifier", "tinyragged", (), 1, ["different kind or shape", "E663"]),
        ("tinyclassifier", "tinyobjects", (), 1, ["holds objects in boxes", "E631"]),
        ("tinydetector", "tinyclasses", OBJECTS, 1, ["tinyclasses has no boxes: its targets are"]),
        ("tinyclassifier", "tinyobjects", OBJECTS, 1, ["tinyclassifier has no prior boxes"]),
        ("tinyclassifier", "tinypixels", (), 1, ["it returns 1x4, but 4 classes with labels of"]),
        ("tinysegmenter", "tinyclasses", (), 1, ["it returns 1x4x8x8", "need 1x4"]),
        ("tinysegmenter", "tinynumbers", (), 1, ["it returns 1x8x8, the targets are 1"]),
        ("tinyclassifier", "tinynumbers", ("--confusion",), 1, ["no classes to confuse", "E638"]),
        ("tinylarge", "tinyclasses", ("--dr", "4"), 1, ["tinylarge does not let", "E635"]),
        ("tinyclassifier", "tinyclasses", ("--kd-teacher", "tinylager"), 1, ["'tinylager'"]),
        (
            "tinyclassifier", "tinyclasses", ("--kd-teacher", "tinysegmenter"),
            1, ["tinyclassifier cannot learn from tinysegmenter", "E655"],
        ),
        (
            "tinyclassifier", "tinyclasses",
            ("--compiler-mode", "default", "--compiler-backend", "nope"),
            1, ["no compiler 'nope'", "inductor", "E634"],
        ),
        (
            "tinyclassifier", "tinyclasses",
            ("--dr", "4", "--kd-teacher", "tinylarge", "--kd-relationbased"),
            1, ["Leave out one of --dr and --kd-relationbased"],
        ),
        ("tinyclassifier", "tinyclasses", ("--gpus", "99,0"), 1, ["no CUDA device 99", "E611"]),
        ("tinyclassifier", "tinyclasses", ("--gpus", "a"), 2, ["--gpus"]),
        ("tinyclassifier", "tinyclasses", ("--sense", "filter"), 2, ["no sparse kernels"]),
        ("tinyclassifier", "tinyclasses", ("--obj-detection",), 2, ["add --obj-detection-params"]),
        ("tinyclassifier", "tinyclasses", (*OBJECTS, "--confusion"), 2, ["--confusion"]),
        ("tinyclassifier", "tinyclasses", ("--dr", "4", "--regression"), 2, ["need classes"]),
        ("tinyclassifier", "tinyclasses", ("--kd-relationbased",), 2, ["add --kd-teacher"]),
        ("tinyclassifier", "tinyclasses", ("--kd-tw", "1"), 2, ["the teacher does not learn"]),
        (
            "tinyclassifier", "tinyclasses",
            ("--kd-teacher", "tinylarge", "--kd-sw", "0", "--kd-dw", "0"), 2, ["nothing would"],
        ),
        ("tinyclassifier", "tinyclasses", ("--scaf-margin", "90"), 2, ["[0, 90)"]),
        ("tinyclassifier", "tinyclasses", ("--num-best-scores", "0"), 2, ["below 1"]),
        ("tinyclassifier", "tinyclasses", ("--tensorboard", "--no-tensorboard"), 2, ["not al"]),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(
    model: str,
    dataset: str,
    options: tuple[str, ...],
    status: int,
    messages: list[str],
    tiny: Train,
) -> None:
    _parameters()
    done = tiny(model, dataset, *options)
    assert done.status == status, done.error
    assert all(message in done.error for message in messages), done.error
    assert "E009" not in done.error


def test_broken_sample_is_named_by_worker_processes(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinybroken", "-j", "1")
    assert done.status == 1
    assert "sample 7 of the data set cannot be used: image file is truncated" in done.error


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"nms": ""}, "nms is missing; it must be a section of min_score, max_overlap, top_k"),
        ({"nms": "{min_score: 0.2, top_k: 20}"}, "nms: max_overlap is missing; it must be a"),
        ({"nms": "{min_score: 2, max_overlap: 0, top_k: 2}"}, "min_score is 2; it must be"),
        ({"nms": "{min_score: 0, max_overlap: 0, top_k: 0}"}, "top_k is 0; it must be"),
        ({"multi_box_loss": "{alpha: a, neg_pos_ratio: 3}"}, "alpha is 'a'; it must be a number"),
        ({"multi_box_loss": "{beta: 1}"}, "unknown key 'beta' in multi_box_loss"),
        ({"loss": "{}"}, "unknown key 'loss'"),
    ],
)
def test_faults_of_detection_parameters_are_named(
    sections: dict[str, str], message: str, tiny: Train
) -> None:
    _parameters(**sections)
    done = tiny("tinydetector", "tinyobjects", *OBJECTS)
    assert done.status == 1
    assert message in done.error
    assert "[E604]" in done.error


def test_missing_measure_of_precision_is_named(
    tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    _parameters()
    monkeypatch.setitem(sys.modules, "torchmetrics.detection", None)
    done = tiny("tinydetector", "tinyobjects", *OBJECTS, "-e")
    assert done.status == 1
    assert "pip install torchmetrics pycocotools" in done.error and "[E624]" in done.error


def test_checkpoint_of_another_network_is_explained(tiny: Train) -> None:
    file = str(tiny("tinyclassifier", "tinyclasses").folder / "best.pth.tar")
    load = ("-e", "--exp-load-weights-from", file)
    done = tiny("tinylarge", "tinyclasses", *load)
    assert done.status == 1
    assert "does not belong to the network tinylarge (2 another shape) [E676]" in done.error
    assert "Use --model tinyclassifier." in done.error
    assert "conv.op.weight  4x1x3x3       8x1x3x3" in done.error
    done = tiny("ai85digitsnet", "digits", *load)
    assert "Use --model tinyclassifier --dataset " in done.error
    teacher = ("--kd-teacher", "tinylarge", "--kd-resume", file)
    done = tiny("tinyclassifier", "tinyclasses", *teacher)
    assert "Use --kd-teacher tinyclassifier." in done.error
    done = tiny("tinyclassifier", "tinyclasses", *load, "--use-bias")
    assert "Use --model tinyclassifier without --use-bias." in done.error


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), "of 16: CUDA out of memory. [E656]"),
        (RuntimeError("DataLoader worker (pid 7) is killed."), "(pid 7) is killed. [E657]"),
    ],
)
def test_lack_of_memory_is_named(
    failure: Exception, message: str, tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(trainer, "train_epoch", full)
    done = tiny("tinyclassifier", "tinyclasses")
    assert done.status == 1
    assert message in done.error


def test_log_folder_is_copied(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--copy-output-folder", "copies/here")
    assert done.status == 0, done.error
    names = {path.name for path in done.folder.iterdir()}
    copied = Path("copies/here") / done.folder.name
    assert {path.name for path in copied.iterdir()} == names
    Path("file").write_text("")
    done = tiny("tinyclassifier", "tinyclasses", "--copy-output-folder", "file")
    assert done.status == 1
    assert "the log folder" in done.error
    assert "E644" in done.error


def test_options_without_effect_are_accepted(tiny: Train) -> None:
    done = tiny(
        "tinyclassifier", "tinyclasses", "--pretrained", "--kd-pretrained", "--act-stats", "train",
        "--no-tensorboard", "--gpus", "0",
    )  # fmt: skip
    assert done.status == 0, done.error


@pytest.mark.slow
def test_compiled_network_learns_the_same(tiny: Train) -> None:
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    options = ("--epochs", "2", "--qat-policy", "qat.yaml", "--use-bias")
    plain = tiny("tinynormalized", "tinyclasses", *options)
    compiled = tiny(
        "tinynormalized", "tinyclasses", *options,
        "--compiler-mode", "default", "--compiler-backend", "eager",
    )  # fmt: skip
    assert compiled.status == 0, compiled.error
    assert compiled.metrics["test"] == pytest.approx(plain.metrics["test"])
    state = session.checkpoints.read(str(compiled.folder / "qat_best.pth.tar")).state
    assert "conv.op.weight" in state


def test_observers_see_every_batch_and_result(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Watching(Observer):
        def seen(self, batch: Seen) -> None:
            shapes = [tuple(t.shape) for t in (batch.inputs, batch.outputs, batch.targets)]
            calls.append((batch.phase, batch.epoch, batch.step, batch.steps, *shapes))

        def finished(self, phase: Any, epoch: Any, scores: Any, _model: Any) -> None:
            calls.append((phase, epoch, list(scores.values)))

        def close(self) -> None:
            calls.append("closed")

    def make(context: Context) -> Observer | None:
        return Watching() if context.dataset.name == "tinyclasses" else None

    monkeypatch.setattr(session, "OBSERVERS", (make, lambda _: None))
    assert tiny("tinyclassifier", "tinyclasses", "-b", "32").status == 0
    assert calls == [
        ("training", 0, 1, 2, (32, 1, 8, 8), (32, 4), (32,)),
        ("training", 0, 2, 2, (12, 1, 8, 8), (12, 4), (12,)),
        ("training", 0, ["Top1"]),
        ("validation", 0, 1, 1, (4, 1, 8, 8), (4, 4), (4,)),
        ("validation", 0, ["Top1"]),
        ("test", None, 1, 1, (20, 1, 8, 8), (20, 4), (20,)),
        ("test", None, ["Top1"]),
        "closed",
    ]


def test_options_without_effect_say_so(tiny: Train) -> None:
    found = tiny(
        "tinyclassifier", "tinyclasses", "--pretrained", "--kd-pretrained", "--act-stats", "train",
        "valid", "--compiler-mode", "default", "--cpu", "--gpus", "all",
    )  # fmt: skip
    assert found.status == 0, found.error
    for option, why in (
        ("--pretrained", "networks have no built-in weights"),
        ("--kd-pretrained", "teachers have no built-in weights"),
        ("--act-stats", "statistics of an old library"),
        ("--compiler-mode", "without a CUDA device"),
    ):
        assert any(option in line and why in line for line in found.log.splitlines()), option
