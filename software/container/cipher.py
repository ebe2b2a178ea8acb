"""ChaCha20 over the data section: position 0 is block 1, so every part can be read by itself."""

from __future__ import annotations

from diagnostics.errors import InputError
from reading import read_bytes

_MOST_BYTES = 4096
KEY_BYTES, NONCE_BYTES = 32, 12
_FIRST_BLOCK = 1


def deciphered(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Return the data decrypted, or encrypted: both are the same.

    Raises InputError E923 if the library is not installed, ValueError for a key or nonce of another
    length.
    """
    if len(key) != KEY_BYTES or len(nonce) != NONCE_BYTES:
        raise ValueError(f"a key of {len(key)} bytes, a nonce of {len(nonce)}")
    try:  # needed by encrypted containers only
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    except ImportError:
        raise InputError(
            "E923",
            "the package cryptography is not installed; it encrypts and decrypts",
            remedy="Install it: pip install -r requirements-encryption.txt",
        ) from None
    counter = _FIRST_BLOCK.to_bytes(4, "little")
    return bytes(Cipher(ChaCha20(key, counter + nonce), None).encryptor().update(data))


def read_key(path: str) -> bytes:
    """Return the key that a file holds; raises InputError E927 if it is none, and OSError."""
    key = read_bytes(path, _MOST_BYTES)
    if len(key) != KEY_BYTES:
        raise InputError(
            "E927", f"it has {len(key)} bytes, a key has {KEY_BYTES}", path,
            "Make one: head -c 32 /dev/urandom > key.bin",
        )  # fmt: skip
    return key
