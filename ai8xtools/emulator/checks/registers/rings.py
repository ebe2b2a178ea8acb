"""Ring buffers of layers that stream: all of them are in use at the same time.

Source: docs/hardware/streaming.md, "Ring buffers".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ai8xtools.emulator.checks.finding import LayerFinding, Severity
from ai8xtools.emulator.checks.registers.facts import LayerFacts
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.values import frozen
from device.chip import PROCESSORS_PER_INSTANCE


@frozen
class _Words:
    """Words of some data memory instances that a stream uses: from `begin` to before `end`."""

    name: str
    begin: int
    end: int
    instances: frozenset[int]

    def __str__(self) -> str:
        return f"{self.name} (words 0x{self.begin:x} to 0x{self.end - 1:x})"

    def overlaps(self, other: _Words) -> bool:
        """Tell whether both have a word in common."""
        apart = self.end <= other.begin or other.end <= self.begin
        return not apart and bool(self.instances & other.instances)


def shared_words(facts: LayerFacts) -> Iterator[LayerFinding]:
    """Yield overlaps of the rings of a stream, and with its output, at the last of its layers."""
    control = facts.memory.control_register("CTL")
    last = facts.config
    if not (control["fifo"] and control["streaming"] and last.ring_words):
        return
    if facts.following is not None and facts.following.stream_start:
        return
    layers = [*(layer for layer in facts.before if layer.ring_words), last]
    for one, other in combinations([*map(_ring, layers), _output(last)], 2):
        if one.overlaps(other):
            yield LayerFinding(
                last.layer,
                f"{one} and {other} share data memory, though both are in use at the same time",
                severity=Severity.ERROR,
            )


def _ring(layer: LayerConfig) -> _Words:
    """Return the words of a ring buffer; those that a smaller input never reaches do not count."""
    begin = layer.input.read_word
    instances = frozenset(p // PROCESSORS_PER_INSTANCE for p in layer.processors)
    name = f"the ring buffer of layer {layer.layer}"
    return _Words(name, begin, begin + min(layer.ring_words, _most_words(layer)), instances)


def _most_words(layer: LayerConfig) -> int:
    """Return the words of an input; rows below the last window may not be in the registers."""
    inputs = layer.input
    rows, columns = inputs.size
    pixels = (rows + inputs.stride - 1) * columns
    if inputs.chw:
        pixels = -(-pixels // PROCESSORS_PER_INSTANCE)  # bytes of one channel follow each other
    return pixels * inputs.passes * inputs.operands


def _output(layer: LayerConfig) -> _Words:
    output, start = layer.output, layer.start
    rows, columns = layer.output_size
    count = -(-output.slots // PROCESSORS_PER_INSTANCE)
    instances = frozenset(range(start.instance, start.instance + count))
    words = rows * columns * output.passes * output.step
    return _Words(f"the output of layer {layer.layer}", start.word, start.word + words, instances)
