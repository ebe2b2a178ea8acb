"""Inputs of a network from files: NumPy arrays, pictures, sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator import EmulatorError
from ai8xtools.reading.files import shipped
from ai8xtools.reading.npy import NpyError, read_array
from datasets.errors import DatasetError
from datasets.own import pictures, sounds
from datasets.own.preparation import Preparation

Image = NDArray[np.int8]
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""How Pillow calls pictures, by the number of their channels."""
_LOWEST, _HIGHEST = -128, 127
_SEED = 1


def read_inputs(
    path: Path, shape: tuple[int, int, int], how: Preparation | None = None
) -> list[Image]:
    """Return the inputs in a file, each int8 [channel, row, column] of `shape`.

    A NumPy file holds one input or several, integers from -128 to 127; of a network that was
    trained on measurements also those, as fractions. They, pictures and sounds are prepared as
    `how` says, like those that the network was trained on. Without it, values
    0 to 255 of a picture become -128 to 127, a sound (.wav) has frames of as many samples as there
    are channels, and nothing is resized. Channels that the last of several passes has more than
    `how` are zeros. Raises EmulatorError (E816) for another kind, shape or
    range, DatasetError for what cannot be prepared, and OSError.
    """
    place = Path(shipped(path))
    place.stat()  # a missing file is one, whatever its name
    if place.is_dir():
        raise _refused(
            path, "this is a folder", f"Name a file in it, or data by its kind: folder:{path}."
        )
    if how is not None and how.shape[0] < shape[0] and how.shape[1:] == shape[1:]:
        return [*fitted(np.stack(read_inputs(path, how.shape, how)), shape)]
    ending = path.suffix.lower()
    if ending == ".npy":
        return _arrays(path, shape, how)
    if how is not None and how.shape == shape:
        return how.inputs_of(path, _tell)
    if ending in pictures.ENDINGS:
        return [_picture(path, shape)]
    if ending in sounds.ENDINGS:
        return [_sound(path, shape)]
    raise _refused(path, "the file extension is not that of an input", "Use .npy, .png or .wav.")


def fitted(images: Image, shape: tuple[int, int, int]) -> Image:
    """Return images [N, C, H, W] with zeros for channels that a network of several passes adds: the
    last pass may have fewer than the others."""
    absent = max(0, shape[0] - images.shape[1])
    return np.pad(images, ((0, 0), (0, absent), (0, 0), (0, 0)))


def random_input(shape: tuple[int, int, int]) -> Image:
    """Return a random input, int8 [channel, row, column]: the same for a shape every time."""
    return np.random.default_rng(_SEED).integers(_LOWEST, _HIGHEST + 1, shape, np.int8)


def read_labels(path: Path, count: int) -> NDArray[np.int64]:
    """Return the labels in a NumPy file, one whole number for each of `count` inputs.

    Raises EmulatorError (E863) for anything else, and OSError.
    """
    try:
        array = read_array(path)
    except NpyError as exc:
        raise EmulatorError("E863", f"not a NumPy array: {exc}", str(path)) from None
    if not np.issubdtype(array.dtype, np.integer):
        raise EmulatorError("E863", f"labels must be integers, not {array.dtype}", str(path))
    if array.size != count or array.size != max((1, *array.shape)):
        raise EmulatorError(
            "E863",
            f"there must be one label for each of the {count} inputs, not {_text(array.shape)}",
            str(path),
        )
    return array.reshape(-1).astype(np.int64)


