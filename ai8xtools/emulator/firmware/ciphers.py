"""Arithmetic of the chip's blocks: AES on blocks of 16 bytes (FIPS 197), CRC, random numbers."""

from __future__ import annotations

from functools import cache

_WORD, _BLOCK = 4, 16
_WORD_MASK = 0xFFFFFFFF
_MIX, _UNMIX = (2, 3, 1, 1), (14, 11, 13, 9)


def _times(a: int, b: int) -> int:
    """Multiply two bytes in the field of 256 elements."""
    product = 0
    while b:
        product ^= a * (b & 1)
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


@cache
def _tables() -> tuple[bytes, bytes]:
    """Return the substitution of bytes and its inverse."""
    forward = bytearray(256)
    for value in range(256):
        inverse = next((i for i in range(256) if _times(value, i) == 1), 0)
        repeated = inverse * 0x101
        forward[value] = 0x63
        for shift in range(4, 9):
            forward[value] ^= repeated >> shift & 0xFF
    backward = bytearray(256)
    for value, substitute in enumerate(forward):
        backward[substitute] = value
    return bytes(forward), bytes(backward)


@cache
def _round_keys(key: bytes) -> tuple[bytes, ...]:
    """Return the keys of all rounds, one more than there are rounds."""
    substitution, length = _tables()[0], len(key) // _WORD
    words = [key[i : i + _WORD] for i in range(0, len(key), _WORD)]
    constant = 1
    while len(words) < _WORD * (length + 7):
        word = words[-1]
        if len(words) % length == 0:
            word = (word[1:] + word[:1]).translate(substitution)
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _times(constant, 2)
        elif length > 6 and len(words) % length == 4:
            word = word.translate(substitution)
        words.append(_sum(word, words[-length]))
    return tuple(b"".join(words[i : i + _WORD]) for i in range(0, len(words), _WORD))


def _sum(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def _shifted(block: bytes, step: int) -> bytes:
    """Rotate row r of the columns by r times a step."""
    return bytes(block[(i + _WORD * step * (i % _WORD)) % _BLOCK] for i in range(_BLOCK))


def _mixed(block: bytes, factors: tuple[int, ...]) -> bytes:
    """Multiply each column with a matrix whose rows are the factors, rotated."""
    mixed = bytearray()
    for position in range(_BLOCK):
        column = block[position - position % _WORD :][:_WORD]
        value = 0
        for i, byte in enumerate(column):
            value ^= _times(byte, factors[(i - position) % _WORD])
        mixed.append(value)
    return bytes(mixed)


def encrypt(block: bytes, key: bytes) -> bytes:
    """Encrypt 16 bytes with a key of 16, 24 or 32 bytes."""
    first, *others = _round_keys(key)
    block = _sum(block, first)
    for number, round_key in enumerate(others, 1):
        block = _shifted(block.translate(_tables()[0]), 1)
        if number < len(others):
            block = _mixed(block, _MIX)
        block = _sum(block, round_key)
    return block


def decrypt(block: bytes, key: bytes) -> bytes:
    """Decrypt 16 bytes with the key, of 16, 24 or 32 bytes, with which they were encrypted."""
    first, *others = _round_keys(key)
    for number, round_key in enumerate(reversed(others)):
        block = _sum(block, round_key)
        if number:
            block = _mixed(block, _UNMIX)
        block = _shifted(block, -1).translate(_tables()[1])
    return _sum(block, first)


def divided(data: bytes, value: int, polynomial: int, *, msb_first: bool) -> int:
    """Return the CRC of 32 bits after further bytes, `value` before them.

    Without `msb_first` the lowest bit comes first, and the polynomial has its lowest power in the
    highest bit.
    """
    for byte in data:
        value ^= byte << 24 if msb_first else byte
        for _ in range(8):
            if msb_first:
                value = value << 1 & _WORD_MASK ^ (polynomial if value >> 31 else 0)
            else:
                value = value >> 1 ^ (polynomial if value & 1 else 0)
    return value


def next_random(value: int) -> int:
    """Return the number of 32 bits that follows on one that is not 0."""
    value ^= value << 13 & _WORD_MASK
    value ^= value >> 17
    return value ^ value << 5 & _WORD_MASK
