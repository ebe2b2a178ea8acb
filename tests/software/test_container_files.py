"""Containers of random networks: what their records state, and what the C reader tells of them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.nodes import Graph, graph_of
from ai8xtools.quantization.lowbit import SIGNED
from ai8xtools.software.container import run, unpack
from ai8xtools.software.container.from_graph import container_of, memory_of, planned
from ai8xtools.software.container.records import (
    NONE,
    Container,
    Element,
    Flag,
    Follow,
    LayerRecord,
    Op,
    Tensor,
)
from ai8xtools.software.container.soundness import intermediates, network_inputs
from ai8xtools.software.graph import Copy
from ai8xtools.software.lower import lower
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import compiler
from tests.software.containers import KINDS, RECIPES, made
from tests.software.graphs import GRAPHS, results_of, samples_of
from tests.software.networks import random_network
from tests.software.nnb_in_c import build_driver, statuses

_SUMS = (Op.CONV, Op.DEPTHWISE, Op.FC, Op.CONV_TRANSPOSED)


def _written(seed: int) -> tuple[Network, bytes] | None:
    """Return a random network and its container; None if containers have no layer for a step."""
    network, rounding = random_network(seed), seed % 3 == 0
    graph = lower(network, average_rounding=rounding)
    outputs = network.outputs()
    if len(outputs) > 1:
        return None
    expected = simulate(network, average_rounding=rounding).outputs[outputs[0].index]
    try:
        return network, container_of(graph, network.sample, expected, None)
    except InputError as refused:
        assert refused.code == "E924"
        return None


@pytest.fixture(scope="module")
def written() -> list[tuple[Network, bytes]]:
    """Return networks with their containers."""
    found = [_written(seed) for seed in range(200, 290)]
    some = [one for one in found if one is not None]
    assert len(some) > 0.6 * len(found)
    return some


def _of_operators(graph: Graph) -> bytes:
    """Return the container of a graph of one output."""
    steps, sample = Lowering(graph, "net").graph(), laid(samples_of(graph)[0])
    (expected,) = results_of(graph, samples_of(graph)[0])
    units = {steps.input: 3, steps.outputs[0]: -5}
    return container_of(steps, sample.transpose(2, 0, 1), expected.transpose(2, 0, 1), None, units)


@pytest.fixture(scope="module")
def of_operators() -> list[tuple[Graph, bytes]]:
    """Return graphs, each of one output, with their containers."""
    graphs = [graph_of(graph.input, [output], [output]) for make in GRAPHS.values()
              for graph in [make()] for output in graph.outputs]  # fmt: skip
    return [(graph, _of_operators(graph)) for graph in graphs]


def test_containers_compute_what_operators_do(of_operators: list[tuple[Graph, bytes]]) -> None:
    ops = set()
    for graph, blob in of_operators:
        container = unpack(blob)
        output = container.tensors[container.layers[-1].output]
        assert (container.tensors[0].fraction, output.fraction) == (3, -5)
        for sample in samples_of(graph):
            (expected,) = results_of(graph, sample)
            found = run(container, laid(sample).astype(np.int64))
            assert found.ravel().tolist() == expected.ravel().tolist()
        ops |= {Op(layer.op) for layer in container.layers}
    assert {Op.ELEMENTS, Op.GATHER, Op.CONV_TRANSPOSED, Op.MAXPOOL, Op.DEPTHWISE} < ops


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip("no C compiler")
    return build_driver(tmp_path_factory.mktemp("nnb"), ("-O0",))


def test_c_computes_what_operators_do(
    of_operators: list[tuple[Graph, bytes]], program: Path, tmp_path: Path
) -> None:
    found = statuses(program, [blob for _, blob in of_operators], tmp_path)
    assert found == ["ok ok"] * len(of_operators)


def test_test_vectors_are_sample_and_output_of_the_network(
    written: list[tuple[Network, bytes]],
) -> None:
    for network, blob in written:
        container = unpack(blob)
        assert container.vectors is not None and len(container.vectors.inputs) == 1
        pixels = network.sample.transpose(1, 2, 0)
        assert container.vectors.inputs[0] == pixels.astype(np.int8).tobytes()
        output = container.tensors[container.layers[-1].output]
        kind = {Element.INT8: "<i1", Element.INT32: "<i4"}[Element(output.type)]
        assert container.vectors.outputs[0] == run(container, pixels).astype(kind).tobytes()


def _stored_bits(tensor: Tensor) -> int:
    if tensor.type != Element.PACKED:
        return Element(tensor.type).bits
    return next(bits for bits, one in SIGNED.items() if one.identifier == tensor.encoding)


def _expected_fraction(container: Container, layer: LayerRecord, fractions: dict[int, int]) -> int:
    given = fractions[container.inputs_of(layer)[0]]
    if layer.op not in _SUMS:
        return given
    found = given + container.tensors[layer.weights].fraction - layer.out_shift
    return min(max(found, -128), 127)


def test_fraction_bits_follow_the_arithmetic(written: list[tuple[Network, bytes]]) -> None:
    """Data have 7 bits behind the point; weights that select channels have none."""
    checked = 0
    for _, blob in written:
        container = unpack(blob)
        fractions = {network_inputs(container)[0]: 7}
        assert container.tensors[network_inputs(container)[0]].fraction == 7
        for number, layer in enumerate(container.layers):
            expected = _expected_fraction(container, layer, fractions)
            stated = container.tensors[layer.output].fraction
            behind = container.layers[number + 1] if number + 1 < len(container.layers) else None
            moved = layer.op == Op.COPY or (behind is not None and behind.op == Op.COPY)
            fractions[layer.output] = stated
            if not moved:
                checked += 1
                assert stated == expected
            if layer.op in _SUMS and layer.bias != NONE:
                bias, weights = container.tensors[layer.bias], container.tensors[layer.weights]
                assert bias.fraction + layer.bias_shift == 7 + weights.fraction
    assert checked > 50


def test_weights_and_biases_take_the_fewest_bytes(written: list[tuple[Network, bytes]]) -> None:
    packed = 0
    for network, blob in written:
        container = unpack(blob)
        trained = {layer.weight_bits for layer in network.layers if layer.has_weights}
        for layer in container.layers:
            if layer.op not in _SUMS:
                continue
            weights = container.tensors[layer.weights]
            packed += weights.type == Element.PACKED
            assert weights.type == Element.INT8 or min(trained) < 8
            assert weights.size_bytes <= weights.elements
            if layer.bias == NONE:
                continue
            bias = container.tensors[layer.bias]
            kind = {8: np.int8, 16: np.int16, 32: np.int32}[_stored_bits(bias)]
            values = np.frombuffer(container.constant(bias), kind).astype(np.int64)
            assert values.any()
            assert bias.type == Element.INT8 or abs(values).max() >= 128
            assert bias.type != Element.INT32 or abs(values).max() >= 1 << 15
    assert packed


def test_plans_give_every_tensor_a_place_that_nobody_else_uses(
    written: list[tuple[Network, bytes]],
) -> None:
    for _, blob in written:
        container = unpack(blob)
        inside = intermediates(container)
        last = container.tensors[container.layers[-1].output]
        assert bool(container.header.flags & Flag.PLAN) == bool(inside)
        assert memory_of(blob) == container.header.arena_bytes + last.size_bytes
        owner: dict[tuple[int, int], int] = {}
        alive: dict[int, int] = {}
        for number in inside:
            one = container.tensors[number]
            uses = [n for n, layer in enumerate(container.layers)
                    if number in (*container.inputs_of(layer), layer.output)]  # fmt: skip
            assert (one.first, one.last) == (min(uses), max(uses))
            for moment in range(one.first, one.last + 1):
                alive[moment] = alive.get(moment, 0) + -(-one.size_bytes // 16) * 16
                for byte in range(one.arena, one.arena + one.size_bytes):
                    assert owner.setdefault((moment, byte), number) == number
        most = max(alive.values(), default=0)
        assert most <= container.header.arena_bytes <= 1.3 * most
        assert planned(container).header.arena_bytes == container.header.arena_bytes


def test_layers_are_those_of_the_network(written: list[tuple[Network, bytes]]) -> None:
    for network, blob in written:
        container = unpack(blob)
        sums = [layer for layer in container.layers if layer.op in _SUMS]
        chosen = [layer for layer in sums if container.tensors[layer.weights].fraction == 0]
        own = [layer for layer in network.layers if layer.has_weights]
        assert len(sums) - len(chosen) == len(own)
        for layer, one in zip([s for s in sums if s not in chosen], own, strict=True):
            assert layer.groups == one.groups
            wide = container.tensors[layer.output].type == Element.INT32
            if one.activation is None and not wide:
                assert layer.follow in (Follow.NOTHING, Follow.RELU, Follow.ABS)
            elif not wide and one.activation is not None:
                assert layer.follow != Follow.NOTHING


def test_nothing_is_copied_behind_the_step_that_makes_the_output(
    written: list[tuple[Network, bytes]],
) -> None:
    seen = set()
    for network, blob in written:
        graph, container = lower(network), unpack(blob)
        own = bool(graph.steps) and graph.steps[-1].target == graph.outputs[0]
        moves = own and isinstance(graph.steps[-1], Copy)
        assert (container.layers[-1].op == Op.COPY) == (not own) or moves
        seen.add((own, moves))
    assert (True, False) in seen


def test_fields_for_tiles_and_rings_are_zero_where_nothing_is_planned(
    written: list[tuple[Network, bytes]],
) -> None:
    """So other readers find no wish in them."""
    for _, blob in written[:5]:
        for layer in unpack(blob).layers:
            assert (layer.tile_rows, layer.tile_columns, layer.channel_group) == (0, 0, 0)
            assert (layer.ring, layer.ring_bytes, layer.reserved, layer.rest) == (0, 0, 0, bytes(8))


def test_c_tells_of_files_what_they_state(
    written: list[tuple[Network, bytes]], program: Path, tmp_path: Path
) -> None:
    blobs = [blob for _, blob in written]
    blobs += [made(recipe, kind) for recipe in RECIPES for kind in KINDS]
    found = statuses(program, blobs, tmp_path, "tell")
    names = [field.name for field in fields(Tensor) if field.name != "reserved"]
    for blob, told in zip(blobs, found, strict=True):
        container = unpack(blob)
        output = container.layers[-1].output
        made_bytes = container.tensors[output].size_bytes
        vectors = len(container.vectors.inputs) if container.vectors else 0
        numbers = [memory_of(blob) - made_bytes, network_inputs(container)[0], output, vectors]
        for tensor in container.tensors:
            numbers += [int(getattr(tensor, name)) for name in names]
        assert [*map(int, told.split())] == numbers
