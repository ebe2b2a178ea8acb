"""What rows, columns, windows and operands imply.

Source: docs/hardware/registers.md, "Layer registers", and docs/hardware/execution.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts, zero


def counts(facts: LayerFacts) -> Iterator[Expectation]:
    """Rows and columns: padding, and what a Conv1d or pass-through layer lacks."""
    config = facts.config
    shape = config.kernels.shape if config.kind.has_kernels else (1, 1)
    pads = config.input.pad if not config.conv1d else (config.input.pad[0], 0)
    for register, kernel, pad in zip(("RCNT", "CCNT"), shape, pads, strict=True):
        if pad >= kernel:
            reason = f"padding is smaller than a kernel of {kernel}"
            if not facts.chip.counts_by_step:
                yield Expectation(register, "pad", range(max(kernel, 1)), reason)
            elif kernel > 1:
                yield Expectation(register, "pad", range(kernel - 1), reason)
            else:
                yield Expectation(register, "padded", (0,), reason)
    if config.conv1d:
        yield from zero("CCNT", "a one-dimensional layer has one column", "last", "pad")


def steps(facts: LayerFacts) -> Iterator[Expectation]:
    """Rows and columns of chips that count the steps of the windows."""
    config, inputs = facts.config, facts.config.input
    if not facts.chip.counts_by_step:
        return
    for register in ("RCNT", "CCNT"):
        word = facts.read(register)
        if not word["padded"]:
            yield from zero(register, "the layer has no padding there", "pad")
        if word["last"] % inputs.stride:
            last = word["last"] // inputs.stride * inputs.stride
            yield Expectation(register, "last", (last,), f"the stride is {inputs.stride}")
    columns = facts.read("CCNT")
    reach = (inputs.pool[1] - 1) * inputs.pool_dilation[1] + 1
    window = 1 if config.conv1d else reach
    step = inputs.stride
    yield Expectation(
        "CCNT", "skip", range(window, window + step), f"the last window has {window} columns"
    )
    rows = 1 if config.conv1d else columns["skip"]
    width = 1 if config.conv1d else columns["last"] + columns["skip"]
    words = facts.field("STRIDE", "words") // step
    skip = (rows + (step - 1) * width) * words
    yield Expectation("RCNT", "skip", (skip,), "that many words follow behind a row of windows")


def pooling(facts: LayerFacts) -> Iterator[Expectation]:
    """Windows, and the stride."""
    config = facts.config
    windows = {name: facts.read(name) for name in ("PRCNT", "PCCNT")}
    pools = any(word["last"] for word in windows.values())
    reason = "a window has more than one pixel" if pools else "windows have one pixel"
    yield Expectation("LCTL", "pool", (int(pools),), reason)
    if config.conv1d:
        yield from zero("PCCNT", "a one-dimensional layer has one column", "last")
    for name, word in windows.items():
        dilation = word.get("dilation", 0) + 1
        if word["last"] % dilation:
            last = word["last"] // dilation * dilation
            yield Expectation(name, "last", (last,), f"the dilation is {dilation}")
    if config.transposed:
        yield from zero("STRIDE", "transposed convolutions have no stride here", "stride")
    if facts.chip.counts_by_step:
        yield from _distance(facts)


def _distance(facts: LayerFacts) -> Iterator[Expectation]:
    inputs = facts.config.input
    words = facts.field("STRIDE", "words")
    unit = inputs.stride * inputs.operands
    if inputs.size == (1, 1) and inputs.passes > 1:  # maybe flattened
        parts = [unit * n for n in range(1, inputs.passes + 1) if inputs.passes % n == 0]
        yield Expectation("STRIDE", "words", parts[::-1], "words of a pixel")
    elif words == 0 or words % (unit * inputs.passes):
        yield Expectation("STRIDE", "words", (unit * inputs.passes,), "words of a pixel")


def operands(facts: LayerFacts) -> Iterator[Expectation]:
    """How operands are combined."""
    config, oned = facts.config, facts.read("ONED")
    if not oned["elementwise"]:
        fields = ("operation", "pool_first", "elementwise_convolution", "operands")
        yield from zero("ONED", "there is one operand", *fields)
        return
    if not oned["operands"]:
        yield from zero("ONED", "there is one operand", "elementwise")
        return
    convolves = int(config.kind.has_kernels)
    reason = "a convolution follows" if convolves else "no convolution follows"
    yield Expectation("ONED", "elementwise_convolution", (convolves,), reason)
    if not config.input.pooling:
        yield from zero("ONED", "nothing is pooled", "pool_first")


def kernel_shape(facts: LayerFacts) -> Iterator[Expectation]:
    """Rows and columns of the kernel, in all registers that hold them."""
    config, chip = facts.config, facts.chip
    alone = config.input.operands == 1
    rows = "kernel_rows" in chip.layer_registers["LCTL"].by_name
    if not config.kind.has_kernels:
        yield Expectation("ONED", "kernel_length", (int(alone),), "of pass-through layers")
        yield from zero("ONED", "the layer is two-dimensional", "conv1d")
        if rows:
            yield from zero("LCTL", "the layer has no kernel", "kernel_rows", "kernel_columns")
        return
    if config.conv1d:
        yield Expectation("ONED", "kernel_length", range(1, 10), "one-dimensional kernels")
        if rows:
            length = config.kernels.shape[0] - 1
            yield Expectation("LCTL", "kernel_rows", (length,), "as the length in ONED")
            yield from zero("LCTL", "the layer has one column", "kernel_columns")
    elif rows:
        small = int(config.kernels.shape == (1, 1) and not config.transposed)
        shape = "x".join(map(str, config.kernels.shape))
        yield Expectation("ONED", "kernel_length", (small,), f"the kernel is {shape}")
    else:
        yield Expectation("ONED", "kernel_length", range(2), "1 for 1x1, 0 for 3x3")


RULES = (counts, steps, pooling, operands, kernel_shape)
