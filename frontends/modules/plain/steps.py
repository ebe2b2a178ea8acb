"""What each node of a traced network computes, whether it is a module, a function or a method.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from frontends.layers import Refusal, times
from frontends.modules.tracing import Node


class Kind(enum.Enum):
    """The kinds of steps that layers of the chip can come from."""

    INPUT = enum.auto()
    OPERATOR = enum.auto()
    NORMALIZATION = enum.auto()
    RELU = enum.auto()
    ABS = enum.auto()
    POOLING = enum.auto()
    ADD = enum.auto()
    SUB = enum.auto()
    CONCATENATION = enum.auto()
    RESHAPING = enum.auto()
    PASSING = enum.auto()
    SOFTMAX = enum.auto()
    DOUBLING = enum.auto()


@dataclass(frozen=True, slots=True)
class Step:
    """A node: its kind, the module that computes it if there is one, the shapes without the batch.

    `settings` are those of pooling: `average`, `window`, `stride`, `dilation`, `padding`; pairs for
    images.
    """

    node: Node
    kind: Kind
    taken: tuple[int, ...]
    given: tuple[int, ...]
    module: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """What messages call it."""
        return str(self.node.target) if self.node.op == "call_module" else str(self.node.name)


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
    "leaky_relu": "Use ReLU", "prelu": "Use ReLU", "elu": "Use ReLU", "gelu": "Use ReLU",
    "silu": "Use ReLU", "hardswish": "Use ReLU", "mish": "Use ReLU", "softplus": "Use ReLU",
    "sigmoid": "Use ReLU inside; at the end, compute it in the application",
    "hardsigmoid": "Use ReLU inside; at the end, compute it in the application",
    "tanh": "Use ReLU inside; at the end, compute it in the application",
    "mul": "Use addition or concatenation: the chip multiplies by weights only",
    "imul": "Use addition or concatenation: the chip multiplies by weights only",
    "matmul": "Use nn.Linear: the chip multiplies by weights only",
    "pixelshuffle": "Use ConvTranspose2d with stride 2",
    "pixel_shuffle": "Use ConvTranspose2d with stride 2",
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
"""What to use instead of a function or module, by its name in lower case."""


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
    if name in _FUNCTIONS:
        step = Step(node, _FUNCTIONS[name], taken, given)
        return _refusal_of_operands(step) or step
    found = _pooling_function(node, name, taken, given)
    return found if found is not None else _unknown(node, name, name)


def _module_step(
    node: Node, module: nn.Module, taken: tuple[int, ...], given: tuple[int, ...]
) -> Step | Refusal:
    for kinds, kind in _MODULES.items():
        if type(module) in kinds:
            return Step(node, kind, taken, given, module)
    if isinstance(module, nn.Upsample):
        return _doubling(node, vars(module), taken, given, module)
    name = type(module).__name__
    if "Pool" in name:
        found = _pooling(node, name.lower(), vars(module), taken, given, module)
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
    return Refusal(_path(node), how, "Use mode='nearest' with scale_factor=2, or ConvTranspose2d.")


def _unknown(node: Node, key: str, shown: str) -> Refusal:
    path = str(node.target) if node.op == "call_module" else str(node.name)
    instead = _INSTEAD.get(key)
    why = f"the accelerator has no {shown}"
    return Refusal(path, why, f"{instead}.") if instead else Refusal(path, why)


def _refusal_of_operands(step: Step) -> Refusal | None:
    """Refuse sums that the chip does not form: of unequal shapes, with constants, with a factor."""
    if step.kind is Kind.CONCATENATION:
        axis = step.node.kwargs.get("dim", step.node.args[1] if len(step.node.args) > 1 else 0)
        if axis not in (1, 1 - len(step.given) - 1):
            return Refusal(
                step.path, f"it joins along axis {axis}", "Join channels: torch.cat(..., 1)."
            )
    if step.kind not in (Kind.ADD, Kind.SUB):
        return None
    operands = [n.meta.get("shape") for n in step.node.all_input_nodes]
    values = [a for a in step.node.args[:2] if not hasattr(a, "meta")]
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


def _pooling_function(
    node: Node, name: str, taken: tuple[int, ...], given: tuple[int, ...]
) -> Step | Refusal | None:
    """Return the step of a pooling function or of a mean over the whole map; None for others."""
    if name == "mean":
        dims = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
        axes = {d % (len(taken) + 1) for d in (dims if isinstance(dims, list | tuple) else [dims])
                if isinstance(d, int)}  # fmt: skip
        if axes != set(range(2, len(taken) + 1)) or not axes:
            return Refusal(
                _path(node), "it averages other axes than rows and columns",
                "Average all of them: x.mean((2, 3)).",
            )  # fmt: skip
        return _global(node, taken, given)
    if "pool" not in name:
        return None
    fourth = "dilation" if "max" in name else "ceil_mode"
    names = ["kernel_size", "stride", "padding", fourth]
    if "adaptive" in name:
        names = ["output_size"]
    stated = dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)
    given_arguments = {key: _value(value) for key, value in stated.items()}
    return _pooling(node, name.replace("_", ""), given_arguments, taken, given)


def _pooling(
    node: Node,
    name: str,
    arguments: Mapping[str, Any],
    taken: tuple[int, ...],
    given: tuple[int, ...],
    module: Any = None,
) -> Step | Refusal | None:
    """Return the step of a pooling, None for kinds that are not known here."""
    average = "avg" in name
    if name.rstrip("123d") not in ("maxpool", "avgpool", "adaptiveavgpool", "adaptivemaxpool"):
        return None
    if "adaptive" in name:
        if any(size % out for size, out in zip(taken[1:], given[1:], strict=True)):
            change = f"{times(taken[1:])} to {times(given[1:])}"
            return Refusal(
                _path(node), f"windows of different sizes ({change})",
                "Choose an output size that divides the input's, such as 1.",
            )  # fmt: skip
        window = tuple(size // out for size, out in zip(taken[1:], given[1:], strict=True))
        stride, dilation, padding = window, _each(1, taken), _each(0, taken)
    else:
        window = _each(arguments["kernel_size"], taken)
        stride = _each(arguments.get("stride") or window, taken)
        padding = _each(arguments.get("padding") or 0, taken)
        dilation = _each(arguments.get("dilation") or 1, taken)
    if any(padding) and set(padding) != {1}:
        return Refusal(
            _path(node), f"its padding is {times(padding)}, pooling has none on the accelerator",
            "Use padding=0, such as a window of 2 with stride 2, or padding=1.",
        )  # fmt: skip
    left_out = not arguments.get("count_include_pad", True) or arguments.get("divisor_override")
    if average and any(padding) and left_out:
        return Refusal(_path(node), "its average leaves out the padding",
                       "Use count_include_pad=True, or padding=0.")  # fmt: skip
    fitting = tuple(
        (size + 2 * p - d * (w - 1) - 1) // s + 1
        for size, w, s, d, p in zip(taken[1:], window, stride, dilation, padding, strict=True)
    )
    if fitting != given[1:]:
        return Refusal(
            _path(node), f"ceil_mode makes {times(given[1:])} of what is {times(fitting)}",
            "Use ceil_mode=False.",
        )  # fmt: skip
    if max(fitting) == 1:
        stride = (1,) * len(window)  # the window moves nowhere
    settings = {"average": average, "window": window, "stride": stride, "dilation": dilation,
                "padding": padding}  # fmt: skip
    return Step(node, Kind.POOLING, taken, given, module, settings)


def _global(node: Node, taken: tuple[int, ...], given: tuple[int, ...]) -> Step:
    """Return the average over a whole map."""
    one = (1,) * len(taken[1:])
    none = (0,) * len(one)
    settings = {"average": True, "window": taken[1:], "stride": one, "dilation": one,
                "padding": none}  # fmt: skip
    return Step(node, Kind.POOLING, taken, given, None, settings)


def _value(argument: Any) -> Any:
    """Return an argument; of one that the network computes from sizes what it is for its input."""
    if isinstance(argument, list | tuple):
        return tuple(map(_value, argument))
    return argument.meta.get("value") if hasattr(argument, "meta") else argument


def _each(value: Any, taken: tuple[int, ...]) -> tuple[int, ...]:
    """Return a value for each axis of a map."""
    axes = len(taken) - 1
    if isinstance(value, int):
        return (value,) * axes
    found = tuple(value)
    return found * axes if len(found) == 1 else found


def _path(node: Node) -> str:
    return str(node.target) if node.op == "call_module" else str(node.name)


def elements(shape: tuple[int, ...]) -> int:
    """Return how many values a tensor has."""
    return math.prod(shape)
