"""Recurrent networks on streams: states go on, results are those of windows, refusals are told."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.software import streams
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.nodes import make
from ai8xtools.frontends.graph.operators import Pad, Reduce, Reduction
from ai8xtools.software.plan.sliding import sliding_plan
from tests.software.compiled import compiler
from tests.software.recurrent_streams import FEATURES, FORMS, STEPS, form_of, judge, network
from tests.software.test_streams import CORE

LATER = pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="make properties")


@pytest.mark.parametrize("form", ["lstm", *(pytest.param(f, marks=LATER) for f in FORMS[2:])])
def test_streams_in_c_go_on_like_their_steps(form: str, tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("needs a C compiler")
    assert judge(form, tmp_path, 40, ("-O0",)) is None


@pytest.mark.parametrize("form", ["gru", "15 bits"])
def test_a_stream_is_compared_with_the_windows_of_its_network(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = network(form)
    made_form, steps = form_of(graph, 3)
    sample = np.random.default_rng(0).integers(-128, 128, (1, FEATURES, STEPS))
    made, told = streams.proven_stream(graph, made_form, steps, sample, "net")
    assert told.startswith("A stream as long as the window gives the results of")
    assert made.input.shape == (FEATURES, STEPS, 1)
    monkeypatch.setattr(streams, "_BEGUN", 1)  # the states of two hops for what follows one
    with pytest.raises(InputError, match="computes something else"):
        streams.proven_stream(graph, made_form, steps, sample, "net")


def test_memory_is_that_of_a_hop_and_the_states() -> None:
    graph = network("behind a convolution")
    form, steps = form_of(graph, 1)
    plan = sliding_plan(steps, CORE, 1, None)
    assert form.graph.input.shape == (1, FEATURES, 3)  # a row of the convolution
    assert form.state.shape == (1, 5) and steps.kept is not None
    assert plan.places[steps.kept].offset + 5 <= plan.arena_bytes
    gates = 3 * 5
    assert plan.macs == gates * (FEATURES + 5) + FEATURES * FEATURES * 3 + 4 * 5  # of one step


@pytest.mark.parametrize(
    ("form", "hop", "said"),
    [
        ("gru", 6, "a hop of 6 does not suit a window of 12 rows"),
        ("gru", 5, "Hops that suit: 1, 2, 3, 4."),
        ("behind a convolution", 3, "need 2 rows before those of a hop"),
        ("behind a convolution", 4, "Hops that suit: 1, 2."),
    ],
)
def test_hops_that_do_not_suit_are_refused(form: str, hop: int, said: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        form_of(network(form), hop)
    (one,) = caught.value.diagnostics
    assert one.code == "E914" and said in f"{one.message} {one.remedy}"


def test_networks_without_such_a_form_are_refused() -> None:
    graph = network("gru")
    states = next(n for n in graph.nodes if n.shape[:1] == (STEPS,) and n.shape[-1] == 5)
    mean = make("mean", Reduce(Reduction.SUM, (0,), False), states)
    with pytest.raises(DiagnosticError, match="is needed for all steps of the window"):
        form_of(replace(graph, outputs=(mean,), nodes=(*graph.nodes, mean)), 2)
    padded = make("pad", Pad(((0, 0), (0, 0), (1, 1))), graph.input)
    with pytest.raises(DiagnosticError, match="no recurrent layer that takes the input step by"):
        form_of(replace(graph, outputs=(padded,), nodes=(graph.input, padded)), 2)
