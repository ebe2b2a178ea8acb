"""An ONNX file becomes a description and a checkpoint of the integers that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.accelerator.lowering import Parts
from ai8xtools.frontends.departing import told_of
from ai8xtools.frontends.layers import refuse, times
from ai8xtools.frontends.onnx.door import (
    input_shape,
    quantizing,
    read_fractions,
    read_operators,
)
from ai8xtools.frontends.onnx.integers import is_of_ones, names_of
from ai8xtools.frontends.onnx.layers import WholeNumbers
from ai8xtools.frontends.onnx.operand_scales import other_orders
from ai8xtools.frontends.text import ModelDescription, description_text
from device import MAX78000, Chip


def describe_onnx(
    path: str,
    given_shape: tuple[int, ...] | None,
    dataset: str | None,
    checkpoint: Checkpoint | None = None,
    chip: Chip = MAX78000,
) -> tuple[ModelDescription, Checkpoint]:
    """Return the description of an ONNX file and its tensors.

    `given_shape` [C, H, W] or [C, L] replaces that of the file. A `checkpoint` replaces its
    integers; only layers that the graph does not have keep theirs. Raises CheckpointError for a
    file that cannot be read, InputError E670 naming each node that the chip cannot compute, E678
    for an input whose size is not fixed.
    """
    graph = read_graph(path)
    shape = given_shape or input_shape(graph, path)
    if checkpoint is None:
        operators, refusals = read_operators(graph, shape)
        refusals = [*quantizing(graph, "Let quantize.py make the integers: quantize.py FILE "
                                "q.pth.tar --calibrate DATA, then add --checkpoint-file."),
                    *refusals]  # fmt: skip
    else:
        operators, refusals, _ = read_fractions(graph, shape)
    refuse(refusals, path)
    shape = shape if len(shape) > 1 else (*shape, 1, 1)
    with told_of(path):
        calibrated = checkpoint is not None and bool(checkpoint.extras.get("imported"))
        follower = WholeNumbers(operators, chip, fractions=checkpoint is not None,
                                calibrated=calibrated)  # fmt: skip
    refuse(follower.refusals, path)
    layers = follower.layers
    if not layers:
        raise InputError("E650", "the network has no layer that the accelerator computes", path)
    name = Path(path).name
    if checkpoint is not None:
        name = checkpoint.arch or name
        _named(checkpoint, follower, path, shape[0])
        _refuse_unused(checkpoint, follower, path)
    title = f"{name}: input {times(shape)}. Made from the graph; processors and offsets are open."
    text = description_text(layers, arch=name, dataset=dataset or Path(path).stem, title=title)
    state: dict[str, Any] = {}
    for index, tensors in follower.tensors.items():
        state |= _entries(str(layers[index].weights), tensors)
    if checkpoint is None:
        result = Checkpoint({"state_dict": state, "arch": name, "epoch": 0, "extras": {}})
    else:
        result = _completed(checkpoint, state, follower)
    notes = tuple(f"Left to the application: {node}" for node in follower.left)
    nodes = tuple(layer.node for layer in layers)
    left = tuple(follower.left)
    return ModelDescription(text, path, nodes, shape, left, notes, follower.doubts), result


def _refuse_unused(checkpoint: Checkpoint, follower: WholeNumbers, path: str) -> None:
    """Raise InputError E676 for a checkpoint with a layer that the graph does not have.

    Layers of ones, which an import adds for steps without weights, stand in the graph's names for
    as many of those that it has itself.
    """
    state = checkpoint.state_dict
    used = {str(layer.weights) for layer in follower.layers}
    held = (n.rpartition(".op.")[0] for n in state if n.endswith(".op.weight"))
    unused = [name for name in held if name not in used]
    added = sum(tensors.constant for tensors in follower.tensors.values())
    ones = [name for name in unused if is_of_ones(state, name)][:added]
    strange = [name for name in unused if name not in ones]
    if strange:
        raise InputError(
            "E676", f"the checkpoint has layers that the graph does not have, or has as parts of "
            f"others: {', '.join(strange[:5])}", path,
            "Take the model that the checkpoint was made of: --model FILE:CLASS.",
        )  # fmt: skip


def check_order(
    path: str, given_shape: tuple[int, ...], checkpoint: Checkpoint, chip: Chip
) -> None:
    """Raise InputError E676 for a checkpoint of a graph whose layers have operands in another order
    than those of a file, as far as layers are found.

    `given_shape` [C, H, W] or [C, L] is that of the input.
    """
    operators, refusals, _ = read_fractions(read_graph(path), given_shape)
    if not refusals:
        with told_of(path):
            follower = WholeNumbers(operators, chip, fractions=True, calibrated=True)
        _named(checkpoint, follower, path, given_shape[0])


def _named(checkpoint: Checkpoint, follower: WholeNumbers, path: str, channels: int) -> None:
    """Give layers the names that a checkpoint has for them. Raises InputError E676 for one of a
    graph with operands in another order.
    """
    layers, state = follower.layers, checkpoint.state_dict
    for index, theirs in names_of(layers, follower.tensors, state).items():
        layers[index].weights = theirs
    for layer, order in other_orders(layers, follower.tensors, state, channels):
        names = ["the input", *(one.name for one in layers)]
        operands = [names[one + 1] for one in layer.inputs]
        expected = ", ".join(operands[n] for n in order)
        raise InputError(
            "E676", f"{layer.node} takes {', '.join(operands)}; the checkpoint has the scales of "
            f"{expected}, in this order", path,
            "Take the graph that the checkpoint was made of.",
        )  # fmt: skip


def _completed(
    checkpoint: Checkpoint, state: Mapping[str, Any], follower: WholeNumbers
) -> Checkpoint:
    """Return a checkpoint with the tensors of layers that stand for no weights of the graph."""
    own = [str(follower.layers[i].weights) for i, t in follower.tensors.items() if t.constant]
    added = {n: v for n, v in state.items() if n.startswith(tuple(f"{name}." for name in own))}
    return checkpoint.with_entries(state_dict={**added, **checkpoint.state_dict})


def _entries(prefix: str, tensors: Parts) -> dict[str, NDArray[Any]]:
    """Return a layer's tensors as a checkpoint holds them.

    The graph computes with weights of 8 bits; narrower ones are multiples of a power of two in it.
    """
    weights, bias = tensors.weights, tensors.bias
    bits = next(bits for bits in (1, 2, 4, 8) if _fits(weights, bias, bits))
    scale = 2.0 ** (8 - bits)
    entries = {
        f"{prefix}.op.weight": weights / scale,
        f"{prefix}.weight_bits": np.array([bits]),
        f"{prefix}.output_shift": np.array([tensors.shift]),
    }
    if bias is not None:
        entries[f"{prefix}.op.bias"] = bias / scale * 2.0 ** (bits - 8)
    return {name: value.astype(np.float32) for name, value in entries.items()}


def _fits(weights: NDArray[np.float64], bias: NDArray[np.float64] | None, bits: int) -> bool:
    """Return whether weights and bias are those of a width."""
    if bits == 8:
        return True
    scale = 2.0 ** (8 - bits)
    if not weights.any() or (weights % scale).any():
        return False
    narrow = weights / scale
    limit = 2.0 ** (bits - 1)
    within = bool(narrow.min() >= -limit and narrow.max() < limit)
    return within and (bias is None or not (bias % (128 * scale)).any())


def integers_of(checkpoint: Checkpoint) -> Checkpoint:
    """Return random integers of the same shapes in place of fractions, always the same ones."""
    state = checkpoint.state_dict
    if not any(v.dtype.kind == "f" and (v % 1).any() for v in state.values()):
        return checkpoint
    random = np.random.default_rng(0)
    entries = {
        name: random.integers(-127, 128, value.shape).astype(np.float32)
        if name.endswith((".weight", ".bias"))
        else value
        for name, value in state.items()
    }
    return checkpoint.with_entries(state_dict=entries)
