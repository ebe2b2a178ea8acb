"""quantize.py and batchnormfuser.py: the published pairs, their options and bad input."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import batchnormfuser
import quantize
from ai8xtools.checkpoint import (
    Checkpoint,
    atomic,
    read_checkpoint,
    write_checkpoint,
    write_safetensors,
)
from ai8xtools.diagnostics import run
from tests.conftest import ROOT

SHARED_FOLDER = ROOT.parent / "shared" / "checkpoints"
OPTIONS = {
    "scale085": ["--clip-method", "SCALE", "--scale", "0.85"],
    "scale100": ["--clip-method", "SCALE", "--scale", "1.0"],
    "scaledefault": ["--clip-method", "SCALE"],
    "max": ["--clip-method", "MAX"],
    "avgmax": ["--clip-method", "AVGMAX"],
    "stddev200": ["--clip-method", "STDDEV", "--stddev", "2.0"],
    "stddev100": ["--clip-method", "STDDEV", "--stddev", "1.0"],
    "qatbits4": ["--qat-weight-bits", "4"],
    "max78002": [],
}


def status(main: Callable[[list[str]], None], *arguments: object) -> int:
    """Run a script's main as the script does; return the exit status."""
    return run(lambda: main([str(argument) for argument in arguments]))


def equal_tensors(ours: Any, theirs: Any, where: str = "") -> int:
    """Assert equal order, types, dtypes and bits; return the number of tensors compared."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        return sum(equal_tensors(ours[key], theirs[key], f"{where}.{key}") for key in ours)
    if isinstance(ours, list | tuple):
        pairs = zip(ours, theirs, strict=True)
        return sum(equal_tensors(a, b, where) for a, b in pairs)
    if isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        assert ours.tobytes() == theirs.tobytes(), where
        return 1
    assert ours == theirs, where
    return 0


def twins() -> list[tuple[str, str]]:
    """Return (input, quantized twin) of every published or regenerated pair."""
    found = []
    for path in sorted(SHARED_FOLDER.glob("**/*-q.pth.tar")):
        stem = str(path.relative_to(SHARED_FOLDER)).removesuffix("-q.pth.tar")
        if "published" not in stem and not stem.startswith("legacy"):
            plain = (SHARED_FOLDER / f"{stem}.pth.tar").exists()
            found.append((stem if plain else stem.rsplit("--", 1)[0], stem))
    return found


@pytest.mark.parametrize(("original", "twin"), twins() or [("", "")])
def test_published_pair_is_equal_to_the_bit(
    shared: Path, tmp_path: Path, original: str, twin: str
) -> None:
    folder = shared / "checkpoints"
    variant = twin.removeprefix(original).removeprefix("--")
    options = OPTIONS.get(variant, [])
    if variant.startswith("yaml-"):
        name = original.removeprefix("ai85-").removesuffix("-qat8")
        width = variant.removeprefix("yaml-")
        options = ["-c", str(folder / "config" / f"{name}-{width}.yaml")]
    device = "MAX78002" if "ai87" in original or variant == "max78002" else "MAX78000"
    output = tmp_path / "q.pth.tar"
    command = (folder / f"{original}.pth.tar", output, "--device", device, *options)
    assert status(quantize.main, *command) == 0
    ours, theirs = (read_checkpoint(p) for p in (output, folder / f"{twin}-q.pth.tar"))
    assert equal_tensors(dict(ours.entries), dict(theirs.entries)) >= 21


def test_published_fused_checkpoint_is_equal_to_the_bit(shared: Path, tmp_path: Path) -> None:
    folder = shared / "checkpoints" / "batchnorm"
    command = ("-i", folder / "synthetic-bn.pth.tar", "-o", tmp_path / "f.pth.tar")
    assert status(batchnormfuser.main, *command, "-oa", "synbnnet") == 0
    ours = read_checkpoint(tmp_path / "f.pth.tar")
    theirs = read_checkpoint(folder / "synthetic-bn--fused.pth.tar")
    assert equal_tensors(dict(ours.entries), dict(theirs.entries)) == 40


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A small checkpoint of two layers."""
    path = tmp_path / "net-qat8.pth.tar"
    weights = np.linspace(-0.5, 0.5, 27, dtype=np.float32).reshape(3, 1, 3, 3)
    state = {
        "conv1.shift_quantile": np.array([1], np.float32),
        "conv1.op.weight": weights,
        "fc.op.weight": weights.reshape(9, 3),
        "fc.op.bias": np.ones(9, np.float32),
    }
    write_checkpoint(path, Checkpoint({"state_dict": state, "epoch": 1, "extras": {}}))
    return path


