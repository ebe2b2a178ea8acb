#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import interrupts  # noqa: F401 - before all else

# isort: split

import gc
import os
import sys
from typing import TYPE_CHECKING

from diagnostics import run

if TYPE_CHECKING:
    from training.options import TrainingOptions


def main() -> int:
    """Do what the command line says."""
    if any("bit" in word for word in sys.argv[1:]):
        from commands.lowbit.arguments import names_lowbit_model

        if names_lowbit_model(sys.argv[1:]):
            from commands.lowbit.train import train_lowbit

            return train_lowbit(sys.argv[1:])
    from commands.same_files import refuse_overwriting
    from commands.train.arguments import files, parse

    options, firmware = parse(sys.argv[1:])
    refuse_overwriting(*files(options))
    if "WORLD_SIZE" in os.environ:  # hints of torch.distributed would hide our own messages
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if options.arch == "auto":
        from commands.train.automatic import settled

        options = settled(options)
    if options.fits is not None:
        from commands.train.fits import show

        return show(options)
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from training import session

    if trains(options) and not options.nas:
        print_fits(options)
    if options.nas:
        from commands.train.search import ChipDeployment

        session.run(options, deployment=lambda: ChipDeployment(options.device))
        return 0
    if options.yaml_template is not None:
        from commands.train.template import complete_description

        session.run(options, complete=complete_description)
        return 0
    if firmware is None:
        session.run(options)
        return 0
    from commands.train.firmware import FirmwareNetwork

    compares = options.exp_load_weights_from is not None or options.import_model
    measured = FirmwareNetwork(firmware, compares=compares)
    session.run(options, measured.around)
    print(measured.summary())
    return int(bool(measured.departures))


def trains(options: TrainingOptions) -> bool:
    """Return whether this process trains, and is the one that speaks."""
    from training import export

    return not (options.evaluate or export.wanted(options)) and os.environ.get("RANK", "0") == "0"


def print_fits(options: TrainingOptions) -> None:
    """Say in one line whether the network fits the chips."""
    from commands.train.fits import line

    said = line(options)
    if said is not None:
        print(said)


if __name__ == "__main__":
    if any(word.startswith("--fits") for word in sys.argv):
        gc.disable()  # such a run is short and makes few cycles of objects
    sys.exit(run(main))
