"""The recordings behind the keyword sets: where they come from and the folder they fill.

Below KWS: `raw/<word>/*.wav` and two lists (Speech Commands v0.02), `raw_test/<label>/*.wav` (its
official test set), `librispeech/**/*.flac` (LibriSpeech dev-clean). What is missing is downloaded;
`raw/_silence_` and `raw/librispeech` are cut from the recordings.
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ai8xtools.reading import MIB, read_text
from ai8xtools.reading.progress import progress
from ai8xtools.reading.system import in_order
from datasets.audio import LENGTH, read_recording, speech_cuts, write_wav
from datasets.downloads import Download, fetch, unpack
from datasets.errors import DatasetError

COMMANDS = Download(
    "http://download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
    "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
)
BENCHMARK = Download(
    "http://download.tensorflow.org/data/speech_commands_test_set_v0.02.tar.gz",
    "cc2a00c1147c2254e9be3fa0f779d8c17421dc349b86366567a8edfa9acd51df",
)
LIBRISPEECH = Download(
    "http://www.openslr.org/resources/12/dev-clean.tar.gz",
    "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3",
)
CLASSES = tuple(
    """_silence_ backward bed bird cat dog down eight five follow forward four go happy house learn
    left librispeech marvin nine no off on one right seven sheila six stop three tree two up visual
    wow yes zero""".split()  # noqa: SIM905 - the quotes would not help
)
UNKNOWN = len(CLASSES)  # class of the official test set's folder of unknown words
TRAIN, TEST, VALIDATION, OFFICIAL_TEST = range(4)
CUTS_PER_BACKGROUND = 560
_VALIDATION_PERCENT = 10
_LAYOUT = (
    "Expected below it: a folder of WAV files for each word, _background_noise_, "
    "testing_list.txt and validation_list.txt, as in speech_commands_v0.02.tar.gz. Delete the "
    "folder, so that it is downloaded again."
)


@dataclass(frozen=True, slots=True)
class SpeechFile:
    """A WAV file, its class (index of CLASSES, or UNKNOWN) and the part that it serves."""

    path: Path
    label: int
    part: int


def recordings(folder: Path) -> list[SpeechFile]:
    """Return all recordings below `folder` (KWS); fetch, unpack and cut what is missing."""
    raw = folder / "raw"
    _provide(raw, COMMANDS, "")
    _provide(folder / "raw_test", BENCHMARK, "")
    if not (raw / "_silence_").is_dir():
        _cut_silence(raw)
    if not (raw / "librispeech").is_dir():
        _provide(folder / "librispeech", LIBRISPEECH, "LibriSpeech")
        _cut_speech(folder / "librispeech", raw / "librispeech")
    lists = {
        TEST: _listed(raw, "testing_list.txt"),
        VALIDATION: _listed(raw, "validation_list.txt"),
    }
    items = []
    for label, name in enumerate(CLASSES):
        for path in _files(raw / name):
            items.append(SpeechFile(path, label, _part(path, lists)))
    for name in ("_silence_", "_unknown_", *CLASSES[1:]):
        if (folder / "raw_test" / name).is_dir():
            label = CLASSES.index(name) if name in CLASSES else UNKNOWN
            items += [
                SpeechFile(p, label, OFFICIAL_TEST) for p in _files(folder / "raw_test" / name)
            ]
    return items


def _provide(target: Path, source: Download, inner: str) -> None:
    """Download and unpack an archive unless its folder is there."""
    if not target.is_dir():
        unpack(fetch(source, target.parent), target, inner)


def _files(folder: Path) -> list[Path]:
    """Return the WAV files of a class in the order of their names."""
    files = in_order(folder.glob("*.wav"))
    if not files:
        raise DatasetError("E620", "the folder has no WAV files", str(folder), _LAYOUT)
    return files


def _listed(raw: Path, name: str) -> frozenset[str]:
    """Return the names (word/file) of a list."""
    try:
        return frozenset(read_text(raw / name, 64 * MIB).split())
    except FileNotFoundError:
        raise DatasetError("E620", "the list is missing", str(raw / name), _LAYOUT) from None
    except UnicodeDecodeError as exc:
        raise DatasetError("E613", f"it is no list ({exc})", str(raw / name), _LAYOUT) from exc


def _part(path: Path, lists: dict[int, frozenset[str]]) -> int:
    """Return what a recording serves: words as listed; a tenth of what was cut validates."""
    name = f"{path.parent.name}/{path.name}"
    if path.parent.name in ("_silence_", "librispeech"):
        chance = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 100
        return VALIDATION if chance < _VALIDATION_PERCENT else TRAIN
    return next((part for part, names in lists.items() if name in names), TRAIN)


@contextlib.contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Let the block fill a folder that gets its name when the block has ended well."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        folder = Path(scratch) / target.name
        folder.mkdir()
        yield folder
        folder.rename(target)


def _cut_silence(raw: Path) -> None:
    """Fill raw/_silence_ with random cuts of the background noises, the same in every run."""
    rng = np.random.default_rng(0)
    with _new_folder(raw / "_silence_") as folder:
        for path in _files(raw / "_background_noise_"):
            samples = read_recording(path)
            if len(samples) < LENGTH:
                raise DatasetError(
                    "E625",
                    f"it has {len(samples)} samples; a background noise needs {LENGTH}",
                    str(path),
                    _LAYOUT,
                )
            for number in range(CUTS_PER_BACKGROUND):
                first = int(rng.integers(0, len(samples) - LENGTH + 1))
                name = f"{path.stem}_{number:03}.wav"
                write_wav(folder / name, samples[first : first + LENGTH])


def _cut_speech(source: Path, target: Path) -> None:
    """Fill raw/librispeech with cuts of what is read aloud in LibriSpeech."""
    files = in_order(source.rglob("*.flac"))
    if not files:
        raise DatasetError(
            "E620",
            "there are no FLAC files in it",
            str(source),
            f"Unpack {LIBRISPEECH.url} there, or delete the folder, so that it is downloaded.",
        )
    with (
        _new_folder(target) as folder,
        progress("Cutting LibriSpeech", len(files)) as advance,
    ):
        for path in files:
            for number, cut in enumerate(speech_cuts(read_recording(path))):
                write_wav(folder / f"{path.stem}_{number:02}.wav", cut)
            advance(1)
