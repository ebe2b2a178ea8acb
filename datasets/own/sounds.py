"""Sounds in files: WAVE of whole numbers or fractions of any width, FLAC with soundfile.

Source: docs/own-data.md, "Sounds".
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import MIB, read_bytes
from ai8xtools.reading.origin import accident
from datasets.errors import REPLACE, DatasetError, library
from datasets.own.pictures import Tell, ignore

ENDINGS = frozenset({".flac", ".wav", ".wave"})
MAX_BYTES = 256 * MIB
MAX_SAMPLES = 64 * MIB
"""Of all tracks together: more than an hour at 16 kHz. FLAC may unpack to a thousand times."""
PEAK = 2.0
"""Fractions beyond -1..1 are cut off up to here; others are of an unknown scale."""
_EXTENSIBLE = 0xFFFE
_GUID = bytes.fromhex("000000001000800000aa00389b71")
_FORMS = {(1, 1): "u1", (1, 2): "<i2", (1, 3): "<i4", (1, 4): "<i4", (3, 4): "<f4", (3, 8): "<f8"}
"""By tag (1: whole numbers, 3: fractions) and bytes of a sample."""
_TAGS = {"ADPCM": (2, 17), "A-law": (6,), "mu-law": (7,), "GSM": (49,), "MP3": (85,),
         "WMA": (353,)}  # fmt: skip
_CONVERT = "Convert it: `ffmpeg -i FILE -c:a pcm_s16le NEW.wav`."


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples of -1..1, float32 [n, tracks], their rate in Hz and the bits of each in the file."""

    samples: NDArray[np.float32]
    rate: int
    bits: int


def read(path: Path, tell: Tell = ignore) -> Sound:
    """Return the sound of a file, WAVE or FLAC whatever its name.

    `tell` takes that bytes behind the samples are left out.

    Raises OSError, and DatasetError E613 for what is no sound or ends before its header says, E617
    for samples that are encoded, too many or out of range.
    """
    data = read_bytes(path, MAX_BYTES)
    if not data:
        raise _refused(path, "the file is empty")
    if data.startswith(b"fLaC"):
        return _flac(path, data)
    if not data.startswith(b"RIFF") or data[8:12] not in (b"WAVE", b""):
        fault, remedy = accident(data) or ("it is no WAV file of samples, and no FLAC", _CONVERT)
        raise _refused(path, fault, remedy)
    return _wave(path, data, tell)


def _wave(path: Path, data: bytes, tell: Tell) -> Sound:
    form, place = b"", 12
    while data[place : place + 4] != b"data":
        begin, size = place + 8, int.from_bytes(data[place + 4 : place + 8], "little")
        if begin + size > len(data) or place + 8 > len(data):
            raise _refused(path, "it is no WAV file of samples (it ends early)")
        if data[place : place + 4] == b"fmt ":
            form = data[begin : begin + size]
        place = begin + size + size % 2
    if len(form) < 16:
        raise _refused(path, "it does not say how its samples are stored")
    tag, tracks, rate, _, block, bits = struct.unpack("<HHIIHH", form[:16])
    if tag == _EXTENSIBLE and form[26:40] == _GUID:
        tag = int.from_bytes(form[24:26], "little")
    if tag not in (1, 3):
        code = next((name for name, tags in _TAGS.items() if tag in tags), f"form {tag}")
        raise _unread(path, f"its samples are encoded ({code})", _CONVERT)
    width, rest = divmod(block, tracks) if tracks else (0, 1)
    if rest or (tag, width) not in _FORMS or not 8 * (width - 1) < bits <= 8 * width:
        fault = f"{tracks} tracks of {bits} bits in {block} bytes"
        raise _refused(path, f"its header contradicts itself, or is unknown: {fault}", _CONVERT)
    size, begin = int.from_bytes(data[place + 4 : place + 8], "little"), place + 8
    available = len(data) - begin
    if available < size or size % block or len(data) < begin:
        fault = f"its header says {size} bytes of samples, {max(0, available)} are there"
        raise _refused(path, f"{fault}, a sample has {block}: it is cut, or was never finished")
    _check_length(path, size // width)
    if _is_more(data[begin + size + size % 2 :]):
        tell("bytes behind the samples of its header, which are left out", path)
    return Sound(_samples(path, data[begin : begin + size], tag, width, tracks), rate, bits)


def _is_more(rest: bytes) -> bool:
    """Return whether something else follows than zeros, and chunks without samples."""
    place = 0
    while rest[place : place + 4].isalnum() and place + 8 <= len(rest):
        if rest[place : place + 4] == b"data":
            return True
        size = int.from_bytes(rest[place + 4 : place + 8], "little")
        place += 8 + size + size % 2
    return place > len(rest) + 1 or bool(rest[place:].strip(b"\0"))


def _samples(path: Path, data: bytes, tag: int, width: int, tracks: int) -> NDArray[np.float32]:
    if width == 3:  # as 32 bits, whose lowest byte is 0
        triples = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data = np.pad(triples, ((0, 0), (1, 0))).tobytes()
    values = np.frombuffer(data, _FORMS[tag, width]).reshape(-1, tracks)
    if tag == 1:
        levels = values.astype(np.float32) / np.float32(1 << 8 * values.itemsize - 1)
        return levels - np.float32(width == 1)
    wrong = np.argwhere(~(np.abs(values) <= PEAK))  # not a number, too
    if len(wrong):
        number, track = wrong[0].tolist()
        raise _unread(
            path, f"sample {number} is {values[number, track]:g}; fractions reach from -1 to 1",
            "Scale it, or export it anew with 16 bits.",
        )  # fmt: skip
    return values.astype(np.float32)


def _flac(path: Path, data: bytes) -> Sound:
    soundfile = library("soundfile", "reads FLAC files", str(path))
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            _check_length(path, file.frames * file.channels)
            samples = file.read(dtype="float32", always_2d=True)
            frames, rate, kind = file.frames, file.samplerate, file.subtype
    except soundfile.LibsndfileError as exc:
        raise _refused(path, f"it is no FLAC file ({exc.error_string})") from exc
    if len(samples) != frames:
        raise _refused(path, f"its header says {frames} samples, {len(samples)} are there")
    return Sound(samples, int(rate), 8 if kind.endswith("8") else int(kind[-2:]))


def _check_length(path: Path, count: int) -> None:
    if count > MAX_SAMPLES:
        raise _unread(
            path, f"the sound has {count:,} samples, the limit is {MAX_SAMPLES:,}",
            "Cut it into several files.",
        )  # fmt: skip


def _refused(path: Path, message: str, remedy: str = REPLACE) -> DatasetError:
    return DatasetError("E613", message, str(path), remedy)


def _unread(path: Path, message: str, remedy: str) -> DatasetError:
    return DatasetError("E617", message, str(path), remedy)
