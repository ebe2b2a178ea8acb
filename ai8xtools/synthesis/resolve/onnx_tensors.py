"""Weights and biases from a quantized ONNX model.

Nodes with weights belong, by name or in the order of the graph, to the layers that take some.
There are no companions: the width follows from the values, the output shift from the description.
Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from ai8xtools.checkpoint.onnx import OnnxLayer, read_onnx
from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.rules import operation
from ai8xtools.synthesis.resolve.integers import (
    complain_unquantized,
    fit,
    limits,
    scaled_bias,
    truncated,
)
from ai8xtools.synthesis.resolve.naming import paired
from ai8xtools.synthesis.resolve.tensors import (
    DEFAULT_BITS,
    OF_ANOTHER_LAYER,
    Complain,
    LayerTensors,
    bias_is_dropped,
    shape_weights,
)

_WIDTHS = (2, 4, 8)


def tensors_from_onnx(
    file: str,
    layers: list[LayerDescription],
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    """Return the tensors of the layers that take some, by layer index.

    Raises CheckpointError for a file that cannot be read; complaints about tensors go to
    `problems`.
    """
    model = read_onnx(file)
    place = Place(file=file)
    if not options.ignore_bn:
        problems += [_not_folded(name, place) for name in model.batch_norms]
    by_layer: dict[int, LayerTensors] = {}
    nodes = model.layers[options.skip_checkpoint_layers :]
    pairs = [
        (layer, nodes[number])
        for layer, number in paired(layers, [_names(node) for node in nodes], place, problems)
    ]
    used = [(layer, node.weight_name, node.weights) for layer, node in pairs]
    problems += complain_unquantized(used, place)
    for layer, node in pairs:
        problem = Complain(layer, problems, str(place), node.weight_name)
        tensors = _tensors(layer, node, options, problem)
        if tensors is not None:
            by_layer[layer.index] = tensors
    return by_layer


def _names(node: OnnxLayer) -> tuple[str, ...]:
    """Return what a description may call a node: by its name, or as its weights are called."""
    weights = node.weight_name.removesuffix(".weight")
    return (node.name, weights, weights.removesuffix(".op"))


def _not_folded(name: str, place: Place) -> Diagnostic:
    return Diagnostic(
        "W253",
        f"{name} is ignored: the accelerator has no batch normalization",
        place,
        "Fold it with batchnormfuser.py before quantizing; --ignore-bn silences this.",
        Severity.WARNING,
    )


def _tensors(
    layer: LayerDescription, node: OnnxLayer, options: ResolveOptions, problem: Complain
) -> LayerTensors | None:
    """Return what one node gives a layer, or None after a complaint."""
    operator, _ = operation(layer)
    if operator.transposed != (node.operator == "ConvTranspose"):
        problem(
            "E208",
            f"the node {node.node} does not belong to {operator}",
            "op",
            remedy="Correct 'op', or check that the layers are in the same order.",
            effects=OF_ANOTHER_LAYER,
        )
        return None
    weights = truncated(node.weights, node.weight_name, problem)
    if weights is None:
        return None
    shaped = shape_weights(weights, layer, problem, flip=True)
    bits = layer.get("quantization") or _width(int(weights.min()), int(weights.max()))
    if shaped is None or not fit(weights, bits, problem):
        return None
    bias = None
    if node.bias is not None and not bias_is_dropped(layer, options):
        value = truncated(node.bias, node.bias_name, problem)
        bias = None if value is None else scaled_bias(value, DEFAULT_BITS, node.bias_name, problem)
    return LayerTensors(shaped, bias, bits, 0, node.weight_name, node.bias_name)


def _width(least: int, most: int) -> int:
    """Return the smallest width that holds the values, or the largest there is."""
    for bits in _WIDTHS:
        low, high = limits(bits)
        if low <= least and most <= high:
            return bits
    return DEFAULT_BITS
