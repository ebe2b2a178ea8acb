"""From the graph of a network to the layers of a network description."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, assert_never

from torch import nn

import ai8x
from ai8x import Node, OperatorKind
from ai8xtools.frontends.layers import (
    HISTORY,
    INPUT,
    DescribedLayer,
    Refusal,
    RollingBuffer,
    times,
    unused,
    wide_data,
)
from ai8xtools.frontends.modules.history import moved, remember, why_not
from ai8xtools.frontends.modules.instead import instead_of
from ai8xtools.frontends.modules.keys import operator_keys, pooling_keys, short
from ai8xtools.frontends.modules.tracing import path_of
from device import Chip
from device.channels import passes

_RESHAPING = ("flatten", "view", "reshape", "squeeze", "unsqueeze", "contiguous")
_ELEMENTWISE = {"Add": "add", "Sub": "sub", "BitwiseOr": "or", "BitwiseXor": "xor"}
_PASSING = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity, ai8x.Empty)
_LEFT = frozenset({
    "softmax", "log_softmax", "permute", "transpose", "flatten", "view", "reshape", "squeeze",
    "unsqueeze", "contiguous", "cat", "concat", "unflatten", "getitem", "normalize",
})  # fmt: skip
_LEFT_MODULES = (nn.Softmax, nn.LogSoftmax)
"""Operators that may follow the last layer, because the application can apply them."""
_INSTEAD = {
    **dict.fromkeys(("add", "iadd", "add_"), "Use ai8x.Add(): as on the chip, its sums are limited "
                    "to -1..1 in training."),
    "relu": "Use a layer with ReLU, such as FusedConv2dReLU or FusedLinearReLU.",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor between layers, with the operations in front of the next layer."""

    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    join: Literal["elements", "channels"] | None = None
    combined: str | None = None
    pool: nn.Module | None = None
    flat: bool = False
    reshaped: bool = False
    notes: tuple[Refusal, ...] = ()
    by_frame: tuple[Refusal, ...] = ()  # what is wrong as long as frames come before features


def _pool_of(module: nn.Module) -> Any:
    """Return the layer of ai8x that pools as a module of PyTorch's, if there is one."""
    kinds = {nn.MaxPool1d: ai8x.MaxPool1d, nn.MaxPool2d: ai8x.MaxPool2d}
    make: Any = kinds.get(ai8x.torch_class(module))
    settings: Any = module
    if make is None or settings.padding not in (0, (0, 0), (0,)) or settings.ceil_mode:
        return None
    if settings.return_indices or settings.dilation not in (1, (1, 1), (1,)):
        return None
    try:
        return make(settings.kernel_size, settings.stride)
    except AssertionError:
        return None


