"""Mistakes in own files of models and data sets are told with file and remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import choose, find_datasets, find_models

Train = Callable[..., Any]

MODEL = """\
import ai8x
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes=4, num_channels=1, dimensions=(8, 8), bias=False, **kwargs):
        super().__init__()
        self.conv = ai8x.FusedMaxPoolConv2dReLU(1, 4, 3, padding=1, bias=bias, **kwargs)
        self.fc = ai8x.Linear(64, num_classes, wide=True, **kwargs)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def ownnet(pretrained=False, **kwargs):
    return Net(**kwargs)


models = [{"name": "ownnet", "min_input": 1, "dim": 2}]
"""
DATA = """\
import torch


class Squares:
    def __init__(self, args):
        self.args = args

    def __len__(self):
        return 16

    def __getitem__(self, index):
        image = torch.full((1, 8, 8), -0.5)
        image[0, index % 4] = 0.5
        return image, index % 4


def load(data, load_train, load_test):
    train = Squares(data[1])
    test = Squares(data[1])
    return train, test


datasets = [{"name": "owndata", "input": (1, 8, 8), "output": ("a", "b", "c", "d"), "loader": load}]
"""
LIST = 'models = [{"name": "ownnet", "min_input": 1, "dim": 2}]'


@pytest.fixture
def own(tiny: Train) -> Train:
    """Return a function that trains with the files above after replacing a text in one of them.

    It takes pairs of texts and further options.
    """

    def train(*changes: tuple[str, str], options: tuple[str, ...] = ()) -> Any:
        model, data = MODEL, DATA
        for old, new in changes:
            assert (old in model) != (old in data)
            model, data = model.replace(old, new), data.replace(old, new)
        Path("models/own.py").write_text(model)
        Path("datasets/own.py").write_text(data)
        return tiny("ownnet", "owndata", *options)

    return train


def test_files_without_mistakes_train_without_a_warning(own: Train) -> None:
    done = own()
    assert done.status == 0, done.error
    assert "WARNING" not in done.output


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (LIST, "models = [Net]", ["`models` holds the class Net", "E661", "models/own.py"]),
        (LIST, 'models = {"name": "ownnet"}', ["is a dictionary; it must be a list", "E661"]),
        (', "dim": 2', "", ["'ownnet' of `models` has no 'dim'; it must be 1 for", "E661"]),
        ('"dim": 2', '"dim": "2D"', ["has the dim '2D'", "E661"]),
        ('"name": "ownnet", ', "", ["an entry of `models` has no 'name'", "E661"]),
        ('"name": "ownnet"', '"name": "OwnNet"', ["has the name 'OwnNet'; it must be in lower"]),
        ('"min_input": 1', '"min_input": "1"', ["has the min_input '1'", "E661"]),
        ("    return Net(**kwargs)", "    Net(**kwargs)", ["returns NoneType", "own.py:15"]),
        ("bias=bias", "bias=bais", ["NameError: name 'bais'", "models/own.py:8: ", "E662"]),
        ("self.conv(x)", "self.cnv(x)", ["AttributeError", "models/own.py:12: ", "E662"]),
        ("Linear(64", "Linear(65", ["cannot take the inputs", "models/own.py:12", "E630"]),
        ("pretrained=False, **kwargs", "", ["keyword argument 'pretrained'", "accept **kwargs"]),
        ("bias=False, **kwargs", "bias=False", ["'weight_bits'", "accept **kwargs", "E607"]),
        ("from torch import nn", "from torch import mm", ["'nn'", "own.py:5: ", "E602"]),
        ('"input": (1, 8, 8), ', "", ["'owndata' of `datasets` has no 'input'", "E661"]),
        ('"input": (1, 8, 8)', '"input": 8', ["has the input 8; it must be (C, H, W)", "E661"]),
        ('("a", "b", "c", "d")', "4", ["has the output 4; it must be a list of the labels"]),
        ('"loader": load', '"loader": "load"', ["has the loader 'load'; it must be a function"]),
        ("load_test):", "load_test, fold):", ["'fold'", "((folder, args), load_train, load_test)"]),
        ("return train, test", "return train", ["owndata returns Squares", "E661", "own.py:17"]),
        ("return train, test", "return train, None", ["returns Squares and NoneType", "E661"]),
        ("test = Squares(", "test = Sqares(", ["NameError", "datasets/own.py:19", "E662"]),
        ("index % 4\n\n", "idx % 4\n\n", ["NameError", "datasets/own.py:14", "E662"]),
        ("[0, index % 4] = 0.5", "[0, 0] = 255", ["-0.5 to 255", "E663", "ai8x.normalize"]),
        ("[0, index % 4] = 0.5", "[0, 0] = torch.nan", ["not finite", "E663"]),
        ("return image, ", "return image.byte(), ", ["are torch.uint8", "E663"]),
        ("(1, 8, 8), -0.5", "(1, 12, 8), -0.5", ["is 1x12x8, but `input`", "1x8x8", "E663"]),
        ("index % 4\n\n", "index % 4 + index // 3\n\n", ["a label is ", "0 to 3", "E633"]),
        (
            "index % 4\n\n", "torch.tensor(index % 4, dtype=torch.int32)\n\n",
            ["targets of owndata are torch.int32, not torch.int64", "E633"],
        ),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_file_and_remedy(
    old: str, new: str, messages: list[str], own: Train
) -> None:
    done = own((old, new))
    assert done.status == 1, done.output
    assert all(message in done.error for message in messages), done.error
    assert "own" in done.error
    assert "E009" not in done.error
    assert "Traceback" not in done.error


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("-0.5", "with fractions; with -8 they must be integers -128 to 127"),
        ("-300.0", "from -300 to 0.5"),
        ("0.0", "with fractions"),
    ],
)
def test_inputs_of_the_simulation_are_integers(new: str, message: str, own: Train) -> None:
    done = own(("-0.5", new), options=("--evaluate", "-8"))
    assert done.status == 1
    assert message in done.error or "with fractions" in done.error
    assert "[E663]" in done.error


def test_unscaled_inputs_of_the_simulation_are_refused(own: Train) -> None:
    done = own(("-0.5", "0.0"), ("] = 0.5", "] = 1"), options=("--evaluate", "-8"))
    assert done.status == 1
    assert "has values from 0 to 1; with -8 they must be integers that span" in done.error


def test_inputs_from_0_to_1_are_warned_of(own: Train) -> None:
    done = own(("-0.5", "0.0"))
    assert done.status == 0, done.error
    assert "the first 8 test samples have values 0 to 0.5; the chip wants -1 to 1" in done.log


def test_replaced_names_are_noticed(own: Train) -> None:
    Path("datasets/zz.py").write_text(DATA)
    Path("models/zz.py").write_text(MODEL)
    done = own()
    assert done.status == 0, done.error
    for kind, name in (("models", "ownnet"), ("datasets", "owndata")):
        first, last = (str(Path(kind, file).resolve()) for file in ("own.py", "zz.py"))
        assert f"{name} is that of {last}, not of {first}" in done.log


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("utils", "put that folder beside the folder of your file"),
        ("datasets.utils", "datasets/ here has other helpers"),
        ("distiller", "take the import out"),
        ("absent", "move it out of models/"),
    ],
)
def test_modules_of_the_vendors_tool_are_explained(
    name: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "own.py").write_text(f"import {name}\n")
    with pytest.raises(InputError, match="No module named") as info:
        find_models()
    assert remedy in str(info.value.remedy)


def test_modules_beside_the_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "helpers_of_mine", raising=False)
    (tmp_path / "models").mkdir()
    (tmp_path / "helpers_of_mine.py").write_text("import torchvision\n")
    code = "import helpers_of_mine, torchvision.ops\n"
    (tmp_path / "models" / "own.py").write_text(code + MODEL)
    assert "ownnet" in find_models()


@pytest.mark.parametrize("name", ["mnist", "mnits"])
def test_name_in_other_letters_is_recognized(name: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(find_datasets(), name, "--calibrate")
    assert caught.value.remedy == "Perhaps you mean MNIST."
