"""The order in which layers are executed and simulated.

Source: docs/network-description.md, "What follows from other keys"; docs/hardware/execution.md,
"Order of layers".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.parse.rules import layer_index
from device import Chip


def execution_order(
    description: Description,
    chip: Chip | None,
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> tuple[int, ...]:
    """Follow next_sequence from the first layer to the one that stops."""
    jumps = chip is None or chip.has_next_layer
    order: list[int] = []
    last = len(description.layers) - 1
    beyond: list[Diagnostic] = []
    for index in _steps(
        description, "next_sequence", options.start_layer, options.stop_after, beyond
    ):
        if order and index != order[-1] + 1 and not jumps:
            problems.append(_out_of_order(description.layers[order[-1]], index))
            break
        if index in order:
            problems.append(_loop(description.layers[order[-1]], index))
            break
        order.append(index)
    if beyond and not jumps:
        final = description.layers[order[-1]]
        beyond = [_out_of_order(final, layer_index(final.get("next_sequence"), description))]
    problems += beyond
    for option, value in (
        ("--stop-after", options.stop_after),
        ("--start-layer", options.start_layer),
    ):
        if value is not None and value not in order:
            problems.append(
                Diagnostic(
                    "E214",
                    f"is {value}, the last layer is {last}",
                    description.layers[-1].place.with_option(option),
                )
            )
    return tuple(order)


def simulated_order(
    description: Description, order: tuple[int, ...], problems: list[Diagnostic]
) -> tuple[int, ...]:
    """Follow simulated_sequence, which is next_sequence unless the description says otherwise."""
    visited: list[int] = []
    for index in _steps(description, "simulated_sequence", order[0], order[-1]):
        if index in visited:
            problems.append(_loop(description.layers[visited[-1]], index))
            break
        if not min(order) <= index <= max(order):
            problems.append(_never_configured(description.layers[visited[-1]], index, order))
            break
        visited.append(index)
    return tuple(visited)


def _steps(
    description: Description,
    key: str,
    start: int,
    stop_after: int | None,
    problems: list[Diagnostic] | None = None,
) -> Iterator[int]:
    """Yield the layers from `start` on until one stops (by a negative number), or all are done."""
    index: int | None = start
    while index is not None and 0 <= index < len(description.layers):
        yield index
        if index == stop_after:
            return
        layer = description.layers[index]
        default = layer.get("next_sequence", index + 1)
        index = layer_index(layer.get(key, default), description)
        highest = max(layer.index + 1, len(description.layers) - 1)
        if problems is not None and index is not None and index > highest:
            problems.append(_beyond(layer, index, key))


def _out_of_order(layer: LayerDescription, index: int | None) -> Diagnostic:
    return layer.error(
        "E213",
        f"'next_sequence' is {index}, expected {layer.index + 1} or stop",
        "next_sequence",
        remedy="Put the layers in the order in which they are executed.",
    )


def _beyond(layer: LayerDescription, index: int, key: str) -> Diagnostic:
    complaint = layer.error(
        "W271", f"'{key}' is {index}, beyond the last layer; the network stops here", key
    )
    return replace(complaint, severity=Severity.WARNING)


def _never_configured(layer: LayerDescription, index: int, order: tuple[int, ...]) -> Diagnostic:
    return layer.error(
        "E226",
        f"the simulation continues with layer {index}, only {min(order)} to {max(order)} are "
        "configured",
        "simulated_sequence",
        "next_sequence",
        remedy="Correct 'simulated_sequence', or 'next_sequence' so that the network goes there.",
    )


def _loop(layer: LayerDescription, index: int) -> Diagnostic:
    return layer.error(
        "E220",
        f"execution continues with layer {index}, which has been executed already",
        "next_sequence",
        "simulated_sequence",
        remedy="End the network with next_sequence: stop.",
    )
