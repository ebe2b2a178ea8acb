"""Many inputs at once give what each of them gives alone, whatever the layers do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.decode.own_input import set_input
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.words.recording import read_words
from device.chip import DEFAULT_APB_BASE
from tests.emulator.by_hand import one_by_one
from tests.emulator.known_answers import chip_of
from tests.emulator.test_snoop import network

SELECTION = (
    "max78000-mnist",
    "nonsquare",
    "conv1d-pool-9-q4",
    "opt-avg-pool-rounding-mnist",
    "own-wide-output-multipass",
    "own-passthrough-multipass-ai87",
    "eltwiseadd-5op-31ch",
    "upsample-nonsquare-pad1C",
    "depthwise-mixed-ai87",
    "readahead-x4-multipass5-ai87",
    "fifostream-15ch-hwc",
    "own-fifo-stream-chw",
)


def inputs(shape: tuple[int, ...], count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(-128, 128, (count, *shape)).astype(np.int8)


def loaded(case: Path) -> Accelerator:
    recording = read_words(case / "golden.npz")
    accelerator = Accelerator(chip_of(recording.writes.address))
    accelerator.write(recording.writes)
    return accelerator


@pytest.mark.parametrize("name", SELECTION)
def test_every_layer_is_as_one_input_after_the_other_has_it(shared: Path, name: str) -> None:
    accelerator = loaded(shared / "kat" / "cases" / name)
    batch = NetworkBatch(accelerator)
    images, outputs = inputs(batch.shape, 3), []
    batch.run(images, lambda config, output: outputs.append((config.layer, output)))
    set_input(accelerator.memory, images[2])
    run = accelerator.run()
    assert [layer for layer, _ in outputs] == [done.config.layer for done in run.layers]
    for (layer, output), done in zip(outputs, run.layers, strict=True):
        assert np.array_equal(output[..., 2], done.output), f"layer {layer}"
        assert len(np.unique(output)) > 1


def test_one_input_in_memory_leaves_the_same_data(shared: Path) -> None:
    case = shared / "kat" / "cases" / "eltwiseadd-5op-31ch"
    ours, theirs = loaded(case), loaded(case)
    batch = NetworkBatch(ours)
    assert batch.fits(ours.memory)
    batch.run_in(ours.memory)
    theirs.run()
    assert np.array_equal(ours.memory.data, theirs.memory.data)
    assert np.array_equal(ours.memory.data_written, theirs.memory.data_written)


def test_other_registers_kernels_or_biases_are_another_network() -> None:
    _, accelerator = one_by_one(np.ones((1, 2, 2), int), np.array([[3]])).run()
    memory, batch = accelerator.memory, NetworkBatch(accelerator)
    assert batch.fits(memory)
    memory.bias[0, 5] += 1
    assert not batch.fits(memory)
    memory.bias[0, 5] -= 1
    memory.kernel_version += 1
    assert not batch.fits(memory)
    memory.kernel_version -= 1
    address = next(iter(memory.registers))
    memory.registers[address] += 1
    assert not batch.fits(memory)


def test_wanted_bytes_are_returned_for_each_input() -> None:
    words = one_by_one(np.ones((1, 2, 2), int), np.array([[127]]))
    _, accelerator = words.run()
    place = np.array([0]), np.array([0])
    batch = NetworkBatch(accelerator, place)
    images = inputs((1, 2, 2), 2 * batch.size + 1)
    assert np.array_equal(batch.run(images)[:, 0].view(np.int8), images[:, 0, 0, 0])


def test_inputs_of_another_shape_are_refused() -> None:
    _, accelerator = one_by_one(np.ones((1, 2, 2), int), np.array([[3]])).run()
    with pytest.raises(ValueError, match=r"each 1 x 2 x 2, not int8 \(2, 1, 3, 2\)"):
        NetworkBatch(accelerator).run(np.zeros((2, 1, 3, 2), np.int8))


@pytest.mark.parametrize(
    ("mode", "told"), [("snoop", "conditional execution"), ("fifo_quad", "quad mode"), ("", "")]
)
def test_what_data_or_another_order_of_words_decides_is_refused(mode: str, told: str) -> None:
    _, accelerator = network(0, enable=int(mode == "snoop")).run()
    memory = accelerator.memory
    fields = {"enable": 1, "clock_enable": 1, **({mode: 1} if mode else {})}
    for group in range(4):
        address = DEFAULT_APB_BASE + memory.chip.control_address(group, "CTL")
        memory.registers[address] = memory.chip.control_registers["CTL"].pack(**fields)
    if not mode:
        assert len(NetworkBatch(accelerator).steps) == 2
        return
    with pytest.raises(EmulatorError, match=told) as refusal:
        NetworkBatch(accelerator)
    assert refusal.value.code == "E860"
