"""The network as a picture, drawn by Graphviz."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from torch import Tensor, nn

import ai8x
from ai8x import Node
from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.tracing import trace
from ai8xtools.training.export.counting import dimensions

_COLOURS = {"placeholder": "#dddddd", "output": "#dddddd", "call_module": "#cfe3f7"}
_OTHERS = "#f7f0d5"


def draw(model: nn.Module, example: Tensor, path: str, kind: str) -> str:
    """Draw the graph as a PNG file and return where it is.

    `kind` is png, png_simplified (without functions that only reshape) or png_w_params (with the
    shapes of parameters). Raises InputError when Graphviz is missing or fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise InputError(
            "E649", "the program dot, which draws graphs, is not installed", f"--summary {kind}",
            "Install Graphviz (apt install graphviz, brew install graphviz), or use --summary "
            "onnx and a viewer for that.",
        )  # fmt: skip
    text = dot_text(model, trace(model, example), kind)
    done = subprocess.run([program, "-Tpng"], input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        reason = done.stderr.decode(errors="replace").strip()
        raise InputError("E649", f"dot cannot draw the graph: {reason}", f"--summary {kind}")
    atomic.write_bytes(path, done.stdout)
    return f"Saved the graph as {path}"


def dot_text(model: nn.Module, graph: Any, kind: str) -> str:
    """Return a traced graph in the language of Graphviz."""
    simplified = kind == "png_simplified"
    lines = ["digraph network {", '  node [shape=box, style=filled, fontname="Helvetica"];']
    for node in graph.nodes:
        if simplified and _is_passed_over(node):
            continue
        label = "\n".join(_label(model, node, kind == "png_w_params"))
        colour = _COLOURS.get(node.op, _OTHERS)
        lines.append(f'  {node.name} [label={json.dumps(label)}, fillcolor="{colour}"];')
        for source in node.all_input_nodes:
            while simplified and _is_passed_over(source):
                (source,) = source.all_input_nodes
            shape = source.meta.get("shape")
            note = f" [label={json.dumps(dimensions(shape[1:]))}]" if shape else ""
            lines.append(f"  {source.name} -> {node.name}{note};")
    return "\n".join([*lines, "}"]) + "\n"


def _is_passed_over(node: Node) -> bool:
    """Return whether a node only reshapes what it takes."""
    return node.op in ("call_function", "call_method") and len(node.all_input_nodes) == 1


def _label(model: nn.Module, node: Node, with_parameters: bool) -> list[str]:
    """Return the lines in the box of a node."""
    if node.op in ("placeholder", "output"):
        return ["input" if node.op == "placeholder" else "output"]
    if node.op != "call_module":
        return [getattr(node.target, "__name__", str(node.target))]
    module = model.get_submodule(node.target)
    lines = [node.target, type(module).__name__]
    if with_parameters:
        op = module.op if isinstance(module, ai8x.QuantizationAwareModule) else module
        named = [] if op is None else op.named_parameters()
        lines += [f"{name} {dimensions(value.shape)}" for name, value in named]
    return lines
