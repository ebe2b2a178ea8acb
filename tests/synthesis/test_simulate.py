"""The exact integers of every layer: worked examples, a slow reference, and torch."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ai8xtools.synthesis.network import Layer, Operator, Pooling
from ai8xtools.synthesis.resolve.shapes import pooled_size
from ai8xtools.synthesis.simulate.operators import accumulate
from ai8xtools.synthesis.simulate.pooling import pool
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, mask, weights
from tests.synthesis.stages import simulate

Array = NDArray[np.int64]
ONE_TO_NINE = np.arange(1, 10)
SERIES = np.array([1, 2, -4, -7, 8, 9, -1, -2])
TENS = np.arange(10, 100, 10).reshape(1, 3, 3)


def result(
    folder: Path,
    data: Any,
    *layers: dict[str, Any],
    kernels: Any = (),
    biases: Any = (),
    rounding: bool = False,
    chip: Chip = MAX78000,
) -> Array:
    """Return the output of a network [channel, row, column]."""
    text = describe(*({"activate": "none", **layer} for layer in layers))
    data = np.asarray(data, np.int64)
    kernels = [np.asarray(k, np.int64) for k in kernels]
    network, _ = build(folder, text, data, kernels, [np.asarray(b) for b in biases], chip)
    return np.asarray(simulate(network, average_rounding=rounding).outputs[network.final.index])


def conv(**keys: Any) -> dict[str, Any]:
    """Return a 1x1 convolution of one channel."""
    return {"processors": 1, "op": "Conv2d", "kernel_size": "1x1", "pad": 0, **keys}


def plain(**keys: Any) -> dict[str, Any]:
    """Return a layer without a kernel."""
    return {"processors": 1, "op": "none", "activate": None, **keys}


# docs/hardware/arithmetic.md, "Shift, rounding, clipping": scale, round, clip, activate

PIXELS = [[[1, 2], [3, -128]]]
TWO = np.array([100, -128]).reshape(2, 1, 1, 1)


@pytest.mark.parametrize(
    ("keys", "biases", "first", "second"),
    [
        ({}, [], [1, 2, 2, -100], [-1, -2, -3, 127]),
        ({"output_shift": 1}, [], [2, 3, 5, -128], [-2, -4, -6, 127]),
        ({"output_shift": 7}, [], [100, 127, 127, -128], [-128, -128, -128, 127]),
        ({"output_shift": -1}, [], [0, 1, 1, -50], [0, -1, -1, 64]),
        ({"output_shift": -7}, [], [0, 0, 0, -1], [0, 0, 0, 1]),
        ({}, [[5, -7]], [6, 7, 7, -95], [-8, -9, -10, 121]),
        ({"output_shift": 1}, [[5, -7]], [12, 13, 15, -128], [-16, -18, -20, 127]),
        (
            {"output_shift": 3, "output_width": 32},
            [[5, -7]],
            [740, 840, 940, -12160],
            [-1024, -1152, -1280, 15488],
        ),
    ],
)
def test_sums_are_shifted_rounded_and_clipped(
    tmp_path: Path, keys: dict[str, Any], biases: Any, first: list[int], second: list[int]
) -> None:
    found = result(tmp_path, PIXELS, conv(**keys), kernels=[TWO], biases=biases)
    assert found.reshape(2, 4).tolist() == [first, second]


def test_ties_are_rounded_up(tmp_path: Path) -> None:
    data = np.array([1, -1, 3, -3, 5, -5, 2, -2]).reshape(1, 2, 4)
    found = result(tmp_path, data, conv(), kernels=[np.full((1, 1, 1, 1), 64)])
    assert found.ravel().tolist() == [1, 0, 2, -1, 3, -2, 1, -1]


@pytest.mark.parametrize(
    ("activation", "first", "second"),
    [
        ("ReLU", [1, 0, 0, 99], [0, 2, 127, 0]),
        ("Abs", [1, 2, 100, 99], [1, 2, 127, 127]),
        ("none", [1, -2, -100, 99], [-1, 2, 127, -127]),
    ],
)
def test_activations(tmp_path: Path, activation: str, first: list[int], second: list[int]) -> None:
    data = np.array([1, -2, -128, 127]).reshape(1, 2, 2)
    found = result(tmp_path, data, conv(activate=activation), kernels=[TWO])
    assert found.reshape(2, 4).tolist() == [first, second]


# docs/hardware/arithmetic.md, "Narrow weights": weight widths

WIDTH_DATA = [[[1, -1], [40, -128]]]


@pytest.mark.parametrize(
    ("bits", "pair", "keys", "biases", "first", "second"),
    [
        (4, [-8, 7], {"output_width": 32}, [], [-8, 8, -320, 1024], [7, -7, 280, -896]),
        (4, [-8, 7], {}, [], [-1, 1, -40, 127], [1, -1, 35, -112]),
        (4, [-8, 7], {}, [[5, -7]], [79, 81, 40, 127], [-111, -113, -77, -128]),
        (2, [-2, 1], {"output_width": 32}, [], [-2, 2, -80, 256], [1, -1, 40, -128]),
        (2, [-2, 1], {}, [], [-1, 1, -40, 127], [1, 0, 20, -64]),
        (1, [-1, 0], {"output_width": 32}, [], [-1, 1, -40, 128], [0, 0, 0, 0]),
        (1, [-1, 0], {}, [], [-1, 1, -40, 127], [0, 0, 0, 0]),
        (1, [-1, 0], {}, [[5, -7]], [127] * 4, [-128] * 4),
        ("bin", [-1, 1], {}, [], [-1, 1, -40, 127], [1, -1, 40, -128]),
    ],
)
def test_narrow_weights_count_at_face_value(
    tmp_path: Path,
    bits: int | str,
    pair: list[int],
    keys: dict[str, Any],
    biases: Any,
    first: list[int],
    second: list[int],
) -> None:
    layer = conv(quantization=bits, **keys)
    kernel = np.array(pair).reshape(2, 1, 1, 1)
    found = result(tmp_path, WIDTH_DATA, layer, kernels=[kernel], biases=biases, chip=MAX78002)
    assert found.reshape(2, 4).tolist() == [first, second]


# docs/hardware/arithmetic.md, "Sums of products": operators

WIDE = {"output_width": 32}


@pytest.mark.parametrize(
    ("pad", "rows"),
    [
        (0, [[2850]]),
        (1, [[940, 1540, 1060], [1860, 2850, 1860], [1060, 1540, 940]]),
        (
            2,
            [
                [90, 260, 500, 380, 210],
                [420, 940, 1540, 1060, 540],
                [900, 1860, 2850, 1860, 900],
                [540, 1060, 1540, 940, 420],
                [210, 380, 500, 260, 90],
            ],
        ),
    ],
)
def test_convolution_with_padding(tmp_path: Path, pad: int, rows: list[list[int]]) -> None:
    layer = conv(kernel_size="3x3", pad=pad, **WIDE)
    found = result(tmp_path, TENS, layer, kernels=[ONE_TO_NINE.reshape(1, 1, 3, 3)])
    assert found[0].tolist() == rows


@pytest.mark.parametrize(
    ("taps", "keys", "values"),
    [
        (3, {"pad": 1}, [8, -7, -27, 6, 36, 23, 1, -5]),
        (3, {"pad": 1, "dilation": 2}, [-17, 17, 15, 9, 5, 6]),
        (2, {"pad": 0, "dilation": 3}, [-13, 18, 14, -9, 4]),
        (9, {"pad": None}, [42, 36]),
    ],
)
def test_one_dimensional_convolution(
    tmp_path: Path, taps: int, keys: dict[str, Any], values: list[int]
) -> None:
    layer = {**conv(op="Conv1d", kernel_size=taps, **WIDE), **keys}
    found = result(tmp_path, SERIES[None], layer, kernels=[ONE_TO_NINE[:taps].reshape(1, 1, taps)])
    assert found.ravel().tolist() == values


@pytest.mark.parametrize(
    ("pad", "rows"),
    [
        (
            0,
            [
                [90, 80, 250, 160, 140, 0],
                [60, 50, 160, 100, 80, 0],
                [300, 260, 640, 360, 300, 0],
                [180, 150, 360, 200, 160, 0],
                [90, 60, 150, 80, 40, 0],
                [0] * 6,
            ],
        ),
        (1, [[50, 160, 100, 80], [260, 640, 360, 300], [150, 360, 200, 160], [60, 150, 80, 40]]),
        (2, [[640, 360], [360, 200]]),
    ],
)
def test_transposed_convolution(tmp_path: Path, pad: int, rows: list[list[int]]) -> None:
    layer = conv(op="ConvTranspose2d", kernel_size="3x3", pad=pad, **WIDE)
    data = [[[10, 20], [30, 40]]]
    found = result(tmp_path, data, layer, kernels=[ONE_TO_NINE.reshape(1, 1, 3, 3)])
    assert found[0].tolist() == rows


def test_flattened_linear_layer_counts_channel_row_column(tmp_path: Path) -> None:
    layer = {"processors": 7, "op": "Linear", "flatten": True, **WIDE}
    data = np.arange(12).reshape(3, 2, 2)
    found = result(tmp_path, data, layer, kernels=[np.arange(1, 13)[None]])
    assert found.ravel().tolist() == [572]


def test_linear_layer_without_flattening_works_on_every_pixel(tmp_path: Path) -> None:
    layer = {"processors": 3, "op": "Linear", **WIDE}
    data = np.array([[[1, 2]], [[10, 20]]])
    found = result(tmp_path, data, layer, kernels=[np.array([[3, -1], [0, 2]])])
    assert found.reshape(2, 2).tolist() == [[-7, -14], [20, 40]]


# docs/hardware/arithmetic.md, "Pooling": pooling

SQUARE = [[[0, 0, -1, -2], [0, 3, 0, -1], [5, 6, 7, 8], [-9, -9, -9, -8]]]


@pytest.mark.parametrize(
    ("keys", "rounding", "values"),
    [
        ({"avg_pool": 2, "pool_stride": 2}, False, [0, -1, -1, 0]),
        ({"avg_pool": 2, "pool_stride": 2}, True, [1, -1, -2, -1]),
        ({"max_pool": 2, "pool_stride": 2}, False, [3, 0, 6, 8]),
        ({"max_pool": 2, "pool_stride": 1}, False, [3, 3, 0, 6, 7, 8, 6, 7, 8]),
        ({"max_pool": (3, 2), "pool_stride": 2}, False, [6, 8]),
        ({"max_pool": 2, "pool_stride": 3}, False, [3]),
        ({"pool_stride": 2}, False, [0, -1, 5, 7]),
        ({"pool_stride": 3}, False, [0, -2, -9, -8]),
        ({"max_pool": 2, "pool_stride": 1, "pool_dilation": 2}, False, [7, 8, 0, 3]),
        ({"avg_pool": 2, "pool_stride": 1, "pool_dilation": 2}, False, [2, 3, -4, -3]),
    ],
)
def test_pooling(tmp_path: Path, keys: dict[str, Any], rounding: bool, values: list[int]) -> None:
    found = result(tmp_path, SQUARE, plain(**keys), rounding=rounding, chip=MAX78002)
    assert found.ravel().tolist() == values


@pytest.mark.parametrize(
    ("total", "truncated", "rounded"),
    [(2, 0, 1), (-2, 0, -1), (6, 1, 2), (-6, -1, -2), (10, 2, 3), (-10, -2, -3)],
)
def test_averages_of_halves(total: int, truncated: int, rounded: int) -> None:
    data = np.array([[[total, 0], [0, 0]]])
    window = Pooling((2, 2), (2, 2), average=True)
    assert pool(data, window, (1, 1), rounding=False).item() == truncated
    assert pool(data, window, (1, 1), rounding=True).item() == rounded


@pytest.mark.parametrize(("rounding", "values"), [(False, [1, -5, 8, -1]), (True, [2, -6, 9, -2])])
def test_one_dimensional_data_is_pooled_along_its_length(
    tmp_path: Path, rounding: bool, values: list[int]
) -> None:
    layer = plain(avg_pool=2, pool_stride=2)
    found = result(tmp_path, SERIES[None], layer, rounding=rounding)
    assert found.ravel().tolist() == values


@pytest.mark.parametrize("rounding", [False, True])
def test_conv1d_layers_truncate_averages_whatever_the_option_says(
    tmp_path: Path, rounding: bool
) -> None:
    layer = conv(op="Conv1d", kernel_size=1, avg_pool=2, pool_stride=2)
    kernel = np.full((1, 1, 1), 64)
    found = result(tmp_path, SERIES[None], layer, kernels=[kernel], rounding=rounding)
    assert found.ravel().tolist() == [1, -2, 4, 0]


def test_spread_window_of_three_stays_inside_the_image() -> None:
    pooling = Pooling((3, 3), (1, 1), (2, 2))
    data = np.arange(36).reshape(1, 6, 6)
    size = pooled_size((6, 6), pooling)
    assert size == (2, 2)
    assert pool(data, pooling, size, rounding=False).ravel().tolist() == [28, 29, 34, 35]


# docs/hardware/arithmetic.md, "Combining operands": element-wise operations and concatenation

X = np.array([[1, 2, 3, 4], [100, -100, 127, -128], [50, -50, 1, -1]]).reshape(3, 2, 2)


@pytest.mark.parametrize(
    ("op", "operands", "values"),
    [
        ("add", 2, [101, -98, 127, -124]),
        ("sub", 2, [-99, 102, -124, 127]),
        ("xor", 2, [101, -98, 124, -124]),
        ("or", 2, [101, -98, 127, -124]),
        ("add", 3, [127, -128, 127, -125]),
        ("sub", 3, [-128, 127, -125, 127]),
        ("xor", 3, [87, 80, 125, 123]),
        ("or", 3, [119, -34, 127, -1]),
    ],
)
def test_operands_are_combined_in_full_width_and_clipped_once(
    tmp_path: Path, op: str, operands: int, values: list[int]
) -> None:
    found = result(tmp_path, X[:operands], plain(op=op, operands=operands))
    assert found.ravel().tolist() == values


def test_combination_in_front_of_a_convolution_is_clipped(tmp_path: Path) -> None:
    layer = conv(eltwise="add", operands=3)
    found = result(tmp_path, X, layer, kernels=[np.full((1, 1, 1, 1), 64)])
    assert found.ravel().tolist() == [64, -64, 64, -62]


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ({"max_pool": 2}, 127),
        ({"max_pool": 2, "pool_first": False}, 127),
        ({"avg_pool": 2}, 2),
        ({"avg_pool": 2, "pool_first": False}, 1),
    ],
)
def test_order_of_pooling_and_combination(tmp_path: Path, keys: dict[str, Any], value: int) -> None:
    found = result(tmp_path, X[:2], plain(op="add", pool_stride=2, **keys))
    assert found.ravel().tolist() == [value]


def test_sources_are_joined_by_channels(tmp_path: Path) -> None:
    layers = [
        plain(name="a", out_offset=0x1000),
        plain(name="b", op="xor", in_sequences="[a, a]", in_offset=0, out_offset=0x2000),
        plain(processors=3, in_sequences="[b, input]", in_offset=0, out_offset=0x3000),
    ]
    data = np.arange(4).reshape(1, 2, 2)
    found = result(tmp_path, data, *layers)
    assert found.reshape(2, 4).tolist() == [[0, 0, 0, 0], [0, 1, 2, 3]]


def test_sources_of_different_size_are_joined_by_pixels(tmp_path: Path) -> None:
    layers = [
        plain(out_offset=0x1000),
        plain(max_pool=2, pool_stride=2, out_offset=0x2000),
        plain(in_sequences="[0, 1]", in_dim=(5, 1), in_offset=0, in_channels=1),
    ]
    data = np.arange(4).reshape(1, 2, 2)
    found = result(tmp_path, data, *layers)
    assert found.ravel().tolist() == [0, 1, 2, 3, 3]


# A slow reference, and torch


def slow_layer(data: Array, kernel: Array, bias: Array, keys: dict[str, Any]) -> Array:
    """Compute a padded convolution with loops and Python's own integers."""
    pad, shift = keys["pad"], keys["output_shift"] + 8 - keys["quantization"]
    outs, ins, taps, _ = kernel.shape
    rows, columns = data.shape[1] + 2 * pad - taps + 1, data.shape[2] + 2 * pad - taps + 1
    found = np.zeros((outs, rows, columns), np.int64)
    for o in range(outs):
        for y in range(rows):
            for x in range(columns):
                total = 128 * int(bias[o])
                for c in range(ins):
                    for i in range(taps):
                        for j in range(taps):
                            row, column = y + i - pad, x + j - pad
                            if 0 <= row < data.shape[1] and 0 <= column < data.shape[2]:
                                total += int(data[c, row, column]) * int(kernel[o, c, i, j])
                # floor(1/2 + total * 2^shift / 128) without fractions
                value = (total * 2 * 2 ** (15 + shift) + 128 * 2**15) // (2 * 128 * 2**15)
                value = max(-128, min(127, value))
                if keys["activate"] == "ReLU":
                    value = max(value, 0)
                if keys["activate"] == "Abs":
                    value = min(abs(value), 127)
                found[o, y, x] = value
    return found


