"""The networks of models/ compute with known checkpoints what is known of them.

Models are found by the `arch` of a file, so that a network that is added is covered by itself.
"""

from __future__ import annotations

import io
import itertools
import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.training.catalog.discovery import ModelEntry, find_models
from tests.conftest import SHARED

SIMULATED = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}
OLD_NAMES = re.compile(r"\.(conv2d|conv1d|linear)\.")
"""Names of operators in files of 2020."""
SIZES = {
    "ai85net5": (28, 28), "ai85netextrasmall": (28, 28), "ai85kws20netv3": (128, 1),
    "ai87kws20netv3": (128, 1), "ai85autoencoder": (3, 1), "bayer2rgbnet": (16, 24),
}  # fmt: skip
"""Rows and columns of an input, where it is not 128x128."""


@pytest.fixture(autouse=True)
def _without_gradients() -> Any:
    with torch.no_grad():
        yield


def own_state(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Return the tensors by the names that models use; layers that were put in are left out."""
    found = {
        OLD_NAMES.sub(".op.", name.removeprefix("module.")): torch.from_numpy(np.array(tensor))
        for name, tensor in checkpoint.state_dict.items()
    }
    return {name: tensor for name, tensor in found.items() if not name.startswith("pt.")}


def known_model(arch: str | None) -> ModelEntry:
    models = find_models()
    if arch not in models:
        pytest.skip(f"there is no model {arch} (yet)")
    return models[arch]


def filled(checkpoint: Checkpoint, size: tuple[int, ...], simulate: bool) -> nn.Module:
    """Return the network of a checkpoint for inputs of rows and columns `size`.

    Channels, classes and biases are seen from the tensors.
    """
    entry, state = known_model(checkpoint.arch), own_state(checkpoint)
    weights = [tensor for name, tensor in state.items() if name.endswith(".weight")]
    die = 87 if entry.name.startswith("ai87") else 85
    ai8x.set_device(die, simulate, False, verbose=False)
    outs = weights[-1].shape[0]
    reasons = []
    for bias, classes in itertools.product(
        (False, True), (outs, outs // 2, outs // 4)
    ):  # SSD: boxes
        try:
            network: nn.Module = entry.make(
                num_classes=classes,
                num_channels=weights[0].shape[1],
                dimensions=size,
                bias=bias,
                **(SIMULATED if simulate else {}),
            )
        except AssertionError as exc:
            reasons.append(str(exc))
            continue
        ai8x.fuse_bn_layers(network)
        own = network.state_dict()
        missing = [name for name in own if name not in state and ".op." in name]
        surplus = [n for n in state if n not in own or own[n].shape != state[n].shape]
        if not missing and not surplus:
            network.load_state_dict(state, strict=False)  # files may lack bookkeeping
            return network.eval()
        reasons.append(f"missing {missing[:3]}, surplus {surplus[:3]}")
    raise AssertionError("; ".join(reasons))


def pairs() -> list[str]:
    """Return the trained networks that have a quantized twin of the present rule."""
    folder = SHARED / "checkpoints"
    names = (path.name.removesuffix(".pth.tar") for path in sorted(folder.glob("*.pth.tar")))
    return [name for name in names if not name.endswith("-q")] or [""]


def outputs(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [t for part in found for t in outputs(part)]


@pytest.mark.parametrize("name", pairs())
def test_quantized_twin_computes_what_the_trained_network_does(shared: Path, name: str) -> None:
    folder = shared / "checkpoints"
    files = [read_checkpoint(folder / f"{name}{end}.pth.tar") for end in ("", "-q")]
    entry = known_model(files[0].arch)
    size = SIZES.get(entry.name, (128, 128))
    trained = filled(files[0], size, simulate=False)
    channels = next(t for k, t in own_state(files[0]).items() if k.endswith(".weight")).shape[1]
    shape = size if entry.dim > 1 else size[:1]
    x = torch.randint(-128, 128, (2, channels, *shape)).float()
    expected = outputs(trained(x / 128))
    found = outputs(filled(files[1], size, simulate=True)(x))
    wide = [layer.wide for layer in trained.modules() if hasattr(layer, "wide")][-1]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs * (16384 if wide else 128))


# Known answers of the network loader -------------------------------------------------------------

CASES = SHARED / "kat" / "cases"


OTHERWISE = {
    "max78002-imagenet": "the description pools both operands before it adds them, the network adds"
    " first (pooling the operands gives the known answer in all 1000 words)",
    "ai85-80expansion-q4-32bitout": "the description ends after the first layers of the network",
    "ai85-cifar10-hwc-1x1": "our network of this name has layers of its own (docs/models.md)",
}


def cases() -> list[Any]:
    """Return the known answers of trained networks, and one of each further checkpoint."""
    names = sorted(path.parent.name for path in CASES.glob("max7800[02]-*/case.json"))
    used = {checkpoint_of(CASES / name) for name in names}
    for path in sorted(CASES.glob("*/case.json")):
        checkpoint = checkpoint_of(path.parent)
        if checkpoint is not None and checkpoint not in used:
            used.add(checkpoint)
            names.append(path.parent.name)
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=OTHERWISE[name], strict=True))
        if name in OTHERWISE
        else name
        for name in names or [""]
    ]


def checkpoint_of(case: Path) -> str | None:
    """Return the shared checkpoint that an accepted network takes."""
    facts = json.loads((case / "case.json").read_text())
    found = [place for place in facts["inputs"].values() if ".pth.tar" in place]
    shared_one = facts["kind"] == "image" and len(found) == 1 and "/data/" in found[0]
    return found[0] if shared_one else None


def stored(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def only_input(case: Path, ending: str, word: str = "") -> bytes:
    """Return the content of the one input of this kind; skip the test without."""
    inputs: Mapping[str, str] = json.loads((case / "case.json").read_text())["inputs"]
    found = [place for name, place in inputs.items() if name.endswith(ending) and word in name]
    if len(found) != 1:
        pytest.skip(f"the case has {len(found)} files *{word}*{ending}")
    return stored(case / found[0])


def expected_bytes(golden: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the result in the order of the unloaded buffer: what stands at each source address."""
    if "unload" not in golden or not len(golden["expected_addr"]):
        pytest.skip("the case has no expected result, or no function that unloads it")
    memory = {
        int(address) + index: byte
        for address, value in zip(
            golden["expected_addr"], golden["expected_value"].astype("<u4"), strict=True
        )
        for index, byte in enumerate(value.tobytes())
    }
    return np.array([memory[int(address)] for address in golden["unload"]], np.uint8)


def words(tensor: Tensor, wide: bool) -> bytes:
    """Return a result as the firmware unloads it: 32 bits or 8 bits each, channels first."""
    return tensor[0].numpy().astype("<i4" if wide else "i1").tobytes()


def round_bias_down(layer: Any) -> None:
    """Give a layer the bias that its register holds; files of 2020 have finer ones."""
    if layer.op is not None and layer.op.bias is not None:
        unit = 2.0 ** (layer.weight_bits.item() - 1)
        layer.op.bias.copy_((layer.op.bias / unit).floor() * unit)


@pytest.mark.parametrize("name", cases())
def test_simulation_gives_the_known_answer(shared: Path, tmp_path: Path, name: str) -> None:
    case = CASES / name
    file = tmp_path / "case.pth.tar"
    file.write_bytes(only_input(case, ".pth.tar"))
    checkpoint = read_checkpoint(file)
    known_model(checkpoint.arch)
    first = {k: v for k, v in checkpoint.state_dict.items() if k.startswith("module.")}
    if first:  # some files hold every layer twice; the loader takes the first
        checkpoint = checkpoint.with_entries(state_dict=first)
    sample = np.load(io.BytesIO(only_input(case, ".npy", "sample")))
    with np.load(case / "golden.npz") as golden:
        expected = expected_bytes(golden)
    size = (*sample.shape[1:], 1)[:2]
    network = filled(checkpoint, size, simulate=True)
    layers: list[tuple[bool, Tensor]] = []
    for layer in network.modules():
        if hasattr(layer, "wide"):
            round_bias_down(layer)
            layer.register_forward_hook(
                lambda layer, _, out: layers.append((layer.wide, out.clone()))
            )
    network(torch.from_numpy(sample).float()[None])
    parts: list[bytes] = []
    for wide, tensor in itertools.takewhile(
        lambda _: sum(map(len, parts)) < len(expected), reversed(layers)
    ):
        parts.append(words(tensor, wide))
    assert sum(map(len, parts)) == len(expected)
    content = expected.tobytes()
    for part in parts:  # several results may stand in another order than they are computed
        assert part in content
        content = content.replace(part, b"", 1)
    assert not content
