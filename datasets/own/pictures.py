"""Pictures in files as bytes, read with Pillow: any depth, transparency, gamma and orientation.

Source: docs/own-data.md, "Pictures".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import MIB, open_file
from ai8xtools.reading.origin import accident
from datasets.errors import REPLACE, DatasetError

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = frozenset({".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm",
                     ".ppm", ".tif", ".tiff", ".webp"})  # fmt: skip
MAX_BYTES = 256 * MIB
MAX_PIXELS = 70_000_000
"""A picture takes up to 11 bytes of memory for each pixel while it is converted."""
GROUND = 128
"""The level behind transparent parts: drawings in black and in white stay visible."""
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
"""Others start programs, or have no size of their own."""
_HEAD = 1 << 16
"""Bytes that tell what a file is that is no picture."""
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, LookupError, OverflowError, TypeError,
            struct.error)  # fmt: skip
"""What Pillow raises for files that contradict themselves."""
_BITS, _PHOTOMETRIC, _PLANES, _FORM = 258, 262, 284, 339
"""Tags of TIFF: bits of a sample; 0 for white at zero; 2 for a plane for each colour; 2 for whole
numbers with a sign."""
_USUAL_GAMMA = 2.2
_SAME = 0.02
"""Exponents of light that differ less give the same picture."""
Tell = Callable[[str, Path], None]
"""Takes what is to be said of a file: that a part is left out, or values are converted."""


def ignore(_note: str, _path: Path) -> None:
    """Say nothing."""


@contextmanager
def opened(path: Path) -> Iterator[Image]:
    """Open a picture for the block; what Pillow cannot read becomes DatasetError E613."""
    from PIL import Image, UnidentifiedImageError

    with open_file(path, MAX_BYTES) as stream:
        try:
            with Image.open(stream, formats=_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    fault = f"the picture has {image.width}x{image.height} pixels"
                    raise _unread(path, f"{fault}, the limit is {MAX_PIXELS:,} in all")
                yield image
        except DatasetError:
            raise
        except UnidentifiedImageError as exc:  # its text names the stream, not the file
            stream.seek(0)
            head = stream.read(_HEAD)
            fault = "the file is no picture of a known kind" if head else "the file is empty"
            raise _refused(path, *(accident(head) or (fault, REPLACE))) from exc
        except (*_DAMAGED, Image.DecompressionBombError) as exc:
            raise _refused(path, f"the picture cannot be read ({exc})") from exc


def read(path: Path, mode: str, tell: Tell = ignore) -> Image:
    """Return the picture of a file, upright, in the mode L, RGB or RGBA, of bytes.

    Deeper samples are scaled by the range of their type, never by their extremes. What is
    transparent shows `GROUND`, but in the mode RGBA. Raises DatasetError E613 for what is no
    picture, E617 for one whose meaning is unknown.
    """
    from PIL import ImageOps

    with opened(path) as image:
        for note in notes_of(image, path):
            tell(note, path)
        exponent, key, white = _exponent(image, path), _key(image, path), _white(image, path)
        inverted = white is not None and _tag(image, _PHOTOMETRIC) == 0
        frame = ImageOps.exif_transpose(image)
        alpha = None if key is None else _alpha_of(frame, key)
        if white is not None:
            frame, exponent = _reduced(frame, white, exponent, inverted, path), 1.0
        if alpha is None and frame.has_transparency_data:
            frame = frame.convert("RGBA")
            alpha = frame.getchannel("A")
        if frame.mode not in ("L", "RGB"):
            frame = frame.convert("L" if frame.mode == "1" else "RGB")
        if exponent != 1:
            levels = np.round(255 * (np.arange(256) / 255) ** exponent).astype(int).tolist()
            frame = frame.point(levels * len(frame.getbands()))
        if alpha is not None and mode == "RGBA":
            frame.putalpha(alpha)
        elif alpha is not None:
            frame = _on_ground(frame, alpha, path)
        return frame.convert(mode)


def size_of(image: Image) -> tuple[int, int]:
    """Return rows and columns of an open picture when it is upright."""
    from PIL import ImageOps

    width, height = ImageOps.exif_transpose(image).size
    return height, width


def notes_of(image: Image, path: Path) -> Iterator[str]:
    """Yield notes about an open picture, whose pixels are not read for it."""
    if getattr(image, "is_animated", False):
        yield "several pictures or pages, of which the first is used"
    bits = _tag(image, _BITS)
    if image.mode == "F":
        yield "fractions 0..1, scaled by 255"
    elif 12 in (bits or ()):
        yield "12 bits, scaled by 255/4095"
    elif image.mode.startswith("I") or (";16" in _raw_mode(image) and image.format != "BMP"):
        yield "16 bits, scaled by 1/257"
    if _exponent(image, path) != 1:
        yield "a gamma of its own, which is applied"
    if image.has_transparency_data:
        yield f"transparency, over middle grey ({GROUND})"


def _raw_mode(image: Image) -> str:
    """Return how samples stand in a file, in the language of Pillow."""
    tile = getattr(image, "tile", ())
    arguments = tile[0][3] if tile else ""
    mode = arguments[0] if isinstance(arguments, tuple) and arguments else arguments
    return mode if isinstance(mode, str) else ""


def _tag(image: Image, number: int) -> Any:
    """Return a tag of a TIFF; None without it, and for other pictures."""
    return getattr(image, "tag_v2", {}).get(number)


def _exponent(image: Image, path: Path) -> float:
    """Return the exponent that makes the levels 0..1 of a PNG the usual ones."""
    gamma = image.info.get("gamma")
    if image.format != "PNG" or gamma is None or {"srgb", "icc_profile"} & image.info.keys():
        return 1.0
    if not 0.1 <= gamma <= 10:
        raise _unread(path, f"its gamma is {gamma:g}, expected 0.1 to 10")
    exponent = 1 / (_USUAL_GAMMA * gamma)
    return 1.0 if abs(exponent - 1) < _SAME else exponent


def _white(image: Image, path: Path) -> float | None:
    """Return the value that stands for white; None for pictures of bytes."""
    if image.mode == "F":
        return 1.0
    is_usual = {*(_tag(image, _BITS) or ())} == {8} and _tag(image, _PHOTOMETRIC) != 0
    if _tag(image, _PLANES) == 2 and not is_usual:  # Pillow takes other samples for bytes
        raise _unread(
            path, "its colours are in separate planes, with other samples than bytes",
            "Save it with interleaved colours, the usual form.",
        )  # fmt: skip
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        return 4095.0 if 12 in (_tag(image, _BITS) or ()) else 65535.0
    if image.mode == "LAB":
        raise _unread(path, "its colours are CIELAB", "Save it in grey or RGB.")
    if image.mode == "I" or 2 in (_tag(image, _FORM) or ()):
        raise _unread(
            path, "it has whole numbers of 32 bits, or with a sign, whose range is not known",
            "Save it with 8 or 16 bits.",
        )  # fmt: skip
    return None


def _reduced(frame: Image, white: float, exponent: float, inverted: bool, path: Path) -> Image:
    """Return a picture of deeper samples as bytes."""
    from PIL import Image

    values = np.asarray(frame).astype(np.float32)
    if frame.mode == "F" and not (
        np.isfinite(values).all() and 0 <= values.min() <= values.max() <= 1
    ):
        raise _unread(
            path, f"it has fractions from {values.min():g} to {values.max():g}; only 0 to 1 has a "
            "known meaning", "Scale it to 0..1, or save it with 8 or 16 bits.",
        )  # fmt: skip
    values = values / np.float32(white)
    levels = np.round(255 * (1 - values if inverted else values) ** exponent)
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


def _key(image: Image, path: Path) -> NDArray[np.int64] | None:
    """Return the grey or colour that is transparent in a PNG, in the units of its pixels."""
    key = image.info.get("transparency")
    if key is None or image.mode not in ("1", "L", "I;16", "I", "RGB"):
        return None  # of a palette: Pillow knows
    raw = _raw_mode(image)
    if image.mode == "RGB" and ";16" in raw:
        raise _unread(
            path, "one of its 16-bit colours is transparent", "Save it with 8 bits, or with alpha."
        )
    return np.array(key) * {"L;2": 85, "L;4": 17}.get(raw, 1)


def _alpha_of(frame: Image, key: NDArray[np.int64]) -> Image:
    """Return what of a picture is opaque."""
    from PIL import Image

    same = np.asarray(frame.convert("L") if frame.mode == "1" else frame) == key
    same = same.all(2) if same.ndim == 3 else same
    frame.info.pop("transparency", None)
    return Image.fromarray(np.where(same, 0, 255).astype(np.uint8))


def _on_ground(frame: Image, alpha: Image, path: Path) -> Image:
    """Return a picture over the ground; a fully transparent one is refused."""
    from PIL import Image

    ground = Image.new(frame.mode, frame.size, (GROUND,) * len(frame.getbands()))
    result = Image.composite(frame, ground, alpha)
    if _is_even(result) and not (_is_even(frame) and _is_even(alpha)):
        raise _unread(
            path, "it is transparent, and over middle grey nothing of it is seen",
            "Save it over another ground, without transparency.",
        )  # fmt: skip
    return result


def _is_even(image: Image) -> bool:
    return all(len(set(band.getextrema())) == 1 for band in image.split())


def _refused(path: Path, message: str, remedy: str = REPLACE) -> DatasetError:
    return DatasetError("E613", message, str(path), remedy)


def _unread(path: Path, message: str, remedy: str = REPLACE) -> DatasetError:
    return DatasetError("E617", message, str(path), remedy)
