"""Arithmetic and decoding hold for random values, compared with the plainest possible code."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.emulator import AddressMap, EmulatorError, Writes
from ai8xtools.emulator.decode.config import ActivationFunction, Output, WritePointer
from ai8xtools.emulator.machine.arithmetic import finish
from ai8xtools.emulator.words.writes import effect_of
from device import CHIPS, MAX78000, Chip
from device.chip import DEFAULT_APB_BASE
from tests.emulator.by_hand import Words, one_by_one

SMALL = st.integers(1, 4)
SEEDS = st.integers(0, 2**32 - 1)


def plain_convolution(image: np.ndarray, kernels: np.ndarray, pad: int) -> np.ndarray:
    """Sum tap by tap in Python integers: image [c, h, w], kernels [o, c, 3, 3]."""
    padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad)))
    rows, columns = (length - 2 for length in padded.shape[1:])
    result = np.zeros((len(kernels), rows, columns), object)
    for o, y, x in np.ndindex(*result.shape):
        window = padded[:, y : y + 3, x : x + 3]
        result[o, y, x] = sum(
            int(a) * int(b) for a, b in zip(window.flat, kernels[o].flat, strict=True)
        )
    return result


@given(outputs=SMALL, channels=SMALL, rows=SMALL, columns=SMALL, pad=st.integers(1, 2), seed=SEEDS)
def test_convolution_equals_the_sum_of_products(
    outputs: int, channels: int, rows: int, columns: int, pad: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    image = random.integers(-128, 128, (channels, rows, columns))
    kernels = random.integers(-128, 128, (outputs, channels, 3, 3))
    words = one_by_one(image, np.zeros((outputs, channels), int), lctl={"wide": 1})
    words.layer(0, "RCNT", last=rows - 1 + 2 * pad, pad=pad)
    words.layer(0, "CCNT", last=columns - 1 + 2 * pad, pad=pad)
    words.layer(0, "ONED")
    for channel in range(channels):
        stream = kernels[:, channel].reshape(outputs, 9)[:, ::-1]
        words.kernel_bytes(channel, stream.reshape(-1).tolist())
    run, _ = words.run()
    assert (run.layers[0].output == plain_convolution(image, kernels, pad)).all()


@given(bits=st.sampled_from([1, 2, 4, 8]), outputs=st.integers(1, 20), channels=SMALL, seed=SEEDS)
def test_weights_of_every_width_are_unpacked(
    bits: int, outputs: int, channels: int, seed: int
) -> None:
    """Several kernels share a byte, the first in the lowest bits."""
    random = np.random.default_rng(seed)
    weights = random.integers(-(1 << bits - 1), 1 << bits - 1, (outputs, channels))
    image = random.integers(-128, 128, (channels, 1, 1))
    code = {8: 0, 1: 1, 2: 2, 4: 3}[bits]
    words = one_by_one(image, weights, post={"weight_size": code}, lctl={"wide": 1})
    words.layer(0, "LCTL2", last_output=bits * (outputs - 1))
    words.layer(0, "MCNT", last=bits * (outputs - 1))
    per_byte = 8 // bits
    for channel in range(channels):
        packed = [0] * math.ceil(outputs / per_byte)
        for n, weight in enumerate(weights[:, channel].tolist()):
            packed[n // per_byte] |= (weight & (1 << bits) - 1) << bits * (n % per_byte)
        words.kernel_bytes(channel, [value - (value >> 7 << 8) for value in packed])
    run, _ = words.run()
    assert run.layers[0].output.reshape(-1).tolist() == (weights @ image[:, 0, 0]).tolist()


@given(value=st.integers(-(2**28), 2**28), shift=st.integers(-15, 15))
def test_scaling_rounds_half_up_and_clips(value: int, shift: int) -> None:
    nowhere = (WritePointer(0, 0),) * 4
    output = Output(1, 1, 0, False, shift, ActivationFunction.NONE, (None,) * 4, nowhere)
    wanted = math.floor(value * 2**shift / 128 + 0.5)
    assert finish(np.array([value], np.float64), output).tolist() == [min(127, max(-128, wanted))]


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
@given(processor=st.integers(0, 63), first=st.integers(0, 50), count=st.integers(1, 20), seed=SEEDS)
def test_packed_and_plain_kernels_have_the_same_effect(
    chip: Chip, processor: int, first: int, count: int, seed: int
) -> None:
    data = np.random.default_rng(seed).integers(0, 256, 9 * count)
    plain = Words(chip)
    plain.kernel_bytes(processor, (data - (data >> 7 << 8)).tolist(), first)
    stream = data.reshape(count, 9)[:, ::-1].astype(np.uint8).tobytes()
    stream += bytes(-len(stream) % 4)
    base = DEFAULT_APB_BASE + chip.kernel_address(processor)
    packed = [(1, base + 4 * first | 1, 1)]
    packed += [
        (4, base + 4 * first + i, int.from_bytes(stream[i : i + 4], "big"))
        for i in range(0, len(stream), 4)
    ]
    addresses = AddressMap(chip)
    wanted = effect_of(Writes.of(plain.rows), addresses)
    assert effect_of(Writes.of(packed), addresses).words == wanted.words


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=3))
def test_damaged_registers_run_or_are_refused(flips: list[tuple[int, int]]) -> None:
    words = one_by_one(np.ones((1, 4, 4), int), np.array([[1], [2]]))
    for row, bit in flips:
        size, address, value = words.rows[row * 4]  # group 0 of each register
        words.rows[row * 4] = size, address, value ^ 1 << bit
    with contextlib.suppress(EmulatorError):
        words.run()


@given(group=st.integers(0, 3), layer=st.integers(0, 31), register=st.sampled_from(["POST", "ENA"]))
def test_registers_are_named_in_words(group: int, layer: int, register: str) -> None:
    address = DEFAULT_APB_BASE + MAX78000.layer_address(group, layer, register)
    assert AddressMap(MAX78000).describe(address) == f"group {group} layer {layer} {register}"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (0x50000008, "FIFO 0 data"),
        (0x40005804, "power register 1"),
        (0x50500000, "group 1 CTL"),
        (0x50108010, "group 0 bias 4"),
        (0x5011400C, "processor 1 line buffer word 3"),
        (0x50584024, "processor 17 kernel column 2 word 1"),
        (0x50808004, "data memory instance 5 word 1"),
        (0x55000000, ""),
    ],
)
def test_places_are_described(address: int, words: str) -> None:
    assert AddressMap(MAX78000).describe(address) == words
