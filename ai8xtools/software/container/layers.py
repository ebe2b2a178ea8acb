"""Checks of the layer table: what a layer reads and writes, its geometry, its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.records import (
    LISTED,
    NONE,
    NOT_RESIDENT,
    Follow,
    Header,
    LayerRecord,
    Op,
    Tensor,
    inputs_of,
)

_SCHEMES = 4


def check_layers(
    tensors: Sequence[Tensor], layers: Sequence[LayerRecord], listed: tuple[int, ...], minor: int
) -> None:
    """Raise ContainerError "layer" unless a file of this minor version has such layers.

    A tensor that no layer writes is an input of the network; the others are written once, before
    they are read.
    """
    written: dict[int, int] = {}
    for number, layer in enumerate(layers):
        reason = _own_fields(layer, minor) or _ids(layer, tensors, listed)
        if reason is None and layer.output in written:
            reason = f"tensor {layer.output} is written twice"
        if reason is not None:
            raise ContainerError("layer", f"layer {number}: {reason}")
        written[layer.output] = number
    for number, layer in enumerate(layers):
        inputs = inputs_of(layer, listed)
        late = [one for one in inputs if written.get(one, -1) >= number]
        reason = f"it reads tensor {late[0]} before it is written" if late else None
        reason = reason or shapes(layer, tensors, inputs)
        if reason is not None:
            raise ContainerError("layer", f"layer {number}: {reason}")


def _own_fields(layer: LayerRecord, minor: int) -> str | None:
    """Return what is wrong with a layer by itself."""
    unknown = layer.op > max(Op) or Op(layer.op).minor > minor
    if unknown or layer.follow > max(Follow) or layer.scheme > _SCHEMES:
        return f"operation {layer.op}, activation {layer.activation}, scheme {layer.scheme}"
    if not all((*layer.kernel, *layer.stride, *layer.dilation, layer.groups)):
        return "kernel, stride, dilation or groups are 0"
    if layer.factor < 1:
        return f"the factor D is {layer.factor}"
    if layer.reserved or any(layer.rest):
        return "reserved bytes are not 0"
    return None


def _ids(layer: LayerRecord, tensors: Sequence[Tensor], listed: tuple[int, ...]) -> str | None:
    """Return what is wrong with the tensors that a layer names."""
    if layer.second_input != NONE and layer.second_input & LISTED:
        count = layer.second_input & ~LISTED
        if layer.first_input + count > len(listed):
            return f"{count} inputs from {layer.first_input} on leave the input list"
    inputs = inputs_of(layer, listed)
    used = (*inputs, *layer.constants, layer.output)
    if not inputs or any(number >= len(tensors) for number in used):
        return "a tensor that does not exist, or no input"
    if any(tensors[number].data for number in (*inputs, layer.output)):
        return "an input or output has data in the file"
    if not all(tensors[number].data for number in layer.constants):
        return "weights or bias have no data"
    return None


def shapes(layer: LayerRecord, tensors: Sequence[Tensor], inputs: Sequence[int]) -> str | None:
    """Return which shapes of a layer contradict each other; others are for `check_executable`."""
    source, output = tensors[inputs[0]], tensors[layer.output]
    match op := Op(layer.op):
        case Op.CONV | Op.DEPTHWISE:
            needed = (output.channels, *layer.kernel, source.channels // layer.groups)
            return _windows(layer, source, output) or _weights(layer, tensors, needed)
        case Op.FC:
            if output.rows * output.columns > 1:
                return f"its output has {output.rows}x{output.columns} pixels, not one"
            needed = (output.channels, 1, 1, source.rows * source.columns * source.channels)
            return _weights(layer, tensors, needed)
        case Op.MAXPOOL | Op.AVGPOOL:
            if output.channels != source.channels:
                return f"{output.channels} channels of {source.channels} are pooled"
            return _windows(layer, source, output)
        case Op.CONV_TRANSPOSED | Op.SOFTMAX | Op.COPY | Op.CONCAT:
            return None
        case Op.ADD | Op.SUB | Op.XOR | Op.OR | Op.ELEMENTS | Op.GATHER:
            return None
        case _:
            assert_never(op)


def _windows(layer: LayerRecord, source: Tensor, output: Tensor) -> str | None:
    """Return why windows do not make as many pixels as an output has."""
    rows, columns = (
        (length + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
        for length, kernel, pad, dilation, stride in zip(
            source.shape, layer.kernel, layer.pad, layer.dilation, layer.stride, strict=False
        )
    )
    if (rows, columns) == output.shape[:2]:
        return None
    return f"its output has {output.rows}x{output.columns} pixels, not {rows}x{columns}"


def _weights(
    layer: LayerRecord, tensors: Sequence[Tensor], needed: tuple[int, int, int, int]
) -> str | None:
    """Return why weights and biases do not suit the output."""
    if layer.weights == NONE:
        return "there are no weights"
    weights, channels = tensors[layer.weights], tensors[layer.output].channels
    if (weights.count, *weights.shape) != needed:
        return f"its weights are {(weights.count, *weights.shape)}, not {needed}"
    if layer.bias != NONE and tensors[layer.bias].channels != channels:
        return f"{tensors[layer.bias].channels} biases of {channels} channels"
    return None


def check_arena(header: Header, tensors: Sequence[Tensor], layers: Sequence[LayerRecord]) -> None:
    """Raise ContainerError "arena" if something leaves the arena."""
    areas = [
        (f"tensor {number}", tensor.arena, tensor.size_bytes)
        for number, tensor in enumerate(tensors)
        if tensor.arena != NOT_RESIDENT
    ]
    for number, layer in enumerate(layers):
        areas.append((f"the rows of layer {number}", layer.ring, layer.ring_bytes))
        areas.append((f"the weights of layer {number}", layer.staging, layer.staging_bytes))
    for name, start, size in areas:
        if size and start + size > header.arena_bytes:
            raise ContainerError(
                "arena", f"{name} end at {start + size}, the arena at {header.arena_bytes}"
            )
