"""What a layer computes, written slowly from the tables of docs/layers.md, "The steps of a layer".

Nothing of ai8x.py or torch is used. Arrays are float64; in simulation and in quantization-aware
training all values are multiples of a power of two and exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tests.ai8x_random import RandomLayer

Array = NDArray[np.float64]
Mode = Literal["float", "qat", "simulate"]
State = dict[str, Array]


def outputs(layer: RandomLayer, mode: Mode, state: State, x: Array) -> Array:
    """Return the output for [N, C, ...]; `state` has weight, bias, output_shift and bn's arrays."""
    return np.stack([_one(layer, mode, state, image) for image in x])


def _one(layer: RandomLayer, mode: Mode, state: State, x: Array) -> Array:
    low, high = (-128, 127) if mode == "simulate" else (-1, 127 / 128)
    if layer.pooling:
        x = _pool(layer, x)
        if layer.pooling == "Avg":
            x = np.clip(_average_rounding(mode, layer.round_avg)(x), low, high)
    weight, bias = state["weight"], state.get("bias")
    shift = float(state["output_shift"][0])
    if mode == "qat":
        shift = automatic_shift(weight, bias, layer.quantile)
    weight, bias = (
        None if p is None else _held(layer, mode, p, shift, p is bias) for p in (weight, bias)
    )
    assert weight is not None
    x = _operator(layer, x, weight)
    per_channel = (-1, *(1 for _ in x.shape[1:]))
    if bias is not None:
        x = x + bias.reshape(per_channel)
    if layer.batchnorm:
        x = _normalized(state, x, per_channel) / 4
    if not layer.wide:
        x = x * 2.0**shift
        x = np.floor(x) if mode == "simulate" else x
    x = {None: np.positive, "ReLU": lambda y: np.maximum(y, 0), "Abs": np.abs}[layer.activation](x)
    x = _result_rounding(layer, mode)(x)
    if layer.wide:
        low, high = (-(2**29), 2**29 - 1) if mode == "simulate" else (-(2**15), 2**15 - 1)
    return np.clip(x, low, high)


def automatic_shift(weight: Array, bias: Array | None, q: float) -> float:
    """Return the output shift of quantization-aware training, in float32 as specified."""
    parts = [weight.ravel()] + ([] if bias is None else [bias.ravel()])
    values = np.sort(np.abs(np.concatenate(parts)).astype(np.float32))
    last = len(values) - 1
    if last == 0 or q == 1:
        largest = values[last]
    else:
        q32 = np.float32(q)
        index = int(np.clip(np.floor(q * len(values) + 0.5), 1, last)) - 1
        fraction = q32 * np.float32(last) - np.float32(index)
        largest = values[index] + fraction * (values[index + 1] - values[index])
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.float32(1) / largest))
    return -float(np.clip(exponent, -15, 15))


def _held(layer: RandomLayer, mode: Mode, p: Array, shift: float, is_bias: bool) -> Array:
    """Return a parameter as the accelerator holds it."""
    if mode == "float":
        return p
    if mode == "simulate":
        narrow = 8 - layer.bits
        return np.floor(p * 2.0 ** (2 * narrow if is_bias else narrow) + 0.5)
    steps = 2.0 ** (layer.bits - 1)
    return np.clip(np.floor(p * 2.0**-shift * steps + 0.5) / steps, -1, (steps - 1) / steps)


def _average_rounding(mode: Mode, round_avg: bool) -> Callable[[Array], Array]:
    if mode == "float":
        return np.positive
    whole = np.rint if round_avg else np.trunc
    return whole if mode == "simulate" else lambda x: whole(x * 128) / 128


def _result_rounding(layer: RandomLayer, mode: Mode) -> Callable[[Array], Array]:
    if mode == "float":
        return np.positive
    if mode == "qat":
        steps = 2.0**14 if layer.wide else 128.0
        return lambda x: np.floor(x * steps + 0.5) / steps
    divisor = 2.0 ** (8 - layer.bits) if layer.wide else 128.0
    return lambda x: np.floor(x / divisor + 0.5)


def _normalized(state: State, x: Array, shape: tuple[int, ...]) -> Array:
    scale = 1 / np.sqrt(state["running_var"] + 1e-5)
    y = (x - state["running_mean"].reshape(shape)) * scale.reshape(shape)
    if "bn_weight" in state:
        y = y * state["bn_weight"].reshape(shape) + state["bn_bias"].reshape(shape)
    return y


def _places(counts: tuple[int, ...]) -> Any:
    return itertools.product(*(range(count) for count in counts))


def _pool(layer: RandomLayer, x: Array) -> Array:
    """Take maxima or means of windows."""
    stride, dilation = layer.pool_stride, layer.pool_dilation
    counts = tuple(
        (n - (t - 1) * dilation - 1) // stride + 1
        for n, t in zip(x.shape[1:], layer.pool_size, strict=True)
    )
    result = np.empty((len(x), *counts))
    for place in _places(counts):
        window = [
            x[(slice(None), *(p * stride + t * dilation for p, t in zip(place, taps, strict=True)))]
            for taps in _places(layer.pool_size)
        ]
        total = np.max(window, 0) if layer.pooling == "Max" else np.sum(window, 0) / len(window)
        result[(slice(None), *place)] = total
    return result


def _operator(layer: RandomLayer, x: Array, weight: Array) -> Array:
    """Return the sums of products, without bias."""
    if layer.kind == "Linear":
        return weight @ x
    padding = layer.padding
    if layer.kind == "ConvTranspose2d":
        # As a convolution of the input with zeros between its pixels, by the turned kernel
        stretched = np.zeros((len(x), *(2 * n - 1 for n in x.shape[1:])))
        stretched[:, ::2, ::2] = x
        x = np.pad(stretched, ((0, 0), *((2 - padding, 3 - padding) for _ in range(2))))
        grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
        weight = np.concatenate(list(grouped.swapaxes(1, 2)))[:, :, ::-1, ::-1]
        stride = 1
    else:
        x = np.pad(x, ((0, 0), *((padding, padding) for _ in x.shape[1:])))
        stride = layer.stride
    return _correlated(x, weight, stride, layer.dilation, layer.groups)


def _correlated(x: Array, weight: Array, stride: int, dilation: int, groups: int) -> Array:
    """Correlate with [out, in / groups, taps...]."""
    taps = weight.shape[2:]
    reach = [(t - 1) * dilation + 1 for t in taps]
    counts = tuple((n - r) // stride + 1 for n, r in zip(x.shape[1:], reach, strict=True))
    result = np.empty((len(weight), *counts))
    ins, outs = len(x) // groups, len(weight) // groups
    for group in range(groups):
        kernel = weight[group * outs : (group + 1) * outs].reshape(outs, -1)
        data = x[group * ins : (group + 1) * ins]
        for place in _places(counts):
            cut = tuple(
                slice(p * stride, p * stride + r, dilation)
                for p, r in zip(place, reach, strict=True)
            )
            products = kernel @ data[(slice(None), *cut)].ravel()
            result[(slice(group * outs, (group + 1) * outs), *place)] = products
    return result
