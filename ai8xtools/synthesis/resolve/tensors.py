"""The tensors of one layer, and how a weight tensor becomes that layer's kernels.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, Effects
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.rules import kernel, operation
from ai8xtools.values import frozen

BINARY = -1
DEFAULT_BITS = 8


@frozen
class LayerTensors:
    """What one layer takes from the weights file.

    `weights`: int8 [out, in/groups, rows, columns] as the operator uses them; `bias`: int64 in
    units of 128, or None; `bits`: 8, 4, 2, 1 or -1; `shift`: the file's output shift,
    `final_scale` its exponent of what is delivered, `sum_exponent` as a `Layer` has it; the names
    are those of the file, where it has names.
    """

    weights: NDArray[np.int8]
    bias: NDArray[np.int64] | None
    bits: int
    shift: int
    weight_name: str = ""
    bias_name: str = ""
    final_scale: int = 0
    sum_exponent: int = 0


def takes_weights(layer: LayerDescription) -> bool:
    """Whether the layer takes the next tensor of the weights file."""
    return (
        operation(layer)[0].weighted
        and not layer.get("bypass", False)
        and "weight_source" not in layer
        and "copy_channels" not in layer
    )


OF_ANOTHER_LAYER = effects(needs=Fact.TENSORS)
"""Marks complaints that a tensor is not this layer's; it may belong to another layer."""


@frozen
class Complain:
    """Notes complaints about a layer's tensors in a `file`, placed at the first of the keys.

    `weights` is their name, where the file has names. A complaint is about the weights, unless
    about another `tensor`. `alone` is the remedy where the tensors may be another layer's.
    """

    layer: LayerDescription
    problems: list[Diagnostic]
    file: str
    weights: str = ""
    alone: str | None = None

    def __call__(
        self,
        code: str,
        message: str,
        *keys: str,
        remedy: str | None = None,
        effects: Effects = NO_EFFECTS,
        tensor: str | None = None,
    ) -> None:
        """Note a complaint."""
        origin = f"{tensor} of {self.file}" if tensor else f"from {self.file}"
        if self.weights:
            origin = f"tensor '{tensor or self.weights}' of {self.file}"
        if self.alone and Fact.TENSORS in effects.needs:
            remedy = self.alone
        text = f"{message} ({origin})"
        self.problems.append(self.layer.error(code, text, *keys, remedy=remedy, effects=effects))


def bias_is_dropped(layer: LayerDescription, options: ResolveOptions) -> bool:
    """Whether the options say that this layer's bias is ignored."""
    return options.no_bias is None or layer.index in options.no_bias


def _ranks(operator: Operator) -> tuple[int, ...]:
    """Return how many dimensions an operator's tensor may have."""
    match operator:
        case Operator.CONV1D:
            return (3,)
        case Operator.CONVTRANSPOSE2D:
            return (4,)
        case Operator.CONV2D | Operator.LINEAR:  # a 1x1 convolution may be written as the other
            return (2, 4)
        case Operator.NONE:
            return ()
        case _:
            assert_never(operator)


def shape_weights(
    weights: NDArray[np.int64], layer: LayerDescription, problem: Complain, *, flip: bool
) -> NDArray[np.int8] | None:
    """Bring a tensor to [out, in/groups, rows, columns]; complain if it is not the layer's kernel.

    `flip` turns a transposed convolution's tensor [in, out/groups, rows, columns] around, which
    NumPy test weights have already been.
    """
    operator, _ = operation(layer)
    rows, columns = kernel(layer)
    if weights.ndim not in _ranks(operator):
        problem(
            "E208",
            f"weights of shape {list(weights.shape)} do not belong to {operator}",
            "op",
            effects=OF_ANOTHER_LAYER,
        )
        return None
    shape = (*weights.shape, 1, 1)[:4]
    if shape[2:] != (rows, columns):
        problem(
            "E208",
            f"weights have a {shape[2]}x{shape[3]} kernel, the description says {rows}x{columns}",
            "kernel_size",
            "op",
            remedy="Correct 'kernel_size' or 'op', or check that the layers are in the same order.",
            effects=OF_ANOTHER_LAYER,
        )
        return None
    shaped = weights.reshape(shape)
    if operator.transposed and flip:
        shaped = shaped[:, :, ::-1, ::-1].swapaxes(0, 1)
    if operator.transposed and layer.get("groups", 1) > 1:
        shaped = shaped.swapaxes(0, 1)
    return np.ascontiguousarray(shaped.clip(-128, 127).astype(np.int8))
