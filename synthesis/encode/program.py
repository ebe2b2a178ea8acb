"""Put the parts together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from synthesis.encode.control import (
    fifo_blocks,
    init_blocks,
    interrupt_mask,
    power,
    snoop_blocks,
    snoop_results,
    start_blocks,
    unused_blocks,
)
from synthesis.encode.data import (
    expected_output,
    fifo_streams,
    input_blocks,
    unload_layers,
)
from synthesis.encode.layers import layer_blocks
from synthesis.encode.memories import bias_blocks, kernel_blocks
from synthesis.encode.numbering import Numbering
from synthesis.encode.writer import RegisterWriter
from synthesis.network import Network
from synthesis.options import EncodeOptions
from synthesis.place import Placement
from synthesis.program import LayerLog, Program
from synthesis.simulate import Activations

if TYPE_CHECKING:
    from synthesis.layer_data import LayerData


def encode(
    network: Network, placement: Placement, activations: Activations, options: EncodeOptions
) -> Program:
    """Return the program of a placed and simulated network."""
    # Here, because these modules import the streams of encode; they leave with their fields.
    from synthesis.summarize.describe import configuration, description
    from synthesis.summarize.memory_log import memory_log
    from synthesis.summarize.statistics import statistics
    from synthesis.summarize.topology import stream_ratio, topology

    chip = network.chip
    writer = RegisterWriter(chip, options.apb_base, options.write_zero_registers)
    numbering = Numbering.of(network, options.repeat_layers)
    configure = tuple(layer_blocks(network, placement, writer, numbering, options))
    if options.zero_unused:
        configure += tuple(unused_blocks(network, writer, numbering))
    configure += tuple(snoop_blocks(network, writer))
    configure += tuple(fifo_blocks(network, writer, options))
    final = network.terminating
    through_fifo = network.input_port.is_fifo
    return Program(
        chip=chip,
        apb_base=options.apb_base,
        groups=network.groups_used,
        express=options.express,
        description=tuple(description(network, options.repeat_layers)),
        power=power(network, options),
        init=tuple(init_blocks(network, writer, numbering, options)),
        kernels=tuple(kernel_blocks(placement.kernel_memory, chip, options)),
        biases=tuple(bias_blocks(placement, chip, options)),
        configure=configure,
        input_text=f"{network.first.in_channels}x"
        f"{network.first.in_dim[0]}x{network.first.in_dim[1]}",
        inputs=()
        if through_fifo
        else tuple(input_blocks(network, options.apb_base, fixed=options.fixed_input)),
        snoop_results=tuple(snoop_results(network, writer)) if options.check_snoop else (),
        start=tuple(start_blocks(network, writer, numbering, options)),
        interrupt_mask=interrupt_mask(network, options),
        control_addresses=tuple(
            options.apb_base + chip.control_address(g, "CTL") for g in network.groups_used
        ),
        expected=expected_output(network, activations.outputs, options.apb_base),
        unload=tuple(unload_layers(network, options.apb_base, options.ready_select)),
        output_count=final.out_channels * final.out_dim[0] * final.out_dim[1],
        output_width=final.output_width,
        softmax_shift=8 - abs(final.weight_bits) if final.weights is not None else 0,
        statistics=statistics(network, placement, options),
        configuration=configuration(network, placement),
        kernel_map=placement.kernel_memory.owner,
        layer_logs=tuple(_layer_logs(network, activations)) if options.keep_layer_logs else (),
        layer_data=_layer_data(network, activations, options),
        fifo=tuple(fifo_streams(network, options.apb_base)) if through_fifo else (),
        result=activations.outputs[network.terminating.index],
        topology=topology(network),
        stream_ratio=stream_ratio(network, options),
        memory_log=tuple(memory_log(network, options)) if options.keep_layer_logs else (),
    )


def _layer_logs(network: Network, activations: Activations) -> Iterator[LayerLog]:
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
    network: Network, activations: Activations, options: EncodeOptions
) -> tuple[LayerData, ...]:
    if not options.keep_layer_data:
        return ()
    from synthesis.summarize.layer_data import layer_data  # only for debugging

    return tuple(layer_data(network, activations, options))
