"""The stage as a whole: order, weights, sample, layers."""

from __future__ import annotations

from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Place, Severity
from synthesis.network import DataBuffer, Delivery, Network
from synthesis.options import ResolveOptions
from synthesis.parse import Description, Section
from synthesis.resolve.layers import LayerBuilder
from synthesis.resolve.sample import progressing, progression, read_sample, sample_path
from synthesis.resolve.sequence import execution_order, simulated_order
from synthesis.resolve.weights import layer_tensors

_UNSUPPORTED_KEYS = ("in_channel_skip",)


def resolve(
    description: Description, chip: Chip, options: ResolveOptions
) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network and warnings; raise DiagnosticError with every problem found."""
    problems = list(description.warnings)
    problems += _unsupported(description)
    problems += _too_many_layers(description, chip)
    problems += _unknown_layers(description, options)
    _stop_at_errors(problems)
    order = execution_order(description, chip, options, problems)
    _stop_at_errors(problems)
    simulated = simulated_order(description, order, problems)
    _stop_at_errors(problems)
    tensors = layer_tensors(description, chip, options, problems)
    sample = read_sample(description, options)
    made = progression(sample, options)
    if made:
        sample = progressing(sample, made)
    _stop_at_errors(problems)
    buffer = _data_buffer(description)
    builder = LayerBuilder(description, options, sample, tensors, order, buffer, problems)
    layers = builder.layers()
    _stop_at_errors(problems)
    network = Network(
        chip,
        description.get("arch"),
        description.place,
        layers,
        order,
        simulated,
        sample,
        sample_path(description, options),
        options.input_port,
        options.allow_streaming,
        any(t.bias is not None for t in tensors.values()),
        "output_map" in description,
        description.get("snoop"),
        buffer,
        tuple(_delivery(section) for section in description.get("unload", ())),
        made,
        options.input_split,
    )
    return network, tuple(problems)


def _data_buffer(description: Description) -> DataBuffer | None:
    """Return the rolling buffer; the first one if there are several."""
    for section in description.get("data_buffer", ()):
        entries, width = section.get("dim")
        return DataBuffer(section.get("name"), section.get("channels"), entries, width)
    return None


def _delivery(section: Section) -> Delivery:
    return Delivery(
        section.get("processors"),
        section.get("channels"),
        section.get("dim"),
        section.get("offset"),
        section.get("width", 8),
        section.get("write_gap", 0),
    )


def _stop_at_errors(problems: list[Diagnostic]) -> None:
    if any(p.severity is Severity.ERROR for p in problems):
        raise DiagnosticError(problems)


def _unsupported(description: Description) -> list[Diagnostic]:
    """Name what the language knows and this version does not do yet."""
    remedy = "This version of the loader does not support it yet; see README.md."
    return [
        layer.error("E290", f"'{key}' is not supported", key, remedy=remedy)
        for layer in description.layers
        for key in _UNSUPPORTED_KEYS
        if layer.get(key, False) not in (False, (0, 0), 0)
    ]


def _unknown_layers(description: Description, options: ResolveOptions) -> list[Diagnostic]:
    """Lists of layers in options should name layers that exist."""
    last = len(description.layers) - 1
    return [
        Diagnostic(
            "W224",
            f"names layer {index}, the last layer is {last}",
            Place(option=option),
            severity=Severity.WARNING,
        )
        for option, layers in (
            ("--no-bias", options.no_bias or ()),
            ("--streaming-layers", options.streaming_layers),
        )
        for index in sorted(layers)
        if not 0 <= index <= last
    ]


def _too_many_layers(description: Description, chip: Chip) -> list[Diagnostic]:
    """The chip has registers for a fixed number of layers."""
    return [
        layer.error(
            "E209",
            f"sequence {layer.get('sequence', layer.index)} is beyond the last layer "
            f"{chip.max_layers - 1} of {chip.name}",
            "sequence",
            remedy="Merge layers: pooling and combining share one with a convolution.",
        )
        for layer in description.layers
        if layer.get("sequence", layer.index) >= chip.max_layers
    ]