def test_verbose_output(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, trained, output, "--device", "AI85", "-v") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:8] == [
        "Configuring device: MAX78000",
        f"Converting checkpoint file {trained} to {output}",
        "",
        "Model keys (state_dict):",
        "conv1.shift_quantile, conv1.op.weight, fc.op.weight, fc.op.bias",
        "conv1.op.weight avg_max: 0.15384616 max: 0.5 mean: 0.0 factor: [256.] bits: 8",
        "fc.op.weight avg_max: 0.03846154 max: 0.5 mean: 0.0 factor: 128.0 bits: 8",
        "fc.op.bias avg_max: 1.0 max: 1.0 mean: 1.0 factor: 128.0 bits: 8",
    ]
    assert any(line.split()[:2] == ["tensor", "shape"] for line in lines[8:])


DESCRIPTION = """
arch: net
dataset: test
layers:
  - {{op: conv2d, processors: 1, out_offset: 0, quantization: {0}}}
  - {{op: passthrough, processors: 7, out_offset: 0x1000}}
  - {{op: linear, flatten: true, processors: 7, out_offset: 0, quantization: {1}}}
"""


def test_description_gives_bits_to_the_layers_with_weights(trained: Path, tmp_path: Path) -> None:
    config = tmp_path / "net.yaml"
    config.write_text(DESCRIPTION.format(2, 4))
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, trained, output, "--device", "85", "-c", config) == 0
    state = read_checkpoint(output).state_dict
    assert abs(state["conv1.op.weight"]).max() == 2
    assert 4 <= abs(state["fc.op.weight"]).max() <= 8


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (1, "description: 1, in the checkpoint: 2; left as they are: fc.op.weight"),
        (2, None),
        (3, "description: 3, in the checkpoint: 2; the last 1 of the description"),
    ],
)
def test_description_of_another_network_is_mentioned(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], layers: int,
    told: str | None,
) -> None:  # fmt: skip
    config = tmp_path / "net.yaml"
    layer = "  - {op: conv2d, processors: 1, out_offset: 0}\n"
    config.write_text("arch: net\ndataset: test\nlayers:\n" + layers * layer)
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, trained, output, "--device", "85", "-c", config) == 0
    errors = capsys.readouterr().err
    assert f"{config}: warning" in errors and told in errors if told else "W757" not in errors


