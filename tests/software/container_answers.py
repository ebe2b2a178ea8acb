"""Known answers of containers: fields, data, test vectors, and damaged variants, in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.software.container import Container, ContainerError, run, unpack
from ai8xtools.software.container.cipher import deciphered
from ai8xtools.software.container.execute import values_of, verify_vectors
from ai8xtools.software.container.pack import pack, seal_checksums
from ai8xtools.software.container.soundness import network_inputs

_HEADER = {
    "major": "major", "minor": "minor", "total": "total", "flags": "flags",
    "crc_body": "body_crc", "crc_header": "header_crc", "tensors": "tensors", "layers": "layers",
    "tensor_table": "tensor_table", "layer_table": "layer_table", "data": "data",
    "data_bytes": "data_bytes", "arena": "arena_bytes",
}  # fmt: skip
_TENSOR = {
    "type": "type", "layout": "order", "k": "fraction", "encoding": "encoding", "H": "rows",
    "W": "columns", "C": "channels", "N": "count", "arena": "arena", "first": "first",
    "last": "last", "bytes": "size_bytes", "offset": "data",
}  # fmt: skip
_LAYER = {
    "op": "op", "activation": "activation", "scheme": "scheme", "kernel": "kernel_id",
    "in0": "first_input", "in1": "second_input", "out": "output", "weights": "weights",
    "bias": "bias", "kh": "kernel_rows", "kw": "kernel_columns", "sh": "stride_rows",
    "sw": "stride_columns", "ph": "pad_rows", "pw": "pad_columns", "dh": "dilation_rows",
    "dw": "dilation_columns", "groups": "groups", "bias_shift": "bias_shift",
    "out_shift": "out_shift", "segment": "segment", "D": "factor", "tile_rows": "tile_rows",
    "tile_cols": "tile_columns", "channel_group": "channel_group", "ring": "ring",
    "ring_bytes": "ring_bytes", "staging": "staging", "staging_bytes": "staging_bytes",
}  # fmt: skip


def container_cases(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each file and what is wrong with it."""
    for file in sorted(folder.glob("*.json")):
        case = json.loads(file.read_text())
        blob = file.with_suffix(".nnb").read_bytes()
        try:
            yield file.stem, [*_wrong(case, blob)]
        except InputError as exc:
            yield file.stem, [exc.message]


def key_of(case: dict[str, Any]) -> bytes | None:
    """Return the key of a case, None if it has none."""
    return None if case["key"] is None else bytes.fromhex(case["key"])


def variants(case: dict[str, Any], blob: bytes) -> Iterator[tuple[str, bytes, str | None]]:
    """Yield the damaged files of a case: name, bytes, and the check that fails."""
    for variant in case["variants"]:
        changed = bytearray(blob)
        for at, text in variant["patch"]:
            new = bytes.fromhex(text)
            changed[at : at + len(new)] = new
        sealed = seal_checksums(bytes(changed)) if variant["reseal"] else bytes(changed)
        yield variant["name"], sealed[: variant["truncate"]], variant["error"]


def check_of(blob: bytes) -> str | None:
    """Return the name of the first check that fails, None if the file is accepted."""
    try:
        unpack(blob)
    except ContainerError as exc:
        return exc.name
    return None


def _wrong(case: dict[str, Any], blob: bytes) -> Iterator[str]:
    container = unpack(blob)
    yield from _different("header", container.header, case["header"], _HEADER)
    for number, stated in enumerate(case["tensors"]):
        yield from _different(f"tensor {number}", container.tensors[number], stated, _TENSOR)
    for number, stated in enumerate(case["layers"]):
        yield from _different(f"layer {number}", container.layers[number], stated, _LAYER)
    if list(container.listed[: len(case["input_list"])]) != case["input_list"]:
        yield "the input list differs"
    if pack(container) != blob:
        yield "written again, the file differs"
    for name, changed, stated in variants(case, blob):
        if check_of(changed) != stated:
            yield f"{name}: {check_of(changed)}, expected {stated}"
    yield from _outputs(case, container)


def _outputs(case: dict[str, Any], container: Container) -> Iterator[str]:
    key = key_of(case)
    data = container.data
    if key is not None:
        data = deciphered(data, key, container.header.nonce)
    if data.hex() != case["data_hex"]:
        yield "the data differ"
    assert container.vectors is not None
    if verify_vectors(container, key) != len(case["outputs"]):
        yield "the number of test vectors differs"
    given = container.tensors[network_inputs(container)[0]]
    for sample, stated in zip(container.vectors.inputs, case["outputs"], strict=True):
        found = run(container, values_of(given, sample), key)
        if not np.array_equal(found.reshape(-1), stated):
            yield "an output differs"


def _different(
    where: str, found: object, stated: dict[str, Any], names: dict[str, str]
) -> Iterator[str]:
    for name, attribute in names.items():
        if getattr(found, attribute) != stated[name]:
            yield f"{where}: {name} is {getattr(found, attribute)}, expected {stated[name]}"
