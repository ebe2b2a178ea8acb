"""Reading a container: the checks of the format, in their order, before anything is used.

Sizes are computed with integers of any length; nothing is read outside the bytes that are there.
"""

from __future__ import annotations

import zlib

from ai8xtools.quantization.lowbit import STORED, TRITS
from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.layers import check_arena, check_layers
from ai8xtools.software.container.records import (
    HEADER,
    HEADER_BYTES,
    HEADER_CRC_AT,
    LAYER,
    LAYER_BYTES,
    MAGIC,
    MAJOR,
    TENSOR,
    TENSOR_BYTES,
    VECTORS,
    VECTORS_BYTES,
    Container,
    Element,
    Flag,
    Header,
    LayerRecord,
    Order,
    Tensor,
    Vectors,
    aligned,
)


def unpack(blob: bytes) -> Container:
    """Return the parts of a container; bytes behind its stated size are ignored.

    Raises ContainerError under the name of the first check that fails: truncated, magic, version,
    header_crc, size, body_crc, table, tensor, layer, arena.
    """
    header = _header(blob)
    blob = blob[: header.total]
    if zlib.crc32(blob[HEADER_BYTES:]) != header.body_crc:
        raise ContainerError("body_crc", "the checksum of tables and data is wrong")
    end = _check_sections(header)
    vectors = _vectors(blob, header, end)
    tensors = tuple(
        Tensor(*TENSOR.unpack_from(blob, header.tensor_table + TENSOR_BYTES * number))
        for number in range(header.tensors)
    )
    layers = tuple(
        LayerRecord(*LAYER.unpack_from(blob, header.layer_table + LAYER_BYTES * number))
        for number in range(header.layers)
    )
    listed_at = header.layer_table + LAYER_BYTES * header.layers
    words = memoryview(blob[listed_at : header.data]).cast("B")
    listed = tuple(
        int.from_bytes(words[at : at + 2], "little") for at in range(0, len(words) - 1, 2)
    )
    for number, tensor in enumerate(tensors):
        _check_tensor(number, tensor, header, end)
    check_layers(tensors, layers, listed, header.minor)
    check_arena(header, tensors, layers)
    return Container(header, tensors, layers, listed, blob[header.data : end], vectors)


def _header(blob: bytes) -> Header:
    if len(blob) < HEADER_BYTES:
        raise ContainerError("truncated", f"{len(blob)} bytes, the header alone has {HEADER_BYTES}")
    header = Header(*HEADER.unpack_from(blob))
    if header.magic != MAGIC:
        raise ContainerError("magic", "it does not begin with NNB1")
    if header.major != MAJOR:
        raise ContainerError("version", f"version {header.major}.{header.minor}, known is {MAJOR}")
    without = blob[:HEADER_CRC_AT] + bytes(4) + blob[HEADER_CRC_AT + 4 : HEADER_BYTES]
    if zlib.crc32(without) != header.header_crc:
        raise ContainerError("header_crc", "the checksum of the header is wrong")
    if header.total > len(blob):
        raise ContainerError("size", f"{header.total} bytes are stated, there are {len(blob)}")
    if header.total < HEADER_BYTES or header.total % 16:
        raise ContainerError("size", f"{header.total} bytes are stated, no multiple of 16 from 64")
    return header


def _check_sections(header: Header) -> int:
    """Raise unless tables and data follow each other; return the end of the data."""
    end = header.data + header.data_bytes
    places = (
        HEADER_BYTES,
        header.tensor_table,
        header.tensor_table + TENSOR_BYTES * header.tensors,
        header.layer_table,
        header.layer_table + LAYER_BYTES * header.layers,
        header.data,
        end,
        header.total,
    )
    starts = (header.tensor_table, header.layer_table, header.data, header.data_bytes)
    if any(place % 16 for place in starts):
        raise ContainerError("table", "a section does not begin at a multiple of 16")
    if sorted(places) != list(places):
        raise ContainerError("table", "sections overlap, are out of order or leave the file")
    return end


def _vectors(blob: bytes, header: Header, end: int) -> Vectors | None:
    if not header.flags & Flag.VECTORS:
        return None
    count = size_in = size_out = outputs_at = 0
    inputs_at = end + VECTORS_BYTES
    fits = inputs_at <= header.total
    if fits:
        count, size_in, size_out, _ = VECTORS.unpack_from(blob, end)
        outputs_at = inputs_at + aligned(count * size_in)
        fits = outputs_at + aligned(count * size_out) <= header.total
    if not fits:
        raise ContainerError("table", "the test vectors leave the file")
    if not size_in and not size_out:
        count = 0
    return Vectors(
        tuple(blob[inputs_at + i * size_in :][:size_in] for i in range(count)),
        tuple(blob[outputs_at + i * size_out :][:size_out] for i in range(count)),
    )


def packed_bytes(tensor: Tensor) -> int | None:
    """Return the bytes of packed weights, None for an unknown encoding."""
    encoding = STORED.get(tensor.encoding)
    if encoding is None:
        return None
    inputs = tensor.rows * tensor.columns * tensor.channels
    if encoding.name == "Ternary":
        return tensor.count * -(-inputs // TRITS) * 2
    return tensor.count * -(-inputs * encoding.bits // 32) * 4


def _check_tensor(number: int, tensor: Tensor, header: Header, end: int) -> None:
    def refuse(reason: str) -> ContainerError:
        return ContainerError("tensor", f"tensor {number}: {reason}")

    if tensor.type > max(Element) or tensor.order > max(Order):
        raise refuse(f"type {tensor.type}, order {tensor.order}")
    if not tensor.elements:
        raise refuse("a dimension is 0")
    packed = tensor.packed
    if packed == (tensor.encoding == 0):
        raise refuse(f"encoding {tensor.encoding} of type {tensor.type}")
    size = packed_bytes(tensor) if packed else tensor.elements * tensor.element.bits // 8
    if size is None:
        raise refuse(f"encoding {tensor.encoding} is not known")
    if tensor.size_bytes != size:
        raise refuse(f"{tensor.size_bytes} bytes are stated, {size} follow from its shape")
    if tensor.reserved:
        raise refuse("reserved bytes are not 0")
    if not tensor.first <= tensor.last < header.layers:
        raise refuse(f"used from layer {tensor.first} to {tensor.last} of {header.layers}")
    inside = header.data <= tensor.data and tensor.data + tensor.size_bytes <= end
    if tensor.data and (tensor.data % 16 or not inside):
        raise refuse(f"data at {tensor.data} outside of the data section, or not aligned")
