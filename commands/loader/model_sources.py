"""ai8xize.py --model: what is named becomes a description; only PyTorch models need torch.

Source: docs/own-models.md; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from dataclasses import replace

from commands.loader.messages import print_line
from commands.loader.options import LoaderOptions, ModelSource
from frontends.text import ModelDescription
from synthesis.options import ResolveOptions
from synthesis.parse import Described


def with_description(options: LoaderOptions, source: ModelSource) -> LoaderOptions:
    """Return the options with the description of the model in its place."""
    resolving = options.resolve
    if source.model.lower().endswith(".onnx"):
        found, resolving = _from_onnx(source, resolving)
    else:
        from commands.loader.models import describe_model

        found = describe_model(
            source, options.chip, resolving.checkpoint_file, resolving.sample_input
        )
    for note in found.notes:
        print_line(note, options.messages)
    described = Described(found.text, found.model, found.nodes)
    resolving = replace(resolving, sample_shape=found.input_shape)
    return replace(options, config_file=described, resolve=resolving)


def _from_onnx(
    source: ModelSource, resolving: ResolveOptions
) -> tuple[ModelDescription, ResolveOptions]:
    """Return the description of a graph; its own integers count unless a checkpoint is named."""
    from frontends.onnx.network import describe_onnx

    found, tensors = describe_onnx(source.model, source.input_shape, source.dataset)
    if resolving.checkpoint_file is not None:
        return found, resolving
    return found, replace(resolving, checkpoint_file=source.model, tensors=tensors)
