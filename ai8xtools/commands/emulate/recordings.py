"""Files in the place of sensors: `emulate.py --camera`, `--microphone`, `--series`, `--uart`.

Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.emulator.errors import RecordingError
from ai8xtools.emulator.sensors import Recorded
from ai8xtools.reading import MIB, read_bytes
from ai8xtools.reading.files import shipped
from ai8xtools.values import frozen
from datasets.own import pictures, sounds, tables
from datasets.own.preparation import fitted

_NONE = "none"
"""In the place of a file: a sensor that never delivers."""
_FULL_SCALE = 32768
_LONGEST_BYTES = 16 * MIB
"""Of what is sent over the UART."""


@frozen
class Played:
    """What stands for the sensors of a program: file or folder by sensor, `none`, or nothing.

    The bytes of the file `uart` are sent to it.
    """

    camera: str | None = None
    microphone: str | None = None
    series: str | None = None
    uart: str | None = None

    def of(self, sensor: str) -> str | None:
        """Return what stands for a sensor."""
        return self.files[sensor]

    @property
    def files(self) -> dict[str, str | None]:
        """What stands for each sensor."""
        return {"camera": self.camera, "microphone": self.microphone, "series": self.series,
                "uart": self.uart}  # fmt: skip

    def unused(self, taken: str | None) -> Iterator[str]:
        """Yield what to say of files that a program did not ask for, which took those of one
        sensor."""
        for sensor, name in self.files.items():
            if sensor != taken and name not in (None, _NONE):
                yield f"note: --{sensor}: the program has taken nothing from {name}"

    def recorded(self, project: Path) -> Recorded:
        """Return what the sensors deliver.

        Files are read when the program asks for them. Raises RecordingError (E872): no such file.
        """
        trained = trained_on(project) if self.camera else None
        stretch = trained is not None and trained.preparation.stretch
        camera = _files(self.camera, "--camera", pictures.ENDINGS)
        microphone = _files(self.microphone, "--microphone", sounds.ENDINGS)
        series = _files(self.series, "--series", tables.ENDINGS)
        return Recorded(
            (lambda width, height: _pictures(camera, width, height, stretch)) if camera else None,
            (lambda rate: _sound(microphone, rate)) if microphone else None,
            (lambda _count: np.concatenate([*map(_measurements, series)])) if series else None,
            frozenset(sensor for sensor, name in self.files.items() if name == _NONE),
            b"" if self.uart in (None, _NONE) else read_bytes(shipped(self.uart), _LONGEST_BYTES),
        )


def _files(name: str | None, option: str, endings: Collection[str]) -> list[Path]:
    """Return the file of a name, or those of a folder in the order of their names."""
    if name is None or name == _NONE:
        return []
    path = Path(shipped(Path(name)))
    if not path.is_dir():
        path.stat()
        return [path]
    files = sorted(one for one in path.rglob("*") if one.suffix.lower() in endings)
    if not files:
        raise RecordingError(
            "E872", f"there are no files of {option.lstrip('-')} in the folder", name,
            f"Name a folder with {', '.join(sorted(endings))}.",
        )  # fmt: skip
    return files


def _pictures(
    paths: list[Path], width: int, height: int, stretch: bool
) -> Iterator[NDArray[np.uint8]]:
    for path in paths:
        picture: Any = pictures.read(path, "RGB", _tell)
        if picture.size[0] < width or picture.size[1] < height:
            raise RecordingError(
                "E872", f"the picture has {picture.size[0]}x{picture.size[1]} pixels, the camera's "
                f"window {width}x{height}", str(path), "Use pictures of at least this size.",
            )  # fmt: skip
        yield np.asarray(fitted(picture, height, width, stretch), np.uint8)


def _sound(paths: list[Path], rate: int) -> NDArray[np.int16]:
    """Return sounds of one track, a second of silence between them."""
    parts: list[NDArray[np.int16]] = []
    for path in paths:
        sound = sounds.read(path, _tell)
        if sound.rate != rate:
            raise RecordingError(
                "E872", f"the sound has {sound.rate} samples a second, the program takes {rate}",
                str(path), f"Convert it: `ffmpeg -i FILE -ar {rate} NEW.wav`.",
            )  # fmt: skip
        if sound.samples.shape[1] != 1:
            raise RecordingError(
                "E872", f"the sound has {sound.samples.shape[1]} tracks, a microphone one",
                str(path), "Convert it: `ffmpeg -i FILE -ac 1 NEW.wav`.",
            )  # fmt: skip
        levels = np.round(sound.samples[:, 0] * _FULL_SCALE)
        parts += [np.clip(levels, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16),
                  np.zeros(rate, np.int16)]  # fmt: skip
    return np.concatenate(parts[:-1])


def _measurements(path: Path) -> NDArray[np.int16]:
    """Return the whole numbers of a table, a column for each value."""
    lines = tables.number_lines(path)
    values, _ = tables.numbers_of(path, lines, ())
    wrong = np.argwhere((values != np.round(values)) | (values < -_FULL_SCALE)
                        | (values >= _FULL_SCALE))  # fmt: skip
    if len(wrong):
        row, column = wrong[0].tolist()
        raise RecordingError(
            "E872", f"line {lines.rows[row][0]}, column {lines.names[column]}: "
            f"{values[row, column]:g} is no number that a sensor of 16 bits delivers", str(path),
            "Write the sensor's own whole numbers, not those of a physical unit.",
        )  # fmt: skip
    return values.astype(np.int16)


def _tell(note: str, path: Path) -> None:
    print(f"note: {path}: {note}")
