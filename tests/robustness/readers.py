"""Programs for the readers of foreign files: opcodes of pickles, ONNX wire, safetensors, npy.

`make fuzz` runs 100,000 of them. Programs are made of pieces that mean something (names
that the reader knows, tuples that nest, sizes at the edges of their types) and spliced with pieces
of files that are accepted. Each must end in a result or a refusal: no other exception, no crash of
the interpreter, nothing beyond five seconds of processor time, and less than 512 MB of memory for
all together.
"""

from __future__ import annotations

import argparse
import collections
import io
import json
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint import (
    CheckpointError,
    read_checkpoint,
    write_checkpoint,
    write_safetensors,
)
from ai8xtools.checkpoint.known_objects import KNOWN
from ai8xtools.checkpoint.onnx import read_onnx
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.checkpoint.unpickler import _INSTRUCTIONS
from ai8xtools.checkpoint.values import Checkpoint
from ai8xtools.reading.npy import NpyError, read_arrays

SECONDS = 5.0
MEMORY = 512 << 20
EDGES = (0, 1, 2, 7, 8, 16, 255, 256, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 62), (1 << 64) - 1)
Random = random.Random


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def _number(rng: Random) -> bytes:
    value = rng.choice(EDGES) * rng.choice((1, 1, 1, -1))
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def _piece(rng: Random) -> bytes:
    """Return a few instructions that mean something."""
    match rng.randrange(12):
        case 0 | 1:
            return bytes([rng.choice([*_INSTRUCTIONS])])
        case 2:
            module, name = rng.choice([*KNOWN])
            return f"c{module}\n{name}\n".encode()
        case 3:
            return _number(rng)
        case 4:
            words = ("storage", "0", "cpu", "f8", "latin1", "state_dict", "w", "<", "\x1b[2J", "")
            return _text(rng.choice(words))
        case 5:
            return b")" + b"2\x86" * rng.randrange(60)
        case 6:
            return b"N" + b"\x85" * rng.choice((1, 10, 20_000))
        case 7:
            return b"q" + bytes([rng.randrange(8)])
        case 8:
            return b"h" + bytes([rng.randrange(8)])
        case 9:
            return b"(" + b"".join(_number(rng) for _ in range(rng.randrange(4))) + b"t"
        case 10:
            storage = _text("storage") + b"ctorch\nFloatStorage\n" + _text("0") + _text("cpu")
            return b"(" + storage + b"K\x04tQ"
        case _:
            return rng.choice((b"R", b"tR", b"\x85R", b"b", b"u", b"s", b"}(", b"](", b"e"))


