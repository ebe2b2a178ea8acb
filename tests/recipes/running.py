"""Runs the command lines of lines.txt to the point where the first batch would be read.

Data is random, of the shape that the data set says, and so are weights of checkpoints: what is
tried are options, policies, networks and how they go together with the data.
"""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import ai8x
import quantize
from ai8xtools.checkpoint import Checkpoint, write_checkpoint
from ai8xtools.commands.train.arguments import parse
from ai8xtools.commands.train.search import ChipDeployment
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.training import session
from ai8xtools.training.catalog import own_data
from ai8xtools.training.catalog.discovery import DatasetEntry, find_datasets, find_models
from models.ir import Backbone
from tests.models.cases import BIAS
from tests.models.random_weights import Case, qat_network

LINES = Path(__file__).with_name("lines.txt")
SHAPES: dict[str, tuple[int, ...]] = {
    "Kinetics400": (15, 96, 60, 60),
    "VGGFace2_FaceID": (6, 112, 112),
    "VGGFace2_FaceID_160_120": (6, 160, 120),
}
"""Items of several parts, where the record tells one part only."""
PICTURES = {"ImageNet_Bayer": (3, 128, 128)}
SEGMENTED = ("CamVid_", "AISegment_")


class Reached(Exception):
    """The line has got as far as the data."""


def lines() -> dict[str, list[str]]:
    """Return the words of each command line by its name."""
    found = {}
    for line in LINES.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(": ")
            found[name] = shlex.split(words)
    return found


def run(words: list[str], folder: Path) -> str | None:
    """Run a line in `folder`; return None if it works, else what it says."""
    program, *rest = words
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            _train(rest, folder) if program == "train.py" else _quantize(rest, folder)
    except Reached:
        return None
    except ToolError as exc:
        return str(exc)
    except SystemExit:
        return text.getvalue().strip() or "it ends at once"
    finally:
        ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    return None if program == "quantize.py" else "it never asks for data"


def _train(words: list[str], folder: Path) -> None:
    """Run train.py until it would train or measure."""
    with contextlib.chdir(folder):  # where no policies are
        options, _ = parse(words)
    options = replace(options, out_dir=str(folder), data=str(folder), workers=0)
    if options.exp_load_weights_from is not None:
        options = replace(options, exp_load_weights_from=None)
    if options.backbone_checkpoint is not None:
        path = folder / "backbone.pth"
        torch.save(Backbone(152, False, (112, 112)).state_dict(), path)
        options = replace(options, backbone_checkpoint=str(path))
    made = {name: _with_random_data(entry) for name, entry in find_datasets().items()}
    with (
        patch.object(own_data, "find_datasets", lambda: made),
        patch.object(session.Trainer, "run", _stop),
        patch.object(session.SearchTrainer, "run", _stop),
        patch.object(session, "_evaluate_only", _stop),
        contextlib.chdir(folder),
    ):
        session.run(options, deployment=lambda: ChipDeployment(options.device))


def _stop(*_: Any, **__: Any) -> None:
    raise Reached


def _with_random_data(entry: DatasetEntry) -> DatasetEntry:
    """Return a data set with two random items of the shape that it says."""

    def load(data: tuple[str, Any], _train: bool = True, _test: bool = True) -> Any:
        size = entry.input[:2] if entry.input[2] == 1 and entry.input[1] > 1 else entry.input
        shape = SHAPES.get(entry.name, size)
        integers = torch.randint(-128, 128, shape).float()
        x = integers if data[1].act_mode_8bit else integers / 128
        items = [(x, _target(entry, x)) for _ in range(2)]
        return _Listed(items), _Listed(items)

    return replace(entry, loader=load)


def _target(entry: DatasetEntry, x: Tensor) -> Any:
    if entry.collate is not None:
        return torch.tensor([[0.1, 0.2, 0.5, 0.9]]), torch.tensor([1])
    if entry.name in PICTURES:
        return torch.zeros(PICTURES[entry.name])
    if entry.name.startswith(SEGMENTED):
        fold = entry.fold_ratio or 1
        return torch.zeros([fold * side for side in entry.input[1:]], dtype=torch.int64)
    if entry.name.startswith("VGGFace2_FaceID") and entry.regression:
        return torch.zeros(1)
    if entry.regression or len(entry.output) == 1:
        return x
    return 0


class _Listed(torch.utils.data.Dataset[Any]):
    """A list as a data set."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


def _quantize(words: list[str], folder: Path) -> None:
    """Run quantize.py on random weights of the network that stands for the checkpoint."""
    name, output, *rest = words
    device = rest[rest.index("--device") + 1]
    target = folder / output
    with contextlib.chdir(Path(quantize.__file__).parent):
        quantize.main([str(checkpoint_of(name, device, folder)), str(target), *rest])
    if not target.is_file():
        raise ToolError("E009", "quantize.py has written nothing", str(target))


def checkpoint_of(name: str, device: str, folder: Path) -> Path:
    """Write a QAT checkpoint of random weights of a network."""
    with_bias = name in BIASED
    entry = find_models()[name]
    case = Case(name, INPUTS.get(name, (3, 32, 32)), {**KEYWORDS.get(name, {}),
                **(BIAS if with_bias else {})}, die=87 if device.endswith("2") else 85)  # fmt: skip
    assert entry.name == name
    state = {n: t.detach().numpy() for n, t in qat_network(case).state_dict().items()}
    path = folder / f"{name}.pth.tar"
    entries = {"epoch": 1, "state_dict": state, "arch": name, "extras": {"best_top1": 0.0}}
    write_checkpoint(path, Checkpoint(entries))
    return path


BIASED = {"ai85nascifarnet", "ai85simplenet", "ai85faceidnet_112", "ai87effnetv2"}
INPUTS: dict[str, tuple[int, ...]] = {
    "ai85net5": (1, 28, 28), "ai85netextrasmall": (1, 28, 28), "ai85kws20netv3": (128, 128),
    "ai87kws20netv3": (128, 128), "ai85cdnet": (3, 128, 128), "ai85unetlarge": (48, 24, 16),
    "ai85tinierssd": (3, 74, 74), "ai85faceidnet_112": (3, 112, 112),
}  # fmt: skip
KEYWORDS: dict[str, dict[str, Any]] = {
    "ai85net5": {"num_channels": 1}, "ai85netextrasmall": {"num_channels": 1},
    "ai85tinierssd": {"num_classes": 11},
}  # fmt: skip


def missing_names(words: list[str]) -> Iterator[str]:
    """Yield the names of networks and data sets of a training line that do not exist."""
    options, _ = parse(words)
    if options.arch not in find_models():
        yield options.arch
    if options.dataset not in find_datasets():
        yield options.dataset
    if options.kd_teacher is not None and options.kd_teacher not in find_models():
        yield options.kd_teacher
