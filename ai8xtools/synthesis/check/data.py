"""Constraints of data memory: sizes, offsets, counters."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check.constraint import (
    Covered,
    Finding,
    Kind,
    Of,
    constraint,
    elsewhere,
    layer_constraint,
)
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Layer, Network
from device import Chip
from device.chip import WORD_BYTES


@constraint(
    "E340",
    Kind.HARDWARE,
    blocks=Fact.OVERLAPS,
    covers=Covered("E341", Of.NEXT, unless="in_offset"),
    without_sizes="out_offset",
)
def out_offset_is_in_memory(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """The write pointer addresses the data memories of a group and nothing else."""
    chip = network.chip
    limit = chip.out_offset_limit
    highest = max(chip.instance_bytes - _output_bytes(layer), 0)
    if layer.out_offset >= limit:
        yield Finding(
            f"'out_offset' is 0x{layer.out_offset:x}, the limits are 0 and 0x{limit - 1:x}",
            "out_offset",
            f"This output fits at 0x{highest:x} at most.",
        )


@layer_constraint("E341", Kind.HARDWARE, blocks=(Fact.OVERLAPS, Fact.ROOM), needs=Fact.SIZES)
def input_fits_its_memory(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """All channels that share a memory instance must fit into it, unless the layer streams."""
    if layer.streaming:
        return
    limit = chip.instance_bytes
    if layer.in_offset >= limit and layer.index > 0 and "in_offset" not in layer.places:
        return  # the layer that writes there has been blamed
    rows, columns = layer.in_dim
    bytes_per_pixel = 1 if layer.channels_first else WORD_BYTES
    size = rows * columns * layer.in_passes * layer.operands * bytes_per_pixel
    if layer.in_offset + size > limit:
        yield Finding(
            f"the input needs {size} bytes at 0x{layer.in_offset:x}, "
            f"a memory instance of {chip.name} has {limit}",
            ("in_offset", "in_dim", "processors"),
            _of_input(layer, limit - size),
        )


def _of_input(layer: MappedLayer, highest: int) -> str:
    """Return what to do about an input that fits at an offset of `highest` at most."""
    if highest >= 0 and "in_offset" in layer.places:
        return f"The highest in_offset that fits is 0x{highest // WORD_BYTES * WORD_BYTES:x}."
    if layer.channels_first:
        return "Use a smaller image."
    return "Use a smaller image or a lower in_offset; CHW data takes a quarter of the space."


def _output_bytes(layer: MappedLayer) -> int:
    """Return the bytes from the first to the last word that a layer writes in an instance."""
    pixels = layer.out_dim[0] * layer.out_dim[1] + layer.hardware.surplus_words
    words = pixels * layer.out_passes * layer.output_words_per_value
    last = (words - layer.output_words_per_value) * (layer.write_gap + 1)
    return (last + layer.output_words_per_value) * WORD_BYTES


@constraint(
    "E342",
    Kind.HARDWARE,
    blocks=(Fact.OVERLAPS, Fact.ROOM),
    needs=Fact.SIZES,
    covers=Covered("E341", Of.NEXT, unless="in_offset"),
)
def output_fits_its_memory(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """All outputs that share a memory instance must fit into it, from out_offset on."""
    if layer.streaming and layer is not network.terminating:
        return
    limit = network.chip.instance_bytes
    end = layer.out_offset + _output_bytes(layer)
    if 0 <= layer.out_offset < network.chip.out_offset_limit and end > limit:
        highest = max(limit - (end - layer.out_offset), 0)
        yield Finding(
            f"the output needs {end - layer.out_offset} bytes at 0x{layer.out_offset:x}, "
            f"a memory instance of {network.chip.name} has {limit}",
            ("out_offset", "write_gap"),
            f"The highest out_offset that fits is 0x{highest:x}."
            if end - layer.out_offset <= limit
            else "Pool more, use fewer channels or output_width: 8.",
        )


@layer_constraint("E343", Kind.HARDWARE, blocks=Fact.PLACES, needs=Fact.SIZES)
def dimensions_fit_the_counters(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """Rows and columns are counted in fields of 10 (MAX78000) or 11 bits, padding included."""
    limit = chip.max_dimension
    inherited = layer.index > 0 and "in_dim" not in layer.places  # its source has been blamed
    for size, what, key in (
        (layer.in_dim, "input", "in_dim"),
        (layer.out_dim, "output", "op"),
    ):
        if max(size) > limit and not (inherited and what == "input"):
            yield Finding(
                f"the {what} has {size[0]}x{size[1]} pixels, the limit is {limit} in a row "
                "or column",
                key,
            )
    if not chip.counts_by_step:
        padded = [n + 2 * p for n, p in zip(layer.in_dim, layer.pad, strict=True)]
        if max(layer.in_dim) <= limit < max(padded) and not layer.flatten:
            yield Finding(
                f"the input has {padded[0]}x{padded[1]} pixels with padding, the limit is {limit}",
                ("pad", "in_dim"),
            )


@layer_constraint("E344", Kind.HARDWARE, blocks=Fact.PLACES, needs=Fact.SIZES)
def frame_fits_its_counter(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """The words of a frame are counted in 21 bits."""
    words = layer.in_dim[0] * layer.in_dim[1] * layer.in_passes
    if words >= chip.max_frame_words:
        yield Finding(
            f"a frame of {words} words, the limit is {chip.max_frame_words - 1}", "in_dim"
        )


@layer_constraint("E345", Kind.HARDWARE, blocks=Fact.PLACES, without_sizes="write_gap")
def write_gap_fits_its_field(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """The step from one output word to the next is a field of 4 (MAX78000) or 8 bits."""
    limit = chip.layer_registers["LCTL2"].by_name["write_step"].limit
    step = layer.out_passes * (layer.write_gap + 1) - 1 if layer.has_weights else layer.write_gap
    if step > limit:
        yield Finding(
            f"'write_gap' is {layer.write_gap} with {layer.out_passes} output passes, "
            f"which makes steps of {step + 1} words; the limit is {limit + 1}",
            "write_gap",
        )


@layer_constraint("E346", Kind.HARDWARE)
def read_gap_limits(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """Skipping words while reading is a feature of MAX78002, for a single pass."""
    if layer.read_gap and not chip.has_read_gap:
        yield Finding(
            f"'read_gap' is {layer.read_gap}, {chip.name} has none",
            "read_gap",
            elsewhere("has_read_gap"),
        )
    elif layer.read_gap and layer.in_passes > 1:
        yield Finding(f"'read_gap' with {layer.in_passes} input passes", "read_gap")


@layer_constraint("W347", Kind.HARDWARE, Severity.WARNING)
def offsets_are_words(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """The hardware addresses words; the last two bits of an offset are lost."""
    for key, value in (("in_offset", layer.in_offset), ("out_offset", layer.out_offset)):
        if value % WORD_BYTES:
            yield Finding(
                f"'{key}' is 0x{value:x}, not a multiple of {WORD_BYTES}",
                key,
                f"Use 0x{value // WORD_BYTES * WORD_BYTES:x}.",
                # The known answer is read where the description says, the output stands before it
                unsound=key == "out_offset",
            )


@constraint("W348", Kind.HARDWARE, Severity.WARNING)
def input_is_where_it_was_written(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Data is read where the previous layer wrote it, unless it has another source."""
    previous = network.predecessor(layer)
    if previous and layer.sources is None and layer.in_offset != previous.out_offset:
        yield Finding(
            f"'in_offset' is 0x{layer.in_offset:x}, {previous} wrote to 0x{previous.out_offset:x}",
            "in_offset",
            "Remove the key, or name the source with in_sequences.",
            unsound=_reads_all_of(layer, previous),
        )


