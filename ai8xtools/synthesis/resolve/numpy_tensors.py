"""Weights and biases from NumPy files, for descriptions with `arch: test`.

Source: docs/writing-a-network.md, "Files of samples and weights"; docs/hardware/arithmetic.md,
"Narrow weights".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import (
    Diagnostic,
    Place,
    Severity,
    refused,
)
from ai8xtools.reading import where_else
from ai8xtools.reading.npy import NpyError, read_arrays
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.resolve.naming import counted
from ai8xtools.synthesis.resolve.tensors import (
    BINARY,
    DEFAULT_BITS,
    Complain,
    LayerTensors,
    bias_is_dropped,
    shape_weights,
)

_SINGLE = (
    "The first axis of a lone array counts layers: for a single layer save the weights as "
    "numpy.save(file, weights[None])."
)


def tensors_from_numpy(
    description: Description,
    layers: list[LayerDescription],
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    """Return the tensors of the layers that take some, by layer index.

    Raises DiagnosticError if a file cannot be read; complaints about arrays go to `problems`.
    """
    dataset = str(description.get("dataset")).lower()
    name = description.get("weights") or f"weights_{dataset}"
    path = options.weight_input or f"tests/{name}.npy"
    place = description.place_of("weights", "dataset")
    if options.weight_input:
        place = Place(option="--weight-input")
    arrays = _read_arrays(path, "test weights", place) if layers else []
    split = len(arrays) == 1
    if split:
        arrays = list(arrays[0])
    biases = _numpy_biases(description, options)
    problems += counted(layers, len(arrays), path)
    by_layer: dict[int, LayerTensors] = {}
    for position, (layer, array) in enumerate(zip(layers, arrays, strict=False)):
        alone = _SINGLE if split and len(layers) == 1 else None
        problem = Complain(layer, problems, path, alone=alone)
        bits = layer.get("quantization", DEFAULT_BITS)
        narrowed = _requantize(np.asarray(array), bits, problem)
        lost = narrowed is not None and _lost_bits(np.asarray(array), bits)
        if lost:
            problems.append(_warning_of_bits(layer, lost, path))
        shaped = None
        if narrowed is not None:
            shaped = shape_weights(narrowed, layer, problem, flip=False)
        if shaped is None:
            continue
        bias = biases[position] if position < len(biases) else None
        if bias is not None and bias_is_dropped(layer, options):
            bias = None
        by_layer[layer.index] = LayerTensors(shaped, bias, bits, 0)
    return by_layer


def _numpy_biases(description: Description, options: ResolveOptions) -> list[NDArray[np.int64]]:
    name = description.get("bias")
    path = options.bias_input or (f"tests/bias_{name}.npy" if name else None)
    if path is None:
        return []
    place = Place(option="--bias-input") if options.bias_input else description.place_of("bias")
    arrays = _read_arrays(path, "test biases", place)
    if not arrays:
        raise refused("E211", "the test biases file is empty", Place(file=path), "Replace it.")
    for array in arrays:
        if array.min() < -128 or array.max() > 127:
            raise refused(
                "E207",
                f"a bias reaches from {array.min()} to {array.max()}, the limits are -128 and 127",
                Place(file=path),
            )
    return [array.reshape(-1).astype(np.int64) for array in arrays]


def _read_arrays(path: str, what: str, place: Place) -> list[NDArray[Any]]:
    """Read the consecutive integer arrays of a .npy file."""
    try:
        arrays = read_arrays(path)
    except FileNotFoundError:
        raise refused(
            "E211",
            f"the {what} file '{path}' does not exist",
            place,
            f"{where_else(path)} Files are looked up from the current folder; see "
            "--weight-input and --bias-input.",
        ) from None
    except OSError as exc:
        raise refused(
            "E211", f"the {what} file '{path}' cannot be read: {exc.strerror}", place
        ) from None
    except NpyError as exc:
        raise refused(
            "E211",
            f"the {what} file is not a sequence of numeric NumPy arrays: {exc}",
            Place(file=path),
            "Write each array with numpy.save into one open file.",
        ) from None
    if any(a.dtype.kind not in "iu" or not a.ndim or not a.size for a in arrays):
        raise refused("E211", f"the {what} file must hold arrays of integers", Place(file=path))
    return arrays


def _width(weights: NDArray[Any]) -> int:
    """Return how many bits the weights need."""
    extremes = (int(weights.min()), int(weights.max()))
    return max(abs(v + (v < 0)).bit_length() for v in extremes) + 1


def _lost_bits(weights: NDArray[Any], bits: int) -> str:
    """Say what narrowing takes away from some weight; empty if nothing."""
    if bits == BINARY:
        return "" if (abs(weights.astype(np.int64)) == 1).all() else "of each only the sign is kept"
    surplus = _width(weights) - bits
    if surplus <= 0 or not (weights.astype(np.int64) & (1 << surplus) - 1).any():
        return ""
    return f"the lowest {surplus} bits are dropped" if surplus > 1 else "the lowest bit is dropped"


def _warning_of_bits(layer: LayerDescription, lost: str, path: str) -> Diagnostic:
    """Weights of a checkpoint would be refused; the vendor's test networks rely on narrowing."""
    complaint = layer.error(
        "W242",
        f"the weights need more bits than the layer has: {lost} (from {path})",
        "quantization",
        "op",
        remedy="Give weights of the layer's width, or another 'quantization'.",
    )
    return replace(complaint, severity=Severity.WARNING)


def _requantize(weights: NDArray[Any], bits: int, problem: Complain) -> NDArray[np.int64] | None:
    """Narrow test weights to the layer's width: drop low bits of the whole tensor."""
    least, most = int(weights.min()), int(weights.max())
    weights = weights.astype(np.int64)
    width = _width(weights)
    if width > 8:
        problem("E206", f"weights from {least} to {most} do not fit 8 bits", "quantization", "op")
        return None
    if bits == BINARY:
        return np.where(weights >= 0, 1, -1)
    return weights >> max(width - bits, 0)
