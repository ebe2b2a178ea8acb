"""Put the parts together."""

from __future__ import annotations

from ai8xtools.synthesis.encode.control import (
    fifo_blocks,
    init_blocks,
    interrupt_mask,
    power,
    resume_blocks,
    snoop_blocks,
    snoop_results,
    start_blocks,
    unused_blocks,
)
from ai8xtools.synthesis.encode.data import (
    expected_output,
    fifo_streams,
    input_blocks,
    unload_layers,
)
from ai8xtools.synthesis.encode.layers import layer_blocks
from ai8xtools.synthesis.encode.memories import bias_blocks, kernel_blocks
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.writer import RegisterWriter
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.program import EarlyExit, Program
from ai8xtools.synthesis.simulate import Activations
from device import Chip


def encode(
    network: Network,
    placement: Placement,
    activations: Activations,
    chip: Chip,
    options: EncodeOptions,
) -> Program:
    """Return the program of a placed and simulated network."""
    mapped = map_network(network, placement.layout, chip)
    return _encode(mapped, placement, activations, options)


def _encode(
    network: MappedNetwork, placement: Placement, activations: Activations, options: EncodeOptions
) -> Program:
    chip = network.chip
    writer = RegisterWriter(chip, options.apb_base, options.write_zero_registers)
    numbering = Numbering.of(network.network, chip, options.place.repeat_layers)
    configure = tuple(layer_blocks(network, placement, writer, numbering, options))
    if options.zero_unused:
        configure += tuple(unused_blocks(network, writer, numbering))
    configure += tuple(snoop_blocks(network, writer))
    configure += tuple(fifo_blocks(network, writer, options))
    final = network.terminating
    through_fifo = network.input_port.is_fifo
    unload = tuple(unload_layers(network, options.apb_base, options.ready_select))
    early = None
    if network.exit is not None and network.exit.exit_margin is not None:
        resume = tuple(resume_blocks(network, network.exit, writer, numbering, options))
        early = EarlyExit(network.exit.exit_margin, unload[0], resume)
        unload = unload[1:]
    return Program(
        chip=chip,
        apb_base=options.apb_base,
        groups=network.groups_used,
        express=options.express,
        power=power(network, options),
        init=tuple(init_blocks(network, writer, numbering, options)),
        kernels=tuple(kernel_blocks(placement.kernel_memory, chip, options)),
        biases=tuple(bias_blocks(placement, chip, options)),
        configure=configure,
        inputs=()
        if through_fifo
        else tuple(input_blocks(network, options.apb_base, fixed=options.fixed_input)),
        snoop_results=tuple(snoop_results(network, writer)) if options.check_snoop else (),
        start=tuple(start_blocks(network, writer, numbering, options)),
        interrupt_mask=interrupt_mask(network, options),
        expected=expected_output(network, activations.outputs, options.apb_base),
        unload=unload,
        output_count=final.out_channels * final.out_dim[0] * final.out_dim[1],
        output_width=final.output_width,
        softmax_shift=8 - abs(final.weight_bits) if final.weights is not None else 0,
        fifo=tuple(fifo_streams(network, options.apb_base)) if through_fifo else (),
        exit=early,
    )
