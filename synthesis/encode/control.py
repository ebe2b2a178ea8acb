"""Words outside the layers: power, initialization, start and interrupt.

Source: spec/registers.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterator

from device import SNOOP_REGISTERS, SNOOP_RESULTS, Chip
from device.chip import (
    AON_CONTROL,
    FAST_FIFO_CONTROL,
    FIFO_CONTROL,
    FIFO_LANES,
    FIFOS,
    GROUPS,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    STREAM_REGISTERS,
)
from synthesis.encode.numbering import Numbering
from synthesis.encode.writer import RegisterWriter
from synthesis.network import InputPort, Network, group_slice
from synthesis.options import EncodeOptions
from synthesis.program import Block, Check, Clear, Power, Step, TimerStart, Wait, Write

_SRAM_CONTROL = 0x40E
_LOADING_DIVIDER = 4
_REGISTERS_CLEARED = 0x2000000
_DONE, _STREAMING, _ENABLE = 1 << 12, 1 << 14, 1
"""Bits of the control register that the interrupt handler clears."""
_FIFO_THRESHOLDS = 0x108
_FIFO_SYNCHRONIZED = 0x800
_FIFO_ENABLE = 1 << 12
_FAST_FIFO_THRESHOLDS = 0xA0


def is_pipelined(chip: Chip, options: EncodeOptions) -> bool:
    """Whether calculations overlap."""
    return chip.has_pipeline and options.pipeline is not False


def power(network: Network, options: EncodeOptions) -> Power:
    """Return which groups are powered and how they are clocked.

    With the PLL and the pipeline of MAX78002 the network loads at a quarter of the speed and runs
    at full speed.
    """
    chip = network.chip
    pll = None if options.pll is False else chip.pll_clock_mhz
    source = pll or chip.apb_clock_mhz
    pipelined = is_pipelined(chip, options)
    divider = options.clock_divider
    if divider is None:
        limit = source if pipelined else chip.max_unpipelined_mhz
        divider = next(d for d in chip.clock_dividers if source <= limit * d)
    balanced = pll is not None and not options.max_speed and options.clock_divider is None
    delay = options.switch_delay_ms
    return Power(
        groups_mask=sum(1 << g for g in network.groups_used),
        switch_delay_ms=chip.default_switch_delay_ms if delay is None else delay,
        clock_source="IPLL" if pll else "PCLK",
        clock_divider=_LOADING_DIVIDER if balanced else divider,
        start_divider=divider if balanced and pipelined else None,
        clock_mhz=source / divider,
    )


def init_blocks(
    network: Network, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the steps that bring the state machine to a known state."""
    chip = network.chip
    groups = network.groups_used
    mode = {
        "clock_enable": 1,
        "ready_select": options.ready_select,
        "pipeline_off": int(chip.has_pipeline and options.pipeline is False),
    }
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
            f"Quadrant {group}", tuple(_init_group(network, group, writer, numbering, options))
        )
    if options.zero_sram:
        yield from _memory_tests(chip, writer)


def _clear_registers(network: Network, writer: RegisterWriter) -> Iterator[Block]:
    """MAX78002: let the self test clear registers and bias memory of every group."""
    groups = network.groups_used
    tests = [writer.control(g, "SRAM_TEST", {"value": 0}, "Clear registers") for g in groups]
    start = 0x1C80 if network.file_has_bias else 0x1880
    steps: list[Step] = [writer.control(g, "SRAM", {"value": _SRAM_CONTROL}) for g in groups]
    steps += [writer.control(g, "SRAM_TEST", {"value": start}, "Clear registers") for g in groups]
    steps += [Wait(test.address, _REGISTERS_CLEARED) for test in tests]
    steps += [
        writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True) for g in groups
    ]
    yield Block("", tuple(steps))


def _init_group(
    network: Network,
    group: int,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
) -> Iterator[Step]:
    chip = network.chip
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
        "fifo": int(network.input_port.is_fifo),
        "pipeline_off": int(chip.has_pipeline and options.pipeline is False),
    }
    yield writer.control(group, "CTL", mode, "Stop SM")
    if not chip.clears_registers:
        yield writer.control(group, "SRAM", {"value": _SRAM_CONTROL})
    yield writer.control(group, "LCNT_MAX", {"last": numbering.last, "first": numbering.first})


