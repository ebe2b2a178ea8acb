"""train.py from its command line to files and exit status, on the bundled digits."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import train
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.diagnostics import run
from ai8xtools.training.loop import trainer
from ai8xtools.training.loop.epochs import layout_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ["--model", "ai85digitsnet", "--dataset", "digits"]
SHORT = [*DIGITS, "--deterministic", "--optimizer", "Adam", "--lr", "0.003", "--batch-size", "128"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder with a policy that starts QAT in epoch 1."""
    monkeypatch.chdir(tmp_path)
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")


def _train_py(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run train.py in this process and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["train.py", *options])
    try:
        return run(train.main)
    except SystemExit as exc:  # argparse
        return int(exc.code or 0)


def _metrics(name: str) -> dict[str, Any]:
    (file,) = Path("logs").glob(f"{name}___*/metrics.json")
    metrics: dict[str, Any] = json.loads(file.read_text())
    for epoch in metrics["epochs"]:
        assert epoch.pop("seconds", 1) > 0
    return metrics


def test_from_training_to_the_quantized_network(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*SHORT, "--epochs", "4", "--qat-policy", "qat.yaml", "--name", "run"]
    assert _train_py(monkeypatch, *options, "--validation-split", "0") == 0
    output = capsys.readouterr().out
    assert "Initiating quantization aware training (QAT)..." in output
    assert "Epoch: [0][" not in output  # lines of batches are for terminals and the file
    folder = Path("latest_log_dir").resolve()
    names = {p.name for p in folder.iterdir()}
    assert {"run_checkpoint.pth.tar", "run_best.pth.tar", "run_qat_best.pth.tar"} <= names
    text = Path("latest_log_file").read_text()
    assert "Epoch: [3][" in text
    assert "Dataset sizes: training=1437, validation=360, test=360" in text
    metrics = _metrics("run")
    assert [epoch["qat"] for epoch in metrics["epochs"]] == [False, True, True, True]

    best = folder / "run_qat_best.pth.tar"
    quantize = [sys.executable, str(ROOT / "quantize.py"), str(best), "q.pth.tar"]
    subprocess.run([*quantize, "--device", "MAX78000"], check=True, capture_output=True)
    evaluate = [*DIGITS, "--evaluate", "--exp-load-weights-from"]
    assert _train_py(monkeypatch, *evaluate, str(best), "--name", "float") == 0
    options = [*evaluate, "q.pth.tar", "-8", "--name", "int", "--save-sample", "5", "--confusion"]
    assert _train_py(monkeypatch, *options) == 0
    output = capsys.readouterr().out
    assert "==> Top1: " in output
    assert "==> Confusion:" in output
    quantized = _metrics("int")["test"]["top1"]
    assert quantized == _metrics("float")["test"]["top1"]
    assert quantized == metrics["best"]["top1"]
    assert quantized > 80

    sample = np.load("sample_digits.npy", allow_pickle=False)
    assert sample.dtype == np.int64
    assert sample.shape == (1, 8, 8)
    assert (sample.min(), sample.max()) == (-128, 127)


def test_deterministic_runs_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for name in ("a", "b"):
        options = [*SHORT, "--epochs", "2", "--qat-policy", "qat.yaml", "--name", name]
        assert _train_py(monkeypatch, *options) == 0
        results.append(_metrics(name))
    assert results[0] == results[1]


def test_resumed_run_continues_with_the_next_epoch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*SHORT, "--qat-policy", "qat.yaml"]
    assert _train_py(monkeypatch, *options, "--epochs", "2", "--name", "a") == 0
    checkpoint = str(Path("latest_log_dir") / "a_qat_checkpoint.pth.tar")
    checkpoint = str(Path(checkpoint).resolve())
    resume = [*DIGITS, "--qat-policy", "qat.yaml", "--lr", "0.5", "--resume-from", checkpoint]
    assert _train_py(monkeypatch, *resume, "--epochs", "3", "--name", "b") == 0
    assert "not given" not in capsys.readouterr().out
    *before, epoch = _metrics("b")["epochs"]
    assert before == _metrics("a")["epochs"]
    assert (epoch["epoch"], epoch["qat"], epoch["learning_rate"]) == (2, True, 0.003)
    assert (Path("latest_log_dir") / "b_qat_best.pth.tar").is_file()
    assert _train_py(monkeypatch, *resume, "--epochs", "2") == 1
    assert "--epochs" in capsys.readouterr().err


def test_interrupted_training_keeps_the_best_checkpoint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train_epoch = trainer.train_epoch

    def interrupted(passes: Any, batches: Any, optimizer: Any, epoch: int) -> Any:
        if epoch == 1:
            raise KeyboardInterrupt
        return train_epoch(passes, batches, optimizer, epoch)

    monkeypatch.setattr(trainer, "train_epoch", interrupted)
    assert _train_py(monkeypatch, *SHORT, "--epochs", "3", "--qat-policy", "None") == 1
    assert "interrupted" in capsys.readouterr().err
    best = Path("latest_log_dir") / "best.pth.tar"
    assert read_checkpoint(best).epoch == 0


def test_full_disk_ends_the_run_with_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(handler: logging.FileHandler, record: logging.LogRecord) -> None:
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            handler.handleError(record)  # as the library does

    monkeypatch.setattr(logging.FileHandler, "emit", full)
    assert _train_py(monkeypatch, *SHORT, "--epochs", "1", "--qat-policy", "None") == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert "Traceback" not in error


def test_loss_that_is_not_a_number_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*DIGITS, "--lr", "1e9", "--epochs", "2", "--qat-policy", "None"]
    assert _train_py(monkeypatch, *options, "--optimizer", "SGD") == 1
    message = capsys.readouterr().err
    assert re.search(
        r"of epoch [01] is not finite: values of the weight of layer \w+ are not", message
    )


