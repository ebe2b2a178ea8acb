"""Folding batch normalization into the weights before it.

Source: docs/quantization.md, "Batch normalization".
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ai8xtools.checkpoint import Array, Checkpoint
from ai8xtools.checkpoint.generations import has_thresholds
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.arithmetic import Float32s

_OUTPUT_SCALE = np.float32(0.25)
"""Layers divide the normalized output by 4, so that it fits the range of activations; those of the
second generation of QAT, whose activations are not limited before, do not."""
_EPSILON = np.float32(1e-20)
_STATISTICS = ".bn.running_mean"
_OPERATIONS = ("op", "conv2d", "conv1d", "linear")  # the latter three in files of 2020


def normalized_layers(checkpoint: Checkpoint) -> list[str]:
    """Return the names of the layers with batch normalization, in the file's order."""
    names = checkpoint.state_dict
    return [name.removesuffix(_STATISTICS) for name in names if name.endswith(_STATISTICS)]


def fuse_batchnorm(
    checkpoint: Checkpoint, arch: str | None, transposed: Collection[str] = ()
) -> Checkpoint:
    """Return the checkpoint without batch normalization, of the network `arch` (None: unchanged).

    Output channels lie on axis 0 of a weight tensor, but on axis 1 for transposed convolutions.
    These are recognized by their shape; `transposed` names the layers whose shape does not tell,
    having as many input as output channels. A layer without bias gets one, at the end. Raises
    InputError E706 when tensors do not fit together or there is nothing to fuse.
    """
    state = checkpoint.state_dict.copy()
    layers = normalized_layers(checkpoint)
    if not layers:
        raise InputError(
            "E706",
            f"the checkpoint holds no batch normalization (no name ends in {_STATISTICS})",
            remedy="Quantize it as it is.",
        )
    for layer in transposed:
        if layer not in layers:
            raise InputError("E706", f"there is no layer {layer} with batch normalization")
    output_scale = np.float32(1) if has_thresholds(state) else _OUTPUT_SCALE
    for layer in layers:
        _fuse_layer(state, layer, layer in transposed, output_scale)
    named = {} if arch is None else {"arch": arch}
    return checkpoint.with_entries(state_dict=state, **named)


def _fuse_layer(
    state: dict[str, Array], layer: str, transposed: bool, output_scale: np.float32
) -> None:
    """Replace weight and bias of one layer and remove its normalization, in place."""
    names = [f"{layer}.{operation}" for operation in _OPERATIONS]
    operation = next((name for name in names if f"{name}.weight" in state), None)
    if operation is None:
        raise InputError("E706", f"{layer} has batch normalization but no weights")
    weight = state[f"{operation}.weight"]
    channels = state[f"{layer}.bn.running_mean"].size
    axis = _channel_axis(layer, weight, channels, transposed)

    def channel_values(name: str, absent: float | None = None) -> Float32s:
        values = state.get(name)
        if values is None:
            if absent is None:
                raise InputError("E706", f"{name} is missing")
            return np.full(channels, absent, np.float32)
        if values.shape != (channels,):
            raise InputError("E706", f"{name} has shape {values.shape} instead of ({channels},)")
        return values.astype(np.float32)

    average = channel_values(f"{layer}.bn.running_mean")
    variance = channel_values(f"{layer}.bn.running_var")
    if (variance < 0).any():
        raise InputError("E706", f"{layer}.bn.running_var holds negative variances")
    deviation = np.sqrt(variance + _EPSILON)
    gamma = output_scale * channel_values(f"{layer}.bn.weight", 1)
    beta = output_scale * channel_values(f"{layer}.bn.bias", 0)
    bias = channel_values(f"{operation}.bias", 0)

    shape = [1] * weight.ndim
    shape[axis] = channels
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = weight.astype(np.float32) * (gamma / deviation).reshape(shape)
        shifted = (bias - average) / deviation * gamma + beta
    if not (np.isfinite(scaled).all() and np.isfinite(shifted).all()):
        raise InputError(
            "E706",
            f"{layer}: the weights are beyond the range of float32 once its normalization (least "
            f"variance {variance.min():g}) is folded into them",
            remedy="Training diverged: train again with a smaller learning rate.",
        )
    state[f"{operation}.weight"], state[f"{operation}.bias"] = scaled, shifted
    for name in [name for name in state if name.startswith(f"{layer}.bn.")]:
        del state[name]


def _channel_axis(layer: str, weight: Array, channels: int, transposed: bool) -> int:
    axes = [axis for axis in (0, 1) if axis < weight.ndim and weight.shape[axis] == channels]
    if transposed:
        axes = [axis for axis in axes if axis == 1]
    if not axes:
        raise InputError(
            "E706",
            f"the weights of {layer} have shape {weight.shape}, which does not fit "
            f"{channels} normalized channels",
        )
    return axes[0]
