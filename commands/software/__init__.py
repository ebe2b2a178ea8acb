"""--device MCU: C for microcontrollers without the accelerator."""

from commands.targets import Target

TARGET = Target(
    names=("MCU",),
    what="another microcontroller",
    tools={
        "ai8xize.py": ("commands.software.arguments", "commands.software.create.create_software")
    },
    elsewhere="programs without the accelerator take what quantize.py makes for these, or with Q15 "
    "or Q7",
)
