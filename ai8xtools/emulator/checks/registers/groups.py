"""Registers of the groups that a layer uses: equal, except for what groups have of their own.

Source: docs/hardware/execution.md, "What every group needs".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ai8xtools.emulator.checks.finding import WrongField
from ai8xtools.emulator.checks.registers.facts import LayerFacts
from device.chip import GROUPS, STREAM_REGISTERS
from device.registers import Register

OWN_FIELDS = {
    ("ENA", "processors"): "each group has processors of its own",
    ("ENA", "kernels"): "they follow from the processors",
    ("LCTL", "sources"): "sums are made in one group",
    ("POST", "bias"): "one group holds the bias; of depth-wise layers, each its own",
    ("POST", "bias_offset"): "biases stand elsewhere in each group",
    ("WPTR_BASE", "pointer"): "pass-through and depth-wise layers write in each group",
}
"""Fields that differ between the groups of a layer in programs that are right."""


def registers_of(facts: LayerFacts) -> dict[str, Register]:
    """Return the registers that the layer has, by name."""
    streams = facts.config.layer < facts.chip.max_streaming_layers
    return {
        name: register
        for name, register in facts.chip.layer_registers.items()
        if streams or name not in STREAM_REGISTERS
    }


def differences(facts: LayerFacts) -> Iterator[WrongField]:
    """Yield the fields in which a used group differs from the others, as most groups have it.

    If the used groups are evenly divided, the groups that the layer does not use decide, then the
    base group.
    """
    used = facts.config.used_groups
    for name, field, values in _shared(facts):
        if len({values[group] for group in used}) == 1:
            continue
        votes = Counter(values[group] for group in used)
        spare = Counter(values[group] for group in copies(facts))
        base = values[facts.config.base_group]
        expected = max(votes, key=lambda value: (votes[value], spare[value], value == base))
        for group in used:
            if values[group] != expected:
                yield WrongField(group, name, field, expected, values[group])


def deviations(facts: LayerFacts) -> Iterator[WrongField]:
    """Yield the fields in which all used groups differ from all copies in other groups.

    These have no effect, but a loader writes the same everywhere.
    """
    used, others = facts.config.used_groups, copies(facts)
    if not others:
        return
    for name, field, values in _shared(facts):
        own, other = ({values[group] for group in groups} for groups in (used, others))
        if len(own) == len(other) == 1 and own != other:
            yield WrongField(used[0], name, field, other.pop(), own.pop())


def copies(facts: LayerFacts) -> tuple[int, ...]:
    """Return the groups that have registers of the layer though it does not use them."""
    return tuple(
        group
        for group in range(GROUPS)
        if group not in facts.config.used_groups and _is_written(facts, group)
    )


def _is_written(facts: LayerFacts, group: int) -> bool:
    return any(any(facts.read(name, group).values()) for name in registers_of(facts))


def _shared(facts: LayerFacts) -> Iterator[tuple[str, str, list[int]]]:
    """Yield register, field and the value in each group of what is the same in all groups."""
    for name, register in registers_of(facts).items():
        words = [facts.read(name, group) for group in range(GROUPS)]
        for field in register.fields:
            own = (name, field.name) in OWN_FIELDS
            if name == "WPTR_BASE" and not facts.config.writes_by_group:
                own = False
            if not own:
                yield name, field.name, [word[field.name] for word in words]
