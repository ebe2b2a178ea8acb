"""AdamW, averages, mixup, rates by option and their like: what they do, and that runs resume."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ai8x
from ai8xtools.training.compute.distributed import Share
from ai8xtools.training.data.batches import Order, TensorBatches
from ai8xtools.training.data.mixing import Mixed, MixedBatches
from ai8xtools.training.loop.trainer import Trainer
from ai8xtools.training.tasks.classification import Classification
from tests.training.conftest import Done

Train = Callable[..., Done]
POLICY = "start_epoch: 2\nweight_bits: 8\n"
REFINED = (
    "--use-bias", "--qat-policy", "qat.yaml", "--epochs", "4", "--optimizer", "AdamW",
    "--ema", "0.9", "--mixup", "0.3", "--label-smoothing", "0.1", "--clip-gradient", "0.5",
    "--lr-schedule", "cosine", "--warm-up", "2", "--lr-min", "0.001", "--early-stop", "9",
    "--weight-decay-of", "*.bn.*=0", "--weight-decay-of", "fc.*=0.01",
)  # fmt: skip


def loaded(folder: Path, name: str = "qat_checkpoint") -> dict[str, Any]:
    kinds = [torch.optim.AdamW, torch.optim.Adam]
    with torch.serialization.safe_globals(kinds):
        found: dict[str, Any] = torch.load(folder / f"{name}.pth.tar", weights_only=True)
    return found


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def interrupted_after(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    save = Trainer._save

    def saving(self: Trainer, number: int, scores: Any) -> None:
        save(self, number, scores)
        if number == epoch:
            monkeypatch.setattr(Trainer, "_save", save)
            raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_save", saving)


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_interrupted_run_names_its_checkpoint_and_resumes_exactly(
    tiny: Train, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    Path("qat.yaml").write_text(POLICY)
    whole = tiny("tinynormalized", "tinynoise", *REFINED)
    expected, kept = whole.metrics, loaded(whole.folder)
    interrupted_after(monkeypatch, epoch)
    stopped = tiny("tinynormalized", "tinynoise", *REFINED)
    assert stopped.status == 1 and "[E001]" in stopped.error
    source = stopped.error.partition("--resume-from ")[2].split(" and ")[0]
    rest = tiny("tinynormalized", "tinynoise", *REFINED, "--resume-from", source)
    assert rest.status == 0, rest.error
    found = loaded(rest.folder)
    for name in ("state_dict", "optimizer_state_dict", "extras"):
        assert same(kept[name], found[name]), name
    metrics = rest.metrics
    for epochs in (expected["epochs"], metrics["epochs"]):
        for entry in epochs:
            entry.pop("seconds", None)
    assert metrics == expected


def test_checkpoints_hold_the_average_and_the_weights_in_training(tiny: Train) -> None:
    done = tiny("tinynormalized", "tinynoise", "--use-bias", "--epochs", "2", "--ema", "0.99")
    found = loaded(done.folder, "checkpoint")
    plain = tiny("tinynormalized", "tinynoise", "--use-bias", "--epochs", "2")
    without = loaded(plain.folder, "checkpoint")
    average = found["extras"]["average"]
    assert average["updates"] == 6
    assert same(average["weights"], dict(without["state_dict"]))
    assert not same(dict(found["state_dict"]), average["weights"])
    assert same(found["optimizer_state_dict"], without["optimizer_state_dict"])
    assert "average" not in without["extras"]


def test_rates_rise_and_fall_along_a_cosine(tiny: Train) -> None:
    done = tiny(
        "tinyclassifier", "tinyclasses", "--epochs", "6", "--lr", "0.03", "--warm-up", "2",
        "--lr-schedule", "cosine", "--lr-min", "0.01",
    )  # fmt: skip
    rates = [epoch["learning_rate"] for epoch in done.metrics["epochs"]]
    wave = [0.01 + 0.02 * (1 + torch.cos(torch.tensor(n * torch.pi / 4))) / 2 for n in range(4)]
    assert rates == pytest.approx([0.01, 0.02, *map(float, wave)])


def test_a_run_stops_early_but_not_before_qat(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("qat.yaml").write_text("start_epoch: 2\nweight_bits: 8\n")
    # the later, the worse
    monkeypatch.setattr(
        Classification, "rank", lambda _self, scores: (-scores.losses.setdefault("n", time.time()),)
    )
    done = tiny(
        "tinyclassifier", "tinyclasses", "--epochs", "9", "--early-stop", "1",
        "--qat-policy", "qat.yaml",
    )  # fmt: skip
    assert [epoch["epoch"] for epoch in done.metrics["epochs"]] == [0, 1, 2, 3]
    assert "Early stop: no better epoch in the last 1" in done.output
    assert done.metrics["best"]["epoch"] == 2


def test_the_best_epoch_is_tested_too(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classification, "rank", lambda _self, scores: (scores.loss,))  # the worst
    done = tiny("tinyclassifier", "tinyclasses", "--epochs", "3")
    metrics, best = done.metrics, str(done.folder / "best.pth.tar")
    assert "--- test (best) ---" in done.output and metrics["test_best"] != metrics["test"]
    again = tiny("tinyclassifier", "tinyclasses", "--evaluate", "--exp-load-weights-from", best)
    assert again.metrics["test"] == metrics["test_best"]


def test_qat_can_begin_with_the_first_epoch(tiny: Train) -> None:
    Path("qat.yaml").write_text("start_epoch: 0\nweight_bits: 8\n")
    done = tiny("tinynormalized", "tinyclasses", "--use-bias", "--qat-policy", "qat.yaml")
    assert done.status == 0, done.error
    assert [epoch["qat"] for epoch in done.metrics["epochs"]] == [True]
    assert not (done.folder / "checkpoint.pth.tar").exists()


class Numbers:
    """Sample n is the number n, with label n."""

    def __len__(self) -> int:
        return 10

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return indices.float().unsqueeze(1), indices


def mixed(share: Share) -> Iterator[tuple[torch.Tensor, Mixed]]:
    order = Order(torch.arange(10), 4, shuffle=True, seed=3, share=share, pairs=True)
    yield from MixedBatches(TensorBatches(Numbers(), order), 0.5, 3).of_epoch(2)


def test_mixtures_have_the_labels_of_both_and_do_not_depend_on_the_division() -> None:
    whole, parts = [*mixed(Share())], [[*mixed(Share(rank, 2))] for rank in range(2)]
    assert [len(inputs) for inputs, _ in whole] == [4, 4, 2]
    assert len({targets.share for _, targets in whole}) == 3
    for (inputs, targets), left, right in zip(whole, *parts, strict=True):
        wanted = targets.share * targets.first + (1 - targets.share) * targets.second
        torch.testing.assert_close(inputs[:, 0], wanted)
        assert torch.equal(inputs, torch.cat([left[0], right[0]]))
        assert torch.equal(targets.second, torch.cat([left[1].second, right[1].second]))
        assert targets.share == left[1].share >= 0.5


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--weight-decay-of", "conv9.*=0"), 1, "[E680]"),
        (("--weight-decay-of", "conv"), 2, "is not NAME=W"),
        (("--lr-schedule", "cosine", "--compress", "x.yaml"), 2, "--compress: not together"),
        (("--warm-up", "1"), 2, "1 epochs leave none of --epochs 1"),
        (("--regression", "--mixup", "1"), 1, "not trained by cross entropy"),
        (("--track", "mlflow"), 1, "pip install mlflow"),
    ],
)
def test_refinements_that_cannot_be_are_refused(
    tiny: Train, options: tuple[str, ...], status: int, message: str
) -> None:
    dataset = "tinynumbers" if "--regression" in options else "tinyclasses"
    done = tiny("tinyclassifier", dataset, *options)
    assert done.status == status and message in " ".join(done.error.split()), done.error


def test_what_quantization_does_to_each_layer_is_logged(tiny: Train) -> None:
    Path("qat.yaml").write_text("start_epoch: 1\nweight_bits: 4\n")
    done = tiny(
        "tinyclassifier", "tinyclasses", "--epochs", "2", "--qat-policy", "qat.yaml",
        "--qat-diagnostics", "--enable-tensorboard",
    )  # fmt: skip
    table = done.output.partition("Quantization (epoch=1)")[2].splitlines()[1:5]
    assert "Quantization (epoch=0)" not in done.output
    assert [row.split()[0] for row in table[2:]] == ["conv", "fc"]
    for row in table[2:]:
        numbers = [float(part) for part in row.split()[1:]]
        assert 0 <= numbers[0] < 100 and 5 < numbers[1] < 40 and numbers[3] > 5
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(done.folder)).Reload()
    assert "Quantization/conv/outputs_snr" in events.Tags()["scalars"]


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("bits", [8, 2])
def test_damage_is_that_of_the_integers(generation: int, bits: int) -> None:
    torch.manual_seed(1)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    layer = ai8x.FusedMaxPoolConv2dReLU(3, 4, 3, padding=1, bias=True)
    net = torch.nn.Sequential(layer)
    ai8x.use_thresholds(net, generation == 2)
    layer.op.weight.data[0, 0, 0, 0] = 2.0  # beyond what the others need
    x = torch.rand(2, 3, 8, 8) - 0.5
    pooled = torch.nn.functional.max_pool2d(x, 2, 2)
    wanted = torch.nn.functional.conv2d(pooled, layer.op.weight, layer.op.bias, padding=1).relu()
    ai8x.initiate_qat(net, {"weight_bits": bits})
    found = ai8x.output_damage(layer, x, layer(x.clone()))
    noise = (wanted - layer(x.clone())).double().square().sum()
    assert found.snr_db == pytest.approx(
        float(10 * torch.log10(wanted.double().square().sum() / noise)), abs=1e-3
    )
    assert found.clipped == pytest.approx(100 * float((wanted >= 127.5 / 128).float().mean()))
    assert ai8x.weight_damage(layer).snr_db < (50 if bits == 8 else 12)


class Service:
    """Stands for mlflow and for wandb: notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*args: Any, **keywords: Any) -> Service:
            self.calls.append((name, args, keywords))
            return self

        return called


def test_a_run_reports_to_the_services_that_are_named(
    tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = {name: Service() for name in ("mlflow", "wandb")}
    for name, service in services.items():
        monkeypatch.setitem(sys.modules, name, service)
    done = tiny("tinyclassifier", "tinyclasses", "--track", "mlflow", "--track", "wandb")
    assert done.status == 0, done.error
    for name, log in (("mlflow", "log_metrics"), ("wandb", "log")):
        calls = services[name].calls
        sent: dict[str, float] = {}
        for call, args, _ in calls:
            sent |= args[0] if call == log else {}
        assert sent["test_best/top1"] == done.metrics["test_best"]["top1"]
        assert {"training/overall_loss", "validation/top1", "test/top1"} <= sent.keys()
    assert services["mlflow"].calls[-1] == ("end_run", ("FINISHED",), {})
    assert services["wandb"].calls[-1] == ("finish", (), {"exit_code": 0})
