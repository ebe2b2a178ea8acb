"""--device BITNET: low-bit networks for the smallest cores, trained, packed and written as C."""

from ai8xtools.commands.targets import Target

MODELS = ("ai85fcbit", "ai85cnnbit", "ai85winbit")
"""Networks that are trained in a loop of their own."""

TARGET = Target(
    names=("BITNET",),
    what="a low-bit network",
    tools={
        "train.py": (
            "ai8xtools.commands.lowbit.arguments.trainer",
            "ai8xtools.commands.lowbit.train.train_lowbit",
        ),
        "quantize.py": (
            "ai8xtools.commands.lowbit.arguments.quantizer",
            "ai8xtools.commands.lowbit.quantize.quantize_lowbit",
        ),
        "ai8xize.py": (
            "ai8xtools.commands.lowbit.arguments.loader",
            "ai8xtools.commands.lowbit.create.create_lowbit",
        ),
    },
    models=MODELS,
)
