"""--device Q15 and Q7: numbers of 16 and of 8 bits with a power of two for each tensor."""

from ai8xtools.commands.targets import Target

BITS = {"Q15": 16, "Q7": 8}

TARGET = Target(
    names=tuple(BITS),
    what="numbers of 16 or 8 bits, each tensor with a power of two",
    tools={"quantize.py": ("q15.arguments", "q15.quantize.quantize_q15")},
    elsewhere="it is a format of quantize.py, whose result needs ai8xize.py --device MCU or "
    "CMSIS-NN",
)
