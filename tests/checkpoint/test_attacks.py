"""Files made by hand to crash, hang or fill the memory end in a CheckpointError, soon."""

from __future__ import annotations

import io
import os
import random
import struct
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from ai8xtools.checkpoint import CheckpointError, read_checkpoint
from ai8xtools.checkpoint.onnx import read_onnx
from tests.checkpoint.compare import checkpoint_pickle, tensor, text, zip_container
from tests.robustness.readers import Corpus, run

SECONDS = 5.0
_DTYPE = b"\x80\x02cnumpy\ndtype\n" + text("f8") + b"\x85R(K\x03"
_ORDERED = b"ccollections\nOrderedDict\n)R"
_ENCODE = b"c_codecs\nencode\n"


def _repeated_encode() -> bytes:
    """A text of 200 kB that is made into bytes again and again."""
    arguments = text("x" * 200_000) + text("latin1") + b"\x86q\x00"
    call = b"c_codecs\nencode\nq\x01" + arguments + b"R0"
    return b"\x80\x02" + call + b"h\x01h\x00R0" * 100_000 + b"N."


def _colliding_keys() -> bytes:
    """Numbers whose hashes are all the same: a dictionary of them takes quadratic time."""
    prime = (1 << 61) - 1
    keys = (
        b"\x8a\x0c" + (prime * n).to_bytes(12, "little", signed=True) + b"N"
        for n in range(1, 60_000)
    )
    return b"\x80\x02}(" + b"".join(keys) + b"u."


PICKLES = {
    "hash of a deep tuple": _DTYPE + b"N" + b"\x85" * 900_000 + b"tb.",
    "hash of a tuple of doubled tuples": _DTYPE + b")" + b"2\x86" * 40 + b"tb.",
    "deep tuples as encoding": b"\x80\x02" + _ENCODE + text("a") + b")" + b"2\x86" * 40 + b"\x86R.",
    "deep tuples as dtype": b"\x80\x02cnumpy\ndtype\n)" + b"2\x86" * 40 + b"\x85R.",
    "deep tuples as module": b"\x80\x02)" + b"2\x86" * 40 + b"2\x93.",
    "deep tuples as root": b"\x80\x02)" + b"2\x86" * 40 + b".",
    "deep tuples as storage": b"\x80\x02(" + text("storage") + (b")" + b"2\x86" * 40) * 4 + b"tQ.",
    "bytes made many times": _repeated_encode(),
    "keys that collide": _colliding_keys(),
    "lists within lists": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "marks": b"\x80\x02" + b"(" * 900_000 + b".",
    "memo": b"\x80\x02N" + b"\x94" * 900_000 + b".",
}


def _seconds_and_refusal(path: Path, content: bytes) -> tuple[float, CheckpointError]:
    path.write_bytes(content)
    start = time.process_time()
    with pytest.raises(CheckpointError) as caught:
        (read_onnx if path.suffix == ".onnx" else read_checkpoint)(path)
    return time.process_time() - start, caught.value


@pytest.mark.parametrize("name", PICKLES)
def test_pickle_made_to_crash_or_hang_is_refused(tmp_path: Path, name: str) -> None:
    content = zip_container(PICKLES[name])
    seconds, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content)
    assert refusal.code.startswith("E50") and refusal.message.isprintable()
    assert seconds < SECONDS


def test_copies_of_a_text_are_counted(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        content = zip_container(PICKLES["bytes made many times"])
        _seconds_and_refusal(tmp_path / "a.pth.tar", content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 << 20


@pytest.mark.parametrize(
    ("shape", "strides", "words"),
    [
        ((0, 1 << 62), (1, 1), "beyond all memory"),
        ((1 << 62, 0), (0, 0), "beyond all memory"),
        ((1,) * 17, (1,) * 17, "17 dimensions"),
        ((2,), (1 << 61,), "ends beyond its storage"),
    ],
)
def test_impossible_shapes_are_refused(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...], words: str
) -> None:
    content = _checkpoint_of(shape, strides)
    _, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content)
    assert refusal.code == "E503" and words in refusal.message


def test_stride_along_a_size_of_one_is_of_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "a.pth.tar"
    path.write_bytes(_checkpoint_of((1,), (1 << 61,)))
    assert read_checkpoint(path).state_dict["a.weight"].tolist() == [1.0]


def test_key_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    one = _pickled((1,), (1,))
    state = _ORDERED + b"(" + text("w") + one + text("w") + one + b"u"
    content = _archive(b"\x80\x02}(" + text("state_dict") + state + b"u.")
    _, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content)
    assert refusal.message == "the file is damaged: the key 'w' occurs twice in a dictionary"


