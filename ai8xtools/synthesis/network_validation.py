"""Invariants of the resolved network.

Source: docs/network-description.md, "What follows from other keys"; docs/hardware/arithmetic.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ai8xtools.synthesis.invariants import InvariantError, Invariants

if TYPE_CHECKING:  # the network asks for its validation
    from ai8xtools.synthesis.network import Layer, Network

_of_network: Invariants[[Network]] = Invariants()
_of_layer: Invariants[[Layer, Network]] = Invariants()

_SAMPLE, _BUFFER = -1, -2
_LIMITS = {8: (-128, 127), 4: (-8, 7), 2: (-2, 1), 1: (-1, 0), -1: (-1, 1)}
_MAX_SHIFT = 15


def validate_network(network: Network) -> None:
    """Raise InvariantError with everything in a checked network that contradicts itself."""
    contradictions = list(_of_network.violations(network))
    if not contradictions:  # else layers may not be found
        for layer in network.layers:
            contradictions += [f"{layer}: {text}" for text in _of_layer.violations(layer, network)]
    if contradictions:
        raise InvariantError("\n".join(contradictions))


@_of_network
def layers_are_numbered(network: Network) -> Iterator[str]:
    """Indices of configured layers follow each other."""
    indices = [layer.index for layer in network.layers]
    if not indices or indices != list(range(indices[0], indices[0] + len(indices))):
        yield f"the layers have the numbers {indices}"


@_of_network
def order_names_layers_once(network: Network) -> Iterator[str]:
    """What is executed and simulated are configured layers, each once."""
    indices = {layer.index for layer in network.layers}
    for what, order in (("executed", network.order), ("simulated", network.simulated)):
        if not order or len(set(order)) != len(order) or not set(order) <= indices:
            yield f"{what} are the layers {list(order)}"


@_of_network
def sample_is_an_image_of_bytes(network: Network) -> Iterator[str]:
    """The sample is int64 [channel, row, column] in 8 bits."""
    data = network.sample
    if data.ndim != 3 or data.dtype != np.int64 or not data.size:
        yield f"the sample is {data.dtype}{list(data.shape)}"
    elif data.min() < -128 or data.max() > 127:
        yield f"the sample reaches from {data.min()} to {data.max()}"


@_of_network
def names_are_different(network: Network) -> Iterator[str]:
    """A name means one layer."""
    names = [layer.name.lower() for layer in network.layers if layer.name]
    if len(set(names)) != len(names):
        yield f"the layers have the names {names}"


@_of_layer
def execution_goes_on_in_order(layer: Layer, network: Network) -> Iterator[str]:
    """`next_layer` is the one that follows in the order of execution."""
    if layer.index not in network.order:
        return
    position = network.order.index(layer.index) + 1
    following = network.order[position] if position < len(network.order) else None
    if layer.next_layer != following:
        yield f"goes on with {layer.next_layer}, the order with {following}"


@_of_layer
def sources_are_there_before(layer: Layer, network: Network) -> Iterator[str]:
    """A layer reads the sample, the rolling buffer, or layers executed before it."""
    if layer.sources is None or layer.index not in network.order:
        return
    before = network.order[: network.order.index(layer.index)]
    available = {_SAMPLE, *before, *([_BUFFER] if network.buffer is not None else [])}
    if not layer.sources or not set(layer.sources) <= available:
        yield f"reads {list(layer.sources)}, there are {sorted(available)}"


@_of_layer
def values_read_are_those_written(layer: Layer, network: Network) -> Iterator[str]:
    """Operands, channels and pixels of the input are as many as the sources have."""
    if layer.index not in network.order or network.reshapes_inputs:
        return
    previous = network.predecessor(layer)
    sources = layer.sources or (_SAMPLE if previous is None else previous.index,)
    if _BUFFER in sources or not set(sources) <= {_SAMPLE, *network.order}:
        return
    written = 0
    for source in sources:
        shape = network.sample.shape if source == _SAMPLE else _shape(network.layer(source))
        written += shape[0] * (shape[1] - sum(layer.in_crop)) * shape[2]
    read = layer.operands * layer.in_channels * layer.in_dim[0] * layer.in_dim[1]
    if read != written:
        yield f"reads {read} values, its sources have {written}"


def _shape(layer: Layer) -> tuple[int, int, int]:
    return (layer.out_channels, *layer.out_dim)


@_of_layer
def pooling_leaves_its_size(layer: Layer, _: Network) -> Iterator[str]:
    """The pooled size follows from input, window, stride and dilation."""
    pooling = layer.pooling
    rows, columns = (
        (length - (window - 1) * dilation - 1) // stride + 1
        for length, window, stride, dilation in zip(
            layer.in_dim, pooling.window, pooling.stride, pooling.dilation, strict=True
        )
    )
    if layer.pooled_dim != (rows, columns) or min(layer.pooled_dim) < 1:
        yield f"pooling makes {layer.pooled_dim} of {layer.in_dim}, expected {(rows, columns)}"


@_of_layer
def operator_leaves_its_size(layer: Layer, _: Network) -> Iterator[str]:
    """The output size follows from the pooled size, kernel, padding, stride and dilation."""
    image = (1, 1) if layer.flatten else layer.pooled_dim
    reach = [layer.dilation * (taps - 1) for taps in layer.kernel]
    if layer.operator == "conv1d":
        reach[1] = 0
    if layer.operator == "convtranspose2d":
        rows, columns = (
            s * (n - 1) - 2 * p + r + layer.output_pad + 1
            for n, p, r, s in zip(image, layer.pad, reach, layer.stride, strict=True)
        )
    else:
        rows, columns = (
            (n + 2 * p - r - 1) // s + 1
            for n, p, r, s in zip(image, layer.pad, reach, layer.stride, strict=True)
        )
    if layer.out_dim != (rows, columns) or min(layer.out_dim) < 1:
        yield f"the operator makes {layer.out_dim} of {image}, expected {(rows, columns)}"


@_of_layer
def operands_are_combined(layer: Layer, _: Network) -> Iterator[str]:
    """Several operands have a combination, a single one has none."""
    if (layer.operands > 1) != (layer.combination is not None) or not 1 <= layer.operands <= 16:
        yield f"{layer.operands} operands, combined by {layer.combination}"


@_of_layer
def weights_have_the_shape_of_the_operator(layer: Layer, _: Network) -> Iterator[str]:
    """[out, in/groups, rows, columns]; none without an operator, or if kernels are bypassed."""
    expected = layer.operator != "passthrough" and not layer.bypass
    if (layer.weights is not None) != expected:
        yield f"weights are {'missing' if expected else 'there'} for {layer.operator}"
    elif layer.weights is not None:
        ins = layer.in_channels * (
            layer.pooled_dim[0] * layer.pooled_dim[1] if layer.flatten else 1
        )
        shape = (layer.out_channels, ins // layer.groups, *layer.kernel)
        if layer.weights.shape != shape or layer.weights.dtype != np.int8:
            yield f"weights are {layer.weights.dtype}{list(layer.weights.shape)}, not {list(shape)}"


@_of_layer
def weights_fit_their_width(layer: Layer, _: Network) -> Iterator[str]:
    """Two's complement of 8, 4, 2 or 1 bits, or -1 and +1."""
    if layer.weights is None:
        if layer.weight_bits not in (0, *_LIMITS):
            yield f"{layer.weight_bits} bits"
        return
    low, high = _LIMITS.get(layer.weight_bits, (0, 0))
    binary = layer.weight_bits == -1
    outside = layer.weights.min() < low or layer.weights.max() > high
    if outside or (binary and not np.all(layer.weights)):
        yield (
            f"weights from {layer.weights.min()} to {layer.weights.max()} "
            f"in {layer.weight_bits} bits"
        )


@_of_layer
def bias_is_one_byte_for_each_output(layer: Layer, _: Network) -> Iterator[str]:
    """int64 [out] in 8 bits, not all zero; only where there are weights."""
    bias = layer.bias
    if bias is None:
        return
    fits = bias.shape == (layer.out_channels,) and bias.dtype == np.int64
    if layer.weights is None or not fits:
        yield f"a bias {bias.dtype}{list(bias.shape)} for {layer.out_channels} outputs"
    elif bias.min() < -128 or bias.max() > 127 or not bias.any():
        yield f"the bias reaches from {bias.min()} to {bias.max()}"


@_of_layer
def result_fits_its_registers(layer: Layer, _: Network) -> Iterator[str]:
    """The shift includes the implicit part; data that passes through is left as it is."""
    if abs(layer.shift) > _MAX_SHIFT or layer.output_width not in (8, 32):
        yield f"shift {layer.shift}, {layer.output_width} bits of output"
    changed = layer.shift, layer.output_width - 8, layer.activation, *layer.pad
    if layer.operator == "passthrough" and any(changed):
        yield f"data that passes through is changed: {changed}"
