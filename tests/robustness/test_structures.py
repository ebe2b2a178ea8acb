"""Files that contradict themselves: graphs in a circle, tensors that overlap, sizes that lie."""

from __future__ import annotations

import io
import json
import pickle
import struct
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.checkpoint import CheckpointError, read_checkpoint
from ai8xtools.checkpoint.onnx import read_onnx
from ai8xtools.checkpoint.onnx_graph import read_graph
from datasets.errors import DatasetError
from datasets.own.preparation import Preparation, read_picture, read_sound
from tests.robustness.archives import bomb
from tests.robustness.readers import _varint, _wire

SECONDS = 5.0


def _safetensors(header: object, data: bytes = bytes(64)) -> bytes:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(text)) + text + data


def _record(begin: int, end: int, shape: object = (4,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


SAFETENSORS = {
    "overlap": _safetensors({"a": _record(0, 16), "b": _record(8, 24)}),
    "gap": _safetensors({"a": _record(0, 16), "b": _record(32, 48)}),
    "name twice": _safetensors(
        b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},'
        b'"a":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}}',
        bytes(32),
    ),
    "huge shape": _safetensors({"a": _record(0, 16, (1 << 40, 1 << 40))}),
    "negative": _safetensors({"a": _record(-16, 0)}),
    "reversed": _safetensors({"a": _record(16, 0)}),
    "long header": struct.pack("<Q", 1 << 60) + b"{}",
    "deep header": _safetensors(b"[" * 100_000),
    "no rest": _safetensors({"a": _record(0, 1 << 30)}),
}


@pytest.mark.parametrize("name", SAFETENSORS)
def test_safetensors_that_contradict_themselves_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(SAFETENSORS[name])
    with pytest.raises(CheckpointError) as refused:
        read_checkpoint(path)
    assert len(str(refused.value)) < 1000


class _Persistent:
    """A tensor's storage, as a persistent id of whatever content."""

    def __init__(self, identity: object) -> None:
        self.identity = identity


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: object) -> object:
        return obj.identity if isinstance(obj, _Persistent) else None


def _checkpoint(content: object, storages: dict[str, bytes]) -> bytes:
    out, file = io.BytesIO(), io.BytesIO()
    _Pickler(out, 2).dump(content)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", out.getvalue())
        for name, data in storages.items():
            archive.writestr(f"a/data/{name}", data)
    return file.getvalue()


@pytest.mark.parametrize(
    "identity",
    [
        "storage", (), ("storage",), ("storage", "x", "0", "cpu"), (None,) * 5, [1], {"a": 1},
        ("storage", ("storage",) * 40, "0", "cpu", 1 << 62), ("module", 1), b"\xff" * 100,
    ],
    ids=str,
)  # fmt: skip
def test_persistent_ids_of_any_content_are_refused(tmp_path: Path, identity: object) -> None:
    path = tmp_path / "x.pth.tar"
    path.write_bytes(_checkpoint({"state_dict": {"w": _Persistent(identity)}}, {"0": bytes(16)}))
    with pytest.raises(CheckpointError):
        read_checkpoint(path)


def _model(*parts: bytes) -> bytes:
    return _varint(1 << 3) + _varint(8) + _wire(7, b"".join(parts)) + _wire(8, b"\x10\x0d")


def _node(reads: str, writes: str, operator: bytes = b"Relu") -> bytes:
    names = _wire(1, reads.encode()) + _wire(2, writes.encode())
    return _wire(1, names + _wire(3, writes.encode()) + _wire(4, operator))


def _weights(dims: tuple[int, ...], *more: bytes) -> bytes:
    sizes = b"".join(_varint(1 << 3) + _varint(n) for n in dims)
    return _wire(5, sizes + _varint(2 << 3) + _varint(1) + _wire(8, b"w") + b"".join(more))


def _deep(levels: int) -> bytes:
    """A graph within an attribute of a node of a graph, and so on."""
    inner = b""
    for _ in range(levels):
        inner = _wire(1, _wire(4, b"If") + _wire(5, _wire(1, b"then") + _wire(6, inner)))
    return inner


