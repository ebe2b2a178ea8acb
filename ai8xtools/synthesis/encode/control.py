"""Words outside the layers: power, initialization, start and interrupt.

Source: docs/hardware/execution.md, "The life of a program".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.writer import RegisterWriter
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.program import (
    Block,
    Check,
    Clear,
    Power,
    ProgramStep,
    TimerStart,
    Wait,
    Write,
)
from device import SNOOP_REGISTERS, SNOOP_RESULTS, Chip
from device.chip import (
    FIFO_LANES,
    FIFOS,
    GROUPS,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    STREAM_REGISTERS,
    WORD_BYTES,
)
from device.masks import bits, mask_of
from device.registers import CLEARED_REGISTERS, MEMORY_TIMING
from device.snoop_registers import (
    SNOOP_LOOP_C2,
    SNOOP_LOOP_CONDITION,
    SNOOP_LOOP_X1,
    SNOOP_LOOP_X1_WITHOUT_PIPELINE,
)

_LOADING_DIVIDER = 4
_FIFO_FILL = 2
"""Words: the fill level at which a FIFO counts as nearly empty or nearly full."""
_FAST_FIFO_THRESHOLDS = 10


def power(network: MappedNetwork, options: EncodeOptions) -> Power:
    """Return which groups are powered and how they are clocked.

    With the PLL and the pipeline of MAX78002 the network loads at a quarter of the speed and runs
    at full speed.
    """
    chip = network.chip
    pll = None if options.pll is False else chip.pll_clock_mhz
    source = pll or chip.apb_clock_mhz
    pipelined = options.pipelined(chip)
    divider = options.clock_divider
    if divider is None:
        limit = source if pipelined else chip.max_unpipelined_mhz
        divider = next(d for d in chip.clock_dividers if source <= limit * d)
    balanced = pll is not None and not options.max_speed and options.clock_divider is None
    delay = options.switch_delay_ms
    return Power(
        groups_mask=mask_of(network.groups_used),
        switch_delay_ms=chip.default_switch_delay_ms if delay is None else delay,
        clock_source="IPLL" if pll else "PCLK",
        clock_divider=_LOADING_DIVIDER if balanced else divider,
        start_divider=divider if balanced and pipelined else None,
        clock_mhz=source / divider,
        pipelined=pipelined,
    )


def init_blocks(
    network: MappedNetwork, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the steps that bring the state machine to a known state."""
    chip = network.chip
    groups = network.groups_used
    if chip.clears_registers:
        clocked = _clocked(chip, options)
        writes = (writer.control(g, "CTL", clocked, "Enable clock") for g in groups)
        yield Block("", tuple(writes))
    always_on = {"ready_select": options.ready_select_aon}
    yield Block("", (writer.shared("AON_CTL", always_on, forced=True),))
    if chip.clears_registers:
        yield from _clear_registers(network, writer)
    for group in groups:
        yield Block(
            f"Quadrant {group}", tuple(_init_group(network, group, writer, numbering, options))
        )
    if options.zero_sram:
        yield from _memory_tests(chip, writer)


def _clocked(chip: Chip, options: EncodeOptions) -> dict[str, int]:
    """Fields of the control register of a group that has a clock."""
    return {
        "clock_enable": 1,
        "ready_select": options.ready_select,
        "pipeline_off": int(chip.has_pipeline and not options.pipelined(chip)),
    }


def _clear_registers(network: MappedNetwork, writer: RegisterWriter) -> Iterator[Block]:
    """MAX78002: let the self test clear registers and bias memory of every group."""
    groups = network.groups_used
    start = {
        "clear_registers": 1,
        "memories": CLEARED_REGISTERS,
        "with_biases": int(network.layout.file_has_bias),
    }
    cleared = network.chip.control_registers["SRAM_TEST"].pack(cleared=1)
    steps: list[ProgramStep] = [writer.control(g, "SRAM", {"value": MEMORY_TIMING}) for g in groups]
    tests = [writer.control(g, "SRAM_TEST", start, "Clear registers") for g in groups]
    steps += tests
    steps += [Wait(test.address, cleared) for test in tests]
    steps += [
        writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True) for g in groups
    ]
    yield Block("", tuple(steps))


