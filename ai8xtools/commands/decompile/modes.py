"""Options of ai8xize.py that follow from control registers.

Source: docs/hardware/registers.md, "Control registers"; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.layout import InputPort
from device.chip import AON_CONTROL, DEFAULT_APB_BASE, FIFO_CONTROL
from device.shared_registers import SHARED_REGISTERS


def input_port(memory: Memory, group: int) -> InputPort:
    """Return how the sample arrives."""
    control = memory.control_register("CTL", group)
    if not control["fifo"]:
        return InputPort.MEMORY
    if control["fifo_quad"]:
        return InputPort.FAST_FIFO_QUAD
    return InputPort.FAST_FIFO if control["fast_fifo"] else InputPort.FIFO


def any_input_port(memory: Memory) -> InputPort:
    """Return how the sample arrives, whichever group takes it."""
    ports = (input_port(memory, group) for group in range(len(memory.addresses.control)))
    return next((port for port in ports if port.is_fifo), InputPort.MEMORY)


def options(memory: Memory, first: LayerConfig, *, streams: bool) -> list[str]:
    """Return the words of a command line beside the device and the files."""
    group = first.groups[0]
    return [*_port(memory, group, streams=streams), *_flags(memory, first, group),
            *_wait_states(memory)]  # fmt: skip


def _port(memory: Memory, group: int, *, streams: bool) -> list[str]:
    port = input_port(memory, group)
    match port:
        case InputPort.MEMORY:
            return ["--allow-streaming"] if streams else []
        case InputPort.FIFO:
            return ["--fifo"]
        case InputPort.FAST_FIFO:
            return ["--fast-fifo", "--riscv"]
        case InputPort.FAST_FIFO_QUAD:
            return ["--fast-fifo-quad", "--riscv"]
        case _:
            assert_never(port)


def _flags(memory: Memory, first: LayerConfig, group: int) -> Iterator[str]:
    chip, control = memory.chip, memory.control_register("CTL", group)
    starts = first.layer < chip.max_streaming_layers
    stream = memory.register(first.layer, "STREAM1", group) if starts else {}
    flags = {
        "--avg-pool-rounding": control["average_rounding"],
        "--simple1b": control["simple_1bit"],
        "--ext-rdy": control["external_ready"],
        "--one-shot": control.get("one_shot"),
        "--no-mexpress": not control["express"],
        "--no-pipeline": chip.has_pipeline and control["pipeline_off"],
        "--fifo-go": stream.get("fifo_go"),
        "--zero-sram": any(
            address in memory.addresses.memory_tests
            and value in [test.start for test in chip.memory_tests]
            for address, value in memory.control
        ),
        "--powerdown": _shared(memory, "AON_CTL", AON_CONTROL)["power_down"],
        "--start-layer": first.layer,
    }
    for option, value in flags.items():
        if value:
            yield option
            if option == "--start-layer":
                yield str(value)


def _wait_states(memory: Memory) -> Iterator[str]:
    """Of the memories, which a pipelined network has while it is loaded only."""
    register = memory.chip.control_registers["CTL"]
    clocks = [register.unpack(value)["ready_select"] for address, value in memory.control
              if address in memory.addresses.control]  # fmt: skip
    for option, value in (
        ("--ready-sel", max(clocks, default=0)),
        ("--ready-sel-fifo", _shared(memory, "FIFO_CTL", FIFO_CONTROL)["ready_select"]),
        ("--ready-sel-aon", _shared(memory, "AON_CTL", AON_CONTROL)["ready_select"]),
        ("--apb-base", memory.addresses.apb_base - DEFAULT_APB_BASE),
    ):
        if value:
            yield option
            yield hex(memory.addresses.apb_base) if option == "--apb-base" else str(value)


def _shared(memory: Memory, name: str, offset: int) -> dict[str, int]:
    word = memory.registers.get(memory.addresses.apb_base + offset, 0)
    return SHARED_REGISTERS[name].unpack(word)
