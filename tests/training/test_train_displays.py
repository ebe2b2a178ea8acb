"""What train.py shows beside its log: TensorBoard, tables, attributions."""

from __future__ import annotations

import csv
import io
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from ai8xtools.training.display import attributions
from ai8xtools.training.display.attributions import expected_gradients
from ai8xtools.training.display.pictures import confusion_picture

Train = Callable[..., Any]
EVENTS = ["--tensorboard", "--param-hist", "--pr-curves", "--embedding", "--confusion"]


def _events(folder: Path) -> Any:
    events = EventAccumulator(str(folder), {"images": 0, "tensors": 0, "histograms": 0})
    events.Reload()
    return events


def test_tensorboard_receives_everything(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--epochs", "2", "-p", "2", *EVENTS)
    assert done.status == 0, done.error
    assert "WARNING: T" not in done.output
    events = _events(done.folder)
    tags = events.Tags()
    assert tags["graph"]
    assert events.Graph().node
    (command,) = events.Tensors("Command line/text_summary")
    assert b"--model tinyclassifier" in make_ndarray(command.tensor_proto)[0]

    assert {"conv/op/weight", "conv/weight_bits", "fc/op/weight"} <= set(tags["histograms"])
    assert not any("bias" in tag for tag in tags["histograms"])
    # 44 samples, 3 batches: the second and the last of each epoch
    assert [event.step for event in events.Histograms("fc/op/weight")] == [2, 3, 2, 3]
    assert events.Histograms("fc/op/weight")[0].histogram_value.num == 256

    pictures = events.Images("Validation/ConfusionMatrix")
    assert [event.step for event in pictures] == [0, 1]
    picture = Image.open(io.BytesIO(pictures[0].encoded_image_string))
    assert picture.size == (480, 480)

    samples = sum(done.metrics["sizes"][part] for part in ("validation",))
    for label in ("nw", "ne", "sw", "se"):
        curve = events.Tensors(label)
        assert [event.step for event in curve] == [0, 1]
        tp, fp, tn, fn, precision, recall = make_ndarray(curve[1].tensor_proto)
        assert set(tp + fp + tn + fn) == {samples}
        assert recall[0] == (1 if tp[0] else 0)
        assert precision[0] == pytest.approx(tp[0] / samples)

    for epoch in ("00000", "00001"):
        (points,) = (done.folder / epoch).iterdir()
        table = (points / "tensors.tsv").read_text().splitlines()
        assert len(table) == samples
        assert len(table[0].split("\t")) == 4
        assert set((points / "metadata.tsv").read_text().split()) <= {"nw", "ne", "sw", "se"}
        assert Image.open(points / "sprite.png").size >= (16, 16)
    config = (done.folder / "projector_config.pbtxt").read_text()
    assert 'tensor_name: "verification/embedding:00001"' in config


def test_displays_of_tensorboard_without_it_are_only_warned_of(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--param-hist", "--pr-curves", "--confusion")
    assert done.status == 0
    assert "WARNING: --param-hist, --pr-curves: nothing is shown without" in done.output
    assert not list(done.folder.glob("events*"))


def test_displays_do_not_change_the_training(tiny: Train) -> None:
    plain = tiny("tinyclassifier", "tinyclasses").metrics
    shown = tiny("tinyclassifier", "tinyclasses", *EVENTS).metrics
    for metrics in (plain, shown):
        metrics["epochs"][0].pop("seconds")
    assert plain == shown


def test_precision_and_recall_of_pixels_and_identities(tiny: Train) -> None:
    done = tiny("tinysegmenter", "tinypixels", "--tensorboard", "--pr-curves")
    counts = make_ndarray(_events(done.folder).Tensors("dark")[0].tensor_proto)[:4]
    assert set(counts.sum(0)) == {64 * done.metrics["sizes"]["validation"]}
    done = tiny("tinyclassifier", "tinyclasses", "--dr", "3", "--tensorboard", *EVENTS)
    assert done.status == 0, done.error
    assert _events(done.folder).Tensors("nw")
    (points,) = (done.folder / "00000").iterdir()
    assert len((points / "tensors.tsv").read_text().splitlines()[0].split("\t")) == 3


def test_table_of_results(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "-e", "--save-csv", "out/a")
    assert done.status == 0, done.error
    tables = {
        name: list(csv.reader(Path(f"out/a_{name}.csv").read_text().splitlines()))
        for name in ("ytrue", "ypred", "x")
    }
    assert tables["ytrue"][:3] == [["truth"], ["nw"], ["ne"]]
    assert tables["ypred"][0] == ["nw", "ne", "sw", "se"]
    assert tables["x"][0] == ["x_0_mean"]
    assert {len(table) for table in tables.values()} == {21}
    shares = np.array(tables["ypred"][1:], dtype=float)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)
    assert float(tables["x"][1][0]) == pytest.approx(-0.25)
    names = np.array(tables["ypred"][0])[shares.argmax(1)]
    hits = [name == row[0] for name, row in zip(names, tables["ytrue"][1:], strict=True)]
    assert 100 * np.mean(hits) == pytest.approx(done.metrics["test"]["top1"])


def test_table_of_numbers(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinynumbers", "-e", "--save-csv", "n")
    assert done.status == 0, done.error
    assert Path("n_ytrue.csv").read_text().splitlines()[:3] == ["truth", "0", "0.25"]
    assert Path("n_ypred.csv").read_text().splitlines()[0] == "number"


def test_tables_appear_all_or_none(tiny: Train) -> None:
    Path("a_x.csv").mkdir()
    done = tiny("tinyclassifier", "tinyclasses", "-e", "--save-csv", "a")
    assert done.status == 1
    assert "a_x.csv" in done.error
    assert sorted(path.name for path in Path().glob("*a_*")) == ["a_x.csv"]


def test_attributions_are_drawn(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributions, "BACKGROUND", 17)
    done = tiny("tinyclassifier", "tinyclasses", "-e", "--shap", "2")
    assert done.status == 0, done.error
    data = (done.folder / "shap.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert width == 8 + 5 * 128  # the image and four classes
    assert height == 8 + 2 * 146
    done = tiny("tinyclassifier", "tinyclasses", "-e", "--shap", "4")
    assert done.status == 1
    assert (
        "21 test images are needed, 17 of them to compare with, but there are 20 [E610]"
        in done.error
    )


def test_attributions_add_up_to_the_score() -> None:
    generator = torch.Generator().manual_seed(3)
    image = torch.randn(2, 4, 4, generator=generator)
    background = torch.randn(100, 2, 4, 4, generator=generator)
    weights = torch.randn(32, 3, generator=generator)

    def scores(x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1) @ weights).pow(2)

    found = expected_gradients(scores, image, background, [2, 0])
    assert found.shape == (2, 2, 4, 4)
    expected = (scores(image.unsqueeze(0))[0] - scores(background).mean(0))[[2, 0]]
    spread = scores(background).std(0)[[2, 0]]
    assert ((found.flatten(1).sum(1) - expected).abs() < 0.1 * spread).all()
    linear = expected_gradients(lambda x: x.flatten(1) @ weights, image, background, [1])
    exact = (image - background.mean(0)).flatten() * weights[:, 1]
    torch.testing.assert_close(linear[0].flatten(), exact, atol=1e-5, rtol=1e-4)


def test_confusion_picture_grows_with_the_classes() -> None:
    labels = [f"class {index}" for index in range(30)]
    picture = confusion_picture(np.diag(np.arange(30)), labels)
    assert picture.shape == (1440, 1440, 3)
    colours = set(map(tuple, np.unique(picture.reshape(-1, 3)[::7], axis=0).tolist()))
    assert (0, 0, 128) in colours  # jet: dark blue for 0, dark red for the greatest
    assert (128, 0, 0) in colours


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("tinyclasses", "--regression", "--pr-curves"), 2, "--pr-curves"),
        (("tinyclasses", "--regression", "--embedding"), 2, "--embedding"),
        (("tinyclasses", "-e", "-8", "--save-sample", "1", "--save-csv", "a"), 2, "--save-csv"),
        (("tinyclasses", "--shap", "0"), 2, "--shap"),
        (("tinynumbers", "--pr-curves"), 1, "for classes only [E638]"),
        (("tinynumbers4", "--embedding"), 1, "E638"),
        (("tinyclasses", "--save-csv", "/dev/null/a"), 1, "[E644]"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tiny: Train, arguments: tuple[str, ...], status: int, message: str
) -> None:
    done = tiny("tinyclassifier", *arguments)
    assert done.status == status
    assert message in done.error
    assert "Traceback" not in done.error


def test_pixels_have_no_points_and_no_table(tiny: Train) -> None:
    assert "E638" in tiny("tinysegmenter", "tinypixels", "--embedding").error
    assert "E638" in tiny("tinysegmenter", "tinypixels", "-e", "--save-csv", "a").error


def test_nothing_of_this_is_imported_without_need() -> None:
    script = """
import sys
from ai8xtools.training import session
late = {"PIL", "tabulate", "tensorboard", "onnx", "ai8xtools.training.display.events",
        "ai8xtools.training.display.pictures", "ai8xtools.training.display.results_table",
        "ai8xtools.frontends.accelerator.walk"}
print(sorted(late & set(sys.modules)))
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
