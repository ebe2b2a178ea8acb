"""What handlers take and how they are found: one call of a module or function of PyTorch's.

Modules and functions of one name have the same settings: those of a module are its attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.nodes import ShapeError, constant, make
from ai8xtools.frontends.graph.operators import (
    Foreign,
    LpNormalization,
    Operator,
    Pads,
    Reduce,
    Reshape,
    Softmax,
)
from ai8xtools.frontends.instead import instead_of

Shape = tuple[int, ...]
_PASSING = ("alphadropout", "identity", "empty", "contiguous", "clone", "float", "to",
            "detach")  # fmt: skip
_RESHAPING = ("flatten", "unflatten", "view", "reshape", "squeeze", "unsqueeze")


@dataclass(frozen=True, slots=True)
class Call:
    """A node: its place and name in messages, its arguments and settings, the shape [1, ...] of its
    result. `data` is what it takes first.
    """

    place: str
    shown: str
    args: Sequence[Any]
    settings: Mapping[str, Any]
    shape: Shape

    @property
    def name(self) -> str:
        """Its name without underscores, capitals and numbers of axes: of MaxPool2d maxpool."""
        return plain_name(self.shown)

    @property
    def data(self) -> Result:
        """What it takes first, as a result."""
        return operand(self.args[0])

    def make(self, operator: Operator, *inputs: Result) -> Result:
        """Return a result of this node; one that mixes the samples of a batch is foreign."""
        axes: Shape = operator.axes if isinstance(operator, Reduce) else ()
        if isinstance(operator, Softmax | LpNormalization):
            axes = (operator.axis,)
        if 0 in axes and inputs[0].shape[0] == 1:
            return self.foreign(f"{self.shown} over the samples of a batch")
        return make(self.place, operator, *inputs)

    def foreign(self, name: str, remedy: str | None = None) -> Result:
        """Return the result of what is no operator here, with what to use instead."""
        remedy = remedy or instead_of(self.shown)
        plain = tuple((key, value) for key, value in self.settings.items()
                      if isinstance(value, int | float | str | tuple))  # fmt: skip
        stated = Foreign(name, self.shape, plain_name=self.name, settings=plain)
        stated = stated if remedy is None else replace(stated, remedy=remedy)
        data = [one for one in listed(list(self.args)) if isinstance(one, Result)]
        own = [
            self.settings[key] for key in ("weight", "bias") if self.settings.get(key) is not None
        ]
        inputs = [one for one in data if one.constant is None]
        return make(self.place, stated, *inputs, *map(operand, own))

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting; one that is missing or None has the default."""
        value = self.settings.get(name)
        return default if value is None else value

    def each_axis(self, name: str, default: Any = None) -> Shape:
        """Return a setting for each axis behind the channels."""
        value, axes = self.get(name, default), len(self.data.shape) - 2
        return (value,) * axes if isinstance(value, int) else tuple(value) * (axes // len(value))


def operand(value: Any) -> Result:
    """Return a result; tensors and numbers become constants."""
    if isinstance(value, Result):
        return value
    if isinstance(value, Tensor):
        return constant(value.detach().cpu().double().numpy())
    return constant(np.asarray(value, np.float64))


Handler = Callable[[Call], Any]
_HANDLERS: dict[str, tuple[Handler, tuple[str, ...]]] = {}


def handles(names: str, settings: str = "") -> Callable[[Handler], Handler]:
    """Register a handler under names; `settings` are those behind the first argument."""

    def add(handler: Handler) -> Handler:
        for name in names.split():
            _HANDLERS[name] = handler, tuple(settings.split())
        return handler

    return add


def plain_name(name: str) -> str:
    """Return a name without underscores, capitals and the number of axes."""
    plain = name.lower().replace("_", "")
    return re.sub(r"(?<=dropout)3d$|[12]d$", "", plain)  # volumes are something else


def attributes(module: nn.Module) -> dict[str, Any]:
    """Return the settings of a module, with its tensors."""
    tensors = {name: getattr(module, name) for name in getattr(module, "parametrizations", ())}
    return {**vars(module), **module._parameters, **module._buffers, **tensors}


def listed(values: Any) -> list[Any]:
    """Return what tuples, lists and dictionaries hold, in order, however deep."""
    if isinstance(values, dict):
        values = list(values.values())
    several = isinstance(values, list | tuple)
    return [one for value in values for one in listed(value)] if several else [values]


def settings_of(name: str) -> tuple[str, ...]:
    """Return the names of what a function takes behind its first argument."""
    return _HANDLERS.get(plain_name(name), (None, ()))[1]


def handled(call: Call) -> Any:
    """Return the result of a call, or several; what has no handler is foreign."""
    if call.name in _PASSING:
        return call.data
    if call.name in _RESHAPING:
        return call.make(Reshape(call.shape), call.data)
    axes = _AXES.search(call.shown.lower())
    if axes is not None and len(call.data.shape) != int(axes[1]) + 2:
        return call.foreign(f"{call.shown} of data without a batch")
    handler, _ = _HANDLERS.get(call.name, (_unknown, ()))
    try:
        return handler(call)
    except ShapeError:  # a form that the handler does not know
        return call.foreign(call.shown)


_AXES = re.compile(r"(?:conv|pool)\w*?([123])d")
"""What moves windows over so many axes."""


def _unknown(call: Call) -> Result:
    return call.foreign(call.shown)


def alike(padding: Shape) -> Pads:
    """Return the same padding on both sides of each axis."""
    return tuple((n, n) for n in padding)
