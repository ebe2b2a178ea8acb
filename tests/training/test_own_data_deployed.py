"""From a folder of pictures to running firmware with the three commands of README.md."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import wave
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ai8xtools.checkpoint import read_checkpoint, write_checkpoint
from ai8xtools.diagnostics import run
from tests.conftest import ROOT
from tests.run_script import run_script

pytest.importorskip("unicorn", reason="the emulator needs unicorn (extra `emulator`)")

CLASSES = ("disc 100%", "bar", 'zebra "ü"')
SHORT = "--epochs 3 -b 16 --epoch-samples 48 --qat-policy qat.yaml --resize 12 -j 0 --deterministic"
Call = Callable[[str], str]
LATER = pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="make properties")


def draw(folder: Path, count: int = 10) -> None:
    """Write pictures of three kinds, of different sizes."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for n in range(count):
            rows, columns = rng.integers(16, 22, 2)
            y, x = np.mgrid[:rows, :columns]
            marks = ((y - 8) ** 2 + (x - 8) ** 2 < 30, abs(x - 8) < 3, y % 4 < 2)
            level = np.where(marks[label], 220, 40) + rng.integers(0, 30, (rows, columns))
            Image.fromarray(level.astype(np.uint8)).save(folder / name / f"{n}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pictures of three classes."""
    place = tmp_path_factory.mktemp("own")
    draw(place / "pictures")
    (place / "qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    return place


@pytest.fixture(scope="module")
def said(folder: Path) -> tuple[str, str]:
    """What training and firmware said when the three commands of the README ran in the folder."""
    train, quantize, deploy = commands((ROOT / "README.md").read_text())
    load, _, emulate = deploy.partition(" && ")
    with contextlib.chdir(folder):
        trained = run_here(f"{train} {SHORT}")
        run_here(quantize)
        run_here(f"{load} --verify")
        return trained, run_here(emulate)


@pytest.fixture
def call(folder: Path, said: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return what runs a command line in the folder of the three commands."""
    monkeypatch.chdir(folder)
    return run_here


def run_here(line: str) -> str:
    """Run a command line in this process and return what it prints."""
    _, script, *arguments = shlex.split(line)
    done = run_script(script, *arguments)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def write_pictures(place: Path) -> None:
    """Write pictures of three kinds."""
    draw(place / "large")


def write_sounds(place: Path) -> None:
    """Write tones of two heights, 2048 samples of 16 bits each."""
    rng = np.random.default_rng(0)
    for name, height in {"low tone": 300, "high tone": 2500}.items():
        (place / "sounds" / name).mkdir(parents=True)
        for n in range(10):
            phase = 2 * np.pi * height * np.arange(2048) / 16000 + rng.uniform(0, 6)
            with wave.open(str(place / "sounds" / name / f"{n}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes((np.sin(phase) * 12000).astype("<i2").tobytes())


def write_table(place: Path) -> None:
    """Write features of which the first one tells the class."""
    rows = np.random.default_rng(0).normal(size=(60, 4))
    lines = [",".join([*(f"{x:.4f}" for x in row), "up" if row[0] > 0 else "down"]) for row in rows]
    (place / "table.csv").write_text("\n".join(["a,b,c,d,where", *lines]) + "\n")


def write_features(place: Path) -> None:
    """Write more features than one pass of the first layer takes."""
    classes = np.arange(40) % 2
    rows = np.random.default_rng(0).normal(size=(40, 150)) + classes[:, None] / 2
    np.savez(place / "features.npz", x=rows.astype(np.float32), y=classes)


def write_series(place: Path) -> None:
    """Write series whose mean tells the class."""
    classes = np.arange(40) % 2
    x = np.random.default_rng(0).normal(size=(40, 2, 30)) + classes[:, None, None] / 2
    np.savez(place / "series.npz", x=x.astype(np.float32), y=classes)


def write_arrays(place: Path) -> None:
    """Write pictures that are light on the left or on the right."""
    classes = np.arange(40) % 2
    pictures = np.full((40, 12, 12), 20, np.uint8)
    for picture, label in zip(pictures, classes, strict=True):
        picture[:, 6 * label : 6 * label + 6] = 220
    np.savez(place / "arrays.npz", x=pictures, y=classes)


def commands(page: str) -> list[str]:
    """Return the three commands of a page."""
    blocks = re.findall(r"(?:^ {4}|^)(python train\.py --model auto .*(?:\n.*){2})", page, re.M)
    return [line.strip() for line in blocks[0].splitlines()]


def test_readme_and_manual_have_the_same_commands() -> None:
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/own-data.md")]
    assert commands(pages[0]) == commands(pages[1]) and len(commands(pages[0])) == 3


def test_three_commands_lead_to_firmware_that_names_classes(
    said: tuple[str, str], folder: Path
) -> None:
    trained, printed = said
    assert "--model auto: sized2d_32, the widest that fits MAX78000" in trained
    assert re.search(r"recipe: .*--no-validation.* --augment shift,light", trained)
    assert "PASS (1 inference)" in printed and "The sample is of the class bar." in printed
    for name in CLASSES:
        assert re.search(rf"\] -> {re.escape(name)}: \d+\.\d%", printed), printed
    described = json.loads((folder / "projects/pictures/dataset.json").read_text())
    assert described["classes"] == sorted(CLASSES)


def test_a_written_description_takes_sample_and_classes_from_the_checkpoint(
    call: Call, folder: Path
) -> None:
    load, _, _ = commands((ROOT / "README.md").read_text())[2].partition(" && ")
    call(f"{load} --overwrite --write-config described.yaml")
    described = load.replace("--model auto", "--config-file described.yaml")
    call(described.replace("--test-dir projects", "--test-dir described"))
    by_model, by_file = folder / "projects/pictures", folder / "described/pictures"
    for name in ("sampledata.h", "weights.h", "dataset.json"):
        assert (by_file / name).read_bytes() == (by_model / name).read_bytes(), name
    assert '"bar",' in (by_file / "main.c").read_text()


def test_the_other_tools_know_the_data_from_the_checkpoint(call: Call, folder: Path) -> None:
    data = "--dataset folder:pictures --model auto --exp-load-weights-from pictures-q.pth.tar"
    said = call(f"python train.py {data} --evaluate -8 --save-sample 0 -j 0")
    accuracy = said.partition("Top1: ")[2].split()[0]
    deployed = said.replace(accuracy, "")
    assert float(accuracy) > 40 and "test=6" in deployed
    sample = np.load(folder / "sample_pictures.npy")
    assert sample.shape == (3, 12, 12)
    picture = folder / "pictures" / "bar" / "4.png"
    first = call(f"python emulate.py projects/pictures --input {shlex.quote(str(picture))} --fast")
    named = first.partition("input 0: ")[2].splitlines()[0]
    assert named in CLASSES and "DONE (1 input)" in first
    again = call("python emulate.py projects/pictures --input sample_pictures.npy --fast")
    assert "DONE (1 input)" in again
    best = next(folder.glob("logs/pictures___*/pictures_qat_best.pth.tar"))
    calibrated = call(
        f"python quantize.py {best} c.pth.tar --device MAX78000 --calibrate folder:pictures"
    )
    assert "samples of pictures" in calibrated


def test_training_ends_with_the_accuracy_of_what_the_chip_computes(
    call: Call, said: tuple[str, str], folder: Path
) -> None:
    ended = re.findall(r"^  (.*?)  (.*)", said[0].partition("Accuracy on 6 test samples:")[2], re.M)
    named = dict(ended)
    assert [*named] == ["floating point", "quantization-aware", "integers of the chip"]
    data = "--dataset folder:pictures --model auto -j 0"
    for name, rest in (
        ("integers of the chip", "pictures-q.pth.tar --evaluate -8"),
        ("quantization-aware", "latest_log_dir/pictures_qat_best.pth.tar --evaluate"),
        ("floating point", "latest_log_dir/pictures_best.pth.tar --evaluate"),
    ):
        best = rest.replace("latest_log_dir", str(next(folder.glob("logs/pictures___*"))))
        measured = call(f"python train.py {data} --exp-load-weights-from {best}")
        assert f"Accuracy: {named[name].strip()}" in measured, name


def test_what_training_measured_is_said_by_the_other_tools(
    call: Call, said: tuple[str, str], folder: Path
) -> None:
    accuracy = re.findall(r"integers of the chip  (.*)", said[0])[0]
    best = next(folder.glob("logs/pictures___*/pictures_qat_best.pth.tar"))
    quantize = "python quantize.py {} q.pth.tar --device MAX78000"
    assert f"These integers have an accuracy of {accuracy}" in call(quantize.format(best))
    trained = read_checkpoint(best)
    assert len(trained.extras["own_accuracy"]["confusion"]) == 3
    extras = trained.extras | {"own_accuracy": {
        "right": 2, "count": 6, "chance": 1 / 3,
        "confusion": [[2, 0], [4, 0]], "classes": ["cat", "<dog>"],
    }}  # fmt: skip
    entries = {**trained.entries, "extras": extras}
    write_checkpoint("bad.pth.tar", replace(trained, entries=entries))
    load = "python ai8xize.py --checkpoint-file q.pth.tar --test-dir projects --model auto"
    for line in (
        quantize.format("bad.pth.tar"),
        f"{load} --device MAX78000 --prefix bad --report bad.html",
        "python emulate.py projects/bad",
        f"{load} --device MCU --mcu rp2040 --prefix worse --report worse.html",
        "python emulate.py projects/worse",
    ):
        assert "hardly better than chance: 33.3 % of 6" in call(line).splitlines()[-1], line
    for page in (folder / "bad", folder / "worse"):
        shown = page.with_suffix(".html").read_text()
        assert "33.3 % (2 of 6; " in shown and "hardly better than chance" in shown
        assert '<td class="bad" title="&lt;dog&gt; taken for cat">4</td>' in shown
        facts = json.loads(page.with_suffix(".json").read_text())
        assert (facts["accuracy"]["right"], facts["accuracy"]["count"]) == (2, 6)
    measured = call("python emulate.py projects/worse --input folder:pictures")
    assert f"Accuracy of the firmware: {accuracy}" in measured  # for microcontrollers, too


def test_the_firmware_is_measured_on_the_test_samples(call: Call, folder: Path) -> None:
    data = "--dataset folder:pictures --model auto --exp-load-weights-from pictures-q.pth.tar"
    wanted = call(f"python train.py {data} --evaluate -8 -j 0 --confusion")
    said = call("python emulate.py projects/pictures --input folder:pictures")
    assert wanted.partition("Top1: ")[2].split()[0] == said.partition("Top1: ")[2].split()[0]
    assert "As the accelerator alone: 6 inputs" in said
    assert "As the simulation of sized2d_32: 6 inputs" in said
    count = int(said.partition("Accuracy of the firmware: ")[2].partition("(")[2].split()[0])
    wrong = re.findall(r"input \d \(pictures/(.*)/\d\.png\): (.*), taken for (.*)", said)
    assert len(wrong) == 6 - count and all(a == b != c for a, b, c in wrong)
    assert all(f"] {name}" in said for name in CLASSES)
    assert said.splitlines()[-1].startswith("DONE (6 inputs)")


@pytest.mark.parametrize(
    ("data", "message"),
    [("folder:pictrues", "did you mean pictures?"), ("csv:rows.csv", "its classes are not those")],
)
def test_data_that_the_firmware_cannot_take_is_refused(
    call: Call, folder: Path, data: str, message: str
) -> None:
    (folder / "rows.csv").write_text("1,2,a\n3,4,b\n" * 5)
    with pytest.raises(AssertionError, match=re.escape(message)):
        call(f"python emulate.py projects/pictures --input {data}")


def test_firmware_whose_outputs_are_no_classes_is_not_measured(call: Call) -> None:
    load, _, _ = commands((ROOT / "README.md").read_text())[2].partition(" && ")
    call(f"{load.replace('--prefix pictures', '--prefix part')} --stop-after 1")
    with pytest.raises(AssertionError, match=r"outputs, its data 3 classes \[E863\]"):
        call("python emulate.py projects/part --input folder:pictures --fast")


def test_other_classes_than_those_of_the_checkpoint_are_refused(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    draw(tmp_path / "others", 2)
    (tmp_path / "others" / "bar").rename(tmp_path / "others" / "rod")
    with pytest.raises(AssertionError, match="bar, rod in one of them only"):
        call(
            f"python train.py --dataset folder:{tmp_path}/others --model auto --evaluate -8 "
            "--exp-load-weights-from pictures-q.pth.tar"
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "dataset", "network", "classes"),
    [
        (write_pictures, "folder:large --resize 6 --grayscale --fold auto", "sized2d_32", CLASSES),
        (write_sounds, "sounds:sounds --window 2048", "sized1d_32", ("high tone", "low tone")),
        (write_table, "csv:table.csv", "sizedrow_32", ("down", "up")),
        pytest.param(write_arrays, "npz:arrays.npz", "sized2d_32", ("0", "1"), marks=LATER),
        pytest.param(write_features, "npz:features.npz", "sizedrow_32", ("0", "1"), marks=LATER),
        (write_series, "series:series.npz", "sizedseries_64", ("0", "1")),
    ],
)
def test_data_of_every_kind_leads_to_firmware_that_is_measured(
    write: Callable[[Path], None], dataset: str, network: str, classes: tuple[str, ...],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Firmware names the classes, and is as good as training says, of a microcontroller, too."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    (tmp_path / "qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    said = run_here(
        f"python train.py --model auto --dataset {dataset} --epochs 2 -b 16 --qat-policy qat.yaml "
        "--epoch-samples 32 -j 0 --optimizer Adam --lr 0.01 --deterministic --name own"
    )
    assert f"--model auto: {network}" in said
    run_here("python quantize.py latest_log_dir/own_qat_best.pth.tar q.pth.tar --device MAX78000")
    load = "python ai8xize.py --checkpoint-file q.pth.tar --test-dir projects --device"
    run_here(f"{load} MAX78000 --prefix own --model auto")
    run_here(f"{load} MCU --mcu rp2040 --prefix plain --model auto")
    accuracy = re.findall(r"integers of the chip  (.*)", said)[0]
    for project in ("own", "plain"):
        name = dataset.partition(" ")[0]
        measured = run_here(f"python emulate.py projects/{project} --input {name}")
        assert f"Accuracy of the firmware: {accuracy}\n" in measured, project
        assert "not compared" not in measured and "inputs depart" not in measured
        if "--fold" in dataset:
            assert "PREPARE_FOLD 2 " in (tmp_path / "projects" / project / "prepare.h").read_text()
        for place in re.findall(r"^input \d+ \((.*?)\): ", measured, re.M):
            assert place.startswith(name.partition(":")[2])
    printed = run_here("python emulate.py projects/own")
    assert "PASS (1 inference)" in printed
    for name in classes:
        assert re.search(rf"\] -> {re.escape(name)}: \d+\.\d%", printed), printed


def write_numbers(place: Path) -> None:
    """Write rows of which two numbers tell a third one."""
    rows = np.random.default_rng(0).uniform(size=(100, 2))
    lines = [f"{a:.4f},{b:.4f},{1000 + 50 * a - 30 * b:.3f}" for a, b in rows]
    (place / "numbers.csv").write_text("\n".join(["a,b,price", *lines]) + "\n")


@pytest.mark.slow
def test_numbers_are_learned_down_to_firmware_that_prints_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_numbers(tmp_path)
    (tmp_path / "qat.yaml").write_text("start_epoch: 4\nweight_bits: 8\n")
    said = run_here(
        "python train.py --model auto --dataset csv:numbers.csv --regression --epochs 6 "
        "--qat-policy qat.yaml -j 0 --deterministic --name own"
    )
    errors = re.findall(r"^  .*  (([\d.]+) \(20 numbers; .*)", said, re.M)
    assert len(errors) == 3 and all(float(rmse) < 5 for _, rmse in errors), said
    quantize = "python quantize.py latest_log_dir/own_qat_best.pth.tar q.pth.tar --device MAX78000"
    assert f"These integers have an RMSE of {errors[-1][0]}" in run_here(quantize)
    load = "python ai8xize.py --checkpoint-file q.pth.tar --test-dir projects --model auto --device"
    run_here(f"{load} MAX78000 --prefix own")
    run_here(f"{load} MCU --mcu rp2040 --prefix plain")
    for project in ("own", "plain"):
        measured = run_here(f"python emulate.py projects/{project} --input csv:numbers.csv")
        assert f"RMSE of the firmware: {errors[-1][0]}\n" in measured, project
        worst = re.findall(r"^input \d+ \((numbers\.csv:\d+)\): price = ", measured, re.M)
        assert len(worst) == 5
    printed = float(run_here("python emulate.py projects/own").partition("price = ")[2].split()[0])
    run_here("python train.py --model auto --dataset csv:numbers.csv --evaluate -8 -j 0 "
             "--exp-load-weights-from q.pth.tar --save-csv tested")  # fmt: skip
    first = (tmp_path / "tested_ypred.csv").read_text().splitlines()[:2]
    assert first[0] == "price" and abs(float(first[1]) - printed) < 0.02


@pytest.mark.slow
def test_anomalies_are_found_by_firmware_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng, times = np.random.default_rng(0), np.arange(32)
    phases, heights = rng.uniform(0, 6, (2, 80, 1))
    x = (1 + heights) * np.sin(0.4 * times + phases)
    x[60:] += np.where(times == 16, 6, 0)  # a spike
    np.savez("waves.npz", x=x.astype(np.float32), y=np.repeat([0, 1], [60, 20]))
    (tmp_path / "qat.yaml").write_text("start_epoch: 6\nweight_bits: 8\n")
    said = run_here(
        "python train.py --model auto --dataset series:waves.npz --anomaly 0 --epochs 9 "
        "--qat-policy qat.yaml -j 0 --deterministic --name own"
    )
    areas = re.findall(r"^  .*  (([\d.]+) \(20 of 32 are anomalies; .*)", said, re.M)
    assert len(areas) == 3 and all(float(area) > 0.9 for _, area in areas), said
    quantize = "python quantize.py latest_log_dir/own_qat_best.pth.tar q.pth.tar --device MAX78000"
    assert f"These integers have an AUC of {areas[-1][0]}" in run_here(quantize)
    load = "python ai8xize.py --checkpoint-file q.pth.tar --test-dir projects --model auto --device"
    run_here(f"{load} MAX78000 --prefix own")
    run_here(f"{load} MCU --mcu rp2040 --prefix plain")
    for project in ("own", "plain"):
        measured = run_here(f"python emulate.py projects/{project} --input series:waves.npz")
        assert f"AUC of the firmware: {areas[-1][0]}\n" in measured, project
    assert re.search(
        r"^Score \d+, threshold \d+: ", run_here("python emulate.py projects/own"), re.M
    )
    tested = run_here("python train.py --model auto --dataset series:waves.npz --evaluate -8 -j 0 "
                      "--exp-load-weights-from q.pth.tar")  # fmt: skip
    assert f"AUC: {areas[-1][0]}\n" in tested


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--dataset csv:x.csv --regression --anomaly", "--anomaly: excludes --regression"),
        ("--dataset folder:pictures --anomaly", "--anomaly: only for --dataset csv: or npz:"),
        ("--dataset folder:pictures --regression", "not for --dataset folder:, whose samples have"),
        ("--dataset digits --resize 32", "--resize: only for --dataset folder:"),
        ("--dataset csv:x.csv --augment turn", "or sounds: or npz: or series:"),
        ("--dataset folder:pictures --augment spin", "'spin' is none of mirror"),
        ("--dataset sounds:x --window 100", "is no multiple of 128"),
        ("--dataset folder:pictures --resize 32x", "is not WIDTHxHEIGHT"),
    ],
)
def test_options_that_do_not_fit_the_data_are_refused(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import train

    monkeypatch.setattr(sys, "argv", ["train.py", "--model", "auto", *words.split()])
    with pytest.raises(SystemExit) as ended:
        run(train.main)
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_no_network_for_inputs_that_are_too_large(call: Call, folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)no network of sized2d fits MAX78000.*E698"):
        call("python train.py --dataset folder:pictures --model auto --resize 1024 --epochs 1")
