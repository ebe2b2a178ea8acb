"""ReLU of PyTorch's behind layers of ai8x becomes a layer of ai8x, where a network is built.

What is trained is then what the chip computes. Kernels of layers that are added are exactly one and
never trained, so checkpoints may lack them. Sums by `+` are left: they are not limited to -1..1 as
those of the chip, so that a network trained with them would be another one.
Source: docs/training.md, "Networks without ai8x layers".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, fx, nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.accelerator.lowering import Parts
from ai8xtools.frontends.accelerator.ones import identity
from ai8xtools.frontends.modules.plain.layers import make_layer
from ai8xtools.frontends.modules.tracing import LINES, Node, path_of, trace


def with_rectifiers(model: nn.Module, example: Tensor, keywords: Mapping[str, Any]) -> nn.Module:
    """Return a network that calls layers of ai8x where it rectified results of them.

    `example` [1, C, ...] is an input, `keywords` go to each layer. Other networks, and those whose
    data flow cannot be traced, stay as they are.
    """
    if not any(isinstance(one, ai8x.QuantizationAwareModule) for one in model.modules()):
        return model
    training = model.training
    try:
        if not any(_rectifies(model, node) for node in ai8x.graph_of(model, example).nodes):
            return model
        graph = trace(model.eval(), example)
    except (ai8x.NotTraceableError, InputError):
        return model
    finally:
        model.train(training)
    if any(node.meta.get("folds") or node.meta.get("frames") for node in graph.nodes):
        return model  # the graph is that of one frame
    if [node for node in list(graph.nodes) if _is_replaced(model, graph, node, keywords)]:
        kind = type(model)
        forward = type(fx.GraphModule(model, graph)).forward
        lines = {path_of(n): n.meta["line"] for n in graph.nodes if "line" in n.meta}
        model.__class__ = type(kind.__name__, (kind,), {"forward": forward, LINES: lines})
        model.train(training)
    return model


def constant_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of layers whose kernels are never trained."""
    return {f"{name}.{key}": tensor for name, layer in model.named_modules()
            if getattr(layer, "is_constant", False)
            for key, tensor in layer.state_dict().items()}  # fmt: skip


def _rectifies(model: nn.Module, node: Node) -> bool:
    """Return whether a node is ReLU of PyTorch's."""
    if node.op == "call_module":
        return ai8x.torch_class(model.get_submodule(node.target)) is nn.ReLU
    return getattr(node.target, "__name__", node.target) in ("relu", "relu_")


def _is_replaced(model: nn.Module, graph: Any, node: Node, keywords: Mapping[str, Any]) -> bool:
    """Replace ReLU by the call of a layer, if it rectifies maps that layers made."""
    shape: tuple[int, ...] = node.meta.get("shape") or ()
    if not _rectifies(model, node) or len(shape) < 3 or not _is_result(model, node.args[0]):
        return False
    names = (f"{node.name}_layer{number or ''}" for number in range(len(graph.nodes)))
    name = next(one for one in names if not hasattr(model, one))
    try:
        parts = Parts(identity(shape[1:]), activation="ReLU", constant=True)
        layer = make_layer(parts, keywords)
    except AssertionError:  # more channels than a layer takes
        return False
    model.add_module(name, layer)
    with graph.inserting_before(node):
        node.replace_all_uses_with(graph.create_node("call_module", name, (node.args[0],)))
    graph.erase_node(node)
    return True


def _is_result(model: nn.Module, node: Node) -> bool:
    """Return whether a node is the result of a layer of ai8x in 8 bits, passed on at most."""
    if node.op != "call_module":
        return False
    module = model.get_submodule(node.target)
    if isinstance(module, nn.Dropout | nn.Dropout2d | nn.Identity):
        return _is_result(model, node.args[0])
    wide = getattr(module, "wide", False)
    return isinstance(module, ai8x.QuantizationAwareModule | ai8x.Eltwise) and not wide
