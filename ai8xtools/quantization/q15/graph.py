"""A network of floating-point layers as a list of steps over numbered maps.

Maps have the shape (C, H, W); of series (C, L) H is the length and W is 1. A fully connected layer
is a convolution whose kernel covers its whole input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

import numpy as np

from ai8xtools.frontends.graph.execute import dilated
from ai8xtools.quantization.formats import Float64s
from ai8xtools.values import frozen

Pair: TypeAlias = tuple[int, int]
Shape: TypeAlias = tuple[int, int, int]


@frozen
class _OfOne:
    """A step that makes the map `target` of one map."""

    name: str
    source: int
    target: int

    @property
    def sources(self) -> tuple[int, ...]:
        """The maps that it reads."""
        return (self.source,)


@frozen
class Weighted(_OfOne):
    """A convolution, or a fully connected layer (`linear`).

    `weights` [filters, channels of a group, rows, columns]. Of transposed convolutions pixels are
    `spread` apart with zeros between them, and behind the last are `extra` rows and columns of
    zeros.
    """

    weights: Float64s
    bias: Float64s
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    groups: int = 1
    linear: bool = False
    spread: Pair = (1, 1)
    extra: Pair = (0, 0)

    @property
    def depthwise(self) -> bool:
        """Whether each channel has one filter of its own."""
        alone = self.weights.shape[1] == 1 and len(self.weights) == self.groups > 1
        return alone and self.spread == (1, 1)

    @property
    def kernel(self) -> Pair:
        """Rows and columns of the kernel."""
        return int(self.weights.shape[2]), int(self.weights.shape[3])


@frozen
class Pool(_OfOne):
    """The maximum, or the `average`, of windows; what lies outside of the map does not count.

    `ceil` keeps the last windows, which begin within the map and end outside.
    """

    average: bool
    window: Pair
    stride: Pair
    padding: Pair = (0, 0)
    ceil: bool = False

    def size(self, shape: Shape) -> Pair:
        """Return rows and columns of the result for those of a map."""
        sizes = []
        for n, w, s, p in zip(shape[1:], self.window, self.stride, self.padding, strict=True):
            way = n + 2 * p - w
            last = -(-way // s) if self.ceil else way // s
            sizes.append(last + (last * s < n + p))  # a window that begins outside is left out
        return sizes[0], sizes[1]


@frozen
class Clip(_OfOne):
    """Limits to low..high; a rectifier has 0 and infinity."""

    low: float
    high: float


@frozen
class _OfSeveral:
    """A step that makes the map `target` of several maps."""

    name: str
    sources: tuple[int, ...]
    target: int


@frozen
class Add(_OfSeveral):
    """The sum of maps of one shape."""


@frozen
class Concat(_OfSeveral):
    """The channels of maps, one after another."""


@frozen
class Enlarge(_OfOne):
    """Each pixel as a block of `factor` rows and columns: nearest upsampling."""

    factor: Pair


@frozen
class Gather(_OfOne):
    """Rows and columns of a map by their numbers, each as often as wanted: borders, enlargement."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


@frozen
class Flatten(_OfOne):
    """The values of a map [C, H, W] one after the other, along the axes in this order."""

    order: tuple[int, int, int] = (0, 1, 2)


@frozen
class Table(_OfOne):
    """A function of each element."""

    function: Callable[[Float64s], Float64s]


@frozen
class Multiply(_OfSeveral):
    """The product of two maps; of the second one any axis may have one element for all."""


@frozen
class Constant:
    """A map that does not depend on the input: `values` [C, H, W]."""

    name: str
    target: int
    values: Float64s

    @property
    def sources(self) -> tuple[int, ...]:
        """The maps that it reads."""
        return ()


Step: TypeAlias = (
    Weighted | Pool | Clip | Add | Concat | Enlarge | Gather | Flatten | Table | Multiply | Constant
)  # fmt: skip


@frozen
class Graph:
    """Steps in the order of their execution; map 0 is the input."""

    shapes: tuple[Shape, ...]
    steps: tuple[Step, ...]
    output: int

    def users(self, tensor: int) -> list[Step]:
        """Return the steps that read a map."""
        return [step for step in self.steps if tensor in step.sources]

    def activated(self, tensor: int) -> int:
        """Return the map that stands for a result: behind clips that alone read it, the last."""
        match self.users(tensor):
            case [Clip(target=target)] if tensor != self.output:
                return self.activated(target)
            case _:
                return tensor

    @property
    def macs(self) -> int:
        """Products of weights and data of an inference."""
        pixels = {s.target: self.shapes[s.target][1] * self.shapes[s.target][2] for s in self.steps}
        return sum(pixels[s.target] * s.weights.size for s in self.steps if isinstance(s, Weighted))

    def transposed(self) -> Graph:
        """Return the same network for maps whose columns are stored before their rows."""
        steps = tuple(_transposed(step) for step in self.steps)
        return Graph(tuple((c, w, h) for c, h, w in self.shapes), steps, self.output)


def _transposed(step: Step) -> Step:
    match step:
        case Weighted():
            return replace(
                step, weights=step.weights.swapaxes(2, 3), stride=step.stride[::-1],
                padding=step.padding[::-1], spread=step.spread[::-1], extra=step.extra[::-1],
            )  # fmt: skip
        case Enlarge():
            return replace(step, factor=step.factor[::-1])
        case Pool():
            return replace(step, window=step.window[::-1], stride=step.stride[::-1],
                           padding=step.padding[::-1])  # fmt: skip
        case Gather():
            return replace(step, rows=step.columns, columns=step.rows)
        case Flatten():
            return replace(step, order=(0, 2, 1))
        case Constant():
            return replace(step, values=step.values.swapaxes(1, 2))
        case Clip() | Add() | Concat() | Table() | Multiply():
            return step
        case _:
            assert_never(step)


