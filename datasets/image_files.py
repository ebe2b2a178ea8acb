"""Pictures in files and folders, read with Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ai8xtools.reading import open_file
from ai8xtools.reading.system import in_order
from datasets.errors import REPLACE, DatasetError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES = 256 << 20
MAX_PIXELS = 40_000_000
"""A picture takes up to 11 bytes of memory for each pixel while it is converted."""
_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp"})


def image_files(folder: Path, layout: str) -> list[Path]:
    """Return the pictures directly in `folder` by name.

    Raises DatasetError E620 if it does not exist, E621 if there are none; `layout` is the remedy.
    """
    if not folder.is_dir():
        raise DatasetError("E620", "the folder is missing", str(folder), layout)
    files = in_order(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES)
    if not files:
        raise DatasetError("E621", "the folder has no pictures", str(folder), layout)
    return files


@contextmanager
def opened(path: Path) -> Iterator[Image]:
    """Open a picture for the block; what Pillow cannot read becomes DatasetError E613."""
    from PIL import Image, UnidentifiedImageError

    with open_file(path, MAX_BYTES) as stream:
        try:
            with Image.open(stream) as image:
                if image.width * image.height > MAX_PIXELS:
                    said = f"the picture has {image.width}x{image.height} pixels"
                    limit = f"the limit is {MAX_PIXELS:,} in all"
                    raise DatasetError("E613", f"{said}, {limit}", str(path), REPLACE)
                yield image
        except DatasetError:
            raise
        except UnidentifiedImageError as exc:  # its text names the stream, not the file
            raise DatasetError("E613", "the file is no picture", str(path), REPLACE) from exc
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as exc:
            raise DatasetError(
                "E613", f"the picture cannot be read ({exc})", str(path), REPLACE
            ) from exc


def as_tensor(image: Image) -> Tensor:
    """Return a picture in colour as uint8 [3, H, W]."""
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def read_image(path: Path) -> Tensor:
    """Return the picture of a file in colour as uint8 [3, H, W]."""
    with opened(path) as image:
        return as_tensor(image)
