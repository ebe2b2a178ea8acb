"""Kernels in C: the same bytes on every core, and the proofs of their flush intervals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.cores import CORES
from ai8xtools.software.graph import Interval
from ai8xtools.software.kernels.dsp import DSP
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES, input_bounds, runs_of
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.pixel import DSP_PIXEL, PIXEL
from ai8xtools.software.kernels.registry import Kernel
from ai8xtools.software.kernels.table import IN_TILES, choose
from tests.cores import DIFFERENT
from tests.software.compiled import local_compiler, run_program
from tests.software.lanes_answers import read_case, wrong_numbers
from tools.kernel_layer import Trial, layer, program

RNG = np.random.default_rng(16)


def random_weights(*shape: int, scale: float = 30) -> NDArray[np.int8]:
    return np.clip(np.rint(RNG.laplace(0, scale, shape)), -128, 127).astype(np.int8)


def starts(filters: int, right: int = 7) -> NDArray[np.int64]:
    return RNG.integers(-128, 128, filters) * 128 + (1 << max(right, 0) >> 1)


def extremes(*shape: int) -> NDArray[np.int8]:
    """Inputs that drive sums to their ends, among them."""
    data = RNG.integers(-128, 128, shape)
    return np.where(RNG.random(shape) < 0.5, data, np.where(data < 0, -128, 127)).astype(np.int8)


# Each reaches other code: whole blocks, borders, single channels, odd filters and pixels, ...
LAYERS = {
    "3x3, borders": layer(
        (4, 9), random_weights(6, 8, 3, 3), starts(6), pad=(1, 1), low=0, signed=False
    ),
    "one channel": layer((5, 8), random_weights(3, 1, 3, 3), starts(3), pad=(1, 1)),
    "odd channels, dilation": layer(
        (7, 8), random_weights(5, 3, 3, 2), starts(5, 5), pad=(2, 1), dilation=2, right=5
    ),
    "wide sums": layer((3, 6), random_weights(3, 4, 1, 3), starts(3, 0), pad=(0, 2), wide=True),
    "magnitudes": layer((2, 6), random_weights(4, 5, 1, 1), starts(4, 4), right=4, absolute=True),
    "shift left": layer(
        (2, 5), random_weights(3, 4, 2, 2, scale=2), starts(3, -1) // 128, right=-1
    ),
    "extreme weights": layer(
        (2, 6), np.full((2, 40, 1, 1), -128, np.int8), starts(2, 12), right=12
    ),
    "narrow weights": layer((2, 7), RNG.integers(-8, 8, (4, 300, 1, 1)).astype(np.int8), starts(4)),
    "runs of many lengths": layer(
        (3, 6), random_weights(12, 150, 1, 1, scale=60), starts(12, 9), right=9, low=0
    ),
    "one pixel": layer((1, 1), random_weights(7, 50, 1, 1), starts(7), low=0),
    "one pixel, narrow weights": layer(
        (1, 1), RNG.integers(-2, 3, (6, 304, 1, 1)).astype(np.int8), starts(6)
    ),
    "one pixel, extreme weights": layer(
        (1, 1), RNG.choice((-128, 127), (8, 37, 1, 1)).astype(np.int8), starts(8, 13), right=13
    ),
    "one pixel, two filters": layer((1, 1), random_weights(2, 9, 1, 1), starts(2)),
    "a column": layer(
        (9, 1), random_weights(12, 8, 3, 1), starts(12), pad=(1, 0), low=0, signed=False
    ),
    "a column, dilation, borders": layer(
        (7, 3),
        random_weights(5, 3, 2, 3),
        starts(5, 5),
        pad=(2, 1),
        dilation=2,
        stride=(2, 5),
        right=5,
    ),
    "a column, in place": layer((5, 1), random_weights(4, 12, 1, 1), starts(4), pad=(1, 0)),
    "a column, wide": layer((4, 1), random_weights(6, 5, 2, 1), starts(6, 0), wide=True),
    "a column, magnitudes": layer(
        (4, 1), random_weights(3, 8, 1, 1), starts(3, 4), right=4, absolute=True
    ),
    "a column, shift left": layer(
        (4, 1), random_weights(5, 4, 2, 1, scale=2), starts(5, -1) // 128, right=-2
    ),
    "dilation": layer((6, 7), random_weights(3, 4, 2, 2), starts(3), pad=(0, 1), dilation=2),
    "groups": layer((4, 5), random_weights(9, 2, 2, 2), starts(9), pad=(1, 0), groups=3),
    "depthwise": layer(
        (5, 6), random_weights(10, 1, 3, 3), starts(10), pad=(1, 1), groups=10, low=0
    ),
    "depthwise, without ReLU": layer(
        (4, 5), random_weights(8, 1, 2, 2), starts(8), pad=(1, 1), groups=8
    ),
    "strides": layer(
        (5, 11), random_weights(4, 4, 3, 3), starts(4), pad=(1, 1), stride=(2, 2), low=0
    ),
    "strides, one channel": layer(
        (12, 9), random_weights(3, 1, 10, 4), starts(3), pad=(5, 2), stride=(2, 2)
    ),
    "strides, dilation": layer(
        (6, 10), random_weights(3, 3, 2, 3), starts(3), pad=(0, 4), stride=(1, 3), dilation=2
    ),
    "depthwise, three pixels": layer(
        (4, 9), random_weights(9, 1, 3, 3), starts(9, 5), pad=(1, 1), groups=9, right=5
    ),
    "depthwise, strides": layer(
        (5, 7), random_weights(8, 1, 3, 3), starts(8), pad=(1, 1), groups=8, stride=(2, 2)
    ),
    "depthwise, many channels": layer(
        (5, 6), random_weights(37, 1, 3, 3, scale=60), starts(37), pad=(1, 1), groups=37, low=0
    ),
    "depthwise, extreme weights": layer(
        (4, 5),
        RNG.choice((-128, 127), (16, 1, 2, 3)).astype(np.int8),
        starts(16, 9),
        groups=16,
        dilation=2,
        right=9,
    ),
    "depthwise, wide": layer(
        (3, 5), random_weights(5, 1, 2, 3), starts(5, 0), pad=(1, 0), groups=5, wide=True
    ),
}


DATA = {
    name: np.maximum(extremes(*conv.in_size, conv.channels), conv.input.low.min()).astype(np.int8)
    for name, conv in LAYERS.items()
}
PIECES = {"3x3, borders": 4, "magnitudes": 5, "depthwise": 2}


def trials(core: str) -> list[Trial]:
    wanted = [
        (name, choose(conv, CORES[core]), PIECES.get(name, 0)) for name, conv in LAYERS.items()
    ]
    single = choose(LAYERS["a column"], CORES[core])
    wanted += [(name, single, 0) for name in ("3x3, borders", "wide sums")]
    return [Trial(LAYERS[name], kernel, DATA[name], piece) for name, kernel, piece in wanted]


@pytest.mark.parametrize(
    ("core", "level"),
    [*zip(DIFFERENT, ("-O3", "-O1", "-O0", "-Os", "-O3", "-O2", "-Os"), strict=True)],
)
def test_every_kernel_gives_the_bytes_of_the_layer(core: str, level: str, tmp_path: Path) -> None:
    """Different levels of the compiler, to which inline assembly must not matter."""
    pass_on_core(trials(core), core, level, tmp_path)


def test_depthwise_pixels_of_any_row_are_computed_together_on_a_small_core(tmp_path: Path) -> None:
    """Up to six, from one border to the other, or none where two columns of zeros are needed."""
    tried = []
    for width in range(1, 14):
        rows, channels, pad = 2 + width % 3, 3 + width % 4, 1 + width % 7 // 6
        conv = layer(
            (rows, width), random_weights(channels, 1, 3, 3, scale=60), starts(channels),
            pad=(1, pad), groups=channels, low=-(width % 2) & -128,
        )  # fmt: skip
        data = extremes(rows, width, channels)
        tried.append(Trial(conv, choose(conv, CORES["cortex-m0plus"]), data))
    pass_on_core(tried, "cortex-m0plus", "-Os", tmp_path)


def pass_on_core(tried: Sequence[Trial], core: str, level: str, folder: Path) -> None:
    for name, text in program(tried).items():
        (folder / name).write_text(text)
    strict = ("-Wall", "-Wextra", "-Werror")
    run = run_plain(compile_plain(folder, ARCHITECTURES[core], level, strict))
    assert run.text == "*** PASS ***\n"


def test_portable_kernels_are_clean_on_the_desk(tmp_path: Path) -> None:
    """With sanitizers, and as strict compilers want it."""
    if local_compiler() is None:
        pytest.skip("neither gcc nor clang is installed")
    pass_on_the_desk(trials("rv32imc") + trials("rv32ec"), tmp_path)


ASSEMBLY = {
    "cortex-m0plus": ((SMALL_LANES, PIXEL), ("-DNN_FOR_CORTEX_M0PLUS",)),
    "cortex-m4": ((DSP, DSP_PIXEL), ()),
}
"""Kernels with assembly, and options with which their plain C is compiled."""


@pytest.mark.parametrize("core", ASSEMBLY)
def test_kernels_with_assembly_have_the_same_in_plain_c(core: str, tmp_path: Path) -> None:
    """As it runs on the desk in projects for such a core."""
    if local_compiler() is None:
        pytest.skip("neither gcc nor clang is installed")
    kernels, flags = ASSEMBLY[core]
    pass_on_the_desk([one for one in trials(core) if one.kernel in kernels], tmp_path, flags)


def pass_on_the_desk(tried: Sequence[Trial], folder: Path, flags: Sequence[str] = ()) -> None:
    result = run_program(program(tried), folder, flags)
    assert (result.stdout, result.stderr) == ("*** PASS ***\n", "")


def test_cores_get_the_kernels_that_suit_them() -> None:
    wide, deep = LAYERS["3x3, borders"], LAYERS["depthwise"]
    found = {name: choose(wide, core).function for name, core in CORES.items()}
    assert found == {
        "cortex-m0plus": "nn_conv_lanes",
        "cortex-m3": "nn_conv_lanes",
        "cortex-m4": "nn_conv_dsp",
        "cortex-m7": "nn_conv_dsp",
        "cortex-m33": "nn_conv_dsp",
        "cortex-m55": "nn_conv_dsp",
        "cortex-m55-helium": "nn_conv_mve",
        "rv32imc": "nn_conv_lanes",
        "rv32ec": "nn_conv_nomul",
        "rv32emc": "nn_conv_lanes",
        "xtensa-lx7": "nn_conv_lanes",
        "x86-64": "nn_conv_lanes",
        "aarch64": "nn_conv_lanes",
    }
    assert {choose(deep, core).function for core in CORES.values()} == {"nn_depthwise"}
    column = LAYERS["a column"]
    assert {name: choose(column, core).function for name, core in CORES.items()} == dict.fromkeys(
        CORES, "nn_conv_pixel"
    ) | dict.fromkeys(
        ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"), "nn_conv_dsp_pixel"
    ) | {"rv32ec": "nn_conv_nomul", "cortex-m55-helium": "nn_conv_mve"}
    few = choose(LAYERS["one pixel, two filters"], CORES["cortex-m0plus"])
    assert few.function == "nn_conv_lanes"
    assert choose(column, CORES["cortex-m4"], among=IN_TILES) is DSP


def test_runs_are_as_long_as_their_sums_are_16_bit_numbers() -> None:
    """Filters of equal weights: n * 127 * w must stay below 2^15."""
    weights = np.full((2, 60), 37, np.int8)
    low, high, lengths = np.zeros(60, np.int64), np.full(60, 127), range(1, 61)
    assert runs_of(weights, low, high, lengths) == [[6] * 10]
    assert 32767 // (127 * 37) == 6 and 32768 // (128 * 37) == 6
    assert runs_of(-weights, low - 128, high, lengths) == [[6] * 10]
    largest = np.full((2, 3), -128, np.int8)
    assert runs_of(largest, low[:3] - 128, high[:3], lengths) == [[1] * 3]


@pytest.mark.parametrize(("kernel", "longest"), [(LANES, 16), (SMALL_LANES, 18)])
def test_runs_of_packed_weights_keep_sums_in_16_bits(kernel: Kernel, longest: int) -> None:
    """Each run ends where one input more could leave them, or is the longest.

    On Armv6-M each half of the inputs has runs, told by the place of their code, of 14 bytes for an
    input, 2 follows those of the first, and four bytes are an input of each by two filters.
    """
    conv = layer((1, 2), random_weights(5, 71, 1, 1, scale=40), starts(5), low=0)
    halves = (range(36), range(36, 71)) if kernel is SMALL_LANES else (range(71),)
    packed = kernel.pack(conv).values.tolist()
    lengths = set()
    for pair in (conv.weights[:2], conv.weights[2:4], conv.weights[4:]):
        flat = pair.reshape(len(pair), -1).astype(np.int64)
        both = np.zeros((2, 72), np.int64)
        both[: len(flat), :71] = flat
        if kernel is SMALL_LANES:
            for at in range(36):
                four = [both[0, at], both[1, at], both[0, at + 36], both[1, at + 36]]
                assert [packed.pop(0) for _ in range(4)] == four
        else:
            assert [packed.pop(0) for _ in range(2 * 71)] == both[:, :71].T.reshape(-1).tolist()
        ends = np.maximum(flat * 127, flat * -128), np.minimum(flat * 127, flat * -128)
        for half in halves:
            runs = packed[: packed.index(2 if half.stop == 36 else 0)]
            packed = packed[len(runs) + 1 :]
            if kernel is SMALL_LANES:
                runs = [(4 + 18 * 14 - place % 256) // 14 for place in runs]
            assert sum(runs) == len(half)
            begin = half.start
            for run in runs:
                most, least = (side[:, begin : begin + run].sum(1) for side in ends)
                assert most.max() < 1 << 15 and least.min() >= -1 << 15
                more = [side[:, begin : begin + run + 1].sum(1) for side in ends]
                full = more[0].max() >= 1 << 15 or more[1].min() < -1 << 15
                assert full or run == longest or begin + run == half.stop
                begin += run
            lengths |= set(runs)
    assert packed == [] and len(lengths) > 3


def test_weights_are_walked_through_once_for_each_of_their_hexadecimal_digits() -> None:
    for low, high in product(range(-128, 128, 3), (-9, -8, -1, 0, 6, 7, 8, 127)):
        weights = np.array([low, high], np.int8).reshape(2, 1, 1, 1)
        digits = 1 if all(-8 <= value < 8 for value in (low, high)) else 2
        assert BUCKETS.pack(layer((1, 1), weights, starts(2))).flush == digits
    for low, high in product((-9, -8, -7), (6, 7, 8)):
        weights = np.array([low, high], np.int8).reshape(1, 2, 1, 1)
        made = BUCKETS.pack(layer((1, 1), weights, starts(1)))
        assert made.flush == 1 + (low < -8 or high > 7)


def test_runs_of_four_filters_keep_sums_in_16_bits() -> None:
    """Words hold the weights; each run ends where one input more could leave 16 bits."""
    conv = LAYERS["one pixel, narrow weights"]
    flat = np.zeros((8, 304), np.int64)
    flat[:6] = conv.weights[..., 0, 0]
    packed = PIXEL.pack(conv).values.astype(np.int64)
    ends = np.maximum(flat * 127, flat * -128), np.minimum(flat * 127, flat * -128)
    place = 0
    for first in (0, 4):
        begin = 0
        while run := int(packed[place]):
            words = packed[place + 1 : place + 1 + run]
            for filter_, shift in zip(range(first, first + 4), (0, 16, 8, 24), strict=True):
                weights = (words >> shift & 255) - 128
                np.testing.assert_array_equal(weights, flat[filter_, begin : begin + run])
            for more, inside in ((0, True), (1, run == 256 or begin + run == 304)):
                part = slice(begin, begin + run + more)
                most, least = (side[first : first + 4, part].sum(1) for side in ends)
                assert (most.max() < 1 << 15 and least.min() >= -1 << 15) == inside
            begin += run
            place += 1 + run
        assert begin == 304
        place += 1
    assert place == len(packed)


def test_borders_count_as_zeros_where_inputs_cannot_be() -> None:
    low, high = input_bounds(Interval(np.array([3, -5]), np.array([9, -2])), 2)
    assert low.tolist() == [0, -5, 0, -5] and high.tolist() == [9, 0, 9, 0]


def test_known_answers_of_lanes(shared: Path) -> None:
    """What is computed in Python; `make software-kat` has the C, too."""
    cases = [read_case(file) for file in sorted((shared / "kat-software/lanes").glob("*.json"))]
    assert [line for case in cases for line in wrong_numbers(*case)] == []
    kinds = [case["kind"] for case, _ in cases]
    assert kinds.count("flush") > 4 and kinds.count("buckets") > 2
    case, arrays = next(one for one in cases if one[0]["kind"] == "flush")
    assert [*wrong_numbers(case, arrays | {"w": -arrays["w"]})]
