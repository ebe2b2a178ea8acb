"""What is wrong with layers wherever they stand: constraints that places do not change.

Source: docs/errors.md, "Operators of a layer".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.check import CONSTRAINTS, operators
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.network import Network
from device import Chip
from device.channels import channels_per_pass


def errors_anywhere(network: Network, chip: Chip) -> Iterator[Diagnostic]:
    """Yield the errors of what the layers compute on a chip."""
    layers = {
        layer.index: LayerLayout(
            processors=(1 << channels_per_pass(layer.in_channels)) - 1,
            output_processors=(1 << channels_per_pass(layer.out_channels)) - 1,
        )
        for layer in network.layers
    }
    mapped = map_network(
        network, complete(network.layers, network.order, Layout(layers=layers)), chip
    )
    for layer in mapped.layers:
        for entry in CONSTRAINTS:
            of_operators = entry.test.__module__ == operators.__name__
            if entry.kind.needs_chip and entry.severity.is_error and of_operators:
                for finding in entry.findings(layer, mapped, chip):
                    yield entry.complain(layer, finding, ())
