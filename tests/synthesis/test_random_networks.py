"""Random legal networks: accepted, readable from memory, and computed alike by four parties.

The stages, the emulated accelerator (from words alone), torch's operators and ai8x.py agree on
every value. `make properties` tries many more networks than the default suite.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, event, example, given, settings
from numpy.typing import NDArray

import ai8x
from ai8xtools.diagnostics import DiagnosticError, Severity
from ai8xtools.synthesis import simulate as stages
from ai8xtools.synthesis.check import CONSTRAINTS
from ai8xtools.synthesis.encode.data import loaded_input
from ai8xtools.synthesis.library import input_words
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork, map_network
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement, PlaceOptions, check_streams
from ai8xtools.synthesis.program import Program, with_pattern
from ai8xtools.synthesis.simulate import Activations
from tests.synthesis import ai8x_reference, decoder, reference
from tests.synthesis.counterexamples import COUNTEREXAMPLES
from tests.synthesis.emulated import emulated
from tests.synthesis.loaded import words_of
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.stages import check, encode, place, simulate

FACTOR = float(os.environ.get("AI8X_PROPERTIES", "1"))
"""How many times more networks to try than by default."""
MISPLACED = {entry.code for entry in CONSTRAINTS if entry.test.__module__.endswith("misplaced")}
"""Warnings of layers for which the vendor's words, and so ours, are not what the chip needs."""


def trying(count: int) -> settings:
    """Return settings for so many examples, times what the environment asks for."""
    return settings(
        max_examples=max(1, round(count * FACTOR)),
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
        ],
    )


def known_counterexamples(test: Callable[..., None]) -> Callable[..., None]:
    """Try every network that once failed, too."""
    for drawn in COUNTEREXAMPLES:
        test = example(drawn=drawn)(test)
    return test


@pytest.fixture(autouse=True)
def torch_as_before() -> Iterator[None]:
    """Use one thread, others only cost time with small tensors; leave no trace in ai8x."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def checked(drawn: RandomNetwork, folder: Path) -> MappedNetwork:
    """Return the resolved network after all checks."""
    network, found = drawn.build(folder)
    found = (*found, *check(network))
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise DiagnosticError(errors)
    assert not MISPLACED & {d.code for d in found}
    return network


def encoded(
    drawn: RandomNetwork, folder: Path
) -> tuple[MappedNetwork, Placement, Activations, Program]:
    """Run all stages."""
    network = checked(drawn, folder)
    network.network.validate()
    network.validate()
    placement = place(network, PlaceOptions())
    placement.validate(network.network, network.chip)
    activations = simulate(network, average_rounding=drawn.rounding)
    options = EncodeOptions(average_rounding=drawn.rounding)
    return network, placement, activations, encode(network, placement, activations, options)


def features(drawn: RandomNetwork) -> Iterator[str]:
    """Yield what is special about a network."""
    yield drawn.chip.name
    yield f"input: {drawn.port}"
    for keys, sources in zip(drawn.layers, drawn.sources, strict=True):
        yield f"op: {str(keys['op']).lower()}"
        yield from sorted(set(keys) - {"op", "processors", "out_offset", "output_processors"})
        if len(sources) > 1 and "eltwise" not in keys:
            yield "concatenation"


def test_nearly_all_drawn_networks_are_accepted(tmp_path: Path) -> None:
    accepted, refused = [], []

    @settings(trying(300), phases=[Phase.generate], database=None)
    @given(drawn=random_networks())
    def draw(drawn: RandomNetwork) -> None:
        try:
            place(checked(drawn, tmp_path), PlaceOptions())
            accepted.append(drawn)
        except DiagnosticError as refusal:
            refused.append(str(refusal))

    draw()
    assert len(accepted) >= 0.95 * (len(accepted) + len(refused)), refused
    seen = {feature for drawn in accepted for feature in features(drawn)}
    assert {
        "MAX78000", "MAX78002", "input: fifo", "input: memory", "op: conv2d", "op: conv1d",
        "op: convtranspose2d", "op: none", "max_pool", "avg_pool", "flatten", "groups", "eltwise",
        "concatenation", "streaming", "write_gap", "output_width", "data_format",
    } <= seen  # fmt: skip


@trying(90)
@known_counterexamples
@given(drawn=random_networks())
def test_weights_biases_and_sample_are_what_the_words_hold(
    tmp_path: Path, drawn: RandomNetwork
) -> None:
    network, placement, _, program = encoded(drawn, tmp_path)
    memory, biases = decoder.kernel_memory(program), decoder.bias_memory(program)
    for layer, which in zip(network.layers, drawn.weights_of, strict=True):
        if which is None:
            assert layer.weights is None
            continue
        found = decoder.read_kernels(layer, placement.kernels[layer.index], memory)
        np.testing.assert_array_equal(described(layer, found), wanted_kernel(drawn, layer, which))
        bias = np.zeros(layer.out_channels, np.int64)
        if layer.index in placement.biases:
            skipped = int(
                layer.streaming and layer is network.first and drawn.chip.skips_stream_bias
            )
            where = placement.biases[layer.index]
            bias = decoder.read_bias(layer, where, biases, skipped=skipped)
        np.testing.assert_array_equal(bias, drawn.biases[which])
    if network.input_port.is_fifo:
        read = decoder.read_fifos(network.first, program.fifo)
    else:
        read = decoder.read_input(network.first, program.inputs)
    np.testing.assert_array_equal(read.reshape(drawn.data.shape), drawn.data)


def described(layer: MappedLayer, found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take the weights of the description out of the hardware's kernels, zeros around them."""
    size, dilation = layer.hardware.kernel, layer.dilation
    kept = found
    if layer.operator is Operator.CONV1D and dilation > 1:
        kept = found[:, :, ::dilation] if size[1] == 1 else found[:, :, 3 - layer.kernel[0] :, 1:2]
    assert np.abs(kept).sum() == np.abs(found).sum()
    return kept