def _init_group(
    network: MappedNetwork,
    group: int,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
) -> Iterator[ProgramStep]:
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
        **_clocked(chip, options),
        "express": int(options.express),
        "fifo": int(network.input_port.is_fifo),
    }
    yield writer.control(group, "CTL", mode, "Stop SM")
    if not chip.clears_registers:
        yield writer.control(group, "SRAM", {"value": MEMORY_TIMING})
    yield writer.control(group, "LCNT_MAX", {"last": numbering.last, "first": numbering.first})


def _memory_tests(chip: Chip, writer: RegisterWriter) -> Iterator[Block]:
    """Test and clear each memory of all groups, used or not, one memory after the other."""
    for test in chip.memory_tests:
        starts = [
            writer.control(g, "SRAM_TEST", {"value": test.start}, f"Test and clear {test.memory}")
            for g in range(GROUPS)
        ]
        steps: list[ProgramStep] = list(starts)
        steps += [Wait(write.address, test.done) for write in starts]
        steps += [Check(write.address, test.failed) for write in starts]
        steps += [
            writer.control(g, "SRAM_TEST", {"value": 0}, "Reset BIST", forced=True)
            for g in range(GROUPS)
        ]
        yield Block("", tuple(steps))


def _mode(network: MappedNetwork, options: EncodeOptions) -> dict[str, int]:
    """Fields of the control register that all groups share while the network runs."""
    chip, first, fifo = network.chip, network.first, network.input_port.is_fifo
    return {
        **_clocked(chip, options),
        **({"ready_select": 0} if options.pipelined(chip) else {}),
        "external_ready": int(options.external_ready),
        "stream_chw": int(first.streaming and first.channels_first and chip.marks_planar_streams),
        "one_shot": int(options.one_shot),
        "snoop": int(network.layout.snoop is not None),
        "external_sync": int(fifo),
        "average_rounding": int(options.average_rounding),
        "streaming": int(network.streams),
        "fifo_streaming": int(fifo and network.streams),
        "express": int(options.express),
        "simple_1bit": int(options.simple_1bit),
        "binary": int(any(layer.weight_bits < 0 for layer in network.layers)),
        "fifo_quad": int(network.input_port.feeds_all_groups),
    }


def _fifo_fields(network: MappedNetwork, group: int) -> dict[str, int]:
    """Fields of a group that a FIFO feeds; empty for the others."""
    used = bits(network.input_processors)
    if not any(processor in used for processor in _fed_processors(group)):
        return {}
    fast = network.input_port.is_fast
    together = fast and (used == (0,) or any(processor in used for processor in (1, 2, 3)))
    return {"fifo": 1, "fast_fifo": int(fast), "fast_fifo_group": int(together)}


def _fed_processors(fifo: int) -> range:
    """The processors that a FIFO feeds: the first ones of its group."""
    return range(PROCESSORS_PER_GROUP * fifo, PROCESSORS_PER_GROUP * fifo + FIFO_LANES)


