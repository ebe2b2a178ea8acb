"""From the numbers of a file to integer weights and biases, whatever kind of file it is.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.resolve.tensors import BINARY, Complain


def truncated(value: NDArray[Any], name: str, problem: Complain) -> NDArray[np.int64] | None:
    """Return the values without their fractions, or None after a complaint about them."""
    if value.dtype.kind not in "fiub":
        problem("E204", f"'{name}' holds {value.dtype}, not numbers", "op", tensor=name)
        return None
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        problem(
            "E204",
            f"'{name}' holds values that are not numbers (NaN or infinite)",
            "op",
            tensor=name,
            remedy="Training has diverged; train and quantize again.",
        )
        return None
    if value.size == 0 or np.abs(value).max() > 1 << 31:
        problem("E204", f"'{name}' is empty or holds values beyond 32 bits", "op", tensor=name)
        return None
    return np.trunc(value).astype(np.int64) if value.dtype.kind == "f" else value.astype(np.int64)


def complain_unquantized(
    used: Sequence[tuple[LayerDescription, str, NDArray[Any]]], place: Place
) -> Iterator[Diagnostic]:
    """Complain about weights with fractions: (layer, name, values) of all tensors that are used.

    Fractions in all of them mean that the file was never quantized, which is an error. Fractions in
    some are dropped with a warning, as published checkpoints for the reference tool need it; in a
    graph (ONNX) they are an error as well if nothing of a tensor but zeros would be left.
    Kernels of zeros and ones are the same before and after, so they do not count.
    """
    fractional = [
        (layer, name, values)
        for layer, name, values in used
        if values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1).any()
    ]
    remedy = "Quantize the checkpoint with quantize.py and give the result."
    graph = str(place.file).lower().endswith(".onnx")
    if graph:
        remedy = (
            "Quantize the PyTorch network (quantize.py --import --calibrate), and name the "
            "result with --checkpoint-file."
        )
    telling = [values for *_, values in used if not np.isin(values, (0, 1)).all()]
    lost = graph and any((np.abs(values) < 1).all() for *_, values in fractional)
    if fractional and (lost or len(fractional) == len(telling)):
        yield Diagnostic("E219", "the checkpoint is not quantized: its weights are fractions",
                         place, remedy, effects=effects(blocks=Fact.WEIGHTS))  # fmt: skip
        return
    for layer, name, _ in fractional:
        message = f"the fractions of the weights are dropped (tensor '{name}' of {place})"
        complaint = layer.error("W270", message, "op", remedy=remedy)
        yield replace(complaint, severity=Severity.WARNING)


def limits(bits: int) -> tuple[int, int]:
    """Return the least and the greatest weight of a width."""
    return (-1, 1) if bits == BINARY else (-(1 << bits - 1), (1 << bits - 1) - 1)


def fit(weights: NDArray[np.int64], bits: int, problem: Complain) -> bool:
    """Whether weights are within the limits of their width; a complaint if not."""
    low, high = limits(bits)
    least, most = int(weights.min()), int(weights.max())
    if low <= least and most <= high and not (bits == BINARY and (weights == 0).any()):
        return True
    problem(
        "E206",
        f"weights from {least} to {most} do not fit {abs(bits)} bits ({low} to {high})",
        "quantization",
        "op",
        remedy="Quantize the checkpoint with quantize.py, "
        "and give 'quantization' the width it was quantized to.",
    )
    return False


def scaled_bias(
    value: NDArray[np.int64], stored_bits: int, name: str, problem: Complain
) -> NDArray[np.int64] | None:
    """Return the bias in units of 128: what the file holds, divided by the weights' scale."""
    bias = value.reshape(-1) // (1 << max(stored_bits, 1) - 1)
    if bias.min() < -128 or bias.max() > 127:
        problem(
            "E207",
            f"the bias reaches from {bias.min()} to {bias.max()}, the limits are -128 and 127",
            "op",
            tensor=name,
            remedy="Quantize the checkpoint with quantize.py.",
        )
        return None
    return bias
