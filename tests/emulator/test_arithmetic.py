"""The machine's arithmetic on small domains, all of them: shifts, bytes, windows, shapes."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    Input,
    Kernels,
    LayerConfig,
    LayerKind,
    Output,
    WritePointer,
)
from ai8xtools.emulator.machine.arithmetic import (
    LayerParameters,
    convolve,
    finish,
    operate,
    prepare,
)
from tests import plain_arithmetic as plain

BYTES = np.arange(-128, 128)
Array = NDArray[np.int64]

INPUT = Input(
    size=(1, 1),
    pooled=(1, 1),
    pad=(0, 0),
    pooling=False,
    max_pool=True,
    pool=(1, 1),
    pool_dilation=(1, 1),
    stride=1,
    operands=1,
    operation=ElementwiseOperation.ADD,
    pool_first=True,
    passes=1,
    chw=False,
    read_word=0,
    read_gap=0,
)
OUTPUT = Output(1, 1, 0, False, 0, ActivationFunction.NONE, (None,) * 4, (WritePointer(0, 0),) * 4)
LAYER = LayerConfig(
    layer=0,
    kind=LayerKind.CONVOLUTION,
    base_group=0,
    enabled=(1, 0, 0, 0),
    with_kernels=(1, 0, 0, 0),
    broadcast=False,
    transposed=False,
    conv1d=False,
    input=INPUT,
    kernels=Kernels((1, 1), 8, 0, 0, 1, False, False),
    output=OUTPUT,
    stream_start=0,
    ring_words=0,
    next_layer=None,
)


def edges_of(shift: int) -> list[int]:
    """Return sums around every value at which an output of this shift changes, and far ones."""
    step = 128 / 2**shift
    places = {round(step * (value + half)) for value in range(-130, 130) for half in (0, 0.5)}
    near = {place + i for place in places for i in (-1, 0, 1)}
    return sorted(near | {-(2**28), 2**28 - 1, 0})


@pytest.mark.parametrize("activation", ActivationFunction)
@pytest.mark.parametrize("shift", plain.SHIFTS)
def test_every_output_of_every_shift(shift: int, activation: ActivationFunction) -> None:
    output = dataclasses.replace(OUTPUT, shift=shift, activation=activation)
    sums = edges_of(shift)
    found = finish(np.array(sums, np.float64), output)
    wanted = [plain.activated(plain.narrowed(total, shift), activation.value) for total in sums]
    assert found.tolist() == wanted
    small = [total for total in sums if abs(total) < 2**22]  # with its half exact in 24 bits
    single = finish(np.array(small, np.float32), output)
    assert single.tolist() == [
        value for total, value in zip(sums, wanted, strict=True) if abs(total) < 2**22
    ]


@pytest.mark.parametrize("shift", [-15, -1, 0, 7, 15])
def test_wide_outputs_are_the_sums(shift: int) -> None:
    output = dataclasses.replace(OUTPUT, shift=shift, wide=True)
    sums = [-(2**29), -129, -1, 0, 1, 128, 2**29]
    assert finish(np.array(sums, np.float64), output).tolist() == sums


def test_an_activation_limits_wide_outputs_to_bytes() -> None:
    sums = [-(2**29), -129, -128, -1, 0, 1, 126, 127, 128, 2**29]
    for activation, result in (
        (ActivationFunction.RELU, [plain.limited(total, 0) for total in sums]),
        (ActivationFunction.ABS, [plain.limited(abs(total), 0) for total in sums]),
    ):
        output = dataclasses.replace(OUTPUT, wide=True, activation=activation)
        assert finish(np.array(sums, np.float64), output).tolist() == result


@pytest.mark.parametrize("operation", ElementwiseOperation)
def test_all_pairs_of_bytes_are_combined(operation: ElementwiseOperation) -> None:
    first, second = (part.astype(np.int32) for part in np.meshgrid(BYTES, BYTES, indexing="ij"))
    inputs = dataclasses.replace(INPUT, operands=2, operation=operation, size=(256, 256))
    inputs = dataclasses.replace(inputs, pooled=(256, 256))
    config = dataclasses.replace(LAYER, input=inputs)
    found = prepare(np.stack([first, second])[:, None, ..., None], config, rounding=False)
    wanted = [
        [plain.combined((int(a), int(b)), operation.name.lower()) for b in BYTES] for a in BYTES
    ]
    assert found[0, ..., 0].tolist() == wanted


@pytest.mark.parametrize("operation", ElementwiseOperation)
@pytest.mark.parametrize("operands", [3, 4, 16])
def test_more_operands_are_clipped_once(operation: ElementwiseOperation, operands: int) -> None:
    values = np.random.default_rng(operands).choice(
        [-128, -127, -1, 0, 1, 100, 127], (operands, 400)
    )
    inputs = dataclasses.replace(INPUT, operands=operands, operation=operation)
    inputs = dataclasses.replace(inputs, size=(1, 400), pooled=(1, 400))
    data = values.astype(np.int32).reshape(operands, 1, 1, 400, 1)
    found = prepare(data, dataclasses.replace(LAYER, input=inputs), rounding=False)
    columns = values.T.tolist()
    assert found.reshape(-1).tolist() == [
        plain.combined(c, operation.name.lower()) for c in columns
    ]


def pooling(
    shape: tuple[int, int],
    window: tuple[int, int],
    stride: int,
    dilation: tuple[int, int] = (1, 1),
    kind: str = "max",
) -> Input:
    """Return what registers say of a pooling."""
    rows, columns = (
        (n - (w - 1) * d - 1) // stride + 1 for n, w, d in zip(shape, window, dilation, strict=True)
    )
    return dataclasses.replace(
        INPUT,
        size=shape,
        pooled=(rows, columns),
        pooling=kind != "none",
        max_pool=kind == "max",
        pool=window,
        pool_dilation=dilation,
        stride=stride,
    )


POOLINGS = [
    ((rows, columns), stride, (down, across))
    for rows, columns, stride, down, across in [
        *product((1, 2, 3), (1, 2, 3), (1, 2, 3), (1,), (1,)),
        (2, 3, 1, 2, 1), (3, 2, 2, 1, 3), (2, 2, 3, 3, 2),
        (16, 1, 1, 1, 1), (1, 16, 2, 1, 1), (16, 16, 16, 1, 1), (5, 4, 4, 1, 1),
    ]
]  # fmt: skip


@pytest.mark.parametrize("kind", ["max", "avg", "none"])
def test_windows_strides_and_dilations(kind: str) -> None:
    random = np.random.default_rng(3)
    for window, stride, dilation in POOLINGS:
        if kind == "none" and window != (1, 1):
            continue
        shape = tuple(
            (w - 1) * d + 1 + stride + int(random.integers(0, 3))
            for w, d in zip(window, dilation, strict=True)
        )
        image = random.integers(-128, 128, shape)
        for rounding, conv1d in product((False, True), (False, True)):
            config = dataclasses.replace(
                LAYER, conv1d=conv1d, input=pooling(shape, window, stride, dilation, kind)
            )
            data = image.astype(np.int32)[None, None, ..., None]
            found = prepare(data, config, rounding=rounding)[0, ..., 0]
            wanted = plain.pooled(
                image.tolist(), window, (stride, stride), dilation, kind,
                rounding=rounding and not conv1d,
            )  # fmt: skip
            assert found.tolist() == wanted, (window, stride, dilation, rounding, conv1d)


@pytest.mark.parametrize("conv1d", [False, True])
@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 16])
def test_averages_of_every_sum(count: int, rounding: bool, conv1d: bool) -> None:
    """Conv1d layers cut off whatever the option says."""
    sums = range(-128 * count, 127 * count + 1)
    columns = [[total // count + (i < total % count) for i in range(count)] for total in sums]
    data = np.array(columns, np.int32).T[None, None, ..., None]
    inputs = pooling((count, len(columns)), (count, 1), 1, kind="avg")
    config = dataclasses.replace(LAYER, conv1d=conv1d, input=inputs)
    found = prepare(data, config, rounding=rounding).reshape(-1).tolist()
    assert found == [plain.average(column, rounding and not conv1d) for column in columns]


@pytest.mark.parametrize("pool_first", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("operation", ElementwiseOperation)
def test_pooling_comes_before_or_behind_combining(
    operation: ElementwiseOperation, kind: str, pool_first: bool
) -> None:
    data = np.random.default_rng(9).integers(-128, 128, (2, 6, 5))
    inputs = dataclasses.replace(
        pooling((6, 5), (2, 2), 1, kind=kind),
        operands=2,
        operation=operation,
        pool_first=pool_first,
    )
    config = dataclasses.replace(LAYER, input=inputs)
    found = prepare(data.astype(np.int32)[:, None, ..., None], config, rounding=True)[0, ..., 0]

    def pool(image: plain.Image) -> list[list[int]]:
        return plain.pooled(image, (2, 2), (1, 1), (1, 1), kind, rounding=True)

    def join(one: plain.Image, two: plain.Image) -> list[list[int]]:
        name = operation.name.lower()
        return [
            [plain.combined(pair, name) for pair in zip(*rows, strict=True)]
            for rows in zip(one, two, strict=True)
        ]

    one, two = data.tolist()
    wanted = join(pool(one), pool(two)) if pool_first else pool(join(one, two))
    assert found.tolist() == wanted


SHAPES = [(1, 1), (3, 3), *((length, 1) for length in range(2, 10))]


@pytest.mark.parametrize("kind", [LayerKind.CONVOLUTION, LayerKind.DEPTHWISE])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("taps", SHAPES)
def test_convolutions(taps: tuple[int, int], transposed: bool, kind: LayerKind) -> None:
    random = np.random.default_rng(taps)
    conv1d = taps[1] == 1 and taps[0] > 1
    if transposed and taps != (3, 3):
        return
    for pad in range(3):
        shape = (max(3, taps[0]), 1 if conv1d else 4)
        inputs = dataclasses.replace(
            INPUT, size=shape, pooled=shape, pad=(pad, 0 if conv1d else pad)
        )
        config = dataclasses.replace(
            LAYER,
            kind=kind,
            transposed=transposed,
            input=inputs,
            kernels=dataclasses.replace(LAYER.kernels, shape=taps),
        )
        image = random.integers(-128, 128, (2, *shape))
        outputs = 3 if kind.sums_channels else 2
        weights = random.integers(-128, 128, (outputs, 2, *taps))
        depthwise = weights[:, 0]
        kernels = (weights if kind.sums_channels else depthwise).astype(np.float64)
        found = convolve(image.astype(np.int32)[..., None], kernels, config)[..., 0]
        channels = [plain.stretched(c) if transposed else c for c in image.tolist()]
        if kind.sums_channels:
            wanted = [plain.convolved(channels, w, inputs.pad) for w in weights.tolist()]
        else:
            pairs = zip(channels, depthwise.tolist(), strict=True)
            wanted = [plain.convolved([c], [w], inputs.pad) for c, w in pairs]
        assert found.tolist() == wanted, pad


def test_large_layers_are_multiplied_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows at a time, whatever is left over at the end."""
    random = np.random.default_rng(5)
    image, weights = random.integers(-128, 128, (2, 7, 5)), random.integers(-8, 8, (3, 2, 3, 3))
    inputs = dataclasses.replace(INPUT, size=(7, 5), pooled=(7, 5), pad=(1, 1))
    config = dataclasses.replace(
        LAYER, input=inputs, kernels=dataclasses.replace(LAYER.kernels, shape=(3, 3))
    )
    wanted = [plain.convolved(image.tolist(), w, (1, 1)) for w in weights.tolist()]
    for rows in (1, 2, 3, 7, 8):
        block = rows * 2 * 9 * 5 * 8
        monkeypatch.setattr("ai8xtools.emulator.machine.arithmetic._BLOCK_BYTES", block)
        found = convolve(image.astype(np.int32)[..., None], weights.astype(np.float64), config)
        assert found[..., 0].tolist() == wanted, rows


