"""What a layer implies for the distances of its output.

Source: docs/hardware/registers.md and docs/hardware/execution.md, "Write pointers".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts
from ai8xtools.emulator.decode.config import WIDE_WORDS
from device.chip import INSTANCES, PROCESSORS_PER_INSTANCE


def time_slots(facts: LayerFacts) -> Iterator[Expectation]:
    """Distance from one time slot to the next."""
    config = facts.config
    far = facts.chip.write_pointer_words
    near = far // PROCESSORS_PER_INSTANCE
    if not config.kind.has_kernels:
        if len(config.processors) > PROCESSORS_PER_INSTANCE:
            distances = [far]
        elif config.input.operands > 1:
            several = config.input.passes > 1
            distances = [far] if several else [near, far] if _has_rows_of_passes(facts) else [near]
        else:
            distances = [near]
        if config.processors == (0,) and config.input.size == (1, 1) and facts.following:
            # A layer that resets average pooling has the distance of the next
            layer = facts.following.layer
            distances.append(facts.memory.register(layer, "WPTR_TOFFS")["words"])
        reason = f"a pass-through of {len(config.processors)} processors"
    elif not config.kind.sums_channels:
        distances, reason = [0 if config.broadcast else far], "a depth-wise convolution"
    else:
        flat = config.kernels.shape == (1, 1) and not (config.conv1d or config.transposed)
        distances, reason = [int(flat)], "1x1 kernels" if flat else "kernels larger than 1x1"
    yield Expectation("WPTR_TOFFS", "words", distances, reason)


def _has_rows_of_passes(facts: LayerFacts) -> bool:
    """Whether the registers may count passes where they seem to count rows."""
    inputs = facts.config.input
    chip = facts.chip
    return chip.combines_passes_as_rows and inputs.operands > 1 and not inputs.pooling


def instances(facts: LayerFacts) -> Iterator[Expectation]:
    """Distance from one data memory instance to the next."""
    if facts.config.kind.has_kernels:
        distance, reason = facts.chip.write_pointer_words, "distance of two instances"
    else:
        distance, reason = 0, "pass-through layers do not need it"
    yield Expectation("WPTR_MOFFS", "words", (distance,), reason)


def passes(facts: LayerFacts) -> Iterator[Expectation]:
    """Distance from one output pass to the next, and of two pixels."""
    config, output = facts.config, facts.config.output
    unit = WIDE_WORDS if output.wide else 1
    words = facts.field("WPTR_CHOFFS", "words")
    step = facts.field("LCTL2", "write_step") + 1
    if not config.kind.has_kernels:
        distances = [step * unit if output.passes > 1 else 0]
        if output.passes == 1 and _has_rows_of_passes(facts):
            distances.append(step * unit)
        yield Expectation("WPTR_CHOFFS", "words", distances, f"{output.passes} output passes")
        return
    if not words:
        return
    whole = words % unit == 0 and step % (words // unit) == 0
    if not whole or step // (words // unit) < 2:
        distances = [unit * n for n in range(1, step) if step % n == 0] or [0]
        reason = f"pixels are {step} words apart"
        yield Expectation("WPTR_CHOFFS", "words", (0, *distances), reason)


def read_pointer(facts: LayerFacts) -> Iterator[Expectation]:
    """The input begins inside a data memory instance."""
    words = facts.chip.instance_bytes // 4
    word = facts.field("RPTR_BASE", "word")
    if word >= words:
        reason = f"an instance has {words} words"
        yield Expectation("RPTR_BASE", "word", (word % words, *range(words)), reason)


def one_start(facts: LayerFacts, group: int) -> Iterator[Expectation]:
    """All groups that write for themselves begin at the same word, each in its own instance."""
    config = facts.config
    if not config.writes_by_group:
        return
    words = Counter(config.output.pointers[used].word for used in config.groups)
    own = config.output.pointers[group]
    word = max(words, key=lambda value: (words[value], value == config.start.word))
    pointer = own.instance * facts.chip.write_pointer_words + word
    yield Expectation("WPTR_BASE", "pointer", (pointer,), f"the groups begin at word 0x{word:x}")


def write_pointer(facts: LayerFacts, group: int) -> Iterator[Expectation]:
    """The output begins in one of the data memory instances."""
    pointer, words = facts.read("WPTR_BASE", group)["pointer"], facts.chip.write_pointer_words
    if pointer >= INSTANCES * words:
        reason = f"there are {INSTANCES} instances"
        yield Expectation("WPTR_BASE", "pointer", (pointer % (INSTANCES * words),), reason)


RULES = (time_slots, instances, passes, read_pointer)
GROUP_RULES = (one_start, write_pointer)