def start_blocks(
    network: MappedNetwork, writer: RegisterWriter, numbering: Numbering, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the enables of all groups and the word that starts the network."""
    master = network.groups_used[0]
    mode = _mode(network, options)
    fifo = network.input_port.is_fifo
    steps: list[ProgramStep] = []
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
        unused = mask_of(g for g in range(GROUPS) if g not in network.groups_used)
        fields = {"power_down": unused, "ready_select": options.ready_select_aon}
        steps.append(writer.shared("AON_CTL", fields, "Power down unused quadrants"))
    if options.snoop_loop:
        steps += _snoop_loop(network, writer, numbering, options, mode)
    if network.exit is not None:
        yield _count_block(network, writer, numbering.first, numbering.number(network.exit))
    steps.append(TimerStart())
    fields = {**mode, "enable": 1, **(_fifo_fields(network, master) if fifo else {})}
    if options.snoop_loop:
        fields["snoop"] = 1
    steps.append(writer.control(master, "CTL", fields, f"Master enable quadrant {master}"))
    yield Block("", tuple(steps))


def _count_block(network: MappedNetwork, writer: RegisterWriter, first: int, last: int) -> Block:
    """Return the words that say which layers the next start executes, by hardware numbers."""
    counts = {"first": first, "last": last}
    writes = (writer.control(g, "LCNT_MAX", counts, forced=True) for g in network.groups_used)
    return Block(f"Layers {first} to {last}", tuple(writes))


def resume_blocks(
    network: MappedNetwork,
    early: MappedLayer,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
) -> Iterator[Block]:
    """Yield the words that start the layers behind the `early` exit."""
    yield _count_block(network, writer, numbering.number(early) + 1, numbering.last)
    *_, start = start_blocks(network, writer, numbering, options)
    steps = tuple(step for step in start.steps if not isinstance(step, TimerStart))
    yield Block(start.title, steps)


def _snoop_loop(
    network: MappedNetwork,
    writer: RegisterWriter,
    numbering: Numbering,
    options: EncodeOptions,
    mode: dict[str, int],
) -> Iterator[ProgramStep]:
    """Yield the words that make the network start again whenever its result is written."""
    layer = numbering.number(network.final, numbering.repeat - 1)
    master = network.groups_used[0]
    pointer = network.final.out_offset // WORD_BYTES
    pipelined = options.pipelined(network.chip)
    steps: tuple[tuple[str, dict[str, int]], ...] = (
        ("SNP1_HIT", {}),
        ("SNP1_A1", {"writes": 1, "pointer": pointer}),
        ("SNP1_X1", {"value": SNOOP_LOOP_X1 if pipelined else SNOOP_LOOP_X1_WITHOUT_PIPELINE}),
        ("SNP1_C2", {"value": SNOOP_LOOP_C2}),
        ("SNP1_C1", SNOOP_LOOP_CONDITION),
        ("SNP1_C1", {**SNOOP_LOOP_CONDITION, "enable": 1}),
    )
    for group in network.groups_used:
        jump = writer.layer(group, layer, "NXTLYR", {"jump": 1})
        yield jump
        for name, fields in steps:
            yield writer.control(group, name, fields, forced=True)
    for group in network.groups_used:
        fields = {**mode, "master": master, "snoop": 1, "external_sync": 1}
        fields["enable"] = int(group != master)
        if network.input_port.is_fifo:
            fields |= {"fifo": 1, **_fifo_fields(network, group)}
        yield writer.control(group, "CTL", fields, f"Enable quadrant {group}")


def fifo_blocks(
    network: MappedNetwork, writer: RegisterWriter, options: EncodeOptions
) -> Iterator[Block]:
    """Yield the words that set up the FIFO of the input."""
    match network.input_port:
        case InputPort.MEMORY:
            return
        case InputPort.FAST_FIFO | InputPort.FAST_FIFO_QUAD:
            write = writer.fast_fifo("CTL", {"thresholds": _FAST_FIFO_THRESHOLDS})
        case InputPort.FIFO:
            write = writer.shared("FIFO_CTL", _fifo_control(network, options))
        case _:
            assert_never(network.input_port)
    yield Block("FIFO control", (write,))


def _fifo_control(network: MappedNetwork, options: EncodeOptions) -> dict[str, int]:
    """Fields of the control register of the standard FIFOs."""
    used = bits(network.input_processors)
    return {
        "ready_select": options.ready_select_fifo,
        "almost_empty": _FIFO_FILL,
        "almost_full": _FIFO_FILL,
        "synchronized": int(network.chip.synchronizes_fifo),
        "enable": mask_of(
            fifo
            for fifo in range(min(FIFOS, network.first.in_channels))
            if PROCESSORS_PER_GROUP * fifo in used
        ),
    }


def snoop_blocks(network: MappedNetwork, writer: RegisterWriter) -> Iterator[Block]:
    """Yield the registers of conditional execution, as the description gives them."""
    if network.layout.snoop is None:
        return
    for group in network.groups_used:
        writes = (
            writer.control(group, name, {"value": value})
            for name, value in zip(SNOOP_REGISTERS, network.layout.snoop, strict=False)
        )
        yield Block(f"Snoop, quadrant {group}", tuple(writes))


def snoop_results(network: MappedNetwork, writer: RegisterWriter) -> Iterator[Write]:
    """Yield the accumulators of conditional execution with the values that are expected there."""
    if network.layout.snoop is None:
        return
    for group in network.groups_used:
        for name, value in zip(
            SNOOP_RESULTS, network.layout.snoop[len(SNOOP_REGISTERS) :], strict=True
        ):
            yield writer.control(group, name, {"value": value})


def interrupt_mask(network: MappedNetwork, options: EncodeOptions) -> int:
    """Return the control bits that the interrupt handler clears."""
    control = network.chip.control_registers["CTL"]
    if options.one_shot and network.final.index > 0:
        return control.pack(done=1)
    return control.pack(done=1, enable=1, streaming=int(network.streams))


def unused_blocks(
    network: MappedNetwork, writer: RegisterWriter, numbering: Numbering
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
