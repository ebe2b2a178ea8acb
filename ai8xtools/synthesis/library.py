"""A project as a library: where the values of an input go, and what its results mean.

Source: docs/library.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Place, refused
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.emit.library import Export, InputPlace, InputWords
from ai8xtools.synthesis.emit.unload import delivered, layer_offsets
from ai8xtools.synthesis.encode.data import input_places
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.program import FifoStream, InputBlock, Program, UnloadLayer
from ai8xtools.writing.application import Application
from ai8xtools.writing.library import Library, LibraryOutput, Shape
from ai8xtools.writing.symbols import OPTION
from device.chip import WORD_BYTES


def export_of(
    network: MappedNetwork,
    program: Program,
    options: ProjectOptions,
    application: Application | None = None,
) -> Export:
    """Return a project as a library, with a program around it; raises as `library_of` does."""
    library, words = library_of(network, program, options), input_words(network, program)
    return Export(library, words, application)


def library_of(network: MappedNetwork, program: Program, options: ProjectOptions) -> Library:
    """Return what is called, with the outputs that the program delivers.

    Raises DiagnosticError E912 where channels of an output are in no known order.
    """
    layers = delivered(program, options)
    *offsets, size = layer_offsets(layers)
    shapes = _output_shapes(network, program.unload)
    outputs = tuple(
        LibraryOutput(
            shape,
            8 * layer.value_bytes,
            offset,
            _group(layer),
            held.exponent - layer.scale,
            "" if held.layer < 0 else network.network.layer(held.layer).name or "",
        )
        for held, layer, shape, offset in zip(program.unload, layers, shapes, offsets, strict=True)
    )
    sample = Shape(*network.sample.shape)
    title = f"{options.name}: {options.command_line}"
    return Library(options.symbol_prefix or "", title, sample, outputs, size, options.labels)


def _output_shapes(network: MappedNetwork, layers: tuple[UnloadLayer, ...]) -> Iterator[Shape]:
    listed = iter(network.layout.deliveries)
    for layer in layers:
        dim = next(listed).dim if layer.layer < 0 else network.network.layer(layer.layer).out_dim
        yield Shape(layer.channels, *dim)


def _group(layer: UnloadLayer) -> int:
    """Return how many channels of a pixel stand together."""
    if layer.width == 8 or layer.pixels == 1:
        return 1
    group = len(layer.pieces[0].lanes)
    for number, piece in enumerate(layer.pieces):
        count = min(group, layer.channels - number * group)
        if (piece.channel, len(piece.lanes)) != (number * group, count):
            raise refused(
                "E912",
                f"the channels of the output of layer {layer.layer} stand in groups of "
                "different sizes",
                Place(option=OPTION),
                "Give the layer behind it, or what reads it, processors without gaps.",
            )
    return group


def input_words(network: MappedNetwork, program: Program) -> InputWords:
    """Return which value of an input is in which byte of the words that are loaded."""
    numbers = input_places(network, program.apb_base).reshape(-1, WORD_BYTES) - 1
    blocks: tuple[InputBlock | FifoStream, ...] = (*program.inputs, *program.fifo)
    ends = np.cumsum([block.words.size for block in blocks])
    parts = np.split(numbers, ends[:-1])
    pixels = network.sample[0].size
    period = len(parts[0]) // pixels
    whole = [part.reshape(pixels, -1) for part in parts if len(part) == period * pixels]
    interleaved = len(whole) == len(parts) and all(_is_interleaved(one, pixels) for one in whole)
    return InputWords(
        interleaved,
        period,
        tuple(
            _interleaved(block, part, pixels) if interleaved else _planar(block, part, pixels)
            for block, part in zip(blocks, parts, strict=True)
        ),
    )


def _is_interleaved(values: NDArray[np.int32], pixels: int) -> bool:
    """Whether each pixel has its own words: its values follow from those of the first."""
    later = values + np.where(values[0] < 0, 0, -np.arange(pixels)[:, None])
    return bool((later == values[0]).all())


def _interleaved(
    block: InputBlock | FifoStream, part: NDArray[np.int32], pixels: int
) -> InputPlace:
    period = len(part) // pixels
    channels = np.where(part[:period] < 0, -1, part[:period] // pixels)
    return _place(block, channels=tuple(map(tuple, channels.tolist())))


def _planar(block: InputBlock | FifoStream, part: NDArray[np.int32], pixels: int) -> InputPlace:
    numbers = part.reshape(-1)
    loaded = np.flatnonzero(numbers >= 0)
    channel, pixel = divmod(int(numbers[loaded[0]]), pixels)
    first, count = pixel - int(loaded[0]), int(loaded[-1]) + 1
    places = first + np.arange(len(numbers))
    inside = (places >= 0) & (places < pixels) & (np.arange(len(numbers)) < count)
    assert np.array_equal(numbers, np.where(inside, channel * pixels + places, -1))
    return _place(block, channels=((channel,),), first=first, count=count)


def _place(
    block: InputBlock | FifoStream,
    channels: tuple[tuple[int, ...], ...],
    first: int = 0,
    count: int = 0,
) -> InputPlace:
    address = block.data_address if isinstance(block, FifoStream) else block.address
    return InputPlace(address, block.words.size, channels, first, count)
