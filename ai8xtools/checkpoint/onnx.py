"""Weights and biases from ONNX files, with numpy alone.

Only what a layer of the accelerator can come from is read: `Conv`, `ConvTranspose`, `Gemm` and
`MatMul` nodes with constant weights, in the order of the graph. The
messages are those of onnx.proto, IR version 3 to 12.
Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ai8xtools.checkpoint.errors import CheckpointError, reading
from ai8xtools.checkpoint.known_objects import printable
from ai8xtools.checkpoint.onnx_tensors import TensorReader
from ai8xtools.checkpoint.onnx_wire import (
    Decoder,
    Fields,
    damaged,
    integer,
    pieces,
    single,
    text,
    texts,
)
from ai8xtools.checkpoint.values import Array
from ai8xtools.reading import ForeignFileError, read_bytes
from ai8xtools.reading.origin import accident
from ai8xtools.values import frozen

MAX_FILE_BYTES = 512 << 20

# Field numbers of ModelProto, GraphProto, NodeProto and AttributeProto
_GRAPH = 7
_NODES, _INITIALIZERS = 1, 5
_INPUTS, _OUTPUTS, _NAME, _OPERATOR, _ATTRIBUTES = 1, 2, 3, 4, 5
_ATTRIBUTE_NAME, _FLOAT, _INTEGER, _TENSOR = 1, 2, 3, 5


@frozen
class OnnxLayer:
    """A node with weights; `node` is its operator and name, for messages.

    `weights` have the shapes of PyTorch: Conv [out, in/groups, rows, columns] or [out, in/groups,
    length], ConvTranspose [in, out/groups, rows, columns], Gemm and MatMul [out, in].
    """

    node: str
    name: str
    operator: str
    weight_name: str
    weights: Array
    bias_name: str = ""
    bias: Array | None = None


@frozen
class OnnxModel:
    """The layers of a model in order, and the names of batch normalizations between them."""

    layers: tuple[OnnxLayer, ...]
    batch_norms: tuple[str, ...]


def read_onnx(path: str | os.PathLike[str]) -> OnnxModel:
    """Read the weights of an ONNX file; what it names beside itself is opened, nothing else.

    Raises CheckpointError with `place` = path: E501 unreadable, E502 another kind of file, E503
    damaged, E512 data in another file that cannot be read, E513 a data type without plain numbers,
    E505 exceeds a limit, E515 weights that the graph computes.
    """
    try:
        decoder, graph, _ = graph_of(file_bytes(Path(path)))
        return _GraphReader((decoder, graph), beside(path)).model()
    except CheckpointError as exc:
        exc.place = str(path)
        raise


def file_bytes(path: Path) -> memoryview:
    """Return the bytes of a file; CheckpointError E501 or E505."""
    with reading():
        try:
            return memoryview(read_bytes(path, MAX_FILE_BYTES))
        except ForeignFileError as exc:
            if exc.size is None:
                raise
            raise CheckpointError(
                "E505", f"the file has {exc.size} bytes, the limit is {MAX_FILE_BYTES}"
            ) from None


def beside(path: str | os.PathLike[str]) -> Callable[[str], memoryview]:
    """Return what gives the bytes of files in the folder of a file, by their names."""
    return lambda name: file_bytes(Path(path).parent / name)


def graph_of(data: memoryview) -> tuple[Decoder, memoryview, Fields]:
    """Return a decoder, the graph of a file, and the fields of the file; CheckpointError E502."""
    cause = accident(data)
    if cause is not None:
        raise CheckpointError("E502", cause[0], remedy=cause[1])
    other = CheckpointError(
        "E502",
        "the file is not an ONNX model",
        remedy="Names that end in .onnx are read as ONNX; PyTorch checkpoints end in .pth.tar.",
    )
    if not data or bytes(data[:4]) in (b"PK\x03\x04", b"\x80\x02\x8a\x0a"):
        raise other
    decoder = Decoder()
    model = decoder.fields(data)
    graphs = pieces(model, _GRAPH)
    if not graphs:
        raise other
    return decoder, graphs[-1], model


@frozen
class _Node:
    """A node of the graph with the attributes that matter."""

    name: str
    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: Mapping[str, memoryview]

    def __str__(self) -> str:
        return f"{printable(self.operator)} '{printable(self.name)}'"


class _GraphReader:
    """Walks the nodes in order and knows which values are constants."""

    def __init__(
        self, source: tuple[Decoder, memoryview], files: Callable[[str], memoryview]
    ) -> None:
        self._decoder, graph = source
        fields = self._decoder.fields(graph)
        self._tensors = TensorReader(self._decoder, files)
        self._nodes = [self._node(message) for message in pieces(fields, _NODES)]
        self._constants: dict[str, memoryview] = {}
        for message in pieces(fields, _INITIALIZERS):
            name = self._tensors.name(message)
            if name in self._constants:
                raise damaged(f"there are two constants '{printable(name)}'")
            self._constants[name] = message
        self._producers = {name: node for node in self._nodes for name in node.outputs}
        self._layers: list[OnnxLayer] = []
        self._products: dict[str, int] = {}  # outputs of MatMul nodes: positions of their layers

    def model(self) -> OnnxModel:
        """Return the layers; conversion happens here, so that unused tensors may be anything."""
        for node in self._nodes:
            match node.operator:
                case "Constant" | "Identity":
                    self._note_constant(node)
                case "Conv" | "ConvTranspose":
                    self._add(node, self._weights(node))
                case "Gemm":
                    self._add(node, self._gemm_weights(node))
                case "MatMul" if node.inputs[1:2] and node.inputs[1] in self._constants:
                    self._products.update(dict.fromkeys(node.outputs, len(self._layers)))
                    self._add(node, _transposed(self._weights(node)))
                case "Add" if len(node.inputs) == 2:
                    self._add_to_product(*node.inputs)
                    self._add_to_product(*reversed(node.inputs))
        names = [str(node) for node in self._nodes if node.operator == "BatchNormalization"]
        return OnnxModel(tuple(self._layers), tuple(names))

    def _node(self, message: memoryview) -> _Node:
        fields = self._decoder.fields(message)
        outputs = texts(fields, _OUTPUTS)
        messages = pieces(fields, _ATTRIBUTES)
        attributes = {text(self._decoder.fields(one), _ATTRIBUTE_NAME): one for one in messages}
        name = text(fields, _NAME) or next(iter(outputs), "")
        if len(attributes) < len(messages):
            raise damaged(f"node '{printable(name)}' has an attribute twice")
        return _Node(name, text(fields, _OPERATOR), texts(fields, _INPUTS), outputs, attributes)

    def _note_constant(self, node: _Node) -> None:
        """A Constant node is an initializer in another place, Identity a second name for one."""
        if node.operator == "Identity":
            tensors = [self._constants[name] for name in node.inputs[:1] if name in self._constants]
        else:
            value = node.attributes.get("value")
            tensors = [] if value is None else pieces(self._decoder.fields(value), _TENSOR)
        for message in tensors[-1:]:
            self._constants.update(dict.fromkeys(node.outputs, message))

    def _add(self, node: _Node, weights: Array) -> None:
        layer = OnnxLayer(str(node), node.name, node.operator, printable(node.inputs[1]), weights)
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = self._constant(node, "bias", node.inputs[2])
            layer = replace(layer, bias_name=printable(node.inputs[2]), bias=bias)
        self._layers.append(layer)

    def _add_to_product(self, product: str, bias: str) -> None:
        """An Add of a constant after MatMul is how a linear layer with bias may be exported."""
        if product in self._products and bias in self._constants:
            position = self._products[product]
            self._layers[position] = replace(
                self._layers[position],
                bias_name=printable(bias),
                bias=self._tensors.values(self._constants[bias], printable(bias)),
            )

    def _weights(self, node: _Node) -> Array:
        if len(node.inputs) < 2:
            raise damaged(f"{node} has no weights")
        return self._constant(node, "weights", node.inputs[1])

    def _gemm_weights(self, node: _Node) -> Array:
        weights = self._weights(node)
        for factor in ("alpha", "beta"):
            value = single(self._attribute(node, factor), _FLOAT, 1.0)
            if value != 1.0:
                raise CheckpointError(
                    "E515",
                    f"{node} multiplies with {factor} = {value}, the accelerator cannot",
                    remedy="Fold the factor into the weights.",
                )
        stored = integer(self._attribute(node, "transB"), _INTEGER)
        return weights if stored else _transposed(weights)

    def _attribute(self, node: _Node, name: str) -> Fields:
        return self._decoder.fields(node.attributes.get(name, memoryview(b"")))

    def _constant(self, node: _Node, what: str, name: str) -> Array:
        """Return the value of an input that must be a constant."""
        if name not in self._constants:
            producer = self._producers.get(name)
            origin = f"computed by {producer}" if producer else "an input of the model"
            raise CheckpointError(
                "E515",
                f"{node} takes its {what} from '{printable(name)}', which is {origin} "
                "and not a stored initializer",
                remedy="Export the quantized checkpoint with its integers as weights, without "
                "quantize and dequantize nodes.",
            )
        return self._tensors.values(self._constants[name], printable(name))


def _transposed(weights: Array) -> Array:
    """Turn [in, out] into [out, in]; other ranks stay, they are refused with the layer's name."""
    return weights.T if weights.ndim == 2 else weights
