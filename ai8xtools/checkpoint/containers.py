"""The file layouts: the zip archive of PyTorch 1.6 and later, and the older sequence of pickles.

Both give the root value of the pickle with its arrays. The third layout, safetensors, has a module
of its own.
Source: docs/checkpoints.md, "What is read".
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, BinaryIO

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import StorageRecord, malformed, printable
from ai8xtools.checkpoint.safetensors import is_safetensors, read_safetensors
from ai8xtools.checkpoint.tensors import resolve
from ai8xtools.checkpoint.unpickler import MAX_PICKLE_BYTES, Unpickler
from ai8xtools.checkpoint.values import Container, Value
from ai8xtools.reading.origin import accident

if TYPE_CHECKING:
    import zipfile
    from mmap import mmap

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
# Deflate shrinks zeros a thousandfold; PyTorch never compresses, so a small ratio is enough.
MAX_UNPACKED_RATIO = 32
FREE_UNPACKED_BYTES = 16 << 20
MAX_ENTRIES = 100_000
_ENTRY = b"PK\x01\x02"
_OTHER_KINDS = (
    (
        re.compile(rb"\x08[\x01-\x7f]\x12"),  # its version and, next, its producer
        "an ONNX model",
        "Name the checkpoint of the PyTorch network; ai8xize.py --model takes graphs of "
        "integer weights.",
    ),
    (
        re.compile(rb"NNB1"),
        "a container",
        "Firmware runs it as it is, see docs/container.md; scripts/nnb.py shows what it holds.",
    ),
)

_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""Of an entry of a zip archive: its signature, and how long name and extra field are."""


def read_container(data: bytes) -> tuple[Value, Container]:
    """Return the root value and the layout of a checkpoint file's bytes.

    Raises CheckpointError: E502 another kind of file, E503 damaged, E504 names foreign objects,
    E505 exceeds a limit.
    """
    if not data:
        raise CheckpointError("E502", "the file is empty", remedy="Create the checkpoint again.")
    if is_safetensors(data):
        return read_safetensors(data), "safetensors"
    if data.startswith(b"PK\x03\x04"):
        return _read_zip(data), "zip"
    if data.startswith(b"\x80"):
        return _read_legacy(data), "legacy"
    cause = accident(data)
    if cause is not None:
        raise CheckpointError("E502", cause[0], remedy=cause[1])
    if data[257:262] == b"ustar":
        raise CheckpointError(
            "E502",
            "the file is a tar archive, the layout of PyTorch before 0.1.10",
            remedy="Load and save it again with a newer PyTorch.",
        )
    for start, what, remedy in _OTHER_KINDS:
        if start.match(data):
            raise CheckpointError("E502", f"the file is {what}", remedy=remedy)
    raise CheckpointError(
        "E502",
        f"the file is not a PyTorch checkpoint: it starts with {data[:4].hex(' ')} instead of "
        "50 4b 03 04 (zip) or 80 02 (pickle), and is not a safetensors file",
        remedy="Name the .pth.tar file that training or quantization wrote.",
    )


def _read_legacy(data: bytes) -> Value:
    """Read magic, protocol, system, value and key list, each a pickle, then the storages."""
    machine = Unpickler(data)
    if machine.run() != LEGACY_MAGIC:
        raise CheckpointError(
            "E502",
            "the file is a pickle, but not one that torch.save wrote",
            remedy="Name the .pth.tar file that training or quantization wrote.",
        )
    parts = []
    for _ in range(4):
        machine = Unpickler(data, machine.position)
        parts.append((machine.run(), machine.storages))
    (protocol, _), (system, _), (root, records), (keys, _) = parts
    if protocol != LEGACY_PROTOCOL or not isinstance(system, dict) or not isinstance(keys, list):
        raise malformed("its preamble is not that of torch.save")
    big_endian = system.get("little_endian") is False
    storages = _legacy_storages(data, machine.position, records, keys, big_endian)
    return resolve(root, lambda record: storages[record.key], len(data), big_endian)


def _legacy_storages(
    data: bytes, position: int, records: dict[str, StorageRecord], keys: list[Value], big: bool
) -> dict[str, memoryview]:
    """Return the bytes of each storage: element count (int64) and elements, in order of `keys`."""
    storages: dict[str, memoryview] = {}
    for key in keys:
        if not isinstance(key, str) or key not in records:
            raise malformed("it lists a storage that no tensor uses")
        if position + 8 > len(data):
            raise malformed(f"it ends before storage {printable(key)}")
        (count,) = struct.unpack_from(">q" if big else "<q", data, position)
        end = position + 8 + count * records[key].type.item_bytes
        if count < 0 or end > len(data):
            raise malformed(f"it ends within storage {printable(key)}")
        storages[key] = memoryview(data)[position + 8 : end]
        position = end
    missing = records.keys() - storages.keys()
    if missing:
        raise malformed(f"storage {printable(min(missing))} is missing")
    return storages


