"""A traced network of PyTorch's as a graph of operators, by the handlers of its calls."""

from __future__ import annotations

from typing import Any

from torch import Tensor, fx, nn

import ai8x
from ai8xtools.frontends.graph.nodes import Graph, graph_of, make
from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import Foreign, Input, Remembered
from ai8xtools.frontends.modules import handlers  # noqa: F401 - they register themselves
from ai8xtools.frontends.modules.calls import Call, attributes, handled, listed, settings_of
from ai8xtools.frontends.modules.layers import ai8x_elements, ai8x_layer, whole_layer
from ai8xtools.frontends.modules.tracing import Node, called, once, path_of, trace, value_of

_DATA = ("input", "tensors", "self")


def read_module(model: nn.Module, example: Tensor) -> Graph:
    """Return the graph of a network for inputs like `example` [N, C, ...].

    Raises InputError E647 for a data flow that cannot be traced.
    """
    ai8x.fuse_bn_layers(model)
    return Door(model.eval(), example[:1]).graph


class Door:
    """Follows a network; `traced` is its data flow, `returned` what it returns: results in lists,
    tuples and dictionaries, `names` what nodes call, by path. Raises InputError E647 for a data
    flow that cannot be traced.

    `whole`: layers of ai8x stay one operator; what takes series of `frames` is followed for one.
    """

    def __init__(
        self, model: nn.Module, example: Tensor, frames: int | None = None, *, whole: bool = False
    ) -> None:
        self.traced = trace(model, example, frames)
        self.names: dict[str, str] = {}
        self._whole = whole
        self.returned: Any = None
        self._model = model
        self._results: dict[Node, Any] = {}
        self._constants: dict[Node, Any] = {}
        self.graph = self._followed()

    def _followed(self) -> Graph:
        nodes: list[Result] = []
        outputs: list[Result] = []
        source: Result | None = None
        for node in self.traced.nodes:
            if node.op == "placeholder":
                shape = tuple(node.meta["shape"])
                source = source or make(str(node.name), Input(shape))
                self._results[node] = source
            elif node.op == "output":
                self.returned = fx.map_arg(node.args[0], self._value)
                outputs = [one for one in listed(self.returned) if isinstance(one, Result)]
            elif self._whole and node.meta.get("folds"):
                source = self._results[node] = make(
                    str(node.name), Input(tuple(node.meta["shape"]))
                )
            elif _is_data(node) and any(one in self._results for one in node.all_input_nodes):
                self._results[node] = result = self._read(node)
                nodes += listed(result)
        assert source is not None
        return graph_of(source, nodes, outputs)

    def _read(self, node: Node) -> Any:
        """Return the result of a node, or several."""
        args = [self._value(one) for one in node.args]
        kwargs = {name: self._value(one) for name, one in node.kwargs.items()}
        if kwargs and not args:  # what it takes first has a name: input, tensors, or x
            args = [kwargs.pop(next((n for n in _DATA if n in kwargs), next(iter(kwargs))))]
        shape = tuple(node.meta.get("shape") or ())
        if self._whole and node.meta.get("frames"):
            return make(path_of(node), Remembered("frames", shape), args[0])
        if node.op != "call_module":
            name = self.names[path_of(node)] = called(node)
            schema = getattr(node.target, "_schema", None)
            names = settings_of(name) if schema is None else [a.name for a in schema.arguments[1:]]
            settings = dict(zip(names, args[1:], strict=False)) | kwargs
            result = handled(Call(path_of(node), name, args, settings, shape))
            several = node.meta.get("parts") and isinstance(result, Result)
            return [result] if several and not isinstance(result.operator, Foreign) else result
        module = self._model.get_submodule(node.target)
        if self._whole and isinstance(module, ai8x.QuantizationAwareModule | ai8x.Eltwise):
            return make(path_of(node), whole_layer(module, shape), *args)
        if isinstance(module, ai8x.QuantizationAwareModule):
            return ai8x_layer(Call(path_of(node), "", args, {}, shape), module)
        if isinstance(module, ai8x.Eltwise):
            return ai8x_elements(Call(path_of(node), "", args, {}, shape), module)
        kind = ai8x.torch_class(module)
        name = self.names[path_of(node)] = kind.__name__
        if not kind.__module__.startswith(("torch.nn.", "ai8x")):
            return Call(path_of(node), name, args, {}, shape).foreign(kind.__name__)
        return handled(Call(path_of(node), name, args, attributes(module), shape))

    def _value(self, argument: Any) -> Any:
        """Return an argument: a result, or what does not depend on the input."""
        if isinstance(argument, list | tuple):
            return [self._value(one) for one in argument]
        if isinstance(argument, slice):
            return slice(*map(value_of, (argument.start, argument.stop, argument.step)))
        if not hasattr(argument, "all_input_nodes"):
            return argument
        if argument in self._results:
            return self._results[argument]
        if argument.meta.get("value") is not None:
            return argument.meta["value"]
        if argument not in self._constants:
            self._constants[argument] = self._computed(argument)
        return self._constants[argument]

    def _computed(self, node: Node) -> Any:
        """Return the result of a node that computes from constants."""
        args = [self._value(one) for one in node.args]
        kwargs = {name: self._value(one) for name, one in node.kwargs.items()}
        with once():
            match node.op:
                case "get_attr":
                    value: Any = self._model
                    for part in str(node.target).split("."):
                        value = getattr(value, part)
                    return value
                case "call_method":
                    return getattr(args[0], node.target)(*args[1:], **kwargs)
                case "call_module":
                    return self._model.get_submodule(node.target)(*args, **kwargs)
                case _:
                    return node.target(*args, **kwargs)


def _is_data(node: Node) -> bool:
    """Return whether a node gives tensors, not sizes."""
    return node.meta.get("shape") is not None or bool(node.meta.get("parts"))