def wanted_kernel(drawn: RandomNetwork, layer: MappedLayer, which: int) -> NDArray[np.int64]:
    """Return a layer's drawn weights in the order of the kernel memory."""
    kernel = drawn.kernels[which]
    if layer.depthwise and layer.operator is Operator.CONVTRANSPOSE2D:
        kernel = kernel.swapaxes(0, 1)
    kernel = kernel.reshape((*kernel.shape, 1, 1)[:4])
    if layer.hardware.kernel == (3, 3) and kernel.shape[2:] == (1, 1):  # in or behind a stream
        kernel = np.pad(kernel, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return kernel


@trying(120)
@known_counterexamples
@given(drawn=random_networks())
def test_the_words_alone_lead_to_the_expected_output(tmp_path: Path, drawn: RandomNetwork) -> None:
    network, placement, _, program = encoded(drawn, tmp_path)
    for feature in features(drawn):
        event(feature)
    machine = emulated(program)
    assert machine.wrong == []
    findings = [str(finding) for finding in machine.run.findings]
    # Streams are drawn wherever outputs fit; the loader refuses those that disturb each other.
    shared = [finding for finding in findings if "share data memory" in finding]
    if shared:
        refused = check_streams(network.network, placement, network.chip, PlaceOptions())
        assert "E409" in {d.code for d in refused if d.severity is Severity.ERROR}
    # The layer that resets average pooling reads anything, a spread kernel behind its input.
    # Kernels of another layer may stand in front of those of the first output (a note).
    harmless = ["which was never written", "no layer reads its output with processor"]
    if any(layer.hardware.surplus_words for layer in network.layers):
        harmless.append("overwrites the layer's own input")
    others = [finding for finding in findings if finding not in shared]
    assert [f for f in others if not any(text in f for text in harmless)] == []


@trying(15)
@given(drawn=random_networks())
def test_a_pattern_in_place_of_the_sample_leads_to_what_is_simulated_for_it(
    tmp_path: Path, drawn: RandomNetwork
) -> None:
    network, placement, _, program = encoded(drawn, tmp_path)
    told = loaded_input(network, program)
    assert told is not None
    np.testing.assert_array_equal(told, network.network.sample)
    made = words_of(input_words(network, program), network.network.sample)
    loaded = [block.words for block in (*program.inputs, *program.fifo)]
    np.testing.assert_array_equal(np.concatenate([*made]), np.concatenate(loaded))
    pattern = with_pattern(program)
    told = loaded_input(network, pattern)
    assert told is not None
    changed = map_network(replace(network.network, sample=told), network.layout, network.chip)
    activations = simulate(changed, average_rounding=drawn.rounding)
    options = EncodeOptions(average_rounding=drawn.rounding)
    wanted = encode(changed, placement, activations, options).expected
    assert emulated(replace(pattern, expected=wanted)).wrong == []


@trying(90)
@known_counterexamples
@given(drawn=random_networks())
def test_the_simulation_computes_what_torch_does(tmp_path: Path, drawn: RandomNetwork) -> None:
    network = checked(drawn, tmp_path)
    found = simulate(network, average_rounding=drawn.rounding).outputs
    for index, wanted in enumerate(reference.outputs(drawn)):
        np.testing.assert_array_equal(found[index], wanted, f"layer {index}")


@trying(90)
@known_counterexamples
@given(drawn=random_networks())
def test_the_simulation_computes_what_ai8x_does(tmp_path: Path, drawn: RandomNetwork) -> None:
    network = checked(drawn, tmp_path)
    found = simulate(network, average_rounding=drawn.rounding).outputs
    before: list[NDArray[np.int64]] = []
    for index in range(len(drawn.layers)):
        if ai8x_reference.is_covered(drawn, index):
            operands = reference.operands_of(drawn, index, before)
            wanted = ai8x_reference.layer_output(drawn, index, operands)
            np.testing.assert_array_equal(found[index], wanted, f"layer {index}")
        before.append(found[index])


@trying(60)
@known_counterexamples
@given(drawn=random_networks())
def test_what_is_computed_does_not_depend_on_the_layout(
    tmp_path: Path, drawn: RandomNetwork
) -> None:
    placed, _ = drawn.build(tmp_path)
    network = drawn.without_layout(tmp_path)
    network.validate()
    found = simulate(placed, average_rounding=drawn.rounding).outputs
    again = stages.simulate(network, average_rounding=drawn.rounding).outputs
    for index, output in found.items():
        np.testing.assert_array_equal(again[index], output, f"layer {index}")
