"""Put the parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.simulate import Activations
from ai8xtools.synthesis.summarize.describe import configuration, description
from ai8xtools.synthesis.summarize.memory_log import memory_log
from ai8xtools.synthesis.summarize.statistics import statistics
from ai8xtools.synthesis.summarize.topology import stream_ratio, topology
from ai8xtools.synthesis.summary import LayerLog, Summary
from device import Chip

if TYPE_CHECKING:
    from ai8xtools.synthesis.layer_data import LayerData


def summarize(
    network: Network,
    placement: Placement,
    activations: Activations,
    chip: Chip,
    options: EncodeOptions,
) -> Summary:
    """Return what is reported of a placed and simulated network."""
    mapped = map_network(network, placement.layout, chip)
    return _summarize(mapped, placement, activations, options)


def _summarize(
    network: MappedNetwork, placement: Placement, activations: Activations, options: EncodeOptions
) -> Summary:
    first = network.first
    return Summary(
        description=tuple(description(network, options.place.repeat_layers)),
        input_text=f"{first.in_channels}x{first.in_dim[0]}x{first.in_dim[1]}",
        statistics=statistics(network, placement, options),
        configuration=configuration(network, placement),
        kernel_map=placement.kernel_memory.owner,
        result=activations.outputs[network.terminating.index],
        topology=topology(network),
        stream_ratio=stream_ratio(network, placement.streams),
        memory_log=tuple(memory_log(network, placement.rings))
        if options.telling.keep_layer_logs
        else (),
        layer_logs=tuple(_layer_logs(network, activations))
        if options.telling.keep_layer_logs
        else (),
        layer_data=_layer_data(network, placement, activations, options),
    )


def _layer_logs(network: MappedNetwork, activations: Activations) -> Iterator[LayerLog]:
    for layer in map(network.layer, network.simulated):
        trace = activations.traces.get(layer.index)
        if trace is not None:
            weights = layer.weights
            yield LayerLog(
                layer.index,
                layer.operator.value.upper(),
                trace.input,
                None if weights is None else weights.astype("int64"),
                layer.bias,
                trace.accumulator,
                trace.output,
                trace.clipped if layer.activation else None,
            )


def _layer_data(
    network: MappedNetwork,
    placement: Placement,
    activations: Activations,
    options: EncodeOptions,
) -> tuple[LayerData, ...]:
    if not options.telling.keep_layer_data:
        return ()
    from ai8xtools.synthesis.summarize.layer_data import layer_data  # only for debugging

    passes = options.telling.keep_pass_sums
    return tuple(layer_data(network, activations, placement.rings, with_passes=passes))
