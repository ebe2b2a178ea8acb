"""Recurrent networks on streams: programs with --stateful against their steps in Python.

`make measure WHAT=software-streams` compares 10,000 hops; the Python side takes other hops.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ai8xtools.commands.software.streams import proven_stream
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph, Node, constant, graph_of, make
from ai8xtools.frontends.graph.operators import Conv, Gemm, Input, Reshape, Slice, Transpose
from ai8xtools.frontends.graph.recurrent import GATES, Recurrence
from ai8xtools.quantization.integers import BITS, WIDE, measured
from ai8xtools.quantization.operators import PASSES, quantized
from ai8xtools.software import build
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.stateful import Stateful, stateful
from ai8xtools.software.operators.storage import laid
from ai8xtools.software.profile import read_profile
from tests.software.streams import MOST, results_of

STEPS, FEATURES, HIDDEN = 12, 3, 5
FORMS = ("gru", "lstm", "two layers", "behind a convolution", "15 bits")


def network(form: str) -> Graph:
    """Return a recurrent network of whole numbers that ends with its last state."""
    random = np.random.default_rng(len(form))
    node = source = make("in", Input((1, FEATURES, STEPS)))
    if form == "behind a convolution":
        weights = constant(random.normal(0, 0.5, (FEATURES, FEATURES, 3)))
        node = make("front", Conv((1,), ((0, 0),), (1,)), node, weights)
    node = make("in", Transpose((2, 0, 1)), node)
    kind = "lstm" if form == "lstm" else "gru"
    for number in range(2 if form == "two layers" else 1):
        node = _layer(f"layer {number}", kind, node, random)
    steps = node.shape[0]
    last = make("last", Slice((steps - 1, 0, 0), (1, 1, 1), (1, 1, HIDDEN)), node)
    last = make("last", Reshape((1, HIDDEN)), last)
    end = make("end", Gemm(), last, constant(random.normal(0, 0.5, (4, HIDDEN))))
    graph = passes.improved(graph_of(source, [source], [end]), PASSES)
    samples = [random.uniform(-1, 1, source.shape) for _ in range(8)]
    bits = WIDE if form == "15 bits" else BITS
    return quantized(graph, measured(graph, samples), bits).graph


def _layer(place: str, kind: str, node: Node, random: np.random.Generator) -> Node:
    gates = GATES[kind] * HIDDEN
    shapes = (1, gates, node.shape[-1]), (1, gates, HIDDEN), (1, 2 * gates)
    weights = [random.normal(0, 0.6, one) for one in shapes]
    first = [np.zeros((1, 1, HIDDEN))] * (1 + (kind == "lstm"))
    states = Recurrence(place, kind, (*weights, *first), settings=(("linear_before_reset", 1),))
    return make(place, Reshape((node.shape[0], 1, HIDDEN)), states.states(node))


def form_of(graph: Graph, hop: int) -> tuple[Stateful, StepGraph]:
    """Return a network whose states go on, and its steps."""
    form = stateful(graph, hop)
    lowering = Lowering(form.graph, "net")
    assert not lowering.refusals
    return form, lowering.graph()


def changed_products(form: str) -> int:
    """Return the products of a call with one new row of which an operand changed: those of its step
    in each layer, and those behind it."""
    gates = GATES["lstm" if form == "lstm" else "gru"] * HIDDEN
    data, wide = (2, 3) if form == "15 bits" else (1, 1)  # products of parts
    products = gates * (data * FEATURES + wide * HIDDEN) + wide * 4 * HIDDEN
    products += gates * 2 * HIDDEN if form == "two layers" else 0
    return products + (FEATURES * FEATURES * 3 if form == "behind a convolution" else 0)


def judge(form: str, folder: Path, hops: int, flags: tuple[str, ...] = ("-O1",)) -> str | None:
    """Return what is wrong with a stream of single rows; None if nothing is.

    Its results in C are compared with those of hops of two rows in Python.
    """
    graph = network(form)
    kept, steps = form_of(graph, 1)
    random = np.random.default_rng(7)
    window = random.integers(-128, 128, (1, FEATURES, STEPS))
    sample, _ = proven_stream(graph, kept, steps, window,
                                 "net")  # fmt: skip
    rows = kept.graph.input.shape[2]
    stream = random.integers(-128, 128, (rows - 1 + hops, FEATURES))
    built = build.streamed(steps, read_profile("stm32l4r5"), 1, None)
    data = stream.astype(np.int8).tobytes()
    got, macs = results_of(built, sample, data, folder / form.replace(" ", "-"), FEATURES, flags)
    twice, pairs = form_of(graph, 2)
    rows = twice.graph.input.shape[2]
    state = np.zeros(twice.state.shape[1], np.int64)
    wanted = [execute(pairs, laid(stream[end - rows : end].T[None]), state)[0]
              for end in range(rows, len(stream) + 1, 2)]  # fmt: skip
    width = steps.tensors[steps.outputs[0]].bytes_per_value
    found = np.frombuffer(got, f"<i{width}").reshape(hops, -1)[rows - (rows - 2) - 1 :: 2]
    if not np.array_equal(found[: len(wanted)], np.array(wanted)) or len(found) < len(wanted):
        return f"{form}: results differ"
    changed = changed_products(form)
    if macs > MOST * changed:
        return f"{form}: {macs} products, an operand changed of {changed}"
    return None


def main(hops: int) -> int:
    """Compare long streams; the exit status is 1 if one differs."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            wrong = judge(form, Path(folder), hops)
            failed += wrong is not None
            print(wrong or f"{form}: {hops:,} hops as in Python", flush=True)
    return int(failed > 0)
