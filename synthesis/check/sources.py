"""Constraints between a layer and those that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from synthesis.check.constraint import Finding, constraint
from synthesis.check.layout import mask_text
from synthesis.network import Layer, Network


def _sources(layer: Layer, network: Network) -> tuple[Layer, ...]:
    """Layers whose output is read (without the network's input)."""
    previous = network.predecessor(layer)
    indices = (
        layer.sources if layer.sources is not None else ((previous.index,) if previous else ())
    )
    return tuple(network.layer(i) for i in indices if i >= 0)


@constraint("E360")
def input_has_as_many_values_as_read(layer: Layer, network: Network) -> Iterator[Finding]:
    """What a layer reads must be exactly what was written: channels times pixels."""
    if layer is network.first or min(layer.sources or (0,)) < 0:
        return
    cropped = sum(layer.in_crop)
    found = sum(
        s.out_channels * (s.out_dim[0] - cropped) * s.out_dim[1] for s in _sources(layer, network)
    )
    pixels = layer.in_dim[0] * layer.in_dim[1]
    wanted = layer.operands * layer.in_channels * pixels
    if found != wanted:
        origin = " and ".join(
            f"{s} gives {s.out_channels}x{s.out_dim[0]}x{s.out_dim[1]}"
            for s in _sources(layer, network)
        )
        operands = f"{layer.operands} x " if layer.operands > 1 else ""
        yield Finding(
            f"{origin}, but the weights or keys of this layer need "
            f"{operands}{layer.in_channels}x{layer.in_dim[0]}x{layer.in_dim[1]}",
            ("in_sequences", "in_channels", "in_dim", "op"),
            "Check the order of the layers, their pooling, and that the checkpoint belongs to "
            "this network.",
        )


@constraint("E361")
def operands_agree(layer: Layer, network: Network) -> Iterator[Finding]:
    """Operands lie next to each other: same channels, same size, same processors."""
    if not layer.combination or layer.sources is None:
        return
    sources = _sources(layer, network)
    if len({s.out_channels for s in sources}) > 1:
        counts = ", ".join(str(s.out_channels) for s in sources)
        yield Finding(f"the operands have {counts} channels, they must be equal", "in_sequences")
    if len({s.out_dim for s in sources}) > 1:
        sizes = ", ".join(f"{s.out_dim[0]}x{s.out_dim[1]}" for s in sources)
        yield Finding(f"the operands have the sizes {sizes}, they must be equal", "in_sequences")
    if len({s.output_processors for s in sources}) > 1:
        maps = ", ".join(mask_text(s.output_processors) for s in sources)
        yield Finding(
            f"the operands are written to the processors {maps}, they must be equal",
            "in_sequences",
            "Give the layers that are combined the same output_processors.",
        )