def test_inputs_of_a_batch_do_not_mix() -> None:
    random = np.random.default_rng(6)
    batch = random.integers(-128, 128, (1, 2, 4, 4, 3)).astype(np.int32)
    inputs = dataclasses.replace(pooling((4, 4), (2, 2), 2, kind="avg"), pad=(1, 1))
    config = dataclasses.replace(
        LAYER, input=inputs, kernels=dataclasses.replace(LAYER.kernels, shape=(3, 3))
    )
    parameters = LayerParameters(
        random.integers(-128, 128, (5, 2, 3, 3)).astype(np.float64),
        128.0 * random.integers(-128, 128, 5),
    )

    def run(data: NDArray[np.int32]) -> Array:
        image = prepare(data, config, rounding=False)
        return operate(image, config, parameters).astype(np.int64)

    together = run(batch)
    for i in range(batch.shape[-1]):
        assert (run(batch[..., i : i + 1])[..., 0] == together[..., i]).all()


def test_biases_are_added_before_the_shift() -> None:
    inputs = dataclasses.replace(INPUT, size=(1, 256), pooled=(1, 256))
    output = dataclasses.replace(OUTPUT, shift=-2)
    config = dataclasses.replace(LAYER, input=inputs, output=output)
    image = BYTES.astype(np.int32).reshape(1, 1, 256, 1)
    bias = np.array([-128.0, -1, 0, 5, 127]) * 128
    kernels = np.array([-128.0, 3, 1, -7, 127]).reshape(5, 1, 1, 1)
    found = operate(image, config, LayerParameters(kernels, bias))[:, 0, :, 0]
    wanted = [
        [plain.narrowed(int(v) * int(k) + int(b), -2) for v in BYTES]
        for k, b in zip(kernels.reshape(-1), bias, strict=True)
    ]
    assert found.tolist() == wanted


def test_layers_without_kernels_pass_their_input_on() -> None:
    image = BYTES.astype(np.int32).reshape(1, 1, 256, 1)
    config = dataclasses.replace(LAYER, kind=LayerKind.PASSTHROUGH)
    assert operate(image, config, None).reshape(-1).tolist() == BYTES.tolist()
