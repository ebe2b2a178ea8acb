"""--device FIXED: fixed-point weights with a correction factor for each layer, as a container."""

from ai8xtools.commands.targets import Target

TARGET = Target(
    names=("FIXED",),
    what="a container with weights of 8 or 16 bits",
    tools={"quantize.py": ("fixed.arguments", "fixed.quantize.quantize_fixed")},
    elsewhere="quantize.py --device FIXED writes containers, which firmware runs as they are",
)
