"""Which kernel a convolution gets, the memory and blocks that its C states, and limits of runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.kernels.depthwise import DEPTHWISE
from ai8xtools.software.kernels.dsp import DSP
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES, common_runs, runs_of
from ai8xtools.software.kernels.mve import DEPTHWISE_MVE, MVE
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.pixel import DSP_PIXEL, PIXEL
from ai8xtools.software.kernels.registry import PORTABLE, Core, Kernel, Packed
from ai8xtools.software.kernels.table import IN_TILES, KERNELS, choose
from tools.kernel_layer import layer

SHAPES = [(filters, channels, kernel, groups)
          for filters, channels, kernel in product((1, 2, 3, 6), (1, 2, 3, 4, 6), ((1, 1), (3, 2)))
          for groups in (1, channels) if filters % groups == 0]  # fmt: skip
SHAPES += [(filters, filters, (3, 2), filters) for filters in (15, 16)]


def convolution(
    filters: int, channels: int, kernel: tuple[int, int], groups: int, width: int = 9
) -> Convolution:
    weights = np.ones((filters, channels // groups, *kernel), np.int8)
    starts = np.zeros(filters, np.int64)
    return layer((7, width), weights, starts, groups=groups)


def _bytes_of(kernel: Kernel, conv: Convolution) -> int:
    """Return the scratch that the comments of the kernels in C state."""
    taps = conv.kernel[0] * conv.kernel[1]
    inputs = conv.channels * taps
    patch = -(-inputs // 4) * 4
    if kernel in (PIXEL, DSP_PIXEL, MVE):
        return 0 if taps == 1 and conv.channels % 4 == 0 and conv.pad == (0, 0) else patch
    return {
        "nn_depthwise": 2 * 8 * taps,
        "nn_conv_dsp": 4 * patch + (patch if conv.channels % 4 else 0),
        "nn_conv_lanes": 4 * inputs * kernel.pixels // 2,
        "nn_conv_nomul": 4 * inputs,
        "nn_conv_c": 0,
        "nn_depthwise_mve": 0,
    }[kernel.function]


@pytest.mark.parametrize("kernel", [*KERNELS, SMALL_LANES], ids=lambda one: one.source)
def test_scratch_is_what_the_kernel_in_c_asks_for(kernel: Kernel) -> None:
    for shape in SHAPES:
        conv = convolution(*shape)
        if conv.groups > 1 and kernel not in (DEPTHWISE, PORTABLE):
            continue
        for padded in (conv, replace(conv, pad=(1, 0)), replace(conv, pad=(0, 1))):
            assert kernel.scratch_bytes(padded) == _bytes_of(kernel, padded)


def test_kernels_compute_as_many_pixels_at_once_as_their_c() -> None:
    pixels = {one: one.pixels for one in KERNELS}
    assert pixels == {DEPTHWISE: 1, DEPTHWISE_MVE: 1, MVE: 1, DSP_PIXEL: 1, PIXEL: 1, DSP: 2,
                      SMALL_LANES: 2, LANES: 4, BUCKETS: 2, PORTABLE: 1}  # fmt: skip
    assert {*IN_TILES} == {*KERNELS} - {DSP_PIXEL, PIXEL}


PACKED = [(filters, channels, kernel) for filters, channels, kernel in
          product((1, 2, 3, 4, 5, 6), (1, 3, 4, 5), ((1, 1), (3, 2), (2, 3)))]  # fmt: skip


def _random(filters: int, channels: int, kernel: tuple[int, int]) -> Convolution:
    random = np.random.default_rng(filters * channels)
    weights = random.integers(-128, 128, (filters, channels, *kernel)).astype(np.int8)
    return layer((7, 9), weights, np.zeros(filters, np.int64))


def _weight(conv: Convolution, filter_: int, number: int) -> int:
    """Return the weight of an input by its number (kernel row, column, channel), 0 if none is."""
    rows, columns = conv.kernel
    if filter_ >= conv.filters or number >= rows * columns * conv.channels:
        return 0
    place, channel = divmod(number, conv.channels)
    return int(conv.weights[filter_, channel, place // columns, place % columns])


@pytest.mark.parametrize("shape", PACKED, ids=str)
def test_weights_stand_where_the_c_of_their_kernel_reads_them(
    shape: tuple[int, int, tuple[int, int]],
) -> None:
    conv = _random(*shape)
    inputs = conv.weights[0].size
    plain = [_weight(conv, f, n) for f in range(conv.filters) for n in range(inputs)]
    assert PORTABLE.pack(conv).values.tolist() == plain
    assert MVE.pack(conv).values.tolist() == plain
    assert BUCKETS.pack(conv).values.view(np.int8).tolist() == plain
    in_pairs = [_pairs(conv, f, 1) for f in range(0, conv.filters, 2)]
    assert DSP.pack(conv).values.tolist() == list(chain(*in_pairs))
    fours = [_pairs(conv, f, 2 if conv.filters - f > 2 else 1) for f in range(0, conv.filters, 4)]
    assert DSP_PIXEL.pack(conv).values.tolist() == list(chain(*fours))
    assert all(kernel.start(conv) is conv.start for kernel in IN_TILES)
    for filter_, start in enumerate(DSP_PIXEL.start(conv)):
        products = sum(_weight(conv, filter_ | 1, n) * _weight(conv, filter_ | 1, n + 1)
                       for n in range(0, inputs, 2))  # fmt: skip
        assert start - conv.start[filter_] == products * (-1 if filter_ % 2 else 256)


def _pairs(conv: Convolution, first: int, pairs: int) -> list[int]:
    return [
        (_weight(conv, first + pair + second, n + i) + (0 if second else 128)) % 256
        for n in range(0, conv.weights[0].size, 4) for pair in range(0, 2 * pairs, 2)
        for i in (0, 2, 1, 3) for second in (0, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("shape", PACKED, ids=str)
def test_words_of_four_filters_follow_the_lengths_of_their_runs(
    shape: tuple[int, int, tuple[int, int]],
) -> None:
    conv = _random(*shape)
    found = iter(PIXEL.pack(conv).values.tolist())
    for first in range(0, conv.filters, 4):
        number = 0
        while length := next(found):
            for number in range(number, number + length):  # noqa: B020
                word = next(found)
                bytes_ = [word >> 8 * n & 255 for n in (0, 2, 1, 3)]
                assert bytes_ == [_weight(conv, first + n, number) + 128 for n in range(4)]
            number += 1
        assert number == conv.weights[0].size
    assert next(found, None) is None


@pytest.mark.parametrize("at", [0, 5])
def test_weights_of_four_bits_have_their_nibbles_counted_once(at: int) -> None:
    for weight in range(-128, 128):
        weights = np.zeros((1, 6, 1, 1), np.int8)
        weights[0, at] = weight
        packed = BUCKETS.pack(layer((1, 9), weights, np.zeros(1, np.int64)))
        assert packed.flush == (1 if -8 <= weight <= 7 else 2)


def _can(kernel: Kernel, conv: Convolution, core: Core) -> bool:
    """Whether a kernel can compute a convolution on a core, as its C says."""
    if kernel is PORTABLE:
        return True
    if conv.transposed:
        return False
    if kernel is DEPTHWISE_MVE:
        usual = not conv.wide and not conv.absolute and conv.right >= 0
        return core.helium and usual and 16 <= conv.groups == conv.channels == conv.filters
    if kernel is DEPTHWISE:
        return 1 < conv.groups == conv.channels == conv.filters
    few = (conv.out_size[1] == 1 and conv.filters > 2) or kernel not in (PIXEL, DSP_PIXEL)
    multiplies = core.multiplier or kernel is BUCKETS
    special = {DSP: core.simd, DSP_PIXEL: core.simd, BUCKETS: not core.multiplier,
               MVE: core.helium and conv.filters >= 4,
               SMALL_LANES: core.name == "cortex-m0plus",
               LANES: core.name != "cortex-m0plus"}  # fmt: skip
    return conv.groups == 1 and few and multiplies and special.get(kernel, True)


@pytest.mark.parametrize("core", CORES.values(), ids=lambda one: one.name)
def test_first_kernel_of_the_wanted_sets_is_taken(core: Core) -> None:
    sets = {"c", "dsp", "mve", "nomul"}
    assert set[str]().union(*(one.sets for one in KERNELS)) == sets
    wishes = [None, *(frozenset(one) for one in (["c"], ["dsp"], ["nomul"], ["c", "dsp"]))]
    for shape, width, wanted, spread in product(SHAPES, (2, 9), wishes, (1, 2)):
        if width < shape[2][1]:
            continue
        conv = convolution(*shape, width=width)
        if spread > 1:
            conv = replace(conv, spread=(spread, spread))
        for among in (KERNELS, IN_TILES):
            fitting = [
                one for one in among
                if _can(one, conv, core)
                and (wanted is None or one.sets & wanted or one is PORTABLE)
            ]  # fmt: skip
            assert choose(conv, core, wanted, among) is fitting[0]


@pytest.mark.parametrize("signed", [True, False])
def test_sums_of_depthwise_products_stay_in_16_bits_whichever_they_are(signed: bool) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scale = (4, 30, 128)[seed % 3]
        weights = rng.integers(-scale, scale, (18, 1, 3, 3)).astype(np.int8)
        conv = layer((4, 4), weights, np.zeros(18, np.int64), groups=18, signed=signed)
        packed = DEPTHWISE_MVE.pack(conv)
        assert packed.values.tolist() == weights.transpose(2, 3, 0, 1).reshape(-1).tolist()
        low, ends = -128 if signed else 0, []
        for flat in weights.reshape(18, 9).tolist():
            greatest = sorted((max(w * low, w * 127, 0) for w in flat), reverse=True)
            least = sorted(min(w * low, w * 127, 0) for w in flat)
            ends += [
                next((n for n in range(9) if sum(side[: n + 1]) not in range(-32768, 32768)), 9)
                for side in (greatest, least)
            ]
        assert packed.flush == min(ends)


def test_cores_and_weights_state_nothing_that_was_not_said() -> None:
    packed = Packed(np.zeros(1, np.int8))
    assert (packed.flush, packed.runs) == (0, 0)


def test_scratch_of_a_call_holds_buffer_and_copy() -> None:
    for buffer, copied in product(range(9), range(9)):
        call = KernelCall(function="f", arguments=(), buffer_bytes=buffer, copied=copied)
        words = (buffer + 3) // 4 + (copied + 3) // 4
        assert call.scratch_bytes == 4 * words
    assert KernelCall(function="f", arguments=(), relu="g").functions == ("f", "g")
    assert KernelCall(function="f", arguments=()).functions == ("f",) and call.copied == 8
    plain = KernelCall(function="f", arguments=())
    assert (plain.scratch_bytes, plain.wide, plain.status) == (0, False, True)


@pytest.mark.parametrize("rest", [0, 1])
def test_runs_reach_both_ends_of_16_bits_and_no_further(rest: int) -> None:
    """Inputs may be as large as sums here, which ends runs wherever is wished."""
    for weight, low, high in ((1, 0, 32766), (1, -32767, 0), (-1, -32766, 0), (-1, 0, 32767)):
        side = np.sign(low + high)
        lows = np.array([low - rest * (side < 0), -int(side < 0), 0])
        highs = np.array([high + rest * (side > 0), int(side > 0), 0])
        weights = np.full((2, 3), weight, np.int8)
        assert runs_of(weights, lows, highs, (1, 2, 3)) == ([[1, 2]] if rest else [[3]])
        assert common_runs(weights, lows, highs) == ([1, 2] if rest else [3])
        one = np.array([[0, 0, 0], [weight] * 3], np.int8)  # the other filter has none
        assert runs_of(one, lows, highs, (1, 2, 3)) == ([[1, 2]] if rest else [[3]])
        assert runs_of(one[::-1], lows, highs, (1, 2, 3)) == ([[1, 2]] if rest else [[3]])


def test_runs_have_the_lengths_that_the_c_has_code_for() -> None:
    weights = np.zeros((2, 1000), np.int8)
    low, high = np.full(1000, -128), np.full(1000, 127)
    assert common_runs(weights, low, high) == [256, 256, 256, 232]
    conv = layer((1, 9), np.zeros((2, 43, 1, 1), np.int8), np.zeros(2, np.int64))
    for kernel, weights_bytes, lists, runs in (
        (LANES, 86, [16, 16, 11, 0], 3),
        (SMALL_LANES, 88, [4, 200 - 256, 2, 4, 214 - 256, 0], 4),
    ):
        packed = kernel.pack(conv)
        assert packed.values[weights_bytes:].tolist() == lists
        assert packed.runs == runs
