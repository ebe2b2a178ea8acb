"""What a drawn network computes, from its keys and arrays alone, with torch's operators.

Written from docs/hardware/arithmetic.md; it knows nothing of the loader. Values are float64 and
exact: sums stay below 2^53. Arrays are int64 [channel, row, column].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from tests.synthesis.random_networks import RandomNetwork

Array = NDArray[np.int64]
Keys = dict[str, Any]


def outputs(drawn: RandomNetwork) -> list[Array]:
    """Return the output of every layer."""
    results: list[Array] = []
    for index in range(len(drawn.layers)):
        operands = operands_of(drawn, index, results)
        results.append(layer_output(drawn, index, operands))
    return results


def operands_of(drawn: RandomNetwork, index: int, results: list[Array]) -> list[Array]:
    """Return a layer's operands in the size that it reads."""
    keys = drawn.layers[index]
    sample = drawn.data.reshape((*drawn.data.shape, 1)[:3])
    parts = [sample if s < 0 else results[s] for s in drawn.sources[index]]
    data = np.concatenate(parts)
    combined = "eltwise" in keys or str(keys["op"]).lower() in ("add", "sub", "or", "xor")
    count = keys.get("operands", 2 if combined else 1)
    size = keys.get("in_dim", data.shape[1:])
    rows, columns = (size, 1) if isinstance(size, int) else size
    return [part.reshape(-1, rows, columns) for part in np.split(data, count)]


def layer_output(drawn: RandomNetwork, index: int, operands: list[Array]) -> Array:
    """Pool, combine, convolve, scale and activate."""
    keys = drawn.layers[index]
    rounding = drawn.rounding and keys["op"] != "Conv1d"
    kind = keys.get("eltwise", str(keys["op"]).lower())
    if keys.get("pool_first", True):
        value = combine([pool(part, keys, rounding) for part in operands], kind)
    else:
        value = pool(combine(operands, kind), keys, rounding)
    if drawn.weights_of[index] is None and "bypass" not in keys:
        return value
    return finish(drawn, index, sums(drawn, index, value))


def combine(operands: list[Array], kind: str) -> Array:
    """Combine the operands from the first to the last, and clip."""
    total = operands[0].copy()
    for part in operands[1:]:
        match kind:
            case "add":
                total = total + part
            case "sub":
                total = total - part
            case "or":
                total = total | part
            case "xor":
                total = total ^ part
    return np.clip(total, -128, 127)


def pair(value: Any) -> tuple[int, int]:
    """Return a number or a list of two as two numbers."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def pool(data: Array, keys: Keys, rounding: bool) -> Array:
    """Take windows apart with torch; data in one column is pooled along its length."""
    window = pair(keys.get("max_pool", keys.get("avg_pool", 1)))
    stride, dilation = pair(keys.get("pool_stride", 1)), pair(keys.get("pool_dilation", 1))
    if data.shape[2] == 1:
        window, stride, dilation = (window[0], 1), (stride[0], 1), (dilation[0], 1)
    if window == (1, 1):
        return data[:, :: stride[0], :: stride[1]]
    image = torch.as_tensor(data, dtype=torch.float64)
    if "max_pool" in keys:
        return integers(functional.max_pool2d(image, window, stride, dilation=dilation))
    size = [
        (n - (w - 1) * d - 1) // s + 1
        for n, w, s, d in zip(data.shape[1:], window, stride, dilation, strict=True)
    ]
    taps = functional.unfold(image[:, None], window, dilation, stride=stride)
    mean = taps.sum(1) / taps.shape[1]
    if rounding:
        mean = torch.sign(mean) * torch.floor(torch.abs(mean) + 0.5)
    return integers(torch.trunc(mean)).reshape(-1, *size)


def integers(values: torch.Tensor) -> Array:
    """Return whole numbers as int64."""
    found: Array = values.detach().numpy().astype(np.int64)
    return found


def torch_kernel(drawn: RandomNetwork, index: int) -> torch.Tensor:
    """Return a layer's weights as torch's operator takes them."""
    keys, which = drawn.layers[index], drawn.weights_of[index]
    assert which is not None
    kernel = torch.as_tensor(drawn.kernels[which], dtype=torch.float64)
    if keys["op"] == "ConvTranspose2d":  # test weights are turned around
        return kernel.flip(2, 3) if kernel.ndim == 4 else kernel
    return kernel


def sums(drawn: RandomNetwork, index: int, data: Array) -> Array:
    """Return the sums without bias."""
    keys = drawn.layers[index]
    image = torch.as_tensor(data, dtype=torch.float64)
    pad, groups = keys.get("pad", 0), keys.get("groups", 1)
    if "bypass" in keys:
        side = 3 if keys["kernel_size"] == "3x3" else 1
        kernel = torch.ones(len(data), len(data), side, side, dtype=torch.float64)
    else:
        kernel = torch_kernel(drawn, index)
    if keys["op"] == "ConvTranspose2d":
        # [out, in, ...] as the loader has it; [1, channels, ...] where every channel is alone
        kernel = kernel.transpose(0, 1)
        found = functional.conv_transpose2d(image[None], kernel, None, 2, pad, 1, groups)[0]
    elif keys["op"] == "Conv1d":
        dilation = keys.get("dilation", 1)
        found = functional.conv1d(image[None, ..., 0], kernel, None, 1, pad, dilation)[0][..., None]
    elif keys["op"] == "Conv2d":
        found = functional.conv2d(image[None], kernel, None, 1, pad, 1, groups)[0]
    else:
        flat = image.reshape(-1, 1) if keys.get("flatten") else image.flatten(1)
        found = kernel @ flat
        found = found.reshape(len(kernel), *((1, 1) if keys.get("flatten") else data.shape[1:]))
    return integers(found)


def total_shift(drawn: RandomNetwork, index: int) -> int:
    """Return the shift with what narrow weights add; weights used again bring theirs."""
    keys = drawn.layers[drawn.layers[index].get("weight_source", index)]
    if "bypass" in keys:
        return int(keys.get("output_shift", 7))
    bits = {"bin": 1}.get(keys["quantization"], keys["quantization"])
    return int(keys.get("output_shift", 0) + 8 - bits)


def finish(drawn: RandomNetwork, index: int, total: Array) -> Array:
    """Add the bias, scale, round half up, clip, activate."""
    keys, which = drawn.layers[index], drawn.weights_of[index]
    if which is not None:
        total = total + 128 * drawn.biases[which].reshape(-1, 1, 1)
    if keys.get("output_width") == 32:
        return total
    scaled = np.floor(0.5 + total * 2.0 ** (total_shift(drawn, index) - 7))
    value: Array = np.clip(scaled, -128, 127).astype(np.int64)
    if keys["activate"] == "ReLU":
        value = np.maximum(value, 0)
    elif keys["activate"] == "Abs":
        value = np.minimum(np.abs(value), 127)
    return value