def _reads_all_of(layer: MappedLayer, source: MappedLayer) -> bool:
    """Whether a layer can only mean what a source wrote, all of it."""
    whole = (source.out_channels, source.out_dim, source.output_processors)
    return whole == (layer.in_channels, layer.in_dim, layer.processors) and not layer.combination


@constraint("E349", Kind.NETWORK, blocks=Fact.SIZES)
def sample_fits_the_input(layer: Layer, network: Network) -> Iterator[Finding]:
    """The sample must be what the first layer reads."""
    if layer is not network.first:
        return
    channels, rows, columns = network.sample.shape
    expected = layer.in_channels * layer.operands
    if channels != expected or (rows, columns) != layer.in_dim:
        yield Finding(
            f"the sample {network.sample_file} has {channels}x{rows}x{columns} values, "
            f"the layer reads {expected}x{layer.in_dim[0]}x{layer.in_dim[1]}",
            ("in_dim", "in_channels", "processors"),
            _remedy_of_sample((channels, rows, columns), (expected, *layer.in_dim)),
        )


def _remedy_of_sample(shape: tuple[int, int, int], expected: tuple[int, int, int]) -> str:
    """Say what is probably meant by a sample of another shape."""
    channels, rows, columns = expected
    if shape == (rows, columns, 1) and channels == 1:  # an array with this axis, or without
        return f"The sample has no channels in front: save sample.reshape(1, {rows}, {columns})."
    if shape[2] == channels != shape[0] and (shape[0] > 4 or shape[:2] == (rows, columns)):
        return "The sample seems to be rows, columns, channels: save sample.transpose(2, 0, 1)."
    if shape == (rows, columns, 1):
        return "The sample has no axis of channels: save it as channels, rows, columns."
    return "Use a sample of this data set, or correct the description."


