"""A second head behind an inner layer of a network, with which it may end early.

Source: docs/early-exit.md; Teerapittayanon et al., BranchyNet, ICPR 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, fx, nn

import ai8x
from ai8xtools.checkpoint.exits import SCORES
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.tracing import LINES, path_of, trace

_FEATURES = "early_exit_features"
_CHANNELS = 16
_LARGEST = 8
"""Rows and columns of the map from which the scores follow."""


def with_exit(
    model: nn.Module, number: int, example: Tensor, classes: int, keywords: Mapping[str, Any]
) -> nn.Module:
    """Return a network that returns its scores and those of an exit, each [N, classes].

    The exit stands behind its layer of this `number` with weights, counted from 1. `example`
    [1, C, H, W] is an input, `keywords` go to each layer. Raises InputError E636 where there can
    be no exit, E647 for a data flow that cannot be traced.
    """
    training = model.training
    graph = trace(model.eval(), example)
    layers = [node for node in graph.nodes if _has_weights(model, node)]
    (result,) = (node for node in graph.nodes if node.op == "output")
    if number >= len(layers):
        why = f"{number} is not in front of the last of {len(layers)} layers with weights"
        raise refused(why, f"Choose 1 to {max(1, len(layers) - 1)}.")
    node = layers[number - 1]
    shape: tuple[int, ...] = node.meta.get("shape") or ()
    if len(shape) != 4 or not isinstance(result.args[0], fx.Node):
        why = "the network has several outputs" if len(shape) == 4 else "its result is no map"
        raise refused(f"{why} ({path_of(node)})", "Choose a convolution of pictures.")
    _, channels, rows, columns = shape
    window = -(-max(rows, columns) // _LARGEST)
    rows, columns = rows // window, columns // window
    kind, pooling = ai8x.FusedConv2dBNReLU, {}
    if window > 1:
        kind, pooling = ai8x.FusedMaxPoolConv2dBNReLU, {"pool_size": window, "pool_stride": window}
    try:
        features = kind(channels, _CHANNELS, 3, padding=1, bias=True, **pooling, **keywords)
        scores = ai8x.Linear(_CHANNELS * rows * columns, classes, wide=True, bias=True, **keywords)
    except AssertionError as exc:
        raise refused(f"{path_of(node)}: {exc}", "Choose another layer.") from None
    model.add_module(_FEATURES, features)
    model.add_module(SCORES, scores)
    values = node
    for kind_of_node, target, more in (
        ("call_module", _FEATURES, ()),
        ("call_method", "flatten", (1,)),
        ("call_module", SCORES, ()),
    ):
        with graph.inserting_after(values):
            values = graph.create_node(kind_of_node, target, (values, *more))
    result.args = ((result.args[0], values),)
    kind_of_model = type(model)
    forward = type(fx.GraphModule(model, graph)).forward
    lines = {path_of(one): one.meta["line"] for one in graph.nodes if "line" in one.meta}
    model.__class__ = type(
        kind_of_model.__name__, (kind_of_model,), {"forward": forward, LINES: lines}
    )
    return model.train(training)


def _has_weights(model: nn.Module, node: Any) -> bool:
    if node.op != "call_module":
        return False
    module = model.get_submodule(str(node.target).partition("@")[0])
    return isinstance(module, ai8x.QuantizationAwareModule) and module.op is not None


def refused(why: str, remedy: str) -> InputError:
    """Return the error for a network or a run that can have no exit."""
    return InputError("E636", f"there can be no exit: {why}", "--exit", remedy)
