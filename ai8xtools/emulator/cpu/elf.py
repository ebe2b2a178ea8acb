"""A reader for what the emulator needs of an ELF file: segments to load and symbols.

Little-endian 32-bit files only, which is what compilers for the cores write.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.reading import read_bytes
from ai8xtools.values import frozen

MAX_BYTES = 256 << 20
_IDENTIFICATION = b"\x7fELF\x01\x01"  # 32 bit, little-endian
_PT_LOAD = 1
_SHT_SYMTAB = 2
_STT_OBJECT, _STT_FUNC = 1, 2
_KINDS = 16  # the lower half of a byte tells the kind of a symbol, the upper one where it is known
_STB_GLOBAL, _STB_WEAK = 1, 2
_SHN_UNDEFINED, _SHN_COMMON = 0, 0xFFF2


@frozen
class Image:
    """A linked program: bytes to place at addresses, and the addresses of functions and objects.

    `areas` holds address and size in bytes of what the program occupies, cleared data included;
    `architecture` is the core that it was compiled for.
    """

    segments: tuple[tuple[int, bytes], ...]
    areas: tuple[tuple[int, int], ...]
    symbols: dict[str, int]
    functions: tuple[tuple[int, str], ...]  # by address, the Thumb bit removed
    architecture: Architecture
    objects: tuple[tuple[int, int, str], ...] = ()
    """Address, size in bytes and name of arrays and variables."""
    file: bytes = b""
    """The whole file, as debuggers read it."""
    function_bytes: dict[str, int] = field(default_factory=dict)
    """Size of each function."""

    def function_at(self, address: int) -> str:
        """Name of the function that holds the instruction at `address`."""
        index = bisect_right(self.functions, address, key=lambda entry: entry[0])
        return f"{self.functions[index - 1][1]}()" if index else f"0x{address:08x}"


def read_image(path: Path, architecture: Architecture) -> Image:
    """Read segments and symbols of an executable ELF file that is meant for `architecture`.

    Raises EmulatorError (E804) if it is not a 32-bit little-endian ELF file for such a core.
    """
    data = read_bytes(path, MAX_BYTES)
    if not data.startswith(_IDENTIFICATION):
        raise EmulatorError("E804", "not a 32-bit little-endian ELF file", str(path))
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != architecture.family.elf_machine:
        raise EmulatorError("E804", f"not a program for the {architecture.title} core", str(path))
    symbols, functions, objects = _symbols(data)
    function_bytes = {
        name: size for name, _, size, info, _ in _entries(data) if info % _KINDS == _STT_FUNC
    }
    segments, areas = _segments(data)
    return Image(
        tuple(segments),
        tuple(areas),
        symbols,
        tuple(sorted(functions)),
        architecture,
        tuple(sorted(objects)),
        data,
        function_bytes,
    )


def _segments(data: bytes) -> tuple[list[tuple[int, bytes]], list[tuple[int, int]]]:
    (table,) = struct.unpack_from("<I", data, 28)
    entry_size, count = struct.unpack_from("<HH", data, 42)
    segments, areas = [], []
    for i in range(count):
        kind, offset, address, _, size, occupied = struct.unpack_from(
            "<6I", data, table + i * entry_size
        )
        if kind == _PT_LOAD and size:
            segments.append((address, data[offset : offset + size]))
        if kind == _PT_LOAD and occupied:
            areas.append((address, occupied))
    return segments, areas


def _symbols(
    data: bytes,
) -> tuple[dict[str, int], list[tuple[int, str]], list[tuple[int, int, str]]]:
    symbols: dict[str, int] = {}
    functions, objects = [], []
    for name, value, size, info, _ in _entries(data):
        if info % _KINDS not in (_STT_OBJECT, _STT_FUNC):
            continue
        symbols[name] = value
        if info % _KINDS == _STT_FUNC:
            functions.append((value - value % 2, name))  # without the Thumb bit
        elif size:
            objects.append((value, size, name))
    return symbols, functions, objects


def _entries(data: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield name, value, size in bytes, kind and section of all symbols."""
    (table,) = struct.unpack_from("<I", data, 32)
    entry_size, count = struct.unpack_from("<HH", data, 46)
    sections = [struct.unpack_from("<10I", data, table + i * entry_size) for i in range(count)]
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _SHT_SYMTAB:
            continue
        names = sections[link][4]
        for position in range(offset, offset + size, 16):
            name, value, length, info, _, section = struct.unpack_from("<IIIBBH", data, position)
            start = names + name
            yield data[start : data.index(b"\0", start)].decode(), value, length, info, section


def function_names(path: Path) -> frozenset[str]:
    """Return the names of the functions in a compiled file, static ones included."""
    kinds = ((name, info % _KINDS) for name, _, _, info, _ in _entries(path.read_bytes()))
    return frozenset(name for name, kind in kinds if kind == _STT_FUNC)


@frozen
class ObjectSymbols:
    """Names in a compiled file: what it defines, defines unless others do, and needs."""

    defined: frozenset[str]
    weak: frozenset[str]
    needed: frozenset[str]


def read_object(path: Path) -> ObjectSymbols:
    """Return the names in a compiled, not yet linked file."""
    defined, weak, needed = set(), set(), set()
    for name, _, _, info, section in _entries(read_bytes(path, MAX_BYTES)):
        binding = info // _KINDS
        if not name or binding not in (_STB_GLOBAL, _STB_WEAK):
            continue
        if section == _SHN_UNDEFINED:
            if binding == _STB_GLOBAL:
                needed.add(name)
        elif binding == _STB_WEAK or section == _SHN_COMMON:
            weak.add(name)
        else:
            defined.add(name)
    return ObjectSymbols(frozenset(defined), frozenset(weak), frozenset(needed))
