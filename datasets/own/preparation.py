"""Files as the numbers that a network was trained on; without torch, for the emulator too.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import MIB, open_file, read_bytes
from datasets.errors import REPLACE, DatasetError, library

PICTURES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff",
                      ".webp"})  # fmt: skip
SOUNDS = frozenset({".flac", ".wav"})
MAX_BYTES = 256 * MIB
"""Of a picture or sound."""
_LEAST_RATE, _MOST_RATE = 1000, 1_000_000
"""Sounds are sampled between these; others would become thousands of times as long."""
DESCRIPTION = "dataset.json"
"""The file of a project with the names of its classes and the preparation of inputs."""
FRAME = 128
"""Channels of a sound: sample n is channel n % 128 at time n // 128."""
Bytes = NDArray[np.uint8]
Integers = NDArray[np.int8]
_MODES = {1: "L", 3: "RGB"}
_WIDTHS = {1: "u1", 2: "<i2", 4: "<i4"}


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a file becomes the input [C, H, W] (or [C, L, 1]) of a network.

    `kind` is "picture", "sound", or "features" for rows of numbers, whose columns reach from `low`
    to `high` in training. `rate` is that of sounds in Hz. `stretch` scales both sides of pictures.
    """

    kind: str
    shape: tuple[int, int, int]
    stretch: bool = False
    rate: int = 16000
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    @staticmethod
    def of(found: Mapping[str, Any]) -> Preparation:
        """Return the preparation of plain values; LookupError, TypeError or ValueError."""
        channels, rows, columns = (int(size) for size in found["shape"])
        return Preparation(
            str(found["kind"]), (channels, rows, columns), bool(found.get("stretch")),
            int(found.get("rate", 16000)), tuple(map(float, found.get("low", ()))),
            tuple(map(float, found.get("high", ()))),
        )  # fmt: skip

    def inputs_of(self, path: Path) -> list[Integers]:
        """Return the inputs in a picture or a sound, int8 of `shape`; DatasetError for others."""
        ending = path.suffix.lower()
        if self.kind == "picture" and ending in PICTURES:
            return [integers(read_picture(path, self))]
        if self.kind == "sound" and ending in SOUNDS:
            return [integers(part) for part in read_sound(path, self)]
        wanted = sorted(PICTURES if self.kind == "picture" else SOUNDS)
        raise DatasetError(
            "E682", f"the network was trained on {self.kind}s", str(path),
            "Name a NumPy file of integers (.npy)"
            + ("." if self.kind == "features" else f", or one of {', '.join(wanted)}."),
        )  # fmt: skip


def integers(values: Bytes) -> Integers:
    """Return bytes as the integers -128..127 that `ai8x.normalize` makes of them."""
    scaled = (values.astype(np.float32) / np.float32(255) - np.float32(0.5)) * np.float32(256)
    return np.clip(np.round(scaled), -128, 127).astype(np.int8)


def read_picture(path: Path, preparation: Preparation) -> Bytes:
    """Return a picture as uint8 [C, H, W]; DatasetError E613 for what is none."""
    from PIL import Image, ImageOps

    channels, rows, columns = preparation.shape
    try:
        with open_file(path, MAX_BYTES) as stream, Image.open(stream) as opened:
            image = ImageOps.exif_transpose(opened).convert(_MODES[channels])
            if image.size != (columns, rows):
                image = _fitted(image, rows, columns, preparation.stretch)
            return np.asarray(image, np.uint8).reshape(rows, columns, channels).transpose(2, 0, 1)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as exc:
        raise unreadable(path, exc) from exc


def size_of_picture(path: Path) -> tuple[int, int]:
    """Return rows and columns of a picture; DatasetError E613 for what is none."""
    from PIL import Image, ImageOps

    try:
        with open_file(path, MAX_BYTES) as stream, Image.open(stream) as image:
            width, height = ImageOps.exif_transpose(image).size
            return height, width
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as exc:
        raise unreadable(path, exc) from exc


def unreadable(path: Path, exc: Exception) -> DatasetError:
    """Return the error for a file that is no picture."""
    from PIL import UnidentifiedImageError

    if path.exists() and not path.stat().st_size:
        return DatasetError("E613", "the file is empty", str(path), REPLACE)
    if isinstance(exc, UnidentifiedImageError):  # its text may name a stream, not the file
        return DatasetError("E613", "the file is no picture", str(path), REPLACE)
    return DatasetError("E613", f"the picture cannot be read ({exc})", str(path), REPLACE)


def _fitted(image: Any, rows: int, columns: int, stretch: bool) -> Any:
    """Return a picture of this size: both sides scaled, or scaled alike and cut in the middle."""
    if stretch:
        return image.resize((columns, rows))
    width, height = image.size
    ratio = max(columns / width, rows / height)
    size = max(columns, round(width * ratio)), max(rows, round(height * ratio))
    left, top = (size[0] - columns) // 2, (size[1] - rows) // 2
    return image.resize(size).crop((left, top, left + columns, top + rows))


def read_sound(path: Path, preparation: Preparation) -> list[Bytes]:
    """Return the windows of a sound as uint8 [C, L, 1], one after the other.

    Zeros follow a sound that is shorter than a window; a rest of less than half a window is left
    out. Raises DatasetError E613 for what is no sound.
    """
    samples, rate = _flac(path) if path.suffix.lower() == ".flac" else _wav(path)
    if not len(samples):
        raise DatasetError("E613", "the sound has no samples", str(path), REPLACE)
    samples = _resampled(samples, rate, preparation.rate, path)
    length = preparation.shape[0] * preparation.shape[1]
    count = max(1, (len(samples) + length // 2) // length)
    padded = np.pad(samples, (0, max(0, count * length - len(samples))))[: count * length]
    values = np.clip(np.round((padded + 1) * 128), 0, 255).astype(np.uint8)
    windows = values.reshape(count, preparation.shape[1], preparation.shape[0])
    return [window.T.reshape(preparation.shape) for window in windows]


def _wav(path: Path) -> tuple[NDArray[np.float32], int]:
    """Return the samples of a WAV file, the mean of its tracks, as float32 of -1..1."""
    content = read_bytes(path, MAX_BYTES)
    if not content:
        raise DatasetError("E613", "the file is empty", str(path), REPLACE)
    try:
        with wave.open(io.BytesIO(content)) as file:
            width, tracks, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as exc:
        said = f"it is no WAV file of samples ({str(exc) or 'it ends early'})"
        raise DatasetError("E613", said, str(path), REPLACE) from exc
    data = data[: len(data) // (width * tracks) * width * tracks]
    if width == 3:  # as 32 bits, whose lowest byte is 0
        triples = np.frombuffer(data, np.uint8).reshape(-1, 3)
        levels = np.pad(triples, ((0, 0), (1, 0))).view("<i4").astype(np.float32) / (1 << 31)
    else:
        levels = np.frombuffer(data, _WIDTHS[width]).astype(np.float32) / (1 << 8 * width - 1)
    if width == 1:
        levels -= 1
    return levels.reshape(-1, tracks).mean(1, dtype=np.float32), rate


def _flac(path: Path) -> tuple[NDArray[np.float32], int]:
    """Return the samples of a FLAC file as those of a WAV file."""
    soundfile = library("soundfile", "reads FLAC files", str(path))
    try:
        samples, rate = soundfile.read(str(path), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as exc:
        raise DatasetError("E613", f"it is no FLAC file ({exc})", str(path), REPLACE) from exc
    return samples.mean(1, dtype=np.float32), int(rate)


def _resampled(
    samples: NDArray[np.float32], rate: int, wanted: int, path: Path
) -> NDArray[np.float32]:
    """Return samples of another rate."""
    if rate == wanted:
        return samples
    if not _LEAST_RATE <= rate <= _MOST_RATE:
        raise DatasetError("E613", f"its rate is {rate} Hz", str(path), REPLACE)
    resample: Any = library("scipy.signal", f"resamples sounds of {rate} Hz", str(path))
    ratio = Fraction(wanted, rate).limit_denominator(1000)
    result: NDArray[np.float32] = resample.resample_poly(
        samples, ratio.numerator, ratio.denominator
    ).astype(np.float32)
    return result
