"""The files of a network that was found: description, checkpoint, sample."""

from __future__ import annotations

import io

import numpy as np

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.writer import checkpoint_bytes
from ai8xtools.commands.decompile.network import Reconstruction
from ai8xtools.synthesis.configuration import configuration
from ai8xtools.synthesis.network import Layer

_FULL_BITS = 8


def network_files(candidate: Reconstruction, name: str, title: str) -> dict[str, bytes]:
    """Return the files by their names."""
    text = configuration(candidate.network, candidate.layout, title)
    sample = io.BytesIO()
    np.save(sample, candidate.network.sample)
    return {
        f"{name}.yaml": text.encode(),
        f"{name}.pth.tar": checkpoint_bytes(f"{name}.pth.tar", checkpoint_of(candidate, name)),
        f"sample_{name}.npy": sample.getvalue(),
    }


def checkpoint_of(candidate: Reconstruction, name: str) -> Checkpoint:
    """Return the quantized checkpoint: whole numbers, shifts and widths."""
    state: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
    for layer in candidate.network.layers:
        if layer.weights is not None:
            prefix = f"layer{layer.index}"
            bits = abs(layer.weight_bits)
            state[f"{prefix}.output_shift"] = _number(layer.shift - (_FULL_BITS - bits))
            state[f"{prefix}.weight_bits"] = _number(bits)
            state[f"{prefix}.op.weight"] = layer_tensor(layer)
            if layer.bias is not None:
                scaled = layer.bias * (1 << bits - 1)
                state[f"{prefix}.op.bias"] = scaled.astype(np.float32)
    return Checkpoint({"epoch": 0, "arch": name, "state_dict": state})


def _number(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([value], np.float32)


def layer_tensor(layer: Layer) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return weights in the form of the operator's tensor."""
    assert layer.weights is not None
    weights = layer.weights.astype(np.float32)
    if layer.operator.transposed:
        if layer.groups > 1:
            weights = weights.swapaxes(0, 1)
        weights = weights.swapaxes(0, 1)[:, :, ::-1, ::-1]
    if layer.operator.one_dimensional:
        weights = weights[..., 0]
    if layer.operator.fully_connected:
        weights = weights[..., 0, 0]
    return np.ascontiguousarray(weights)
