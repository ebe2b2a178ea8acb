"""What debugging options compute: sums of the passes, needed products, terms of the latency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.check import check_chip_options
from ai8xtools.synthesis.crosscheck import cross_check
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions, SummaryOptions
from ai8xtools.synthesis.place import KernelRange, PlaceOptions
from ai8xtools.synthesis.simulate.operators import accumulate
from ai8xtools.synthesis.simulate.passes import pass_sums
from ai8xtools.synthesis.summarize.latency import latency_terms
from ai8xtools.synthesis.summarize.products import needed_products
from ai8xtools.synthesis.summarize.statistics import statistics
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import place, simulate

CONV: dict[str, Any] = {
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "ReLU",
    "processors": 1,
}
LAYERS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], Chip]] = {
    "plain": ({}, (1, 5, 4), (2, 1, 3, 3), MAX78000),
    "no padding": ({"pad": 0}, (1, 5, 4), (2, 1, 3, 3), MAX78000),
    "one pixel": ({}, (1, 1, 1), (1, 1, 3, 3), MAX78000),
    "two passes": ({"processors": mask(36)}, (72, 3, 4), (5, 72, 3, 3), MAX78000),
    "uneven passes": ({"processors": mask(36)}, (70, 2, 2), (3, 70, 3, 3), MAX78000),
    "depthwise": ({"processors": 15, "groups": 4}, (4, 4, 3), (4, 1, 3, 3), MAX78002),
    "transposed": ({"op": "ConvTranspose2d"}, (1, 3, 4), (2, 1, 3, 3), MAX78000),
    "spread": ({"op": "Conv1d", "kernel_size": 3, "pad": 2, "dilation": 2}, (1, 9), (2, 1, 3),
               MAX78000),
    "flattened": ({"op": "Linear", "kernel_size": None, "pad": None, "flatten": True,
                   "processors": mask(3)}, (3, 2, 4), (5, 24), MAX78000),
    "flattened passes": ({"op": "Linear", "kernel_size": None, "pad": None, "flatten": True,
                          "processors": mask(36)}, (72, 2, 1), (3, 144), MAX78000),
}  # fmt: skip


@pytest.fixture(params=LAYERS)
def network(request: pytest.FixtureRequest, tmp_path: Path) -> MappedNetwork:
    keys, size, shape, chip = LAYERS[request.param]
    text = describe({**CONV, **keys})
    return build(tmp_path, text, sample(*size), [weights(*shape)], chip=chip)[0]


def test_sums_of_the_passes_end_at_the_accumulator(network: MappedNetwork) -> None:
    (layer,) = network.layers
    trace = simulate(network, average_rounding=False, keep_traces=True).traces[0]
    sums = pass_sums(trace.value, layer, layer.in_share)
    assert len(sums) == (layer.flat_passes + 1 if layer.flatten else layer.in_passes)
    assert np.array_equal(sums[-1], trace.accumulator)
    activations = simulate(network, average_rounding=False, keep_traces=True)
    cross_check(network.network, activations)


def test_cross_check_notices_wrong_sums(tmp_path: Path) -> None:
    made, _ = build(tmp_path, describe(CONV), sample(1, 4, 4), [weights(1, 1, 3, 3)])
    activations = simulate(made, average_rounding=False, keep_traces=True)
    trace = activations.traces[0]
    wrong = replace(activations, traces={0: replace(trace, accumulator=trace.accumulator + 1)})
    with pytest.raises(AssertionError, match="layer 0: the sums of its passes differ"):
        cross_check(made.network, wrong)


def test_passes_of_a_flattened_layer_go_by_pixel_first(tmp_path: Path) -> None:
    keys, size, shape, _ = LAYERS["flattened passes"]
    data, kernel = sample(*size), weights(*shape)
    made, _ = build(tmp_path, describe({**CONV, **keys}), data, [kernel])
    sums = pass_sums(data.reshape(-1, 1, 1), made.layers[0], 36)[:, :, 0, 0]
    products = (kernel * data.reshape(-1)).reshape(3, 2, 36, 2).sum(axis=2)  # [out, pass, pixel]
    order = [products[:, 0, 0], products[:, 1, 0], products[:, 0, 1], products[:, 1, 1]]
    assert np.array_equal(sums, np.cumsum(order, axis=0))


def test_needed_products_are_those_of_pixels_and_weights(network: MappedNetwork) -> None:
    (layer,) = network.layers
    assert layer.weights is not None
    used = np.broadcast_to(layer.weights.any(axis=(0, 1)), layer.weights.shape).astype(np.int8)
    size = (1, 1) if layer.flatten else layer.pooled_dim
    ones = np.ones((layer.flat_channels, *size), np.int64)
    assert needed_products(layer) == accumulate(ones, replace(layer, weights=used)).sum()


def test_taps_that_only_streaming_adds_are_not_needed(tmp_path: Path) -> None:
    keys = {**CONV, "kernel_size": "1x1", "pad": 0, "streaming": True}
    made, _ = build(tmp_path, describe(keys), sample(1, 8, 8), [weights(2, 1, 1, 1)])
    (layer,) = made.layers
    assert layer.kernel == (3, 3)
    assert needed_products(layer) == 2 * 64


def test_layers_without_weights_need_no_products(tmp_path: Path) -> None:
    layer = {"processors": 1, "output_processors": 1, "op": "none", "max_pool": 2}
    made, _ = build(tmp_path, describe(layer), sample(1, 4, 4))
    assert needed_products(made.layers[0]) == 0


def test_latency_of_the_worked_example(tmp_path: Path) -> None:
    # docs/hardware/execution.md, "Latency"
    made, _ = build(tmp_path, describe(CONV), sample(1, 1, 1), [weights(1, 1, 3, 3)])
    terms = latency_terms(made.layers[0], KernelRange(0, 1, 1))
    assert terms.total == 28
    assert dict(terms.quantities)["cycles of a padding pixel"] == 2
    assert [s for s in terms.summands if s[1] * s[2]] == [
        ("padding row", 1, 9),
        ("row read ahead", 1, 9),
        ("padding row below", 1, 8),
        ("row of outputs", 1, 2),
    ]


def test_terms_and_products_only_where_asked(tmp_path: Path) -> None:
    made, _ = build(tmp_path, describe(CONV), sample(1, 1, 1), [weights(1, 1, 3, 3)])
    placement = place(made, PlaceOptions())
    (layer,) = statistics(made, placement, EncodeOptions()).layers
    assert (layer.latency, layer.products, layer.cycles) == (None, None, 28)
    options = EncodeOptions(telling=SummaryOptions(latency_terms=True, cross_check=True))
    (layer,) = statistics(made, placement, options).layers
    assert layer.latency is not None and layer.latency.total == 28
    assert layer.products == 1


def test_latency_terms_are_refused_where_the_timing_is_not_known() -> None:
    asked = EncodeOptions(telling=SummaryOptions(latency_terms=True))
    assert not list(check_chip_options(MAX78000, ResolveOptions(), asked))
    (found,) = check_chip_options(MAX78002, ResolveOptions(), asked)
    assert (found.code, str(found.place)) == ("E080", "option --debug-latency")