class GraphBuilder:
    """Collects the steps of a network; each method returns the number of the map that is made."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._shapes: list[Shape] = [_whole(shape)]
        self._steps: list[Step] = []

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a map."""
        return self._shapes[tensor]

    def convolution(
        self,
        name: str,
        source: int,
        weights: Float64s,
        bias: Float64s | None,
        stride: Pair = (1, 1),
        padding: Pair = (0, 0),
        dilation: Pair = (1, 1),
        groups: int = 1,
        spread: Pair = (1, 1),
        extra: Pair = (0, 0),
    ) -> int:
        """Add a convolution; `weights` [O, I/groups, rows, columns].

        Dilated kernels become larger ones with zeros.
        """
        _, rows, columns = self._shapes[source]
        filters = len(weights)
        weights = dilated(np.asarray(weights, np.float64), dilation)
        wide = ((n - 1) * s + 1 + e for n, s, e in zip((rows, columns), spread, extra, strict=True))
        size = [
            (n + 2 * p - k) // s + 1
            for n, p, k, s in zip(wide, padding, weights.shape[2:], stride, strict=True)
        ]
        target = self._new_map((filters, size[0], size[1]))
        offset = np.zeros(filters) if bias is None else np.asarray(bias, np.float64)
        self._steps.append(Weighted(name, source, target, weights, offset, stride, padding, groups,
                                    spread=spread, extra=extra))  # fmt: skip
        return target

    def linear(self, name: str, source: int, weights: Float64s, bias: Float64s | None) -> int:
        """Add a fully connected layer; `weights` [outputs, inputs], inputs in the order C, H, W."""
        kernels = np.asarray(weights, np.float64).reshape(len(weights), *self._shapes[source])
        offset = np.zeros(len(weights)) if bias is None else np.asarray(bias, np.float64)
        target = self._new_map((len(weights), 1, 1))
        self._steps.append(Weighted(name, source, target, kernels, offset, linear=True))
        return target

    def pool(
        self, name: str, source: int, average: bool, window: Pair, stride: Pair,
        padding: Pair = (0, 0), *, ceil: bool = False,
    ) -> int:  # fmt: skip
        """Add pooling."""
        shape, target = self._shapes[source], len(self._shapes)
        pool = Pool(name, source, target, average, window, stride, padding, ceil)
        self._steps.append(pool)
        return self._new_map((shape[0], *pool.size(shape)))

    def enlarge(self, name: str, source: int, factor: Pair) -> int:
        """Add nearest upsampling."""
        channels, rows, columns = self._shapes[source]
        target = self._new_map((channels, rows * factor[0], columns * factor[1]))
        self._steps.append(Enlarge(name, source, target, factor))
        return target

    def gather(self, name: str, source: int, rows: Sequence[int], columns: Sequence[int]) -> int:
        """Add rows and columns by their numbers."""
        target = self._new_map((self._shapes[source][0], len(rows), len(columns)))
        self._steps.append(Gather(name, source, target, tuple(rows), tuple(columns)))
        return target

    def flatten(self, name: str, source: int) -> int:
        """Add the values of a map in the order channel, row, column."""
        target = self._new_map((math.prod(self._shapes[source]), 1, 1))
        self._steps.append(Flatten(name, source, target))
        return target

    def table(self, name: str, source: int, function: Callable[[Float64s], Float64s]) -> int:
        """Add a function of each element."""
        target = self._new_map(self._shapes[source])
        self._steps.append(Table(name, source, target, function))
        return target

    def multiply(self, name: str, sources: Sequence[int]) -> int:
        """Add a product of a map and one that has as many elements, or one, along each axis."""
        target = self._new_map(self._shapes[sources[0]])
        self._steps.append(Multiply(name, (sources[0], sources[1]), target))
        return target

    def constant(self, name: str, values: Float64s) -> int:
        """Add a map [C, H, W] that does not depend on the input."""
        target = self._new_map(_whole(values.shape))
        self._steps.append(Constant(name, target, values))
        return target

    def clip(self, name: str, source: int, low: float, high: float) -> int:
        """Add a limit."""
        target = self._new_map(self._shapes[source])
        self._steps.append(Clip(name, source, target, low, high))
        return target

    def add(self, name: str, sources: Sequence[int]) -> int:
        """Add a sum."""
        target = self._new_map(self._shapes[sources[0]])
        self._steps.append(Add(name, tuple(sources), target))
        return target

    def concat(self, name: str, sources: Sequence[int]) -> int:
        """Add a concatenation."""
        _, rows, columns = self._shapes[sources[0]]
        channels = sum(self._shapes[source][0] for source in sources)
        target = self._new_map((channels, rows, columns))
        self._steps.append(Concat(name, tuple(sources), target))
        return target

    def finished(self, output: int) -> Graph:
        """Return the network with the steps that its result needs."""
        needed = {output}
        for step in reversed(self._steps):
            if step.target in needed:
                needed.update(step.sources)
        steps = tuple(step for step in self._steps if step.target in needed)
        return Graph(tuple(self._shapes), steps, output)

    def _new_map(self, shape: Shape) -> int:
        self._shapes.append(shape)
        return len(self._shapes) - 1


def _whole(shape: Sequence[int]) -> Shape:
    """Return (C, H, W) for an input of up to three axes."""
    padded = (*map(int, shape), 1, 1)[:3]
    return padded[0], padded[1], padded[2]
