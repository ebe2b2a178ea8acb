"""Recurrent networks on streams: what their program gives is compared with whole windows.

Source: docs/software.md, "Streams of recurrent networks".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.commands.loader.graph_proof import samples_like
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.graph import Int64, StepGraph
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.stateful import Stateful
from ai8xtools.software.operators.storage import laid

_BEGUN = 2
"""Hops of a window after which its states are taken."""


def proven_stream(
    operators: Graph, form: Stateful, steps: StepGraph, sample: Int64, path: str
) -> tuple[Sample, str]:
    """Return the sample [1, ...] as a stream with the results behind it, and how windows compare.

    Each window, begun with the states that the network itself has after some hops, must end with
    the results of the network, byte for byte: else InputError E668. Its first step alone may be
    rounded in another way, since there all products with states are constants.
    """
    count = len(form.early)
    whole = replace(operators, outputs=(*operators.outputs, *form.early))
    hop, rows = form.hop, form.graph.input.shape[2]
    results: list[list[Int64]] = []
    apart = 0
    for one in samples_like(sample[0]):
        values = [np.asarray(value).astype(np.int64) for value in
                  passes.results(whole, one[None].astype(np.float64))]  # fmt: skip
        expected, early = [laid(value) for value in values[:-count]], values[-count:]
        stream = laid(form.sample(one[None]))
        states = np.concatenate([state.ravel() for state in early])
        found = streamed(steps, stream[_BEGUN * hop :], rows, hop, states)
        if not all(map(np.array_equal, found, (value.ravel() for value in expected))):
            raise InputError(
                "E668", "the program generated from the graph computes something else", path,
                "Leave --stateful out, or report it.",
            )  # fmt: skip
        found = streamed(steps, stream, rows, hop, np.zeros_like(states))
        results.append([a.reshape(b.shape) for a, b in zip(found, expected, strict=True)])
        apart = max(apart, *(int(np.abs(a - b).max()) for a, b in
                             zip(results[-1], expected, strict=True)))  # fmt: skip
    told = f"A stream as long as the window gives the results of {len(results)} windows"
    told += f" but for {apart}: the first step is rounded like the others" if apart else ""
    maps = (value.transpose(2, 0, 1) for value in results[0])
    return Sample(laid(form.sample(sample)).transpose(2, 0, 1), (*maps,)), told


def streamed(steps: StepGraph, stream: Int64, rows: int, hop: int, states: Int64) -> list[Int64]:
    """Return the results behind all rows [row, column, channel] of a stream, of which each run
    reads some; `states` are those before."""
    kept, results = states.copy(), []
    for end in range(rows, len(stream) + 1, hop):
        results = execute(steps, stream[end - rows : end], kept)
    return results