class Walk:
    """Follows a traced graph; `entries` are the layers found.

    `refusals` are the nodes that no layer stands for, `left` those behind the last layer that the
    application can do, `buffer` remembers features of frames.
    """

    def __init__(self, model: nn.Module, graph: Any, chip: Chip) -> None:
        self.entries: list[DescribedLayer] = []
        self.refusals: list[Refusal] = []
        self.left: list[str] = []
        self.buffer: RollingBuffer | None = None
        self._model = model
        self._chip = chip
        self._values: dict[Node, _Value] = {}
        self._named: dict[str, str] = {}
        for node in graph.nodes:
            self._visit(node)
        remedy = "Leave out wide=True, which is for results of the network."
        self.refusals += wide_data(self.entries, remedy)

    def _visit(self, node: Node) -> None:
        """Follow one node."""
        taken = [self._values[source] for source in node.all_input_nodes if source in self._values]
        shape = tuple(node.meta.get("shape") or ())[1:]
        if node.op == "placeholder":
            self._values[node] = _Value((INPUT,), shape)
        elif node.op == "output":
            for source in (one for one in node.all_input_nodes if one in self._values):
                self._deliver(source, self._values[source])
        elif taken and node.meta.get("folds"):
            self._values[node] = replace(taken[0], shape=shape)
        elif taken and node.meta.get("frames"):
            self._values[node] = self._remembered(node, taken[0], shape)
        elif taken and node.meta.get("parts"):
            name = getattr(node.target, "__name__", str(node.target))
            why = f"{name} divides its data, the accelerator delivers results as a whole"
            self._values[node] = _noted(taken[0], node, why, taken[0].shape)
        elif taken and node.meta.get("shape"):
            visit = self._module if node.op == "call_module" else self._function
            self._values[node] = visit(node, taken, shape)

    def _remembered(self, node: Node, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow the features of all frames, of which one is new: a rolling buffer."""
        why = why_not(self.entries, value.inputs, value.shape)
        if self.buffer is not None:
            why = "a second rolling buffer is not possible"
        if why is not None or _is_prepared(value) or value.combined or value.join:
            why = why or "what is remembered must be the result of a layer"
            return _noted(value, node, why, shape)
        (index,) = value.inputs
        self.buffer = remember(self.entries, index, shape[0], path_of(node))
        for key, one in self._values.items():
            self._values[key] = replace(one, inputs=moved(one.inputs, index))
        why = "frames come before features here: transpose them for the layer behind"
        return _Value((HISTORY,), shape, notes=value.notes, by_frame=(Refusal(path_of(node), why),))

    def _deliver(self, node: Node, value: _Value) -> None:
        """Note a result of the network; joining several is left to the application."""
        if value.join == "channels":
            self.left.append(path_of(node))
        layers = [self.entries[index] for index in sorted(set(value.inputs) - {INPUT, HISTORY})]
        for layer in layers:
            layer.is_output = True
        for note in value.notes:
            if note.left:
                self.left.append(note.node)
                continue
            self.refusals.append(note)

    def _module(self, node: Node, taken: list[_Value], shape: tuple[int, ...]) -> _Value:
        """Follow a layer."""
        module = self._model.get_submodule(node.target)
        value = taken[0]
        if isinstance(module, ai8x.QuantizationAwareModule):
            return self._module_of(node, module, value, shape)
        operation = _elementwise(module)
        if operation is not None:
            return self._elements(node, operation, taken, shape)
        if isinstance(module, _PASSING):
            return value
        if isinstance(module, nn.Flatten | nn.Unflatten):
            if value.by_frame:
                return self._by_frame(node, "flatten", value, shape)
            return self._reshaped(node, value, shape)
        pool = _pool_of(module)
        if pool is not None:
            return self._module_of(node, pool, value, shape)
        kind = type(module).__name__
        why = f"{kind} is not a layer of the accelerator"
        return _noted(value, node, why, shape, left=isinstance(module, _LEFT_MODULES))

    def _module_of(self, node: Node, module: Any, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow a layer of ai8x; pooling may be part of the layer behind it."""
        if module.op is None and value.join is None and self._following(node, pooled=False):
            return replace(value, pool=module.pool)
        return self._layer(node.target, module, value, shape)

    def _function(self, node: Node, taken: list[_Value], shape: tuple[int, ...]) -> _Value:
        """Follow a function or method."""
        name = getattr(node.target, "__name__", str(node.target))
        left = name in _LEFT
        if name in ("cat", "concat") and len(taken) > 1:
            sizes = {value.shape[1:] for value in taken}
            fits = len(sizes) == 1 and shape[0] == sum(value.shape[0] for value in taken)
            inputs = tuple(index for value in taken for index in value.inputs)
            joined = _Value(inputs, shape, "channels")
            simple = fits and not any(_is_prepared(v) or v.join == "elements" for v in taken)
            joined = replace(joined, notes=tuple(note for value in taken for note in value.notes))
            note = "these tensors are concatenated in another way"
            return joined if simple else _noted(joined, node, note, shape, left=left)
        value = taken[0]
        if value.by_frame:
            return self._by_frame(node, name, value, shape)
        if name == "getitem" and shape == value.shape and _is_whole(node.args[1]):
            return value
        if name not in _RESHAPING:
            remedy = _INSTEAD.get(name) or instead_of(name)
            why = f"the model computes {name} here"
            return _noted(value, node, why, shape, left=left, remedy=remedy)
        return self._reshaped(node, value, shape)

    def _reshaped(self, node: Node, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow a change of the shape."""
        if shape == value.shape or (value.flat and len(shape) == 1):
            return value
        if shape[0] == value.shape[0] == math.prod(shape) == math.prod(value.shape):
            return replace(value, shape=shape)  # single pixels
        if len(shape) == 1 and not value.reshaped:
            flat = math.prod(value.shape[1:]) > 1
            return replace(value, flat=flat, shape=value.shape if flat else shape)
        if shape[0] == value.shape[0] and not value.flat and value.pool is None:
            return replace(value, shape=shape, reshaped=True)
        change = f"{times(value.shape)} becomes {times(shape)}"
        return _noted(value, node, f"the model reshapes its data here: {change}", shape, left=True)

    def _by_frame(self, node: Node, name: str, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Follow features of frames until they are transposed: [frames, F] to [F, frames]."""
        count = value.shape[0]
        if name in ("transpose", "permute", "swapaxes") and shape == value.shape[1::-1]:
            return replace(value, shape=shape, by_frame=())
        if name in _RESHAPING and shape[0] == count and len(shape) < len(value.shape):
            return replace(value, shape=shape)
        return _noted(value, node, f"the model computes {name} here", shape)

    def _following(self, node: Node, pooled: bool) -> Any:
        """Return the layer with an operator that alone takes a result, or None."""
        (user, *others) = node.users or (None,)
        if others or user is None or user.op != "call_module":
            return None
        module = self._model.get_submodule(user.target)
        if not isinstance(module, ai8x.QuantizationAwareModule) or module.op is None:
            return None
        return module if pooled or module.pool is None else None

    def _elements(
        self, node: Node, kind: str, taken: list[_Value], shape: tuple[int, ...]
    ) -> _Value:
        """Follow an element-wise layer; the next layer does its work if it can."""
        notes = tuple(note for value in taken for note in value.notes)
        if any(_is_prepared(value) or len(value.inputs) > 1 for value in taken):
            notes += (Refusal(path_of(node), "the operands are not complete results of layers"),)
        elif any(value.shape != shape for value in taken):
            shapes = " and ".join(times(value.shape) for value in taken)
            notes += (Refusal(path_of(node), f"the operands have the shapes {shapes}"),)
        inputs = tuple(value.inputs[0] for value in taken)
        value = _Value(inputs, shape, "elements", _ELEMENTWISE[kind], notes=notes)
        following = self._following(node, pooled=True)
        if following is not None and self._can_combine(following, len(inputs), shape[0]):
            return value
        keys: dict[str, Any] = {"op": kind.removeprefix("Bitwise")}
        if len(inputs) > 2:
            keys["operands"] = len(inputs)
        layer = DescribedLayer(
            self._name(node.target), inputs, "elements", keys, shape, shape, node=node.target
        )
        return self._append(layer, notes)

    def _can_combine(self, layer: Any, operands: int, channels: int) -> bool:
        """Return whether a layer can combine elements in front of its operator."""
        count = passes(channels)
        kind = ai8x.kind_of(layer.op)
        match kind:
            case OperatorKind.CONV1D:
                return False
            case OperatorKind.CONV2D | OperatorKind.CONVTRANSPOSE2D | OperatorKind.LINEAR:
                pass
            case _:
                assert_never(kind)
        if layer.pool is not None and operands > 2:
            return False
        if self._chip.combines_with_bias:
            return count == 1 or operands * count == operands + count
        return layer.op.bias is None

    def _layer(self, target: str, module: Any, value: _Value, shape: tuple[int, ...]) -> _Value:
        """Add a layer with an operator, or one that only pools."""
        op, pool = module.op, module.pool if value.pool is None else value.pool
        keys: dict[str, Any] = {"op": "Passthrough" if op is None else type(op).__name__}
        if value.combined is not None:
            keys["eltwise"] = value.combined
            if len(value.inputs) > 2:
                keys["operands"] = len(value.inputs)
            if pool is not None:
                keys["pool_first"] = False
        if HISTORY in value.inputs:
            keys |= {"in_dim": short(value.shape[1:]), "in_channels": value.shape[0]}
        if value.reshaped:
            keys["in_dim"] = short(value.shape[1:])
        if value.flat:
            keys["flatten"] = True
            if value.join or value.inputs != (len(self.entries) - 1,):
                keys["in_channels"] = math.prod(value.shape)
        keys |= pooling_keys(pool)
        if op is not None:
            keys |= operator_keys(module)
        if target in self._named:
            keys["weight_source"] = self._named[target]
        name = self._name(target)
        self._named.setdefault(target, name)
        entry = DescribedLayer(
            name, value.inputs, value.join, keys, value.shape, shape, node=target
        )
        if op is not None and "weight_source" not in keys:
            entry.weights = target
        return self._append(entry, (*value.notes, *value.by_frame))

    def _append(self, entry: DescribedLayer, notes: Sequence[Refusal]) -> _Value:
        """Add a layer and return its result; `notes` are about what it takes."""
        self.refusals += notes
        self.entries.append(entry)
        return _Value((len(self.entries) - 1,), entry.shape)

    def _name(self, target: str) -> str:
        """Return a name that no other layer has."""
        return unused(target.replace(".", "_"), [entry.name for entry in self.entries])


def _elementwise(module: nn.Module) -> str | None:
    """Return the name of the operation of an element-wise layer, None for others."""
    return next((c.__name__ for c in type(module).__mro__ if c.__name__ in _ELEMENTWISE), None)


def _is_prepared(value: _Value) -> bool:
    """Return whether a tensor needs an operation that only an operator can do."""
    return value.flat or value.reshaped or value.pool is not None


def _noted(
    value: _Value,
    node: Node,
    why: str,
    shape: tuple[int, ...],
    *,
    left: bool = False,
    remedy: str | None = None,
) -> _Value:
    """Return the value with a note for the layer that takes it."""
    note = Refusal(path_of(node), why, left=left)
    note = note if remedy is None else replace(note, remedy=remedy)
    return replace(value, notes=(*value.notes, note), shape=shape, flat=False)


def _is_whole(index: Any) -> bool:
    """Return whether an index cuts nothing but what the shape tells: only slices from 0 on."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is Ellipsis or (isinstance(part, slice) and not part.start and part.step in (None, 1))
        for part in parts
    )
