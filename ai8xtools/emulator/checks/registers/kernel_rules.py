"""What a layer implies for the numbers of its kernels.

Source: docs/hardware/memory.md, "Kernel counts".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts, zero
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS, PROCESSORS_PER_INSTANCE

_UNIT = 8  # kernel addresses count eighths of an 8-bit kernel


def outputs(facts: LayerFacts) -> Iterator[Expectation]:
    """Outputs of a pass count in weight bits."""
    unit = _unit(facts)
    last = facts.field("LCTL2", "last_output")
    if last % unit or last >= PROCESSORS * unit:
        allowed = range(last // unit * unit % (PROCESSORS * unit), PROCESSORS * unit, unit)
        yield Expectation("LCTL2", "last_output", allowed, f"it counts in steps of {unit}")


def first_kernel(facts: LayerFacts) -> Iterator[Expectation]:
    """Kernels begin at a column."""
    config, kernels = facts.config, facts.config.kernels
    name = "MCNT" if "MCNT" in facts.chip.layer_registers else "MCNT2"
    if not config.kind.has_kernels:
        yield from zero("ONED", "the layer has no kernels", "kernel_remainder")
        if name == "MCNT2":
            yield Expectation(name, "first", (_passes_through(facts),), "of pass-through layers")
        else:
            yield from zero(name, "the layer has no kernels", "first")
        return
    taps = kernels.shape[0] * kernels.shape[1]
    remainder = facts.field("ONED", "kernel_remainder")
    if kernels.first % _UNIT:
        first = kernels.first // _UNIT * _UNIT
        yield Expectation(name, "first", (first,), f"kernels count in steps of {_UNIT}")
    elif not kernels.four_at_once:
        start = kernels.first // _UNIT * taps
        fitting = [r for r in range(taps) if (start + r) % KERNEL_COLUMN_BYTES == 0]
        if remainder not in fitting:
            reason = "kernels begin with a column"
            if fitting:
                yield Expectation("ONED", "kernel_remainder", fitting, reason)
            else:
                yield Expectation(name, "first", (0,), reason)


def last_kernel(facts: LayerFacts) -> Iterator[Expectation]:
    """As many kernels as outputs and passes need."""
    config, kernels = facts.config, facts.config.kernels
    name = "MCNT" if "MCNT" in facts.chip.layer_registers else "MCNT1"
    if not config.kind.has_kernels:
        if name == "MCNT1":
            yield from zero(name, "of pass-through layers", "last")
        else:
            allowed = [_passes_through(facts), 0][: 1 + facts.chip.combines_passes_as_rows]
            yield Expectation(name, "last", allowed, "of pass-through layers")
        return
    unit = _unit(facts)
    counts = _counts(facts)
    lengths = [(count - 1) * unit for count in counts]
    if kernels.four_at_once and facts.is_start:
        lengths = [-(-count * unit // 4) - unit for count in counts]
    allowed = [kernels.first + length for length in lengths]
    total = config.output.slots * config.output.passes
    reason = f"{total} outputs and {config.input.passes} passes have {counts[0]} kernels"
    if len(counts) > 1:
        reason = reason.replace(" have ", " have at most ")
    yield Expectation(name, "last", allowed, reason)


def channels(facts: LayerFacts) -> Iterator[Expectation]:
    """MAX78002: the outputs that are computed."""
    if "OCHAN" not in facts.chip.layer_registers:
        return
    config, kernels = facts.config, facts.config.kernels
    slots = facts.field("ONED", "time_slots")
    if not config.kind.has_kernels:
        allowed, reason = [slots], "time slots"
    elif not config.kind.sums_channels:
        allowed, reason = [(slots + 1) * config.input.passes - 1], "time slots and passes"
    elif kernels.bypass:
        return
    elif kernels.four_at_once:
        allowed = [(count - 1) // 4 for count in _counts(facts)]
        reason = "four outputs at a time"
    else:
        allowed, reason = [kernels.count - 1], f"{kernels.count} kernels"
    yield Expectation("OCHAN", "last", allowed, reason)


def slots(facts: LayerFacts) -> Iterator[Expectation]:
    """Time slots of a pixel."""
    config = facts.config
    used = [len([p for p in config.processors if p // 16 == group]) for group in config.groups]
    words = 4 if config.output.wide else 1
    if not config.kind.has_kernels:
        count = max((n - 1) // PROCESSORS_PER_INSTANCE for n in used)
    elif config.kind.sums_channels:
        count = 0
    elif config.broadcast:
        count = max((min(n - 1, 3) + 1) * words - 1 for n in used)
    else:
        count = max(n * words - 1 for n in used)
    yield Expectation("ONED", "time_slots", (count,), f"{max(used)} processors in a group")


def _unit(facts: LayerFacts) -> int:
    return _UNIT if facts.config.kernels.bypass else facts.config.kernels.bits


def _passes_through(facts: LayerFacts) -> int:
    return (facts.config.output.passes - 1) * _UNIT


def _counts(facts: LayerFacts) -> list[int]:
    """Numbers of kernels of a processor that agree with the outputs, the largest first."""
    config, output = facts.config, facts.config.output
    passes = config.input.passes
    if not config.kind.sums_channels:
        counts = [passes * n for n in range(1, PROCESSORS_PER_INSTANCE + 1)]
    elif config.kernels.bypass:
        counts = list(range(output.slots * output.passes, 0, -1))
    elif output.passes <= 1:
        counts = [output.slots * passes]
    else:
        # The first lane may be in use by another layer, and the last pass may be short
        most = (output.slots + PROCESSORS_PER_INSTANCE - 1) * output.passes
        least = output.slots * output.passes - (PROCESSORS_PER_INSTANCE * output.passes - 1)
        counts = [n * passes for n in range(most, least - 1, -1)]
    return [-(-count // 4) for count in counts] if facts.is_quad else counts


RULES = (outputs, first_kernel, last_kernel, channels, slots)