@pytest.mark.parametrize("value", [2, 3, 255])
def test_booleans_are_zero_or_one(tmp_path: Path, value: int) -> None:
    pickle = checkpoint_pickle(weight=tensor(3, 0, (3,), (1,))).replace(b"FloatS", b"BoolS")
    content = zip_container(pickle, data_0=bytes([1, value, 0]))
    _, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content)
    assert "neither true nor false" in refusal.message


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """A central directory whose entries all lead to the same megabyte."""
    pickle = b"\x80\x02}(" + text("state_dict") + b"}("
    for key in range(300):
        one = tensor(16, 0, (16,), (1,)).replace(text("0"), text(str(key)))
        pickle += text(f"w{key}") + one
    entries = {f"data_{key}": bytes(64 if key else 1 << 20) for key in range(300)}
    content = _with_shared_entries(zip_container(pickle + b"uu.", **entries))
    seconds, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content)
    assert refusal.message == "the file is damaged: the entries of its archive overlap"
    assert seconds < SECONDS


def _with_shared_entries(content: bytes) -> bytes:
    """Let every entry of data/ lead to the first of them."""
    data = bytearray(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        first = archive.getinfo("archive/data/0")
    position = data.index(b"PK\x01\x02")
    while data[position : position + 4] == b"PK\x01\x02":
        lengths = struct.unpack_from("<HHH", data, position + 28)
        name = bytes(data[position + 46 : position + 46 + lengths[0]])
        if b"/data/" in name:
            struct.pack_into(
                "<III", data, position + 16, first.CRC, first.file_size, first.file_size
            )
            struct.pack_into("<I", data, position + 42, first.header_offset)
        position += 46 + sum(lengths)
    return bytes(data)


@pytest.mark.parametrize("suffix", [".pth.tar", ".onnx"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "nul", "pointer", "page"])
def test_what_is_no_file_of_weights_is_refused_at_once(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    path = tmp_path / f"a{suffix}"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "nul":
            path = tmp_path / f"a\0{suffix}"
        case "pointer":
            path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        case "page":
            path.write_text("<!DOCTYPE html><html>sign in</html>")
    says = {
        "pipe": "it is a pipe, not a regular file",
        "device": "it is a device, not a regular file",
        "folder": "Is a directory",
        "loop": "Too many levels of symbolic links",
        "nul": "No such file or directory",
        "pointer": "it is a Git LFS pointer, not the file itself",
        "page": "it is a web page, not the file itself",
    }
    with pytest.raises(CheckpointError) as caught:
        (read_onnx if suffix == ".onnx" else read_checkpoint)(path)
    assert says[kind] in caught.value.message and caught.value.remedy


def test_archive_that_was_converted_as_text_is_recognized(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).bytes(40_000)
    content = zip_container(_pickled((1,), (1,)), data_0=numbers)
    _, refusal = _seconds_and_refusal(
        tmp_path / "a.pth.tar", content.decode("utf-8", "replace").encode()
    )
    assert refusal.message == "it is damaged: it was converted as text"


def _pickled(shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    return tensor(1, 0, shape, strides)


def _archive(pickle: bytes) -> bytes:
    return zip_container(pickle, data_0=np.ones(1, "<f4").tobytes())


def _checkpoint_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    return _archive(checkpoint_pickle(weight=_pickled(shape, strides)))


def test_compressed_pickle_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(64 << 20)) + packer.flush()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(64 << 20))
    assert len(packed) < len(content.getvalue()) < 1 << 20
    _, refusal = _seconds_and_refusal(tmp_path / "a.pth.tar", content.getvalue())
    assert refusal.code == "E505"


def test_programs_for_the_readers_end_in_a_result_or_a_refusal(tmp_path: Path) -> None:
    table, failures = run(1000, 7, tmp_path)
    assert failures == []
    assert all(counts["refused"] and counts["read"] for counts in table.values())


def test_what_torch_and_we_accept_is_the_same(tmp_path: Path) -> None:
    """Damaged files that both readers take give the same tensors."""
    corpus = Corpus(tmp_path)
    both = 0
    for number in range(600):
        path = tmp_path / "case"
        path.write_bytes(corpus.checkpoint_file(random.Random(f"torch {number}")))
        try:
            ours = read_checkpoint(path).state_dict
            theirs = torch.load(path, weights_only=True)["state_dict"]
        except Exception:
            continue
        both += 1
        assert ours.keys() == theirs.keys()
        for name, tensor_ in theirs.items():
            assert np.array_equal(ours[name], tensor_.numpy())
    assert both > 3


def test_what_safetensors_and_we_accept_is_the_same(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy", reason="needs the package safetensors")
    corpus = Corpus(tmp_path)
    both = 0
    for number in range(400):
        path = tmp_path / "case"
        path.write_bytes(corpus.safetensors_file(random.Random(f"safe {number}")))
        try:
            ours = read_checkpoint(path).state_dict
            theirs = library.load_file(path)
        except Exception:
            continue
        both += 1
        assert {n: a.tobytes() for n, a in ours.items()} == {
            n: a.tobytes() for n, a in theirs.items()
        }
    assert both > 1
