"""--device CMSIS-NN: the same as MCU with calls of Arm's functions."""

from ai8xtools.commands.targets import Target

TARGET = Target(
    names=("CMSIS-NN",),
    what="a microcontroller, with Arm's functions",
    tools={"ai8xize.py": ("cmsis.arguments", "software.create.create_software")},
    option="--cmsis-software-nn",
    elsewhere="programs without the accelerator take what quantize.py makes for these, or with Q15 "
    "or Q7",
)
