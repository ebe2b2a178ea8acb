"""Recognizes common mistakes by the bytes of a file: what it is instead of what it should be."""

from __future__ import annotations

_POINTER = b"version https://git-lfs.github.com/spec/"
_LOST = b"\xef\xbf\xbd"
"""What UTF-8 has for a byte that is no text."""
_PAGES = (b"<!doctype html", b"<html", b"<?xml")
_SHARE_LOST = 50


def accident(data: bytes | memoryview) -> tuple[str, str] | None:
    """Return what happened to a binary file, and the remedy; None if it is no common mistake."""
    start = bytes(data[:64])
    if start.startswith(_POINTER):
        return "it is a Git LFS pointer, not the file itself", "Run `git lfs pull` there."
    if start.lstrip().lower().startswith(_PAGES):
        return "it is a web page, not the file itself", "Download the file itself, again."
    head = bytes(data[: 1 << 16])
    if start.startswith((_LOST, b"\xc2\x93NUMPY")) or head.count(_LOST) * _SHARE_LOST > len(head):
        return "it is damaged: it was converted as text", CONVERTED
    return None


CONVERTED = (
    "Copy the original again, as binary data; in a Git repository, `.gitattributes` needs a line "
    "such as `*.npy binary`."
)
