"""Options that a chip does not have.

Source: docs/errors.md, "Options: wrong usage" and "Options that do not match the network".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.diagnostics.options import excludes, needs, no_effect, outside
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from device import Chip, names_where
from device.chip import ACCELERATOR_ALIGNMENT, HIGHEST_APB_BASE

DEFAULT_WORDS = ResolveOptions().synthesize_words


def _has_modes(chip: Chip) -> bool:
    return chip.has_extended_modes


def _has_pll(chip: Chip) -> bool:
    return chip.pll_clock_mhz is not None


def _is_timed(chip: Chip) -> bool:
    return chip.estimates_latency


def _chip_options(
    resolving: ResolveOptions, encoding: EncodeOptions
) -> Iterator[tuple[str, bool, Callable[[Chip], bool]]]:
    """Yield options that need a feature: name, whether it is used, and whether a chip has it."""
    yield "--start-layer", resolving.start_layer > 0, lambda chip: chip.max_start_layer > 0
    yield "--read-ahead", resolving.read_ahead, _has_modes
    yield "--calcx4", resolving.calcx4, _has_modes
    yield "--link-layer", encoding.link_layer, _has_modes
    yield "--one-shot", encoding.one_shot, _has_modes
    yield "--snoop-loop", encoding.snoop_loop, _has_modes
    yield "--debug-snoop", encoding.check_snoop, _has_modes
    yield "--fifo-go", encoding.fifo_go, _has_modes
    yield "--pipeline", encoding.place.streams.pipeline is True, lambda chip: chip.has_pipeline
    yield "--pll", encoding.pll is True, _has_pll


def _unsupported(option: str, message: str, supported: Callable[[Chip], bool]) -> Diagnostic:
    remedy = f"Leave the option out, or use --device {names_where(supported)}."
    return Diagnostic("E080", message, Place(option=option), remedy)


def check_chip_options(
    chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Iterator[Diagnostic]:
    """Complain about options that need another chip or another option."""
    for option, used, supported in _chip_options(resolving, encoding):
        if used and not supported(chip):
            yield _unsupported(option, f"{chip.name} does not support it", supported)
    if encoding.telling.latency_terms and not _is_timed(chip):
        message = f"the timing of {chip.name} is not known"
        yield _unsupported("--debug-latency", message, _is_timed)
    if encoding.max_speed and not _has_pll(chip):
        message = f"it needs a PLL, {chip.name} has none"
        yield _unsupported("--max-speed", message, _has_pll)
    elif encoding.max_speed and encoding.pll is False:
        yield excludes("--max-speed", "--no-pll")
    if resolving.start_layer and resolving.input_port.is_fifo:
        yield excludes("--start-layer", "a FIFO")
    if resolving.synthesize_input is not None and not resolving.input_port.is_fifo:
        yield needs("--synthesize-input", "--fifo")
    if resolving.synthesize_input is None and resolving.synthesize_words != DEFAULT_WORDS:
        yield no_effect("--synthesize-words", "without --synthesize-input")
    if resolving.allow_streaming and not resolving.input_port.is_fifo:
        yield Diagnostic(
            "W037",
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
        ("--weight-start", encoding.place.weight_start, 0, chip.kernel_columns - 1),
        ("--repeat-layers", encoding.place.repeat_layers, 1, chip.max_layers),
        ("--switch-delay", encoding.switch_delay_ms, 0, 60_000),
        ("--ready-sel", encoding.ready_select, 0, 3),
        ("--ready-sel-fifo", encoding.ready_select_fifo, 0, 3),
        ("--ready-sel-aon", encoding.ready_select_aon, 0, 0xFFF),
        ("--override-start", encoding.place.streams.override_start, 0, 0xFFFF),
        ("--override-rollover", encoding.place.streams.override_rollover, 0, 0xFFFFF),
        ("--override-delta1", encoding.place.streams.override_delta1, 0, 31),
        ("--override-delta2", encoding.place.streams.override_delta2, 0, 0xFFFF),
        ("--increase-start", encoding.place.streams.increase_start, 0, 0xFFFF),
        ("--increase-delta1", encoding.place.streams.increase_delta1, 0, 31),
        ("--increase-delta2", encoding.place.streams.increase_delta2, 0, 0xFFFF),
    )
    for option, value, low, high in limits:
        if value is not None and not low <= value <= high:
            yield outside(option, value, low, high)
    if encoding.apb_base % ACCELERATOR_ALIGNMENT:
        yield Diagnostic(
            "E073",
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
