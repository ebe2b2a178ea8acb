"""The whole graph of an ONNX file: nodes with attributes, constants, input and outputs.

Only the file itself is opened; tensors are converted when they are asked for.
Source: onnx.proto, IR version 3 to 12.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import printable
from ai8xtools.checkpoint.onnx import beside, file_bytes, graph_of
from ai8xtools.checkpoint.onnx_tensors import TensorReader
from ai8xtools.checkpoint.onnx_wire import (
    Decoder,
    Fields,
    damaged,
    integer,
    integers,
    pieces,
    single,
    text,
    texts,
)
from ai8xtools.checkpoint.values import Array
from ai8xtools.values import frozen

OPSETS = range(7, 29)
"""Versions of the operators that are known."""
_MAX_VALUES = 4096
_STANDARD = ("", "ai.onnx")


@frozen
class OnnxNode:
    """A node; attributes are integers, numbers, texts, lists of integers, or arrays."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@frozen
class OnnxGraph:
    """Nodes in order, constants by name, the data input with its sizes (0: not fixed), outputs;
    `opset` is the version of the operators, `input_type` the number of the data type.
    """

    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    input_name: str
    input_sizes: tuple[int, ...]
    outputs: tuple[str, ...]
    opset: int
    input_type: int = 1


def read_graph(path: str | os.PathLike[str]) -> OnnxGraph:
    """Read the graph of an ONNX file.

    Raises CheckpointError with `place` = path: E501, E502 to E505 as `read_onnx`; E518 another
    version or several inputs, E517 nodes that take what none gives, or in a cycle.
    """
    try:
        decoder, graph, model = graph_of(file_bytes(Path(path)))
        return _Reader(decoder, graph, beside(path)).graph(_version(decoder, model))
    except CheckpointError as exc:
        exc.place = str(path)
        raise


def _version(decoder: Decoder, model: Fields) -> int:
    latest = OPSETS[-1]
    for piece in pieces(model, 8):
        fields = decoder.fields(piece)
        domain, version = text(fields, 1), integer(fields, 2)
        if domain not in _STANDARD:
            continue
        latest = version
        if version not in OPSETS:
            raise CheckpointError(
                "E518",
                f"the file uses version {version} of the operators, known are {OPSETS[0]} to "
                f"{OPSETS[-1]}",
                remedy="Export it with opset_version=17.",
            )
    return latest


