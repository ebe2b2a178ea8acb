"""Data that is overwritten before a later layer reads it.

The vendor's tool accepts such networks: the known answer has the data, the chip does not.
Source: docs/placement.md, "Data: what may be overwritten".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.facts import UNSOUND
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.memory import DataLoss, DataRange
from ai8xtools.synthesis.network import NETWORK_INPUT
from ai8xtools.synthesis.place.inplace import works_in_place
from ai8xtools.synthesis.place.lifetimes import memory_steps, overlap, sources


def check_losses(network: MappedNetwork, problems: list[Diagnostic]) -> None:
    """Warn of the first layer that destroys what a later layer, or itself, still has to read.

    What E404 refuses is left out: outputs that are delivered, and what the layer before wrote.
    """
    seen = {layer.index for layer in network.outputs()}
    for step in memory_steps(network, {}):
        layer = network.layer(step.layer)
        for loss in step.losses:
            if loss.owner in seen or _is_refused(loss, layer, network):
                continue
            if loss.own_input and (works_in_place(layer) or not _reads_behind_itself(layer)):
                continue
            seen.add(loss.owner)
            problems.append(_complaint(network, layer, loss))


def check_rounds(network: MappedNetwork) -> Iterator[Diagnostic]:
    """Warn of data that one round of --repeat-layers destroys although the next one, or the result,
    needs it.

    The sample is loaded once, and the last round does not run to its end.
    """
    steps = tuple(memory_steps(network, {}))
    delivered = {layer.index for layer in network.outputs()}
    protected: dict[int, DataRange] = {
        data.owner: data
        for step in steps
        for data in (*step.inputs, step.output)
        if data.owner == NETWORK_INPUT or data.owner in delivered
    }
    for step in steps:
        for owner, data in tuple(protected.items()):
            loss = overlap(step.output, data) if owner != step.layer else None
            if loss is not None:
                del protected[owner]
                yield _complaint_of_rounds(network, network.layer(step.layer), loss)


def _complaint_of_rounds(network: MappedNetwork, layer: MappedLayer, loss: DataLoss) -> Diagnostic:
    """Each repetition reads the sample; its layers must not overwrite data that others need."""
    what = "the input data" if loss.owner < 0 else f"the output of {network.layer(loss.owner)}"
    return Diagnostic(
        "W413",
        f"{layer}: the output overwrites 0x{loss.begin:x} to 0x{loss.end - 1:x} of {what}, which "
        "other rounds need; the chip may compute something else than the known answer",
        layer.place_of("out_offset").with_option("--repeat-layers"),
        "Use another out_offset, or run the network once to compare its output.",
        Severity.WARNING,
        UNSOUND,
    )


def _is_refused(loss: DataLoss, layer: MappedLayer, network: MappedNetwork) -> bool:
    """Whether the data is the direct predecessor's, or the sample at the first layer."""
    previous = network.predecessor(layer)
    return loss.owner == (NETWORK_INPUT if previous is None else previous.index)


def _reads_behind_itself(layer: MappedLayer) -> bool:
    """Whether an output can stand where something is read that belongs to a later output."""
    windows = max(*layer.kernel, *layer.pooling.window) > 1
    read = layer.in_passes * layer.operands * (layer.read_gap + 1)
    written = layer.out_passes * layer.output_words_per_value * (layer.write_gap + 1)
    overtakes = layer.channels_first or written > read
    return windows or overtakes or layer.out_offset > layer.in_offset


def _complaint(network: MappedNetwork, layer: MappedLayer, loss: DataLoss) -> Diagnostic:
    """Data in memory must not be overwritten before its last reader."""
    what = "the input data" if loss.owner < 0 else f"the output of {network.layer(loss.owner)}"
    if loss.own_input:
        reader, what_follows = "it reads itself", "may compute something else than"
    else:
        reader = f"{_reader(network, layer, loss)} reads later"
        what_follows = "is not expected to compute"
    return layer.diagnostic(
        "W412",
        f"the output overwrites 0x{loss.begin:x} to 0x{loss.end - 1:x} of {what}, which {reader}; "
        f"the chip {what_follows} the known answer",
        ("out_offset",),
        "Use another out_offset or other output_processors; --overlap-data silences this.",
        Severity.WARNING,
        UNSOUND,
    )


def _reader(network: MappedNetwork, layer: MappedLayer, loss: DataLoss) -> MappedLayer:
    """Return the next layer that reads what is lost; there is one, delivered data is left out."""
    behind = list(network.executed())[network.order.index(layer.index) + 1 :]
    return next(reader for reader in behind if loss.owner in sources(reader, network))
