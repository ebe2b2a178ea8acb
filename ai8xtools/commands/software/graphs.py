"""Which networks are graphs of operators: those of quantize.py --device MCU, and ONNX."""

from __future__ import annotations

from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.software.options import SoftwareOptions

VERSION = 3
"""Of networks in checkpoints: those of operators."""
OF_MODELS = frozenset({"--dataset", "--input-shape", "--no-prove-import"})
"""Options that tell how a graph is read; other options of descriptions change these."""
REPORT = "--report"


def source_of(options: LoaderOptions, software: SoftwareOptions) -> Checkpoint | ModelSource | None:
    """Return the checkpoint that holds operators, or the ONNX graph; None for a description.

    Limits of a chip are those of descriptions, and so are options that change layers. Without a
    sample calls, containers and reports are made of a description, which has a random one.
    """
    resolving, model = options.resolve, options.model
    path = resolving.checkpoint_file
    if path is not None and not path.lower().endswith(".onnx"):
        checkpoint = read_checkpoint(path)
        plan = checkpoint.network
        held = isinstance(plan, dict) and plan.get("version") == VERSION
        return checkpoint if held else None
    random = software.calls or software.container is not None or REPORT in software.describing
    described = software.like is not None or (random and resolving.sample_input is None)
    changed = not OF_MODELS.issuperset({*software.describing} - {REPORT})
    if model is None or not model.is_graph or model.frames is not None:
        return None
    return None if described or changed else model
