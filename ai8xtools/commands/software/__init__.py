"""--device MCU: C for microcontrollers without the accelerator."""

from ai8xtools.commands.targets import Target

TARGET = Target(
    names=("MCU",),
    what="another microcontroller",
    tools={
        "ai8xize.py": ("software.arguments", "software.create.create_software"),
        "quantize.py": ("q15.mcu_arguments", "q15.mcu.quantize_mcu"),
    },
    fits="software.fits.microcontrollers",
    elsewhere="programs without the accelerator take what quantize.py makes for these, or with Q15 "
    "or Q7",
)