class _Reader:
    """Converts the messages of one graph."""

    def __init__(
        self, decoder: Decoder, graph: memoryview, files: Callable[[str], memoryview]
    ) -> None:
        self._decoder = decoder
        self._fields = decoder.fields(graph)
        self._tensors = TensorReader(decoder, files)

    def graph(self, opset: int) -> OnnxGraph:
        constants = {}
        for message in pieces(self._fields, 5):
            name = self._tensors.name(message)
            if name in constants:
                raise damaged(f"there are two constants '{printable(name)}'")
            constants[name] = self._tensors.values(message, printable(name))
        nodes = tuple(map(self._node, pieces(self._fields, 1)))
        inputs = [self._value(m) for m in pieces(self._fields, 11)]
        data = [one for one in inputs if one[0] not in constants]
        if len(data) != 1:
            names = ", ".join(printable(name) for name, *_ in data) or "none"
            raise CheckpointError(
                "E509", f"the graph has {len(data)} inputs ({names}), the accelerator has one",
                remedy="Export a network with a single input.",
            )  # fmt: skip
        outputs = tuple(self._value(m)[0] for m in pieces(self._fields, 12))
        name, sizes, kind = data[0]
        nodes = _in_order(nodes, {name, "", *constants})
        _check_outputs(nodes, outputs)
        return OnnxGraph(nodes, constants, name, sizes, outputs, opset, kind)

    def _value(self, message: memoryview) -> tuple[str, tuple[int, ...], int]:
        """Return name, sizes and data type of an input or output; 0 stands for a size that is not
        fixed, which some exporters write as -1."""
        fields = self._decoder.fields(message)
        sizes: list[int] = []
        data_type = 1
        for kind in pieces(fields, 2):
            for tensor in pieces(self._decoder.fields(kind), 1):
                data_type = integer(self._decoder.fields(tensor), 1)
                for shape in pieces(self._decoder.fields(tensor), 2):
                    dims = pieces(self._decoder.fields(shape), 1)
                    sizes = [max(integer(self._decoder.fields(dim), 1), 0) for dim in dims]
        return text(fields, 1), tuple(sizes), data_type

    def _node(self, message: memoryview) -> OnnxNode:
        fields = self._decoder.fields(message)
        outputs = tuple(texts(fields, 2))
        operator, domain = text(fields, 4), text(fields, 7)
        if domain not in _STANDARD:
            operator = f"{domain}.{operator}"
        name = printable(text(fields, 3) or next(iter(outputs), operator))
        pairs = [self._attribute(piece) for piece in pieces(fields, 5)]
        attributes = dict(pairs)
        if len(attributes) < len(pairs):
            raise damaged(f"node '{name}' has an attribute twice")
        return OnnxNode(name, printable(operator), tuple(texts(fields, 1)), outputs, attributes)

    def _attribute(self, message: memoryview) -> tuple[str, Any]:
        fields = self._decoder.fields(message)
        name = text(fields, 1)
        if 5 in fields:
            (tensor,) = pieces(fields, 5)[-1:]
            return name, self._tensors.values(tensor, printable(name))
        if 2 in fields:
            return name, single(fields, 2, 0.0)
        if 4 in fields:
            return name, text(fields, 4)
        if 9 in fields:
            return name, tuple(texts(fields, 9))
        if 8 in fields:
            return name, tuple(map(int, integers(fields, 8, _MAX_VALUES)))
        if 7 in fields:
            data = b"".join(pieces(fields, 7))
            return name, tuple(map(float, np.frombuffer(data[: len(data) // 4 * 4], "<f4")))
        return name, integer(fields, 3)


def _in_order(nodes: Sequence[OnnxNode], sources: set[str]) -> tuple[OnnxNode, ...]:
    """Return nodes behind those whose results they take, else as the file has them.

    Raises CheckpointError E517 for a node with an input that nothing in front of it computes.
    """
    makers = {name: number for number, node in enumerate(nodes) for name in node.outputs}
    for number, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if name in sources or makers[name] != number or node.outputs.count(name) > 1:
                raise damaged(
                    f"node '{node.name}' gives '{printable(name)}', which is there before"
                )
    needs = [{makers.get(one, -1) for one in node.inputs if one not in sources} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for number, needed in enumerate(needs):
        for one in needed - {-1}:
            readers[one].append(number)
    ready = [number for number, needed in enumerate(needs) if not needed]
    result = []
    while ready:
        number = heappop(ready)
        result.append(nodes[number])
        for reader in readers[number]:
            needs[reader].discard(number)
            if not needs[reader]:
                heappush(ready, reader)
    if len(result) < len(nodes):
        available = sources.union(*(node.outputs for node in result))
        missing = [(one, name) for one in nodes for name in one.inputs if name not in available]
        node, name = min(missing, key=lambda pair: pair[1] in makers)
        why = "which a cycle gives" if name in makers else "which nothing gives"
        raise CheckpointError(
            "E517",
            f"node '{node.name}' takes '{printable(name)}', {why}",
            remedy="Export it again.",
        )
    return tuple(result)


def _check_outputs(nodes: tuple[OnnxNode, ...], outputs: tuple[str, ...]) -> None:
    """Refuse a graph whose outputs are not results of its nodes."""
    results = {name for node in nodes for name in node.outputs}
    if not outputs:
        raise damaged("the graph has no output")
    for name in outputs:
        if name not in results:
            raise damaged(f"no node gives the output '{printable(name)}'")