def _damaged(rng: Random, data: bytes) -> bytes:
    """Return bytes with some of them changed, cut, doubled or moved."""
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at, size = rng.randrange(len(content) + 1), rng.choice((1, 2, 4, 8, 64))
        match rng.randrange(5):
            case 0:
                content[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del content[at : at + size]
            case 2:
                content[at:at] = content[at : at + size]
            case 3:
                content[at : at + 8] = struct.pack("<Q", rng.choice(EDGES))
            case _:
                other = rng.randrange(len(content) + 1)
                content[at:at] = content[other : other + size]
    return bytes(content)


def _zip(pickle: bytes, storage: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", pickle)
        archive.writestr("a/data/0", storage)
    return file.getvalue()


class Corpus:
    """Files that are accepted, and programs made of them."""

    def __init__(self, folder: Path) -> None:
        state = {"w": np.ones((2, 3), "f4"), "b": np.arange(3), "flag": np.array([True])}
        extras = {"number": 1.5, "deep": [(1, 2), {"x": b"raw"}]}
        one = Checkpoint({"epoch": 1, "arch": "net", "state_dict": state, "extras": extras})
        write_checkpoint(folder / "c", one)
        write_safetensors(folder / "s", one)
        np.save(folder / "n.npy", state["w"])
        self.checkpoint = (folder / "c").read_bytes()
        self.safetensors = (folder / "s").read_bytes()
        self.npy = (folder / "n.npy").read_bytes()
        with zipfile.ZipFile(folder / "c") as archive:
            self.pickle = archive.read("archive/data.pkl")
        self.onnx = _onnx()

    def checkpoint_file(self, rng: Random) -> bytes:
        """A checkpoint: a program of instructions, perhaps within one that is accepted."""
        program = b"".join(_piece(rng) for _ in range(rng.randrange(1, 25)))
        match rng.randrange(4):
            case 0:
                pickle = b"\x80\x02" + program + b"."
            case 1:
                at = rng.randrange(len(self.pickle))
                pickle = self.pickle[:at] + program + self.pickle[at:]
            case 2:
                pickle = _damaged(rng, self.pickle)
            case _:
                return _damaged(rng, self.checkpoint)
        if rng.randrange(8) == 0:
            magic = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."
            return magic + pickle + b"\x80\x02]" + _text("0") + b"a." + struct.pack("<q", 4)
        return _zip(pickle, bytes(16))

    def safetensors_file(self, rng: Random) -> bytes:
        """A header of odd records, or a file with changed bytes."""
        if rng.randrange(2):
            return _damaged(rng, self.safetensors)

        def record() -> object:
            dtype = rng.choice(("F32", "BOOL", "BF16", "I8", "X", 1, None, []))
            sizes = [rng.choice((*EDGES, -1, 1.5, True)) for _ in range(rng.randrange(4))]
            places = [rng.choice((0, 4, 8, 16, 1 << 62, -4)) for _ in range(rng.choice((2, 2, 3)))]
            return {"dtype": dtype, "shape": sizes, "data_offsets": places}

        header = {rng.choice(("w", "b", "__metadata__", "\x1b")): record() for _ in range(3)}
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + bytes(16)

    def onnx_file(self, rng: Random) -> bytes:
        """A model with changed bytes, or a message of random fields."""
        if rng.randrange(3):
            return _damaged(rng, self.onnx)
        content = b"".join(_field(rng, rng.randrange(1, 15), 3) for _ in range(rng.randrange(6)))
        return _wire(7, content)

    def npy_file(self, rng: Random) -> bytes:
        """An array with changed bytes, or with an odd header."""
        if rng.randrange(2):
            return _damaged(rng, self.npy)
        sizes = ", ".join(
            str(rng.choice((*EDGES, -1, "1L", "[]"))) for _ in range(rng.randrange(5))
        )
        descr = rng.choice(("'<f4'", "'|b1'", "'O'", "'<U9999'", "[('a', '<f4')]", "'<f3'", "1"))
        header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': ({sizes},)}}\n".encode()
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _wire(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _field(rng: Random, number: int, depth: int) -> bytes:
    if depth and rng.randrange(2):
        inner = (_field(rng, rng.randrange(1, 15), depth - 1) for _ in range(rng.randrange(4)))
        return _wire(number, b"".join(inner))
    if rng.randrange(2):
        return _varint(number << 3) + _varint(rng.choice(EDGES))
    return _wire(number, rng.choice((b"Conv", b"w", b"x", b"", bytes(24), b"\xff" * 11)))


def _onnx() -> bytes:
    """Return a model of one convolution."""
    dims = b"".join(_varint(1 << 3) + _varint(n) for n in (1, 1, 3, 3))
    weights = dims + _varint(2 << 3) + _varint(1) + _wire(8, b"w") + _wire(9, bytes(36))
    node = _wire(1, b"x") + _wire(1, b"w") + _wire(2, b"y") + _wire(3, b"c") + _wire(4, b"Conv")
    sizes = b"".join(_wire(1, _varint(1 << 3) + _varint(n)) for n in (1, 1, 8, 8))
    value = _wire(1, b"x") + _wire(2, _wire(1, _varint(1 << 3) + _varint(1) + _wire(2, sizes)))
    graph = _wire(1, node) + _wire(5, weights) + _wire(11, value) + _wire(12, _wire(1, b"y"))
    return _varint(1 << 3) + _varint(8) + _wire(7, graph) + _wire(8, _varint(2 << 3) + b"\x0d")


def read(kind: str, path: Path) -> None:
    """Read a file as its kind."""
    if kind == "onnx":
        read_onnx(path)
        read_graph(path)
    elif kind == "npy":
        read_arrays(path)
    else:
        read_checkpoint(path)


def run(count: int, seed: int, folder: Path) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Read so many files; return the counts of what they ended in by kind, and the failures."""
    corpus = Corpus(folder)
    makers: dict[str, Callable[[Random], bytes]] = {
        "checkpoint": corpus.checkpoint_file,
        "safetensors": corpus.safetensors_file,
        "onnx": corpus.onnx_file,
        "npy": corpus.npy_file,
    }
    table: dict[str, dict[str, int]] = {kind: collections.Counter() for kind in makers}
    failures: list[str] = []
    path = folder / "case"
    for number in range(count):
        kind = ("checkpoint", "checkpoint", "safetensors", "onnx", "npy")[number % 5]
        path.write_bytes(makers[kind](random.Random(f"{seed} {number}")))
        start = time.process_time()
        try:
            read(kind, path)
            ended = "read"
        except (CheckpointError, NpyError) as exc:
            said = str(exc)
            ended = "refused" if said.isprintable() and len(said) < 2000 else "unprintable"
        except Exception as exc:
            ended = type(exc).__name__
        if time.process_time() - start > SECONDS:
            ended = "too slow"
        table[kind][ended] += 1
        if ended not in ("read", "refused"):
            failures.append(f"{kind} {number}: {ended}")
    return table, failures


def main() -> int:
    """Print the table; 1 if anything ended otherwise than read or refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        table, failures = run(options.count, options.seed, Path(name))
    for kind, counts in table.items():
        print(f"{kind:12}", ", ".join(f"{count} {ended}" for ended, count in counts.items()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(f"{len(failures)} failures, peak memory {peak >> 20} MiB")
    print(*failures[:20], sep="\n")
    return int(bool(failures) or peak > MEMORY)


if __name__ == "__main__":
    sys.exit(main())