@constraint("W339", Kind.NETWORK, Severity.WARNING)
def final_output_is_among_the_outputs(layer: Layer, network: Network) -> Iterator[Finding]:
    """Once a layer is marked as output, only marked layers are checked and delivered."""
    marked = [x for x in network.layers if x.is_output]
    if layer is network.final and marked and layer not in marked:
        names = ", ".join(map(str, marked))
        yield Finding(
            f"the final layer is no output, its result is neither checked nor delivered ({names}"
            f" {'is' if len(marked) == 1 else 'are'})",
            "op",
            "Add output: true here too if it is wanted.",
        )


@constraint("E338", Kind.HARDWARE)
def split_input_limits(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Parts of an image are whole rows of one channel; all of them must fit into its memory."""
    parts = network.layout.input_parts
    if layer is not network.first or parts == 1:
        return
    if not layer.channels_first or network.input_port.is_fifo:
        yield Finding(
            f"--input-split {parts} splits CHW data in memory, "
            "the input is HWC data or comes from a FIFO",
            "data_format",
        )
    elif not 0 < parts <= layer.in_dim[0] or layer.in_dim[0] % parts:
        yield Finding(
            f"--input-split is {parts}, the image has {layer.in_dim[0]} rows",
            "in_dim",
            f"Use a divisor of {layer.in_dim[0]}.",
        )
    elif layer.in_offset + parts * network.input_part_distance > network.chip.instance_bytes:
        yield Finding(
            f"--input-split {parts} needs {parts * network.input_part_distance} bytes "
            f"at 0x{layer.in_offset:x}, a memory instance of {network.chip.name} has "
            f"{network.chip.instance_bytes}",
            "in_dim",
        )


@constraint("W380", Kind.HARDWARE, Severity.WARNING)
def split_input_is_read_by_own_programs(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """The layer's registers describe a whole image, but its parts are stored apart and repeat rows.

    The vendor's tool expects the output for the whole image all the same.
    """
    if layer is network.first and network.layout.input_parts > 1:
        yield Finding(
            f"--input-split {network.layout.input_parts} loads the image in parts, the layer reads "
            "it as a whole; the chip is not expected to compute the known answer",
            "data_format",
            "Leave the option out, unless the program sets up the layer for each part.",
            unsound=True,
        )
