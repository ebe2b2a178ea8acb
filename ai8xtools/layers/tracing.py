"""The data flow of a network as a graph whose nodes are the layers of ai8x, not what is in them."""

from __future__ import annotations

import inspect
import operator
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx, nn

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.elementwise import Eltwise

Node = Any
"""A node of `torch.fx`: input, layer, function or result."""


class NotTraceableError(ValueError):
    """The data flow of a network depends on its data; the message names the statement."""


def torch_class(module: nn.Module) -> type[nn.Module]:
    """Return the class of a module, or that of PyTorch's whose forward function it inherits."""
    own = type(module)
    theirs = (kind for kind in own.__mro__ if kind.__module__.startswith("torch.nn.modules."))
    kind: Any = next(theirs, nn.Module)
    return kind if kind is not nn.Module and kind.forward is own.forward else own


_OURS = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<")
"""Where code is not that of a network: PyTorch's, that of the layers, what either makes."""


class _Data(fx.Proxy):
    """Data in a graph; its changes in place are nodes of their own."""

    def __iadd__(self, other: Any) -> Any:
        return self._changed(operator.iadd, other)

    def __isub__(self, other: Any) -> Any:
        return self._changed(operator.isub, other)

    def __imul__(self, other: Any) -> Any:
        return self._changed(operator.imul, other)

    def __itruediv__(self, other: Any) -> Any:
        return self._changed(operator.itruediv, other)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise fx.proxy.TraceError("a value is assigned to a part of its data")

    def _changed(self, how: Any, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", how, (self, other), {})


class _Tracer(fx.Tracer):
    """Does not look inside the layers of ai8x."""

    def proxy(self, node: Node) -> fx.Proxy:
        """Return the proxy for the result of a node."""
        return _Data(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        """Return a node that knows the line of the network that made it: `meta["line"]`."""
        node = super().create_node(*args, **kwargs)
        frame: Any = sys._getframe(1)
        end = graph_of.__code__
        while frame.f_code is not end and frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        if frame.f_code is not end:
            node.meta["line"] = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return node

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module is a single node of the graph."""
        ours = isinstance(m, QuantizationAwareModule | Eltwise)
        inherits = torch_class(m) is not type(m) and not isinstance(m, nn.Sequential)
        return ours or inherits or super().is_leaf_module(m, module_qualified_name)


class _SizedTracer(_Tracer):
    """Follows branches that depend on the sizes of data, as they are for an example."""

    def __init__(self, example: Tensor) -> None:
        super().__init__()
        self._values: dict[Node, Any] = {}
        self._example = example
        self._computes = False  # modules compute; else their calls become nodes

    def to_bool(self, obj: fx.Proxy) -> bool:
        """Return whether a condition on sizes holds; TraceError for one on values."""
        self._computes = True
        try:
            value = self._value(obj.node)
        finally:
            self._computes = False
        return value if isinstance(value, bool) else super().to_bool(obj)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Call a module, or write that down."""
        if self._computes:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return an attribute of a module, or what stands for it."""
        if self._computes:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def _value(self, node: Node) -> Any:
        """Return what a node computes for the example; TraceError for numbers made of values."""
        if node not in self._values:
            args, kwargs = fx.map_arg((node.args, node.kwargs), self._value)
            result = self._computed(node, args, kwargs)
            name = getattr(node.target, "__name__", node.target)
            reads = any(isinstance(self._values[n], Tensor) for n in node.all_input_nodes)
            if reads and not _is_data(result) and name not in _SIZES:
                raise fx.proxy.TraceError(f"the data flow depends on the result of {name}")
            self._values[node] = result
        return self._values[node]

    def _computed(self, node: Node, args: Any, kwargs: Any) -> Any:
        match node.op:
            case "placeholder":
                return self._example
            case "get_attr":
                return operator.attrgetter(node.target)(self.root)
            case "call_module":
                return self.root.get_submodule(node.target)(*args, **kwargs)
            case "call_method":
                return getattr(args[0], node.target)(*args[1:], **kwargs)
        return node.target(*args, **kwargs)


_SIZES = ("size", "dim", "ndimension", "numel", "getattr", "len")
"""Functions that turn tensors into numbers without reading their values."""


def _is_data(result: Any) -> bool:
    """Return whether a result is data (tensors, or sizes), not numbers computed from values."""
    if isinstance(result, Tensor | torch.Size):
        return True
    return isinstance(result, tuple | list) and all(map(_is_data, result))


def graph_of(model: nn.Module, example: Tensor | None = None) -> Any:
    """Return the graph of a network as `torch.fx.Graph`; raise NotTraceableError.

    Arguments of the network besides its data keep their defaults. Branches that depend on sizes are
    taken as for the `example` [1, C, ...]; without one no branch may depend on the data.
    """
    try:
        tracer = _Tracer() if example is None else _SizedTracer(example)
        graph = tracer.trace(model, _defaults(model))
        _forget_defaults(graph)
    except Exception as exc:
        raise NotTraceableError(_reason(exc)) from exc
    return graph


def modules_of(graph: Any, model: nn.Module) -> Iterator[tuple[Node, nn.Module]]:
    """Yield the nodes that call a module, in execution order, with that module."""
    modules = dict(model.named_modules())
    for node in graph.nodes:
        if node.op == "call_module":
            # a repeated call of a module is named NAME@1
            yield node, modules[str(node.target).partition("@")[0]]


def _reason(exc: Exception) -> str:
    """Return the error, and the statement of the network in which it occurred."""
    reason = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
    frames = [
        frame
        for frame in traceback.extract_tb(exc.__traceback__)
        if "torch" not in frame.filename.split("/") and frame.filename != __file__
    ]
    if not frames or "<" in frames[-1].filename:
        return reason
    return f"{reason} ({frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line})"


def _defaults(model: nn.Module) -> dict[str, Any]:
    """Return the arguments of the network besides its data, with their defaults."""
    parameters = inspect.signature(model.forward).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def _forget_defaults(graph: Any) -> None:
    """Remove those arguments from a graph, with the comparisons that guard them."""
    data, *others = (node for node in graph.nodes if node.op == "placeholder")
    for node in reversed(list(graph.nodes)):
        guards = node.op == "call_function" and set(node.all_input_nodes) <= set(others)
        if node is not data and not node.users and (guards or node in others or _asserts(node)):
            graph.erase_node(node)


def _asserts(node: Node) -> bool:
    return getattr(node.target, "__name__", "") == "_assert"
