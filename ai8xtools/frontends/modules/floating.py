"""A traced network, of ai8x layers or of PyTorch's own, as plain operators in floating point.

The operators are handed to a builder; batch normalization is folded into the operator before it.
Source: docs/q15.md, "Networks".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, assert_never

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import ai8x
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.kinds import Kind, Step
from ai8xtools.frontends.modules.plain.steps import read_step
from ai8xtools.frontends.modules.tracing import Node, trace

Floats = NDArray[np.float64]
Pair = tuple[int, int]
_LIMIT = 127 / 128
_TRANSPOSED = nn.ConvTranspose1d | nn.ConvTranspose2d
_ENLARGING = ("interpolate", "upsample")


class Builder(Protocol):
    """Collects operators; maps are numbers, 0 is the input."""

    def shape(self, tensor: int) -> tuple[int, int, int]:
        """Return (C, H, W)."""

    def convolution(
        self, name: str, source: int, weights: Floats, bias: Floats | None, stride: Pair,
        padding: Pair, dilation: Pair, groups: int, spread: Pair = (1, 1), extra: Pair = (0, 0),
    ) -> int:  # fmt: skip
        """Add a convolution of pixels that are `spread` apart, `extra` zeros behind the last."""

    def enlarge(self, name: str, source: int, factor: Pair) -> int:
        """Add nearest upsampling."""

    def linear(self, name: str, source: int, weights: Floats, bias: Floats | None) -> int:
        """Add a fully connected layer."""

    def pool(
        self, name: str, source: int, average: bool, window: Pair, stride: Pair, padding: Pair
    ) -> int:
        """Add pooling."""

    def clip(self, name: str, source: int, low: float, high: float) -> int:
        """Add a limit."""

    def add(self, name: str, sources: Sequence[int]) -> int:
        """Add a sum."""

    def concat(self, name: str, sources: Sequence[int]) -> int:
        """Add a concatenation."""


class FloatingReader:
    """Reads a network for inputs like `example` [1, C, ...] into `into`.

    `output` is the map of the result, `refusals` are the nodes that no operator stands for, `left`
    those behind the last operator that the application computes. Raises InputError E647 for a data
    flow that cannot be traced.
    """

    def __init__(self, model: nn.Module, example: Tensor, into: Builder) -> None:
        self.refusals: list[Refusal] = []
        self.left: list[str] = []
        self.output = 0
        self._into = into
        ai8x.fuse_bn_layers(model)
        self._model = model.eval()
        self._maps: dict[Node, int] = {}
        self._flat: set[Node] = set()
        self._folded: dict[Node, Any] = {}
        self._refused: set[Node] = set()  # and what is behind them
        for node in trace(model, example).nodes:
            self._visit(node)

    def _visit(self, node: Node) -> None:
        if node.op == "placeholder":
            self._maps[node] = 0
            return
        sources = [n for n in node.all_input_nodes if n in self._maps]
        if self._refused.intersection(node.all_input_nodes):
            self._refused.add(node)
            return
        if node.op == "output":
            self._deliver(node, sources)
            return
        if not sources or (not node.meta.get("shape") and not node.meta.get("parts")):
            return
        if node.meta.get("parts"):
            self._refuse(node, "it divides its data", "Use a convolution for each part.")
            return
        found = self._read(node, sources)
        if found is not None:
            self._maps[node] = found

    def _deliver(self, node: Node, sources: list[Node]) -> None:
        if len(sources) != 1:
            self._refuse(node, f"the network has {len(sources)} results that can be computed",
                         "Let it return one.")  # fmt: skip
            return
        self.output = self._maps[sources[0]]

    def _refuse(self, node: Node, why: str, remedy: str) -> None:
        self._refused.add(node)
        self.refusals.append(Refusal(_path(node), why, remedy))

    def _read(self, node: Node, sources: list[Node]) -> int | None:
        """Return the map that a node makes; None after a refusal."""
        module = self._model.get_submodule(node.target) if node.op == "call_module" else None
        if isinstance(module, ai8x.QuantizationAwareModule):
            return self._ai8x_layer(node, module, sources[0])
        if isinstance(module, ai8x.Add):
            summed = self._sum(node, sources)
            clamped = isinstance(module.clamp, ai8x.Empty)
            if summed is None or clamped:
                return summed
            return self._into.clip(f"{_path(node)}.clamp", summed, -1, _LIMIT)
        limits = _limits(node, module)
        if limits is not None:
            self._keep_flat(node, sources[0])
            return self._into.clip(_path(node), self._maps[sources[0]], *limits)
        factor = _enlargement(node, module)
        if factor is not None and sources[0] not in self._flat:
            return self._into.enlarge(_path(node), self._maps[sources[0]], factor)
        if isinstance(module, nn.ConvTranspose1d):
            return self._operator(node, _path(node), module, sources[0])
        step = read_step(node, self._model)
        if isinstance(step, Refusal):
            return self._doubtful(node, module, sources[0], step)
        return self._step(node, step, sources)

    def _step(self, node: Node, step: Step, sources: list[Node]) -> int | None:
        """Return the map that an ordinary node makes."""
        source = self._maps[sources[0]]
        match step.kind:
            case Kind.OPERATOR:
                return self._operator(node, step.path, step.module, sources[0])
            case Kind.NORMALIZATION:
                return self._normalized(node, sources[0], step.module)
            case Kind.RELU:
                self._keep_flat(node, sources[0])
                return self._into.clip(step.path, source, 0, math.inf)
            case Kind.POOLING:
                return self._pooled(node, step)
            case Kind.ADD:
                return self._sum(node, sources)
            case Kind.CONCATENATION:
                return self._joined(node)
            case Kind.PASSING:
                self._keep_flat(node, sources[0])
                return source
            case Kind.RESHAPING:
                return self._reshaped(node, step, sources[0])
            case Kind.SOFTMAX if all(user.op == "output" for user in node.users):
                self.left.append(step.path)
                return source
            case Kind.INPUT | Kind.ABS | Kind.SUB | Kind.SOFTMAX | Kind.DOUBLING | Kind.BORDER:
                pass  # refused below
            case _:
                assert_never(step.kind)
        self._refuse(node, f"there is no kernel for {step.kind.name.lower()}",
                     "Use convolutions, ReLU, pooling, sums and concatenations.")  # fmt: skip
        return None

    def _ai8x_layer(self, node: Node, layer: Any, source: Node) -> int | None:
        """Return the map of a layer of ai8x: pooling, operator, factor, activation, limits."""
        name, made = _path(node), self._maps[source]
        if layer.pool is not None:
            pool = layer.pool
            average = isinstance(pool, nn.AvgPool1d | nn.AvgPool2d)
            if not average and _pair(pool, "dilation", 1) != (1, 1):
                self._refuse(node, "its pooling is dilated", "Use pooling without dilation.")
                return None
            window, stride = _pair(pool, "kernel_size", 1), _pair(pool, "stride", 1)
            made = self._into.pool(f"{name}.pool", made, average, window, stride, (0, 0))
        if layer.op is None:
            return made
        if layer.activation == "Abs":
            self._refuse(node, "there is no kernel for absolute values", "Use ReLU.")
            return None
        down, up = layer.scales()
        factor = float(down) * (1.0 if layer.wide else float(up))
        result = self._operate(node, name, layer.op, made, source, factor)
        if result is None:
            return None
        limited = not layer.wide and (not layer.has_thresholds or bool(layer.clamp_activation))
        low, high = (-1.0, _LIMIT) if limited else (-math.inf, math.inf)
        low = 0.0 if layer.activation == "ReLU" else low
        if low > -math.inf or high < math.inf:
            result = self._into.clip(f"{name}.clamp", result, low, high)
        return result

    def _operator(self, node: Node, name: str, op: Any, source: Node) -> int | None:
        """Return the map of an operator of PyTorch, with the normalization behind it."""
        norm = None
        users = list(node.users)
        if len(users) == 1 and users[0].op == "call_module":
            following = self._model.get_submodule(users[0].target)
            normal = isinstance(following, nn.BatchNorm1d | nn.BatchNorm2d)
            if normal and following.running_mean is not None:
                norm = following
                self._folded[users[0]] = node
        return self._operate(node, name, op, self._maps[source], source, norm=norm)

    def _operate(
        self, node: Node, name: str, op: Any, made: int, source: Node, factor: float = 1.0,
        norm: Any = None,
    ) -> int | None:  # fmt: skip
        """Return the map of a convolution or fully connected layer, whose result is multiplied."""
        weights, bias = folded(op, norm, factor)
        if isinstance(op, nn.Linear):
            inputs = math.prod(self._into.shape(made))
            if op.in_features != inputs:
                self._refuse(node, f"it works on the last axis of its data, {inputs} values in all",
                             "Flatten the data before it, or use a 1x1 convolution.")  # fmt: skip
                return None
            return self._into.linear(name, made, weights, bias)
        if source in self._flat or op.padding_mode != "zeros" or isinstance(op.padding, str):
            why = "its data is flattened" if source in self._flat else "its padding is unusual"
            self._refuse(node, why, "Use maps, and padding_mode='zeros' with numbers.")
            return None
        weights = weights.reshape(*weights.shape[:3], -1)
        stride, padding = _pair(op, "stride", 1), _pair(op, "padding", 0)
        dilation = _pair(op, "dilation", 1)
        if not isinstance(op, _TRANSPOSED):
            return self._into.convolution(name, made, weights, bias, stride, padding, dilation,
                                          op.groups)  # fmt: skip
        sizes = zip(weights.shape[2:], padding, dilation, strict=True)
        border = [(k - 1) * d - p for k, p, d in sizes]
        if min(border) < 0:
            self._refuse(node, "its padding exceeds its kernel", "Use less padding.")
            return None
        return self._into.convolution(
            name, made, weights, bias, (1, 1), (border[0], border[1]), dilation, op.groups, stride,
            _pair(op, "output_padding", 0),
        )  # fmt: skip

    def _normalized(self, node: Node, source: Node, norm: Any) -> int | None:
        """Return the map of batch normalization: folded, else a 1x1 depthwise convolution."""
        made = self._maps[source]
        if node in self._folded:
            self._keep_flat(node, source)
            return made
        scale, shift = affine(norm)
        weights = scale.reshape(-1, 1, 1, 1)
        return self._into.convolution(
            _path(node), made, weights, shift, (1, 1), (0, 0), (1, 1), len(scale)
        )

    def _pooled(self, node: Node, step: Step) -> int | None:
        """Return the map of pooling."""
        settings = step.settings
        if any(value != 1 for value in settings["dilation"]):
            self._refuse(node, "its pooling is dilated", "Use pooling without dilation.")
            return None
        if settings["average"] and any(settings["padding"]):
            self._refuse(node, "its average counts the padding", "Use padding=0.")
            return None
        window, stride, padding = (
            _filled(settings[key], fill)
            for key, fill in (("window", 1), ("stride", 1), ("padding", 0))
        )
        source = self._maps[node.all_input_nodes[0]]
        return self._into.pool(step.path, source, settings["average"], window, stride, padding)

    def _sum(self, node: Node, sources: list[Node]) -> int | None:
        maps = [self._maps[source] for source in sources]
        shapes = {self._into.shape(tensor) for tensor in maps}
        constants = [a for a in node.args[:2] if not hasattr(a, "meta")]
        if len(maps) < 2 or len(shapes) > 1 or constants or node.kwargs.get("alpha", 1) != 1:
            self._refuse(node, "it adds maps of different shapes, a constant or a multiple",
                         "Add results of layers of the same shape.")  # fmt: skip
            return None
        return self._into.add(_path(node), maps)

    def _joined(self, node: Node) -> int | None:
        parts = node.args[0]
        maps = [self._maps[part] for part in parts if part in self._maps]
        sizes = {self._into.shape(tensor)[1:] for tensor in maps}
        flat = any(part in self._flat and self._into.shape(self._maps[part])[1:] != (1, 1)
                   for part in parts if part in self._maps)  # fmt: skip
        if len(maps) != len(parts) or len(sizes) > 1 or flat:
            self._refuse(node, "it joins maps of different sizes", "Join channels of equal maps.")
            return None
        return self._into.concat(_path(node), maps) if len(maps) > 1 else maps[0]

    def _reshaped(self, node: Node, step: Step, source: Node) -> int | None:
        """Return the map of a flattening; other changes of shape are refused."""
        shape = tuple(step.given)
        made = self._maps[source]
        if len(shape) == 1:
            self._flat.add(node)
            return made
        if shape == tuple(step.taken) or math.prod(shape) == shape[0] == self._into.shape(made)[0]:
            return made
        change = f"it makes {times(shape)} of {times(step.taken)}"
        self._refuse(node, change, "Flatten only, directly before a fully connected layer.")
        return None

    def _keep_flat(self, node: Node, source: Node) -> None:
        if source in self._flat:
            self._flat.add(node)

    def _doubtful(self, node: Node, module: Any, source: Node, refusal: Refusal) -> int | None:
        """Return the map of pooling with a padding that the accelerator does not have."""
        pools = isinstance(module, nn.MaxPool1d | nn.MaxPool2d)
        if pools and not module.ceil_mode and _pair(module, "dilation", 1) == (1, 1):
            pairs = [_pair(module, name, fill) for name, fill in
                     (("kernel_size", 1), ("stride", 1), ("padding", 0))]  # fmt: skip
            return self._into.pool(_path(node), self._maps[source], False, *pairs)
        why = refusal.why.replace("the accelerator has no", "there is no kernel for")
        self._refuse(node, why, refusal.remedy)
        return None


def folded(op: Any, norm: Any, factor: float) -> tuple[Floats, Floats | None]:
    """Return weights and bias in float64 with normalization (or None) and a factor in them."""
    weights = op.weight.detach().double().numpy() * factor
    if isinstance(op, _TRANSPOSED):  # [I, O/groups, ...], applied backwards
        inputs, filters, *kernel = weights.shape
        parts = weights.reshape(op.groups, inputs // op.groups, filters, *kernel).swapaxes(1, 2)
        weights = np.flip(parts.reshape(op.groups * filters, -1, *kernel),
                          tuple(range(2, weights.ndim)))  # fmt: skip
    bias = None if op.bias is None else op.bias.detach().double().numpy() * factor
    if norm is None:
        return weights, bias
    scale, shift = affine(norm)
    offset = np.zeros(len(scale)) if bias is None else bias
    axes = (-1, *([1] * (weights.ndim - 1)))
    return weights * scale.reshape(axes), offset * scale + shift


def affine(norm: Any) -> tuple[Floats, Floats]:
    """Return factor and offset per channel of batch normalization in evaluation."""
    mean = norm.running_mean.detach().double().numpy()
    variance = norm.running_var.detach().double().numpy()
    scale = 1 / np.sqrt(variance + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.detach().double().numpy()
    shift = -mean * scale
    return scale, shift if norm.bias is None else shift + norm.bias.detach().double().numpy()


def _limits(node: Node, module: Any) -> tuple[float, float] | None:
    """Return the limits of a module or function that only limits, None for others."""
    if isinstance(module, nn.Hardtanh):  # ReLU6 is one of them
        return float(module.min_val), float(module.max_val)
    if module is not None:
        return None
    name = str(getattr(node.target, "__name__", node.target)).lower()
    if name == "relu6":
        return 0.0, 6.0
    if name not in ("hardtanh", "clamp", "clip"):
        return None
    names = ("min_val", "max_val") if name == "hardtanh" else ("min", "max")
    given = dict(zip(names, node.args[1:], strict=False)) | node.kwargs
    default = 1.0 if name == "hardtanh" else math.inf
    low, high = given.get(names[0]), given.get(names[1])
    if any(hasattr(value, "meta") for value in (low, high)):
        return None
    return -default if low is None else float(low), default if high is None else float(high)


def _enlargement(node: Node, module: Any) -> Pair | None:
    """Return how many rows and columns each pixel becomes; None if a node does something else."""
    name = str(getattr(node.target, "__name__", node.target)).lower()
    if not isinstance(module, nn.Upsample) and (module is not None or name not in _ENLARGING):
        return None
    stated = dict(zip(("size", "scale_factor", "mode"), node.args[1:], strict=False)) | node.kwargs
    mode = stated.get("mode", "nearest") if module is None else module.mode
    taken, given = node.all_input_nodes[0].meta["shape"][2:], node.meta["shape"][2:]
    whole = all(made % size == 0 for made, size in zip(given, taken, strict=True))
    if mode != "nearest" or not whole or not 1 <= len(given) <= 2:
        return None
    return _filled([made // size for made, size in zip(given, taken, strict=True)], 1)


def _pair(module: Any, name: str, fill: int) -> Pair:
    """Return an attribute of a module for rows and columns; series have one column."""
    value = getattr(module, name)
    series = type(module).__name__.endswith("1d")
    if isinstance(value, int):
        return (value, fill) if series else (value, value)
    return _filled(value, fill)


def _filled(value: Sequence[int], fill: int) -> Pair:
    return (value[0], value[1]) if len(value) == 2 else (value[0], fill)


def _path(node: Node) -> str:
    return str(node.target) if node.op == "call_module" else str(node.name)
