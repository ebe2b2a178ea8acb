"""Sound files and cuts of 16384 samples, about one second at 16 kHz.

Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datasets.errors import REPLACE, DatasetError, library
from datasets.own.sounds import read

RATE = 16000  # samples per second
LENGTH = 16384  # samples of an item: 128 frames of 128
_FRAME = 128
_FRAMES_BEFORE = 30  # of a cut, before the frame in which somebody speaks
_SPEECH = 0.030  # mean amplitude of such a frame
_FULL_SCALE = 1 << 15

Samples = npt.NDArray[np.float32]


def read_recording(path: Path) -> Samples:
    """Return the samples of a WAV or FLAC file as float32 [n] in -1..1.

    Raises DatasetError: E613 when it is damaged, E625 unless it is 16 kHz, mono, 16 bits.
    """
    sound = read(path)
    kind = sound.rate, sound.samples.shape[1], sound.bits
    if kind != (RATE, 1, 16):
        raise DatasetError(
            "E625", f"it has {kind[0]} Hz, {kind[1]} channels, {kind[2]} bits; it must have {RATE} "
            "Hz, 1 channel, 16 bits", str(path), REPLACE,
        )  # fmt: skip
    if not len(sound.samples):
        raise DatasetError("E613", "the sound has no samples", str(path), REPLACE)
    samples: Samples = sound.samples[:, 0]
    return samples


def write_wav(path: Path, samples: Samples) -> None:
    """Write samples of -1..1 as a WAV file of 16 kHz, mono, 16 bits."""
    with path.open("wb") as stream, wave.open(stream) as file:
        file.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        file.writeframes(to_words(samples).astype("<i2").tobytes())


def change_speed(samples: Samples, speed: float) -> Samples:
    """Return the recording played `speed` times as fast: shorter and higher above 1."""
    resample: Any = library("scipy.signal", "changes the speed of recordings", "datasets/audio.py")
    ratio = Fraction(speed).limit_denominator(1000)
    result: Samples = resample.resample_poly(samples, ratio.denominator, ratio.numerator)
    return result.astype(np.float32)


def fit(samples: Samples) -> Samples:
    """Return the first 16384 samples, zeros behind a shorter recording."""
    return np.pad(samples[:LENGTH], (0, max(0, LENGTH - len(samples))))


def to_bytes(samples: Samples) -> npt.NDArray[np.uint8]:
    """Return samples of -1..1 as bytes, 128 for silence."""
    return np.clip(np.round((samples + 1) * 128), 0, 255).astype(np.uint8)


def to_words(samples: Samples) -> npt.NDArray[np.int16]:
    """Return samples of -1..1 as words of 16 bits."""
    levels = np.clip(np.round(samples * _FULL_SCALE), -_FULL_SCALE, _FULL_SCALE - 1)
    return levels.astype(np.int16)


def speech_cuts(samples: Samples) -> Iterator[Samples]:
    """Yield cuts of 16384 samples of a long recording, one behind the other, where there is speech.

    A cut begins 30 frames of 128 samples before a frame that is loud, after the recording was
    scaled to a peak of 1.
    """
    samples = samples / max(float(np.abs(samples).max(initial=0)), 1e-9)
    frames = np.abs(samples[: len(samples) // _FRAME * _FRAME]).reshape(-1, _FRAME).mean(1)
    free = 0  # the first sample behind the last cut
    for frame in np.flatnonzero(frames > _SPEECH):
        first = (int(frame) - _FRAMES_BEFORE) * _FRAME
        if first >= free and first + LENGTH <= len(samples):
            yield samples[first : first + LENGTH]
            free = first + LENGTH


def random_shift(samples: Samples, limits: tuple[int, int], rng: np.random.Generator) -> Samples:
    """Return the samples shifted in a circle, to the right by limits[0]..limits[1] samples."""
    return np.roll(samples, int(rng.integers(limits[0], limits[1] + 1)))


def add_noise(samples: Samples, ratio_db: float, rng: np.random.Generator) -> Samples:
    """Return the samples with white noise, weaker than the signal by `ratio_db` decibels."""
    level = np.sqrt(np.mean(np.square(samples)) / 10 ** (ratio_db / 10))
    return samples + (level * rng.standard_normal(len(samples))).astype(np.float32)