EXTERNAL = _varint(14 << 3) + _varint(1)
LOCATION = _wire(13, _wire(1, b"location") + _wire(2, b"/etc/passwd"))
GRAPHS = {
    "circle": _model(_node("b", "a"), _node("a", "b"), _wire(12, _wire(1, b"b"))),
    "itself": _model(_node("a", "a"), _wire(12, _wire(1, b"a"))),
    "external data": _model(_weights((1, 1, 3, 3), LOCATION, EXTERNAL), _node("w", "y")),
    "external data of no place": _model(_weights((1, 1, 3, 3), EXTERNAL), _node("w", "y")),
    "huge": _model(_weights((1 << 40, 1 << 20, 3, 3), _wire(9, bytes(36))), _node("w", "y")),
    "negative": _model(_weights(((1 << 64) - 1, 3), _wire(9, bytes(36))), _node("w", "y")),
    "deep": _model(_deep(500)),
    "written twice": _model(_node("x", "y"), _node("x", "y"), _wire(12, _wire(1, b"y"))),
}
MANY = "many nodes"


def graph_of(name: str) -> bytes:
    if name == MANY:
        return _model(*(_node(f"n{n}", f"n{n + 1}") for n in range(50_000)))
    return GRAPHS[name]


@pytest.mark.parametrize("name", [*GRAPHS, MANY])
def test_graphs_that_contradict_themselves_end_soon(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(graph_of(name))
    start = time.process_time()
    for read in (read_onnx, read_graph):
        try:
            read(path)
        except CheckpointError as refused:
            assert len(str(refused)) < 1000
        else:
            assert "external" not in name or read is read_onnx  # no layer reads that tensor
    assert time.process_time() - start < SECONDS


def _flac(samples: int) -> bytes:
    info = struct.pack(">HH", 4096, 4096) + bytes(6)
    rate = (16000 << 44) | (15 << 36) | samples
    return b"fLaC\x80\x00\x00\x22" + info + struct.pack(">Q", rate) + bytes(16)


SOUNDS = {
    "a.wav": b"RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff" + bytes(50),
    "b.wav": b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00"
    + struct.pack("<HHIIHH", 1, 65535, 1, 1, 65535, 32) + b"data\x04\x00\x00\x00" + bytes(4),
    "c.wav": b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00"
    + struct.pack("<HHIIHH", 1, 1, 0, 0, 2, 16) + b"data\x04\x00\x00\x00" + bytes(4),
    "d.wav": None,
    "e.flac": _flac((1 << 36) - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUNDS)
def test_sounds_whose_headers_lie_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(SOUNDS[name] or bomb())
    start = time.process_time()
    with pytest.raises(DatasetError):
        read_sound(path, Preparation("sound", (128, 128, 1), rate=16000))
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + b"\xff" * 8 + b"\x08\x02\0\0\0",
        b"BM" + b"\xff" * 60, b"GIF89a\xff\xff\xff\xff" + bytes(20), b"P6 99999999 99999999 255 ",
        b"II*\x00\x08\x00\x00\x00" + b"\xff" * 60, b"RIFF\xff\xff\xff\xffWEBPVP8 " + b"\xff" * 40,
        None,
    ],
    ids=["png", "bmp", "gif", "ppm", "tiff", "webp", "gzip"],
)  # fmt: skip
def test_pictures_whose_headers_lie_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(content or bomb(gzipped=True))
    with pytest.raises(DatasetError), warnings.catch_warnings(action="ignore"):
        read_picture(path, Preparation("picture", (3, 8, 8)))


def test_array_that_unpacks_to_half_a_gigabyte_is_refused(tmp_path: Path) -> None:
    from datasets.own.arrays import read_archive

    path = tmp_path / "x.npz"
    path.write_bytes(bomb())
    with pytest.raises(DatasetError, match="unpacks to more than"):
        read_archive(path)


def test_tensors_that_share_a_storage_are_read_as_they_stand(tmp_path: Path) -> None:
    import torch

    whole = torch.arange(12.0)
    torch.save({"state_dict": {"a": whole[:8], "b": whole[4:]}}, tmp_path / "x.pth.tar")
    state = read_checkpoint(tmp_path / "x.pth.tar").state_dict
    assert np.array_equal(state["a"], np.arange(8.0))
    assert np.array_equal(state["b"], np.arange(4.0, 12.0))
