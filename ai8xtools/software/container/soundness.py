"""Checks before a container is executed: supported layers, sums that fit, sufficient memory.

A file can keep to the format and still ask for what no reader can do. The C reader refuses the same
under the same names, before it writes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import assert_never

from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.layers import shapes
from ai8xtools.software.container.programs import OPERANDS, why_no_expression, why_no_runs
from ai8xtools.software.container.records import (
    NONE,
    NOT_RESIDENT,
    Container,
    Flag,
    Follow,
    LayerRecord,
    Op,
    Order,
    Tensor,
    aligned,
)

LARGEST_SUM = 1 << 61
"""Sums times D and biases stay below it each, so that 64 bits hold all."""
LONGEST_SHIFT = 30
_PACKED_MAGNITUDE = 128
_POOLED = "pooling of another type, or of windows beside the data"
_LARGEST_ARENA = (1 << 32) - 1


def check_executable(container: Container) -> None:
    """Raise ContainerError: unsupported, overflow, overlap or memory."""
    if len(network_inputs(container)) != 1:
        count = len(network_inputs(container))
        raise ContainerError("unsupported", f"{count} tensors are inputs of the network, not 1")
    for number, layer in enumerate(container.layers):
        reason = _unsupported(layer, container)
        if reason is not None:
            raise ContainerError("unsupported", f"layer {number}: {reason}")
        if layer.sums and not _fits(layer, container):
            raise ContainerError("overflow", f"layer {number}: a sum can leave 64 bits")
    _check_lives(container)
    _check_places(container)
    if arena_bytes(container) > _LARGEST_ARENA:
        raise ContainerError("memory", f"an arena of {arena_bytes(container):,} bytes")


def network_inputs(container: Container) -> tuple[int, ...]:
    """Return the tensors that layers read and none writes."""
    outputs = {layer.output for layer in container.layers}
    read = {n: None for layer in container.layers for n in container.inputs_of(layer)}
    return tuple(number for number in read if number not in outputs)


def intermediates(container: Container) -> tuple[int, ...]:
    """Return the tensors that stand in the arena: all but the input, the output and constants."""
    outputs = {layer.output: None for layer in container.layers[:-1]}
    return tuple(outputs)


def planned(container: Container) -> bool:
    """Whether the file says where all tensors stand."""
    return bool(container.header.flags & Flag.PLAN) and all(
        container.tensors[number].arena != NOT_RESIDENT for number in intermediates(container)
    )


def staging_bytes(container: Container, layer: LayerRecord) -> int:
    """Return the bytes into which weights and biases of a layer are decrypted."""
    if not container.encrypted:
        return 0
    return sum(aligned(container.tensors[number].size_bytes) for number in layer.constants)


def staged(container: Container, layer: LayerRecord) -> bool:
    """Whether the plan of a file has room to decrypt the weights of a layer."""
    return planned(container) and staging_bytes(container, layer) <= layer.staging_bytes


def arena_bytes(container: Container) -> int:
    """Return the bytes that a reader needs: those of the plan, or one tensor after the other.

    Weights that the plan has no room for are decrypted behind them.
    """
    sizes = [aligned(container.tensors[number].size_bytes) for number in intermediates(container)]
    own = container.header.arena_bytes if planned(container) else sum(sizes)
    behind = max((staging_bytes(container, layer) for layer in container.layers
                  if not staged(container, layer)), default=0)  # fmt: skip
    return aligned(own) + behind if behind else own


def _unsupported(layer: LayerRecord, container: Container) -> str | None:
    """Return which feature of a layer this version of the reader does not support."""
    tensors = container.tensors
    inputs = [tensors[number] for number in container.inputs_of(layer)]
    output = tensors[layer.output]
    if any(not plain(tensor) for tensor in (*inputs, output)):
        return "data in another order than HWC, packed, or more than one image"
    match follow := Follow(layer.follow):
        case Follow.NOTHING | Follow.RELU | Follow.ABS:
            pass
        case Follow.SHIFT_NORM:
            full = layer.sums and layer.sums.full and output.element.bits == 8
            if not full or layer.bias_shift or layer.out_shift:
                return "ShiftNorm of what is no fully connected layer of 8 bits without shifts"
        case _:
            assert_never(follow)
    match op := Op(layer.op):
        case Op.CONV | Op.DEPTHWISE | Op.FC | Op.CONV_TRANSPOSED:
            return _unsupported_sums(layer, container, inputs, output)
        case Op.AVGPOOL if not output.narrow:
            return _POOLED
        case Op.MAXPOOL | Op.AVGPOOL:
            beside = any(
                pad and (dilation > 1 or 2 * pad > kernel)
                for pad, dilation, kernel in zip(
                    layer.pad, layer.dilation, layer.kernel, strict=True
                )
            )
            return _POOLED if beside or [one.type for one in inputs] != [output.type] else None
        case Op.SOFTMAX:
            pixel = output.element.bits == 8 and output.rows * output.columns == 1
            if pixel and [(one.type, one.shape) for one in inputs] == [(output.type, output.shape)]:
                return None
            return "softmax of more than one pixel, or not of 8 bits"
        case Op.COPY:
            moved = [one.elements for one in inputs] != [output.elements]
            return "a copy of another size" if moved else None
        case Op.ADD | Op.SUB | Op.XOR | Op.OR:
            same = all(one.shape == output.shape for one in inputs) and len(inputs) <= OPERANDS
            return None if same else "operands differ in shape, or are more than 16"
        case Op.CONCAT:
            channels = sum(one.channels for one in inputs)
            fits = all((*one.shape[:2], channels) == output.shape for one in inputs)
            return None if fits else "concatenated tensors do not make the output"
        case Op.ELEMENTS:
            return why_no_expression(layer, container)
        case Op.GATHER:
            return why_no_runs(layer, container)
        case _:
            assert_never(op)


def _unsupported_sums(
    layer: LayerRecord, container: Container, inputs: Sequence[Tensor], output: Tensor
) -> str | None:
    tensors, source, sums = container.tensors, inputs[0], layer.sums
    assert sums is not None
    if len(inputs) > 1 or not source.narrow or layer.weights == NONE:
        return "sums of 32-bit data, of several tensors, or without weights"
    weights = tensors[layer.weights]
    if not (weights.narrow or weights.packed):
        return "weights of this type"
    if not _orderly(weights, Order.CHW):
        return "weights in the order CHW"
    if layer.bias != NONE:
        bias = tensors[layer.bias]
        if bias.packed or bias.elements != output.channels:
            return "biases packed, or not one for each channel"
    if not 0 <= layer.bias_shift <= LONGEST_SHIFT or abs(layer.out_shift) > LONGEST_SHIFT:
        return f"shifts by {layer.bias_shift} and {layer.out_shift}"
    if not sums.full:
        if source.channels % layer.groups or output.channels % layer.groups:
            return "channels that groups do not divide"
        if sums.transposed:
            needed = (output.channels, *layer.kernel, source.channels // layer.groups)
            if (weights.count, *weights.shape) != needed or (
                layer.bias != NONE and tensors[layer.bias].channels != output.channels
            ):
                return "weights of another shape"
    return shapes(layer, tensors, [container.inputs_of(layer)[0]])


def plain(tensor: Tensor) -> bool:
    """Whether activations have the order that all kernels support."""
    return not tensor.packed and tensor.count == 1 and _orderly(tensor, Order.CHW)


def _orderly(tensor: Tensor, other: Order) -> bool:
    """Whether a tensor is not in another order; that of a single pixel or channel is any."""
    return tensor.order != other or tensor.rows * tensor.columns == 1 or tensor.channels == 1


def sum_limit(layer: LayerRecord, container: Container) -> int:
    """Return the largest magnitude that a sum of products can have."""
    weights = container.tensors[layer.weights]
    source = container.tensors[container.inputs_of(layer)[0]]
    taps = weights.rows * weights.columns * weights.channels
    largest = _PACKED_MAGNITUDE if weights.packed else 1 << weights.element.bits - 1
    return taps * largest << source.element.bits - 1


def _fits(layer: LayerRecord, container: Container) -> bool:
    return sum_limit(layer, container) <= LARGEST_SUM // layer.factor


def _check_lives(container: Container) -> None:
    """Raise unless tensors are used only between the layers that they state."""
    for number, layer in enumerate(container.layers):
        for used in (*container.inputs_of(layer), *layer.constants, layer.output):
            tensor = container.tensors[used]
            if not tensor.first <= number <= tensor.last:
                raise ContainerError(
                    "overlap",
                    f"layer {number} uses tensor {used}, which exists from layer {tensor.first} "
                    f"to {tensor.last}",
                )


def _check_places(container: Container) -> None:
    """Raise if tensors share bytes: constants in part, others that exist at the same time."""
    constants = sorted({(t.data, t.data + t.size_bytes) for t in container.tensors if t.data})
    for (_, end), (start, _) in pairwise(constants):
        if start < end:
            raise ContainerError("overlap", f"two tensors share the bytes at {start}")
    if not planned(container):
        return
    areas = [*_areas(container)]
    for one, other in combinations(areas, 2):
        at_once = one[3] <= other[4] and other[3] <= one[4]
        if at_once and one[1] < other[2] and other[1] < one[2]:
            raise ContainerError("overlap", f"{one[0]} and {other[0]} share bytes of the arena")


def _areas(container: Container) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the areas in the arena: name, start, end, first and last layer."""
    for number in intermediates(container):
        tensor = container.tensors[number]
        end = tensor.arena + tensor.size_bytes
        yield f"tensor {number}", tensor.arena, end, tensor.first, tensor.last
    for number, layer in enumerate(container.layers):
        needed = staging_bytes(container, layer)
        if needed and staged(container, layer):
            name = f"the weights of layer {number}"
            yield name, layer.staging, layer.staging + needed, number, number
