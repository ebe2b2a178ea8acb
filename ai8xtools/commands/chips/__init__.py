"""--device MAX78000, MAX78002: the accelerators."""

from ai8xtools.commands.targets import Target
from device import CHIPS

TARGET = Target(
    names=tuple(chip.name for chip in CHIPS),
    what="the accelerator of this chip",
    tools={
        "train.py": ("ai8xtools.commands.train.arguments", "ai8xtools.commands.train.train.run"),
        "quantize.py": (
            "ai8xtools.commands.quantize.arguments",
            "ai8xtools.commands.quantize.quantize.quantize",
        ),
        "ai8xize.py": (
            "ai8xtools.commands.loader.arguments",
            "ai8xtools.commands.loader.create.create_project",
        ),
    },
)
