"""Files as the numbers that a network was trained on; without torch, for the emulator too.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.errors import REPLACE, DatasetError, library
from datasets.own import pictures, sounds
from datasets.own.levels import Doubles, Floats, levels, offsets_and_factors
from datasets.own.pictures import Tell, ignore

PICTURES, SOUNDS = pictures.ENDINGS, sounds.ENDINGS
_LEAST_RATE, _MOST_RATE = 1000, 1_000_000
"""Sounds are sampled between these; others would become thousands of times as long."""
DESCRIPTION = "dataset.json"
"""The file of a project with the names of its classes and the preparation of inputs."""
DETECTOR_FILE = "detector.json"
"""Another one, of a detector: how objects are found in its outputs."""
FRAME = 128
"""Channels of a sound: sample n is channel n % 128 at time n // 128."""
Bytes = NDArray[np.uint8]
Integers = NDArray[np.int8]
_MODES = {1: "L", 3: "RGB"}


@dataclass(frozen=True, slots=True)
class Preparation:
    """How a file becomes the input [C, H, W] (or [C, L, 1]) of a network.

    `kind` is "picture", "sound", "features" for rows of numbers, or "series" for numbers over time;
    their columns or channels reach from `low` to `high` in training. `rate` is that of sounds in
    Hz. `stretch` scales both sides of pictures. `fold` time steps of a series are the channels of
    one, and so are blocks of `fold` x `fold` pixels of a picture. Of numbers that are learned,
    `target` are mean and standard deviation in training, of which outputs are multiples.
    """

    kind: str
    shape: tuple[int, int, int]
    stretch: bool = False
    rate: int = 16000
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    fold: int = 1
    target: tuple[float, ...] = ()

    @property
    def scale(self) -> tuple[Doubles, Floats]:
        """Offsets and factors of the columns or channels."""
        return offsets_and_factors(self.low, self.high)

    @property
    def unfolded(self) -> tuple[int, int, int]:
        """Channels, rows and columns of a picture whose blocks become channels."""
        channels, rows, columns = self.shape
        return channels // self.fold**2, rows * self.fold, columns * self.fold

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    @staticmethod
    def of(values: Mapping[str, Any]) -> Preparation:
        """Return the preparation of plain values; LookupError, TypeError or ValueError."""
        channels, rows, columns = (int(size) for size in values["shape"])
        return Preparation(
            str(values["kind"]), (channels, rows, columns), bool(values.get("stretch")),
            int(values.get("rate", 16000)), tuple(map(float, values.get("low", ()))),
            tuple(map(float, values.get("high", ()))), int(values.get("fold", 1)),
            tuple(map(float, values.get("target", ()))),
        )  # fmt: skip

    def of_numbers(self, values: NDArray[Any]) -> Integers:
        """Return rows [N, F] or series [N, C, L] of numbers as inputs [N, ...]; ValueError if they
        have another shape.

        Where L is no multiple of `fold`, or one short of it, the last step is repeated.
        """
        offset, factor = self.scale
        if self.kind == "features":
            if values.shape[1:] != offset.shape:
                raise ValueError(f"{len(offset)} numbers")
            return levels(values, offset, factor)[:, :, None, None]
        channels, steps = len(offset), self.shape[1] * self.fold
        missing = steps - values.shape[-1]
        if values.shape[1:-1] != (channels,) or not 0 <= missing < self.fold:
            raise ValueError(f"{channels} channels of {steps} steps")
        numbers = levels(values, offset[:, None], factor[:, None])
        numbers = np.pad(numbers, ((0, 0), (0, 0), (0, missing)), mode="edge")
        folded = numbers.reshape(len(numbers), channels, self.shape[1], self.fold)
        return folded.transpose(0, 1, 3, 2).reshape(len(numbers), *self.shape)

    def of_bytes(self, values: Bytes) -> Integers:
        """Return pictures [..., C, H, W] or sounds of bytes as inputs."""
        return integers(folded(values, self.fold))

    def inputs_of(self, path: Path, tell: Tell = ignore) -> list[Integers]:
        """Return the inputs in a picture or a sound, int8 of `shape`; DatasetError for others."""
        ending = path.suffix.lower()
        if self.kind == "picture" and ending in PICTURES:
            return [self.of_bytes(read_picture(path, self, tell))]
        if self.kind == "sound" and ending in SOUNDS:
            return [integers(part) for part in read_sound(path, self, tell)]
        endings = ", ".join(sorted(PICTURES if self.kind == "picture" else SOUNDS))
        raise DatasetError(
            "E630", f"the network was trained on {self.kind.removesuffix('s')}s", str(path),
            "Name a NumPy file (.npy) of integers, "
            + ("or of measurements as fractions." if self.low else f"or one of {endings}."),
        )  # fmt: skip


