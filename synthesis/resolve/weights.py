"""Integer weights, biases and shifts for the layers of a description, wherever they come from.

Source: spec/network-description.md section 1.5.
"""

from __future__ import annotations

from dataclasses import replace

from device import Chip
from diagnostics import Diagnostic, Severity
from synthesis.options import ResolveOptions
from synthesis.parse import Description
from synthesis.parse.rules import layer_index
from synthesis.resolve.checkpoint_tensors import tensors_from_checkpoint
from synthesis.resolve.numpy_tensors import tensors_from_numpy
from synthesis.resolve.tensors import DEFAULT_BITS, LayerTensors, takes_weights


def layer_tensors(
    description: Description, chip: Chip, options: ResolveOptions, problems: list[Diagnostic]
) -> dict[int, LayerTensors]:
    """Return the tensors by layer index; complaints go to `problems`.

    Raises DiagnosticError (or CheckpointError) when the file cannot be read at all.
    """
    wanted = [layer for layer in description.layers if takes_weights(layer)]
    if description.get("arch") == "test":
        found = tensors_from_numpy(description, wanted, options, problems)
    elif options.checkpoint_file and options.checkpoint_file.lower().endswith(".onnx"):
        # imported here: most runs need no ONNX reader
        from synthesis.resolve.onnx_tensors import tensors_from_onnx

        found = tensors_from_onnx(options.checkpoint_file, wanted, options, problems)
    else:
        found = tensors_from_checkpoint(description, wanted, chip, options, problems)
    refused = any(p.severity is Severity.ERROR for p in problems)
    if len(found) < len(wanted) and not refused:
        missing = wanted[len(found)]
        problems.append(
            missing.error(
                "E210",
                f"the weights file has tensors for {len(found)} layers, "
                f"the description needs {len(wanted)}",
                "op",
                remedy="Remove layers from the description or use the network's own checkpoint.",
            )
        )
    with_weights: set[int] = set()
    for layer in description.layers:
        source = layer_index(layer.get("weight_source", -1), description)
        if "weight_source" in layer and source not in with_weights:
            problems.append(
                layer.error(
                    "E222",
                    f"'weight_source' names layer {source}, which is no earlier layer with weights",
                    "weight_source",
                    remedy="Name a convolution layer before this one.",
                )
            )
        elif "weight_source" in layer and source in found:
            bits = layer.get("quantization", DEFAULT_BITS)
            found[layer.index] = replace(found[source], bits=bits)
        if takes_weights(layer) or "weight_source" in layer:
            with_weights.add(layer.index)
    return found
