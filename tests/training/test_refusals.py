"""What a training cannot do is refused by its code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from ai8xtools.commands.lowbit.data import _pictures
from ai8xtools.commands.q15 import network as q15_network
from ai8xtools.commands.quantize import quantize as quantizing
from ai8xtools.commands.quantize.arguments import parse
from ai8xtools.commands.targets import main
from ai8xtools.commands.train.automatic import settled
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.quantization.q15.graph import GraphBuilder
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.compute import devices
from ai8xtools.training.data.batches import load_data
from ai8xtools.training.data.sample_file import save_sample
from ai8xtools.training.display.trackers import tracker_of
from ai8xtools.training.export.onnx_file import write_onnx
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.search.policy import read_search_policy
from datasets.own.augmentation import Augmentation
from datasets.own.preparation import Preparation
from datasets.own.record import KEY, recorded_of

Train = Callable[..., Any]


def code(what: Callable[[], object]) -> str | None:
    """Return the code with which something is refused; None if it is not."""
    try:
        what()
    except ToolError as refusal:
        return refusal.code
    return None


def options(**changes: Any) -> TrainingOptions:
    return TrainingOptions(**{"arch": "net", "dataset": "numbers", **changes})


def test_a_data_set_has_test_samples() -> None:
    empty = torch.utils.data.TensorDataset(torch.zeros(0, 1), torch.zeros(0))
    entry = DatasetEntry("numbers", (1, 1, 1), (0, 1), lambda *_args: (empty, empty), None)
    assert code(lambda: load_data(entry, options(workers=0))) == "E606"


@pytest.mark.parametrize("index", [1, 2])
def test_a_sample_is_one_of_the_first_batch(
    index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batches: Any = SimpleNamespace(of_epoch=lambda _: iter([(torch.zeros(2, 1, 2, 2), None)]))
    wanted = "E610" if index == 2 else None
    assert code(lambda: save_sample(batches, index, options())) == wanted


def test_a_run_that_is_continued_has_epochs_left(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--epochs", "1")
    file = str(done.folder / "checkpoint.pth.tar")
    again = tiny("tinyclassifier", "tinyclasses", "--epochs", "1", "--resume-from", file)
    assert again.status == 1 and "[E615]" in again.error


def test_what_onnx_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no such operator")

    monkeypatch.setitem(sys.modules, "onnx", SimpleNamespace())
    monkeypatch.setattr(torch.onnx, "export", fails)

    def write() -> str:
        return write_onnx(nn.Flatten(), torch.zeros(1, 2), str(tmp_path / "a"), False)

    assert code(write) == "E648"
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert code(write) == "E624"
    assert not [*tmp_path.iterdir()]


def test_the_end_of_another_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = RuntimeError("[gloo] Connection closed by peer")
    assert devices.explained(failure, options()) is failure
    monkeypatch.setattr(devices.distributed, "is_initialized", lambda: True)
    told = devices.explained(failure, options())
    assert isinstance(told, ToolError) and told.code == "E660"


def test_a_tracker_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    context: Any = None
    assert code(lambda: tracker_of("mlflow", context)) == "E624"


@pytest.mark.parametrize(("kind", "file"), [("picture", "a.wav"), ("sound", "a.png")])
def test_inputs_are_of_the_kind_that_was_trained_on(kind: str, file: str) -> None:
    assert code(lambda: Preparation(kind, (1, 4, 4)).inputs_of(Path(file))) == "E630"


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("turn", "sound", "E687"),
        ("shift", "features", "E687"),
        ("shift", "sound", None),
        ("turn", "picture", None),
    ],
)
def test_augmentations_are_for_their_kind_of_data(name: str, kind: str, wanted: str | None) -> None:
    assert code(lambda: Augmentation((name,), kind)) == wanted


@pytest.mark.parametrize("entry", [{}, 3, {"version": 1, "sample": [1]}])
def test_what_a_checkpoint_says_of_data_is_as_it_was_written(entry: object) -> None:
    assert recorded_of({}, "net.pth.tar") is None
    assert code(lambda: recorded_of({KEY: entry}, "net.pth.tar")) == "E506"


def test_a_network_is_taken_from_a_checkpoint_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "net.pth.tar"
    for name, wanted in (("ai85net5", None), (None, "E689")):
        torch.save({"epoch": 1, "arch": name, "state_dict": {"a": torch.zeros(1)}}, path)
        given = options(arch="auto", exp_load_weights_from=str(path))
        assert code(lambda o=given: settled(o)) == wanted


def test_values_of_a_search_policy_are_checked(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("elastic_kernel:\n  leveling: maybe\n  num_epochs: 1\n")
    assert code(lambda: read_search_policy(str(policy))) == "E604"


@pytest.mark.parametrize(("channels", "wanted"), [(1, None), (3, "E630")])
def test_low_bit_networks_take_grey_pictures(channels: int, wanted: str | None) -> None:
    found = SimpleNamespace(
        images=torch.zeros(2, channels, 4, 4, dtype=torch.uint8), white=255,
        targets=torch.zeros(2),
    )  # fmt: skip
    assert code(lambda: _pictures(found, "x")) == wanted


@pytest.mark.parametrize(
    ("computes", "left", "wanted"),
    [
        (lambda x: x, (), None),
        (lambda x: x * 1.5, (), "E668"),
        (lambda x: x.softmax(1), ("end",), None),
        (lambda x: x.log_softmax(1), ("end",), None),
        (lambda x: (x * 1.5).softmax(1), ("end",), "E668"),
        (lambda x: x, ("end",), "E668"),
    ],
)
def test_what_was_understood_computes_what_the_network_does(
    computes: Any, left: tuple[str, ...], wanted: str | None
) -> None:
    graph = GraphBuilder((2, 2, 2)).finished(0)
    samples = torch.arange(16.0, dtype=torch.float64).reshape(2, 2, 2, 2) / 8
    compare = functools.partial(q15_network._compare, computes(samples), graph, samples.numpy())
    assert code(lambda: compare(left, "net.pth", "Net")) == wanted


def test_weights_of_an_ordinary_network_need_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(nn.Linear(4, 2).state_dict(), "plain.pth")
    words = ["plain.pth", "out.pth.tar", "--device", "Q15", "--calib", "digits"]
    assert code(lambda: main("quantize.py", words)) == "E689"


CHECKPOINT = ["in.pth.tar", "out.pth.tar", "--device", "MAX78000"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], []),
        (["--clip-method", "SCALE"], ["W751"]),
        (["--clip-method", "SCALE", "--scale", "0.8"], []),
        (["--scale", "0.8"], ["W041"]),
        (["--clip-method", "STDDEV", "--scale", "0.8"], ["W751", "W041"]),
    ],
)
def test_parameters_of_clipping_belong_to_a_method(
    words: list[str], wanted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    quantizing.quantization_options(parse([*CHECKPOINT, *words]))
    told = capsys.readouterr().err
    assert [c for c in ("W751", "W041") if f"[{c}]" in told] == wanted


def test_other_names_of_clipping_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    for name, method in quantizing.ALIASES.items():
        assert quantizing.clip_method(name) is method
        assert "[N761]" in capsys.readouterr().err


def test_graphs_have_no_layers_to_quantize() -> None:
    words = ["net.onnx", *CHECKPOINT[1:]]
    assert code(lambda: quantizing.read_trained(parse(words))) == "E714"
