"""The stage as a whole: order, weights, sample, layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ai8xtools.checkpoint import CheckpointError
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    diagnostics_of,
    has_errors,
    refuse_errors,
)
from ai8xtools.diagnostics.options import no_effect
from ai8xtools.synthesis.facts import Fact, blocked
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import DataBuffer, Layer, Network, Tensor
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description
from ai8xtools.synthesis.resolve.layers import LayerBuilder
from ai8xtools.synthesis.resolve.layout import fixed_layout
from ai8xtools.synthesis.resolve.sample import (
    folded,
    other_than_of_data_set,
    progressing,
    progression,
    random_sample,
    read_sample,
    sample_path,
    seen_by_camera,
)
from ai8xtools.synthesis.resolve.sections import check_sections
from ai8xtools.synthesis.resolve.sequence import execution_order, simulated_order
from ai8xtools.synthesis.resolve.skipping import without_first_layers
from ai8xtools.synthesis.resolve.tensors import LayerTensors
from ai8xtools.synthesis.resolve.weights import layer_tensors
from ai8xtools.values import frozen
from device import Chip


@frozen
class Parts:
    """What a network is put together from, as far as it is known.

    `order` of execution and `simulated` are those of the file unless they are `ordered`; None
    stands for a sample that cannot be read. `problems` are the complaints about all of this.
    """

    description: Description
    options: ResolveOptions
    order: tuple[int, ...]
    simulated: tuple[int, ...]
    ordered: bool
    tensors: Mapping[int, LayerTensors]
    sample: Tensor | None
    problems: tuple[Diagnostic, ...]


def resolve(
    description: Description, chip: Chip | None, options: ResolveOptions
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network, what is fixed of its layout, and warnings.

    Without a chip, nothing is said of layers that a chip may not have. Raises DiagnosticError with
    what is wrong with the parts of the network, or else with its layers.
    """
    parts = gather(description, chip, options)
    refuse_errors(parts.problems)
    layers, problems = build_layers(parts)
    complaints = (*parts.problems, *problems)
    refuse_errors(complaints)
    network = network_of(parts, layers, parts.order, parts.simulated)
    return network, layout_of(parts, layers), complaints


def gather(description: Description, chip: Chip | None, options: ResolveOptions) -> Parts:
    """Find the order of the layers, their weights and the sample."""
    problems = list(description.warnings)
    description = without_first_layers(description, options.skip_yaml_layers, problems)
    problems += _too_many_layers(description, chip) if chip is not None else ()
    problems += _unknown_layers(description, options)
    order, simulated = _orders(description, chip, options, problems)
    ordered = not has_errors(problems)
    problems += check_sections(description, chip)
    tensors = _tensors(description, chip, options, problems)
    sample = _sample(description, options, problems)
    return Parts(description, options, order, simulated, ordered, tensors, sample, tuple(problems))


def build_layers(parts: Parts) -> tuple[tuple[Layer, ...], tuple[Diagnostic, ...]]:
    """Return the layers by index, up to one that has no size, and the complaints about them."""
    assert parts.sample is not None
    problems: list[Diagnostic] = []
    builder = LayerBuilder(
        parts.description,
        parts.options,
        parts.sample,
        parts.tensors,
        parts.order,
        _data_buffer(parts.description),
        problems,
    )
    return builder.layers(), tuple(problems)


def network_of(
    parts: Parts,
    layers: tuple[Layer, ...],
    order: tuple[int, ...],
    simulated: tuple[int, ...],
) -> Network:
    """Put a network of some of the layers together."""
    assert parts.sample is not None
    description = parts.description
    return Network(
        arch=description.get("arch"),
        place=description.place,
        layers=layers,
        order=order,
        simulated=simulated,
        sample=parts.sample,
        sample_file=sample_path(description, parts.options),
        buffer=_data_buffer(description),
        reshapes_inputs=parts.options.reshape_inputs,
        named_files={
            key: str(description.get(key))
            for key in ("dataset", "weights", "bias")
            if key in description
        },
        places={key: entry.place for key, entry in description.entries.items()},
    )


def layout_of(parts: Parts, layers: Sequence[Layer]) -> Layout:
    """Return what is fixed of the layout of some of the layers."""
    assert parts.sample is not None
    has_bias = any(t.bias is not None for t in parts.tensors.values())
    return fixed_layout(
        parts.description, parts.options, layers, parts.order, parts.sample, file_has_bias=has_bias
    )


def _orders(
    description: Description, chip: Chip | None, options: ResolveOptions, problems: list[Diagnostic]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of execution and simulation; with a complaint that of the file."""
    plain = tuple(range(len(description.layers)))
    if has_errors(problems):
        return plain, plain
    order = execution_order(description, chip, options, problems)
    if has_errors(problems):
        return plain, plain
    simulated = simulated_order(description, order, problems)
    return (plain, plain) if has_errors(problems) else (order, simulated)


def _tensors(
    description: Description, chip: Chip | None, options: ResolveOptions, problems: list[Diagnostic]
) -> dict[int, LayerTensors]:
    """Return the tensors by layer; without the ones that a complaint is about.

    Nothing follows from those of another network.
    """
    complaints: list[Diagnostic] = []
    try:
        tensors = layer_tensors(description, chip, options, complaints)
    except (DiagnosticError, CheckpointError) as refusal:
        complaints += diagnostics_of(refusal)
        tensors = {}
    if Fact.TENSORS in blocked(complaints):
        complaints, tensors = [p for p in complaints if Fact.TENSORS in p.effects.blocks], {}
    problems += complaints
    return tensors


def _sample(
    description: Description, options: ResolveOptions, problems: list[Diagnostic]
) -> Tensor | None:
    """Return the sample, or None with a complaint."""
    in_memory: Tensor | None = options.sample
    if in_memory is None:
        in_memory = random_sample(description, options, problems)
    try:
        sample = read_sample(description, options) if in_memory is None else in_memory
    except DiagnosticError as refusal:
        problems += refusal.diagnostics
        return None
    problems += other_than_of_data_set(sample, description, options)
    sample = folded(seen_by_camera(sample, options), description)
    repeated = progression(sample, options)
    return progressing(sample, repeated) if repeated else sample


def _data_buffer(description: Description) -> DataBuffer | None:
    """Return the rolling buffer; the first one if there are several."""
    for section in description.get("data_buffer", ()):
        entries, width = section.get("dim")
        return DataBuffer(section.get("name"), section.get("channels"), entries, width)
    return None


def _unknown_layers(description: Description, options: ResolveOptions) -> list[Diagnostic]:
    """Lists of layers in options should name layers that exist."""
    last = len(description.layers) - 1
    return [
        no_effect(option, f"on layer {index}, the last layer is {last}")
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