def _memory_tests(chip: Chip, writer: RegisterWriter) -> Iterator[Block]:
    """Test and clear each memory of all groups, used or not, one memory after the other."""
    for test in chip.memory_tests:
        starts = [
            writer.control(g, "SRAM_TEST", {"value": test.start}, f"Test and clear {test.memory}")
            for g in range(GROUPS)
        ]
        steps: list[Step] = list(starts)
        steps += [Wait(write.address, test.done) for write in starts]
        steps += [Check(write.address, test.failed) for write in starts]
        steps += [
            writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True)
            for g in range(GROUPS)
        ]
        yield Block("", tuple(steps))


def _mode(network: Network, options: EncodeOptions) -> dict[str, int]:
    """Fields of the control register that all groups share while the network runs."""
    fifo = network.input_port.is_fifo
    pipelined = network.chip.has_pipeline and options.pipeline is not False
    first = network.first
    return {
        "clock_enable": 1,
        "ready_select": 0 if pipelined else options.ready_select,
        "external_ready": int(options.external_ready),
        "pipeline_off": int(network.chip.has_pipeline and options.pipeline is False),
        "stream_chw": int(first.streaming and first.channels_first and network.chip.has_pipeline),
        "one_shot": int(options.one_shot),
        "snoop": int(network.snoop is not None),
        "external_sync": int(fifo),
        "average_rounding": int(options.average_rounding),
        "streaming": int(network.streams),
        "fifo_streaming": int(fifo and network.streams),
        "express": int(options.express),
        "simple_1bit": int(options.simple_1bit),
        "binary": int(any(layer.weight_bits < 0 for layer in network.layers)),
        "fifo_quad": int(network.input_port is InputPort.FAST_FIFO_QUAD),
    }


def _fifo_fields(network: Network, group: int) -> dict[str, int]:
    """Fields of a group that a FIFO feeds; empty for the others."""
    mask = network.input_processors
    if not group_slice(mask, group) & (1 << FIFO_LANES) - 1:
        return {}
    fast = network.input_port.is_fast
    together = fast and (mask == 1 or mask & 0xE != 0)
    return {"fifo": 1, "fast_fifo": int(fast), "fast_fifo_group": int(together)}


