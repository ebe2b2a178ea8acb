"""Options that a chip does not have. Source: spec/network-description.md section 1.6, part 4."""

from __future__ import annotations

from collections.abc import Iterator

from device import Chip
from diagnostics import Diagnostic, Place
from synthesis.network import InputPort
from synthesis.options import EncodeOptions, ResolveOptions


def check_chip_options(
    chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Iterator[Diagnostic]:
    """Complain about options that need another chip or another option."""
    newer = {
        "--start-layer": resolving.start_layer > chip.max_start_layer,
        "--read-ahead": resolving.read_ahead and not chip.has_extended_modes,
        "--calcx4": resolving.calcx4 and not chip.has_extended_modes,
        "--link-layer": encoding.link_layer and not chip.has_extended_modes,
        "--one-shot": encoding.one_shot and not chip.has_extended_modes,
        "--snoop-loop": encoding.snoop_loop and not chip.has_extended_modes,
        "--fifo-go": encoding.fifo_go and not chip.has_extended_modes,
        "--pipeline": encoding.pipeline is True and not chip.has_pipeline,
        "--pll": encoding.pll is True and chip.pll_clock_mhz is None,
    }
    for option, wrong in newer.items():
        if wrong:
            yield Diagnostic(
                "E080",
                f"{chip.name} does not support it",
                Place(option=option),
                "Leave the option out, or use --device MAX78002.",
            )
    if encoding.max_speed and (chip.pll_clock_mhz is None or encoding.pll is False):
        yield Diagnostic("E081", "it needs the PLL", Place(option="--max-speed"), "Add --pll.")
    if resolving.start_layer and resolving.input_port is not InputPort.MEMORY:
        yield Diagnostic(
            "E082",
            f"is {resolving.start_layer}, a FIFO feeds layer 0",
            Place(option="--start-layer"),
            "Leave one of the two out.",
        )
    if resolving.input_offset is not None and resolving.input_offset < 0:
        yield Diagnostic(
            "E084", f"is {resolving.input_offset}, the limit is 0", Place(option="--input-offset")
        )
    if resolving.synthesize_input is not None and not resolving.input_port.is_fifo:
        yield Diagnostic(
            "E084", "it needs a FIFO", Place(option="--synthesize-input"), "Add --fifo."
        )
    if encoding.repeat_layers < 1:
        yield Diagnostic(
            "E083", f"is {encoding.repeat_layers}, the limit is 1", Place(option="--repeat-layers")
        )
