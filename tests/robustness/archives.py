"""Archives that unpack to more than there is."""

from __future__ import annotations

import gzip
import io
import zipfile
from functools import cache

_BYTES = 1 << 29


@cache
def bomb(*, gzipped: bool = False) -> bytes:
    """Return an archive of less than a megabyte that unpacks to 512 MiB of zeros or more."""
    file = io.BytesIO()
    part = bytes(1 << 24)
    if gzipped:
        return gzip.compress(part, compresslevel=6, mtime=0) * (_BYTES // len(part))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in ("archive/data.pkl", "x.npy", "addr.npy"):
            with archive.open(name, "w", force_zip64=True) as member:
                for _ in range(_BYTES // len(part) // 2):
                    member.write(part)
    return file.getvalue()
