"""What scripts/nnb.py does."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.container.arguments import ContainerCommand
from ai8xtools.commands.deliver import Folder, deliver
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import read_bytes, tables
from ai8xtools.software.container import (
    Container,
    ContainerError,
    check_executable,
    unpack,
    verify_vectors,
)
from ai8xtools.software.container.cipher import NONCE_BYTES, check_tag, has_tag, read_key
from ai8xtools.software.container.execute import clear_data, constant_values, values_of
from ai8xtools.software.container.pack import pack
from ai8xtools.software.container.records import (
    Flag,
    Follow,
    Header,
    LayerRecord,
    Op,
    Order,
    Tensor,
)
from ai8xtools.software.container.soundness import arena_bytes, network_inputs, plain, planned

_LARGEST_BYTES = 256 << 20


def handle(command: ContainerCommand) -> int:
    """Do what a command line says; return the exit status. Raises InputError and OSError."""
    try:
        return _handle(command)
    except ContainerError as exc:
        exc.place = exc.place or command.file
        raise


def _handle(command: ContainerCommand) -> int:
    refuse_overwriting([("OUTPUT", command.output)], (command.file, command.key_file))
    key = None if command.key_file is None else read_key(command.key_file)
    blob = read_bytes(command.file, _LARGEST_BYTES)
    container = unpack(blob)
    tagged = check_tag(blob, key) if key is not None else has_tag(blob)
    match command.name:
        case "info":
            print("\n".join(_described(container, tagged)))
        case "verify":
            _verify(container, key, tagged)
        case "extract":
            assert command.output is not None
            files = dict(_extracted(container, key))
            folder = Folder(
                Path(command.output), command.overwrite, (command.file, command.key_file)
            )
            print(f"Wrote {deliver(files, folder)}")
        case _:
            assert command.output is not None and key is not None
            atomic.write_bytes(command.output, pack(_decrypted(container, key, command.file)))
            print(f"Wrote {command.output}")
    return 0


def _verify(container: Container, key: bytes | None, tagged: bool) -> None:
    """Check and run a container; report how much was verified."""
    check_executable(container)
    print("Header, checksums, tables and memory: no errors")
    if container.encrypted and key is None:
        print("Encrypted: name the key with --key to run the test vectors")
        return
    if tagged:
        print("Tag: the file is as the holder of the key wrote it")
    count = verify_vectors(container, key)
    print(f"{count} test vectors, all outputs equal" if count else "There are no test vectors")
    if container.encrypted and not count and not tagged:
        print("Whether the key is right cannot be told without tag and test vectors")


def _described(container: Container, tagged: bool) -> Iterator[str]:
    """Yield what a container holds."""
    header = container.header
    flags = ", ".join(str(flag.name).lower() for flag in Flag if header.flags & flag) or "none"
    tag = "; a tag follows" if tagged else ""
    yield f"Version {header.major}.{header.minor}, {header.total:,} bytes; flags: {flags}{tag}"
    yield f"Data: {header.data_bytes:,} bytes at {header.data}"
    layout = "planned" if planned(container) else "one tensor after the other"
    yield f"Memory: {arena_bytes(container):,} bytes, {layout}"
    inputs = network_inputs(container)
    output = container.layers[-1].output if container.layers else None
    vectors = 0 if container.vectors is None else len(container.vectors.inputs)
    yield f"Input: tensor {', '.join(map(str, inputs))}; output: tensor {output}; " \
          f"test vectors: {vectors}\n"  # fmt: skip
    rows = [_tensor_row(number, tensor) for number, tensor in enumerate(container.tensors)]
    heads = ["tensor", "type", "order", "count", "rows x columns x channels", "k", "bytes", "at",
             "layers"]  # fmt: skip
    yield tables.table(rows, heads)
    layers = [_layer_row(number, one, container) for number, one in enumerate(container.layers)]
    heads = ["layer", "operation", "reads", "weights, bias", "makes", "kernel", "stride", "pad",
             "<<", ">>", "D"]  # fmt: skip
    yield "\n" + tables.table(layers, heads)


def _tensor_row(number: int, tensor: Tensor) -> list[str]:
    kind = tensor.element.name.lower()
    if tensor.encoding:
        kind += f" {tensor.encoding}"
    shape = "x".join(map(str, tensor.shape))
    place = str(tensor.data) if tensor.data else ""
    return [str(number), kind, Order(tensor.order).name, str(tensor.count), shape,
            str(tensor.fraction), str(tensor.size_bytes), place,
            f"{tensor.first}-{tensor.last}"]  # fmt: skip


def _layer_row(number: int, layer: LayerRecord, container: Container) -> list[str]:
    follow = Follow(layer.follow)
    name = Op(layer.op).name.lower() + (f", {follow.name.lower()}" if follow else "")
    pairs = (layer.kernel, layer.stride, layer.pad)
    return [str(number), name, ", ".join(map(str, container.inputs_of(layer))),
            ", ".join(map(str, layer.constants)), str(layer.output),
            *("x".join(map(str, pair)) for pair in pairs), str(layer.bias_shift),
            str(layer.out_shift), str(layer.factor)]  # fmt: skip


def _decrypted(container: Container, key: bytes, place: str) -> Container:
    if not container.encrypted:
        raise InputError("E928", "its data are not encrypted", place, "Use it as it is.")
    if container.vectors is not None:
        check_executable(container)
        verify_vectors(container, key)  # a wrong key is seen by them
    header = replace(
        container.header, flags=container.header.flags & ~Flag.ENCRYPTED, nonce=bytes(NONCE_BYTES)
    )
    return replace(container, header=header, data=clear_data(container, key))


def _extracted(container: Container, key: bytes | None) -> Iterator[tuple[str, str | bytes]]:
    """Yield tables as JSON, constants and test vectors as arrays, by file name."""
    data = clear_data(container, key)
    tables = {
        "header": _plain(container.header),
        "tensors": [_plain(tensor) for tensor in container.tensors],
        "layers": [
            _plain(layer) | {"inputs": list(container.inputs_of(layer))}
            for layer in container.layers
        ],
    }
    yield "container.json", json.dumps(tables, indent=1) + "\n"
    for number, tensor in enumerate(container.tensors):
        if tensor.data:
            yield f"tensor_{number}.npy", _npy(constant_values(container, data, tensor))
    if container.vectors is None or not container.layers:
        return
    input_tensor = container.tensors[network_inputs(container)[0]]
    output_tensor = container.tensors[container.layers[-1].output]
    for name, tensor, stored in (
        ("inputs", input_tensor, container.vectors.inputs),
        ("outputs", output_tensor, container.vectors.outputs),
    ):
        fits = plain(tensor) and all(len(one) == tensor.size_bytes for one in stored)
        if fits and stored:
            yield f"{name}.npy", _npy(np.stack([values_of(tensor, one) for one in stored]))


def _plain(record: Header | Tensor | LayerRecord) -> dict[str, Any]:
    return {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in asdict(record).items()
    }


def _npy(values: np.ndarray[Any, Any]) -> bytes:
    low, high = int(values.min()), int(values.max())
    kinds = (np.int8, np.int16, np.int32)
    narrow = next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    file = io.BytesIO()
    np.save(file, values.astype(narrow))
    return file.getvalue()
