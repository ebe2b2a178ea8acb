"""Layers together with their layout, and the network of them on a chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Place
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.mapping.hardware import (
    Hardware,
    calcx4_order,
    hardware_for,
    quad_order,
    widened,
)
from ai8xtools.synthesis.network import DataBuffer, Layer, Network, Schedule, Tensor
from ai8xtools.values import frozen
from device import Chip
from device.channels import channels_per_pass, passes
from device.chip import GROUPS
from device.masks import bits, group_slice


@frozen(slots=False, kw_only=True)
class MappedLayer(Layer, LayerLayout):
    """A layer with its complete layout, and `hardware`: as the hardware runs it.

    Kernel, padding and weights of a widened layer are those of 3x3.
    """

    processors: int
    output_processors: int
    in_offset: int
    out_offset: int
    write_gap: int
    read_gap: int
    channels_first: bool
    streaming: bool
    calcx4: bool
    read_ahead: bool
    tcalc: bool
    widened: bool
    hardware: Hardware = field(repr=False)

    def __str__(self) -> str:
        return Layer.__str__(self)

    @property
    def broadcast(self) -> bool:
        """Depth-wise with outputs on the processors of the inputs: no data changes its place."""
        return self.depthwise and self.processors == self.output_processors

    @property
    def in_passes(self) -> int:
        """Input passes of at most 64 channels."""
        return passes(self.in_channels)

    @property
    def in_share(self) -> int:
        """Input channels of one pass."""
        return channels_per_pass(self.in_channels)

    @property
    def out_passes(self) -> int:
        """Output passes of at most 64 channels."""
        return passes(self.out_channels)

    @property
    def out_share(self) -> int:
        """Output channels of one pass."""
        return channels_per_pass(self.out_channels)

    @property
    def flat_passes(self) -> int:
        """Passes of a flattened layer less one (one for each pixel and pass), else 0."""
        rows, columns = self.pooled_dim
        return self.in_passes * rows * columns - 1 if self.flatten else 0

    @property
    def output_words_per_value(self) -> int:
        """Data words that one output lane takes: 1 for 8-bit, 4 for 32-bit outputs."""
        return self.output_width // 8


def map_layers(layers: Iterable[Layer], layout: Layout, first: int) -> tuple[MappedLayer, ...]:
    """Join layers with their complete layout; `first` is the index of the first executed one."""
    quad = layout.input_port.feeds_all_groups
    return tuple(
        _mapped(layer, layout.layers[layer.index], in_turn=quad and layer.index == first)
        for layer in layers
    )


def _mapped(layer: Layer, layout: LayerLayout, *, in_turn: bool) -> MappedLayer:
    """Join a layer and its layout; `in_turn`: its outputs are spread over all groups."""
    if layout.widened and layer.kernel == (1, 1):
        layer = widened(layer)
    hardware = hardware_for(layer, _reordered(layer, layout, in_turn))
    return MappedLayer(**vars(layer), **vars(layout), hardware=hardware)


def _reordered(layer: Layer, layout: LayerLayout, in_turn: bool) -> NDArray[np.int8] | None:
    """Order of the outputs in the kernel memory, where several are calculated at a time."""
    weights = layer.weights
    if weights is None:
        return None
    if layout.calcx4:
        return calcx4_order(weights)
    return quad_order(weights, abs(layer.weight_bits)) if in_turn else weights


@frozen(slots=False, kw_only=True)
class MappedNetwork(Schedule[MappedLayer]):
    """A network with its complete layout on a chip."""

    network: Network
    layout: Layout
    chip: Chip

    def validate(self) -> None:
        """Raise InvariantError where the layout contradicts the network."""
        from ai8xtools.synthesis.mapping.validation import validate_mapped  # only for debugging

        validate_mapped(self)

    @property
    def sample(self) -> Tensor:
        """The input: int64 [channel, row, column]."""
        return self.network.sample

    @property
    def buffer(self) -> DataBuffer | None:
        """The rolling buffer, if there is one."""
        return self.network.buffer

    @property
    def place(self) -> Place:
        """Where the description begins."""
        return self.network.place

    @property
    def input_port(self) -> InputPort:
        """How the sample reaches the first layer."""
        return self.layout.input_port

    @property
    def input_processors(self) -> int:
        """Processors that receive the sample: those of group 0 if all groups share it."""
        if self.input_port.feeds_all_groups:
            return group_slice(self.first.processors, 0)
        return self.first.processors

    @property
    def input_part_distance(self) -> int:
        """How far the parts of a split input stand apart, in bytes.

        A part holds its rows and those around it that the padding of the first layer covers.
        """
        rows = self.first.in_dim[0] // self.layout.input_parts + 2 * self.first.pad[0]
        unit = self.chip.processor_words
        return -(-rows * self.first.in_dim[1] // unit) * unit

    @property
    def streams(self) -> bool:
        """Whether some layer works on rows as they arrive."""
        return any(layer.streaming for layer in self.layers)

    @cached_property
    def groups_used(self) -> tuple[int, ...]:
        """Groups in which a layer or the final output has a processor, ascending."""
        used = self.final.output_processors
        for layer in self.layers:
            used |= layer.processors
        return tuple(g for g in range(GROUPS) if group_slice(used, g))

    def keeps_outputs_local(self, layer: MappedLayer) -> bool:
        """Whether outputs with uneven gaps stay in the memories of their own group.

        Whether the chip supports that is not known.
        """
        for group in self.groups_used:
            used = bits(group_slice(layer.output_processors, group))
            gaps = [b - a - 1 for a, b in pairwise(used)]
            if gaps and (min(gaps) != max(gaps) or (max(gaps) > 0 and not layer.has_weights)):
                return True
        return False


def map_network(network: Network, layout: Layout, chip: Chip) -> MappedNetwork:
    """Look at a network, its complete layout and a chip together."""
    return MappedNetwork(
        layers=map_layers(network.layers, layout, network.order[0]),
        order=network.order,
        simulated=network.simulated,
        network=network,
        layout=layout,
        chip=chip,
    )