def folded(pictures: NDArray[Any], fold: int) -> NDArray[Any]:
    """Return pictures [..., C, H, W] with blocks of pixels as channels, as `ai8x.fold` does."""
    if fold == 1:
        return pictures
    steps = range(fold)
    blocks = [pictures[..., i::fold, j::fold] for i in steps for j in steps]
    return np.concatenate(blocks, axis=-3)


def integers(values: Bytes) -> Integers:
    """Return bytes as the integers -128..127 that `ai8x.normalize` makes of them."""
    scaled = (values.astype(np.float32) / np.float32(255) - np.float32(0.5)) * np.float32(256)
    return np.clip(np.round(scaled), -128, 127).astype(np.int8)


def read_picture(path: Path, preparation: Preparation, tell: Tell = ignore) -> Bytes:
    """Return a picture as uint8 [C, H, W], not folded; DatasetError E613 for what is none."""
    channels, rows, columns = preparation.unfolded
    image = pictures.read(path, _MODES[channels], tell)
    image = fitted(image, rows, columns, preparation.stretch)
    return np.asarray(image, np.uint8).reshape(rows, columns, channels).transpose(2, 0, 1)


def fitted(image: Any, rows: int, columns: int, stretch: bool, resample: Any = None) -> Any:
    """Return a picture of this size: both sides scaled, or scaled alike and cut in the middle.

    `resample` is Pillow's rule for the pixels between, None the one that it takes for pictures.
    """
    size, left, top = cut(image.size, rows, columns, stretch)
    scaled = image if image.size == size else image.resize(size, resample)
    if size == (columns, rows):
        return scaled
    return scaled.crop((left, top, left + columns, top + rows))


def cut(
    size: tuple[int, int], rows: int, columns: int, stretch: bool
) -> tuple[tuple[int, int], int, int]:
    """Return the width and height to which a picture of another `size` is scaled, and where it is
    cut: its left and its top."""
    if stretch:
        return (columns, rows), 0, 0
    width, height = size
    ratio = max(columns / width, rows / height)
    size = max(columns, round(width * ratio)), max(rows, round(height * ratio))
    return size, (size[0] - columns) // 2, (size[1] - rows) // 2


def read_sound(path: Path, preparation: Preparation, tell: Tell = ignore) -> list[Bytes]:
    """Return the windows of a sound as uint8 [C, L, 1], one after the other.

    Zeros follow a sound that is shorter than a window; a rest of less than half a window is left
    out. Raises DatasetError E613 for what is no sound.
    """
    sound = sounds.read(path, tell)
    if not len(sound.samples):
        raise DatasetError("E613", "the sound has no samples", str(path), REPLACE)
    if sound.samples.shape[1] > 1:
        tell("several tracks, whose mean is used", path)
    samples = sound.samples.mean(1, dtype=np.float32)
    if np.abs(samples).max() > 1:
        tell("samples beyond -1..1, which are cut off", path)
    if sound.rate != preparation.rate:
        tell(f"{sound.rate} Hz, resampled", path)
        samples = _resampled(samples, sound.rate, preparation.rate, path)
    length = preparation.shape[0] * preparation.shape[1]
    count = max(1, (len(samples) + length // 2) // length)
    padded = np.pad(samples, (0, max(0, count * length - len(samples))))[: count * length]
    values = np.clip(np.round((padded + 1) * 128), 0, 255).astype(np.uint8)
    windows = values.reshape(count, preparation.shape[1], preparation.shape[0])
    return [window.T.reshape(preparation.shape) for window in windows]


def _resampled(
    samples: NDArray[np.float32], rate: int, target_rate: int, path: Path
) -> NDArray[np.float32]:
    """Return samples of another rate."""
    if not _LEAST_RATE <= rate <= _MOST_RATE:
        raise DatasetError("E617", f"its rate is {rate} Hz", str(path), REPLACE)
    resample: Any = library("scipy.signal", f"resamples sounds of {rate} Hz", str(path))
    ratio = Fraction(target_rate, rate).limit_denominator(1000)
    result: NDArray[np.float32] = resample.resample_poly(
        samples, ratio.numerator, ratio.denominator
    ).astype(np.float32)
    return result
