"""Reading and writing answer files: a zip archive with header.json and arrays (.npy).

`numpy.load` opens them as well. The layout is in docs/generated-project.md.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer.content import (
    Answer,
    HashedWords,
    LayerAnswer,
    LayerForm,
    Registers,
    StoredBiases,
)
from ai8xtools.answer.errors import AnswerError
from ai8xtools.reading.archives import ArchiveError, read_members
from ai8xtools.reading.npy import NpyError, arrays_of

VERSION = 1
_FORMAT = "open-max78000-toolchain answer"
_HEADER = "header.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_WORD_FIELDS = ("addresses", "counts", "hashes")
_SAMPLE_DIMENSIONS = 3
_MOST_BYTES = 1 << 28
"""More than any chip leads to; a header that announces more is damaged."""

Arrays = dict[str, NDArray[Any]]


def write_answer(answer: Answer) -> bytes:
    """Return the file of an answer; the same answer gives the same bytes."""
    header = {
        "format": _FORMAT,
        "version": VERSION,
        "device": answer.chip,
        "apb_base": answer.apb_base,
        "project": answer.name,
        "express": answer.express,
        "left_out": answer.left_out,
        "layers": [_layer_header(layer) for layer in answer.layers],
    }
    if answer.symbol_prefix:
        header |= {"symbol_prefix": answer.symbol_prefix, "flash_bytes": answer.flash_bytes}
    arrays: Arrays = {
        "register_addresses": answer.registers.addresses,
        "register_values": answer.registers.values,
        "register_phases": answer.registers.phases,
        "bias_addresses": answer.biases.addresses,
        "bias_values": answer.biases.values,
    }
    for name, words in _hashed(answer).items():
        arrays |= {f"{name}_{part}": getattr(words, part) for part in _WORD_FIELDS}
    for layer in answer.layers:
        arrays |= _layer_arrays(layer)
    if answer.sample is not None:
        arrays["sample"] = answer.sample
    return _archive(header, arrays)


def read_answer(path: Path) -> Answer:
    """Read an answer file.

    Raises AnswerError: damaged (E850), of a newer version (E851); OSError.
    """
    try:
        members = read_members(path, _is_part, most_bytes=_MOST_BYTES)
        header = json.loads(members.pop(_HEADER))
        if header["format"] != _FORMAT:
            raise ValueError("another format")
        if header["version"] > VERSION:
            raise AnswerError(
                "E851",
                f"the file has version {header['version']}, this tool reads {VERSION}",
                str(path),
                "Update the tool, or leave the file with --no-answer.",
            )
        return _answer(header, _arrays(members))
    except (
        ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, OverflowError,
        ArchiveError, NpyError, RecursionError,
    ) as exc:  # fmt: skip
        raise AnswerError(
            "E850",
            f"the answer file is damaged ({exc})",
            str(path),
            "Generate the project again, or leave the file with --no-answer.",
        ) from None


def _hashed(answer: Answer) -> dict[str, HashedWords]:
    return {"kernel": answer.kernels, "input": answer.inputs, "push": answer.pushes}


def _layer_header(layer: LayerAnswer) -> dict[str, Any]:
    return {
        "number": layer.number,
        "name": layer.name,
        "shape": layer.shape,
        "wide": layer.wide,
        "output": layer.is_output,
        "step": layer.step,
        "form": layer.form.value,
    }


def _layer_arrays(layer: LayerAnswer) -> Arrays:
    prefix = f"layer{layer.number}"
    arrays: Arrays = {f"{prefix}_places": layer.places.astype(np.int32)}
    if layer.values is not None:
        arrays[f"{prefix}_values"] = layer.values.astype(np.int32 if layer.wide else np.int8)
    if layer.rows is not None:
        arrays[f"{prefix}_rows"] = layer.rows
    if layer.columns is not None:
        arrays[f"{prefix}_columns"] = layer.columns
    return arrays


def _archive(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        text = json.dumps(header, indent=1).encode()
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, array, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            archive.writestr(info, data.getbuffer(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return content.getvalue()


def _is_part(name: str) -> bool:
    return name == _HEADER or name.endswith(".npy")


def _arrays(members: Mapping[str, bytes]) -> Arrays:
    return {name.removesuffix(".npy"): arrays_of(data, 1)[0] for name, data in members.items()}


def _answer(header: Mapping[str, Any], arrays: Arrays) -> Answer:
    def array(name: str, kind: type[np.generic]) -> NDArray[Any]:
        if arrays[name].dtype != kind or arrays[name].ndim != 1:
            raise ValueError(f"the array {name} has another type or shape")
        return arrays[name]

    def words(name: str) -> HashedWords:
        return HashedWords(
            array(f"{name}_addresses", np.uint32),
            array(f"{name}_counts", np.uint32),
            array(f"{name}_hashes", np.uint64),
        )

    registers = Registers(
        array("register_addresses", np.uint32),
        array("register_values", np.uint32),
        array("register_phases", np.uint8),
    )
    biases = StoredBiases(array("bias_addresses", np.uint32), array("bias_values", np.uint8))
    pairs = ((registers.values, registers.addresses), (registers.phases, registers.addresses),
             (biases.values, biases.addresses))  # fmt: skip
    if any(len(one) != len(other) for one, other in pairs):
        raise ValueError("arrays differ in length")
    return Answer(
        chip=str(header["device"]),
        apb_base=int(header["apb_base"]),
        name=str(header["project"]),
        express=bool(header["express"]),
        registers=registers,
        biases=biases,
        kernels=words("kernel"),
        inputs=words("input"),
        pushes=words("push"),
        layers=tuple(_layer(layer, arrays) for layer in header["layers"]),
        left_out=tuple(map(str, header["left_out"])),
        symbol_prefix=str(header.get("symbol_prefix", "")),
        sample=_sample(arrays),
        flash_bytes=int(header.get("flash_bytes", 0)),
    )


def _sample(arrays: Arrays) -> NDArray[np.int8] | None:
    sample = arrays.get("sample")
    if sample is not None and (sample.dtype != np.int8 or sample.ndim != _SAMPLE_DIMENSIONS):
        raise ValueError("the array sample has another type or shape")
    return sample


def _layer(header: Mapping[str, Any], arrays: Arrays) -> LayerAnswer:
    number, form = int(header["number"]), LayerForm(header["form"])
    channels, rows, columns = map(int, header["shape"])
    prefix = f"layer{number}"

    def array(name: str) -> NDArray[Any] | None:
        return arrays[f"{prefix}_{name}"] if name in form.kept else None

    places = arrays[f"{prefix}_places"].astype(np.int64)
    values = array("values")
    shape = (channels, rows, columns)
    if places.shape != (channels, 3) or (values is not None and values.shape != shape):
        raise ValueError(f"the arrays of layer {number} do not fit its shape")
    return LayerAnswer(
        number=number,
        name=str(header["name"]),
        shape=shape,
        wide=bool(header["wide"]),
        is_output=bool(header["output"]),
        step=int(header["step"]),
        places=places,
        form=form,
        values=None if values is None else values.astype(np.int64),
        rows=array("rows"),
        columns=array("columns"),
    )
