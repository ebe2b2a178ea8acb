"""What a layer implies for line buffers and streams.

Source: docs/hardware/streaming.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts, zero
from ai8xtools.emulator.decode.config import LayerConfig
from device.chip import FLATTEN_LONG


def line_buffer(facts: LayerFacts) -> Iterator[Expectation]:
    """Words of the line buffer."""
    config = facts.config
    streams = not facts.is_start and bool(config.stream_start)
    flat = config.kernels.shape == (1, 1) and not config.transposed
    if config.kind.has_kernels and (config.conv1d or flat) and not streams:
        steps = config.input.passes - 1
        if steps < FLATTEN_LONG or not facts.field("POST", "flatten"):
            yield from zero("TPTR", "kernels of one row need no line buffer", "first", "last")
        else:
            reason = f"{steps + 1} passes of a flattened layer"
            yield Expectation("TPTR", "first", (steps,), reason)
            yield Expectation("TPTR", "last", (2 * steps + 1,), reason)
        return
    first = 0
    if streams:
        first = sum(_line(layer) * layer.input.passes for layer in facts.earlier)
    reason = f"{_line(config)} words for a line"
    yield Expectation("TPTR", "first", (first,), f"{first} words for the layers before")
    yield Expectation("TPTR", "last", (first + _line(config) - 1,), reason)


def _line(config: LayerConfig) -> int:
    """Words of a line that a layer keeps."""
    if not config.kind.has_kernels:
        return 1
    columns = config.input.pooled[1]
    if config.transposed:
        columns = 2 * columns  # the last one is output padding
    return max(0, columns + 2 * config.input.pad[1] - config.kernels.shape[1]) + 1


def stream(facts: LayerFacts) -> Iterator[Expectation]:
    """Streams, where there are any."""
    config, memory = facts.config, facts.memory
    if config.layer >= facts.chip.max_streaming_layers:
        return
    control = memory.control_register("CTL")
    control_written = memory.addresses.control[0] in memory.registers
    fields = [field.name for field in facts.chip.layer_registers["STREAM2"].fields]
    if facts.is_start:
        if control_written and not control["fifo"]:
            yield from zero("STREAM1", "no FIFO is in use", "start", "fifo_go")
            yield from zero("FMAX", "no FIFO is in use", "words")
        if not config.ring_words and not control["streaming"]:
            yield from zero("STREAM2", "the layer does not stream", *fields)
        else:
            yield from zero("STREAM2", "no layer streams before the first", "passes_before")
        return
    if (control_written and not control["streaming"]) or not config.ring_words:
        yield from zero("STREAM1", "the layer does not stream", "start", "fifo_go")
    if not config.stream_start:
        yield from zero("STREAM2", "the layer does not stream", *fields)
        yield from zero("FMAX", "the layer does not stream", "words")
        return
    yield from zero("STREAM1", "only the first layer reads a FIFO", "fifo_go")
    passes = sum(_fetches(facts, layer) for layer in facts.earlier)
    yield Expectation("STREAM2", "passes_before", (passes,), "input passes of the layers before")


def _fetches(facts: LayerFacts, layer: LayerConfig) -> int:
    """Passes of a layer, those in groups of four if it calculates in another order."""
    in_fours = facts.memory.register(layer.layer, "POST", layer.base_group)["tcalc"]
    passes = layer.input.passes
    return -(-passes // 4) * 4 if in_fours else passes


RULES = (line_buffer, stream)
