"""Checkpoints of 16 and 8 bits: their project for a microcontroller.

Source: docs/q15.md.
"""

from __future__ import annotations

import numpy as np

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.quantize.arrays import read_samples
from ai8xtools.commands.software.finishing import finish
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.diagnostics import print_diagnostics, refuse_errors
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.options import excludes
from ai8xtools.quantization.formats import Int64s, to_fixed
from ai8xtools.quantization.q15.file import StoredNetwork, from_checkpoint
from ai8xtools.software.emit.text import log_of
from ai8xtools.software.q15.build import build_qformat, plan_text


def create_qformat(options: LoaderOptions, software: SoftwareOptions) -> int:
    """Write the project of a checkpoint of 16 or 8 bits; return the exit status."""
    stored, sample = read_stored(software)
    profile = software.profile()
    if not options.output.check_only:
        software.folder(options).check()
    built = build_qformat(
        stored,
        profile,
        software.scheme,
        sample=sample,
        library=software.library,
        interleaving=software.interleaving,
        name=options.project.name,
        command_line=options.project.command_line,
    )
    print_diagnostics(options.visible(software.notices))
    plan = plan_text(built, stored.network, profile)
    log = log_of(profile, options.project.command_line, plan)
    finish(options, software, built, profile, plan, log)
    return 0


def read_stored(software: SoftwareOptions) -> tuple[StoredNetwork, Int64s | None]:
    """Return the network of the checkpoint, and the sample that takes the place of its own.

    Raises DiagnosticError for options that it does not have, CheckpointError, or InputError E740 as
    `read_sample` does.
    """
    refuse_errors([excludes(one, "a checkpoint of 16 or 8 bits") for one in software.planning])
    options = software.source
    path = options.resolve.checkpoint_file
    assert path is not None
    stored = from_checkpoint(read_checkpoint(path), path)
    sample = options.resolve.sample_input
    return stored, None if sample is None else read_sample(sample, stored)


def read_sample(path: str, stored: StoredNetwork) -> Int64s:
    """Return the integers [row, column, channel] of a sample in floating point [C, H, W].

    Raises InputError E740 for a file that holds none.
    """
    values = read_samples(path)
    network = stored.network
    channels, height, width = network.graph.shapes[0]
    spatial = (width, height) if stored.column_major else (height, width)
    shapes = _shapes((channels, *spatial))
    if values.shape not in shapes or values.dtype.kind != "f":
        size = "x".join(map(str, shapes[0]))
        raise InputError(
            "E740",
            f"an array of shape {values.shape} and type {values.dtype} is no sample of this "
            f"network, which takes floating-point numbers of {size}",
            path,
            "Write a sample as the network was trained with; those for the accelerator are "
            "integers, 128 times as large.",
        )
    if not np.isfinite(values).all():
        raise InputError("E740", "the sample holds values that are not finite (NaN or infinity)",
                         path, "Write a sample like those of the application.")  # fmt: skip
    maps = values.astype(np.float64).reshape(channels, *spatial)
    maps = maps.swapaxes(1, 2) if stored.column_major else maps
    return to_fixed(maps.transpose(1, 2, 0), network.fractions[0], network.bits)


def _shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes that a sample [C, H, W] may have: axes of size 1 may be left out."""
    shapes = [shape, (1, *shape)]
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
        shapes += [shape, (1, *shape)]
    return shapes
