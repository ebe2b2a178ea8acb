"""--device BITNET: low-bit networks for the smallest cores, trained, packed and written as C."""

from commands.targets import Target

MODELS = ("ai85fcbit", "ai85cnnbit", "ai85winbit")
"""Networks that are trained in a loop of their own."""

TARGET = Target(
    names=("BITNET",),
    what="a low-bit network",
    tools={
        "train.py": ("commands.lowbit.arguments.trainer", "commands.lowbit.train.train_lowbit"),
        "quantize.py": (
            "commands.lowbit.arguments.quantizer",
            "commands.lowbit.quantize.quantize_lowbit",
        ),
        "ai8xize.py": ("commands.lowbit.arguments.loader", "commands.lowbit.create.create_lowbit"),
    },
    models=MODELS,
)
