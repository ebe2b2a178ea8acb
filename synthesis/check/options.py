"""Options that a chip does not have. Source: spec/network-description.md section 1.6, part 4."""

from __future__ import annotations

from collections.abc import Iterator

from device import Chip
from device.chip import ACCELERATOR_ALIGNMENT, HIGHEST_APB_BASE
from diagnostics import Diagnostic, Place, Severity
from synthesis.layout import InputPort
from synthesis.options import EncodeOptions, ResolveOptions

DEFAULT_WORDS = ResolveOptions().synthesize_words


def check_chip_options(
    chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Iterator[Diagnostic]:
    """Complain about options that need another chip or another option."""
    newer = {
        "--start-layer": resolving.start_layer > 0 and not chip.max_start_layer,
        "--read-ahead": resolving.read_ahead and not chip.has_extended_modes,
        "--calcx4": resolving.calcx4 and not chip.has_extended_modes,
        "--link-layer": encoding.link_layer and not chip.has_extended_modes,
        "--one-shot": encoding.one_shot and not chip.has_extended_modes,
        "--snoop-loop": encoding.snoop_loop and not chip.has_extended_modes,
        "--debug-snoop": encoding.check_snoop and not chip.has_extended_modes,
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
    if encoding.latency_terms and not chip.estimates_latency:
        yield Diagnostic(
            "E080",
            f"the timing of {chip.name} is not known",
            Place(option="--debug-latency"),
            "Leave the option out, or use --device MAX78000.",
        )
    if encoding.max_speed and chip.pll_clock_mhz is None:
        yield Diagnostic(
            "E081",
            f"it needs a PLL, {chip.name} has none",
            Place(option="--max-speed"),
            "Leave the option out, or use --device MAX78002.",
        )
    elif encoding.max_speed and encoding.pll is False:
        yield Diagnostic(
            "E081", "it needs the PLL", Place(option="--max-speed"), "Leave out --no-pll."
        )
    if resolving.start_layer and resolving.input_port is not InputPort.MEMORY:
        yield Diagnostic(
            "E082",
            f"is {resolving.start_layer}, a FIFO feeds layer 0",
            Place(option="--start-layer"),
            "Leave one of the two out.",
        )
    if resolving.synthesize_input is not None and not resolving.input_port.is_fifo:
        yield Diagnostic(
            "E084", "it needs a FIFO", Place(option="--synthesize-input"), "Add --fifo."
        )
    if resolving.synthesize_input is None and resolving.synthesize_words != DEFAULT_WORDS:
        yield Diagnostic(
            "W091",
            "it has no effect without --synthesize-input",
            Place(option="--synthesize-words"),
            "Add --synthesize-input or leave the option out.",
            Severity.WARNING,
        )
    if resolving.allow_streaming and not resolving.input_port.is_fifo:
        yield Diagnostic(
            "W087",
            "the vendor does not specify layers that stream from memory",
            Place(option="--allow-streaming"),
            "Use --fifo.",
            Severity.WARNING,
        )
    yield from _ranges(chip, resolving, encoding)


def _ranges(chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions) -> Iterator[Diagnostic]:
    """Numbers that end up in registers or addresses must fit there."""
    limits: tuple[tuple[str, int | None, int, int], ...] = (
        (
            "--start-layer",
            resolving.start_layer,
            0,
            chip.max_start_layer or max(resolving.start_layer, 0),
        ),
        ("--apb-base", encoding.apb_base, 0, HIGHEST_APB_BASE),
        ("--input-offset", resolving.input_offset, 0, chip.instance_bytes - 1),
        ("--skip-checkpoint-layers", resolving.skip_checkpoint_layers, 0, 1 << 16),
        ("--weight-start", encoding.weight_start, 0, chip.kernel_columns - 1),
        ("--repeat-layers", encoding.repeat_layers, 1, chip.max_layers),
        ("--switch-delay", encoding.switch_delay_ms, 0, 60_000),
        ("--ready-sel", encoding.ready_select, 0, 3),
        ("--ready-sel-fifo", encoding.ready_select_fifo, 0, 3),
        ("--ready-sel-aon", encoding.ready_select_aon, 0, 0xFFF),
        ("--override-start", encoding.override_start, 0, 0xFFFF),
        ("--override-rollover", encoding.override_rollover, 0, 0xFFFFF),
        ("--override-delta1", encoding.override_delta1, 0, 31),
        ("--override-delta2", encoding.override_delta2, 0, 0xFFFF),
        ("--increase-start", encoding.increase_start, 0, 0xFFFF),
        ("--increase-delta1", encoding.increase_delta1, 0, 31),
        ("--increase-delta2", encoding.increase_delta2, 0, 0xFFFF),
    )
    for option, value, low, high in limits:
        if value is not None and not low <= value <= high:
            yield Diagnostic(
                "E083",
                f"is {value}, the limits are {low} and {high}",
                Place(option=option),
                f"The nearest valid value is {min(max(value, low), high)}.",
            )
    if encoding.apb_base % ACCELERATOR_ALIGNMENT:
        yield Diagnostic(
            "E083",
            f"is 0x{encoding.apb_base:x}, not a multiple of 0x{ACCELERATOR_ALIGNMENT:x}",
            Place(option="--apb-base"),
            "Use such a multiple.",
        )


def check_repetition(layers: int, chip: Chip, last: Place) -> Iterator[Diagnostic]:
    """Complain if all repetitions together have more layers than the chip.

    `last` is where the last layer stands.
    """
    if layers > chip.max_layers:
        yield Diagnostic(
            "E086",
            f"makes {layers} layers, {chip.name} has {chip.max_layers}",
            last.with_option("--repeat-layers"),
            "Repeat the network less often.",
        )
