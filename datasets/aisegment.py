"""AISegment: portraits, each pixel of the person or of the background.

Pictures are decoded when they are needed. Three squares are cut from each, at both ends of its
longer side and in the middle. A target is int64 [H, W]; the inputs of 352x352 are folded by 4.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading.system import in_order
from datasets.errors import REPLACE, DatasetError
from datasets.image_files import as_tensor, opened
from datasets.parts import SampleSet, is_held_back, train_and_test

if TYPE_CHECKING:
    from PIL.Image import Image

_SQUARES = 3  # of each picture
_TEST_PERCENT = 10
_LAYOUT = (
    "Expected in the folder AISegment of --data: clip_img/NUMBER/clip_NUMBER/NAME.jpg and "
    "matting/NUMBER/matting_NUMBER/NAME.png. Source: the AISegment.com matting human datasets, "
    "https://github.com/aisegmentcn/matting_human_datasets."
)


class PortraitDataset(SampleSet[tuple[Tensor, Tensor]]):
    """Squares of portraits: input float32 [3*f*f, H/f, W/f], target int64 [H, W], f = `fold`.

    `pairs` are the files of picture and matte; the target is 1 where the matte is transparent.
    """

    def __init__(self, pairs: list[tuple[Path, Path]], size: int, fold: int, args: Any) -> None:
        self.pairs = pairs
        self.size = size
        self.fold = ai8x.fold(fold)
        self.normalize = ai8x.normalize(args)
        self.length = _SQUARES * len(pairs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        from PIL.Image import Resampling

        picture, matte = self.pairs[index // _SQUARES]
        with opened(picture) as image:
            shape = image.size
            cut = _square(image.convert("RGB"), index % _SQUARES)
            pixels = as_tensor(cut.resize((self.size, self.size), Resampling.BILINEAR))
        with opened(matte) as image:
            if image.size != shape:
                width, height = image.size
                raise DatasetError(
                    "E625",
                    f"it has {width}x{height} pixels, the picture {shape[0]}x{shape[1]}",
                    str(matte),
                    REPLACE,
                )
            alpha = _square(image.convert("RGBA").getchannel("A"), index % _SQUARES)
            transparent = np.array(alpha.resize((self.size, self.size), Resampling.NEAREST)) == 0
        target = torch.from_numpy(transparent.astype(np.int64))
        return self.normalize(self.fold(pixels.to(torch.float32).div_(255))), target


def _square(image: Image, number: int) -> Image:
    """Return square `number` (0 to 2) of a picture: at its begin, in the middle, at its end."""
    side = min(image.size)
    left, top = ((length - side) * number // (_SQUARES - 1) for length in image.size)
    return image.crop((left, top, left + side, top + side))


def _pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Return the files of all pictures and their mattes."""
    clips = folder / "clip_img"
    if not clips.is_dir():
        raise DatasetError("E620", "the folder is missing", str(clips), _LAYOUT)
    pairs = []
    for picture in in_order(clips.glob("*/clip_*/*.jpg")):
        if picture.name.startswith("."):
            continue  # left behind by archives of macOS
        number, clip = picture.parts[-3:-1]
        matting = folder / "matting" / number / clip.replace("clip_", "matting_", 1)
        matte = matting / f"{picture.stem}.png"
        if not matte.is_file():
            raise DatasetError("E620", "the matte of a picture is missing", str(matte), _LAYOUT)
        pairs.append((picture, matte))
    if not pairs:
        raise DatasetError("E620", "the folder has no pictures", str(clips), _LAYOUT)
    return pairs


def aisegment_get_datasets(
    size: int,
    fold: int,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
) -> tuple[PortraitDataset | None, PortraitDataset | None]:
    """Return training and test set."""
    pairs, args = _pairs(Path(data[0]) / "AISegment"), data[1]

    def part(training: bool) -> PortraitDataset:
        own = [pair for pair in pairs if is_held_back(pair[0].name, _TEST_PERCENT) != training]
        return PortraitDataset(own, size, fold, args)

    return train_and_test(part, args, load_train, load_test)


datasets = [
    {
        "name": name,
        "input": (3 * fold * fold, size // fold, size // fold),
        "output": (0, 1),
        "loader": partial(aisegment_get_datasets, size, fold),
        "fold_ratio": fold,
    }
    for name, size, fold in (
        ("AISegment_80", 80, 1),
        ("AISegment_352", 352, 4),
        ("AISegment_352_memory", 352, 4),
    )
]