def _arrays(path: Path, shape: tuple[int, int, int], how: Preparation | None) -> list[Image]:
    try:
        array = read_array(path)
    except NpyError as exc:
        raise _refused(path, f"not a NumPy array: {exc}") from None
    if how is not None and how.low and array.dtype.kind == "f":
        return _measurements(path, array, how)
    if not np.issubdtype(array.dtype, np.integer):
        raise _refused(path, f"the input must be integers, not {array.dtype}")
    if array.size and not (array.min() >= _LOWEST and array.max() <= _HIGHEST):
        raise _refused(
            path,
            f"the input must have values from {_LOWEST} to {_HIGHEST}, not "
            f"from {array.min()} to {array.max()}",
            "Subtract 128 from values of 0 to 255."
            if array.min() >= 0 and array.max() <= _HIGHEST - _LOWEST
            else f"Scale the values to {_LOWEST}..{_HIGHEST} as those of training were.",
        )
    single = (
        [shape] + ([shape[1:]] if shape[0] == 1 else []) + ([shape[:2]] if shape[2] == 1 else [])
    )
    if array.shape in single:
        return [array.reshape(shape).astype(np.int8)]
    if array.ndim and len(array) and array.shape[1:] in single:
        return [*array.reshape(-1, *shape).astype(np.int8)]
    remedy = None
    if array.shape[-3:] == (*shape[1:], shape[0]):
        remedy = "It seems to be rows, columns, channels: save numpy.moveaxis(input, -1, -3)."
    raise _refused(
        path, f"the input must have the shape {_text(shape)}, not {_text(array.shape)}", remedy
    )


def _measurements(path: Path, array: NDArray[Any], how: Preparation) -> list[Image]:
    """Prepare numbers as they were measured, one input or several."""
    if not np.isfinite(array).all():
        raise _refused(path, "it holds numbers that are not finite")
    single = array.ndim == (1 if how.kind == "features" else 2)
    try:
        return [*how.of_numbers(array[None] if single else array)]
    except ValueError as exc:
        raise _refused(
            path, f"the network was trained on {exc}, not on {_text(array.shape)}"
        ) from None


def _picture(path: Path, shape: tuple[int, int, int]) -> Image:
    channels, rows, columns = shape
    mode = _MODES.get(channels)
    if mode is None:
        raise _refused(
            path,
            f"the network takes {channels} channels of {rows}x{columns}, which is no picture",
            f"Arrange it yourself and use a .npy file of {_text(shape)}.",
        )
    try:
        picture = pictures.read(path, mode, _tell)
    except ImportError:
        raise _refused(
            path, "pictures need Pillow", "`pip install pillow`, or use a .npy file."
        ) from None
    except DatasetError as exc:
        raise _refused(path, exc.message, exc.remedy) from None
    if picture.size != (columns, rows):
        raise _refused(
            path,
            f"the picture must have {columns}x{rows} pixels (width x height), not "
            f"{picture.size[0]}x{picture.size[1]}",
        )
    values = np.asarray(picture, np.int16)
    return (values.reshape(rows, columns, channels).transpose(2, 0, 1) + _LOWEST).astype(np.int8)


def _sound(path: Path, shape: tuple[int, int, int]) -> Image:
    """Read a sound; sample n goes to channel n % channels, position n // channels."""
    try:
        samples = sounds.read(path, _tell).samples
    except DatasetError as exc:
        raise _refused(path, f"not a sound: {exc.message}", exc.remedy) from None
    if samples.shape[1] != 1:
        raise _refused(path, f"the sound must be mono, not of {samples.shape[1]} tracks")
    needed = int(np.prod(shape))
    if len(samples) > needed:
        raise _refused(path, f"the sound has {len(samples)} samples, the network takes {needed}")
    if np.abs(samples).max(initial=0) > 1:
        raise _refused(path, "samples are beyond -1..1", "Scale the sound.")
    levels = np.clip(np.floor(samples[:, 0] * -_LOWEST), _LOWEST, _HIGHEST)
    levels = np.pad(levels, (0, needed - len(samples)))
    return levels.reshape(-1, shape[0]).T.reshape(shape).astype(np.int8)


def _tell(note: str, path: Path) -> None:
    print(f"note: {path}: {note}")


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a single number"


def _refused(path: Path, reason: str, remedy: str | None = None) -> EmulatorError:
    return EmulatorError("E816", reason, str(path), remedy)
