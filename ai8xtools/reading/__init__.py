"""Files that others wrote: opened only if they are regular files, read up to a limit.

A path of the user's may lead to a pipe that nobody writes to, a device without an end, or a file
that fills the memory. Every reader of such a file opens it here. What is in it is cleaned by `text`
before a person sees it.
"""

from ai8xtools.reading.files import (
    MIB,
    ForeignFileError,
    check_sources,
    open_file,
    read_bytes,
    read_text,
    real_path,
    shipped,
    source_text,
    where_else,
)

__all__ = [
    "MIB", "ForeignFileError", "check_sources", "open_file", "read_bytes", "read_text", "real_path",
    "shipped", "source_text", "where_else",
]  # fmt: skip
