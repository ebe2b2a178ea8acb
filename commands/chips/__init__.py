"""--device MAX78000, MAX78002: the accelerators."""

from commands.targets import Target
from device import CHIPS

TARGET = Target(
    names=tuple(chip.name for chip in CHIPS),
    what="the accelerator of this chip",
    tools={
        "train.py": ("commands.train.arguments", "commands.train.train.run"),
        "quantize.py": ("commands.quantize.arguments", "commands.quantize.quantize.quantize"),
        "ai8xize.py": ("commands.loader.arguments", "commands.loader.create.create_project"),
    },
)
