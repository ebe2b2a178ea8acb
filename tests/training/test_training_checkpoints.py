"""Writing and loading checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.checkpoint import atomic, read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry
from ai8xtools.training.network import fitting
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.saving import checkpoints


@pytest.fixture(autouse=True)
def _max78000() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class _Network(nn.Module):
    def __init__(self, channels: int = 3, batchnorm: str | None = None) -> None:
        super().__init__()
        self.conv1 = ai8x.FusedConv2dReLU(1, channels, 3, batchnorm=batchnorm)
        self.fc = ai8x.Linear(channels * 4, 2, bias=True, wide=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.conv1(x).flatten(1))


def _write(path: Path, model: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    model(torch.randn(2, 1, 4, 4)).sum().backward()
    optimizer.step()
    extras = {"current_top1": 1.5, "best_top1": 2.5, "best_epoch": 3}
    checkpoints.write([path], 7, "net", model, optimizer, extras)
    return optimizer


def test_written_file_has_the_entries_of_the_format(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pth.tar", _Network()
    _write(path, model)
    content = read_checkpoint(path).entries
    assert list(content) == [
        "epoch", "state_dict", "arch", "optimizer_state_dict", "optimizer_type",
        "compression_sched", "extras",
    ]  # fmt: skip
    assert content["epoch"] == 7
    assert content["arch"] == "net"
    assert str(content["optimizer_type"]) == "torch.optim.adam.Adam"
    assert list(content["state_dict"]) == list(model.state_dict())
    masks = content["compression_sched"]["masks_dict"]
    assert masks == {name: None for name, _ in model.named_parameters()}
    trained = list(content["optimizer_state_dict"]["state"])
    assert trained == [6, 7, 14, 15]  # all parameters are numbered, only the trained have a state


def test_written_file_is_read_by_torch_without_executing_anything(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pth.tar", _Network()
    _write(path, model.to(memory_format=torch.channels_last))
    with torch.serialization.safe_globals([torch.optim.Adam]):
        content = torch.load(path, weights_only=True)
    for name, tensor in model.state_dict().items():
        assert torch.equal(content["state_dict"][name], tensor)
        assert content["state_dict"][name].is_contiguous()
        assert content["state_dict"][name].dtype == tensor.dtype


def test_weights_and_optimizer_come_back(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pth.tar", _Network()
    ai8x.initiate_qat(model, {"weight_bits": 4})
    optimizer = _write(path, model)
    loaded, other = checkpoints.read(str(path)), _Network()
    assert checkpoints.load_into(other, loaded) == []
    x = torch.rand(1, 1, 4, 4)
    assert torch.equal(other(x), model(x))
    assert loaded.epoch == 7
    renewed = torch.optim.Adam(other.parameters(), 0.5)
    renewed.load_state_dict(loaded.optimizer)
    assert renewed.param_groups[0]["lr"] == 0.01
    moments = renewed.state_dict()["state"][6]["exp_avg"]
    assert torch.equal(moments, optimizer.state_dict()["state"][6]["exp_avg"])


def test_names_that_do_not_fit_are_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.pth.tar"
    _write(path, _Network())
    state = dict(checkpoints.read(str(path)).state)
    del state["fc.op.bias"]
    state["head.op.weight"] = torch.zeros(1)
    own = fitting.expected(_Network(channels=5), state)
    options = TrainingOptions(arch="net", dataset="digits")
    digits = DatasetEntry("digits", (1, 4, 4), (0, 1), lambda *_: (None, None), None)
    with pytest.raises(CheckpointError) as info:
        fitting.refuse(own, state, "net", str(path), options, {}, digits)
    assert info.value.code == "E676"
    assert "1 missing, 1 surplus, 3 another shape" in info.value.message
    rows = [line.split() for line in str(info.value.remedy).splitlines()]
    assert ["fc.op.bias", "missing", "2"] in rows
    assert ["head.op.weight", "1", "missing"] in rows
    assert ["conv1.op.weight", "3x1x3x3", "5x1x3x3"] in rows
    assert info.value.place == str(path)


def test_network_that_fits_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.pth.tar"
    _write(path, _Network(channels=4))
    state = checkpoints.read(str(path)).state
    sizes = {"three": 3, "four": 4}
    models = {
        name: ModelEntry(name, lambda count=size, **_: _Network(count), 1, 2)
        for name, size in sizes.items()
    }
    digits = DatasetEntry("digits", (1, 4, 4), (0, 1), lambda *_: (None, None), None)
    options = TrainingOptions(arch="three", dataset="digits")
    own = fitting.expected(_Network(3), state)
    with pytest.raises(CheckpointError) as info:
        fitting.refuse(own, state, None, str(path), options, models, digits)
    assert str(info.value.remedy).startswith("Use --model four.")


def test_surplus_names_and_prefix_and_missing_quantile_are_tolerated(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pth.tar", _Network()
    _write(path, model)
    state: dict[str, Any] = dict(checkpoints.read(str(path)).state)
    del state["conv1.shift_quantile"]
    state["extra"] = torch.zeros(1)
    file = tmp_path / "b.pth.tar"
    torch.save({"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 1}, file)
    other = _Network()
    assert checkpoints.load_into(other, checkpoints.read(str(file))) == ["extra"]
    assert torch.equal(other.fc.op.weight, model.fc.op.weight)
    assert float(other.conv1.shift_quantile) == 1.0


def test_file_without_batch_normalization_fills_a_model_with_it(tmp_path: Path) -> None:
    path, model = tmp_path / "a.pth.tar", _Network(batchnorm="Affine")
    ai8x.fuse_bn_layers(model)
    _write(path, model)
    other = _Network(batchnorm="Affine")
    checkpoints.load_into(other, checkpoints.read(str(path)))
    assert other.conv1.bn is None
    x = torch.rand(1, 1, 4, 4)
    assert torch.equal(other(x), model(x))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no checkpoint at all"])
def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.pth.tar"
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as info:
        checkpoints.read(str(path))
    assert info.value.place == str(path)


def test_full_disk_leaves_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "best.pth.tar"
    _write(path, _Network())
    before = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _write(path, _Network())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