def _read_zip(data: bytes) -> Value:
    if data.count(_ENTRY) > MAX_ENTRIES:
        raise CheckpointError("E505", f"the zip archive has more than {MAX_ENTRIES} entries")
    import io

    try:
        infos = entries_of(io.BytesIO(data))
    except CheckpointError:
        cause = accident(data)
        if cause is not None:
            raise CheckpointError("E503", cause[0], remedy=cause[1]) from None
        raise
    return Entries(data, infos).read()


def entries_of(file: BinaryIO) -> list[zipfile.ZipInfo]:
    """Return what the directory of a zip archive lists; CheckpointError E503 if it is damaged."""
    import zipfile  # here: it takes longer to import than a checkpoint takes to read

    try:
        with zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        LookupError,
        OSError,
        struct.error,
        OverflowError,
    ) as exc:
        raise malformed(f"its zip archive is incomplete or inconsistent ({exc})") from None


class Entries:
    """The entries of a checkpoint's zip archive, all below one root folder of any name.

    With `mapped` data, storages are not compressed, and nobody reads them for their checksums.
    """

    def __init__(
        self, data: bytes | mmap, infos: list[zipfile.ZipInfo], *, mapped: bool = False
    ) -> None:
        self._data = memoryview(data)
        self._mapped = mapped
        self._unpacked_left = FREE_UNPACKED_BYTES + MAX_UNPACKED_RATIO * len(data)
        self._stored_left = len(data)  # entries do not share bytes
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if info.filename in self._infos:
                raise malformed(f"entry {printable(info.filename)} exists twice")
            self._infos[info.filename] = info
        roots = [n.removesuffix("data.pkl") for n in self._infos if n.endswith("/data.pkl")]
        if not roots and any(name.endswith("/models/model.json") for name in self._infos):
            raise CheckpointError(
                "E502", "the file is a program that torch.export.save wrote",
                remedy="Name its weights, torch.save(program.state_dict, FILE), and with --model "
                "FILE:FUNCTION a function that returns the program.",
            )  # fmt: skip
        if len(roots) != 1:
            raise CheckpointError(
                "E502",
                f"the zip archive holds {len(roots)} entries named data.pkl; a checkpoint has one",
                remedy="Name the .pth.tar file that training or quantization wrote.",
            )
        (self._root,) = roots

    def read(self) -> Value:
        """Return the root value with its arrays over the bytes of the file."""
        pickle = self.content("data.pkl")
        if len(pickle) > MAX_PICKLE_BYTES:
            raise CheckpointError("E505", f"data.pkl is larger than {MAX_PICKLE_BYTES} bytes")
        root = Unpickler(pickle).run()
        big_endian = (
            self._root + "byteorder" in self._infos and bytes(self.content("byteorder")) == b"big"
        )
        contents: dict[str, memoryview] = {}

        def storage_bytes(record: StorageRecord) -> memoryview:
            if record.key not in contents:
                contents[record.key] = self.content(f"data/{record.key}")
            return contents[record.key]

        return resolve(root, storage_bytes, len(self._data), big_endian)

    def content(self, name: str) -> memoryview:
        """Return the checked content of an entry, without a copy where it is not compressed."""
        import zlib

        info = self._infos.get(self._root + name)
        if info is None:
            raise malformed(f"entry {printable(self._root + name)} is missing")
        raw = self._raw(info)
        self._stored_left -= len(raw)
        if self._stored_left < 0:
            raise malformed("the entries of its archive overlap")
        if info.compress_type == 8:
            self._unpacked_left -= info.file_size
            if self._unpacked_left < 0:
                raise CheckpointError(
                    "E505", f"the file unpacks to more than {MAX_UNPACKED_RATIO} times its size"
                )
            try:
                raw = memoryview(zlib.decompressobj(-15).decompress(raw, info.file_size + 1))
            except zlib.error as exc:
                raise malformed(f"entry {printable(name)} does not unpack ({exc})") from None
        elif info.compress_type != 0 or info.flag_bits & 1:
            raise CheckpointError(
                "E502",
                f"entry {printable(name)} is encrypted or compressed in a way PyTorch does not use",
            )
        storage = self._mapped and info.compress_type == 0 and name.startswith("data/")
        if len(raw) != info.file_size or not (storage or zlib.crc32(raw) == info.CRC):
            raise malformed(f"entry {printable(name)} fails its checksum")
        return raw

    def _raw(self, info: zipfile.ZipInfo) -> memoryview:
        """Return the stored bytes of an entry; the lengths in its local header give the start."""
        offset, last = info.header_offset, len(self._data) - _LOCAL_HEADER.size
        header = _LOCAL_HEADER.unpack_from(self._data, offset) if 0 <= offset <= last else None
        if header is None or header[0] != b"PK\x03\x04":
            raise malformed(f"entry {printable(info.filename)} has no header")
        _, name_bytes, extra_bytes = header
        start = offset + _LOCAL_HEADER.size + name_bytes + extra_bytes
        return self._data[start : start + info.compress_size]
