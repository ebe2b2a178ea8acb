"""ChaCha20 over the data section, and a Poly1305 tag of the whole file behind it.

Position 0 of the data is block 1, so every part can be read by itself; and block 0 is left for the
key of the tag, as ChaCha20-Poly1305 (RFC 8439) has it. Additional data are all bytes in front of
the data section and behind it.
"""

from __future__ import annotations

from typing import Any

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import read_bytes
from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.records import HEADER, Flag, Header

_MOST_BYTES = 4096
KEY_BYTES, NONCE_BYTES = 32, 12
_FIRST_BLOCK = 1
TAG_MARK = b"NNB1-Poly1305".ljust(16, b"\0")
TAG_BYTES = len(TAG_MARK) + 16
"""Of mark and tag, which follow the file as its header states it."""


def deciphered(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Return the data decrypted, or encrypted: both are the same.

    Raises InputError E624 if the library is not installed, ValueError for a key or nonce of another
    length.
    """
    if len(key) != KEY_BYTES or len(nonce) != NONCE_BYTES:
        raise ValueError(f"a key of {len(key)} bytes, a nonce of {len(nonce)}")
    cipher, chacha20, _ = _library()
    counter = _FIRST_BLOCK.to_bytes(4, "little")
    return bytes(cipher(chacha20(key, counter + nonce), None).encryptor().update(data))


def _library() -> tuple[Any, Any, Any]:
    """Return Cipher, ChaCha20 and ChaCha20Poly1305, which only encrypted containers need."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    except ImportError:
        raise InputError(
            "E624",
            "the package cryptography is not installed; it encrypts and decrypts",
            remedy="Install it: pip install cryptography",
        ) from None
    return Cipher, ChaCha20, ChaCha20Poly1305


def tagged(blob: bytes, key: bytes) -> bytes:
    """Return an encrypted file with its tag behind it; raises InputError E624."""
    return blob + TAG_MARK + _tag(blob, Header(*HEADER.unpack_from(blob)), key)


def has_tag(blob: bytes) -> bool:
    """Whether a tag follows a file, whose header has been checked."""
    total = Header(*HEADER.unpack_from(blob)).total
    return blob[total : total + len(TAG_MARK)] == TAG_MARK and len(blob) >= total + TAG_BYTES


def check_tag(blob: bytes, key: bytes) -> bool:
    """Return whether an encrypted file has a tag, and raise ContainerError "tag" if it is wrong."""
    header = Header(*HEADER.unpack_from(blob))
    if not header.flags & Flag.ENCRYPTED or not has_tag(blob):
        return False
    stored = blob[header.total + len(TAG_MARK) :][: TAG_BYTES - len(TAG_MARK)]
    if stored != _tag(blob, header, key):
        raise ContainerError("tag", "the key is another one, or the file was changed")
    return True


def _tag(blob: bytes, header: Header, key: bytes) -> bytes:
    end = header.data + header.data_bytes
    clear = deciphered(blob[header.data : end], key, header.nonce)
    additional = blob[: header.data] + blob[end : header.total]
    _, _, chacha20_poly1305 = _library()
    sealed = chacha20_poly1305(key).encrypt(header.nonce, clear, additional)
    return bytes(sealed[len(clear) :])


def read_key(path: str) -> bytes:
    """Return the key that a file holds; raises InputError E927 if it is none, and OSError."""
    key = read_bytes(path, _MOST_BYTES)
    if len(key) != KEY_BYTES:
        raise InputError(
            "E927", f"it has {len(key)} bytes, a key has {KEY_BYTES}", path,
            "Make one: python -c \"import os; open('key.bin', 'wb').write(os.urandom(32))\"",
        )  # fmt: skip
    return key
