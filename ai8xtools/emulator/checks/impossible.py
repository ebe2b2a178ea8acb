"""Registers that describe no layer at all.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from ai8xtools.emulator.checks.finding import LayerReport
from ai8xtools.emulator.errors import EmulatorError


def refuse_impossible(report: LayerReport, from_fifo: bool) -> None:
    """Refuse registers that describe no layer at all.

    Raises EmulatorError (E832) if nobody takes part, an image is empty, windows reach beyond
    the input, or the input has more words than a frame can have.
    """
    config, inputs = report.config, report.config.input
    window = inputs.pool if inputs.pooling else (1, 1)
    needed = tuple(
        (count - 1) * inputs.stride + (width - 1) * dilation + 1
        for count, width, dilation in zip(inputs.pooled, window, inputs.pool_dilation, strict=True)
    )
    words = inputs.size[0] * inputs.size[1] * inputs.passes * inputs.operands
    limit = report.memory.chip.max_frame_words
    problem = ""
    if not config.processors:
        problem = "no processor takes part"
    elif min(*inputs.size, *inputs.pooled, *config.output_size) < 1:
        problem = f"input {inputs.size}, pooled {inputs.pooled}, output {config.output_size}"
    elif needed[0] > inputs.size[0] or needed[1] > inputs.size[1]:
        problem = f"pooling needs {needed} rows and columns, the input has {inputs.size}"
    elif config.output.passes < 1 or config.output.gap < 0:
        problem = "the distance between output passes does not fit the one between pixels"
    elif (inputs.chw or from_fifo) and inputs.passes * inputs.operands > 1:
        problem = f"planar and FIFO input have one pass, not {inputs.passes * inputs.operands}"
    elif words > limit:
        problem = f"the input has {words} words, the limit is {limit}"
    if problem:
        raise EmulatorError("E832", f"layer {config.layer}: its registers make no sense: {problem}")