def test_tensorboard_receives_the_scalars(monkeypatch: pytest.MonkeyPatch) -> None:
    options = [*SHORT, "--epochs", "1", "--qat-policy", "None", "--enable-tensorboard"]
    assert _train_py(monkeypatch, *options) == 0
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(Path("latest_log_dir").resolve()))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"Performance/Training/Overall_Loss", "Performance/Validation/Top1"} <= set(tags)


def test_models_of_the_working_directory_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("models").mkdir()
    Path("models/my-net.py").write_text(
        "from models.ai85digitsnet import ai85digitsnet\n"
        "def mynet(pretrained=False, **kwargs):\n"
        "    return ai85digitsnet(pretrained, **kwargs)\n"
        "models = [{'name': 'mynet', 'min_input': 1, 'dim': 2}]\n"
    )
    assert _train_py(monkeypatch, "--model", "mynet", "--dataset", "digits", "--evaluate") == 0
    Path("models/broken.py").write_text("import no_such_module\n")
    assert _train_py(monkeypatch, "--model", "mynet", "--dataset", "digits", "--evaluate") == 1
    assert "broken.py" in capsys.readouterr().err


def test_run_that_ends_before_quantization_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train_py(monkeypatch, *SHORT, "--epochs", "1", "--qat-policy", "qat.yaml") == 0
    assert "WARNING: qat.yaml: start_epoch is 1, but the run ends" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "status", "messages"),
    [
        (["--model", "ai85digitnet", "--dataset", "digits"], 1, ["--model", "ai85digitsnet"]),
        (["--model", "ai85net5", "--dataset", "Digits"], 1, ["--dataset", "digits"]),
        ([*DIGITS, "--compress", "absent.yaml", "--optimizer", "sgd"], 1, ["absent.yaml"]),
        ([*DIGITS, "--qat-policy", "absent.yaml"], 1, ["absent.yaml"]),
        ([*DIGITS, "-e", "--exp-load-weights-from", "absent"], 1, ["absent", "cannot be read"]),
        ([*DIGITS, "-8"], 2, ["-8"]),
        ([*DIGITS, "--save-sample", "1"], 2, ["--save-sample"]),
        (
            [*DIGITS, "--device", "MAX32655"],
            2,
            ["MAX32655", "known devices are AI84, MAX78000, MAX78002"],
        ),
        ([*DIGITS, "--seed", str(1 << 63)], 2, ["--seed", "above 2**63-1"]),
        ([*DIGITS, "--momentum=-1"], 2, ["--momentum", "[0, 1)"]),
        ([*DIGITS, "--wd=-1"], 2, ["--wd", "not a number from 0"]),
        ([*DIGITS, "--lr=-1"], 2, ["--lr", "not above 0 and at most 1e9"]),
        ([*DIGITS, "--name", "../run"], 2, ["--name", "without /"]),
        ([*DIGITS, "--name", ".."], 2, ["--name"]),
        ([*DIGITS, "--gpus", "99"], 1, ["--gpus", "no CUDA device 99"]),
        ([*DIGITS, "-e", "-8", "--save-sample", "360"], 1, ["--save-sample", "image 360"]),
    ],
)
def test_what_cannot_be_used_is_named(
    options: list[str],
    status: int,
    messages: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _train_py(monkeypatch, *options) == status
    error = capsys.readouterr().err
    assert all(message in error for message in messages), error
    assert "Traceback" not in error


def test_float_checkpoint_is_refused_in_simulation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train_py(monkeypatch, *SHORT, "--epochs", "1", "--qat-policy", "None") == 0
    best = str((Path("latest_log_dir") / "best.pth.tar").resolve())
    assert _train_py(monkeypatch, *DIGITS, "-e", "-8", "--exp-load-weights-from", best) == 1
    assert "Quantize the checkpoint with quantize.py first" in capsys.readouterr().err


@pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="half a minute: make properties")
def test_small_network_reaches_the_published_accuracy(shared: Path) -> None:
    """A fixed recipe gives the accuracy that the vendor's layers give.

    The order of sums in a matrix product differs between processors and is multiplied by training;
    the last digits are therefore those of the machine.
    """
    script = Path(__file__).with_name("recipe_extrasmall.py")
    result = subprocess.run(
        [sys.executable, str(script), str(shared / "data"), "8", "4"],
        check=True, capture_output=True, text=True, cwd=ROOT,
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found = [float(text) for text in result.stdout.split()]
    assert found == pytest.approx([97.13, 96.71], abs=0.3)


def test_threads_do_not_matter_for_simulation() -> None:
    """Integer sums are exact, so that their order cannot change a result."""
    import ai8x
    from models.ai85digitsnet import ai85digitsnet

    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    model = ai85digitsnet(weight_bits=8, bias_bits=8, quantize_activation=True)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randint(-128, 128, parameter.shape))
        x = torch.randint(-128, 128, (4, 1, 8, 8)).float()
        results = []
        threads = torch.get_num_threads()
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(model(x))
        torch.set_num_threads(threads)
    assert torch.equal(*results)


@pytest.mark.parametrize("views", [False, True])
def test_networks_may_rely_on_the_usual_order_in_memory(views: bool) -> None:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.norm(self.conv(x))
            return x.view(x.size(0), -1) if views else x.flatten(1)

    networks = [torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)), Network()]
    layout = layout_of(networks, torch.rand(3, 8, 8))
    assert layout is (torch.contiguous_format if views else torch.channels_last)
    assert all(network.training for network in networks)
    assert not networks[1].norm.num_batches_tracked  # type: ignore[truthy-function]
    for network in networks:
        network.to(memory_format=layout)(torch.rand(2, 3, 8, 8).contiguous(memory_format=layout))
