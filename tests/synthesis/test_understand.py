"""Descriptions that become networks, with a chip and without one, and what is said of damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError, has_errors
from ai8xtools.synthesis.understand import understand
from device import MAX78000, Chip
from tests.synthesis.networks import describe, files, sample, weights

CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}
FREE: dict[str, Any] = {**CONV, "processors": None, "out_offset": None}
"""A layer that says nothing about processors and memory."""


def complaints(
    folder: Path, chip: Chip | None, *layers: dict[str, Any], data: Any = None
) -> list[str]:
    """Return the codes of the errors about layers of three channels on 8x8 pixels."""
    path = folder / "net.yaml"
    path.write_text(describe(*layers))
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(len(layers))]
    options = files(folder, sample(3, 8, 8) if data is None else data, kernels)
    try:
        _, _, found = understand(str(path), chip, options)
    except DiagnosticError as refusal:
        found = refusal.diagnostics
    return [d.code for d in found if d.severity == "error"]


def test_constraints_of_a_chip_need_one(tmp_path: Path) -> None:
    assert complaints(tmp_path, MAX78000, {**CONV, "pad": 3}) == ["E302"]
    assert complaints(tmp_path, None, {**CONV, "pad": 3}) == []
    assert complaints(tmp_path, None, {**FREE, "pad": 3}, {**FREE, "in_sequences": 0}) == []


def test_constraints_of_networks_need_no_chip(tmp_path: Path) -> None:
    assert complaints(tmp_path, None, {**FREE, "output_pad": 1}) == ["E303"]
    assert complaints(tmp_path, None, FREE, data=sample(3, 7, 7)) == []
    assert complaints(tmp_path, None, {**FREE, "in_dim": (4, 4)}) == ["E349"]


def test_layout_is_complete_on_a_chip_only(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    options = files(tmp_path, sample(3, 8, 8), [weights(3, 3, 3, 3)])
    path.write_text(describe(CONV))
    _, layout, found = understand(str(path), MAX78000, options)
    assert not has_errors(found)
    assert (layout.layers[0].in_offset, layout.layers[0].write_gap) == (0, 0)
    path.write_text(describe(FREE))
    network, layout, found = understand(str(path), None, options)
    assert found == ()
    assert (network.final.out_dim, layout.layers[0].processors) == ((8, 8), None)


@pytest.mark.parametrize(("chip", "layer"), [(MAX78000, CONV), (None, FREE)])
def test_errors_of_all_stages_are_told_with_and_without_a_chip(
    tmp_path: Path, chip: Chip | None, layer: dict[str, Any]
) -> None:
    found = complaints(
        tmp_path,
        chip,
        {**layer, "colour": "red"},
        {**layer, "in_sequences": "nobody"},
        {**layer, "max_pool": "two"},
    )
    assert found == ["E105", "E130", "E109"]


def test_errors_that_touch_no_layer_leave_a_network(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(describe({**CONV, "colour": "red"}))
    options = files(tmp_path, sample(3, 8, 8), [weights(3, 3, 3, 3)])
    network, _, found = understand(str(path), MAX78000, options)
    assert [d.code for d in found] == ["E105"]
    assert network.final.out_dim == (8, 8)
