"""Which generation of quantization-aware training a checkpoint is of, and what the second one adds.

In the second generation a layer stores its output divided by 2^t (`activation_threshold`), which is
merged into the output shift; what a network delivers is to be multiplied by 2^s (`final_scale`).
Source: docs/checkpoints.md, "The second generation of QAT".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.values import Array

THRESHOLD, FINAL_SCALE, CLAMP = "activation_threshold", "final_scale", "clamp_activation"
RANGE = "range_exponent"
"""In files of this project: 2^range_exponent is the range of a layer's weights, and its bias has 8
bits in steps of the weights, outside of it."""
ADDED_KEYS = (THRESHOLD, FINAL_SCALE, CLAMP)
_KNOWN_ENTRIES = frozenset(
    {
        *ADDED_KEYS,
        RANGE,
        *("output_shift", "weight_bits", "bias_bits", "quantize_activation"),
        *("adjust_output_shift", "shift_quantile"),
        *("w_zero_point", "b_zero_point", "base_b_q"),  # of files of 2020
    }
)
_NORMALIZATION = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
_LARGEST = {THRESHOLD: 60, FINAL_SCALE: 15, RANGE: 15}
"""Magnitudes: parameters are at most 2^60, a scaled result of 32 bits has no room for more."""
_LARGEST_SHIFT = 15
"""What the accelerator's output shift can be, either way, for weights of 8 bits."""


def has_thresholds(state: Iterable[str]) -> bool:
    """Whether a checkpoint with tensors of these names is of the second generation."""
    return any(name.rpartition(".")[2] == THRESHOLD for name in state)


def is_of_normalization(name: str) -> bool:
    """Return whether a tensor belongs to the batch normalization of a layer, which may itself be
    called bn.
    """
    layer, _, last = name.rpartition(".")
    return layer.rpartition(".")[2] == "bn" and last in _NORMALIZATION


def unknown_entries(state: Iterable[str]) -> list[str]:
    """Return the names of entries that layers store beside their weights and no known generation
    has.

    Whatever has an output shift is a layer. A later generation may give its entries a meaning that
    changes what the network computes.
    """
    names = list(state)
    layers = {name.rpartition(".")[0] for name in names if name.endswith(".output_shift")}
    return [
        name
        for name in names
        if name.rpartition(".")[0] in layers and name.rpartition(".")[2] not in _KNOWN_ENTRIES
    ]


def exponent(state: Mapping[str, Array], layer: str, what: str) -> int:
    """Return the exponent of a layer's threshold, final scale or range; 0 if it is absent.

    Raises CheckpointError E516 for anything but a whole number in range.
    """
    name = f"{layer}.{what}"
    tensor = state.get(name)
    if tensor is None:
        return 0
    if tensor.size != 1 or tensor.dtype.kind not in "fiu":
        raise CheckpointError(
            "E516",
            f"{name} of shape {tensor.shape} and type {tensor.dtype} must be a single number",
        )
    value, largest = float(tensor.item()), _LARGEST[what]
    if not (value.is_integer() and abs(value) <= largest):
        raise CheckpointError(
            "E516",
            f"{name} is {value:g}; it is the exponent of a power of two, a whole number from "
            f"{-largest} to {largest}",
        )
    return int(value)


def refuse_inconsistent(state: Mapping[str, Array]) -> None:
    """Raise CheckpointError E516 for invalid exponents, and for layers of two generations.

    Either would make a network compute something else than it was trained for.
    """
    layers = [name.rpartition(".")[0] for name in state if name.endswith(".output_shift")]
    without = [layer for layer in layers if f"{layer}.{THRESHOLD}" not in state]
    if without and len(without) < len(layers):
        raise CheckpointError(
            "E516",
            f"layers of two generations of quantization-aware training: {', '.join(without)} "
            f"without {THRESHOLD}, the other {len(layers) - len(without)} with it",
            remedy="Train all layers in one generation; entries of two files cannot be mixed.",
        )
    for name in state:
        layer, _, what = name.rpartition(".")
        if what in _LARGEST:
            exponent(state, layer, what)


def limited_shift(shift: int, bits: int) -> int:
    """Return an output shift as the accelerator can hold it for weights of so many bits.

    Narrow weights are widened to 8 bits, which takes part of the range.
    """
    widening = 8 - bits
    return min(max(shift, -_LARGEST_SHIFT - widening), _LARGEST_SHIFT - widening)
