"""Integer weights, biases and shifts for the layers of a description, wherever they come from.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.checkpoint.errors import UnreadableFileError
from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, DiagnosticError, Effects, Place
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.parse.rules import kernel, layer_index
from ai8xtools.synthesis.resolve.checkpoint_tensors import tensors_from_checkpoint
from ai8xtools.synthesis.resolve.integers import limits
from ai8xtools.synthesis.resolve.numpy_tensors import tensors_from_numpy
from ai8xtools.synthesis.resolve.tensors import (
    BINARY,
    DEFAULT_BITS,
    OF_ANOTHER_LAYER,
    LayerTensors,
    takes_weights,
)
from device import Chip


def _tensors_of_file(
    description: Description,
    layers: list[LayerDescription],
    chip: Chip | None,
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    """Return the tensors from NumPy files, an ONNX file or a checkpoint."""
    named = "arch" in description or options.checkpoint_file is not None
    if description.get("arch") == "test" or not named:
        return tensors_from_numpy(description, layers, options, problems)
    if options.tensors is not None:
        return tensors_from_checkpoint(description, layers, chip, options, problems)
    if options.checkpoint_file and options.checkpoint_file.lower().endswith(".onnx"):
        # imported here: most runs need no ONNX reader
        from ai8xtools.synthesis.resolve.onnx_tensors import tensors_from_onnx

        return tensors_from_onnx(options.checkpoint_file, layers, options, problems)
    return tensors_from_checkpoint(description, layers, chip, options, problems)


def layer_tensors(
    description: Description, chip: Chip | None, options: ResolveOptions, problems: list[Diagnostic]
) -> dict[int, LayerTensors]:
    """Return the tensors by layer index; complaints go to `problems`.

    Raises DiagnosticError (or CheckpointError) when the file cannot be read at all.
    """
    layers = [layer for layer in description.layers if takes_weights(layer)]
    try:
        by_layer = _tensors_of_file(description, layers, chip, options, problems)
    except UnreadableFileError as refusal:
        place = Place(refusal.place, option="--checkpoint-file")
        unread = Diagnostic(refusal.code, refusal.message, place, refusal.remedy)
        raise DiagnosticError(unread) from None
    refused = any(p.severity.is_error for p in problems)
    if len(by_layer) < len(layers) and not refused:
        missing = layers[len(by_layer)]
        file = options.weight_input or "the weights file"
        problems.append(
            missing.error(
                "E210",
                f"{file} has tensors for {len(by_layer)} layers, "
                f"the description needs {len(layers)}",
                "op",
                remedy="Remove layers from the description or use the network's own checkpoint.",
                effects=OF_ANOTHER_LAYER,
            )
        )
    with_weights: set[int] = set()
    for layer in description.layers:
        if "weight_source" in layer:
            source = layer_index(layer.get("weight_source"), description)
            if source not in with_weights:
                problems.append(
                    layer.error(
                        "E222",
                        f"'weight_source' names layer {source}, which is no earlier layer with "
                        "weights",
                        "weight_source",
                        remedy="Name a convolution layer before this one.",
                    )
                )
            elif source in by_layer:
                again = _used_again(layer, by_layer[source], problems)
                if again is not None:
                    by_layer[layer.index] = again
        if takes_weights(layer) or "weight_source" in layer:
            with_weights.add(layer.index)
    return by_layer


def _used_again(
    layer: LayerDescription, tensors: LayerTensors, problems: list[Diagnostic]
) -> LayerTensors | None:
    """Return the tensors of an earlier layer for this one, in its own width; None if unfit."""

    def problem(
        code: str,
        message: str,
        *keys: str,
        remedy: str | None = None,
        effects: Effects = NO_EFFECTS,
    ) -> None:
        problems.append(layer.error(code, message, *keys, remedy=remedy, effects=effects))

    (rows, columns), shape = kernel(layer), tensors.weights.shape
    if shape[2:] != (rows, columns):
        problem(
            "E208",
            f"the weights of layer {layer.get('weight_source')} have a {shape[2]}x{shape[3]} "
            f"kernel, this layer has {rows}x{columns}",
            "kernel_size",
            "weight_source",
            remedy="Give both layers the same 'kernel_size' and 'op'.",
            effects=OF_ANOTHER_LAYER,
        )
        return None
    bits = layer.get("quantization", DEFAULT_BITS)
    low, high = limits(bits)
    values = tensors.weights
    if values.min() < low or values.max() > high or (bits == BINARY and not values.all()):
        problem(
            "E206",
            f"the weights of layer {layer.get('weight_source')} do not fit {abs(bits)} bits "
            f"({low} to {high})",
            "quantization",
            "weight_source",
            remedy="Give 'quantization' the value that it has there.",
        )
        return None
    return replace(tensors, bits=bits)
