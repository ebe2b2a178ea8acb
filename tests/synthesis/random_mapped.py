"""Random layers with a random layout, made as values: nothing is parsed, resolved or checked.

Thousands in a second, and of kinds that a whole network seldom has. What a chip refuses on its own
(pooling of flattened layers, dilated pooling on MAX78000, ...) is not drawn; whether data fits or
collides is not asked.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Activation, Combination, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.place import BiasRange, KernelMemory, KernelRange, Placement
from device import MAX78002, Chip

CHANNELS = (1, 2, 3, 4, 5, 8, 16, 20, 33, 64, 66, 100, 128, 130, 192, 200)


def share(channels: int) -> int:
    """Return the processors of a pass."""
    count = -(-channels // 64)
    return channels if count == 1 else -(-channels // (4 * count)) * 4


def random_network(rng: Random, chip: Chip, *, streams: bool = False) -> MappedNetwork:
    """Return a mapped network of a few layers that have little to do with each other."""
    count = rng.randint(1, 4)
    port = rng.choice([*InputPort, InputPort.MEMORY, InputPort.FIFO])
    streaming = rng.randint(0, count) if streams or rng.random() < 0.6 else 0
    start = 0 if streaming or port.is_fifo or rng.random() < 0.7 else rng.randrange(count)
    order = tuple(range(start, count))
    if not streaming and rng.random() < 0.3:
        order = (start, *(i for i in range(start + 1, count) if rng.random() < 0.6))
    layers, layouts = [], {}
    for index in range(start, count):
        layer, layout = _layer(rng, chip, index, index < streaming, first=index == start, port=port)
        behind = order[order.index(index) + 1 :] if index in order else (index + 1,)
        layer["next_layer"] = behind[0] if behind else None
        if layer["next_layer"] is not None and rng.random() < 0.2:
            layout["snoop_layer"] = rng.randrange(start, count)
        layers.append(Layer(**layer))
        layouts[index] = LayerLayout(**layout)
    network = Network(
        layers=tuple(layers),
        order=order,
        simulated=order,
        sample=np.zeros((layers[0].in_channels, *layers[0].in_dim), np.int64),
    )
    return map_network(network, Layout(layers=layouts, input_port=port), chip)


def _mask(rng: Random, count: int) -> int:
    """Neighbours as a rule, else at equal or any distances."""
    kind = rng.random()
    if kind < 0.7 or count > 20:
        return (1 << count) - 1 << rng.choice([0, rng.randint(0, min(15, 64 - count)), 64 - count])
    if kind < 0.85:
        return sum(1 << 3 * i for i in range(count)) << rng.randint(0, 3)
    return sum(1 << p for p in rng.sample(range(64), count))


def _layer(
    rng: Random, chip: Chip, index: int, streaming: bool, *, first: bool, port: InputPort
) -> tuple[dict[str, Any], dict[str, Any]]:
    newer = chip is MAX78002
    kinds = [Operator.CONV2D] * 3 + [Operator.CONVTRANSPOSE2D, Operator.CONV1D, Operator.NONE]
    kinds += [] if streaming else [Operator.LINEAR, Operator.NONE]
    operator = rng.choice(kinds)
    in_channels, out_channels = rng.choice(CHANNELS), rng.choice(CHANNELS)
    quad = first and port.feeds_all_groups
    processors = _mask(rng, share(in_channels))
    if quad:
        operator, in_channels, out_channels = Operator.CONV2D, rng.randint(1, 4), 4
        processors = sum((1 << in_channels) - 1 << 16 * g for g in range(4))
    flatten = operator is Operator.LINEAR and rng.random() < 0.7
    layer: dict[str, Any] = {"index": index, "operator": operator, "in_channels": in_channels}
    side = 6 if flatten else 24
    dim = (rng.randint(3, side), 1 if operator is Operator.CONV1D else rng.randint(3, side))
    layer |= _operands(rng, streaming or quad or flatten)
    passing = operator is Operator.NONE
    depthwise = newer and operator.convolves and not quad and rng.random() < 0.25
    if passing or depthwise:
        out_channels = in_channels
    layer |= _kernel(rng, operator, folds=not streaming and not (first and port.is_fifo))
    layer |= {"in_dim": dim, "flatten": flatten, "groups": in_channels if depthwise else 1}
    depthwise = layer["groups"] > 1
    plain = layer["dilation"] > 1 or flatten or rng.random() < 0.4
    pooling = Pooling() if plain else _pooling(rng, newer, dim)
    layer["pooling"] = pooling
    layer["pooled_dim"] = tuple(
        (n - (w - 1) * d - 1) // s + 1
        for n, w, d, s in zip(
            dim, pooling.window, pooling.dilation, pooling.stride, strict=True
        )
    )  # fmt: skip
    layer |= {"out_dim": (rng.randint(1, 9), rng.randint(1, 9)), "out_channels": out_channels}
    if not passing:
        layer |= {
            "activation": rng.choice([None, *Activation]),
            "weight_bits": rng.choice([8, 4, 2, 1, *([-1] if newer else [])]),
            "shift": rng.randint(-15, 15),
            "bypass": newer and not flatten and not quad and rng.random() < 0.1,
        }
    if layer.get("bypass"):
        layer["weight_bits"] = rng.choice([0, 8])
    layer["output_width"] = rng.choice([8, 8, 32])
    return layer, _layout(rng, layer, chip, processors, first=first, streaming=streaming)


def _layout(
    rng: Random, layer: dict[str, Any], chip: Chip, processors: int, *, first: bool, streaming: bool
) -> dict[str, Any]:
    newer, passing = chip is MAX78002, layer["operator"] is Operator.NONE
    outputs = _mask(rng, share(layer["out_channels"]))
    if passing or (layer["groups"] > 1 and rng.random() < 0.5):
        outputs = processors
    fours = newer and not (passing or layer["flatten"] or layer["groups"] > 1)
    ahead = newer and rng.random() < 0.3
    planar = first and layer["in_channels"] <= 16 and layer["operands"] == 1
    return {
        "processors": processors,
        "output_processors": outputs,
        "in_offset": 4 * rng.randrange(1 << 11),
        "out_offset": 4 * rng.randrange(128, 1 << 11),
        "write_gap": rng.choice([0, 0, 1, 3]),
        "read_gap": rng.choice([0, 0, 1, 2]) if newer and layer["in_channels"] <= 64 else 0,
        "channels_first": planar and rng.random() < 0.4,
        "streaming": streaming,
        "calcx4": fours and layer["out_channels"] % 4 == 0 and rng.random() < 0.3,
        "read_ahead": ahead,
        "tcalc": ahead and rng.random() < 0.5,
        "widened": layer["operator"] is Operator.CONV2D and streaming,
        "in_place": False,
    }


def _operands(rng: Random, single: bool) -> dict[str, Any]:
    if single or rng.random() < 0.6:
        return {"operands": 1}
    return {
        "operands": rng.choice([2, 2, 3, 4, 16]),
        "combination": rng.choice([*Combination]),
        "pool_first": rng.random() < 0.5,
    }


def _kernel(rng: Random, operator: Operator, *, folds: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"kernel": (1, 1), "pad": (0, 0), "dilation": 1}
    if operator is Operator.CONV1D:
        taps = rng.randint(1, 9)
        made |= {"kernel": (taps, 1), "pad": (rng.randint(0, 2), 0)}
        spread = rng.choice([1, 1, 2, 3, 5, 9])
        if (folds and taps <= 3) or (taps - 1) * spread < 9:
            made["dilation"] = spread
    elif operator is Operator.CONVTRANSPOSE2D:
        made |= {"kernel": (3, 3), "pad": (rng.randint(0, 2),) * 2, "output_pad": 1}
        made["stride"] = (2, 2)
    elif operator is Operator.CONV2D:
        small = rng.random() < 0.3
        made |= {"kernel": (1, 1) if small else (3, 3)}
        made["pad"] = (0, 0) if small else (rng.randint(0, 2),) * 2
    return made


def _pooling(rng: Random, newer: bool, dim: tuple[int, int]) -> Pooling:
    flat = dim[1] == 1
    spread = rng.choice([1, 1, 2]) if newer else 1
    most = [min(4, (n - 1) // spread + 1) for n in dim]
    window = rng.randint(1, most[0]), rng.randint(1, most[1])
    stride = rng.randint(1, 4)
    return Pooling(window, (stride, 1 if flat else stride), (spread, spread), rng.random() < 0.4)


def random_placement(rng: Random, network: MappedNetwork, streams: Any, facts: Any) -> Placement:
    """Return a placement of any first columns and biases, with kernel counts as given."""
    kernels, biases = {}, {}
    for layer in network.layers:
        stored = layer.operator.weighted and not layer.bypass
        count = facts[layer.index].kernel_count
        if network.input_port.feeds_all_groups and layer is network.first:
            count = -(-count // 4)
        first = 4 * rng.randrange(150) if stored else 0
        kernels[layer.index] = KernelRange(first, 1, count) if stored else KernelRange()
        if layer.operator.weighted and rng.random() < 0.7:
            holders = [g for g in network.groups_used if rng.random() < 0.5]
            if layer.groups == 1:
                holders = [rng.choice(network.groups_used)]
            offsets = tuple(4 * rng.randrange(30) if g in holders else None for g in range(4))
            biases[layer.index] = BiasRange(offsets)
    memory = KernelMemory(np.zeros((64, 1, 9), np.uint8), np.full((64, 1), -1, np.int16))
    nothing = tuple(np.zeros(0, np.uint8) for _ in range(4))
    return Placement(network.layout, kernels, memory, biases, nothing, (0,) * 4, streams, {})
