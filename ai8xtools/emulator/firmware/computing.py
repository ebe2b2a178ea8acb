"""Blocks of the chip that compute without the core: AES, CRC, and random numbers.

The bytes of a block of AES and of its key are those of the words in memory, lowest byte first.
Source: docs/emulator.md, "Firmware of others".
"""

from __future__ import annotations

from collections.abc import Callable

from ai8xtools.emulator.bits import WORD_LIMIT, word_address
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.emulator.firmware.ciphers import decrypt, divided, encrypt, next_random
from device.fields import Field, Register, flag

_AES, _KEYS, _CRC, _TRNG = 0x40007400, 0x40005000, 0x4000F000, 0x4004D000
_WORDS, _LONGEST_KEY = 4, 8
_AES_CONTROL = Register(
    "CTRL",
    0,
    "AES control",
    (
        flag("enable", 0, "it computes"),
        flag("start", 3, "on what is in the FIFO"),
        flag("flush_input", 4, ""),
        flag("flush_output", 5, ""),
        Field("key_size", 6, 2, "128, 192, 256 bits"),
        Field("kind", 8, 2, "0 encrypts"),
    ),
)
_AES_STATUS = Register(
    "STATUS",
    4,
    "AES status",
    (
        flag("input_empty", 1, ""),
        flag("input_full", 2, ""),
        flag("output_empty", 3, ""),
        flag("output_full", 4, ""),
    ),
)
_AES_FLAGS = Register(
    "INTFL",
    8,
    "AES flags",
    (flag("done", 0, "a block is computed"), flag("overflow", 3, "a word more than there is room")),
)
_CRC_CONTROL = Register(
    "CTRL",
    0,
    "CRC control",
    (
        flag("enable", 0, "it computes"),
        flag("msb_first", 2, "the highest bit comes first"),
        flag("swap_in", 3, "of what is written, the bytes are reversed"),
        flag("swap_out", 4, "of the result, the bytes are reversed"),
    ),
)
_READY = 1
_SEED = 2463534242


class ComputingBlocks:
    """Registers of AES, CRC and random numbers."""

    def __init__(self) -> None:
        self._words = {_CRC + 8: 0xEDB88320, _CRC + 12: WORD_LIMIT - 1}  # polynomial, value
        self._input: list[int] = []
        self._output: list[int] = []
        self._noise = _SEED  # the same numbers every time
        self._readers: dict[int, Callable[[], int]] = {
            _AES + 4: self._status,
            _AES + 16: self._take,
            _CRC + 12: self._sum,
            _TRNG + 4: lambda: _READY,
            _TRNG + 8: self._random,
        }

    def read(self, word: int) -> int | None:
        """Return what a register of these blocks reads; None for others and plain ones."""
        reader = self._readers.get(word)
        return reader() if reader else self._words.get(word)

    def write(self, address: int, size: int, value: int) -> None:
        """1, 2 or 4 bytes are written to any register of the chip."""
        word = word_address(address)
        if word == _CRC + 4:
            self._add(value.to_bytes(size, "little"))
        elif word == _AES + 16:
            self._put(value)
        elif word == _AES + 8:
            for name, cleared in _AES_FLAGS.unpack(value).items():
                if cleared:
                    self._flag(name, 0)
        elif word in (_AES, _CRC, _CRC + 8, _CRC + 12) or _KEYS <= word < _KEYS + 4 * _LONGEST_KEY:
            self._words[word] = value
            if word == _AES:
                self._control(value)

    # AES

    def _control(self, value: int) -> None:
        fields = _AES_CONTROL.unpack(value)
        if fields["flush_input"]:
            self._input.clear()
        if fields["flush_output"]:
            self._output.clear()
        for name in ("start", "flush_input", "flush_output"):
            self._words[_AES] = _AES_CONTROL.by_name[name].set(self._words[_AES], 0)
        self._cipher()

    def _flag(self, name: str, value: int) -> None:
        self._words[_AES + 8] = _AES_FLAGS.by_name[name].set(self._words.get(_AES + 8, 0), value)

    def _status(self) -> int:
        return _AES_STATUS.pack(
            input_empty=not self._input,
            input_full=len(self._input) == _WORDS,
            output_empty=not self._output,
            output_full=len(self._output) == _WORDS,
        )

    def _put(self, value: int) -> None:
        if len(self._input) == _WORDS:
            self._flag("overflow", 1)
            return
        self._input.append(value)
        self._cipher()

    def _take(self) -> int:
        value = self._output.pop(0) if self._output else 0
        self._cipher()
        return value

    def _cipher(self) -> None:
        """Compute when a block is there, and the one before has been taken."""
        fields = _AES_CONTROL.unpack(self._words.get(_AES, 0))
        if len(self._input) < _WORDS or self._output or not fields["enable"]:
            return
        length = _WORDS + 2 * fields["key_size"]
        if length > _LONGEST_KEY:
            raise StoppedError(
                "E825", "AES is given key size 3, of 128, 192 and 256 bits (0 to 2)",
                remedy="Set KEY_SIZE in MXC_AES->ctrl.",
            )  # fmt: skip
        key = b"".join(_bytes(self._words.get(_KEYS + 4 * i, 0)) for i in range(length))
        block = b"".join(map(_bytes, self._input))
        result = (decrypt if fields["kind"] else encrypt)(block, key)
        self._input.clear()
        self._output = [int.from_bytes(result[i : i + 4], "little") for i in range(0, 16, 4)]
        self._flag("done", 1)

    # CRC

    def _add(self, data: bytes) -> None:
        fields = _CRC_CONTROL.unpack(self._words.get(_CRC, 0))
        if not fields["enable"]:
            return
        msb_first = bool(fields["msb_first"])
        if fields["swap_in"] != msb_first:
            data = data[::-1]
        value, polynomial = self._words[_CRC + 12], self._words[_CRC + 8]
        self._words[_CRC + 12] = divided(data, value, polynomial, msb_first=msb_first)

    def _sum(self) -> int:
        value = self._words[_CRC + 12]
        swaps = _CRC_CONTROL.unpack(self._words.get(_CRC, 0))["swap_out"]
        return int.from_bytes(_bytes(value), "big") if swaps else value

    # Random numbers

    def _random(self) -> int:
        self._noise = next_random(self._noise)
        return self._noise


def _bytes(word: int) -> bytes:
    return word.to_bytes(4, "little")
