"""What is stated of a network that was found, each with how it is known."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from ai8xtools.commands.decompile.layers import Rebuilt
from ai8xtools.commands.decompile.network import Reconstruction
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.configuration.keys import mask_text, offset_text
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer
from ai8xtools.values import frozen


class Confidence(StrEnum):
    """How a statement is known, from certain to not at all."""

    REGISTER = "a register says so"
    MEMORY = "stands in memory"
    FLOW = "follows from who writes what is read"
    ASSUMED = "assumed: the words are the same otherwise"


@frozen
class Statement:
    """What is stated of a layer, or of the whole network."""

    subject: str
    text: str
    confidence: Confidence

    def __str__(self) -> str:
        return f"{self.subject}: {self.text} ({self.confidence.value})"


def statements(candidate: Reconstruction, memory: Memory) -> list[Statement]:
    """Return all statements: of the network, then layer by layer."""
    own = [*_of_network(candidate, memory)]
    for one in candidate.layers:
        own += _of_layer(candidate, one)
    return own


def picture(candidate: Reconstruction) -> list[str]:
    """Return a line for each layer: what it reads, what it does, and the sizes."""
    rows = []
    for layer in candidate.network.layers:
        read = (_named(s, "input", "") for s in _sources(candidate, layer))
        size = "x".join(map(str, (layer.in_channels, *layer.in_dim)))
        rows.append((str(layer.index), ", ".join(read), _work(layer), f"{size} -> {_shape(layer)}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    own, read_width, work_width, _ = widths
    return [
        f"  {number:>{own}} <- {read:{read_width}}  {work:{work_width}}  {sizes}"
        for number, read, work, sizes in rows
    ]


def _named(source: int, sample: str, layer: str) -> str:
    if source == DATA_BUFFER:
        return "the rolling buffer"
    return sample if source == NETWORK_INPUT else f"{layer}{source}"


def _work(layer: Layer) -> str:
    parts = []
    if layer.combination:
        parts.append(str(layer.combination))
    if layer.pooling.active:
        rows, columns = layer.pooling.window
        kind = "avg" if layer.pooling.average else "max"
        parts.append(f"{kind} {rows}x{columns}/{layer.pooling.stride[0]}")
    elif layer.pooling.reduces:
        parts.append(f"every {layer.pooling.stride[0]}th")
    kernel = f" {layer.kernel[0]}x{layer.kernel[1]}" if layer.operator.convolves else ""
    flat = "flatten, " if layer.flatten else ""
    parts.append(f"{flat}{layer.operator}{kernel}")
    parts += [str(layer.activation)] if layer.activation else []
    return ", ".join(parts)


def _of_network(candidate: Reconstruction, memory: Memory) -> Iterator[Statement]:
    network, layout = candidate.network, candidate.layout
    shape = "x".join(map(str, network.sample.shape))
    form = "CHW" if layout.layers[0].channels_first else "HWC"
    port = layout.input_port.value
    yield Statement("chip", memory.chip.name, Confidence.REGISTER)
    yield Statement("input", f"{shape} bytes with a sign, {form}, from the {port}",
                    Confidence.REGISTER)  # fmt: skip
    yield Statement("input", "its channels are in the order of the processors", Confidence.ASSUMED)
    if network.buffer is not None:
        size = f"{network.buffer.entries} entries of {network.buffer.channels} channels"
        yield Statement("rolling buffer", f"{size}, zeros at first", Confidence.ASSUMED)
    rounds = memory.control_register("CTL", candidate.layers[0].decoded.config.groups[0])
    yield Statement("average pooling", "rounds" if rounds["average_rounding"] else "truncates",
                    Confidence.REGISTER)  # fmt: skip
    for layer in network.outputs():
        own = layout.layers[layer.index]
        mask, offset = mask_text(own.output_processors or 0), offset_text(own.out_offset or 0)
        place = f"processors {mask}, from {offset} on"
        yield Statement(
            "output", f"{layer}: {_shape(layer)} of {layer.output_width} bits, {place}",
            Confidence.FLOW,
        )  # fmt: skip
    yield Statement("output", "its channels are in the order of the processors", Confidence.ASSUMED)
    yield Statement("names", "layers, model and classes have none in the words; those here are "
                    "made up", Confidence.ASSUMED)  # fmt: skip


def _shape(layer: Layer) -> str:
    return "x".join(map(str, (layer.out_channels, *layer.out_dim)))


def _of_layer(candidate: Reconstruction, one: Rebuilt) -> Iterator[Statement]:
    layer, config = one.layer, one.decoded.config
    subject = str(layer)
    size = "x".join(map(str, (layer.in_channels, *layer.in_dim)))
    yield Statement(subject, f"{layer.operator}, {size} to {_shape(layer)}", Confidence.REGISTER)
    named = [_named(s, "the input", "layer ") for s in _sources(candidate, layer)]
    yield Statement(subject, f"reads {' and '.join(named)}", Confidence.FLOW)
    pooling = layer.pooling
    if pooling.reduces:
        kind = "average" if pooling.average else "maximum"
        window = f"{kind} pooling {pooling.window[0]}x{pooling.window[1]}"
        text = f"{window if pooling.active else 'no pooling'}, stride {pooling.stride[0]}"
        yield Statement(subject, text, Confidence.REGISTER)
    if layer.combination:
        text = f"{layer.operands} operands, {layer.combination}"
        yield Statement(subject, text, Confidence.REGISTER)
    if not layer.has_weights:
        return
    kernel = f"kernel {layer.kernel[0]}x{layer.kernel[1]}, pad {layer.pad[0]}"
    text = f"{kernel}, activation {layer.activation or 'none'}, shift {layer.shift}"
    yield Statement(subject, text, Confidence.REGISTER)
    if layer.weights is not None:
        text = f"{layer.weights.size} weights of {abs(layer.weight_bits)} bits"
        biased = "no bias" if layer.bias is None else f"{len(layer.bias)} biases"
        yield Statement(subject, f"{text}, {biased}", Confidence.MEMORY)
    if config.output.passes > 1:
        yield Statement(subject, f"{layer.out_channels} output channels: zeros behind them in the "
                        "last pass are none", Confidence.ASSUMED)  # fmt: skip
    if layer.flatten and _sources(candidate, layer) == (NETWORK_INPUT,):
        yield Statement(subject, "flattens an image of one column", Confidence.ASSUMED)
    if layer.operator.fully_connected and not layer.flatten:
        yield Statement(subject, "a linear layer, not a 1x1 convolution", Confidence.ASSUMED)


def _sources(candidate: Reconstruction, layer: Layer) -> tuple[int, ...]:
    if layer.sources is not None:
        return layer.sources
    previous = candidate.network.predecessor(layer)
    return (NETWORK_INPUT if previous is None else previous.index,)
