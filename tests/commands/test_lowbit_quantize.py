"""quantize.py --device BITNET: reports, accuracy after rounding, networks of BitNetMCU."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

from ai8xtools.checkpoint import CheckpointError
from ai8xtools.commands.lowbit import compare
from ai8xtools.commands.lowbit.convert import network_of
from ai8xtools.commands.lowbit.files import read, save
from ai8xtools.commands.lowbit.foreign import read_any
from ai8xtools.commands.targets import main
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.lowbit import ENCODINGS
from ai8xtools.software.lowbit.engine import integers, run
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.training.lowbit.network import LowBitNetwork
from ai8xtools.training.lowbit.recipe import Recipe

CLASSES = tuple("0123456789")


def saved(recipe: Recipe, path: Path) -> LowBitNetwork:
    """Save a network that was not trained, with clip scalars for its weights."""
    torch.manual_seed(1)
    network = LowBitNetwork(recipe.architecture(10))
    for layer in network.quantizers():
        layer.update_clip("octav", 0.25)
    save(path, network, recipe, CLASSES)
    return network


@pytest.mark.parametrize("model", ["ai85fcbit", "ai85cnnbit", "ai85winbit"])
def test_report_shows_layers_accuracy_and_first_weights(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = Recipe(model=model, widths=(12,), cnn_width=4, windows=4, window_widths=(6,))
    saved(recipe, tmp_path / "net.pth.tar")
    words = ["net.pth.tar", "net.h", "--device", "BITNET", "--report", "net.html"]
    words += ["--dataset", "digits", "--data", ".", "--ptq-table", "--compare-c"]
    assert main("quantize.py", words) == 0
    printed = capsys.readouterr().out
    content = json.loads((tmp_path / "net.json").read_text())
    page = (tmp_path / "net.html").read_text()
    assert "data:image/png;base64," in page and "Rounded after training" in page
    assert content["version"] == 1
    assert content["flash_bytes"] == sum(layer["size_bytes"] for layer in content["layers"])
    assert [row["encoding"] for row in content["post_training"]] == [
        "None", "8bit", "4bitsym", "2bitsym", "Ternary", "Binary"
    ]  # fmt: skip
    accuracy, found = content["accuracy"], content["engine"]
    assert found["differ_in_python"] == found["differ_in_c"] == 0
    assert found["correct_in_python"] == found["correct_in_c"] == accuracy["correct"]
    assert content["version"] == 1 and page.count("<svg") == len(content["layers"])
    assert content["together"]["size_bytes"] == content["flash_bytes"]
    assert f"({accuracy['correct']:,} of {accuracy['total']:,})" in printed
    (same,) = (row for row in content["post_training"] if row["encoding"] == "4bitsym")
    assert accuracy["total"] == same["total"] > 100


def test_report_never_takes_the_place_of_an_input(tmp_path: Path) -> None:
    """Nor does its JSON; and where it cannot be written, no header is, either."""
    saved(Recipe(widths=(13,)), tmp_path / "net.html")
    torch.save(foreign(False), tmp_path / "theirs.pth")
    (tmp_path / "policy.json").write_text("{}")
    (tmp_path / "folder.html").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for source, page, error in (
        ("net.html", "net", InputError), ("theirs.pth", "policy", InputError),
        ("theirs.pth", "folder", IsADirectoryError),
    ):  # fmt: skip
        words = [str(tmp_path / source), str(tmp_path / "x.h"), "--device", "BITNET", "--report",
                 str(tmp_path / f"{page}.html")]  # fmt: skip
        policy = ["--qat-policy", str(tmp_path / "policy.json")] if page == "policy" else []
        with pytest.raises(error):
            main("quantize.py", [*words, *policy])
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_rows_that_are_filled_up_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(Recipe(widths=(13,)), tmp_path / "net.pth.tar")
    words = [str(tmp_path / "net.pth.tar"), str(tmp_path / "net.h"), "--device", "BITNET"]
    assert main("quantize.py", words) == 0
    assert "layers.1: each row is filled up with 3 codes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(widths=(4,), norm="RMS", per_output=True), "WScale is PerOutput"),
        (Recipe(widths=(4,), norm="BatchNorm"), "the norm is BatchNorm"),
        (Recipe(widths=(4,), encoding="5bitsym"), "the encoding is 5bitsym"),
        (Recipe(widths=(4,), encodings=("4bitsym", "None")), "the encoding is None"),
    ],
)
def test_what_the_engine_does_not_have_is_refused_by_name(
    recipe: Recipe, message: str, tmp_path: Path
) -> None:
    saved(recipe, tmp_path / "net.pth.tar")
    words = [str(tmp_path / "net.pth.tar"), str(tmp_path / "net.h"), "--device", "BITNET"]
    with pytest.raises(InputError, match=message) as refused:
        main("quantize.py", words)
    assert refused.value.code == "E729" and not (tmp_path / "net.h").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--ptq-table"],
        ["--compare-c"],
        ["--report", "x.txt"],
        ["--encoding", "3bit"],
    ],
)
def test_wrong_usage_ends_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main("quantize.py", ["in.pth.tar", "out.h", "--device", "BITNET", *words])
    assert ended.value.code == 2


def test_without_a_compiler_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(Recipe(widths=(4,)), tmp_path / "net.pth.tar")
    monkeypatch.setattr(compare, "_COMPILER", "no-such-compiler")
    words = ["net.pth.tar", "net.h", "--device", "BITNET", "--dataset", "digits", "--data", "."]
    with pytest.raises(InputError, match="the C cannot be compiled by no-such-compiler") as refused:
        main("quantize.py", [*words, "--compare-c"])
    assert refused.value.code == "E811"
    assert [path.name for path in tmp_path.iterdir()] == ["net.pth.tar"]


def test_encodings_with_slips_lead_to_those_that_were_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main("quantize.py", ["a.pth", "a.h", "--device", "BITNET", "--encoding", "4bitsym,nf5"])
    assert "'nf5' is not known; did you mean NF4?" in capsys.readouterr().err


def test_pruned_outputs_are_left_out(tmp_path: Path) -> None:
    recipe = Recipe(widths=(12, 8), prune_epoch=0, prune_totalgroups=6, prune_groupstoprune=2)
    network = LowBitNetwork(recipe.architecture(10))
    with torch.no_grad():
        network.mask.copy_(torch.tensor([0.9, 0.1, 1.2, 0.7, 0.2, 1.0]))
    network.prune(2)
    for layer in network.quantizers():
        layer.update_clip("octav", 0.25)
    save(tmp_path / "net.pth.tar", network, recipe, CLASSES)
    engine, _ = network_of(read(str(tmp_path / "net.pth.tar")), "net.pth.tar")
    assert [(layer.inputs, layer.outputs) for layer in engine.layers] == [(256, 8), (8, 8), (8, 10)]
    inputs = torch.randint(-128, 128, (50, 256), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        found = network(inputs).argmax(1).numpy()
    assert np.array_equal(found, run(engine, inputs.numpy().astype(np.int8)).classes)


def foreign(convolutions: bool, clips: bool = True) -> OrderedDict[str, torch.Tensor]:
    """Return a network as BitNetMCU saves it."""
    random = torch.Generator().manual_seed(3)
    shapes = [(8, 256), (10, 8)]
    if convolutions:
        shapes = [(4, 1, 3, 3)] * 3 + [(8, 16), (10, 8)]  # type: ignore[list-item]
    state = OrderedDict()
    for place, shape in enumerate(shapes):
        state[f"model.{2 * place + 1}.weight"] = torch.randn(shape, generator=random) * 0.1
        if clips:
            state[f"model.{2 * place + 1}.s"] = torch.tensor(0.2 + 0.01 * place)
    return state


@pytest.mark.parametrize("convolutions", [False, True])
def test_networks_of_bitnetmcu_are_read_as_data(convolutions: bool, tmp_path: Path) -> None:
    state = foreign(convolutions)
    torch.save(state, tmp_path / "theirs.pth")
    (tmp_path / "theirs.yaml").write_text("QuantType: FP130\nnum_epochs: 60\n")
    words = [str(tmp_path / "theirs.pth"), str(tmp_path / "net.h"), "--device", "BITNET"]
    assert main("quantize.py", [*words, "--qat-policy", str(tmp_path / "theirs.yaml")]) == 0
    network = read_header(str(tmp_path / "net.h"))
    names = [layer.encoding.name for layer in network.layers]
    assert names == [("2bitsym" if convolutions else "FP130"), "FP130"]
    weights, clip = state["model.9.weight" if convolutions else "model.3.weight"], 0.2
    clip += 0.04 if convolutions else 0.01
    magnitude = weights.abs().numpy() * 128 / clip
    wanted = np.sign(weights.numpy()) * 2 ** np.clip(np.floor(np.log2(magnitude)), 0, 7)
    assert np.array_equal(integers(network.layers[-1])[:, :8], wanted)


def test_a_missing_clip_scalar_is_that_of_the_mean(tmp_path: Path) -> None:
    state = foreign(False, clips=False)
    torch.save(state, tmp_path / "theirs.pth")
    trained = read_any(str(tmp_path / "theirs.pth"), None, ("2bitsym",))
    mean = float(state["model.1.weight"].abs().mean())
    assert float(trained.state["layers.0.s"]) == pytest.approx(mean / 0.5)


def test_foreign_networks_of_other_forms_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "theirs.pth"
    for change, message in (
        ({"model.1.s": torch.ones(8, 1)}, "WScale is PerOutput"),
        ({"model.3.weight": torch.ones(10, 9)}, "9 inputs, 8 are in front"),
        ({"model.0.weight": torch.ones(4, 2, 3, 3)}, "known are three of Nx1x3x3"),
    ):
        torch.save(OrderedDict({**foreign(False), **change}), path)
        with pytest.raises(InputError, match=message):
            read_any(str(path), None, ())


class Runs:
    """What a file that is more than data does when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 3",)


def test_a_file_that_is_more_than_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs.pth").write_bytes(pickle.dumps({"state_dict": {}, "x": Runs()}))
    with pytest.raises(CheckpointError):
        read_any(str(tmp_path / "theirs.pth"), None, ())


def test_a_network_of_train_needs_no_encoding(tmp_path: Path) -> None:
    saved(Recipe(widths=(4,)), tmp_path / "net.pth.tar")
    with pytest.raises(InputError, match="the checkpoint itself says"):
        read_any(str(tmp_path / "net.pth.tar"), None, ("NF4",))
    assert set(ENCODINGS) >= set(read_any(str(tmp_path / "net.pth.tar"), None, ()).recipe.encodings)
