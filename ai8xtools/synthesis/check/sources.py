"""Constraints between a layer and those that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check.constraint import Covered, Finding, Kind, constraint
from ai8xtools.synthesis.check.joins import is_read_right
from ai8xtools.synthesis.check.layout import mask_text
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.final_scales import final_scales
from ai8xtools.synthesis.flattening import remedy_of_flattened
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import AnyLayer, Layer, Network, Schedule
from device.chip import WORD_BYTES
from device.masks import lowest_bit


def _sources(layer: AnyLayer, network: Schedule[AnyLayer]) -> tuple[AnyLayer, ...]:
    """Layers whose output is read (without the network's input)."""
    previous = network.predecessor(layer)
    indices = (
        layer.sources if layer.sources is not None else ((previous.index,) if previous else ())
    )
    return tuple(network.layer(i) for i in indices if i >= 0)


@constraint(
    "E360",
    Kind.NETWORK,
    blocks=Fact.PLACES,
    needs=Fact.SIZES,
    covers=Covered("E320"),
)
def input_has_as_many_values_as_read(layer: Layer, network: Network) -> Iterator[Finding]:
    """A layer must read exactly the data that was written: channels times pixels."""
    if layer is network.first or min(layer.sources or (0,)) < 0:
        return
    cropped = sum(layer.in_crop)
    available = sum(
        s.out_channels * (s.out_dim[0] - cropped) * s.out_dim[1] for s in _sources(layer, network)
    )
    pixels = layer.in_dim[0] * layer.in_dim[1]
    needed = layer.operands * layer.in_channels * pixels
    skipped = layer.channel_skip if network.reshapes_inputs else 0
    if network.reshapes_inputs and available >= needed + skipped * pixels:
        rows, columns = _sources(layer, network)[0].out_dim
        if (rows - cropped) * columns == pixels:
            return
    if available != needed or skipped:
        origin = " and ".join(
            f"{s} gives {s.out_channels}x{s.out_dim[0]}x{s.out_dim[1]}"
            for s in _sources(layer, network)
        )
        behind = f" behind {skipped} channels" if skipped else ""
        operands = f"{layer.operands} x " if layer.operands > 1 else ""
        yield Finding(
            f"{origin}, but the weights or keys of this layer need "
            f"{operands}{layer.in_channels}x{layer.in_dim[0]}x{layer.in_dim[1]}{behind}",
            ("in_sequences", "in_channels", "in_dim", "op"),
            _remedy_of_sizes(layer, _sources(layer, network), network),
        )


def _remedy_of_sizes(layer: Layer, sources: tuple[Layer, ...], network: Network) -> str:
    """Say what is probably meant by a layer that reads another number of values."""
    if layer.combination and len(sources) not in (1, layer.operands):
        return f"Add operands: {len(sources)}, or name {layer.operands} layers in in_sequences."
    if layer.operator.fully_connected and not layer.flatten and len(sources) == 1:
        (source,) = sources
        if layer.in_channels == source.out_channels * source.out_dim[0] * source.out_dim[1]:
            return "Add flatten: true."
    shape = "x".join(map(str, network.sample.shape))
    if layer.flatten and len(sources) == 1:
        (source,) = sources
        inputs = layer.in_channels * layer.in_dim[0] * layer.in_dim[1]
        likely = remedy_of_flattened(inputs, source.out_channels, source.out_dim)
        return f"{likely} The sample is {shape}."
    return (
        f"Check the sample, which is {shape}, the pooling and the order of the layers, and that "
        "the checkpoint belongs to this network."
    )


@constraint("W368", Kind.NETWORK, Severity.WARNING)
def channels_are_skipped_on_demand(layer: Layer, network: Network) -> Iterator[Finding]:
    """All channels of a source are read unless --reshape-inputs is given."""
    if layer.channel_skip and not network.reshapes_inputs:
        yield Finding(
            f"'in_channel_skip' is {layer.channel_skip}, which has no effect",
            "in_channel_skip",
            "Add --reshape-inputs.",
        )


@constraint(
    "E361",
    Kind.NETWORK,
    blocks=Fact.PLACES,
    needs=Fact.SIZES,
    covers=Covered("E360"),
)
def operands_agree(layer: Layer, network: Network) -> Iterator[Finding]:
    """Operands are combined value by value, so channels and size must be equal."""
    if not layer.combination or layer.sources is None:
        return
    sources = _sources(layer, network)
    if len({s.out_channels for s in sources}) > 1:
        counts = ", ".join(str(s.out_channels) for s in sources)
        yield Finding(f"the operands have {counts} channels, they must be equal", "in_sequences")
    if len({s.out_dim for s in sources}) > 1:
        sizes = ", ".join(f"{s.out_dim[0]}x{s.out_dim[1]}" for s in sources)
        yield Finding(f"the operands have the sizes {sizes}, they must be equal", "in_sequences")


@constraint(
    "E369",
    Kind.HARDWARE,
    blocks=Fact.PLACES,
    needs=Fact.SIZES,
    covers=Covered("E360"),
)
def operands_share_processors(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """A processor reads all operands of a channel from its own memory, next to each other."""
    if not layer.combination or layer.sources is None:
        return
    sources = _sources(layer, network)
    if len({s.output_processors for s in sources}) > 1:
        maps = ", ".join(mask_text(s.output_processors) for s in sources)
        yield Finding(
            f"the operands are written to the processors {maps}, they must be equal",
            "in_sequences",
            "Give the layers that are combined the same output_processors.",
        )


@constraint("W362", Kind.HARDWARE, Severity.WARNING)
def gaps_interleave_the_inputs(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Each of n operands or passes leaves n - 1 words free after its own, for the others."""
    if layer.sources is None or len(layer.sources) < 2:
        return
    sources = _sources(layer, network)
    right = is_read_right(layer, sources, network.order)
    gaps = [s.write_gap for s in sources]
    needed = layer.operands * (layer.read_gap + 1) - 1
    if right:
        return
    if len(set(gaps)) > 1:
        text = ", ".join(map(str, gaps))
        yield Finding(
            f"the inputs are written with the gaps {text}",
            "in_sequences",
            _equal_gaps(sources, needed)
            if layer.combination
            else "Write all of them with the same write_gap.",
            unsound=right is False,
        )
    elif gaps and layer.combination and gaps[0] != needed:
        yield Finding(
            f"the operands are written with write_gap {gaps[0]}, {layer.operands} operands "
            f"need {needed}",
            ("in_sequences", "eltwise", "op"),
            f"Add write_gap: {needed} to the layers that are combined.",
            unsound=right is False,
        )
    elif _joined_as_passes(layer, sources) and gaps[0] not in (0, len(sources) - 1):
        yield Finding(
            f"the inputs are written with write_gap {gaps[0]}, {len(sources)} passes need "
            f"{len(sources) - 1}",
            "in_sequences",
            f"Use write_gap: {len(sources) - 1} in the layers that are joined.",
            unsound=right is False,
        )


def _equal_gaps(sources: tuple[MappedLayer, ...], needed: int) -> str:
    """Say which operands lack the gap."""
    names = " and ".join(str(source) for source in sources if source.write_gap != needed)
    return f"Use write_gap: {needed} in {names}."


def _joined_as_passes(layer: MappedLayer, sources: tuple[MappedLayer, ...]) -> bool:
    """Whether inputs are joined by channel on the same processors, one pass behind the other."""
    if layer.combination or len(sources) < 2 or len({s.out_dim for s in sources}) > 1:
        return False
    return any(a.output_processors & b.output_processors for a, b in pairwise(sources))


@constraint("W363", Kind.HARDWARE, Severity.WARNING)
def gaps_of_the_inputs_are_skipped(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Words that earlier layers left free are read as data unless they are skipped."""
    sources = _sources(layer, network)
    gaps = {s.write_gap for s in sources} or {0}  # the network's input is loaded without gaps
    mixed = sources and len(sources) != len(layer.sources or sources)
    if mixed or len(gaps) != 1:
        return
    right = is_read_right(layer, sources, network.order)
    if right:
        return
    gap = min(gaps)
    expected = gap
    if layer.combination and layer.sources is not None:
        expected = gap // layer.operands
    elif gap and _joined_as_passes(layer, sources):
        expected = (gap + 1) // len(sources) - 1
    if layer.read_gap == expected:
        return
    if not sources:
        origin = "the network's input is loaded without gaps"
    elif len(sources) == 1:
        origin = f"{sources[0]} writes with write_gap {gap}"
    else:
        origin = f"the inputs are written with write_gap {gap}"
    words = layer.in_dim[0] * layer.in_dim[1] * layer.operands * layer.in_passes
    yield Finding(
        f"'read_gap' is {layer.read_gap}, {origin}",
        ("read_gap", "in_sequences", "processors"),
        _other_gap(layer, sources, network, expected),
        unsound=words > 1 if len(sources) < 2 else right is False,
    )


@constraint("W307", Kind.HARDWARE, Severity.WARNING)
def wide_layer_feeds_another(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Layers read bytes; 32-bit output can only be read by the core."""
    read = (source.index for x in network.executed() for source in _sources(x, network))
    if layer.output_width == 32 and layer.index in read:
        yield Finding(
            "32-bit output of a layer that feeds another",
            "output_width",
            "Remove the key.",
            unsound=True,
        )


_LEAVE_OUT = (
    "Leave out processors, offsets and gaps of all layers: the loader then chooses them, and "
    "copies what is read both with and without gaps."
)


def _only_reader(layer: AnyLayer, sources: tuple[AnyLayer, ...], network: MappedNetwork) -> bool:
    """Whether nobody else reads what a layer reads."""
    read = {source.index for source in sources}
    others = (x for x in map(network.layer, network.order) if x.index != layer.index)
    return not any(s.index in read for x in others for s in _sources(x, network))


def _other_gap(
    layer: MappedLayer, sources: tuple[MappedLayer, ...], network: MappedNetwork, gap: int
) -> str:
    """Say which gap to use: that of the layer if the chip has it, else that of its sources."""
    if network.chip.has_read_gap and (not gap or layer.in_passes == 1):
        return f"Use read_gap: {gap}."
    if not _only_reader(layer, sources, network):
        return _LEAVE_OUT
    taking_turns = layer.combination or _joined_as_passes(layer, sources)
    names = " and ".join(map(str, sources))
    return f"Use write_gap: {len(sources) - 1 if taking_turns else 0} in {names}."


@constraint("W364", Kind.HARDWARE, Severity.WARNING)
def inputs_come_from_the_processors_read(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """A processor reads its own memory; data that no source wrote there is old data."""
    sources = _sources(layer, network)
    if not sources or len(sources) != len(layer.sources or sources):
        return
    written = 0
    for source in sources:
        written |= source.output_processors
    missing = layer.processors & ~written
    if missing:
        yield Finding(
            f"'processors' {mask_text(layer.processors)} reads {mask_text(missing)}, "
            "which no input is written to",
            "processors",
            f"The inputs are written to {mask_text(written)}.",
            unsound=True,
        )


@constraint("W365", Kind.HARDWARE, Severity.WARNING)
def concatenated_inputs_are_apart(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Inputs that are concatenated have separate processors, in ascending order."""
    sources = _sources(layer, network)
    single = all(s.out_passes == 1 for s in sources)
    if layer.combination or len(sources) < 2 or layer.in_passes > 1 or not single:
        return
    if len({s.out_dim for s in sources}) > 1:
        return
    right = is_read_right(layer, sources, network.order)
    if right:
        return
    for before, after in pairwise(sources):
        both = before.output_processors & after.output_processors
        if both:
            yield Finding(
                f"{before} and {after} both write to the processors {mask_text(both)}",
                "in_sequences",
                "Give the layers that are joined output_processors of their own.",
                unsound=right is False,
            )
        elif lowest_bit(after.output_processors) < lowest_bit(before.output_processors):
            yield Finding(
                f"{after} stands on lower processors than {before}, but is joined behind it",
                "in_sequences",
                "List the inputs in the order of their processors.",
                unsound=right is False,
            )


@constraint("W366", Kind.HARDWARE, Severity.WARNING)
def inputs_are_where_they_are_read(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Data is read from in_offset on, operand i from i words after that."""
    if not _reads_elsewhere(layer, network):
        wrong = is_read_right(layer, _sources(layer, network), network.order) is False
        for i, read, written, source, remedy in _inputs_elsewhere(layer, network):
            yield Finding(
                f"input {i} is read from 0x{read:x}, {source} writes to 0x{written:x}",
                ("in_offset", "in_sequences"),
                remedy,
                unsound=wrong,
            )


@constraint("E389", Kind.HARDWARE, needs=Fact.SIZES)
def inputs_are_read_where_they_are_written(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """A layer that reads an output elsewhere than it was written reads old data."""
    if _reads_elsewhere(layer, network):
        for i, read, written, source, remedy in _inputs_elsewhere(layer, network):
            yield Finding(
                f"input {i} is read from 0x{read:x}, {source} writes to 0x{written:x}",
                ("in_offset", "in_sequences"),
                remedy,
            )


def _reads_elsewhere(layer: MappedLayer, network: MappedNetwork) -> bool:
    """Whether a layer certainly does not find its inputs."""
    sources = _sources(layer, network)
    if len(sources) != 1:
        return False
    (source,) = sources
    rows, columns = source.out_dim
    left = rows - sum(layer.in_crop), columns
    whole = (source.out_channels, left, source.output_processors)
    return whole == (layer.in_channels, layer.in_dim, layer.processors) and not (
        layer.combination or layer.channel_skip
    )


def _inputs_elsewhere(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[tuple[int, int, int, MappedLayer, str]]:
    """Yield number, where it is read and written, layer and remedy of inputs elsewhere."""
    sources = _sources(layer, network)
    if layer.sources is None or layer.streaming or not sources:
        return
    if any(layer.in_crop) and not _reads_elsewhere(layer, network):
        return
    if len(sources) != len(layer.sources) or len({s.out_dim for s in sources}) > 1:
        return
    if is_read_right(layer, sources, network.order):
        return
    for i, source in enumerate(sources):
        step = WORD_BYTES * i if layer.combination else 0
        expected = layer.in_offset + step
        first = source.out_offset + _cropped_bytes(layer, source)
        beyond = source.out_offset >= network.chip.instance_bytes  # another complaint
        if first not in (expected, layer.in_offset + WORD_BYTES * i) and not beyond:
            remedy = (
                f"Use in_offset: 0x{first:x}."
                if len(sources) == 1
                else _other_offsets(layer, sources, network)
            )
            yield i, expected, first, source, remedy


def _cropped_bytes(layer: MappedLayer, source: MappedLayer) -> int:
    """Return the bytes in front of the rows that a layer reads of a source, in each instance."""
    words = layer.in_crop[0] * source.out_dim[1] * source.out_passes * (source.write_gap + 1)
    return WORD_BYTES * words


def _other_offsets(
    layer: MappedLayer, sources: tuple[MappedLayer, ...], network: MappedNetwork
) -> str:
    """Say where the sources of a layer have to stand: operands, or passes, word by word in turn."""
    if not _only_reader(layer, sources, network):
        return _LEAVE_OUT
    taking_turns = layer.combination or _joined_as_passes(layer, sources)
    step = WORD_BYTES * (layer.read_gap + 1) if taking_turns else 0
    places = (
        f"out_offset: 0x{layer.in_offset + step * i:x} in {source}"
        for i, source in enumerate(sources)
    )
    return f"Use {' and '.join(places)}."


@constraint("W383", Kind.HARDWARE, Severity.WARNING)
def joined_inputs_stand_where_they_are_read(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """Each channel of a concatenation is read at one place, and each word has one writer.

    A word of an instance is written as a whole: lanes that the writer does not use become zero.
    """
    sources = _sources(layer, network)
    tests = (
        gaps_interleave_the_inputs,
        gaps_of_the_inputs_are_skipped,
        inputs_come_from_the_processors_read,
        concatenated_inputs_are_apart,
        _inputs_elsewhere,
    )
    if is_read_right(layer, sources, network.order) is not False:
        return
    if any(finding for test in tests for finding in test(layer, network)):
        return
    names = " and ".join(map(str, sources))
    what = "combined" if layer.combination else "joined"
    yield Finding(
        f"{names} are {what}, but do not stand where they are read, or share words of an instance; "
        "the chip is not expected to compute the known answer",
        ("in_sequences", "processors"),
        "Let each of them begin at a multiple of 4 behind the one before it, with the same offset; "
        "in several passes at the word of its pass, with a write_gap of the passes less one.",
        unsound=True,
    )


@constraint("W367", Kind.NETWORK, Severity.WARNING)
def image_behind_a_series(layer: Layer, network: Network) -> Iterator[Finding]:
    """A series has one column, so a two-dimensional kernel reads only padding beside it."""
    previous = network.predecessor(layer)
    if (
        previous is not None
        and previous.operator.one_dimensional
        and layer.operator.two_dimensional
        and layer.in_dim[1] == 1
        and "in_dim" not in layer.places
    ):
        yield Finding(
            f"{layer.operator} on data of one column behind a Conv1d",
            ("in_dim", "op"),
            "State in_dim to fold the series into an image.",
        )


@constraint("E392", Kind.NETWORK, needs=Fact.SIZES)
def output_has_one_scale(layer: Layer, network: Network) -> Iterator[Finding]:
    """Outputs that are scaled by different powers of two cannot be delivered together."""
    if layer.has_weights or layer.index not in {output.index for output in network.outputs()}:
        return
    scales = final_scales(layer.index, network)
    if len(set(scales.values())) > 1:
        named = ", ".join(f"{network.layer(i)} 2^{scale}" for i, scale in scales.items())
        yield Finding(
            f"its data are to be multiplied by different final scales: {named}",
            "in_sequences",
            "Train the network again: layers whose results meet get one range of activations.",
        )
