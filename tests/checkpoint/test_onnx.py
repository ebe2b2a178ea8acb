"""Weights and biases are read from ONNX files; damaged and hostile ones end in CheckpointError."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import MAX_DIMENSIONS
from ai8xtools.checkpoint.onnx import MAX_FILE_BYTES, OnnxModel, read_onnx
from ai8xtools.checkpoint.onnx_tensors import MAX_ELEMENTS
from ai8xtools.checkpoint.onnx_wire import MAX_FIELDS, Decoder, integers
from tests.checkpoint import onnx_writer as onnx
from tests.checkpoint.onnx_writer import chain, field, model, node, tensor, tensor_of

KERNEL = np.arange(2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3)
BIAS = np.array([128, -256], np.float32)


def read(folder: Path, content: bytes) -> OnnxModel:
    path = folder / "net.onnx"
    path.write_bytes(content)
    return read_onnx(path)


def refused(folder: Path, content: bytes) -> tuple[str, str]:
    """Return code and message of the complaint, whose place must be the file."""
    with pytest.raises(CheckpointError) as caught:
        read(folder, content)
    assert caught.value.place == str(folder / "net.onnx")
    return caught.value.code, caught.value.message


def only_tensor(folder: Path, initializer: bytes, name: str = "w") -> np.ndarray[Any, Any]:
    """Return what the reader makes of a tensor that is the weights of a Conv."""
    (layer,) = read(folder, model([node("Conv", ["x", name])], [initializer])).layers
    return layer.weights


# What is read


def test_writer_of_these_tests_writes_what_onnx_writes() -> None:
    # Written by onnx 1.23 for helper.make_tensor("w", FLOAT, [1], [1.0])
    standard = bytes.fromhex("0801 1001 2204 0000803f 4201 77")
    mine = tensor_of("w", [1], onnx.FLOAT, field(4, np.float32(1).tobytes()))
    assert mine == standard


def test_layers_come_in_the_order_of_the_nodes_whatever_lies_between(tmp_path: Path) -> None:
    linear = np.ones((4, 6))
    content = chain(
        ("Conv", KERNEL, BIAS),
        ("Relu", None, None),
        ("MaxPool", None, None),
        ("Gemm", linear, None),
    )
    first, second = read(tmp_path, content).layers
    assert (first.node, first.operator) == ("Conv '/layer0/Conv'", "Conv")
    assert (first.weight_name, first.bias_name) == ("layer0.weight", "layer0.bias")
    np.testing.assert_array_equal(first.weights, KERNEL)
    assert first.bias is not None
    np.testing.assert_array_equal(first.bias, BIAS)
    assert (second.weights.shape, second.bias, second.bias_name) == ((4, 6), None, "")
    assert not first.weights.flags.writeable


def test_transposed_and_one_dimensional_convolutions_keep_their_shapes(tmp_path: Path) -> None:
    content = chain(("ConvTranspose", KERNEL, None), ("Conv", np.ones((5, 2, 9)), None))
    assert [x.weights.shape for x in read(tmp_path, content).layers] == [(2, 3, 3, 3), (5, 2, 9)]


@pytest.mark.parametrize("attributes", [{}, {"transB": 0}, {"alpha": 1.0, "beta": 1.0}])
def test_gemm_without_trans_b_stores_inputs_first(
    tmp_path: Path, attributes: dict[str, Any]
) -> None:
    stored = np.arange(6, dtype=np.float32).reshape(2, 3)
    content = model([node("Gemm", ["x", "w"], attributes=attributes)], [tensor("w", stored)])
    np.testing.assert_array_equal(read(tmp_path, content).layers[0].weights, stored.T)


def test_product_with_constant_is_a_linear_layer_and_the_sum_after_it_its_bias(
    tmp_path: Path,
) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Add", ["b", "p"], ["y"]),
        node("MatMul", ["y", "y"], ["z"]),
        node("Add", ["z", "b"], ["last"]),
    ]
    stored = np.arange(6, dtype=np.float32).reshape(2, 3)
    (layer,) = read(tmp_path, model(nodes, [tensor("w", stored), tensor("b", BIAS)])).layers
    np.testing.assert_array_equal(layer.weights, stored.T)
    assert layer.bias_name == "b" and layer.bias is not None
    np.testing.assert_array_equal(layer.bias, BIAS)


def test_constant_nodes_and_second_names_count_as_initializers(tmp_path: Path) -> None:
    nodes = [
        node("Constant", [], ["w"], attributes={"value": tensor("", KERNEL)}),
        node("Identity", ["w"], ["same"]),
        node("Conv", ["x", "same"]),
    ]
    (layer,) = read(tmp_path, model(nodes, [])).layers
    np.testing.assert_array_equal(layer.weights, KERNEL)


def test_batch_normalization_is_named(tmp_path: Path) -> None:
    content = chain(("Conv", KERNEL, None), ("BatchNormalization", None, None))
    found = read(tmp_path, content).batch_norms
    assert found == ("BatchNormalization '/layer1/BatchNormalization'",)


# Of TensorProto.DataType: code, type, and the field of values that are not raw
NUMBERS = [
    (1, "<f4", 4), (2, "u1", 5), (3, "i1", 5), (4, "<u2", 5), (5, "<i2", 5), (6, "<i4", 5),
    (7, "<i8", 7), (9, "?", 5), (10, "<f2", 5), (11, "<f8", 10), (12, "<u4", 11), (13, "<u8", 11),
]  # fmt: skip


@pytest.mark.parametrize(("code", "dtype", "number"), NUMBERS)
def test_numbers_of_every_type_are_raw_or_in_their_field(
    tmp_path: Path, code: int, dtype: str, number: int
) -> None:
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        values = np.array([np.iinfo(kind).min, 0, 1, np.iinfo(kind).max], kind)
    else:
        values = np.array([1, 0, 0.5, 1], kind)
    varints = values.view("<u2") if dtype == "<f2" else values
    floats = number in (4, 10)
    counted = values.tobytes() if floats else b"".join(onnx.varint(int(v)) for v in varints)
    for content in (field(9, values.tobytes()), field(number, counted)):
        found = only_tensor(tmp_path, tensor_of("w", [4], code, content))
        assert found.dtype == kind and np.array_equal(found, values)
    if number == 5 and kind.kind in "iu" and kind.itemsize < 4:
        for beyond in (int(values[0]) - 1, int(values[-1]) + 1):
            content = field(5, onnx.varint(beyond))
            broken = model([node("Conv", ["x", "w"])], [tensor_of("w", [1], code, content)])
            assert refused(tmp_path, broken)[0] == "E503"


def test_last_raw_data_counts(tmp_path: Path) -> None:
    content = field(9, bytes([1, 2])) + field(9, bytes([3, 4]))
    assert only_tensor(tmp_path, tensor_of("w", [2], 2, content)).tolist() == [3, 4]


def test_last_graph_counts(tmp_path: Path) -> None:
    graphs = [
        model([node("Conv", ["x", "w"])], [tensor("w", np.full((1, 1, 1, 1), v))])
        for v in (1, 2, 3)
    ]
    (layer,) = read(tmp_path, b"".join(graphs)).layers
    assert layer.weights.tolist() == [[[[3]]]]


@pytest.mark.parametrize("elsewhere", [field(14, 1), field(13, field(1, "location"))])
def test_each_sign_of_data_in_another_file_is_enough(tmp_path: Path, elsewhere: bytes) -> None:
    content = tensor_of("w", [2], 2, field(9, bytes(2)) + elsewhere)
    assert refused(tmp_path, model([node("Conv", ["x", "w"])], [content]))[0] == "E512"


def beside(**entries: Any) -> bytes:
    """Return the fields of a tensor whose data is in another file."""
    parts = [field(13, field(1, key) + field(2, str(value))) for key, value in entries.items()]
    return b"".join(parts) + field(14, 1)


def test_data_in_a_file_beside_the_model_is_read(tmp_path: Path) -> None:
    values = np.arange(6, dtype="<f4").reshape(6, 1, 1, 1)
    (tmp_path / "w.data").write_bytes(b"0123" + values.tobytes() + b"rest")
    for entries, count in (({"offset": 4, "length": 24}, 6), ({"offset": 4, "length": 8}, 2)):
        content = tensor_of("w", [count, 1, 1, 1], 1, beside(location="w.data", **entries))
        (layer,) = read(tmp_path, model([node("Conv", ["x", "w"])], [content])).layers
        np.testing.assert_array_equal(layer.weights, values[:count])
    (tmp_path / "w.data").write_bytes(values.tobytes())  # all of it
    content = tensor_of("w", [6, 1, 1, 1], 1, beside(location="w.data"))
    (layer,) = read(tmp_path, model([node("Conv", ["x", "w"])], [content])).layers
    np.testing.assert_array_equal(layer.weights, values)


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ({"location": "w.data", "length": 25}, "E503"),
        ({"location": "w.data", "length": 20}, "E503"),
        ({"location": "w.data", "offset": 30}, "E503"),
        ({"location": "w.data", "offset": -4}, "E503"),
        ({"location": "w.data", "length": "\u0662"}, "E503"), ({"location": "none"}, "E512"),
        ({"location": "sub/w.data"}, "E512"), ({"location": "sub"}, "E512"), ({}, "E512"),
        ({"location": ".."}, "E512"), ({"location": "/dev/zero"}, "E512"),
        ({"location": "sub\\w.data"}, "E512"), ({"location": "C:w.data"}, "E512"),
        ({"location": "pipe"}, "E512"),
    ],
)  # fmt: skip
def test_data_beside_the_model_that_is_not_there_is_refused(
    entries: Any, code: str, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    for path in ("w.data", "sub/w.data", "sub\\w.data", "C:w.data"):
        (tmp_path / path).write_bytes(bytes(24))
    os.mkfifo(tmp_path / "pipe")
    content = tensor_of("w", [6, 1, 1, 1], 1, beside(**entries))
    assert refused(tmp_path, model([node("Conv", ["x", "w"])], [content]))[0] == code


def test_codes_of_other_types_are_refused(tmp_path: Path) -> None:
    known = {16, *(code for code, _, _ in NUMBERS)}
    for code in {*range(30)} - known:
        content = tensor_of("w", [1], code, field(9, bytes(8)))
        assert refused(tmp_path, model([node("Conv", ["x", "w"])], [content]))[0] == "E513"


VALUES = [-3, 0, 100]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64"])
def test_raw_data_of_every_type(tmp_path: Path, dtype: str) -> None:
    found = only_tensor(tmp_path, tensor("w", np.array(VALUES, dtype)))
    assert found.dtype == dtype and found.tolist() == VALUES


@pytest.mark.parametrize(
    ("code", "content", "dtype"),
    [
        (onnx.FLOAT, field(4, np.array(VALUES, "<f4").tobytes()), "float32"),
        (onnx.FLOAT, b"".join(field(4, float(v)) for v in VALUES), "float32"),
        (onnx.DOUBLE, field(10, np.array(VALUES, "<f8").tobytes()), "float64"),
        (onnx.INT8, field(5, b"".join(map(onnx.varint, VALUES))), "int8"),
        (onnx.INT32, b"".join(field(5, v) for v in VALUES), "int32"),
        (onnx.INT64, field(7, b"".join(map(onnx.varint, VALUES))), "int64"),
        (
            onnx.FLOAT16,
            field(5, b"".join(onnx.varint(int(v)) for v in np.array(VALUES, "<f2").view("<u2"))),
            "float16",
        ),
        (onnx.BFLOAT16, field(9, bytes.fromhex("40c0 0000 c842")), "float32"),
    ],
    ids=["float", "one by one", "double", "int8", "int32 unpacked", "int64", "half", "bfloat16"],
)
def test_values_in_the_fields_of_their_type(
    tmp_path: Path, code: int, content: bytes, dtype: str
) -> None:
    found = only_tensor(tmp_path, tensor_of("w", [3], code, content))
    assert found.dtype == dtype and found.tolist() == VALUES


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=30))
def test_packed_integers_are_decoded_all_at_once(values: list[int]) -> None:
    fields = Decoder().fields(memoryview(field(7, b"".join(map(onnx.varint, values)))))
    assert integers(fields, 7, 30).tolist() == values


def test_unused_tensors_may_be_anything(tmp_path: Path) -> None:
    text = tensor_of("labels", [1 << 40], 8, field(6, "cat"))
    content = model([node("Conv", ["x", "w"])], [text, tensor("w", KERNEL)])
    assert len(read(tmp_path, content).layers) == 1


# What is refused

OUTSIDE = field(13, field(1, "location") + field(2, "../../secret")) + field(14, 1)
CONV = node("Conv", ["x", "w"], name="first")
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "E502", "the file is not an ONNX model"),
    "PyTorch checkpoint": (b"PK\x03\x04" + bytes(60), "E502", "the file is not an ONNX model"),
    "no graph": (field(1, 8), "E502", "the file is not an ONNX model"),
    "group": (b"\x0b", "E503", "the ONNX file is damaged: a field of wire type 3"),
    "cut": (
        chain(("Conv", KERNEL, BIAS))[:-40],
        "E503",
        "the ONNX file is damaged: a field of 341 bytes where 305 are left; it may be truncated",
    ),
    "endless number": (
        b"\xff" * 12,
        "E503",
        "the ONNX file is damaged: a number without an end; it may be truncated",
    ),
    "graph is a number": (field(7, 1), "E503", "the ONNX file is damaged: field 7 is an integer"),
    "no weights": (
        model([node("Conv", ["x"], name="c")], []),
        "E503",
        "the ONNX file is damaged: Conv 'c' has no weights",
    ),
    "fewer values than the shape": (
        model([CONV], [tensor_of("w", [2, 3], onnx.FLOAT, field(9, bytes(4 * 5)))]),
        "E503",
        "the ONNX file is damaged: the tensor 'w' of shape [2, 3] holds 5 values",
    ),
    "half a value": (
        model([CONV], [tensor_of("w", [1], onnx.FLOAT, field(9, bytes(3)))]),
        "E503",
        "the ONNX file is damaged: 3 bytes are no whole number of values of <f4",
    ),
    "negative size": (
        model([CONV], [tensor_of("w", [-1, -2], onnx.FLOAT, field(9, bytes(8)))]),
        "E503",
        "the ONNX file is damaged: the tensor 'w' has the shape [-1, -2]",
    ),
    "beyond the type": (
        model([CONV], [tensor_of("w", [1], onnx.INT8, field(5, 128))]),
        "E503",
        "the ONNX file is damaged: the tensor 'w' holds values beyond its type int8",
    ),
    "more values than the shape": (
        model([CONV], [tensor_of("w", [1], onnx.INT32, field(5, b"\x01\x02"))]),
        "E503",
        "the ONNX file is damaged: a list of numbers has another length than it says",
    ),
    "data outside": (
        model([CONV], [tensor_of("w", [1], onnx.FLOAT, OUTSIDE)]),
        "E512",
        "the data of the tensor 'w' is in another file, '../../secret': a name without folders is "
        "taken",
    ),
    "texts as weights": (
        model([CONV], [tensor_of("w", [1], 8, field(6, "cat"))]),
        "E513",
        "the tensor 'w' is of the data type STRING",
    ),
    "unknown type": (
        model([CONV], [tensor_of("w", [1], 99, b"")]),
        "E513",
        "the tensor 'w' is of the data type 99",
    ),
    "terabytes": (
        model([CONV], [tensor_of("w", [1 << 20, 1 << 20], onnx.FLOAT, b"")]),
        "E505",
        "with the tensor 'w' of shape [1048576, 1048576] the weights have more than "
        f"{MAX_ELEMENTS} elements",
    ),
    "fields without end": (
        field(3, 0) * (MAX_FIELDS + 1),
        "E505",
        f"the file has more than {MAX_FIELDS} fields",
    ),
    "computed weights": (
        model([node("DequantizeLinear", ["q"], ["w"], "dq"), CONV], []),
        "E515",
        "Conv 'first' takes its weights from 'w', which is computed by DequantizeLinear 'dq' "
        "and not a stored initializer",
    ),
    "weights as input": (
        model([CONV], []),
        "E515",
        "Conv 'first' takes its weights from 'w', which is an input of the model "
        "and not a stored initializer",
    ),
    "bias as input": (
        model([node("Conv", ["x", "w", "b\n"], name="c\x1b")], [tensor("w", KERNEL)]),
        "E515",
        "Conv 'c\\x1b' takes its bias from 'b\\n', which is an input of the model "
        "and not a stored initializer",
    ),
    "factor": (
        model([node("Gemm", ["x", "w"], attributes={"alpha": 0.5})], [tensor("w", BIAS)]),
        "E515",
        "Gemm 'y' multiplies with alpha = 0.5, the accelerator cannot",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_file_is_refused_with_code_and_reason(tmp_path: Path, case: str) -> None:
    content, code, message = REFUSED[case]
    assert refused(tmp_path, content) == (code, message)


@pytest.mark.parametrize("packed", [False, True])
def test_tensors_have_at_most_the_dimensions_of_the_reader(tmp_path: Path, packed: bool) -> None:
    for axes in (MAX_DIMENSIONS, MAX_DIMENSIONS + 1):
        shape = field(1, b"\x01" * axes) if packed else b"".join([field(1, 1)] * axes)
        content = model([CONV], [shape + tensor_of("w", (), onnx.FLOAT, field(9, bytes(4)))])
        if axes > MAX_DIMENSIONS:
            assert refused(tmp_path, content)[0] == "E503"
        else:
            assert read(tmp_path, content).layers[0].weights.ndim == axes


def test_weights_named_many_times_do_not_multiply(tmp_path: Path) -> None:
    """Each use counts: a small file cannot keep the reader busy with one tensor."""
    shared = tensor_of("w", [1 << 20], onnx.INT8, field(9, bytes(1 << 20)))
    start = time.monotonic()
    code, _ = refused(tmp_path, model([CONV] * 10_000, [shared]))
    assert code == "E505" and time.monotonic() - start < 10


def test_missing_and_oversized_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: No such file") as caught:
        read_onnx(tmp_path / "none.onnx")
    assert caught.value.code == "E501"
    large = tmp_path / "large.onnx"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # sparse: takes no room
    with pytest.raises(CheckpointError, match=f"the limit is {MAX_FILE_BYTES}") as caught:
        read_onnx(large)
    assert caught.value.code == "E505"


@pytest.fixture(scope="module")
def whole() -> bytes:
    """A file with everything that is read."""
    nodes = [
        node("Constant", [], ["c"], attributes={"value": tensor("", KERNEL)}),
        node("Conv", ["x", "c", "b"], ["h"], "conv", {"group": 1}),
        node("Gemm", ["h", "w"], ["p"], "fc", {"transB": 1, "alpha": 1.0}),
        node("MatMul", ["p", "i"], ["q"]),
        node("Add", ["q", "b"], ["y"]),
    ]
    packed = tensor_of("i", [2, 2], onnx.INT32, field(5, b"\x01\x02\x03\x04"))
    return model(nodes, [tensor("b", BIAS), tensor("w", np.ones((2, 2), "f4")), packed])


def test_every_truncation_is_noticed_or_harmless(tmp_path: Path, whole: bytes) -> None:
    complete = len(read(tmp_path, whole).layers)
    for size in range(0, len(whole), 3):
        try:
            assert len(read(tmp_path, whole[:size]).layers) == complete
        except CheckpointError as exc:
            assert exc.code in {"E502", "E503"}


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_a_model_or_a_complaint(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(whole) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    try:
        read(tmp_path_factory.getbasetemp(), bytes(damaged))
    except CheckpointError as exc:
        assert exc.code.startswith(("E50", "E51"))


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_end_in_a_complaint_or_no_layers(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    try:
        assert read(tmp_path_factory.getbasetemp(), content).layers == ()
    except CheckpointError as exc:
        assert exc.code.startswith(("E50", "E51"))
