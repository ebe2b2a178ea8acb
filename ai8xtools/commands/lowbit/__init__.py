"""--device BITNET: low-bit networks for the smallest cores, trained, packed and written as C."""

from ai8xtools.commands.targets import Target

MODELS = ("ai85fcbit", "ai85cnnbit", "ai85winbit")
"""Networks that are trained in a loop of their own."""

TARGET = Target(
    names=("BITNET",),
    what="a low-bit network",
    tools={
        "train.py": ("lowbit.arguments.trainer", "lowbit.train.train_lowbit"),
        "quantize.py": (
            "lowbit.arguments.quantizer",
            "lowbit.quantize.quantize_lowbit",
        ),
        "ai8xize.py": ("lowbit.arguments.loader", "lowbit.create.create_lowbit"),
    },
    models=MODELS,
)
