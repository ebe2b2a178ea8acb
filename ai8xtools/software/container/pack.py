"""Writing a container: from its parts, or tensor by tensor with a `Builder`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import fields, replace
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import SIGNED, TRITS, Encoding
from ai8xtools.quantization.lowbit import pack as pack_codes
from ai8xtools.software.container.cipher import NONCE_BYTES, deciphered
from ai8xtools.software.container.records import (
    ALIGNMENT,
    BODY_CRC_AT,
    HEADER,
    HEADER_BYTES,
    HEADER_CRC_AT,
    LAYER,
    LAYER_BYTES,
    LISTED,
    MAGIC,
    MAJOR,
    MINOR,
    NONE,
    NOT_RESIDENT,
    TENSOR,
    TENSOR_BYTES,
    VECTORS,
    Container,
    Element,
    Flag,
    Follow,
    Header,
    LayerRecord,
    Op,
    Order,
    Tensor,
    Vectors,
    aligned,
)
from ai8xtools.values import frozen


@frozen
class Seal:
    """What encrypts a data section: a key of 32 bytes, and a nonce of 12 that is used once."""

    key: bytes
    nonce: bytes


def pack(container: Container) -> bytes:
    """Return the bytes of a file; its offsets, sizes and checksums are computed anew.

    Of the header the flags, the arena and the nonce are taken, and the version.
    """
    tensor_table = HEADER_BYTES
    layer_table = aligned(tensor_table + TENSOR_BYTES * len(container.tensors))
    listed_at = layer_table + LAYER_BYTES * len(container.layers)
    data_at = aligned(listed_at + 2 * len(container.listed))
    moved = data_at - container.header.data
    body = b"".join([
        *(_tensor(tensor, moved) for tensor in container.tensors),
        *(_record(LAYER, layer) for layer in container.layers),
        _padded(b"".join(number.to_bytes(2, "little") for number in container.listed)),
        _padded(container.data),
        _vectors(container.vectors),
    ])  # fmt: skip
    header = replace(
        container.header,
        magic=MAGIC,
        total=HEADER_BYTES + len(body),
        tensors=len(container.tensors),
        layers=len(container.layers),
        tensor_table=tensor_table,
        layer_table=layer_table,
        data=data_at,
        data_bytes=aligned(len(container.data)),
    )
    return seal_checksums(_record(HEADER, header) + body)


def seal_checksums(blob: bytes) -> bytes:
    """Return a file with both checksums computed anew, that of the body first."""
    body_crc = zlib.crc32(blob[HEADER_BYTES:]).to_bytes(4, "little")
    head = blob[:BODY_CRC_AT] + body_crc + bytes(4) + blob[HEADER_CRC_AT + 4 : HEADER_BYTES]
    crc = zlib.crc32(head).to_bytes(4, "little")
    return head[:HEADER_CRC_AT] + crc + head[HEADER_CRC_AT + 4 :] + blob[HEADER_BYTES:]


def _record(form: Struct, value: Header | Tensor | LayerRecord) -> bytes:
    values = [getattr(value, field.name) for field in fields(value)]
    return form.pack(*values)


def _tensor(tensor: Tensor, moved: int) -> bytes:
    return _record(TENSOR, replace(tensor, data=tensor.data + moved) if tensor.data else tensor)


def _padded(section: bytes) -> bytes:
    return section.ljust(aligned(len(section)), b"\0")


def _vectors(vectors: Vectors | None) -> bytes:
    if vectors is None:
        return b""
    count = len(vectors.inputs)
    size_in = len(vectors.inputs[0]) if count else 0
    size_out = len(vectors.outputs[0]) if count else 0
    inputs, outputs = b"".join(vectors.inputs), b"".join(vectors.outputs)
    return VECTORS.pack(count, size_in, size_out, 0) + _padded(inputs) + _padded(outputs)


class Builder:
    """A container under construction: tensors and layers by number, in the order of execution.

    `listed` is the input list.
    """

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._layers: list[LayerRecord] = []
        self.listed: list[int] = []
        self._data = bytearray()

    def activation(self, kind: Element, shape: tuple[int, int, int], fraction: int = 0) -> int:
        """Add a tensor of rows x columns x channels; return its number."""
        elements = shape[0] * shape[1] * shape[2]
        size = elements * kind.bits // 8
        return self._add(Tensor(kind, Order.HWC, fraction, 0, *shape, 1, 0, size, NOT_RESIDENT,
                                0, 0))  # fmt: skip

    def weights(
        self, values: NDArray[np.integer], bits: int, fraction: int = 0, *, rows: bool = False
    ) -> int:
        """Add weights [filter, row, column, channel]; `rows`: fully connected.

        They have 16, 8, 4, 2 or 1 bits; those of 4 and fewer are packed.
        """
        if bits in SIGNED:
            encoding = SIGNED[bits]
            codes = values.reshape(len(values), -1).astype(np.int64) & ((1 << bits) - 1)
            words = pack_codes(codes, encoding)
            return self.packed(words, codes.shape[1], encoding, values.shape[1:3], fraction)
        kind = {8: Element.INT8, 16: Element.INT16}[bits]
        order = Order.ROWS if rows else Order.OHWI
        count, height, width, channels = values.shape
        shape = (height, width, channels, count)
        return self._constant(_stored(values, kind), kind, order, fraction, shape)

    def packed(
        self,
        words: NDArray[np.unsignedinteger],
        inputs: int,
        encoding: Encoding,
        kernel: tuple[int, ...],
        fraction: int = 0,
    ) -> int:
        """Add packed weights: words, row after row, each of a filter with `inputs` weights."""
        form = "<u2" if encoding.name == "Ternary" else "<u4"
        stored = words.astype(form).tobytes()
        rows = len(words.reshape(-1)) // (-(-inputs // _per_word(encoding)))
        height, width = kernel
        shape = (height, width, inputs // (height * width), rows)
        order = Order.ROWS if height * width == 1 else Order.OHWI
        return self._constant(stored, Element.PACKED, order, fraction, shape, encoding.identifier)

    def bias(self, values: NDArray[np.integer], bits: int, fraction: int = 0) -> int:
        """Add biases [channel] of 8, 16 or 32 bits, or the constants of a program of 32."""
        kind = {8: Element.INT8, 16: Element.INT16, 32: Element.INT32}[bits]
        shape = (1, 1, len(values), 1)
        return self._constant(_stored(values, kind), kind, Order.HWC, fraction, shape)

    def layer(
        self,
        op: Op,
        inputs: Sequence[int],
        output: int,
        *,
        follow: int = Follow.NOTHING,
        weights: int = NONE,
        bias: int = NONE,
        kernel: tuple[int, int] = (1, 1),
        stride: tuple[int, int] = (1, 1),
        pad: tuple[int, int] = (0, 0),
        dilation: tuple[int, int] = (1, 1),
        groups: int = 1,
        program: Sequence[int] = (),
        bias_shift: int = 0,
        out_shift: int = 0,
        factor: int = 1,
    ) -> None:
        """Add a layer; the words of a `program` stand behind its inputs in the input list."""
        number = len(self._layers)
        for used in (*inputs, output, weights, bias):
            if used != NONE:
                self._tensors[used] = replace(self._tensors[used], last=number)
        for tensor in (output, weights, bias):
            if tensor != NONE:
                self._tensors[tensor] = replace(self._tensors[tensor], first=number)
        first, second = inputs[0], NONE
        if len(inputs) > 2 or program:
            first, second = len(self.listed), LISTED | len(inputs)
            self.listed += [*inputs, *program]
        elif len(inputs) == 2:
            second = inputs[1]
        self._layers.append(
            LayerRecord(op, follow, 0, 0, first, second, output, weights, bias, *kernel, *stride,
                        *pad, *dilation, groups, bias_shift, out_shift, 0, factor)
        )  # fmt: skip

    def container(self, vectors: Vectors | None = None, seal: Seal | None = None) -> Container:
        """Return what has been added; the memory is not planned yet."""
        tensors = tuple(self._tensors)
        flags = 0
        if any(tensor.packed for tensor in tensors):
            flags |= Flag.PACKED
        if vectors is not None:
            flags |= Flag.VECTORS
        data = _padded(bytes(self._data))
        nonce = bytes(NONCE_BYTES)
        if seal is not None:
            flags |= Flag.ENCRYPTED
            data, nonce = deciphered(data, seal.key, seal.nonce), seal.nonce
        minor = max((Op(layer.op).minor for layer in self._layers), default=MINOR)
        header = Header(
            MAGIC, MAJOR, minor, 0, flags, 0, 0, len(tensors), len(self._layers), 0, 0,
            ALIGNMENT, len(data), 0, nonce,
        )  # fmt: skip
        return Container(header, tensors, tuple(self._layers), tuple(self.listed), data, vectors)

    def _constant(
        self,
        stored: bytes,
        kind: Element,
        order: Order,
        fraction: int,
        shape: tuple[int, int, int, int],
        encoding: int = 0,
    ) -> int:
        place = ALIGNMENT + len(self._data)  # 0 means none; sections move when they are packed
        self._data += _padded(stored)
        return self._add(Tensor(kind, order, fraction, encoding, *shape, place, len(stored),
                                NOT_RESIDENT, 0, 0))  # fmt: skip

    def _add(self, tensor: Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1


def _per_word(encoding: Encoding) -> int:
    return TRITS if encoding.name == "Ternary" else 32 // encoding.bits


def _stored(values: NDArray[np.integer], kind: Element) -> bytes:
    narrow = values.astype(kind.dtype)
    assert np.array_equal(narrow, values)
    return narrow.tobytes()
