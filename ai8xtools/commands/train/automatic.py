"""train.py --model auto: the widest of the sized networks that fits the chip.

Source: docs/own-data.md, "The network".
"""

from __future__ import annotations

import os
from dataclasses import replace

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.train.fits import fits_of_run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.own_data import dataset_of
from ai8xtools.training.options import TrainingOptions
from datasets.own.settings import ANOMALY, BOXES, MASKS
from device import CHIPS, chip_of_die

AUTO = "auto"
_SHOWN = 2


def settled(options: TrainingOptions) -> TrainingOptions:
    """Return the options with the network that is meant by `auto`, and say which.

    It is that of the checkpoint, if one is named. Raises InputError E689 if none fits.
    """
    if options.arch != AUTO:
        return options
    source = options.resume_from or options.exp_load_weights_from
    if source is not None:
        name = read_checkpoint(source).arch
        if not name:
            raise InputError(
                "E689", "the checkpoint does not name its network", source, "Name it with --model."
            )
        return replace(options, arch=name)
    name = _widest(options)
    if os.environ.get("RANK", "0") == "0":
        print(f"--model auto: {name}, the widest that fits {_chip_name(options)}")
    return replace(options, arch=name)


def _chip_name(options: TrainingOptions) -> str:
    chip = chip_of_die(options.device)
    return "the chip" if chip is None else chip.name


def _widest(options: TrainingOptions) -> str:
    from models.sized import MASK_WIDTHS, SERIES_WIDTHS, WIDTHS

    dataset = dataset_of(options)
    size = dataset.input
    family = "sized2d" if size[2] > 1 else "sized1d" if size[1] > 1 else "sizedrow"
    widths: tuple[int, ...] = WIDTHS
    kind = None if dataset.own is None else dataset.own.kind
    if dataset.own is not None and dataset.own.preparation.kind == "series":
        family, widths = "sizedseries", SERIES_WIDTHS
    elif kind == BOXES:
        family = "sizedboxes"
    elif kind == MASKS:
        family, widths = "sizedmasks", MASK_WIDTHS
    if dataset.own is not None and dataset.own.settings.task == ANOMALY:
        family, widths = "sizedresidual", WIDTHS
    chip = chip_of_die(options.device)
    reasons: tuple[str, ...] = ()
    for width in widths:
        name = f"{family}_{width}"
        judged = fits_of_run(replace(options, arch=name), CHIPS if chip is None else (chip,))
        if any(fit.fits for fit in judged):
            return name
        reasons = judged[0].reasons
    raise InputError(
        "E698",
        f"no network of {family} fits {_chip_name(options)} with inputs of "
        f"{'x'.join(map(str, size))}: {'; '.join(reasons[:_SHOWN])}",
        "--model",
        "Make inputs smaller (--resize, --grayscale, --window), or name a network.",
    )
