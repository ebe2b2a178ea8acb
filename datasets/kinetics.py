"""Kinetics400: clips of people who do push-ups, pull-ups, sit-ups, squats or something else.

A clip is a video, or a folder of pictures that follow each other. 50 frames of 240x240 of each are
prepared once, into `Kinetics/processed`, and anew when files have changed. An item are 15 pairs of
frames that follow each other, each frame folded by 4: float32 [15, 96, 60, 60].
Source: docs/datasets.md, "Video".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading.progress import progress
from ai8xtools.reading.system import in_order
from datasets import cache
from datasets.errors import REPLACE, DatasetError, library
from datasets.image_files import as_tensor, image_files, opened
from datasets.images import fold_batch
from datasets.parts import SampleSet, loader

if TYPE_CHECKING:
    from PIL.Image import Image

CLASSES = ("pull ups", "push up", "situp", "squat", "other")
_WEIGHT = (0.17, 0.325, 0.215, 0.17, 0.12)
_SIZE = 240
_FRAMES = 50  # of a clip
_STEPS = 16  # of an item
_SHIFT = 20  # pixels by which training items are moved at most
_TESTED = (0, (_FRAMES - _STEPS) // 2, _FRAMES - _STEPS)  # first frames of the test items of a clip
_VIDEOS = frozenset({".avi", ".mkv", ".mov", ".mp4", ".webm"})
_LAYOUT = (
    "Expected in the folder Kinetics of --data: raw/train and raw/test, each with the folders "
    f"{', '.join(CLASSES)}, full of videos or of folders of pictures, one for each clip. Source: "
    "https://github.com/cvdfoundation/kinetics-dataset."
)


class ClipDataset(SampleSet[tuple[Tensor, int]]):
    """Clips: `frames` is uint8 [N, 50, 3, 240, 240], `classes` int64 [N].

    Training sees 16 frames from a random one on, moved and half of them mirrored; tests see three
    fixed parts of each clip.
    """

    def __init__(self, frames: Tensor, classes: Tensor, args: Any, augment: bool) -> None:
        self.frames = frames
        self.classes = classes
        self.augment = augment
        parts = 1 if augment else len(_TESTED)
        self.length = parts * len(frames)
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        clip, part = (index, 0) if self.augment else divmod(index, len(_TESTED))
        first = _TESTED[part]
        if self.augment:
            first = int(torch.randint(_FRAMES - _STEPS + 1, ()))
        frames = self.frames[clip, first : first + _STEPS]
        if self.augment:
            frames = _moved(frames)
        folded = fold_batch(self.normalize(frames.to(torch.float32).div_(255)), 4)
        return torch.cat([folded[:-1], folded[1:]], dim=1), int(self.classes[clip])


def _moved(frames: Tensor) -> Tensor:
    """Return frames moved by the same number of pixels, whose edges repeat, and mirrored."""
    places = torch.arange(_SIZE)
    down, right = torch.randint(-_SHIFT, _SHIFT + 1, (2,)).tolist()
    rows, columns = ((places + by).clamp(0, _SIZE - 1) for by in (down, right))
    if int(torch.randint(2, ())):
        columns = columns.flip(0)
    return frames[:, :, rows][:, :, :, columns]


def _clips(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the clips of a part with their classes."""
    for number, name in enumerate(CLASSES):
        own = folder / name
        if not own.is_dir():
            raise DatasetError("E620", "the folder is missing", str(own), _LAYOUT)
        clips = [p for p in own.iterdir() if p.is_dir() or p.suffix.lower() in _VIDEOS]
        if not clips:
            raise DatasetError("E620", "the folder has no clips", str(own), _LAYOUT)
        yield from ((clip, number) for clip in sorted(clips))


def _prepared(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Return frames and classes of a part; prepare them if need be."""
    clips = list(_clips(folder / "raw" / part))
    files = [
        f for clip, _ in clips for f in (in_order(clip.iterdir()) if clip.is_dir() else [clip])
    ]
    digest = cache.listing_digest(files)
    path = folder / "processed" / f"{part}.pt"
    kinds = (  # frames, classes, digest of the files
        (torch.uint8, (_FRAMES, 3, _SIZE, _SIZE)), (torch.int64, ()), (torch.uint8, ()),
    )  # fmt: skip
    source = "the clips in the folder raw"
    if path.is_file():
        frames, classes, old = cache.load(path, kinds, source, aligned=2)
        if torch.equal(old, digest):
            return frames, classes
    with cache.bytes_on_disk(path.parent, (len(clips), _FRAMES, 3, _SIZE, _SIZE)) as data:
        with progress(f"Preparing Kinetics ({part}), once", len(clips)) as advance:
            for row, (clip, _) in zip(data, clips, strict=True):
                row[:] = _frames(clip).numpy()
                advance(1)
        labels = torch.tensor([number for _, number in clips])
        cache.store(path, (torch.from_numpy(data), labels, digest))
    frames, classes, _ = cache.load(path, kinds, source, aligned=2)
    return frames, classes


def _frames(clip: Path) -> Tensor:
    """Return 50 frames of a clip, evenly spread over it, uint8 [50, 3, 240, 240]."""
    if clip.is_dir():
        files = image_files(clip, _LAYOUT)
        chosen = [files[i] for i in _spread(len(files), clip)]
        frames = []
        for file in chosen:
            with opened(file) as image:
                frames.append(_square(image))
        return torch.stack(frames)
    images = list(_decoded(clip))
    return torch.stack([_square(images[i]) for i in _spread(len(images), clip)])


def _spread(count: int, clip: Path) -> list[int]:
    """Return the numbers of 50 of `count` frames; DatasetError E625 if there are fewer."""
    if count < _FRAMES:
        raise DatasetError(
            "E625", f"it has {count} frames; {_FRAMES} are needed", str(clip), REPLACE
        )
    return np.linspace(0, count - 1, _FRAMES).round().astype(int).tolist()


def _square(image: Image) -> Tensor:
    """Return the middle of a frame, uint8 [3, 240, 240]."""
    side = min(image.size)
    left, top = ((length - side) // 2 for length in image.size)
    cut = image.convert("RGB").crop((left, top, left + side, top + side))
    return as_tensor(cut.resize((_SIZE, _SIZE)))


def _decoded(path: Path) -> Iterator[Image]:
    """Yield the frames of a video, scaled to fit around 240x240."""
    av = library("av", "reads videos (folders of pictures need it not)", str(path))
    try:
        with av.open(str(path)) as video:
            for frame in video.decode(video=0):
                ratio = _SIZE / min(frame.width, frame.height)
                yield frame.to_image(width=round(frame.width * ratio),
                                     height=round(frame.height * ratio))  # fmt: skip
    except (av.error.FFmpegError, IndexError, ValueError) as exc:
        raise DatasetError("E613", f"the video cannot be read ({exc})", str(path), REPLACE) from exc


def _part(folder: Path, args: Any, training: bool) -> ClipDataset:
    frames, classes = _prepared(folder / "Kinetics", "train" if training else "test")
    return ClipDataset(frames, classes, args, augment=training)


kinetics_get_datasets = loader(_part)


datasets = [
    {
        "name": "Kinetics400",
        "input": (96, _SIZE // 4, _SIZE // 4),
        "output": CLASSES,
        "weight": _WEIGHT,
        "loader": kinetics_get_datasets,
        "fold_ratio": 4,
    }
]
