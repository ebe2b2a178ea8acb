"""What train.py does for the accelerators."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.commands.train.arguments import files
from ai8xtools.commands.train.arguments.sweeping import Sweep
from ai8xtools.commands.train.recipe import with_fold, with_recipe

if TYPE_CHECKING:
    from ai8xtools.commands.train.arguments import FirmwareChoice
    from ai8xtools.training.options import TrainingOptions


def run(asked: tuple[TrainingOptions, FirmwareChoice | Sweep | None]) -> int:
    """Do what the options ask for; return the exit status."""
    options, beyond = asked
    if isinstance(beyond, Sweep):
        from ai8xtools.commands.train import sweep

        return sweep.run(beyond, options)
    refuse_overwriting(*files(options))
    if "WORLD_SIZE" in os.environ:  # hints of torch.distributed would hide our own messages
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    options = with_fold(options)
    if options.arch == "auto":
        from ai8xtools.commands.train.automatic import settled

        options = settled(options)
    options = with_recipe(options)
    if options.fits is not None:
        gc.disable()  # such a run is short and makes few cycles of objects
        from ai8xtools.commands.train.fits import show

        return show(options)
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from ai8xtools.training import session

    if trains(options) and not options.nas:
        print_fits(options)
    if options.nas:
        from ai8xtools.commands.train.search import ChipDeployment

        metrics = session.run(options, deployment=lambda: ChipDeployment(options.device))
        write_report(options, metrics)
        return 0
    if options.yaml_template is not None:
        from ai8xtools.commands.train.template import complete_description

        session.run(options, complete=complete_description)
        return 0
    if beyond is None:
        from ai8xtools.commands.train.integers import integers_of

        write_report(options, session.run(options, integers=integers_of))
        return 0
    from ai8xtools.commands.train.firmware import FirmwareNetwork

    compares = options.exp_load_weights_from is not None or options.import_model
    measured = FirmwareNetwork(beyond, compares=compares)
    write_report(options, session.run(options, measured.around))
    print(measured.summary())
    return int(bool(measured.departures))


def write_report(options: TrainingOptions, metrics: Mapping[str, Any]) -> None:
    """Write the page of a run if that is asked for, complete or not at all."""
    if options.report is None or not metrics:
        return
    from ai8xtools.checkpoint import atomic
    from ai8xtools.commands.train.page import page

    text = page(options, metrics)
    atomic.write_bytes(options.report, text.encode("utf-8", "backslashreplace"))
    print(f"Wrote {options.report}")


def trains(options: TrainingOptions) -> bool:
    """Return whether this process trains and is the leader, which prints."""
    from ai8xtools.training import export

    if options.evaluate or export.is_requested(options):
        return False
    return os.environ.get("RANK", "0") == "0"


def print_fits(options: TrainingOptions) -> None:
    """Say whether the network fits the chips."""
    from ai8xtools.commands.train.fits import tell

    tell(options)