@pytest.mark.parametrize("script", ["quantize.py", "batchnormfuser.py", "emulate.py"])
def test_interruption_while_starting_ends_with_a_message(script: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    done = subprocess.run(
        [sys.executable, ROOT / script, "--help"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: interrupted [E001]")


def test_scale_and_deviation_have_defaults_that_are_mentioned(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "q.pth.tar"
    for method, option, default in (("SCALE", "scale", 0.85), ("STDDEV", "stddev", 2.0)):
        command = (trained, output, "--device", "85", "--clip-method", method, f"--{option}", 0)
        assert status(quantize.main, *command) == 0
        assert f"--{option}: warning: not given, {default}" in capsys.readouterr().err
        assert default in read_checkpoint(output).extras.values()


def test_name_of_the_manuals_is_another_name_of_a_method(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, trained, output, "--device", "85", "--clip-method", "avg") == 0
    assert "--clip-method: notice: AVG is AVGMAX" in capsys.readouterr().err
    assert read_checkpoint(output).extras["clipping_method"] == "AVGMAX"


@pytest.fixture
def unfused(shared: Path) -> Path:
    """A checkpoint with batch normalization."""
    return shared / "checkpoints" / "batchnorm" / "synthetic-bn.pth.tar"


def test_batch_normalization_is_folded_before(
    unfused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, unfused, output, "--device", "85") == 0
    printed = capsys.readouterr()
    assert "Folding batch normalization into weights and biases: conv1, conv2, conv3" in printed.out
    assert not printed.err
    ours = read_checkpoint(output)
    theirs = read_checkpoint(unfused.with_name("synthetic-bn--fused-q.pth.tar"))
    assert ours.arch == "synbnnet_bn"
    assert equal_tensors(dict(ours.state_dict), dict(theirs.state_dict)) > 20


def test_batch_normalization_stays_on_demand(
    unfused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, unfused, output, "--device", "85", "--keep-batchnorm") == 0
    assert "batch normalization is not fused" in capsys.readouterr().err
    state = read_checkpoint(output).state_dict
    assert state["conv1.bn.weight"].max() > 1
    before = read_checkpoint(unfused).state_dict
    assert np.array_equal(state["conv1.bn.running_mean"], before["conv1.bn.running_mean"])


@pytest.mark.parametrize(
    ("output", "options", "written"),
    [
        ("q.pth.tar", ["--safetensors"], {"q.pth.tar", "q.safetensors"}),
        ("q", ["--safetensors"], {"q", "q.safetensors"}),
        ("q.safetensors", ["--safetensors"], {"q.safetensors"}),
        ("q.safetensors", [], {"q.safetensors"}),
    ],
)
def test_safetensors_twin(
    trained: Path, tmp_path: Path, output: str, options: list[str], written: set[str]
) -> None:
    folder = tmp_path / "out"
    assert status(quantize.main, trained, folder / output, "--device", "85", *options) == 0
    assert {path.name for path in folder.iterdir()} == written
    found = [read_checkpoint(path) for path in folder.iterdir()]
    assert {c.container for c in found} == {
        "safetensors" if name.endswith("safetensors") else "zip" for name in written
    }
    for checkpoint in found:
        equal_tensors(checkpoint.state_dict, found[0].state_dict)
        assert checkpoint.extras == {"clipping_method": "MAX_BIT_SHIFT"}


def test_safetensors_file_is_quantized_like_its_twin(trained: Path, tmp_path: Path) -> None:
    twin = tmp_path / "net.safetensors"
    write_safetensors(twin, read_checkpoint(trained))
    outputs = [tmp_path / "a.pth.tar", tmp_path / "b.pth.tar"]
    for source, output in zip((trained, twin), outputs, strict=True):
        assert status(quantize.main, source, output, "--device", "85") == 0
    first, second = (read_checkpoint(path).state_dict for path in outputs)
    assert equal_tensors(first, second) == 9


def test_table_shows_what_clip_methods_do_to_the_output(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (trained, tmp_path / "q.pth.tar", "--device", "85", "--clip-method", "MAX", "-v")
    assert status(quantize.main, *command) == 0
    lines = capsys.readouterr().out.splitlines()
    header = next(line.split() for line in lines if line.startswith("tensor"))
    row = next(line.split() for line in lines if line.startswith("conv1") and "×" in line)
    found = dict(zip(header, row, strict=True))
    assert (found["shift"], found["factor"], found["gain"]) == ("0", "64", "0.5")


def test_a_network_without_weights_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = {"epoch": 0, "arch": "net", "extras": {}}
    write_checkpoint(tmp_path / "p.pth.tar", Checkpoint({**entries, "state_dict": WEIGHTLESS}))
    assert status(quantize.main, tmp_path / "p.pth.tar", tmp_path / "q", "--device", "85") == 1
    found = capsys.readouterr().err
    assert "no layer has weights" in found and "--device MCU" in found and "E705" in found


WEIGHTLESS = {"pool.output_shift": np.zeros(1, np.float32)}
BAD = {
    "missing input": (["absent.pth.tar", "q.pth.tar"], "absent.pth.tar: error: the checkpoint"),
    "same file": (["net-qat8.pth.tar", "./net-qat8.pth.tar"], "same file"),
    "missing description": (["net-qat8.pth.tar", "q.pth.tar", "-c", "no.yaml"], "no.yaml: error"),
    "binary weights": (["net-qat8.pth.tar", "q.pth.tar", "-c", "bin.yaml"], "bin.yaml:5:62: error"),
    "negative scale": (
        ["net-qat8.pth.tar", "q.pth.tar", "--clip-method", "SCALE", "--scale", "-1"],
        "option --scale: error: -1.0",
    ),
    "not a checkpoint": (["bin.yaml", "q.pth.tar"], "bin.yaml: error: the file is not a PyTorch"),
    "same file as twin": (
        ["net.safetensors", "net.pth.tar", "--safetensors"],
        "net.safetensors: error: input and",
    ),
    "folder as output": (["net-qat8.pth.tar", "folder"], "folder: error"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_with_a_message_and_no_output(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], case: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "bin.yaml").write_text(DESCRIPTION.format("bin", 8))
    if case == "same file as twin":
        trained = trained.rename(tmp_path / "net.safetensors")
    before = trained.read_bytes()
    arguments, message = BAD[case]
    assert status(quantize.main, *arguments, "--device", "MAX78000") == 1
    assert message in capsys.readouterr().err
    assert trained.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"folder", "bin.yaml", trained.name}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--device", "ai84"],
        ["--qat-weight-bits", "3"],
        ["--device", "85", "--clip-method", "MEDIAN"],
        ["--device", "85", "--clip-method", "MAX", "--calibrate", "digits"],
        ["--device", "85", "--calibrate", "digits", "--calibration-samples", "0"],
        ["--device", "85", "--calibrate", "digits", "--batch-size", "-1"],
    ],
)
def test_wrong_usage_ends_with_status_two(trained: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        quantize.main([str(trained), "q.pth.tar", *arguments])
    assert caught.value.code == 2


@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EFBIG])
def test_full_disk_leaves_the_former_output(
    refusal: int, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    unfused = tmp_path / "bn.pth.tar"
    names = ("a.op.weight", "a.bn.running_mean", "a.bn.running_var")
    shapes = ((2, 2), (2,), (2,))
    state = {n: np.ones(shape, np.float32) for n, shape in zip(names, shapes, strict=True)}
    write_checkpoint(unfused, Checkpoint({"state_dict": state}))

    def full(_handle: int) -> None:
        raise OSError(refusal, os.strerror(refusal))

    folder = tmp_path / "results"
    folder.mkdir()
    output = folder / "q.pth.tar"
    output.write_bytes(b"former")
    monkeypatch.setattr(atomic.os, "fsync", full)
    quantizer = (quantize.main, trained, output, "--device", "85", "--safetensors")
    fuser = (batchnormfuser.main, "-i", unfused, "-o", output, "-oa", "net")
    for main, *arguments in (quantizer, fuser):
        assert status(main, *arguments) == 1
        printed = capsys.readouterr()
        assert f"{output}: error: {os.strerror(refusal)} [E002]" in printed.err
        assert "saved to" not in printed.out
        assert output.read_bytes() == b"former"
        assert list(folder.iterdir()) == [output]


def test_fuser_refuses_to_overwrite_its_input(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("-i", trained, "-o", trained, "-oa", "net")
    assert status(batchnormfuser.main, *command) == 1
    assert "same file" in capsys.readouterr().err
    assert status(batchnormfuser.main, "-i", trained, "-o", "f.pth.tar", "-oa", "net") == 1
    assert f"{trained}: error: the checkpoint holds no batch norm" in capsys.readouterr().err


def test_quantizer_starts_quickly_and_without_torch(trained: Path, tmp_path: Path) -> None:
    program = "import sys, quantize; quantize.main(sys.argv[1:]); print('torch' in sys.modules)"
    command = [sys.executable, "-c", program, str(trained), str(tmp_path / "q"), "--device=85"]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert time.perf_counter() - start < 3, "ten times what it takes on an idle machine"


@pytest.mark.parametrize("network", ["mnist", "digits"])
def test_script_takes_files_and_options(network: str, trained: Path, tmp_path: Path) -> None:
    script = ROOT / "scripts" / f"quantize_{network}.sh"
    command = [str(script), str(trained), str(tmp_path / "q.pth.tar"), "--clip-method", "MAX"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, check=True)
    assert read_checkpoint(tmp_path / "q.pth.tar").extras["clipping_method"] == "MAX"


def test_onnx_graph_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x08")
    given = (tmp_path / "net.onnx", tmp_path / "q.pth.tar", "--device", "MAX78000")
    assert status(quantize.main, *given) == 1
    assert "ai8xize.py --model" in capsys.readouterr().err
    assert not (tmp_path / "q.pth.tar").exists()
