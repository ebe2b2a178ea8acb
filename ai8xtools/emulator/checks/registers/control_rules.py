"""What a layer implies for its control bits.

Source: docs/hardware/registers.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts, zero
from ai8xtools.emulator.decode.weights import columns_of
from device.chip import PROCESSORS_PER_INSTANCE
from device.masks import mask_of


def fixed(facts: LayerFacts) -> Iterator[Expectation]:
    """Bits that every layer has."""
    yield Expectation("LCTL", "always", (1,), "set in every layer")
    shared = (1, 0) if _leaves_lanes_out(facts) else (1,)
    reason = "outputs go to the memories of all groups"
    yield Expectation("LCTL", "shared_output", shared, reason)
    if not facts.is_start and not _may_be_planar(facts):
        yield from zero("LCTL", "several channels share a data memory instance", "chw")


def _may_be_planar(facts: LayerFacts) -> bool:
    """Whether each processor has a data memory instance for itself."""
    instances = [p // PROCESSORS_PER_INSTANCE for p in facts.config.processors]
    return len(set(instances)) == len(instances)


def _leaves_lanes_out(facts: LayerFacts) -> bool:
    """Whether some lanes between outputs have no kernels."""
    config, written = facts.config, facts.memory.kernels_written
    if not config.kind.sums_channels or config.kernels.bypass:
        return False
    columns = written[list(config.processors), columns_of(config)]
    return not bool(columns.any(axis=0).all())


def read_ahead(facts: LayerFacts) -> Iterator[Expectation]:
    """Reading ahead, and the order of calculation that belongs to it."""
    control = facts.read("LCTL")
    if "read_ahead" not in control:
        yield from zero("POST", f"{facts.chip.name} does not read ahead", "tcalc")
        return
    passes, tcalc = facts.config.input.passes, facts.field("POST", "tcalc")
    if not control["read_ahead"]:
        yield from zero("POST", "the layer does not read ahead", "tcalc")
        count = 0
    else:
        count = (passes - 1) // 4 if tcalc else passes - 1
    register = facts.chip.layer_registers["LCTL"]
    word = register.pack(shift_count=count)
    word = register.by_name["depthwise_broadcast"].set(
        word, int(facts.config.broadcast or register.unpack(word)["depthwise_broadcast"])
    )
    reason = f"{passes} passes, {'with' if control['read_ahead'] else 'without'} reading ahead"
    yield Expectation("LCTL", "shift_count", (register.unpack(word)["shift_count"],), reason)


def kind(facts: LayerFacts) -> Iterator[Expectation]:
    """The kind of the layer, in all bits that encode it."""
    config, chip, post = facts.config, facts.chip, facts.read("POST")
    passes_through = not config.kind.has_kernels
    name = config.kind.value
    yield Expectation("POST", "time_slots", (int(not config.kind.sums_channels),), name)
    alone = int(passes_through and config.input.operands == 1)
    yield Expectation("POST", "one_by_one", (alone,), name)
    if not chip.has_depthwise:
        yield from zero("POST", f"{chip.name} has no depth-wise convolution", "depthwise")
    if not chip.has_extended_modes:
        yield from zero("POST", f"{chip.name} computes one output at a time", "calcx4")
    if not post["flatten"]:
        yield from zero("POST", "the layer is not flattened", "flatten_high")
    elif not post["flatten_high"]:
        yield from zero("POST", "it has less than 16 passes", "flatten")
    if passes_through:
        fields = ("shift", "shift_right", "absolute", "transposed", "flatten")
        yield from zero("POST", "pass-through changes no value", *fields)
        yield from zero("LCTL", "pass-through changes no value", "relu", "wide")
    elif facts.read("LCTL")["relu"]:
        yield from zero("POST", "activation ReLU", "absolute")
    if not post["shift"]:
        yield from zero("POST", "the shift is 0", "shift_right")


def next_layer(facts: LayerFacts) -> Iterator[Expectation]:
    """Where execution continues."""
    if not facts.chip.has_next_layer:
        return
    following = facts.read("NXTLYR")
    if not following["jump"]:
        yield from zero("NXTLYR", "there is no jump", "layer")
    elif following["stop"]:
        yield from zero("NXTLYR", "there is a jump", "stop")


def kernel_masks(facts: LayerFacts, group: int) -> Iterator[Expectation]:
    """Processors that read kernels; where they do not agree, nobody knows which are wrong."""
    config = facts.config
    without = not config.kind.has_kernels or config.kernels.bypass
    mask = 0 if without else config.enabled[group]
    reason = "the layer has no kernels" if without else "the processors that take part"
    yield Expectation("ENA", "kernels", (mask,), reason)
    kernels = config.with_kernels[group]
    if kernels and not without:
        yield Expectation("ENA", "processors", (kernels,), "the processors that read kernels")


def sources(facts: LayerFacts, group: int) -> Iterator[Expectation]:
    """Groups that contribute to the sums."""
    config = facts.config
    if config.kind.sums_channels and not facts.is_quad and group == config.base_group:
        others = [other for other in config.used_groups if other != group]
        names = ", ".join(map(str, others)) or "none"
        yield Expectation("LCTL", "sources", (mask_of(others),), f"other groups used: {names}")
    else:
        yield from zero("LCTL", "no sums are made in this group", "sources")


def bias(facts: LayerFacts, group: int) -> Iterator[Expectation]:
    """Groups that add the bias."""
    config, offsets = facts.config, facts.config.output.bias_offsets
    biased = {other: offset for other, offset in enumerate(offsets) if offset is not None}
    if group not in biased:
        yield from zero("POST", "the group adds no bias", "bias_offset")
    if not config.kind.has_kernels:
        yield from zero("POST", "pass-through changes no value", "bias")
    elif config.kind.sums_channels and not facts.is_quad:
        if len(biased) > 1 and group in biased:
            owner = max(biased, key=biased.__getitem__)
            if group != owner:
                yield from zero("POST", f"group {owner} holds the bias", "bias")
    elif biased and group in config.groups:
        others = [other for other in biased if other != group]
        if bool(others) != (group in biased) and len(config.groups) > 1:
            yield Expectation("POST", "bias", (int(bool(others)),), "as in the other groups")


RULES = (fixed, read_ahead, kind, next_layer)
GROUP_RULES = (kernel_masks, sources, bias)
