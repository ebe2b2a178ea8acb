"""What a project has to deliver, according to its network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
GROUP = 4
"""Channels whose 32-bit values stand side by side, at most."""


class Output(Protocol):
    """A result that is delivered: its index, its size, and the bits of its values."""

    @property
    def index(self) -> int:
        """The number that it has among all results."""

    @property
    def output_width(self) -> int:
        """Bits of a value."""

    @property
    def out_channels(self) -> int:
        """Channels."""

    @property
    def out_dim(self) -> tuple[int, int]:
        """Rows and columns."""


class Expected(ABC):
    """What a project has to deliver. Results of inner layers are for explanations, if any."""

    name: str

    @property
    @abstractmethod
    def sample(self) -> Integers:
        """The sample, [channel, row, column]."""

    @property
    @abstractmethod
    def size(self) -> str:
        """How much it is, for people."""

    @property
    def certainty(self) -> str:
        """How improbable it is that a proof errs, for people."""
        return "below 2^-64"

    @property
    @abstractmethod
    def outputs(self) -> Sequence[Output]:
        """The results that are delivered, in this order."""

    @property
    @abstractmethod
    def inner(self) -> Sequence[Output]:
        """All results of which `outputs_for` tells."""

    @abstractmethod
    def outputs_for(self, image: Integers) -> Mapping[int, Integers]:
        """Return results, by index, for an input [channel, row, column]."""

    def result(
        self, outputs: Mapping[int, Integers], orders: Sequence[Integers]
    ) -> NDArray[np.uint8]:
        """Return the bytes that are delivered if these results have been computed."""
        return np.concatenate([
            outputs[layer.index].reshape(-1)[order].astype(f"<i{layer.output_width // 8}")
            .view(np.uint8)
            for layer, order in zip(self.outputs, orders, strict=True)
        ])  # fmt: skip

    def place(self, byte: int, orders: Sequence[Integers]) -> str:
        """Say of which value of which layer a byte of the result is."""
        for layer, order in zip(self.outputs, orders, strict=True):
            size = layer.output_width // 8
            if byte < size * len(order):
                rows, columns = layer.out_dim
                channel, pixel = divmod(int(order[byte // size]), rows * columns)
                row, column = divmod(pixel, columns)
                return f"{layer}, channel {channel}, row {row}, column {column}"
            byte -= size * len(order)
        return "behind the last value"


@frozen(slots=False)
class Reference(Expected):
    """A network as it is executed, whatever its known answer is made of."""

    name: str
    network: Network
    average_rounding: bool

    @classmethod
    def of(cls, name: str, network: Network, *, average_rounding: bool) -> Reference:
        """Return what a network delivers."""
        return cls(name, replace(network, simulated=network.order), average_rounding)

    @cached_property
    def outputs(self) -> tuple[Layer, ...]:
        """The layers whose outputs are delivered, in this order."""
        return self.network.outputs()

    @property
    def sample(self) -> Integers:
        """The sample, [channel, row, column]."""
        return self.network.sample

    @property
    def size(self) -> str:
        """How much it is, for people."""
        return f"{len(self.network.simulated)} layers"

    @property
    def inner(self) -> Sequence[Layer]:
        """All layers, in order."""
        return tuple(self.network.executed())

    @property
    def usual_orders(self) -> tuple[Integers, ...]:
        """In which order the values of each output are delivered if its channels begin in lane 0:
        those of 32 bits for each group of four channels pixel by pixel.
        Source: docs/generated-project.md, "The output".
        """
        orders: list[Integers] = []
        for layer in self.outputs:
            pixels = layer.out_dim[0] * layer.out_dim[1]
            numbers: Integers = np.arange(layer.out_channels * pixels).reshape(-1, pixels)
            groups = [numbers]
            if layer.output_width == 32:
                groups = [numbers[i : i + GROUP].T for i in range(0, len(numbers), GROUP)]
            orders.append(np.concatenate([group.reshape(-1) for group in groups]))
        return tuple(orders)

    def outputs_for(self, image: Integers) -> Mapping[int, Integers]:
        """Return what each layer computes, by index, for an input [channel, row, column]."""
        network = replace(self.network, sample=image)
        return simulate(network, average_rounding=self.average_rounding).outputs
