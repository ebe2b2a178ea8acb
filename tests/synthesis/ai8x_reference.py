"""What a drawn layer computes according to ai8x.py, as far as it has a module for it.

The modules run in simulation, where tensors hold the accelerator's integers.
Source: docs/hardware/arithmetic.md, "Where training and the chip differ".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import ai8x
from tests.synthesis.random_networks import RandomNetwork
from tests.synthesis.reference import integers, pair, sums, torch_kernel, total_shift

Array = NDArray[np.int64]
Keys = dict[str, Any]
_COMBINATIONS = {
    "add": ai8x.Add, "sub": ai8x.Sub, "or": ai8x.BitwiseOr, "xor": ai8x.BitwiseXor,
}  # fmt: skip


def is_covered(drawn: RandomNetwork, index: int) -> bool:
    """Whether there is a module for a layer that computes the same on purpose."""
    keys = drawn.layers[index]
    window, dilation = _window(keys), pair(keys.get("pool_dilation", 1))
    long = keys.get("flatten") and drawn.kernels[drawn.weights_of[index] or 0].shape[1] > 1024
    halves = _rounds(drawn, keys) and window[0] * window[1] % 2 == 0
    return not bool(
        "bypass" in keys
        or keys.get("quantization") == "bin"
        or ("avg_pool" in keys and (halves or dilation != (1, 1)))
        or long
        or dilation[0] != dilation[1]
    )


def _window(keys: Keys) -> tuple[int, int]:
    return pair(keys.get("max_pool", keys.get("avg_pool", 1)))


def _rounds(drawn: RandomNetwork, keys: Keys) -> bool:
    """Whether the loader rounds averages; it never does in front of Conv1d."""
    return drawn.rounding and keys["op"] != "Conv1d"


def layer_output(drawn: RandomNetwork, index: int, operands: list[Array]) -> Array:
    """Compute a covered layer."""
    keys = drawn.layers[index]
    rounds = _rounds(drawn, keys)
    ai8x.set_device(drawn.chip.die, simulate=True, round_avg=rounds, verbose=False)
    parts = [torch.as_tensor(part, dtype=torch.float32)[None] for part in operands]
    if keys.get("pool_first", True):
        value = _combined([_pooled(part, keys) for part in parts], keys)
    else:
        value = _pooled(_combined(parts, keys), keys)
    if drawn.weights_of[index] is None:
        return _image(value)
    found = _image(_convolved(drawn, index, value))
    return found - _higher(drawn, index, _image(value)) if keys["activate"] == "Abs" else found


def _image(value: torch.Tensor) -> Array:
    """Return the only image of a batch as [channel, row, column]."""
    rows_and_columns = (*value.shape, 1, 1)[2:4]
    return integers(value).reshape(-1, *rows_and_columns)


def _higher(drawn: RandomNetwork, index: int, data: Array) -> NDArray[np.bool_]:
    """Where absolute values come out one higher: of negative halves, they are taken before."""
    bias = drawn.biases[drawn.weights_of[index] or 0].reshape(-1, 1, 1)
    scaled = np.floor((sums(drawn, index, data) + 128 * bias) * 2.0 ** total_shift(drawn, index))
    return (scaled % 128 == 64) & (scaled > -127 * 128) & (scaled < 0)


def _combined(parts: list[torch.Tensor], keys: Keys) -> torch.Tensor:
    """Combine the operands; the module's exclusive or comes out half a step low, or exact."""
    kind = keys.get("eltwise", str(keys["op"]).lower())
    if len(parts) == 1:
        return parts[0]
    found: torch.Tensor = _COMBINATIONS[kind]()(*parts)
    return found.ceil() if kind == "xor" else found


def _pooled(image: torch.Tensor, keys: Keys) -> torch.Tensor:
    """Pool; a series along its length only. A stride alone is a maximum of single pixels."""
    average, window = "avg_pool" in keys, _window(keys)
    stride, dilation = keys.get("pool_stride", 1), pair(keys.get("pool_dilation", 1))[0]
    if image.shape[3] == 1:
        if average:
            return ai8x.AvgPool1d(window[0], stride)(image[..., 0])[..., None]
        return ai8x.MaxPool1d(window[0], stride, dilation)(image[..., 0])[..., None]
    if average:
        return ai8x.AvgPool2d(window, stride)(image)
    return ai8x.MaxPool2d(window, stride, dilation)(image)


def _convolved(drawn: RandomNetwork, index: int, image: torch.Tensor) -> torch.Tensor:
    """Run the layer's module with the drawn integers as its parameters."""
    keys, which = drawn.layers[index], drawn.weights_of[index]
    assert which is not None
    kernel = torch_kernel(drawn, index).to(torch.float32)
    activation = "" if keys["activate"] == "none" else keys["activate"]
    fused = "Fused" if activation else ""
    wide, channels = keys.get("output_width") == 32, image.shape[1]
    if keys.get("flatten"):
        module = getattr(ai8x, f"{fused}Linear{activation}")
        module = module(image[0].numel(), len(kernel), bias=True, wide=wide)
        image = image.flatten(1)
    elif keys["op"] == "Conv1d":
        module = getattr(ai8x, f"{fused}Conv1d{activation}")
        module = module(
            channels, len(kernel), keys["kernel_size"], padding=keys["pad"],
            dilation=keys.get("dilation", 1), wide=wide,
        )  # fmt: skip
        image = image[..., 0]
    else:
        module, kernel = _two_dimensional(keys, channels, kernel, activation, wide)
    bits = drawn.layers[keys.get("weight_source", index)]["quantization"]
    _fill(module, kernel, drawn.biases[which], bits)
    shift = total_shift(drawn, index) - (8 - bits)
    module.output_shift.data.fill_(float(shift))
    module.set_functions()
    found: torch.Tensor = module(image)
    return found


def _two_dimensional(
    keys: Keys, channels: int, kernel: torch.Tensor, activation: str, wide: bool
) -> tuple[Any, torch.Tensor]:
    """Return a module for images, and the weights in its order."""
    transposed = keys["op"] == "ConvTranspose2d"
    operator = "ConvTranspose2d" if transposed else "Conv2d"
    depthwise = "Depthwise" if "groups" in keys else ""
    kernel = kernel.reshape((*kernel.shape, 1, 1)[:4])
    if transposed:
        kernel = kernel.transpose(0, 1)
    outputs = channels if depthwise else kernel.shape[1 if transposed else 0]
    name = f"{'Fused' if activation else ''}{depthwise}{operator}{activation}"
    made, more = getattr(ai8x, name, None), {}
    if made is None:  # a combination without a name
        made, more = ai8x.Conv2d, {"op": operator, "activation": activation, "groups": channels}
        more |= {"stride": 2} if transposed else {}
    module = made(channels, outputs, kernel.shape[2], padding=keys.get("pad", 0), wide=wide, **more)
    return module, kernel


def _fill(module: Any, kernel: torch.Tensor, bias: Array, bits: int) -> None:
    """Give a module integer weights and a bias as the checkpoints of quantize.py have them."""
    module.init_module(bits, 8, True, 1.0)
    assert module.op.weight.shape == kernel.shape
    module.op.weight.data = kernel.contiguous()
    module.op.bias.data = torch.as_tensor(bias, dtype=torch.float32) * 2.0 ** (bits - 1)
