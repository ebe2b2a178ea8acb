"""Limits of options and global keys that only encoding uses: clocks, conditional execution.

Source: docs/hardware/execution.md, "Power and clock".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.diagnostics.options import excludes, no_effect
from ai8xtools.synthesis.encode.control import power
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import EncodeOptions, StreamOptions
from device import Chip, names_where


def check_limits(
    network: Network, layout: Layout, chip: Chip, options: EncodeOptions
) -> Iterator[Diagnostic]:
    """Complain about clocks, conditional execution and options that change nothing."""
    return _limits(map_network(network, layout, chip), options)


def _limits(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    yield from _clock(network, options)
    yield from _snoop(network, options)
    yield from _without_effect(network, options)
    yield from _exit(network, options)


def _clock(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    """The accelerator needs its pipeline above a certain clock frequency, and only then."""
    chip = network.chip
    if not chip.has_pipeline:
        return
    clock, limit = power(network, options).clock_mhz, chip.max_unpipelined_mhz
    if clock > limit and not options.pipelined(chip):
        yield Diagnostic(
            "W038",
            f"the accelerator runs at {clock:g} MHz, without a pipeline the limit is {limit}",
            Place(option="--no-pipeline"),
            "Use a larger --clock-divider.",
            Severity.WARNING,
        )
    elif clock <= limit and options.pipelined(chip):
        yield Diagnostic(
            "N039",
            f"the accelerator runs at {clock:g} MHz, up to {limit} it needs no pipeline",
            Place(option="--pipeline"),
            "Add --no-pipeline to save energy.",
            Severity.NOTICE,
        )


def _snoop(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    """Values accumulated by conditional execution are not simulated; the description gives them."""
    if network.layout.snoop is not None and not network.chip.has_extended_modes:
        names = names_where(lambda chip: chip.has_extended_modes)
        yield Diagnostic(
            "E315",
            f"'snoop' is not supported by {network.chip.name}",
            network.network.places.get("snoop", network.place),
            f"Remove the key, or use --device {names}.",
        )
    if options.check_snoop and network.layout.snoop is None:
        yield Diagnostic(
            "E089",
            "the description does not say what to expect",
            network.place.with_option("--debug-snoop"),
            "Add the global key snoop, or leave the option out.",
        )


def _exit(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    """A network that may end early is started up to its exit, and once more behind it."""
    used = {
        "--one-shot": options.one_shot,
        "--snoop-loop": options.snoop_loop,
        "--repeat-layers": options.place.repeat_layers > 1,
    }
    for option in (name for name, value in used.items() if value and network.exit is not None):
        yield excludes(option, "exit_margin")


def _without_effect(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    """An option that changes nothing was probably meant for another network."""
    streams, usual = options.place.streams, StreamOptions()
    fifo = network.input_port.is_fifo
    streaming = [layer.streaming for layer in network.executed()]
    cases = (
        (
            {"--ready-sel-fifo": options.ready_select_fifo, "--fifo-go": options.fifo_go},
            fifo,
            "--fifo",
        ),
        (
            {
                "--override-start": streams.override_start is not None,
                "--override-rollover": streams.override_rollover is not None,
                "--override-delta1": streams.override_delta1 is not None,
                "--override-delta2": streams.override_delta2 is not None,
            },
            fifo or any(streaming),
            "--fifo or streaming layers",
        ),
        (
            {
                "--increase-start": streams.increase_start != usual.increase_start,
                "--increase-delta1": streams.increase_delta1,
                "--increase-delta2": streams.increase_delta2,
            },
            any(streaming[1:]),
            "a streaming layer behind the first",
        ),
    )
    for changed, useful, needed in cases:
        for option, value in changed.items():
            if value and not useful:
                yield no_effect(option, f"without {needed}")
