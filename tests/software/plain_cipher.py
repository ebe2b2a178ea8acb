"""ChaCha20 and Poly1305 as RFC 8439 defines them, in plain Python.

`Cipher`, `ChaCha20` and `ChaCha20Poly1305` take the place of those of the package cryptography, so
that encrypted containers are tested without it.
"""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

_MASK = 0xFFFFFFFF
_PLACE = "cryptography.hazmat.primitives.ciphers"
_ROUNDS = [(n, 4 + (n + k) % 4, 8 + (n + 2 * k) % 4, 12 + (n + 3 * k) % 4)
           for k in (0, 1) for n in range(4)]  # fmt: skip
"""Words of a quarter round: columns, then diagonals."""


def block(key: bytes, counter_and_nonce: bytes) -> bytes:
    """Return 64 bytes of the stream."""
    start = [int.from_bytes(chunk, "little") for chunk in _chunks(
        b"expand 32-byte k" + key + counter_and_nonce, 4)]  # fmt: skip
    words = [*start]
    for a, b, c, d in _ROUNDS * 10:
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            words[x] = (words[x] + words[y]) & _MASK
            mixed = words[z] ^ words[x]
            words[z] = (mixed << bits | mixed >> (32 - bits)) & _MASK
    sums = ((one + other) & _MASK for one, other in zip(words, start, strict=True))
    return b"".join(word.to_bytes(4, "little") for word in sums)


def stream(key: bytes, nonce: bytes, data: bytes, counter: int) -> bytes:
    """Return data with the stream from block `counter` on."""
    made = b"".join(
        block(key, (counter + n).to_bytes(4, "little") + nonce) for n in range(-(-len(data) // 64))
    )
    return bytes(one ^ other for one, other in zip(data, made, strict=False))


def poly1305(key: bytes, text: bytes) -> bytes:
    """Return the tag of a text: a polynomial of its blocks modulo 2^130 - 5."""
    factor = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for chunk in _chunks(text, 16):
        total = (total + int.from_bytes(chunk + b"\1", "little")) * factor % ((1 << 130) - 5)
    total += int.from_bytes(key[16:], "little")
    return (total % (1 << 128)).to_bytes(16, "little")


def _chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16)


class ChaCha20:
    """Key, and block and nonce."""

    def __init__(self, key: bytes, nonce: bytes) -> None:
        self.key, self.nonce = key, nonce


class Cipher:
    """An encryptor of ChaCha20."""

    def __init__(self, algorithm: ChaCha20, mode: None) -> None:
        assert mode is None
        self.algorithm = algorithm

    def encryptor(self) -> Cipher:
        """Return itself."""
        return self

    def update(self, data: bytes) -> bytes:
        """Return data with the stream."""
        key, nonce = self.algorithm.key, self.algorithm.nonce
        return stream(key, nonce[4:], data, int.from_bytes(nonce[:4], "little"))


class ChaCha20Poly1305:
    """Encryption with a tag."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def encrypt(self, nonce: bytes, data: bytes, additional: bytes) -> bytes:
        """Return encrypted data and the tag of both."""
        hidden = stream(self.key, nonce, data, 1)
        sizes = b"".join(len(part).to_bytes(8, "little") for part in (additional, data))
        key = block(self.key, bytes(4) + nonce)[:32]
        return hidden + poly1305(key, _padded(additional) + _padded(hidden) + sizes)


def take_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the product find these classes where it looks for the package."""
    modules = {
        "": (), ".ciphers": (Cipher,), ".ciphers.aead": (ChaCha20Poly1305,),
        ".ciphers.algorithms": (ChaCha20,),
    }  # fmt: skip
    root = _PLACE.removesuffix(".ciphers")
    monkeypatch.setitem(sys.modules, "cryptography", ModuleType("cryptography"))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat", ModuleType("cryptography.hazmat"))
    for name, classes in modules.items():
        module = ModuleType(root + name)
        for one in classes:
            setattr(module, one.__name__, one)
        monkeypatch.setitem(sys.modules, module.__name__, module)
