"""Constraints of processors: who can read and write which channel."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.check.constraint import (
    Covered,
    Finding,
    Kind,
    Of,
    constraint,
    layer_constraint,
)
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from device import Chip
from device.chip import PROCESSORS_PER_INSTANCE
from device.masks import group_slice, instances, lowest_bit


def mask_text(mask: int) -> str:
    """Return a processor mask as descriptions write it: four groups of four hex digits."""
    digits = f"{mask:016x}"
    return "0x" + ".".join(digits[i : i + 4] for i in range(0, 16, 4))


def _suggestion(mask: int, count: int) -> str:
    """Name a mask with the right number of processors that begins at the same instance."""
    first = lowest_bit(mask) // PROCESSORS_PER_INSTANCE * PROCESSORS_PER_INSTANCE
    first = min(first, 64 - count)
    return mask_text((1 << count) - 1 << first)


@constraint(
    "E320",
    Kind.HARDWARE,
    blocks=Fact.PLACES,
    needs=Fact.SIZES,
    covers=Covered("E321", Of.PREVIOUS, unless="output_processors"),
    without_sizes="processors",
)
def processors_match_channels(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Each processor handles one channel of a pass, so their numbers must be equal."""
    processors = network.input_processors if layer is network.first else layer.processors
    for mismatch in other_processors_than_channels(layer, processors):
        yield Finding(*mismatch)


def other_processors_than_channels(
    layer: MappedLayer, processors: int
) -> Iterator[tuple[str, str, str]]:
    """Yield message, key and remedy if a layer reads other than its channels."""
    count, needed = processors.bit_count(), layer.in_share
    if count != needed:
        passes = f" in {layer.in_passes} passes" if layer.in_passes > 1 else ""
        remedy = f"For example {_suggestion(processors, needed)}."
        if layer.channels_first:
            spread = sum(1 << PROCESSORS_PER_INSTANCE * i for i in range(min(needed, 16)))
            remedy = f"For example {mask_text(spread)}."
        yield (
            f"'processors' {mask_text(processors)} names {count}, "
            f"{layer.in_channels} input channels{passes} need {needed}",
            "processors",
            remedy,
        )


@constraint(
    "E321",
    Kind.HARDWARE,
    blocks=Fact.PLACES,
    needs=Fact.SIZES,
    without_sizes="output_processors",
)
def output_processors_match_channels(
    layer: MappedLayer, network: MappedNetwork
) -> Iterator[Finding]:
    """Each output channel of a pass goes to one processor of the next layer."""
    count, needed = layer.output_processors.bit_count(), layer.out_share
    if count == needed:
        return
    passes = f" in {layer.out_passes} passes" if layer.out_passes > 1 else ""
    source = "'output_processors'"
    if layer is network.final and network.layout.has_output_map:
        source = "'output_map'"
    if "output_processors" not in layer.places and layer is not network.final:
        source = f"the next layer's 'processors' (line {_next_line(layer, network)})"
    yield Finding(
        f"{source} {mask_text(layer.output_processors)} names {count}, "
        f"{layer.out_channels} output channels{passes} need {needed}",
        "output_processors",
        f"For example {_suggestion(layer.output_processors, needed)}.",
    )


def _next_line(layer: MappedLayer, network: MappedNetwork) -> int | None:
    following = network.following(layer)
    return following.place_of("processors").line if following else None


@constraint("E322", Kind.HARDWARE)
def planar_input_is_first(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Layers write interleaved data, so only the network's input can be planar."""
    if layer.channels_first and layer is not network.first:
        yield Finding("'data_format' is CHW on a later layer", "data_format", "Remove the key.")


@layer_constraint("E323", Kind.HARDWARE, blocks=Fact.PLACES)
def planar_processors_are_spread(layer: MappedLayer, _: Chip) -> Iterator[Finding]:
    """A word of planar data belongs to one channel, so each memory instance feeds one processor."""
    if not layer.channels_first:
        return
    crowded = [
        i
        for i in instances(layer.processors)
        if (layer.processors >> PROCESSORS_PER_INSTANCE * i & 0xF).bit_count() > 1
    ]
    if crowded:
        first = crowded[0] * PROCESSORS_PER_INSTANCE
        yield Finding(
            f"'processors' {mask_text(layer.processors)} has several of "
            f"{first} to {first + 3} with CHW data, one of each four is possible",
            "processors",
            "Use every fourth processor (0x1111...), or data_format: HWC.",
        )
    if layer.in_passes > 1 or layer.operands > 1:
        yield Finding(
            f"CHW data of {layer.in_channels} channels, the limit is one pass and one operand",
            "data_format",
        )


@constraint("E324", Kind.HARDWARE, blocks=Fact.PLACES)
def first_group_is_used(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Group 0 starts the others, so some layer must use it."""
    if layer is network.first and 0 not in network.groups_used:
        yield Finding(
            "no layer uses processors 0 to 15",
            "processors",
            "Move a layer's processors to group 0.",
        )


@constraint(
    "E325",
    Kind.HARDWARE,
    blocks=Fact.PLACES,
    waived_by="--ignore-bias-groups",
)
def bias_group_is_used(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """A bias can only be added in a group that the network uses."""
    used = ", ".join(map(str, network.groups_used))
    lost = "; a bias that stands there is not added" if layer.bias is not None else ""
    for group in layer.bias_groups or ():
        if group not in network.groups_used:
            yield Finding(
                f"'bias_group' names group {group}, used are {used}{lost}",
                "bias_group",
                f"Use one of {used}, or leave the key out.",
            )


@constraint("E326", Kind.HARDWARE, blocks=Fact.PLACES)
def passthrough_outputs_are_packed(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """Pass-through layers keep the order of their data inside a group, without gaps."""
    if layer.has_weights:
        return
    for group in network.groups_used:
        outputs = group_slice(layer.output_processors, group)
        count = group_slice(layer.processors, group).bit_count()
        packed = outputs >> lowest_bit(outputs) if outputs else 0
        if packed != (1 << count) - 1:
            yield Finding(
                f"in group {group}, {count} channels pass through, but 'output_processors' "
                f"{mask_text(layer.output_processors)} has no run of {count} there"
                if count
                else f"no channel passes through group {group}, but 'output_processors' "
                f"{mask_text(layer.output_processors)} names processors there",
                ("output_processors", "processors"),
                "Give the next layer the same processors.",
            )


@layer_constraint("E327", Kind.HARDWARE, blocks=Fact.PLACES)
def channel_limits(layer: MappedLayer, chip: Chip) -> Iterator[Finding]:
    """The pass counters end at 16 passes of 64 channels."""
    limit = chip.max_channels
    for count, what, key in (
        (layer.in_channels, "input", "in_channels"),
        (layer.out_channels, "output", "out_channels"),
    ):
        if count > limit:
            yield Finding(f"{count} {what} channels, the limit is {limit}", (key, "op"))
