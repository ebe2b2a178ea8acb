"""Each description in networks/ fits its model: loader, torch and the emulated chip agree."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.answer import write_answer
from ai8xtools.diagnostics import DiagnosticError, Severity
from ai8xtools.emulator.comparison.layers import compare_layers
from ai8xtools.synthesis.answer import LARGEST_BYTES, LARGEST_SHARE, build_answer
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.pipeline import Synthesis, examine
from ai8xtools.synthesis.place.data import output_words
from ai8xtools.synthesis.place.lifetimes import memory_steps
from ai8xtools.synthesis.program import InputBlock
from ai8xtools.training.saving import checkpoints
from tests.models.random_weights import WIDTHS
from tests.networks.deployed import (
    BY_FILE,
    DEPLOYED,
    NETWORKS,
    STEPS,
    Deployed,
    with_history,
    with_random_weights,
)
from tests.synthesis.emulated import emulated

ACTIONS = BY_FILE["actiontcn-ai85"]


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def delivered(made: Synthesis) -> Any:
    outputs = (made.activations.outputs[layer.index] for layer in made.network.outputs())
    return np.concatenate([output.ravel() for output in outputs])


def test_every_description_is_tested() -> None:
    assert sorted(BY_FILE) == sorted(path.stem for path in NETWORKS.glob("*.yaml"))


@pytest.mark.parametrize("deployed", DEPLOYED, ids=lambda d: d.file)
def test_loader_torch_and_chip_agree(deployed: Deployed, tmp_path: Path) -> None:
    checkpoint, model = with_random_weights(deployed, tmp_path)
    made = deployed.synthesized(tmp_path, checkpoint)
    wanted = deployed.output(model)
    assert len(np.unique(wanted)) >= min(wanted.size, 20) // 2  # neither dead nor saturated
    np.testing.assert_array_equal(delivered(made), wanted)
    warnings = [d for d in made.warnings if d.severity is not Severity.NOTICE]
    machine = emulated(made.program)
    assert machine.wrong == []
    # a result that no layer reads draws a note: the registers do not tell that it is one
    results = tuple(f"layer {x.index}: no layer reads its output" for x in made.network.outputs())
    findings = [str(f) for f in machine.run.findings if not str(f).startswith(results)]
    empty_history = ["W390"] if deployed is ACTIONS else []
    assert [d.code for d in warnings] == empty_history
    assert [text.split(" in ")[0] for text in findings] == [
        f"layer {index}: output overwrites the layer's own input" for index in deployed.in_place
    ]
    weights = sum(len("0x00000000, ") * len(block.words) for block in made.program.kernels)
    answer = build_answer(made, deployed.file, 1, weights, fixed_input=False)
    assert compare_layers(machine.run, answer).first is None
    assert len(write_answer(answer)) <= max(LARGEST_BYTES, weights // LARGEST_SHARE)


@pytest.mark.parametrize("deployed", [d for d in DEPLOYED if d.in_place], ids=lambda d: d.file)
def test_layers_in_place_overwrite_only_what_they_have_read(
    deployed: Deployed, tmp_path: Path
) -> None:
    checkpoint, _ = with_random_weights(deployed, tmp_path)
    options = deployed.resolving(tmp_path, checkpoint)
    examined, placement, _ = examine(deployed.path, deployed.chip, options, deployed.encoding)
    network = map_network(examined, placement.layout, deployed.chip)
    losses = [loss for step in memory_steps(network, {}) for loss in step.losses]
    assert [loss for loss in losses if not loss.own_input] == []
    for layer in (network.layer(index) for index in deployed.in_place):
        pixels = layer.out_dim[0] * layer.out_dim[1]
        last_written = output_words(layer).reshape(pixels, -1).max(axis=1)
        # the kernel at the next pixel still reaches this many pixels back
        reach = layer.pad[0] * layer.in_dim[1] + layer.pad[1]
        oldest = np.maximum(np.arange(1, pixels + 1) - reach, 0)
        first_needed = layer.in_offset // 4 + layer.in_passes * oldest
        assert (last_written[:-1] < first_needed[:-1]).all(), layer


# Trained weights


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("catsdogs-hwc-ai85", "ai85-catsdogs-qat8-q"),
        ("kws20-v3-ai85", "ai85-kws20_v3-qat8-q"),
        ("autoencoder-ai85", "ai85-autoencoder-samplemotordatalimerick-qat-q"),
        ("mnist-extrasmall-chw-ai85", "ai85-mnist-extrasmall-qat8-q"),
        ("mnist-hwc-ai85", "ai85-mnist-qat8-q"),
        ("kws20-v3-ai87", "ai87-kws20_v3-qat8-q"),
        ("bayer2rgb-hwc-ai85", "ai85-bayer2rgb-qat8-q"),
        ("svhn-tinierssd-hwc-ai85", "ai85-svhn-tinierssd-qat8-q"),
        ("facedet-tinierssd-hwc-ai85", "ai85-facedet-tinierssd-qat8-q"),
    ],
)
def test_published_weights_compute_what_torch_does(
    shared: Path, tmp_path: Path, file: str, name: str
) -> None:
    deployed, checkpoint = BY_FILE[file], str(shared / "checkpoints" / f"{name}.pth.tar")
    if not Path(checkpoint).exists():
        packed = shared / "kat/data" / f"{name}.pth.tar.xz"
        checkpoint = str(tmp_path / f"{name}.pth.tar")
        Path(checkpoint).write_bytes(lzma.decompress(packed.read_bytes()))
    model: nn.Module = deployed.case.make(simulate=True, **WIDTHS).eval()
    checkpoints.load_into(model, checkpoints.read(checkpoint))
    made = deployed.synthesized(tmp_path, checkpoint)
    np.testing.assert_array_equal(delivered(made), deployed.output(model))


# Networks that need options


@pytest.mark.parametrize("file", [d.file for d in DEPLOYED if d.fifo])
def test_stream_needs_a_fifo(file: str, tmp_path: Path) -> None:
    deployed = BY_FILE[file]
    checkpoint, _ = with_random_weights(deployed, tmp_path)
    options = replace(deployed.resolving(tmp_path, checkpoint), input_port=InputPort.MEMORY)
    with pytest.raises(DiagnosticError, match="FIFO"):
        examine(deployed.path, deployed.chip, options, deployed.encoding)


@pytest.fixture(scope="module")
def actions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, nn.Module]:
    folder = tmp_path_factory.mktemp("actions")
    return folder, *with_random_weights(ACTIONS, folder)


def test_only_the_first_layer_needs_leave_to_overlap(actions: tuple[Path, str, nn.Module]) -> None:
    folder, checkpoint, _ = actions
    options = replace(ACTIONS.encoding, place=PlaceOptions())
    with pytest.raises(DiagnosticError) as refusal:
        examine(ACTIONS.path, ACTIONS.chip, ACTIONS.resolving(folder, checkpoint), options)
    found = [(d.code, d.message.split(":")[0]) for d in refusal.value.diagnostics]
    assert found == [("E404", "layer 0 (prep0)")]


def test_frame_is_judged_with_those_before_it(actions: tuple[Path, str, nn.Module]) -> None:
    folder, checkpoint, model = actions
    made = ACTIONS.synthesized(folder, checkpoint)
    history = np.random.default_rng(3).integers(0, 128, (32, STEPS))
    frame = torch.from_numpy(ACTIONS.integers()).float()[None]
    with torch.no_grad():
        earlier = torch.from_numpy(history[:, 1:]).float()[None]
        wanted = with_history(model, frame, earlier).numpy().astype(np.int32).ravel()
    program = made.program
    filled = tuple(
        InputBlock(
            4 * instance, program.apb_base + ACTIONS.chip.data_address(instance, 0x7C00), words
        )
        for instance, words in enumerate(memory_words(history))
    )
    expected = replace(program.expected, values=wanted.view(np.uint32))
    assert not np.array_equal(expected.values, program.expected.values)
    frame_and_history = replace(program, inputs=(*program.inputs, *filled), expected=expected)
    assert emulated(frame_and_history).wrong == []


def memory_words(entries: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the words of each data memory: four channels of one entry after the other."""
    for four in entries.astype(np.uint8).reshape(-1, 4, entries.shape[1]):
        yield np.ascontiguousarray(four.T).view(np.uint32).ravel()
