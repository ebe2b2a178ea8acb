"""Computing the network of a container with integers, exactly as the C reader does.

Source: docs/container.md, "Arithmetic".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial, reduce
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.integers import kernels
from ai8xtools.integers.execution import Node, execute
from ai8xtools.integers.kernels import Integers as Int64
from ai8xtools.integers.kernels import Windows, rounded_shift
from ai8xtools.quantization.lowbit import STORED, packed_inputs
from ai8xtools.quantization.lowbit import unpack as unpack_codes
from ai8xtools.software.container import programs
from ai8xtools.software.container.cipher import deciphered
from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.records import (
    NONE,
    ROUNDED,
    Container,
    Follow,
    LayerRecord,
    Op,
    Tensor,
)
from ai8xtools.software.container.soundness import check_executable, network_inputs

_MOST_VALUES = 1 << 27
"""Of a tensor: a file of a few bytes can state four thousand million."""


def run(container: Container, values: NDArray[np.integer], key: bytes | None = None) -> Int64:
    """Return the output [row, column, channel] for an input of the same order.

    Raises ContainerError: what `check_executable` raises; key, if it is encrypted and there is
    none; input, if the values are none of the input tensor.
    """
    check_executable(container)
    return _run(container, clear_data(container, key), values)


def run_all(container: Container, values: NDArray[np.integer]) -> dict[int, Int64]:
    """Return all activations by number; raises as `run`, for a container that is not encrypted."""
    check_executable(container)
    return _run_all(container, clear_data(container, None), values)


def verify_vectors(container: Container, key: bytes | None = None) -> int:
    """Run the test vectors; return their number. Raises ContainerError "vectors" on a difference.

    For an encrypted container this is the only way to tell that a key is wrong.
    """
    check_executable(container)
    if container.vectors is None:
        return 0
    data = clear_data(container, key)
    input_tensor = container.tensors[network_inputs(container)[0]]
    output_tensor = container.tensors[container.layers[-1].output]
    pairs = zip(container.vectors.inputs, container.vectors.outputs, strict=True)
    for number, (sample, expected) in enumerate(pairs):
        if (len(sample), len(expected)) != (input_tensor.size_bytes, output_tensor.size_bytes):
            raise ContainerError("vectors", "their sizes are not those of input and output")
        result = _run(container, data, values_of(input_tensor, sample))
        if not np.array_equal(result, values_of(output_tensor, expected)):
            raise ContainerError("vectors", f"output {number} is not the one that is stored")
    return len(container.vectors.inputs)


def values_of(tensor: Tensor, stored: bytes) -> Int64:
    """Return the values of an activation [row, column, channel]."""
    values = np.frombuffer(stored, tensor.element.dtype).astype(np.int64)
    return values.reshape(tensor.shape)


def bytes_of(tensor: Tensor, values: NDArray[np.integer]) -> bytes:
    """Return the stored bytes of the values of an activation; the inverse of `values_of`."""
    return values.astype(tensor.element.dtype).tobytes()


def clear_data(container: Container, key: bytes | None) -> bytes:
    """Return the data section, decrypted; raises ContainerError "key" where one is missing."""
    if not container.encrypted:
        return container.data
    if key is None:
        raise ContainerError("key", "the data are encrypted")
    return deciphered(container.data, key, container.header.nonce)


def _run(container: Container, data: bytes, values: NDArray[np.integer]) -> Int64:
    output = container.layers[-1].output
    return _run_all(container, data, values, (output,))[output]


def _run_all(
    container: Container,
    data: bytes,
    values: NDArray[np.integer],
    wanted: Collection[int] | None = None,
) -> dict[int, Int64]:
    largest = max(container.tensors[layer.output].elements for layer in container.layers)
    if largest > _MOST_VALUES:
        raise ContainerError("memory", f"a tensor of {largest:,} values")
    (source,) = network_inputs(container)
    tensor = container.tensors[source]
    low, high = _limits(tensor)
    if values.shape != tensor.shape or values.min() < low or values.max() > high:
        raise ContainerError("input", f"the network takes {tensor.shape} of {low} to {high}")
    nodes = (
        Node(layer.output, container.inputs_of(layer), partial(_computed, container, data, layer))
        for layer in container.layers
    )
    return execute(nodes, {source: values.astype(np.int64)}, wanted)


def _computed(
    container: Container, data: bytes, layer: LayerRecord, inputs: Sequence[Int64]
) -> Int64:
    """Return the output of a layer."""
    output = container.tensors[layer.output]
    first, *others = inputs
    match op := Op(layer.op):
        case Op.CONV | Op.DEPTHWISE | Op.FC | Op.CONV_TRANSPOSED:
            total = _shifted(_summed(container, data, layer, first), layer.out_shift, output)
        case Op.MAXPOOL:
            total = _pixels(kernels.maxima(_planes(first), _windows(layer, output)))
        case Op.AVGPOOL:
            rounds = bool(layer.activation & ROUNDED)
            means = kernels.averages(_planes(first), _windows(layer, output), rounds=rounds)
            total = _pixels(means)
        case Op.ADD:
            total = reduce(np.add, others, first)
        case Op.SUB:
            total = reduce(np.subtract, others, first)
        case Op.XOR:
            total = reduce(np.bitwise_xor, others, first)
        case Op.OR:
            total = reduce(np.bitwise_or, others, first)
        case Op.CONCAT:
            total = np.concatenate([first, *others], axis=2)
        case Op.COPY:
            total = first.reshape(output.shape)
        case Op.SOFTMAX:
            total = _softmax(first)
        case Op.ELEMENTS:
            pool = np.zeros(0, np.int64)
            if layer.weights != NONE:
                pool = constant_values(container, data, container.tensors[layer.weights]).ravel()
            program = programs.program_of(layer, container)
            assert program is not None
            total = programs.value_of(program, inputs, pool, output.shape)
        case Op.GATHER:
            total = _gathered(container, layer, inputs, output)
        case _:
            assert_never(op)
    return _stored(total, layer, output)


def _limits(tensor: Tensor) -> tuple[int, int]:
    half = 1 << tensor.element.bits - 1
    return -half, half - 1


def _stored(total: Int64, layer: LayerRecord, output: Tensor) -> Int64:
    """Limit values to the type of the output, and apply the activation."""
    low, high = _limits(output)
    match follow := Follow(layer.follow):
        case Follow.NOTHING:
            return total.clip(low, high)
        case Follow.RELU:
            return total.clip(0, high)
        case Follow.ABS:
            return np.abs(total).clip(0, high)
        case Follow.SHIFT_NORM:
            return _normalized(total)
        case _:
            assert_never(follow)


def _shifted(total: Int64, shift: int, output: Tensor) -> Int64:
    """Shift to the right and round; to the left after limiting."""
    if shift >= 0:
        return rounded_shift(total, shift)
    return total.clip(*_limits(output)) << -shift


def _summed(container: Container, data: bytes, layer: LayerRecord, data_in: Int64) -> Int64:
    """Return sums of products times D, and biases."""
    filters = constant_values(container, data, container.tensors[layer.weights])
    total = _products(layer, data_in, filters, container.tensors[layer.output]) * layer.factor
    if layer.bias == NONE:
        return total
    values = constant_values(container, data, container.tensors[layer.bias])
    total += values.reshape(-1) << layer.bias_shift
    return total


def _products(layer: LayerRecord, data: Int64, filters: Int64, output: Tensor) -> Int64:
    """Return the sums [row, column, filter] for filters [filter, row, column, channel]."""
    assert layer.sums is not None
    if layer.sums.full:
        vectors = data.reshape(1, -1), filters.reshape(len(filters), -1)
        return kernels.multiplied(*vectors).reshape(output.shape)
    weights = filters.transpose(0, 3, 1, 2)
    windows = _windows(layer, output, transposed=layer.sums.transposed)
    return _pixels(kernels.convolved(_planes(data)[None], weights, windows, layer.groups)[0])


def _windows(layer: LayerRecord, output: Tensor, *, transposed: bool = False) -> Windows:
    stride, spread = ((1, 1), layer.stride) if transposed else (layer.stride, (1, 1))
    size = output.rows, output.columns
    return Windows(size, layer.kernel, stride, layer.pad, layer.dilation, spread)


def _planes(values: Int64) -> Int64:
    """Return a map [channel, row, column] of [row, column, channel]."""
    return values.transpose(2, 0, 1)


def _pixels(planes: Int64) -> Int64:
    """Return a map [row, column, channel] of [channel, row, column]."""
    return planes.transpose(1, 2, 0)


def _section(container: Container, data: bytes, tensor: Tensor) -> bytes:
    start = tensor.data - container.header.data
    return data[start : start + tensor.size_bytes]


def constant_values(container: Container, data: bytes, tensor: Tensor) -> Int64:
    """Return weights or biases [count, row, column, channel] from the clear data section.

    Packed ones are the integers for which they stand.
    """
    stored = _section(container, data, tensor)
    shape = (tensor.count, *tensor.shape)
    if not tensor.packed:
        kind = tensor.element.dtype
        return np.frombuffer(stored, kind).astype(np.int64).reshape(shape)
    encoding = STORED[tensor.encoding]
    inputs = tensor.elements // tensor.count
    word = "<u2" if encoding.name == "Ternary" else "<u4"
    codes = unpack_codes(np.frombuffer(stored, word), packed_inputs(inputs, encoding), encoding)
    values = np.array(encoding.values, np.int64)
    constants: Int64 = values[codes[:, :inputs]].reshape(shape)
    return constants


def _gathered(
    container: Container, layer: LayerRecord, inputs: Sequence[Int64], output: Tensor
) -> Int64:
    """Return runs of operands, and the value that stands where none leads."""
    found = programs.pieces_of(layer, container)
    assert found is not None
    fill, pieces = found
    result = np.full(output.elements, fill, np.int64)
    for one in pieces:
        runs, places = np.arange(one.count)[:, None], np.arange(one.length)
        data = inputs[one.source].ravel()
        result[one.to_start + runs * one.to_step + places] = data[
            one.from_start + runs * one.from_step + places
        ]
    return result.reshape(output.shape)


def _normalized(total: Int64) -> Int64:
    """Shift sums so that the greatest has 7 bits; what is negative becomes 0."""
    shift = max(0, int(total.max()).bit_length() - 7) if total.max() > 0 else 0
    limited: Int64 = np.minimum(rounded_shift(np.maximum(total, 0), shift), 127)
    return limited


def _softmax(values: Int64) -> Int64:
    """Return shares of 128 of 2 to the power of values, as `arm_softmax_q7` computes them."""
    base = int(values.max()) - 8
    total = int((1 << (values - base).clip(0, 7)).sum())
    shares: Int64 = ((1 << 20) // total) >> (13 + base - values).clip(0, 31)
    return shares
