"""Words outside the layers: power, initialization, start and interrupt.

Source: spec/registers.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from device import Chip
from device.chip import AON_CONTROL, GROUPS, PROCESSORS
from synthesis.encode.numbering import Numbering
from synthesis.encode.writer import RegisterWriter
from synthesis.network import Network
from synthesis.options import EncodeOptions
from synthesis.program import Block, Check, Clear, Power, Step, TimerStart, Wait, Write

_SRAM_CONTROL = 0x40E
_REGISTERS_CLEARED = 0x2000000
_INTERRUPT_BITS = 1 << 12 | 1

# Start word, bits that must be set when done, bits that mean an error (section 5.2 step 5).
_MEMORY_TESTS = {
    "MAX78000": (
        ("data", 0x1, 0x8040000, 0x4000),
        ("kernels", 0x4, 0x8080000, 0x8000),
        ("line buffers", 0x10, 0x8100000, 0x10000),
        ("biases", 0x40, 0x8200000, 0x20000),
    ),
    "MAX78002": (
        ("data", 0x1001, 0x40000, 0x4000),
        ("kernels", 0x2004, 0x80000, 0x8000),
        ("line buffers", 0x3010, 0x100000, 0x10000),
        ("biases", 0x1C40, 0x200000, 0x20000),
    ),
}


def power(network: Network, options: EncodeOptions) -> Power:
    """Return which groups are powered and how they are clocked."""
    chip = network.chip
    divider = options.clock_divider or 1
    delay = options.switch_delay_ms
    return Power(
        groups_mask=sum(1 << g for g in network.groups_used),
        switch_delay_ms=chip.default_switch_delay_ms if delay is None else delay,
        clock_source="PCLK",
        clock_divider=divider,
        start_divider=None,
        clock_mhz=chip.apb_clock_mhz / divider,
    )


def init_blocks(
    network: Network, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the steps that bring the state machine to a known state."""
    chip = network.chip
    groups = network.groups_used
    mode = {"clock_enable": 1, "ready_select": options.ready_select}
    if chip.clears_registers:
        writes = (writer.control(g, "CTL", mode, "Enable clock") for g in groups)
        yield Block("", tuple(writes))
    yield Block(
        "", (writer.word(AON_CONTROL, options.ready_select_aon, "AON control", forced=True),)
    )
    if chip.clears_registers:
        yield from _clear_registers(network, writer)
    for group in groups:
        yield Block(
            f"Quadrant {group}", tuple(_init_group(chip, group, writer, numbering, options))
        )
    if options.zero_sram:
        yield from _memory_tests(chip, writer)


def _clear_registers(network: Network, writer: RegisterWriter) -> Iterator[Block]:
    """MAX78002: let the self test clear registers and bias memory of every group."""
    biased = any(layer.bias is not None for layer in network.layers)
    groups = network.groups_used
    tests = [writer.control(g, "SRAM_TEST", {"value": 0}, "Clear registers") for g in groups]
    start = 0x1C80 if biased else 0x1880
    steps: list[Step] = [writer.control(g, "SRAM", {"value": _SRAM_CONTROL}) for g in groups]
    steps += [writer.control(g, "SRAM_TEST", {"value": start}, "Clear registers") for g in groups]
    steps += [Wait(test.address, _REGISTERS_CLEARED) for test in tests]
    steps += [
        writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True) for g in groups
    ]
    yield Block("", tuple(steps))


def _init_group(
    chip: Chip, group: int, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Step]:
    if options.init_tram:
        per_group = PROCESSORS // GROUPS
        for processor in range(group * per_group, (group + 1) * per_group):
            yield Clear(
                options.apb_base + chip.tram_address(processor),
                chip.tram_words,
                f"Line buffer of processor {processor}",
            )
    mode = {
        "clock_enable": 1,
        "ready_select": options.ready_select,
        "express": int(options.express),
    }
    yield writer.control(group, "CTL", mode, "Stop SM")
    if not chip.clears_registers:
        yield writer.control(group, "SRAM", {"value": _SRAM_CONTROL})
    yield writer.control(group, "LCNT_MAX", {"last": numbering.last, "first": numbering.first})


def _memory_tests(chip: Chip, writer: RegisterWriter) -> Iterator[Block]:
    """Test and clear each memory of all groups, used or not, one memory after the other."""
    for name, start, done, failed in _MEMORY_TESTS[chip.name]:
        starts = [
            writer.control(g, "SRAM_TEST", {"value": start}, f"Test and clear {name}")
            for g in range(GROUPS)
        ]
        steps: list[Step] = list(starts)
        steps += [Wait(write.address, done) for write in starts]
        steps += [Check(write.address, failed) for write in starts]
        steps += [
            writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True)
            for g in range(GROUPS)
        ]
        yield Block("", tuple(steps))


def start_blocks(
    network: Network, writer: RegisterWriter, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the enables of all groups and the word that starts the network."""
    master = network.groups_used[0]
    mode = {
        "clock_enable": 1,
        "ready_select": options.ready_select,
        "external_ready": int(options.external_ready),
        "average_rounding": int(options.average_rounding),
        "express": int(options.express),
        "simple_1bit": int(options.simple_1bit),
        "binary": int(any(layer.weight_bits < 0 for layer in network.layers)),
    }
    steps: list[Step] = [
        writer.control(
            group,
            "CTL",
            {**mode, "master": master, "external_sync": 1, "enable": int(group != master)},
            f"Enable quadrant {group}",
        )
        for group in network.groups_used
    ]
    if options.powerdown:
        unused = sum(1 << 12 + g for g in range(GROUPS) if g not in network.groups_used)
        steps.append(
            writer.word(
                AON_CONTROL, unused | options.ready_select_aon, "Power down unused quadrants"
            )
        )
    steps.append(TimerStart())
    steps.append(
        writer.control(master, "CTL", {**mode, "enable": 1}, f"Master enable quadrant {master}")
    )
    yield Block("", tuple(steps))


def interrupt_mask() -> int:
    """Return the control bits that the interrupt handler clears: done and enable."""
    return _INTERRUPT_BITS


def unused_blocks(network: Network, writer: RegisterWriter, last_layer: int) -> Iterator[Block]:
    """Yield the zeros of `--zero-unused`.

    The reference tool addresses the last configured layer here and so destroys its registers; the
    words are reproduced.
    """
    registers = [r for r in writer.chip.layer_registers.values() if r.number < 0x1000]
    for group in network.groups_used:
        writes = []
        for number in range(max(r.number for r in registers) + 1):
            named = next((r.name for r in registers if r.number == number), None)
            address = writer.apb_base + writer.chip.layer_address(group, last_layer, "RCNT")
            offset = number - writer.chip.layer_registers["RCNT"].number
            writes.append(
                Write(
                    address + offset * writer.chip.layer_register_stride,
                    0,
                    f"Zero unused {named or 'register'}",
                    f"L{last_layer} G{group} R{number:02d}",
                )
            )
        yield Block("", tuple(writes))
