"""Weights, biases, samples and orders of kernels, for all values of small domains."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.layout import Progression
from ai8xtools.synthesis.mapping.hardware import calcx4_order, quad_order
from ai8xtools.synthesis.network import Operator, Pooling
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.program import Write
from ai8xtools.synthesis.resolve.integers import fit, limits, scaled_bias, truncated
from ai8xtools.synthesis.resolve.sample import progressing, progression, seen_by_camera
from ai8xtools.synthesis.resolve.shapes import output_size, pooled_size
from device import MAX78000, MAX78002
from tests.synthesis.networks import build, describe, sample, weights
from tests.synthesis.test_encode import program, registers, writes

CONV: dict[str, Any] = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "none"}


class Complaints:
    """Collects codes."""

    def __init__(self) -> None:
        self.codes: list[str] = []

    def __call__(self, code: str, *_: Any, **__: Any) -> None:
        self.codes.append(code)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_weights_fit_exactly_between_the_limits_of_their_width(bits: int) -> None:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert limits(bits) == (least, most)
    for low, high in product(range(least - 2, least + 2), range(most - 1, most + 3)):
        found = Complaints()
        fits = fit(np.array([low, max(low, high)]), bits, found)
        assert fits == (least <= low and max(low, high) <= most)
        assert found.codes == ([] if fits else ["E206"])


def test_binary_weights_are_signs() -> None:
    for values in product(range(-2, 3), repeat=2):
        assert fit(np.array(values), -1, Complaints()) == all(v in (-1, 1) for v in values)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_biases_lose_the_scale_of_the_weights(bits: int) -> None:
    scale = 2 ** (bits - 1)
    for wanted, rest in product(range(-130, 130), {0, scale - 1}):
        found = Complaints()
        bias = scaled_bias(np.array([[wanted * scale + rest]]), bits, "bias", found)
        if -128 <= wanted <= 127:
            assert bias is not None and bias.tolist() == [wanted] and not found.codes
        else:
            assert bias is None and found.codes == ["E207"]


@pytest.mark.parametrize(
    "values, wanted",
    [
        ([1.9, -1.9, 0.5], [1, -1, 0]),
        ([2.0**31, -(2.0**31)], [2**31, -(2**31)]),
        ([2.0**31 + 1], None),
        ([-(2**31) - 1], None),
        ([float("nan")], None),
        ([float("inf"), 1.0], None),
        ([], None),
        (["a"], None),
        ([True, False], [1, 0]),
        ([1j], None),
    ],
)
def test_numbers_of_a_file_lose_their_fractions_or_are_refused(
    values: list[Any], wanted: list[int] | None
) -> None:
    found = Complaints()
    result = truncated(np.array(values), "x", found)
    assert (None if result is None else result.tolist()) == wanted
    assert found.codes == ([] if wanted is not None else ["E204"])


@pytest.mark.parametrize("quantization", [1, 2, 4, 8, "bin"])
def test_test_weights_of_any_extremes_are_narrowed_by_as_many_bits_as_they_have_too_many(
    tmp_path: Path, quantization: int | str
) -> None:
    """-2 needs two bits, 2 needs three."""
    layer = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0, "quantization": quantization}
    for low, high in [(-128, 127), (-1, 0), (-2, 1), (-2, 2), (-3, 1), (-8, 7), (-9, 3), (0, 7)]:
        values = np.array([low, high, 0, -1]).reshape(4, 1, 1, 1)
        least, most = values.min(), values.max()
        width = next(b for b in range(1, 9) if -(2 ** (b - 1)) <= least and most < 2 ** (b - 1))
        network, _ = build(tmp_path, describe(layer), sample(1, 1, 1), [values])
        if quantization == "bin":
            wanted = [1 if v >= 0 else -1 for v in values.ravel()]
        else:
            wanted = [v >> max(width - int(quantization), 0) for v in values.ravel().tolist()]
        stored = network.first.weights
        assert stored is not None and stored.ravel().tolist() == wanted


def test_pooling_leaves_as_many_pixels_as_windows_fit() -> None:
    for length, window, stride, dilation in product(range(1, 9), range(1, 5), range(1, 4), (1, 2)):
        reach = (window - 1) * dilation + 1
        count = sum(first + reach <= length for first in range(0, length, stride))
        if not count:
            continue
        pooling = Pooling((window, 1), (stride, 1), (dilation, 1))
        assert pooled_size((length, 7), pooling) == (count, 7)
        across = Pooling((1, window), (1, stride), (1, dilation))
        assert pooled_size((7, length), across) == (7, count)


def test_convolutions_leave_as_many_pixels_as_kernels_fit() -> None:
    for length, taps, pad, stride, dilation in product(
        range(1, 8), range(1, 4), range(3), (1, 2), (1, 2)
    ):
        reach = (taps - 1) * dilation + 1
        count = sum(f + reach <= length + 2 * pad for f in range(0, length + 2 * pad, stride))
        made = output_size(
            (length, 5), Operator.CONV2D, (taps, 1), (pad, 0), (stride, 1), dilation, 0
        )
        assert made[0] == count or (count == 0 and made[0] < 1)
        assert made[1] == 5
        spread = (length - 1) * stride + reach - 2 * pad
        for more in (0, 1):
            found = output_size(
                (5, length), Operator.CONVTRANSPOSE2D, (1, taps), (0, pad), (1, stride),
                dilation, more,
            )  # fmt: skip
            assert found == (5 + more, spread + more)


def test_outputs_are_sorted_for_four_at_a_time() -> None:
    for count in (4, 8, 20):
        kernels = np.arange(count, dtype=np.int8).reshape(count, 1, 1, 1)
        assert calcx4_order(kernels).ravel().tolist() == sorted(
            range(count), key=lambda i: (i % 4, i)
        )


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_bytes_of_outputs_in_turn_hold_every_fourth_output(width: int) -> None:
    """Byte number b belongs to group b mod 4, which computes the outputs of that remainder."""
    per_byte = 8 // width
    for count in (4 * per_byte, 12 * per_byte, 4 * per_byte + 1):
        kernels = np.arange(count, dtype=np.int8).reshape(count, 1, 1, 1)
        found = quad_order(kernels, width).ravel().tolist()
        if per_byte == 1 or count % (4 * per_byte):
            assert found == list(range(count))
            continue
        assert sorted(found) == list(range(count))
        for place, output in enumerate(found):
            assert output % 4 == place // per_byte % 4
        for group in range(4):
            mine = [x for x in found if x % 4 == group]
            assert mine == sorted(mine)


@pytest.mark.parametrize("shape", [555, 565, 888, None])
def test_samples_of_a_camera_keep_the_bits_that_it_has(shape: int | None) -> None:
    bits = {555: (5, 5, 5), 565: (5, 6, 5)}.get(shape or 0, (8, 8, 8))
    values = np.tile(np.arange(-128, 128).reshape(1, 16, 16), (3, 1, 1))
    options = ResolveOptions("x.npy", camera_format=shape)
    found = seen_by_camera(values, options)
    for channel, kept in enumerate(bits):
        step = 2 ** (8 - kept)
        assert found[channel].ravel().tolist() == [v // step * step for v in range(-128, 128)]
    assert np.array_equal(seen_by_camera(values[:1], options), values[:1])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_words_of_a_progression_repeat_with_a_step(channels: int) -> None:
    random = Random(channels)
    for words, step in [(1, 1), (2, 0x010101), (3, 0x7F), (5, 0xFFFF)]:
        data = np.array([random.randint(-128, 127) for _ in range(channels * 12)])
        data = data.reshape(channels, 3, 4)
        mask = 256**channels - 1
        found = progressing(data, Progression(words, step, mask))
        pixels = data.reshape(channels, -1).T.tolist()
        made = found.reshape(channels, -1).T.tolist()
        for number, pixel in enumerate(made):
            first = pixels[number % words]
            word = sum((v & 255) << 8 * i for i, v in enumerate(first))
            word = (word + number // words * step) & mask
            lanes = [word >> 8 * i & 255 for i in range(channels)]
            assert pixel == [v - 256 if v > 127 else v for v in lanes]
        options = ResolveOptions("x.npy", synthesize_input=step, synthesize_words=words)
        assert progression(data, options) == Progression(words, step, mask)
    assert progression(data, ResolveOptions("x.npy")) is None


def test_samples_of_too_many_channels_or_no_words_are_left_alone() -> None:
    data = np.arange(5 * 4).reshape(5, 2, 2)
    assert np.array_equal(progressing(data, Progression(1, 1, 255)), data)
    assert np.array_equal(progressing(data[:1], Progression(0, 1, 255)), data[:1])


def test_a_network_that_stops_early_writes_where_the_layer_behind_would_read(
    tmp_path: Path,
) -> None:
    layers = [
        {**CONV, "processors": 1, "out_offset": 0x1000},
        {**CONV, "processors": 0xF0, "out_offset": 0},
        {**CONV, "processors": 0xF000, "out_offset": 0x1000},
    ]
    kernels = [weights(4, 1, 3, 3), weights(4, 4, 3, 3), weights(4, 4, 3, 3)]
    for stop, outputs in [(0, [0xF0]), (1, [0xF0, 0xF000]), (2, [0xF0, 0xF000, 0xF])]:
        network, _ = build(tmp_path, describe(*layers), sample(1, 4, 4), kernels, stop_after=stop)
        assert [x.output_processors for x in network.layers] == outputs


# words of options that no known network takes


def test_snoop_registers_hold_what_the_description_says(tmp_path: Path) -> None:
    values = list(range(100, 132))
    layer = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0}
    network, _ = build(
        tmp_path, describe(layer, snoop=str(values)), sample(1, 1, 1), [weights(1, 1, 1, 1)]
    )
    assert network.layout.snoop == tuple(values)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_unused_registers_of_the_last_layer_are_zeroed_each_once(tmp_path: Path, chip: Any) -> None:
    """The reference tool addresses the last layer itself."""
    layer = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0}
    arguments = (tmp_path, [layer], sample(1, 1, 1), [weights(1, 1, 1, 1)])
    plain = program(*arguments, chip=chip)
    zeroed = program(*arguments, chip=chip, zero_unused=True)
    before = [w.address for w in writes(plain.configure)]
    more = [w for w in writes(zeroed.configure) if w.address not in before or not w.value]
    zeros = [w for w in more if "unused" in w.comment.lower()]
    assert zeros and all(isinstance(w, Write) and not w.value and not w.skipped for w in zeros)
    addresses = [w.address for w in zeros]
    assert len(set(addresses)) == len(addresses)
    own = {0x50000000 + chip.layer_address(0, 0, name) for name in registers(plain, 0)}
    assert own <= set(addresses)


def test_a_jump_that_never_ends_is_refused(tmp_path: Path) -> None:
    layers = [
        {**CONV, "processors": 1, "out_offset": 0x1000, "next_sequence": 1},
        {**CONV, "processors": 1, "out_offset": 0, "next_sequence": 0},
    ]
    with pytest.raises(DiagnosticError):
        build(tmp_path, describe(*layers), sample(1, 4, 4), [weights(1, 1, 3, 3)] * 2)
