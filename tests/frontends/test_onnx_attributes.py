"""Attributes of ONNX nodes that nothing can be made of, and graphs that grow without end."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.onnx import read_onnx
from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.frontends.onnx.door import read_operators
from ai8xtools.frontends.onnx.network import describe_onnx
from tests.checkpoint import onnx_writer as wire


def node(operator: str, **attributes: Any) -> OnnxNode:
    return OnnxNode("n", operator, ("x", "w")[: 1 + (operator != "MaxPool")], ("y",), attributes)


def refused(*nodes: OnnxNode, **constants: Any) -> str:
    """Return why a graph that takes 1x8x8 is refused."""
    graph = OnnxGraph(nodes, constants, "x", (1, 1, 8, 8), nodes[-1].outputs, 17)
    (found,) = read_operators(graph, (1, 8, 8))[1]
    assert found.node == "n"
    return found.why


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kernel_shape": (0, 0)}, "its kernel_shape is [0, 0], expected 2 numbers"),
        ({"kernel_shape": (5, 5)}, "expected [3, 3], the size of its weights"),
        ({"kernel_shape": "abc"}, "its kernel_shape is abc"),
        ({"kernel_shape": (3.0, 3.0)}, "its kernel_shape is [3.0, 3.0]"),
        ({"strides": (0, 0)}, "its strides is [0, 0], expected 2 numbers of at least 1"),
        ({"strides": (1 << 62, 1)}, "its strides"),
        ({"pads": (1,)}, "its pads is [1], expected 4 numbers of at least 0"),
        ({"pads": (-1,) * 4}, "its pads"),
        ({"dilations": 3}, "its dilations is 3"),
        ({"group": 0}, "its group is 0, expected a number of at least 1"),
        ({"auto_pad": "EVIL"}, "its auto_pad is EVIL, expected one of NOTSET"),
    ],
)
def test_attributes_out_of_range_are_refused(attributes: dict[str, Any], message: str) -> None:
    assert message in refused(node("Conv", **attributes), w=np.zeros((8, 1, 3, 3)))


@pytest.mark.parametrize(
    "attributes", [{}, {"kernel_shape": (2, 2), "strides": (0, 0)}, {"kernel_shape": (2,)}]
)
def test_pooling_without_a_window_is_refused(attributes: dict[str, Any]) -> None:
    assert "its kernel_shape" in (why := refused(node("MaxPool", **attributes))) or "strides" in why


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("Add", {"a": np.zeros((1 << 13, 1)), "b": np.zeros((1, 1 << 13))}),
        ("Gather", {"a": np.zeros((1 << 14, 2)), "b": np.zeros(1 << 14)}),
        ("ConstantOfShape", {"a": np.array([1 << 40])}),
        ("Expand", {"a": np.zeros(1), "b": np.array([1 << 40])}),
    ],
)
def test_constants_that_grow_without_end_are_not_computed(operator: str, values: Any) -> None:
    nodes = (OnnxNode("n", operator, tuple(values), ("c",), {}),
             OnnxNode("end", "Add", ("x", "c"), ("y",), {}))  # fmt: skip
    assert "of constants" in refused(*nodes, **values)


KERNEL = wire.tensor("w", np.ones((4, 1, 3, 3), np.float32))
CONV = wire.node("Conv", ["x", "w"], ["y"], "conv")


def of_graph(name: str, sizes: tuple[int, ...]) -> bytes:
    """Return an input or output of a graph."""
    dims = b"".join(wire.field(1, wire.field(1, size)) for size in sizes)
    kind = wire.field(1, wire.field(1, wire.FLOAT) + wire.field(2, dims))
    return wire.field(1, name) + wire.field(2, kind)


def written(
    path: Path, nodes: list[bytes], constants: list[bytes], output: str = "y", batch: int = 1
) -> str:
    """Write a graph that takes `x` of 1x8x8; `output` names what it gives, if anything."""
    graph = b"".join(wire.field(1, one) for one in nodes)
    graph += b"".join(wire.field(5, one) for one in constants)
    graph += wire.field(11, of_graph("x", (batch, 1, 8, 8)))
    graph += wire.field(12, of_graph(output, (1, 4, 6, 6))) if output else b""
    path.write_bytes(wire.field(1, 8) + wire.field(7, graph) + wire.field(8, wire.field(2, 17)))
    return str(path)


@pytest.mark.parametrize(
    ("nodes", "constants", "output", "message"),
    [
        ([CONV], [KERNEL, KERNEL], "y", "there are two constants 'w'"),
        ([CONV], [KERNEL], "", "the graph has no output"),
        ([CONV], [KERNEL], "z", "no node gives the output 'z'"),
        ([CONV], [KERNEL], "x", "no node gives the output 'x'"),
        ([CONV, CONV], [KERNEL], "y", "node 'conv' gives 'y', which is there before"),
        ([CONV + wire.field(5, wire.field(1, "group") + wire.field(3, 1)) * 2], [KERNEL], "y",
         "node 'conv' has an attribute twice"),
    ],
)  # fmt: skip
def test_graphs_that_say_two_things_are_refused(
    nodes: list[bytes], constants: list[bytes], output: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "net.onnx", nodes, constants, output)
    with pytest.raises(CheckpointError, match=message):
        describe_onnx(path, None, None)
    if "two constants" in message or "attribute" in message:
        with pytest.raises(CheckpointError, match=message):
            read_onnx(path)


def test_a_batch_of_minus_one_is_not_fixed(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", [CONV], [KERNEL], batch=-1)
    assert describe_onnx(path, None, None)[0].input_shape == (1, 8, 8)


@pytest.mark.parametrize(
    ("last", "constant", "why"),
    [
        (wire.node("Clip", ["c", "n"], ["y"], "end"), np.float32(np.nan), "is not a number"),
        (wire.node("MatMul", ["c", "n"], ["y"], "end"), np.float32(2), "have 0 axes"),
        (wire.node("Conv", ["c", "n"], ["y"], "end"), np.ones(4, np.float32), "have 1 axes"),
        (wire.node("ConvTranspose", ["c", "n"], ["y"], "end"), np.ones((4, 4), np.float32),
         "have 2 axes"),
    ],
)  # fmt: skip
def test_operators_of_nonsense_are_refused_by_name(
    last: bytes, constant: np.ndarray[Any, Any], why: str, tmp_path: Path
) -> None:
    first = wire.node("Conv", ["x", "w"], ["c"], "conv")
    path = written(tmp_path / "net.onnx", [first, last], [KERNEL, wire.tensor("n", constant)])
    with pytest.raises(Exception, match=why) as refused:
        describe_onnx(path, None, None)
    assert "end" in str(refused.value)


def test_many_nodes_are_followed_in_time_that_grows_with_them(tmp_path: Path) -> None:
    names = ["c", *(f"r{i}" for i in range(5000)), "y"]
    nodes = [wire.node("Conv", ["x", "w"], ["c"], "conv")]
    nodes += [wire.node("Relu", [a], [b], b) for a, b in itertools.pairwise(names)]
    path = written(tmp_path / "net.onnx", nodes, [KERNEL])
    begin = time.process_time()
    describe_onnx(path, None, None)
    assert time.process_time() - begin < 5
