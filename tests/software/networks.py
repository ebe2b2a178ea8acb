"""Random networks of every operator, made without a description: `random_network(seed)`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ai8xtools.synthesis.network import (
    NETWORK_INPUT,
    Activation,
    Combination,
    Layer,
    Network,
    Operator,
    Pooling,
    Size,
)

Shape = tuple[int, int, int]


class _Maker:
    """Layers as they grow; `shapes` are [channels, rows, columns] by layer."""

    def __init__(self, seed: int, rows: int | None = None) -> None:
        self.choice = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.one_dimensional = self.choice.random() < 0.25
        some = self.choice.randint(3, 14)
        rows = some if rows is None else rows
        columns = 1 if self.one_dimensional else self.choice.randint(2, 13)
        self.shapes: dict[int, Shape] = {NETWORK_INPUT: (self.choice.randint(1, 6), rows, columns)}
        self.layers: list[Layer] = []

    def network(self) -> Network:
        for _ in range(self.choice.randint(1, 7)):
            self.layers.append(self._layer(len(self.layers)))
        count = len(self.layers)
        if count > 2 and self.choice.random() < 0.2:
            number = self.choice.randrange(count - 1)
            marked = {number, count - 1}
            self.layers = [
                _changed(layer, is_output=layer.index in marked) for layer in self.layers
            ]
        sample = self.numbers.integers(-128, 128, self.shapes[NETWORK_INPUT])
        order = tuple(range(count))
        return Network(
            layers=tuple(self.layers), order=order, simulated=order, sample=sample.astype(np.int64)
        )

    def _layer(self, index: int) -> Layer:
        previous = index - 1 if index else NETWORK_INPUT
        kind = self.choice.random()
        same = [i for i, shape in self.shapes.items() if shape == self.shapes[previous]]
        image = [i for i, shape in self.shapes.items() if shape[1:] == self.shapes[previous][1:]]
        sources: tuple[int, ...] | None = None
        settings: dict[str, Any] = {}
        shape = self.shapes[previous]
        if kind < 0.25 and len(same) > 1:
            sources = tuple(self.choice.choice(same) for _ in range(self.choice.randint(2, 4)))
            settings = {
                "combination": self.choice.choice(list(Combination)),
                "operands": len(sources),
                "pool_first": self.choice.random() < 0.5,
            }
        elif kind < 0.45 and len(image) > 1:
            sources = tuple(self.choice.sample(image, 2))
            shape = (sum(self.shapes[s][0] for s in sources), *shape[1:])
        pooling, size = self._pooling(shape[1:])
        return self._made(index, shape, size, pooling, sources, settings)

    def _pooling(self, size: Size) -> tuple[Pooling, Size]:
        if self.choice.random() < 0.55:
            return Pooling(), size
        columns = 1 if size[1] == 1 else self.choice.randint(1, min(3, size[1]))
        window = (self.choice.randint(1, min(3, size[0])), columns)
        stride = (self.choice.randint(1, 3), 1 if size[1] == 1 else self.choice.randint(1, 3))
        dilation = (1, 1)
        if self.choice.random() < 0.15 and window[0] > 1 and size[0] > 2 * window[0]:
            dilation = (2, 1)
        average = self.choice.random() < 0.5 and window != (1, 1)
        reach = [(w - 1) * d for w, d in zip(window, dilation, strict=True)]
        made = [(n - r - 1) // s + 1 for n, r, s in zip(size, reach, stride, strict=True)]
        return Pooling(window, stride, dilation, average), (made[0], made[1])

    def _made(
        self,
        index: int,
        shape: Shape,
        size: Size,
        pooling: Pooling,
        sources: tuple[int, ...] | None,
        settings: dict[str, Any],
    ) -> Layer:
        operator = self._operator(size)
        if settings and self.choice.random() < 0.4:
            operator = Operator.NONE
        out, channels = self.choice.randint(1, 9), shape[0]
        kernel, pad, stride, output_pad, groups = (1, 1), (0, 0), (1, 1), 0, 1
        flatten, dilation = False, 1
        out_dim = size
        if operator is Operator.LINEAR:
            flatten, out_dim = True, (1, 1)
        elif operator is Operator.CONVTRANSPOSE2D:
            kernel, pad, stride, output_pad, out_dim = self._stretched(size)
        elif operator.convolves:
            kernel, pad, dilation, stride, out_dim = self._kernel(size, operator)
            if self.choice.random() < 0.3:
                groups, out = channels, channels * self.choice.randint(1, 2)
        weighted = operator.weighted
        inputs = channels * size[0] * size[1] if flatten else channels // groups
        out = out if weighted else channels
        bits = self.choice.choice((1, 2, 4, 8, 8, 8))
        low, high = -(1 << bits - 1), max((1 << bits - 1) - 1, 0)
        weights = self.numbers.integers(low, high + 1, (out, inputs, *kernel)).astype(np.int8)
        bias = self.numbers.integers(-128, 128, out) if self.choice.random() < 0.7 else None
        self.shapes[index] = (out, *out_dim)
        return Layer(
            index=index, operator=operator, in_channels=channels, out_channels=out,
            in_dim=shape[1:], pooling=pooling, pooled_dim=size, kernel=kernel, pad=pad,
            stride=stride, output_pad=output_pad, out_dim=out_dim, dilation=dilation,
            groups=groups, flatten=flatten, sources=sources,
            weight_bits=bits if weighted else 0, weights=weights if weighted else None,
            bias=bias if weighted else None,
            shift=self.choice.randint(-4, 9 - bits) if weighted else 0,
            activation=self.choice.choice((None, Activation.RELU, Activation.RELU, Activation.ABS)),
            **settings,
        )  # fmt: skip

    def _operator(self, size: Size) -> Operator:
        known = [Operator.NONE, Operator.LINEAR]
        if size[1] == 1:
            known += [Operator.CONV1D] * 6
        else:
            known += [Operator.CONV2D] * 8 + [Operator.CONVTRANSPOSE2D]
        return self.choice.choice(known)

    def _stretched(self, size: Size) -> tuple[Size, Size, Size, int, Size]:
        """Return kernel, padding, stride, output padding and size of a transposed convolution."""
        if self.choice.random() < 0.5:  # as the chips have it
            return (3, 3), (1, 1), (2, 2), 1, (2 * size[0], 2 * size[1])
        kernel = self.choice.randint(1, 4), self.choice.randint(1, 4)
        pad = self.choice.randint(0, kernel[0] - 1), self.choice.randint(0, kernel[1] - 1)
        stride = self.choice.randint(2, 3), self.choice.randint(1, 3)
        made = [
            (n - 1) * s - 2 * p + k for n, s, p, k in zip(size, stride, pad, kernel, strict=True)
        ]
        if min(made) < 1:
            return (3, 3), (1, 1), (2, 2), 1, (2 * size[0], 2 * size[1])
        return kernel, pad, stride, 0, (made[0], made[1])

    def _kernel(self, size: Size, operator: Operator) -> tuple[Size, Size, int, Size, Size]:
        dilation = self.choice.choice((1, 1, 1, 2))
        rows = self.choice.choice((1, 2, 3, 3, 5, 10))
        columns = 1 if operator is Operator.CONV1D else self.choice.choice((1, 2, 3, 3, 4))
        stride = (1, 1)
        if self.choice.random() < 0.4:
            stride = (
                self.choice.randint(1, 3),
                1 if operator is Operator.CONV1D else self.choice.randint(1, 3),
            )
        pad = (self.choice.randint(0, 2), 0 if operator is Operator.CONV1D else
               self.choice.randint(0, 2))  # fmt: skip
        made = [
            (n + 2 * p - dilation * (k - 1) - 1) // s + 1
            for n, p, k, s in zip(size, pad, (rows, columns), stride, strict=True)
        ]
        if min(made) < 1:
            return (1, 1), (0, 0), 1, (1, 1), size
        return (rows, columns), pad, dilation, stride, (made[0], made[1])


def _changed(layer: Layer, **settings: Any) -> Layer:
    from dataclasses import replace

    return replace(layer, **settings)


def random_network(seed: int, rows: int | None = None) -> Network:
    """Return a small network of random layers; the last may deliver 32 bits.

    Its input has so many rows (None: 3 to 14).
    """
    made = _Maker(seed, rows)
    network = made.network()
    last = network.layers[-1]
    if last.has_weights and last.activation is None and made.choice.random() < 0.5:
        layers = (*network.layers[:-1], _changed(last, output_width=32))
        network = _changed(network, layers=layers)
    return network
