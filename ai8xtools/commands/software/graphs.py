"""Which networks are graphs of operators: those of quantize.py --device MCU, and ONNX."""

from __future__ import annotations

from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.synthesis.options import ResolveOptions

VERSION = 3
"""Of networks in checkpoints: those of operators."""
CHANGING = ("no_bias", "ignore_activation", "ignore_bn", "stop_after", "output_width",
             "skip_checkpoint_layers", "skip_yaml_layers", "input_split",
             "camera_format")  # fmt: skip
"""Options that change layers, which are those of a description."""


def source_of(options: LoaderOptions, software: SoftwareOptions) -> Checkpoint | ModelSource | None:
    """Return the checkpoint that holds operators, or the ONNX graph; None for a description.

    Containers, reports and limits of a chip are those of descriptions, and so are options that
    change layers. Calls without a sample are made of a description, which has a random one.
    """
    resolving, model = options.resolve, options.model
    path = resolving.checkpoint_file
    if path is not None and not path.lower().endswith(".onnx"):
        checkpoint = read_checkpoint(path)
        plan = checkpoint.network
        held = isinstance(plan, dict) and plan.get("version") == VERSION
        return checkpoint if held else None
    random = software.calls and resolving.sample_input is None  # operators need a sample
    described = software.container is not None or software.like is not None or random
    plain = ResolveOptions()
    changed = any(getattr(resolving, name) != getattr(plain, name) for name in CHANGING)
    if model is None or not model.is_graph or model.frames is not None:
        return None
    return None if described or changed or options.output.report is not None else model
