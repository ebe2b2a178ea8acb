"""What each node of a traced network computes, whether it is a module, a function or a method.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

import ai8x
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.cuts import border, limits, section
from ai8xtools.frontends.modules.plain.kinds import Kind, Step, path_of
from ai8xtools.frontends.modules.plain.layers import as_convolution
from ai8xtools.frontends.modules.plain.poolings import pooling, pooling_function
from ai8xtools.frontends.modules.tracing import Node

_OPERATORS = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
_NORMALIZATIONS = (nn.BatchNorm1d, nn.BatchNorm2d)
_PASSING = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity)
_MODULES: dict[tuple[type, ...], Kind] = {
    _OPERATORS: Kind.OPERATOR,
    _NORMALIZATIONS: Kind.NORMALIZATION,
    (nn.ReLU,): Kind.RELU,
    _PASSING: Kind.PASSING,
    (nn.Flatten, nn.Unflatten): Kind.RESHAPING,
    (nn.Softmax, nn.LogSoftmax): Kind.SOFTMAX,
}
_FUNCTIONS = {
    "relu": Kind.RELU, "relu_": Kind.RELU, "abs": Kind.ABS, "absolute": Kind.ABS, "add": Kind.ADD,
    "iadd": Kind.ADD, "add_": Kind.ADD, "sub": Kind.SUB, "subtract": Kind.SUB, "isub": Kind.SUB,
    "cat": Kind.CONCATENATION, "concat": Kind.CONCATENATION, "concatenate": Kind.CONCATENATION,
    "flatten": Kind.RESHAPING, "view": Kind.RESHAPING, "reshape": Kind.RESHAPING,
    "squeeze": Kind.RESHAPING, "unsqueeze": Kind.RESHAPING, "contiguous": Kind.PASSING,
    "dropout": Kind.PASSING, "dropout1d": Kind.PASSING, "dropout2d": Kind.PASSING,
    "clone": Kind.PASSING, "softmax": Kind.SOFTMAX, "log_softmax": Kind.SOFTMAX,
}  # fmt: skip
_INSTEAD = {
    "relu6": "Use ReLU: the chip limits results at 1 by itself",
    "hardtanh": "Leave it out: the chip limits results to -1..1 by itself",
    "leakyrelu": "Use ReLU", "prelu": "Use ReLU", "elu": "Use ReLU", "gelu": "Use ReLU",
    "silu": "Use ReLU", "hardswish": "Use ReLU", "mish": "Use ReLU", "softplus": "Use ReLU",
    "sigmoid": "Use ReLU inside; at the end, compute it in the application",
    "hardsigmoid": "Use ReLU inside; at the end, compute it in the application",
    "tanh": "Use ReLU inside; at the end, compute it in the application",
    "max": "Use functional.adaptive_max_pool2d(x, 1), or adaptive_max_pool1d",
    **dict.fromkeys(("maxpool2dwithindices", "maxpool1dwithindices", "maxpool2d", "maxpool1d"),
                    "Use return_indices=False"),
    "lppool2d": "Use AvgPool2d", "sum": "Use the mean, and larger weights behind it",
    "stack": "Use torch.cat(..., 1)", "neg": "Change the sign of the weights before it",
    "maximum": "Use addition or concatenation", "minimum": "Use addition or concatenation",
    "half": "Leave it out", "float": "Leave it out", "to": "Leave it out",
    "convtranspose1d": "Use Conv1d",
    "parametrizedconv2d": "Call torch.nn.utils.parametrize.remove_parametrizations before",
    "parametrizedconv1d": "Call torch.nn.utils.parametrize.remove_parametrizations before",
    "parametrizedlinear": "Call torch.nn.utils.parametrize.remove_parametrizations before",
    "truediv": "Use smaller weights before it; scale samples before the network",
    "div": "Use smaller weights before it; scale samples before the network",
    "mul": "Use addition or concatenation: the chip multiplies by weights only",
    "imul": "Use addition or concatenation: the chip multiplies by weights only",
    "matmul": "Use nn.Linear: the chip multiplies by weights only",
    "pixelshuffle": "Use ConvTranspose2d with stride 2",
    "conv2d": "Use the module nn.Conv2d, so that the weights have a name",
    "conv1d": "Use the module nn.Conv1d, so that the weights have a name",
    "linear": "Use the module nn.Linear, so that the weights have a name",
    "layernorm": "Use BatchNorm behind the convolution",
    "groupnorm": "Use BatchNorm behind the convolution",
    "instancenorm2d": "Use BatchNorm behind the convolution",
    "permute": "Leave the channels on axis 1", "transpose": "Leave the channels on axis 1",
    "chunk": "Use a convolution for each part", "split": "Use a convolution for each part",
    "lstm": "Use Conv1d over the time axis", "gru": "Use Conv1d over the time axis",
    "rnn": "Use Conv1d over the time axis", "multiheadattention": "Use convolutions",
    "conv3d": "Use Conv2d over frames, and Conv1d over the time axis",
}  # fmt: skip
"""What to use instead of a function or module, by its name in lower case without underscores."""


def read_step(node: Node, model: nn.Module) -> Step | Refusal:
    """Return what a node computes, or why the chip cannot."""
    taken = next((n.meta["shape"][1:] for n in node.all_input_nodes if n.meta.get("shape")), ())
    given = tuple(node.meta["shape"][1:])
    if node.op == "placeholder":
        return Step(node, Kind.INPUT, given, given)
    if node.op == "call_module":
        return _module_step(node, model.get_submodule(node.target), taken, given)
    name = str(getattr(node.target, "__name__", node.target)).lower()
    if name in ("interpolate", "upsample"):
        names = ("size", "scale_factor", "mode")
        return _doubling(node, dict(zip(names, node.args[1:], strict=False)) | node.kwargs,
                         taken, given)  # fmt: skip
    if name in ("clamp", "clip", "clamp_min", "clamp_", "hardtanh"):
        return limits(node, name, taken, given)
    if name == "getitem":
        return section(node, taken, given)
    if name == "pad":
        names = ("pad", "mode", "value")
        return border(node, dict(zip(names, node.args[1:], strict=False)) | node.kwargs, taken,
                      given)  # fmt: skip
    if name in _FUNCTIONS:
        step = Step(node, _FUNCTIONS[name], taken, given)
        return _refusal_of_operands(step) or _refusal_of_shape(step) or step
    found = pooling_function(node, name, taken, given)
    return found or _refusal_of_subclass(node, name) or _unknown(node, name, name)


def _module_step(
    node: Node, module: nn.Module, taken: tuple[int, ...], given: tuple[int, ...]
) -> Step | Refusal:
    torch_kind = ai8x.torch_class(module)
    if torch_kind in _NORMALIZATIONS and getattr(module, "running_mean", None) is None:
        return Refusal(path_of(node), "it normalizes by the statistics of each batch",
                       "Use track_running_stats=True, and train with it.")  # fmt: skip
    for kinds, kind in _MODULES.items():
        if torch_kind in kinds:
            module = as_convolution(module) if torch_kind is nn.ConvTranspose2d else module
            step = Step(node, kind, taken, given, module)
            return _refusal_of_shape(step) or step
    if isinstance(module, nn.Upsample):
        return _doubling(node, vars(module), taken, given, module)
    name = torch_kind.__name__
    if name in ("ZeroPad1d", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d"):
        stated = {"pad": module.padding, "value": getattr(module, "value", 0)}
        return border(node, stated, taken, given, module)
    if name == "Hardtanh":
        return limits(node, name, taken, given, (module.min_val, module.max_val))
    if "Pool" in name:
        found = pooling(node, name.lower(), vars(module), taken, given, module)
        if found is not None:
            return found
    return _unknown(node, name.lower(), name)


def _doubling(
    node: Node,
    arguments: Mapping[str, Any],
    taken: tuple[int, ...],
    given: tuple[int, ...],
    module: Any = None,
) -> Step | Refusal:
    """Return the step of an enlargement by two, which repeats each pixel."""
    mode = arguments.get("mode") or "nearest"
    if mode == "nearest" and len(taken) == 3 and given[1:] == (2 * taken[1], 2 * taken[2]):
        return Step(node, Kind.DOUBLING, taken, given, module)
    how = f"it makes {times(given[1:])} of {times(taken[1:])} (mode {mode})"
    return Refusal(
        path_of(node), how, "Use mode='nearest' with scale_factor=2, or ConvTranspose2d."
    )


def _refusal_of_subclass(node: Node, name: str) -> Refusal | None:
    """Refuse an operator within a module that is derived from it and has a forward of its own."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", nn.Module)
    base = next(
        (one for one in _OPERATORS if isinstance(kind, type) and issubclass(kind, one)), None
    )
    if base is None:
        return None
    return Refusal(
        path, f"{kind.__name__} computes {name} in a forward function of its own",
        f"Let it inherit that of nn.{base.__name__}, or put the weights that it makes into one.",
    )  # fmt: skip


