"""Each kind of task, from the command line to the lines of the log and the checkpoints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.checkpoint import read_checkpoint

Train = Callable[..., Any]
PARAMETERS = "multi_box_loss: {alpha: 1, neg_pos_ratio: 3}\nnms: {min_score: 0.2, max_overlap: 0.4, top_k: 20}\n"  # fmt: skip  # noqa: E501
OBJECTS = ("--obj-detection", "--obj-detection-params", "objects.yaml")


def _extras(done: Any, name: str = "checkpoint") -> dict[str, Any]:
    (file,) = done.folder.glob(f"{name}.pth.tar")
    extras: dict[str, Any] = read_checkpoint(file).entries["extras"]
    return extras


def test_classification_prints_the_lines_of_the_manual(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--epochs", "3", "--print-freq", "2")
    assert done.status == 0, done.error
    number = r"\d+\.\d{6}"
    assert re.search(
        rf"Epoch: \[2\]\[  2/  3\]    Overall Loss {number}    Objective Loss {number}    "
        rf"Top1 {number}    LR 0.020000    Time {number}\n", done.log
    ), done.log  # fmt: skip
    assert re.search(rf"Epoch: \[2\]\[  1/  1\]    Loss {number}    Top1 {number}\n", done.log)
    assert "--- validate (epoch=2)-----------" in done.output
    assert re.search(r"==> Top1: \d+\.\d{3}    Loss: \d\.\d{3}\n", done.output)
    assert re.search(r"==> Best \[Top1: \d+\.\d{3}   Params: 292 on epoch: \d\]", done.output)
    assert "--- test ---------------------" in done.output
    assert list(done.metrics["test"]) == ["top1", "loss"]
    assert list(_extras(done)) == [
        "current_top1", "best_top1", "current_mAP", "best_mAP", "best_epoch", "run",
    ]  # fmt: skip


def test_random_weights_draw_a_warning(tiny: Train) -> None:
    measured = tiny("tinyclassifier", "tinyclasses", "--evaluate", "-8")
    assert "WARNING: the weights are random" in measured.output
    taught = tiny("tinyclassifier", "tinyclasses", "--kd-teacher", "tinylarge")
    assert "WARNING: the weights of the teacher tinylarge are random" in taught.output


def test_weights_of_classes_change_the_loss(tiny: Train) -> None:
    losses = [
        tiny("tinyclassifier", name).metrics["test"]["loss"]
        for name in ("tinyclasses", "tinyweighted")
    ]
    assert losses[0] != losses[1]


def test_several_best_epochs_are_listed(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--epochs", "3", "--num-best-scores", "2")
    last = done.output.split("--- validate (epoch=2)")[1]
    assert last.count("==> Best [") == 2


def test_regression_is_chosen_for_numbers(tiny: Train) -> None:
    for name in ("tinynumbers", "tinynumbers4"):
        model = "tinyclassifier" if name == "tinynumbers" else "tinysegmenter"
        done = tiny(model, name, "--epochs", "2")
        if name == "tinynumbers4":  # four outputs for one number
            assert done.status == 1
            assert "it returns 4x8x8, the targets are 1" in done.error
            return
        assert done.status == 0, done.error
        assert re.search(r"==> MSE: \d\.\d{5}    Loss: \d\.\d{3}\n", done.output)
        assert re.search(r"==> Best \[MSE: \d\.\d{5}   Params: \d+ on epoch: \d\]", done.output)
        errors = [epoch["validation"]["mse"] for epoch in done.metrics["epochs"]]
        assert _extras(done)["best_top1"] == pytest.approx(min(errors), abs=1e-6)
        assert done.metrics["best"]["mse"] == min(errors)


def test_classes_can_be_learned_as_numbers_only_where_shapes_agree(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--regression")
    assert done.status == 1
    assert "tinyclassifier does not fit tinyclasses: it returns 4, the targets are" in done.error


def test_segmentation_measures_overlap(tiny: Train) -> None:
    done = tiny("tinysegmenter", "tinypixels", "--epochs", "2", "--confusion")
    assert done.status == 0, done.error
    assert re.search(r"==> Top1: \d+\.\d{3}    Loss: \d\.\d{3}\n", done.output)
    assert re.search(r"==> mIoU: \d+\.\d{3}    dark: \d+\.\d{3}    left: ", done.output)
    test = done.metrics["test"]
    present = [share for share in test["iou_by_class"].values() if share is not None]
    assert test["miou"] == pytest.approx(sum(present) / len(present))
    assert "==> Confusion:" in done.output


def test_folded_output_is_unfolded(tiny: Train) -> None:
    done = tiny("tinyfolded", "tinypixels", "--out-fold-ratio", "2")
    assert done.status == 0, done.error
    assert done.metrics["test"]["top1"] > 25
    done = tiny("tinyfolded", "tinypixels")
    assert done.status == 1
    assert "it returns 1x16x4x4" in done.error
    assert "--out-fold-ratio" in done.error


@pytest.mark.parametrize("dataset", ["tinyobjects", "tinyobjectlists"])
def test_objects_are_found(tiny: Train, dataset: str) -> None:
    Path("objects.yaml").write_text(PARAMETERS)
    done = tiny("tinydetector", dataset, *OBJECTS, "--epochs", "6")
    assert done.status == 0, done.error
    assert re.search(r"==> mAP: 0\.\d{5}    Loss: \d\.\d{3}\n", done.output)
    assert re.search(
        r"==> Best \[mAP: \d\.\d{5}   vloss: \d\.\d{3}   Params: \d+ on epoch: ", done.output
    )
    assert done.metrics["test"]["map"] > 0.8
    assert set(_extras(done)) == {
        "current_top1", "best_top1", "current_mAP", "best_mAP", "best_epoch", "run",
    }  # fmt: skip


def test_embeddings_learn_with_their_centres(tiny: Train) -> None:
    options = ("--dr", "8", "--scaf-lr", "0.05", "--scaf-scale", "16", "--scaf-margin", "10")
    done = tiny("tinyclassifier", "tinyclasses", *options, "--epochs", "4")
    assert done.status == 0, done.error
    assert done.metrics["test"]["top1"] == 100
    extras = _extras(done)
    assert extras["loss_weights"]["W"].shape == (8, 12)
    assert len(extras["loss_optimizer_state_dict"]["state"]) == 1
    file = str(done.folder / "checkpoint.pth.tar")
    load = ("--exp-load-weights-from", file)
    measured = tiny("tinyclassifier", "tinyclasses", *options, "-e", *load)
    assert measured.metrics["test"] == done.metrics["test"]
    resumed = tiny(
        "tinyclassifier", "tinyclasses", *options, "--resume-from", file, "--epochs", "5"
    )
    assert resumed.status == 0, resumed.error
    plain = tiny("tinyclassifier", "tinyclasses")
    file = str(plain.folder / "checkpoint.pth.tar")
    options = ("--dr", "4")
    refused = tiny("tinyclassifier", "tinyclasses", *options, "-e", "--exp-load-weights-from", file)
    assert refused.status == 1
    assert "the checkpoint holds no class centres" in refused.error


def test_teacher_is_learned_from(tiny: Train) -> None:
    teacher = tiny("tinylarge", "tinyclasses", "--epochs", "6")
    file = str(teacher.folder / "best.pth.tar")
    options = ("--kd-teacher", "tinylarge", "--kd-resume", file, "--kd-temp", "2")
    done = tiny(
        "tinyclassifier", "tinyclasses", *options, "--kd-sw", "0", "--kd-dw", "1",
        "--kd-start-epoch", "1", "--epochs", "8",
    )  # fmt: skip
    assert done.status == 0, done.error
    assert "Distill Loss" in done.log.split("Epoch: [1]")[1]
    assert "Distill Loss" not in done.log.split("Epoch: [1]")[0]
    assert "Objective Loss 0.000000" in done.log
    assert done.metrics["test"]["top1"] > 70
    assert done.metrics["test"]["loss"] == 0


def test_outputs_of_the_teacher_are_reproduced(tiny: Train) -> None:
    teacher = tiny("tinylarge", "tinyclasses", "--epochs", "4")
    file = str(teacher.folder / "best.pth.tar")
    options = ("--kd-teacher", "tinylarge", "--kd-resume", file, "--kd-relationbased")
    done = tiny("tinyclassifier", "tinyclasses", *options, "--kd-sw", "0", "--epochs", "5")
    assert done.status == 0, done.error
    assert re.search(r"==> Overall Loss: \d+\.\d{3}\n", done.output)
    assert re.search(r"==> Best \[Overall Loss: \d+\.\d{5}   Params: 292 on epoch", done.output)
    losses = [epoch["validation"]["loss"] for epoch in done.metrics["epochs"]]
    assert losses[-1] < losses[0]
    assert done.metrics["best"]["loss"] == min(losses)

    import quantize

    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    best = str(done.folder / "checkpoint.pth.tar")
    load = ("--exp-load-weights-from", best, "--qat-policy", "qat.yaml")
    done = tiny("tinyclassifier", "tinyclasses", *options, *load, "--epochs", "2")
    quantize.main([str(done.folder / "qat_best.pth.tar"), "q.pth.tar", "--device", "MAX78000"])
    load = ("-e", "-8", "--exp-load-weights-from", "q.pth.tar")
    done = tiny("tinyclassifier", "tinyclasses", *options, *load)
    assert done.status == 0, done.error  # the teacher computes with fractions all the same
    assert done.metrics["test"]["loss"] < 2


@pytest.mark.parametrize(
    ("model", "dataset", "options"),
    [
        ("tinyclassifier", "tinynumbers", ()),
        ("tinydetector", "tinyobjects", OBJECTS),
        ("tinynormalized", "tinyclasses", ("--use-bias",)),
    ],
)
def test_quantized_network_gives_the_result_of_training(
    model: str, dataset: str, options: tuple[str, ...], tiny: Train
) -> None:
    """Outputs and targets of the simulation come back to the range of training."""
    import quantize

    Path("objects.yaml").write_text(PARAMETERS)
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    done = tiny(model, dataset, *options, "--epochs", "8", "--qat-policy", "qat.yaml")
    assert done.status == 0, done.error
    file = str(done.folder / "qat_checkpoint.pth.tar")
    quantize.main([file, "q.pth.tar", "--device", "MAX78000"])
    source = ("--exp-load-weights-from", "q.pth.tar")
    integers = tiny(model, dataset, *options, "-e", "-8", *source)
    assert integers.status == 0, integers.error
    for title in ("map", "top1"):
        if title in done.metrics["test"]:
            assert integers.metrics["test"][title] == done.metrics["test"][title]
