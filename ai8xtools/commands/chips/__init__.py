"""--device MAX78000, MAX78002: the accelerators."""

from ai8xtools.commands.targets import Target
from device import CHIPS

TARGET = Target(
    names=tuple(chip.name for chip in CHIPS),
    what="the accelerator of this chip",
    tools={
        "train.py": ("train.arguments", "train.train.run"),
        "quantize.py": ("quantize.arguments", "quantize.quantize.quantize"),
        "ai8xize.py": ("loader.arguments", "loader.cure.create_or_cure"),
    },
)
