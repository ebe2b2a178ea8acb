"""A trained low-bit network as the engine has it: weights as packed codes, and their statistics.

Source: docs/low-bit.md, "The header".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.lowbit.files import Trained
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.lowbit import (
    ENCODINGS,
    TRAINING_ONLY,
    Encoding,
    Statistics,
    encode,
    pack,
    packed_inputs,
    statistics,
)
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Rule, Windows
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.recipe import Recipe

_FIRST, _FIRST_BEHIND_CHAIN = 3, 11
_CHAIN, _POOLS = (2, 4, 7), (6, 9)


@frozen
class LayerStatistics:
    """Statistics of a layer: `size_bytes` of packed weights, `filled` codes that end a row.

    `shape` is (outputs, inputs) of dense layers, with windows in front of it if each has its own
    weights, and (channels, 1, 3, 3) of convolutions.
    """

    name: str
    shape: tuple[int, ...]
    encoding: str
    weights: int
    size_bytes: int
    filled: int
    statistics: Statistics


Rows = list[LayerStatistics]


def network_of(trained: Trained, path: str) -> tuple[LowBitNetwork, Rows]:
    """Return the network with packed weights, and a row of statistics for each layer."""
    recipe = trained.recipe
    _refuse(recipe, path)
    plan = recipe.architecture(len(trained.classes))
    rows: Rows = []
    stem: DepthwiseChain | Windows | None = None
    first = _FIRST
    if plan.stem == "cnn":
        kernels = [_kernels(trained, f"convs.{i}", rows, path) for i in range(3)]
        stem = DepthwiseChain(_CHAIN, (kernels[0], kernels[1], kernels[2]), _POOLS)
        first = _FIRST_BEHIND_CHAIN
    elif plan.stem == "windows":
        encoding = _encoding(plan.window_encoding)
        layers = tuple(
            _window_layer(trained, f"stem.{i}", i, encoding, rows, path)
            for i in range(len(plan.window_widths))
        )
        stem = Windows(plan.stride, layers, plan.shared)
    dense = tuple(_dense_layers(trained, plan.encodings, first, rows, path))
    group = plan.windows if plan.stem == "windows" and plan.shared_scale else 1
    rule = Rule(plan.rule.kind, plan.rule.bits, plan.rule.rounds, plan.rule.limit)  # type: ignore[arg-type]
    window_rule = Rule(rule.kind, rule.bits, rule.rounds, rule.limit, group)
    return LowBitNetwork(stem, dense, rule, window_rule, plan.fine, recipe.model), rows


def _refuse(recipe: Recipe, path: str) -> None:
    """Raise InputError (E729) for what was trained but has no form in the engine."""
    from ai8xtools.training.lowbit.normalized import SCALING

    plan = recipe.architecture(1)
    reasons = {
        "WScale is PerOutput": recipe.per_output,
        f"the norm is {recipe.norm}": recipe.norm not in SCALING,
    }
    windows = (plan.window_encoding,) if plan.stem == "windows" else ()
    for name in dict.fromkeys((*plan.encodings, *windows)):
        reasons[f"the encoding is {name}"] = name in TRAINING_ONLY
    for reason, applies in reasons.items():
        if applies:
            raise InputError(
                "E729", f"{reason}, which the engine does not have", path,
                "Train with WScale PerTensor, the norm RMS and an encoding of docs/low-bit.md.",
            )  # fmt: skip


def _dense_layers(
    trained: Trained, encodings: tuple[str, ...], first: int, rows: Rows, path: str
) -> Iterator[Dense]:
    """Yield the dense layers, without the outputs that pruning took away."""
    kept: NDArray[np.bool_] | None = None
    for place, name in enumerate(encodings):
        encoding = _encoding(name)
        whole = _all_codes(trained, f"layers.{place}", encoding, path)
        if kept is not None:
            whole, kept = whole[:, kept], None
        if not place and "mask" in trained.state:
            mask = np.asarray(trained.state["mask"]) != 0
            kept = np.repeat(mask, len(whole) // len(mask))
            whole = whole[kept]
        _count(f"layers.{place}", whole, encoding, rows)
        yield _dense(whole, first + 2 * place, encoding)


def _encoding(name: str) -> Encoding:
    return ENCODINGS["Binary" if name == "BinaryBalanced" else name]


def _tensor(trained: Trained, name: str, path: str) -> NDArray[np.float32]:
    if name not in trained.state:
        raise InputError("E726", f"the tensor {name} is missing", path, "Train the network again.")
    return np.asarray(trained.state[name], np.float32)


def _codes(
    trained: Trained, name: str, encoding: Encoding, rows: Rows, path: str
) -> NDArray[np.int64]:
    """Return the codes of a layer, and add its statistics."""
    codes = _all_codes(trained, name, encoding, path)
    _count(name, codes, encoding, rows)
    return codes


def _all_codes(trained: Trained, name: str, encoding: Encoding, path: str) -> NDArray[np.int64]:
    weights = _tensor(trained, f"{name}.weight", path)
    clip = float(_tensor(trained, f"{name}.s", path))
    for reason, applies in (
        ("all weights are zero", not np.any(weights)),
        (f"its clip scalar {clip:g} is not above zero", not clip > 0),
    ):
        if applies:
            raise InputError("E726", f"{name}: {reason}", path, "Train the network again.")
    return encode(weights, clip, encoding)


def _count(name: str, codes: NDArray[np.int64], encoding: Encoding, rows: Rows) -> None:
    inputs = codes.shape[-1]
    kernels = codes.ndim == 4
    filled = 0 if kernels else packed_inputs(inputs, encoding) - inputs
    size = int((codes.size + filled * (codes.size // inputs)) * encoding.bits_per_weight / 8)
    summary = statistics(codes, encoding)
    shape = codes.shape[1:] if codes.ndim == 3 and len(codes) == 1 else codes.shape
    rows.append(LayerStatistics(name, shape, encoding.name, codes.size, size, filled, summary))


def _dense(codes: NDArray[np.int64], identifier: int, encoding: Encoding) -> Dense:
    outputs, inputs = codes.shape
    return Dense(identifier, encoding, inputs, outputs, pack(codes, encoding))


def _window_layer(
    trained: Trained,
    name: str,
    number: int,
    encoding: Encoding,
    rows: Rows,
    path: str,
) -> tuple[Dense, ...]:
    """Return the layer of each window, or that of all."""
    codes = _codes(trained, name, encoding, rows, path)
    return tuple(_dense(part, number, encoding) for part in codes)


def _kernels(trained: Trained, name: str, rows: Rows, path: str) -> NDArray[np.int8]:
    """Return the kernels of a convolution [channels, 3, 3]."""
    encoding = ENCODINGS["8bit"]
    codes = _codes(trained, name, encoding, rows, path)
    integers = np.array(encoding.values)[codes]
    return integers.reshape(-1, 3, 3).astype(np.int8)
