"""Where the time goes: cycles of the layers with their reason, and the time line of an inference.

Source: docs/hardware/execution.md, "Latency"; docs/hardware/memory.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.report.values import LayerCost, Part
from ai8xtools.synthesis.summarize.latency import latency_terms, layer_cycles
from ai8xtools.synthesis.summarize.statistics import layer_operations
from ai8xtools.synthesis.summary import LatencyTerms
from device.chip import WORD_BYTES
from device.times import copying, inference


def layer_costs(network: MappedNetwork, placement: Placement) -> dict[int, LayerCost]:
    """Return the cost of every executed layer of a network that has found its places."""
    return {
        layer.index: _cost(layer, latency_terms(layer, placement.kernels[layer.index]))
        for layer in map(network.layer, network.simulated)
    }


def _cost(layer: MappedLayer, terms: LatencyTerms) -> LayerCost:
    cycles = layer_cycles(layer, terms)
    products = layer_operations(layer).macc
    return LayerCost(cycles, products / max(cycles, 1), _reason(layer, terms))


def _reason(layer: MappedLayer, terms: LatencyTerms) -> str:
    """Return on what most cycles of a layer are spent."""
    spent = {"reading": 0, "computing": 0, "delivering": 0, "skipping": 0}
    kinds = {
        "row of outputs": "computing",
        "deliver a pixel": "delivering",
        "kernels in front": "skipping",
    }
    for name, count, cycles in terms.summands:
        spent[kinds.get(name, "reading")] += count * cycles
    match max(spent, key=spent.__getitem__):
        case "computing":
            outputs = dict(terms.quantities)["kernels of a pass"]
            return f"{outputs} kernels a pixel, one after the other{_passes(layer)}"
        case "delivering":
            return f"delivering the results{_passes(layer)}"
        case "skipping":
            return "passing over the kernels of the layers in front of it"
        case _:
            return f"reading its input{_window(layer)}{_passes(layer)}"


def _passes(layer: MappedLayer) -> str:
    count = layer.in_passes
    return f", in {count} passes because of its {layer.in_channels} channels" if count > 1 else ""


def _window(layer: MappedLayer) -> str:
    """Return why a pixel is read more than once."""
    rows, columns = layer.pooling.window
    pooled = f" to pool {rows}x{columns}" if layer.pooling.active else ""
    return pooled + (f" of {layer.operands} operands" if layer.operands > 1 else "")


def time_line(
    program: Program, network: MappedNetwork, costs: Mapping[int, LayerCost]
) -> Iterator[Part]:
    """Yield what happens after power-up and during an inference."""
    kernels = sum(block.words.size for block in program.kernels)
    biases = sum(block.values.size for block in program.biases)
    inputs = sum(block.words.size for block in program.inputs)
    pushed = sum(stream.words.size for stream in program.fifo)
    entry = "input through the FIFO, while layers run" if pushed else "load input"
    outputs = sum(-(-layer.size_bytes // WORD_BYTES) for layer in program.unload)
    power = program.power

    def copied(words: int, mhz: float = power.loading_mhz) -> float:
        return copying(words, network.chip, mhz).value

    yield Part("load weights", copied(kernels), once=True)
    if biases:
        yield Part("load biases", copied(biases), once=True)
    yield Part(entry, copied(inputs) + copied(pushed, power.clock_mhz))
    for layer in map(network.layer, network.simulated):
        time = inference(costs[layer.index].cycles, power.clock_mhz, pipelined=power.pipelined)
        yield Part("", time.value, layer.index)
    yield Part("unload", copied(outputs))
