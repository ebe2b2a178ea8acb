"""What a layer computes rightly and could compute in less time or with less energy."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check.constraint import Finding, Kind, constraint, layer_constraint
from ai8xtools.synthesis.check.operators import MAX_OPERANDS_POOL_LAST
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Layer
from device import Chip


@constraint(
    "N332", Kind.HARDWARE, Severity.NOTICE, needs=Fact.SIZES, silenced_by="--ignore-energy-warning"
)
def channels_fill_their_instances(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Four channels share a memory access; unused lanes also cost energy."""
    if layer is not network.first and not layer.channels_first and layer.in_channels % 4:
        yield Finding(
            f"{layer.in_channels} input channels, a multiple of 4 would use less energy",
            ("in_channels", "processors"),
        )


@constraint("N333", Kind.HARDWARE, Severity.NOTICE, silenced_by="--ignore-energy-warning")
def first_layer_pools(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Pooling the input costs time that a smaller sample would save."""
    if layer is network.first and layer.pooling.reduces:
        yield Finding("the first layer pools its input", ("max_pool", "avg_pool", "pool_stride"))


@layer_constraint("W387", Kind.NETWORK, Severity.WARNING)
def flatten_of_a_single_pixel(layer: Layer, _: object) -> Iterator[Finding]:
    """Flattening turns pixels into channels; with a single pixel it changes nothing."""
    if layer.flatten and layer.pooled_dim == (1, 1):
        yield Finding("'flatten' of 1x1 pixels changes nothing", "flatten", "Remove the key.")


@constraint("N336", Kind.HARDWARE, Severity.NOTICE)
def passthrough_behind_passthrough(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Each layer that only moves data costs time; one layer can move, combine and pool."""
    previous = network.predecessor(layer)
    if previous is None or layer.has_weights or previous.has_weights:
        return
    if layer.sources not in (None, (previous.index,)) or layer.combination:
        return
    combines = previous.combination and previous.operands <= MAX_OPERANDS_POOL_LAST
    if combines and layer.pooling.active and not previous.pooling.reduces:
        yield Finding(
            f"{previous} combines and this one pools, one layer can do both",
            ("max_pool", "avg_pool"),
            f"Pool in {previous} and add pool_first: false to it.",
        )
    else:
        yield Finding(f"{previous} passes its data through too, one layer can do both", "op")


@layer_constraint("N388", Kind.HARDWARE, Severity.NOTICE)
def depthwise_moves_its_channels(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """Depth-wise layers are faster if they write their channels to the processors they read."""
    if layer.depthwise and not layer.broadcast:
        yield Finding(
            "a depth-wise layer whose outputs go to other processors, which is slower",
            ("output_processors", "groups"),
            "Give the next layer the same processors.",
        )
