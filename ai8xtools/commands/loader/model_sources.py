"""ai8xize.py --model: what is named becomes a description; only PyTorch models need torch.

Source: docs/own-models.md; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.loader.recorded import with_recorded_data
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.text import ModelDescription
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions, StreamOptions
from ai8xtools.synthesis.parse import Described, Source
from device import Chip

if TYPE_CHECKING:
    from ai8xtools.commands.fits import Described as ForChips


def with_description(
    options: LoaderOptions, source: ModelSource, *, quiet: bool = False
) -> LoaderOptions:
    """Return the options with the description of the model in its place.

    Unless it is `quiet`, what the model leaves to the application is printed.
    """
    resolving = options.resolve
    if source.is_graph and not _is_imported(resolving.checkpoint_file):
        description, resolving = _from_onnx(source, resolving, options.chip)
    else:
        from ai8xtools.commands.loader.models import describe_model
        from ai8xtools.commands.loader.own_data import with_own_data

        source = _sized(source, resolving, options.chip) if source.is_graph else source
        options, source = with_own_data(options, source)
        resolving = options.resolve
        description = describe_model(
            source, options.chip, resolving.checkpoint_file, resolving.sample_input
        )
    for note in () if quiet else description.notes:
        print(note)
    described = Described(description.text, description.model, description.nodes)
    resolving = replace(resolving, sample_shape=description.input_shape)
    source = replace(source, left=description.left, doubts=description.doubts)
    return replace(options, config_file=described, resolve=resolving, model=source)


def _is_imported(checkpoint_file: str | None) -> bool:
    """Return whether a checkpoint is that of an ONNX graph whose fractions were quantized."""
    if checkpoint_file is None or checkpoint_file.lower().endswith(".onnx"):
        return False
    return read_checkpoint(checkpoint_file).extras.get("imported") == "graph"


def _sized(source: ModelSource, resolving: ResolveOptions, chip: Chip) -> ModelSource:
    """Return a graph with the shape of its input, as data sets have it."""
    from ai8xtools.checkpoint.onnx_graph import read_graph
    from ai8xtools.frontends.onnx.door import input_shape
    from ai8xtools.frontends.onnx.network import check_order

    shape = source.input_shape or input_shape(read_graph(source.model), source.model)
    check_order(source.model, shape, read_checkpoint(str(resolving.checkpoint_file)), chip)
    return replace(source, input_shape=shape if len(shape) > 1 else (*shape, 1, 1))


def _from_onnx(
    source: ModelSource, resolving: ResolveOptions, chip: Chip
) -> tuple[ModelDescription, ResolveOptions]:
    """Return the description of a graph; its own integers count unless a checkpoint is named."""
    from ai8xtools.frontends.onnx.network import describe_onnx

    if source.frames is not None:
        raise InputError(
            "E678", f"--input-shape has four sizes ({source.frames} frames)", source.model,
            "Series of frames are only taken from PyTorch models; state CxHxW (or CxL).",
        )  # fmt: skip
    file = resolving.checkpoint_file
    checkpoint = None if file is None or file.lower().endswith(".onnx") else read_checkpoint(file)
    description, tensors = describe_onnx(
        source.model, source.input_shape, source.dataset, checkpoint, chip
    )
    if file is None or checkpoint is not None:
        resolving = replace(resolving, checkpoint_file=file or source.model, tensors=tensors)
    return description, resolving


def show_fits(options: LoaderOptions, form: str) -> int:
    """Print what the network takes of every target; status 0 if it fits that of --device."""
    from ai8xtools.commands.fits import fits_of, show, status_of, suggest_the_same
    from ai8xtools.commands.targets import targets

    described = described_for(options)
    places = replace(options.encode.place, streams=StreamOptions())
    elsewhere = EncodeOptions(places, zero_sram=options.encode.zero_sram)
    fits = fits_of(
        described,
        encoding=lambda chip: options.encode if chip is options.chip else elsewhere,
        energy=options.project.measured,
    )
    judges = [target.judge() for target in targets("ai8xize.py") if target.fits is not None]
    show(form, fits, [judge(described, options) for judge in judges], options.project.measured)
    if options.resolve.checkpoint_file is not None:
        chip = next((one.chip for one in fits if one.fits), "")
        name = options.project.name
        suggest_the_same("ai8xize.py", device=chip, prefix=name, test_dir="projects")
    return status_of(fits, options.chip)


def described_for(options: LoaderOptions) -> ForChips:
    """Return what describes the network for a chip."""
    options = options if options.model is not None else with_recorded_data(options)
    return lambda chip: _described(options, chip)


def _described(options: LoaderOptions, chip: Chip) -> tuple[Source, ResolveOptions]:
    """Return the description for a chip; of a model without checkpoint with random weights."""
    source, resolving = options.model, options.resolve
    if source is None:
        return options.config_file, resolving
    if source.is_graph or resolving.checkpoint_file is not None:
        quiet = replace(options, chip=chip)
        completed = with_description(quiet, source, quiet=True)
        resolving = completed.resolve
        if resolving.tensors is not None:
            from ai8xtools.frontends.onnx.network import integers_of

            resolving = replace(resolving, tensors=integers_of(resolving.tensors))
        return completed.config_file, resolving
    from ai8xtools.commands.fits import of_model
    from ai8xtools.commands.loader.models import stand_in_of_model

    return of_model(*stand_in_of_model(source, chip, resolving.sample_input))
