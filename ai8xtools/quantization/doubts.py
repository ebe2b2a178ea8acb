"""Reasons to refuse quantizing a checkpoint, and warnings about the result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ai8xtools.checkpoint import Array, Checkpoint
from ai8xtools.checkpoint.generations import (
    CLAMP,
    FINAL_SCALE,
    THRESHOLD,
    exponent,
    has_thresholds,
    unknown_entries,
)
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.options import QuantizationOptions


def weight_names(checkpoint: Checkpoint) -> list[str]:
    """Return the names of the tensors that count as the weights of a layer, in the file's order."""
    return [name for name in checkpoint.state_dict if name.endswith(".weight")]


def lost_layers(before: Mapping[str, Array], after: Mapping[str, Array]) -> list[str]:
    """Return warnings about layers whose weights are all zero, before or after quantization."""
    warnings = []
    for name in (n for n in before if n.endswith(".weight") and not after[n].any()):
        if before[name].any():
            largest = float(np.abs(before[name]).max())
            warnings.append(
                f"{name}: all weights become zero, the largest was {largest:g}; the network will "
                "not compute what it was trained for"
            )
        else:
            warnings.append(f"{name}: all weights are zero, so that its input changes nothing")
    return warnings


def refuse_quantized(checkpoint: Checkpoint) -> None:
    """Quantizing again would destroy the weights of a file that a tool like this one wrote."""
    if "clipping_method" in checkpoint.extras and _integers(checkpoint):
        raise InputError(
            "E707",
            "the checkpoint is already quantized; quantizing again would destroy its weights",
            remedy="Name the checkpoint that training wrote.",
        )


def refuse_other_ranges(state: Mapping[str, Array], options: QuantizationOptions) -> None:
    """Raise InputError E711 where a method would leave out the ranges of activations."""
    method = "--calibrate" if options.calibration is not None else options.clip_method
    if method is None:
        return
    for name in (n for n in state if n.endswith((f".{THRESHOLD}", f".{FINAL_SCALE}"))):
        layer, _, what = name.rpartition(".")
        if exponent(state, layer, what):
            option = method if method == "--calibrate" else f"--clip-method {method}"
            raise InputError(
                "E711",
                f"{name} is {exponent(state, layer, what)}, which {option} does not take into "
                "account",
                remedy=f"The network was trained for its integers: quantize without {option}.",
            )


def _integers(checkpoint: Checkpoint) -> bool:
    """Return whether all weights are whole numbers."""
    weights = (checkpoint.state_dict[name] for name in weight_names(checkpoint))
    return all(np.array_equal(w, np.rint(w)) for w in weights)


def _limits_activations(checkpoint: Checkpoint) -> bool:
    """Return whether a network of the second generation was trained with limited activations."""
    return any(
        tensor.any() for name, tensor in checkpoint.state_dict.items() if name.endswith(f".{CLAMP}")
    )


def warnings_of(checkpoint: Checkpoint, options: QuantizationOptions) -> list[str]:
    """Return the warnings about the result."""
    warnings = []
    if "extras" not in checkpoint.entries:
        warnings.append("No `extras` in checkpoint file.")
    bits = [k for k in checkpoint.state_dict if k.endswith(".weight_bits")]
    if options.clip_method is not None and any(checkpoint.state_dict[k].any() for k in bits):
        warnings.append(
            f"{bits[0]} says that the network was trained with QAT; {options.clip_method} changes "
            "what it was trained to compute"
        )
    weights = [checkpoint.state_dict[name] for name in weight_names(checkpoint)]
    if _integers(checkpoint) and any(np.abs(w).max(initial=0) > 1 for w in weights):
        warnings.append(
            "the checkpoint is already quantized; quantizing again destroys its weights"
        )
    if has_thresholds(checkpoint.state_dict) and not _limits_activations(checkpoint):
        warnings.append(
            "activations were not limited in training, as quantization-aware training had not "
            "begun; the accelerator limits them to 8 bits"
        )
    unknown = unknown_entries(checkpoint.state_dict)
    if unknown:
        warnings.append(
            f"{', '.join(unknown)}: unknown to this version, and ignored; the "
            "integers may not be those that the network was trained for"
        )
    unfused = [k for k in checkpoint.state_dict if k.endswith(".running_mean")]
    if unfused:
        warnings.append(
            f"{unfused[0]}: batch normalization is not fused; use batchnormfuser.py before"
        )
    return warnings