def _unknown(node: Node, key: str, shown: str) -> Refusal:
    why, instead = f"the accelerator has no {shown}", instead_of(key)
    return Refusal(path_of(node), why, instead) if instead else Refusal(path_of(node), why)


def instead_of(name: str) -> str | None:
    """Return what to use instead of a function or module; None where nothing is known."""
    found = _INSTEAD.get(name.lower().replace("_", ""))
    return None if found is None else f"{found}."


def _refusal_of_shape(step: Step) -> Refusal | None:
    """Refuse to make a map of a vector."""
    if not step.kind.reshapes or len(step.taken) != 1 or step.given[:1] == step.taken:
        return None
    remedy = (
        f"Let samples have the shape {times(step.given)} (--input-shape)."
        if step.node.all_input_nodes[0].op == "placeholder"
        else f"Take its {step.taken[0]} values as channels of one pixel, and enlarge these."
    )
    return Refusal(step.path, f"{times(step.taken)} becomes {times(step.given)}", remedy)


def _refusal_of_operands(step: Step) -> Refusal | None:
    """Refuse sums that the chip does not form: of unequal shapes, with constants, with a factor."""
    if step.kind.joins:
        axis = step.node.kwargs.get("dim", step.node.args[1] if len(step.node.args) > 1 else 0)
        if any(one.op == "get_attr" for one in step.node.all_input_nodes):
            return Refusal(step.path, "it joins data with a constant",
                           "Give the layer behind it a bias in place of the constant.")  # fmt: skip
        if axis not in (1, 1 - len(step.given) - 1):
            return Refusal(
                step.path, f"it joins along axis {axis}", "Join channels: torch.cat(..., 1)."
            )
    if not step.kind.sums:
        return None
    operands = [n.meta.get("shape") for n in step.node.all_input_nodes]
    values = [a for a in step.node.args[:2] if getattr(a, "op", "get_attr") == "get_attr"]
    if values or len(operands) != 2 or step.node.kwargs.get("alpha", 1) != 1:
        if len(operands) == 1 and len(step.node.args) == 2 and not values:
            return Refusal(step.path, "it adds a tensor to itself", "Double the weights before it.")
        return Refusal(
            step.path, "it adds a constant or scales an operand",
            "Add results of layers of the same shape; a constant belongs into a bias.",
        )  # fmt: skip
    if operands[0] != operands[1]:
        shapes = " and ".join(times(shape[1:]) for shape in operands)
        return Refusal(
            step.path, f"its operands have the shapes {shapes}", "Add results of the same shape."
        )
    return None
