"""Legal inputs from which mutations start: all files of a run of the loader and its arguments."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint
from tests.checkpoint.onnx_writer import chain
from tests.conftest import ROOT
from tests.robustness.arrays import array_file
from tests.robustness.checkpoints import written
from tests.robustness.networks import NETWORKS, Shape, SmallNetwork

Target = Literal["description", "checkpoint", "onnx", "sample", "weights", "bias"]
"""The kind of input that a case damages."""
TARGETS: tuple[Target, ...] = ("description", "checkpoint", "onnx", "sample", "weights", "bias")

DESCRIPTION, SAMPLE, WEIGHTS, BIASES = "net.yaml", "sample.npy", "weights.npy", "bias.npy"
CHECKPOINT, SAFETENSORS, ONNX = "net.pth.tar", "net.safetensors", "net.onnx"
_ARCH = "arch: test"


@dataclass(frozen=True, slots=True)
class Start:
    """Arguments of `ai8xize.py` (without folder and name of the project) and files by path."""

    name: str
    args: tuple[str, ...]
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def description(self) -> str:
        """Path of the network description."""
        return self.args[self.args.index("--config-file") + 1]

    def path_of(self, target: Target) -> str | None:
        """Path of the input of a kind; None if the run has none."""
        if target == "description":
            return self.description
        return next((path for path in self.files if _kind(path) == target), None)


def _kind(path: str) -> str:
    name = Path(path).name.lower()
    if name.endswith((".tar", ".pth", ".pt", ".safetensors")):
        return "checkpoint"
    if name.endswith(".onnx"):
        return "onnx"
    return next((kind for kind in ("sample", "weights", "bias") if name.startswith(kind)), "")


def own_starts() -> Iterator[Start]:
    """The project's trained networks, and small networks with weights of every kind of file."""
    yield _trained("digits", "chw-ai85", "ai85digitsnet-qat8-q", "--softmax")
    yield _trained("mnist", "chw-ai85", "ai85net5-qat8-q", "--softmax")
    for seed, network in enumerate(NETWORKS):
        yield _with_arrays(network, seed)
        if not network.biases and network.name in ("residual", "series", "upsampling"):
            yield _with_checkpoint(network, seed)
        if network.name == "classifier":
            yield _with_checkpoint(network, seed)
            yield _with_checkpoint(network, seed, safetensors=True)
            yield _with_onnx(network, seed)


def starts_of_suite(folder: Path) -> Iterator[Start]:
    """The legal cases of a folder of known answers: NAME/case.json with `args` and `inputs`."""
    for file in sorted(folder.glob("*/case.json")):
        case: dict[str, Any] = json.loads(file.read_text())
        if case.get("kind") == "image":
            files = {
                name: _unpacked(file.parent / source) for name, source in case["inputs"].items()
            }
            yield Start(case["name"], tuple(case["args"]), files)


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def _trained(name: str, layout: str, trained: str, *options: str) -> Start:
    """One of networks/ with its checkpoint of trained/ and a sample of tests/."""
    files = {
        DESCRIPTION: (ROOT / "networks" / f"{name}-{layout}.yaml").read_bytes(),
        CHECKPOINT: (ROOT / "trained" / f"{name}-{trained}.pth.tar").read_bytes(),
        SAMPLE: (ROOT / "tests" / f"sample_{name}.npy").read_bytes(),
    }
    return Start(f"{name} (trained)", _args("MAX78000", files, options), files)


def _with_arrays(network: SmallNetwork, seed: int) -> Start:
    """Weights in a .npy file, as `arch: test` takes them."""
    weights = _weights(network.weights, seed)
    stored = weights if len(weights) != 1 else [weights[0][None]]
    files = {
        DESCRIPTION: network.text.encode(),
        SAMPLE: _sample(network, seed),
        WEIGHTS: array_file(stored),
    }
    if network.biases:
        files[BIASES] = array_file(_weights(network.biases, seed + 1))
    return Start(network.name, _args(network.device, files, network.options), files)


def _with_checkpoint(network: SmallNetwork, seed: int, *, safetensors: bool = False) -> Start:
    """Weights in a checkpoint, with shifts and widths as quantize.py stores them."""
    state: dict[str, NDArray[Any]] = {}
    for index, (weights, bias) in enumerate(_tensors(network, seed)):
        state[f"layer{index}.output_shift"] = np.zeros(1, np.float32)
        state[f"layer{index}.weight_bits"] = np.array([8])
        state[f"layer{index}.op.weight"] = weights.astype(np.float32)
        if bias is not None:
            state[f"layer{index}.op.bias"] = bias.astype(np.float32) * 128
    path = SAFETENSORS if safetensors else CHECKPOINT
    content = Checkpoint({"epoch": 3, "arch": "small", "extras": {"x": 1.5}, "state_dict": state})
    files = {
        DESCRIPTION: network.text.replace(_ARCH, "arch: small").encode(),
        SAMPLE: _sample(network, seed),
        path: written(content, safetensors=safetensors),
    }
    return Start(
        f"{network.name} ({'safetensors' if safetensors else 'checkpoint'})",
        _args(network.device, files, network.options),
        files,
    )


def _with_onnx(network: SmallNetwork, seed: int) -> Start:
    """Weights in an ONNX file."""
    layers = [
        ("Conv" if weights.ndim == 4 else "Gemm", weights, None if bias is None else bias * 128)
        for weights, bias in _tensors(network, seed)
    ]
    files = {
        DESCRIPTION: network.text.replace(_ARCH, "arch: small").encode(),
        SAMPLE: _sample(network, seed),
        ONNX: chain(*layers),
    }
    return Start(f"{network.name} (ONNX)", _args(network.device, files, network.options), files)


def _args(device: str, files: Mapping[str, bytes], options: Sequence[str]) -> tuple[str, ...]:
    named = {
        "--config-file": DESCRIPTION,
        "--sample-input": SAMPLE,
        "--weight-input": WEIGHTS,
        "--bias-input": BIASES,
    }
    args = ["--device", device]
    for option, path in named.items():
        args += [option, path] if path in files else []
    for path in (CHECKPOINT, SAFETENSORS, ONNX):
        args += ["--checkpoint-file", path] if path in files else []
    return (*args, *options)


def _sample(network: SmallNetwork, seed: int) -> bytes:
    values = np.random.default_rng(seed).integers(-128, 128, network.sample)
    return array_file([values])


def _weights(shapes: Sequence[Shape], seed: int) -> list[NDArray[np.int64]]:
    """Random weights that fit every width: -1 and 1 only."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 2, shape) * 2 - 1 for shape in shapes]


def _tensors(
    network: SmallNetwork, seed: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64] | None]]:
    biases: list[NDArray[np.int64] | None] = [*_weights(network.biases, seed + 1)]
    biases += [None] * len(network.weights)
    yield from zip(_weights(network.weights, seed), biases, strict=False)
