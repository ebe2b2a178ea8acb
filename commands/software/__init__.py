"""--device MCU and CMSIS-NN: C for microcontrollers without the accelerator."""

from commands.targets import Target

TARGET = Target(
    names=("MCU", "CMSIS-NN"),
    what="another microcontroller",
    tools={"ai8xize.py": ("commands.loader.arguments", "commands.software.create.create")},
    option="--cmsis-software-nn",
    elsewhere="programs without the accelerator take what quantize.py makes for these, or with Q15 "
    "or Q7",
)
