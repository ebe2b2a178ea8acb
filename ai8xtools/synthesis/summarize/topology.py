"""What the name and the time-out of an RTL simulation test are made of.

Source: docs/rtl.md, "Files" and "Time-out and list of tests".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.place import Stream


def topology(network: MappedNetwork) -> str:
    """Return the layers from the first executed one on, in short: `-1x28x28b_0x0s1p1m60_relu`."""
    used = (layer for layer in network.layers if layer.index >= network.first.index)
    return "".join(f"-{_layer(layer)}" for layer in used)


def _layer(layer: MappedLayer) -> str:
    flat = layer.operator.one_dimensional
    pooling, window = layer.pooling, (0, 0)
    kind = ""
    if pooling.active:
        kind, window = "avg" if pooling.average else "max", pooling.window
    dim = str(layer.in_dim[0]) if flat else "{}x{}".format(*layer.in_dim)
    size = str(window[0]) if flat else "{}x{}".format(*window)
    activation = f"_{layer.activation.value.lower()}" if layer.activation else ""
    return (
        f"{layer.in_channels}x{dim}{'b' if layer.channels_first else 'l'}"
        f"{'f' if layer.flatten else ''}_{kind}{size}s{pooling.stride[0]}p{layer.pad[0]}"
        f"m{layer.out_channels}{activation}"
    )


def stream_ratio(network: MappedNetwork, streams: Mapping[int, Stream]) -> float:
    """Return by how much streaming layers stretch the accesses to the FIFOs; 1 without any."""
    if not network.input_port.is_fifo:
        return 1.0
    ratio = step = 1.0
    for index, stream in list(streams.items())[1:]:
        layer = network.layer(index)
        rows, columns = layer.hardware.in_dim
        if stream.delta1:
            step = 1 / stream.delta1
        if stream.delta2:
            step *= stream.delta2 / rows
        if stream.start:
            words = rows * columns * layer.in_passes
            step = (stream.start + step * (words - stream.start)) / words
        ratio *= step
    return ratio
