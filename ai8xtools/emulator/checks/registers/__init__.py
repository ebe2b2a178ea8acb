"""Registers of a layer: in each group that it uses, and in agreement with each other.

What follows from other registers of the layer is compared with what stands there; all else must at
least be the same in all groups that the layer uses.

Source: docs/hardware/execution.md, "What every group needs".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ai8xtools.emulator.checks.finding import LayerFinding, Severity, WrongField, field_finding
from ai8xtools.emulator.checks.registers import (
    control_rules,
    kernel_rules,
    pointer_rules,
    rings,
    shape_rules,
    stream_rules,
    stream_values,
)
from ai8xtools.emulator.checks.registers.facts import Expectation, GroupRule, LayerFacts, Rule
from ai8xtools.emulator.checks.registers.groups import (
    OWN_FIELDS,
    copies,
    deviations,
    differences,
    registers_of,
)
from ai8xtools.emulator.checks.registers.images import fits_better
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.memory import Memory

UNKNOWN_BITS = "bits without meaning"
"""In place of a field: bits of a register that belong to none."""

RULES: tuple[Rule, ...] = (
    *shape_rules.RULES,
    *pointer_rules.RULES,
    *control_rules.RULES,
    *kernel_rules.RULES,
    *stream_rules.RULES,
    *stream_values.RULES,
)
GROUP_RULES: tuple[GroupRule, ...] = (*pointer_rules.GROUP_RULES, *control_rules.GROUP_RULES)


def check_registers(memory: Memory, layers: Sequence[LayerConfig]) -> Iterator[LayerFinding]:
    """Yield what is wrong with the registers of layers that are executed in this order."""
    for facts in layer_facts(memory, layers):
        yield from check_layer(facts)


def layer_facts(memory: Memory, layers: Sequence[LayerConfig]) -> Iterator[LayerFacts]:
    """Yield what is known of each of the layers that are executed in this order."""
    first = memory.control_register("LCNT_MAX")["first"]
    for number, config in enumerate(layers):
        before, behind = tuple(layers[:number]), tuple(layers[number + 1 :])
        yield LayerFacts(memory, config, before, behind, is_start=config.layer == first)


def check_layer(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Yield what is wrong with the registers of a layer, once for each field and group."""
    findings: dict[tuple[int, str, str], LayerFinding] = {}
    for finding in (*_unknown_bits(facts), *_implied(facts), *_differing(facts)):
        assert finding.wrong is not None
        wrong = finding.wrong
        findings.setdefault((wrong.group, wrong.register, wrong.field), finding)
    yield from findings.values()
    for wrong in deviations(facts):
        severity = Severity.ERROR if fits_better(facts, wrong) else Severity.NOTE
        yield _finding(facts, wrong, "as in groups that the layer does not use", severity)
    for expectation in stream_values.exact_values(facts):
        for group in facts.config.used_groups:
            if (group, expectation.register, expectation.field) not in findings:
                yield from _unexpected(facts, expectation, group, Severity.NOTE)
    yield from _frame_sizes(facts)
    yield from rings.shared_words(facts)


def _frame_sizes(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Yield groups that expect another number of words from their FIFO than the input has."""
    allowed = stream_values.frame_sizes(facts)
    for group in facts.config.groups if allowed else ():
        words = facts.memory.control_register("IFRM", group)["size"]
        if words not in allowed:
            address = facts.memory.addresses.apb_base
            address += facts.chip.control_address(group, "IFRM")
            text = (
                f"group {group}, IFRM (0x{address:08x}) size: expected {allowed[0]}, found {words} "
                "(words of the input in each FIFO)"
            )
            yield LayerFinding(facts.config.layer, text, address=address, severity=Severity.ERROR)


def _unknown_bits(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Bits that belong to no field."""
    for name, register in registers_of(facts).items():
        for group in facts.config.used_groups:
            word = facts.memory.register_word(facts.config.layer, name, group)
            field_bits = register.pack(**register.unpack(word))
            if word != field_bits:
                wrong = WrongField(group, name, UNKNOWN_BITS, 0, word - field_bits)
                yield _finding(facts, wrong, "no field has these bits")


def _implied(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Fields that are not as other registers imply."""
    shared = [expectation for rule in RULES for expectation in rule(facts)]
    for group in facts.config.used_groups:
        own = [expectation for rule in GROUP_RULES for expectation in rule(facts, group)]
        for expectation in (*shared, *own):
            yield from _unexpected(facts, expectation, group)


def _unexpected(
    facts: LayerFacts,
    expectation: Expectation,
    group: int,
    severity: Severity = Severity.ERROR,
) -> Iterator[LayerFinding]:
    name, field = expectation.register, expectation.field
    value = facts.read(name, group).get(field, 0)
    if value not in expectation.allowed:
        wrong = WrongField(group, name, field, _likeliest(facts, expectation), value)
        yield _finding(facts, wrong, expectation.reason, severity)


def _likeliest(facts: LayerFacts, expectation: Expectation) -> int:
    """Return the allowed value that most groups have, else the first."""
    groups = (*facts.config.used_groups, *copies(facts))
    values = [facts.read(expectation.register, group).get(expectation.field) for group in groups]
    counts = Counter(value for value in values if value in expectation.allowed)
    if counts and (expectation.register, expectation.field) not in OWN_FIELDS:
        return int(counts.most_common(1)[0][0] or 0)
    return next(iter(expectation.allowed))


def _differing(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Fields that differ between the groups of the layer."""
    for wrong in differences(facts):
        groups = [g for g in facts.config.used_groups if g != wrong.group]
        names = ", ".join(map(str, groups))
        reason = f"as in group{'s' if len(groups) > 1 else ''} {names}"
        yield _finding(facts, wrong, reason)


def _finding(
    facts: LayerFacts, wrong: WrongField, reason: str, severity: Severity = Severity.ERROR
) -> LayerFinding:
    return field_finding(facts.memory, facts.config.layer, wrong, reason, severity)
