# ruff: noqa: ARG005 - samples take two results
"""A fault in each handler of a door is noticed by the import; `make measure WHAT=handler-faults`
plants all that there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.nn import functional

import ai8x
from ai8xtools.commands.q15 import mcu, network
from ai8xtools.commands.q15.network import graph_of
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.plain.network import import_network
from tests.frontends import handler_faults as planting

PASSING = {"OfTorch": {"dropout", "flip", "gru", "lstm", "rnn"}, "OfOnnx": {"Shape"}}
"""Handlers without anything that could be wrong for one sample, or of which no setting can change
alone; tests of their results are elsewhere (test_recurrent.py, tests/software/each_operator.py).
"""


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # maps are small
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


@pytest.mark.parametrize("door", planting.DOORS)
def test_a_fault_of_each_handler_is_noticed(door: Any) -> None:
    """Whoever adds a handler adds a network that calls it."""
    handlers = door.door._HANDLERS.items()
    known = {name for name, handler in handlers if getattr(handler, "__name__", "") != "_foreign"}
    assert known == set(door.names)
    refused: list[str] = []
    passing = set()
    for name in door.names:
        of = door(name)
        road = next(planting.roads_of(of), None)
        if road is None:
            assert set(of.codes.values()) <= {"E670"}, name
            refused.append(name)
            continue
        fault = next(planting.effective(of, name), None)
        if fault is None:
            passing.add(name)
            continue
        with fault.within():
            assert planting.taken(of, road) in ("E668", "E670"), (name, fault.label)
    assert len(refused) < len(known) / 2, refused
    assert passing == PASSING[door.__name__]


class ByName(torch.nn.Module):
    """A module that hands on its data by name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 4, 1)

    def forward(self, x: Any) -> Any:
        return self.conv(input=x)


def _network(sample: Any) -> Any:
    made = planting.Network(sample, False).eval()
    with torch.no_grad():
        made(planting.INPUTS)
    return made


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("tensor_split", lambda a, b: torch.tensor_split(a, 2, 1)[1]),
        ("unbind", lambda a, b: a.unbind(1)[3]),
        ("mean", lambda a, b: a - a.mean()),
        ("max", lambda a, b: a / a.max()),
        ("stack", lambda a, b: torch.stack((a, b), 2)),
        ("max_pool2d_with_indices", lambda a, b: functional.max_pool2d_with_indices(a, 2)[1] + 0.5),
        ("max_pool3d", lambda a, b: functional.max_pool3d(a, 2)),
        ("avg_pool1d", lambda a, b: functional.avg_pool1d(a.flatten(1), 2)),
        ("dropout", lambda a, b: functional.dropout(a, 0.3)),
        ("samples", lambda a, b: a - a.mean(0, keepdim=True)),
        ("samples", lambda a, b: a.softmax(0)),
    ],
)
def test_what_has_no_operator_is_refused_by_name(name: str, sample: Any) -> None:
    """Also what gives several results, or a single number, or takes a list."""
    for road in (
        lambda: import_network(_network(sample), planting.INPUTS[:1], "net", {}),
        lambda: graph_of(read_module(_network(sample), planting.INPUTS[:1]), "net"),
    ):
        with pytest.raises(InputError) as caught:
            road()
        told = f"{caught.value.message} {caught.value.remedy}"
        assert caught.value.code == "E670" and re.search(rf"\b{name}\b", told), told


def test_arguments_by_name_are_taken() -> None:
    for sample in (
        lambda a, b: functional.max_pool2d(input=a, kernel_size=2),
        lambda a, b: functional.max_pool2d(kernel_size=2, input=a),
        lambda a, b: torch.cat(tensors=(a, b), dim=1),
        lambda a, b: torch.add(input=a, other=b),
        lambda a, b: functional.relu(input=a),
        ByName(),
        lambda a, b: torch.chunk(a, chunks=2, dim=1)[1],
        lambda a, b: torch.split(a, split_size_or_sections=2, dim=1)[1],
        lambda a, b: a.split(split_size=2, dim=1)[1],
        lambda a, b: torch.split_with_sizes(a, split_sizes=[2, 2], dim=1)[1],
    ):
        import_network(_network(sample), planting.INPUTS[:1], "net", {})


def test_results_that_are_no_numbers_depart(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing, graph = np.full((1, 3), np.nan), SimpleNamespace(output=None)
    monkeypatch.setattr(network, "compute", lambda *_: {None: nothing})
    with pytest.raises(InputError, match="something else"):
        network._compare(torch.ones(1, 3), cast(Any, graph), nothing, (), "net", "net")
    monkeypatch.setattr(mcu.passes, "results", lambda *_: [nothing])
    with pytest.raises(InputError, match="something else"):
        mcu._compare(cast(Any, graph), [nothing], [np.ones((1, 3))], "net")


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_shares_of_maps_along_any_axis_are_left_to_the_application(
    kind: str, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planting.ONNX, kind, lambda g: str(g(kind, g.a, axis=axis)))
    of = planting.OfOnnx(kind)
    assert planting.taken(of, "accelerator") == ""