LAYERS = st.fixed_dictionaries(
    {
        "quantization": st.sampled_from([1, 2, 4, 8]),
        "side": st.sampled_from([1, 3]),
        "output_shift": st.integers(-8, 4),
        "activate": st.sampled_from(["none", "ReLU", "Abs"]),
        "ins": st.integers(1, 5),
        "outs": st.integers(1, 4),
        "rows": st.integers(1, 5),
        "columns": st.integers(1, 5),
        "extra": st.integers(0, 1),
        "seed": st.integers(0, 1 << 30),
    }
)
RANDOM = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@RANDOM
@given(drawn=LAYERS)
def test_random_convolutions_are_those_of_the_slow_reference(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    side, seed = drawn["side"], drawn["seed"]
    keys = {k: drawn[k] for k in ("quantization", "output_shift", "activate")}
    keys["pad"] = side // 2 + (drawn["extra"] if side == 3 else 0)
    data = np.random.default_rng(seed).integers(
        -128, 128, (drawn["ins"], drawn["rows"], drawn["columns"])
    )
    kernel = weights(drawn["outs"], drawn["ins"], side, side, bits=keys["quantization"], seed=seed)
    bias = np.random.default_rng(seed).integers(-128, 128, drawn["outs"])
    layer = conv(processors=mask(drawn["ins"]), kernel_size=f"{side}x{side}", **keys)
    found = result(tmp_path, data, layer, kernels=[kernel], biases=[bias])
    np.testing.assert_array_equal(found, slow_layer(data, kernel, bias, keys))


def test_transposed_sums_are_apart_as_each_of_the_strides_says() -> None:
    random, functions = np.random.default_rng(5), torch.nn.functional
    strides = product((1, 2, 3), repeat=2)
    for stride, pad, extra in product(strides, (0, 1), (0, 1)):
        if extra >= min(stride):
            continue  # torch does not take it
        data, kernel = random.integers(-9, 9, (2, 3, 4)), random.integers(-9, 9, (3, 2, 2, 3))
        x, w = (torch.as_tensor(a, dtype=torch.float64) for a in (data, kernel))
        wanted = functions.conv_transpose2d(
            x, w.flip(2, 3).transpose(0, 1), stride=stride, padding=pad, output_padding=extra
        )
        layer = Layer(
            index=0, operator=Operator.CONVTRANSPOSE2D, in_channels=2, out_channels=3,
            in_dim=(3, 4), pooled_dim=(3, 4), out_dim=wanted.shape[1:], kernel=(2, 3),
            stride=stride, pad=(pad, pad), output_pad=extra, weight_bits=8,
            weights=kernel.astype(np.int8),
        )  # fmt: skip
        np.testing.assert_array_equal(accumulate(data, layer), wanted.numpy())


@RANDOM
@given(
    kind=st.sampled_from(["Conv2d", "Conv1d", "ConvTranspose2d"]),
    ins=st.sampled_from([1, 3, 16, 64]),
    outs=st.integers(1, 8),
    pad=st.integers(0, 2),
    taps=st.integers(1, 9),
    seed=st.integers(0, 1 << 30),
)
def test_random_sums_are_those_of_torch(
    tmp_path: Path, kind: str, ins: int, outs: int, pad: int, taps: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    sides = (taps,) if kind == "Conv1d" else (3, 3)
    data = random.integers(-128, 128, (ins, 12) if kind == "Conv1d" else (ins, 5, 4))
    kernel = weights(outs, ins, *sides, seed=seed)
    pad = min(pad, taps - 1) if kind == "Conv1d" else pad
    size = taps if kind == "Conv1d" else "3x3"
    layer = conv(processors=hex(mask(ins)), op=kind, kernel_size=size, pad=pad, **WIDE)
    found = result(tmp_path, data, layer, kernels=[kernel])
    x, w = (torch.as_tensor(a, dtype=torch.float64) for a in (data, kernel))
    functions = torch.nn.functional
    if kind == "Conv2d":
        wanted = functions.conv2d(x, w, padding=pad)
    elif kind == "Conv1d":
        wanted = functions.conv1d(x, w, padding=pad)
    else:
        w = w.flip(2, 3).transpose(0, 1)  # test weights are turned around already
        wanted = functions.conv_transpose2d(x, w, stride=2, padding=pad, output_padding=1)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted.numpy())


@RANDOM
@given(
    rows=st.integers(1, 17),
    columns=st.integers(1, 17),
    window=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.integers(1, 5),
    average=st.booleans(),
    seed=st.integers(0, 1 << 30),
)
def test_random_pooling_is_that_of_loops(
    rows: int, columns: int, window: tuple[int, int], stride: int, average: bool, seed: int
) -> None:
    data = np.random.default_rng(seed).integers(-128, 128, (2, rows, columns))
    pooling = Pooling(window, (stride, stride), average=average)
    size = pooled_size((rows, columns), pooling)
    if min(size) < 1:
        return
    found = pool(data, pooling, size, rounding=False)
    for y in range(size[0]):
        for x in range(size[1]):
            part = data[:, y * stride :, x * stride :][:, : window[0], : window[1]]
            assert part.shape[1:] == window
            flat = part.reshape(2, -1)
            wanted = [int(sum(v) / len(v)) if average else max(v) for v in flat.tolist()]
            assert found[:, y, x].tolist() == wanted


def test_averages_of_more_than_bytes_are_clipped() -> None:
    """32-bit outputs can be the data of a layer that pools."""
    pooling = Pooling(average=True, window=(2, 1), stride=(2, 1))
    values = [-100000, -131, -130, -129, -128, -127, 0, 126, 127, 128, 129, 130, 100000]
    data = np.repeat(np.array(values), 2).reshape(1, -1, 1)
    found = pool(data, pooling, (len(values), 1), rounding=False)
    assert found.reshape(-1).tolist() == [sorted((-128, value, 127))[1] for value in values]


def test_largest_sums_are_exact(tmp_path: Path) -> None:
    data = np.full((1024, 3, 3), -128)
    kernel = np.full((1, 1024, 3, 3), -128)
    kernel[0, 0, 0, 0] = -127
    layer = conv(processors=hex(mask(64)), kernel_size="3x3", **WIDE)
    found = result(tmp_path, data, layer, kernels=[kernel])
    assert found.item() == 9 * 1024 * 2**14 - 128


def test_traces_hold_input_sums_and_output(tmp_path: Path) -> None:
    text = describe(conv(activate="ReLU"))
    network, _ = build(tmp_path, text, np.array(PIXELS), [TWO], [np.array([5, -7])])
    trace = simulate(network, average_rounding=False, keep_traces=True).traces[0]
    assert trace.input.tolist() == PIXELS
    assert trace.accumulator[0].ravel().tolist() == [740, 840, 940, -12160]
    assert trace.output[0].ravel().tolist() == [6, 7, 7, 0]
    assert not simulate(network, average_rounding=False).traces
