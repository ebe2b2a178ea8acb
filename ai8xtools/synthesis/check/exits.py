"""Constraints of an early exit.

Source: docs/early-exit.md; docs/hardware/execution.md, "Order of layers".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.check.constraint import Finding, Kind, constraint
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from device import names_where

_WIDE = 32


@constraint("E328", Kind.HARDWARE)
def early_exit_is_possible(layer: MappedLayer, network: MappedNetwork) -> Iterator[Finding]:
    """A network that may end early is started twice: up to the exit, and behind it. The program
    compares the values of the exit, which mean what those of the last layer do."""
    if layer.exit_margin is None:
        return
    if not network.chip.max_start_layer:
        names = names_where(lambda chip: chip.max_start_layer > 0)
        yield Finding(
            f"{network.chip.name} always starts with the first layer, so that it cannot go on "
            "behind an early exit",
            "exit_margin",
            f"Remove the key, or use --device {names}.",
        )
    for wrong, remedy in _obstacles(layer, network):
        yield Finding(wrong, "exit_margin", remedy)


def _obstacles(layer: MappedLayer, network: MappedNetwork) -> Iterator[tuple[str, str]]:
    final = network.final
    if layer is final:
        yield "the last layer is no early exit", "Remove the key."
        return
    if layer.index not in network.order or network.order != tuple(
        range(network.order[0], network.order[-1] + 1)
    ):
        yield (
            "an early exit needs layers that are executed one after the other",
            "Remove next_sequence and --stop-after, or the key.",
        )
    if network.outputs() != (layer, final) or network.layout.deliveries:
        yield (
            "the exit and the last layer are to be the outputs, and no other",
            (f"Mark {layer} and {final} with output: true, and only these; remove unload."),
        )
    if (
        layer.out_dim != (1, 1)
        or layer.out_channels != final.out_channels
        or layer.out_channels < 2
    ):
        yield (
            (
                f"the exit has {_shape(layer)} values and the last layer {_shape(final)}; both "
                "are to have one value for each class"
            ),
            "Let both give as many channels of one pixel, two at least.",
        )
    kinds = [(one.output_width, one.weight_bits, one.final_scale) for one in (layer, final)]
    if kinds != [(_WIDE, final.weight_bits, 0)] * 2:
        yield (
            "the values of the exit and of the last layer are not of one kind",
            "Give both output_width: 32, weights of as many bits, and a final scale of 0.",
        )
    if network.input_port.is_fifo or network.streams:
        yield (
            "an early exit is not possible with a FIFO or with layers that stream",
            "Load the input into memory.",
        )
    if network.layout.snoop is not None:
        yield "an early exit and conditional execution exclude each other", "Remove snoop."


def _shape(layer: MappedLayer) -> str:
    return f"{layer.out_channels}x{layer.out_dim[0]}x{layer.out_dim[1]}"