def start_blocks(
    network: Network, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the enables of all groups and the word that starts the network."""
    master = network.groups_used[0]
    mode = _mode(network, options)
    fifo = network.input_port.is_fifo
    steps: list[Step] = []
    for group in network.groups_used:
        fields = {**mode, "master": master}
        if options.snoop_loop:
            fields["snoop"] = 1
        else:
            fields |= {"external_sync": 1, "enable": int(group != master)}
        if fifo:
            fields |= {"fifo": 1, **_fifo_fields(network, group)}
        steps.append(writer.control(group, "CTL", fields, f"Enable quadrant {group}"))
    if options.powerdown:
        unused = sum(1 << 12 + g for g in range(GROUPS) if g not in network.groups_used)
        word = unused | options.ready_select_aon
        steps.append(writer.word(AON_CONTROL, word, "Power down unused quadrants"))
    if options.snoop_loop:
        steps += _snoop_loop(network, writer, numbering, options, mode)
    steps.append(TimerStart())
    fields = {**mode, "enable": 1} | (_fifo_fields(network, master) if fifo else {})
    if options.snoop_loop:
        fields["snoop"] = 1
    steps.append(writer.control(master, "CTL", fields, f"Master enable quadrant {master}"))
    yield Block("", tuple(steps))


def _snoop_loop(
    network: Network,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
    mode: dict[str, int],
) -> Iterator[Step]:
    """Yield the words that make the network start again whenever its result is written."""
    layer = numbering.number(network.final, numbering.repeat - 1)
    master = network.groups_used[0]
    address = 0x200000 | network.final.out_offset >> 2
    steps = (
        ("SNP1_HIT", 0),
        ("SNP1_A1", address),
        ("SNP1_X1", 0x2134 if options.pipeline is False else 0x84D0),
        ("SNP1_C2", 0x4000),
        ("SNP1_C1", 0x8A412014),
        ("SNP1_C1", 0x8A412015),
    )
    for group in network.groups_used:
        jump = writer.layer(group, layer, "NXTLYR", {"jump": 1})
        yield jump
        for name, value in steps:
            yield writer.control(group, name, {"value": value}, forced=True)
    for group in network.groups_used:
        fields = {**mode, "master": master, "snoop": 1, "external_sync": 1}
        fields["enable"] = int(group != master)
        if network.input_port.is_fifo:
            fields |= {"fifo": 1, **_fifo_fields(network, group)}
        yield writer.control(group, "CTL", fields, f"Enable quadrant {group}")


def fifo_blocks(
    network: Network, writer: RegisterWriter, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the words that set up the FIFO of the input."""
    if network.input_port.is_fast:
        write = Write(
            FAST_FIFO_CONTROL, _FAST_FIFO_THRESHOLDS, "Fast FIFO control", "F00", verifiable=False
        )
        yield Block("FIFO control", (write,))
    elif network.input_port.is_fifo:
        word = _FIFO_THRESHOLDS | options.ready_select_fifo
        if network.chip.synchronizes_fifo:
            word |= _FIFO_SYNCHRONIZED
        for channel in range(network.first.in_channels):
            fifo = channel % FIFOS
            if network.input_processors >> PROCESSORS_PER_GROUP * fifo & 1:
                word |= _FIFO_ENABLE << fifo
        yield Block("FIFO control", (writer.word(FIFO_CONTROL, word, "FIFO control"),))


def snoop_blocks(network: Network, writer: RegisterWriter) -> Iterator[Block]:
    """Yield the registers of conditional execution, as the description gives them."""
    if network.snoop is None:
        return
    for group in network.groups_used:
        writes = (
            writer.control(group, name, {"value": value})
            for name, value in zip(SNOOP_REGISTERS, network.snoop, strict=False)
        )
        yield Block(f"Snoop, quadrant {group}", tuple(writes))


def snoop_results(network: Network, writer: RegisterWriter) -> Iterator[Write]:
    """Yield the accumulators of conditional execution with the values that are expected there."""
    if network.snoop is None:
        return
    for group in network.groups_used:
        for name, value in zip(SNOOP_RESULTS, network.snoop[len(SNOOP_REGISTERS) :], strict=True):
            yield writer.control(group, name, {"value": value})


def interrupt_mask(network: Network, options: EncodeOptions) -> int:
    """Return the control bits that the interrupt handler clears."""
    if options.one_shot and network.final.index > 0:
        return _DONE
    return _DONE | _ENABLE | (_STREAMING if network.streams else 0)


def unused_blocks(
    network: Network, writer: RegisterWriter, numbering: Numbering
) -> Iterator[Block]:
    """Yield the zeros of `--zero-unused`.

    The reference tool addresses the last configured layer here and so destroys its registers; the
    words are reproduced.
    """
    layer = numbering.number(network.layers[-1], numbering.repeat - 1)
    registers = writer.chip.layer_registers
    own = {r.number: r.name for r in registers.values() if r.name not in STREAM_REGISTERS}
    apart = writer.chip.layer_stride != writer.chip.stream_layer_stride
    for group in network.groups_used:
        base = writer.apb_base + writer.chip.layer_address(group, layer, "RCNT")
        base -= registers["RCNT"].number * writer.chip.layer_register_stride
        addresses = {n: base + n * writer.chip.layer_register_stride for n in range(max(own) + 1)}
        if apart:
            for name in STREAM_REGISTERS:
                address = writer.chip.layer_address(group, layer, name)
                addresses[registers[name].number] = writer.apb_base + address
        yield Block(
            "",
            tuple(
                Write(address, 0, "Zero unused register", f"L{layer} G{group} R{number:02d}")
                for number, address in addresses.items()
            ),
        )
