"""What options and checkpoints say about the user's own data.

Source: docs/own-data.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

MASKS, BOXES = "masks", "boxes"
MARKED = (MASKS, BOXES)
"""Pictures with marks of a person's beside them."""
OF_PICTURES = ("folder", *MARKED)
KINDS = (*OF_PICTURES, "sounds", "csv", "npz", "series")
AUGMENTATIONS = ("mirror", "shift", "turn", "light", "jitter", "scale", "crop", "warp")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """How samples are made of files; None leaves a choice to the checkpoint, else to `USUAL`.

    `resize` is (rows, columns), `stretch` scales both sides to it instead of cutting. `test_share`
    and `split_seed` choose test samples where no folder or file does; with `test_part` they are
    that one of equal parts of such a share, from 0. `label` is the column of a table with the
    class, by name or number from 0. `window` counts the samples of a sound, or the steps of a
    series, of which one begins every `hop`. With `task` REGRESSION samples have a number to learn
    in place of a class. `group` tells whose recordings these are: a column, or a word in names of
    files; NO_GROUP: nobody's. Blocks of `fold` x `fold` pixels become channels of a pixel.
    """

    resize: tuple[int, int] | None = None
    stretch: bool | None = None
    grayscale: bool | None = None
    augment: tuple[str, ...] | None = None
    test_share: float | None = None
    split_seed: int | None = None
    sample_rate: int | None = None
    window: int | None = None
    label: str | None = None
    hop: int | None = None
    group: str | None = None
    test_part: int | None = None
    task: str | None = None
    normal: str | None = None
    fold: int | None = None

    def over(self, recorded: DataSettings) -> DataSettings:
        """Return these settings; what they leave open is as `recorded`."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(recorded, **{name: v for name, v in own.items() if v is not None})

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def parts(self) -> int:
        """How many parts there are, of which `test_part` is one."""
        return max(2, round(1 / (self.test_share or 1)))

    @staticmethod
    def of(content: Mapping[str, Any]) -> DataSettings:
        """Return the settings of a checkpoint; TypeError or ValueError for other values."""
        names = {f.name for f in fields(DataSettings)}
        values = {name: value for name, value in content.items() if name in names}
        for name in ("resize", "augment"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        return DataSettings(**values)


OPEN = DataSettings()
USUAL = DataSettings(
    stretch=False, grayscale=False, augment=(), test_share=0.2, split_seed=0, sample_rate=16000
)  # fmt: skip
AUTO_FOLD = 0
"""As much as the pictures and the chip's processors allow."""
SOUND_WINDOW = 16384
NO_GROUP = "none"
REGRESSION = "regression"
ANOMALY = "anomaly"
"""The class of what is not normal."""


def kind_and_path(name: str) -> tuple[str, str] | None:
    """Return the kind and the path of KIND:PATH; None for the name of a data set."""
    kind, separator, path = name.partition(":")
    return (kind, path) if separator and kind in KINDS else None


def plain_name(name: str) -> str:
    """Return what files and networks call a data set: of KIND:PATH the last part of the path."""
    location = kind_and_path(name)
    if location is None:
        return name
    last = location[1].replace("\\", "/").rstrip("/").rpartition("/")[2].partition(".")[0]
    kept = "".join(c if c.isascii() and c.isalnum() else "_" for c in last)
    return kept.strip("_") or location[0]
