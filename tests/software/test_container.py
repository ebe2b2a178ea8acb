"""Containers: written, read, refused, executed, in Python."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.software.container import (
    ContainerError,
    check_executable,
    run,
    unpack,
    verify_vectors,
)
from ai8xtools.software.container.from_graph import _bits, container_of
from ai8xtools.software.container.pack import Builder, Seal, pack, seal_checksums
from ai8xtools.software.container.records import Element, Flag, Op, Vectors
from ai8xtools.software.container.soundness import sum_limit
from ai8xtools.software.lower import lower
from ai8xtools.synthesis.network import Activation, Layer, Network, Operator
from ai8xtools.synthesis.simulate import simulate
from tests.software.container_answers import check_of, container_cases
from tests.software.containers import KINDS, RECIPES, made
from tools.kernel_layer import layer as layer_of

SEAL = Seal(bytes(range(32)), bytes(range(12)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_written_again_a_file_is_the_same(recipe: str, kind: Element) -> None:
    blob = made(recipe, kind)
    container = unpack(blob)
    assert pack(container) == blob
    assert verify_vectors(container) == 2


@pytest.mark.parametrize(("size_in", "size_out"), [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_vectors_are_as_many_as_have_bytes(size_in: int, size_out: int) -> None:
    """A file of a few bytes can state four thousand million of nothing."""
    container = unpack(made("pooling"))
    vectors = Vectors((bytes(size_in),) * 5, (bytes(size_out),) * 5)
    blob = pack(replace(container, vectors=vectors))
    found = unpack(blob).vectors
    assert found == (vectors if size_in or size_out else Vectors((), ()))


def test_bytes_behind_a_file_are_ignored() -> None:
    blob = made("pooling")
    assert unpack(blob + bytes(37)) == unpack(blob)


def test_every_damaged_byte_is_detected() -> None:
    blob = made("pooling")
    for place in range(len(blob)):
        for mask in (0x01, 0x80, 0xFF):
            changed = bytearray(blob)
            changed[place] ^= mask
            assert check_of(bytes(changed)) is not None, place


def test_layers_say_one_of_five_schemes() -> None:
    container = unpack(made("pooling"))
    first, *others = container.layers
    for scheme in range(8):
        blob = pack(replace(container, layers=(replace(first, scheme=scheme), *others)))
        assert check_of(blob) == (None if scheme < 5 else "layer")


def test_tensors_of_too_many_values_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    container = unpack(made("pooling"))
    given = np.zeros(container.tensors[0].shape, np.int64)
    largest = max(container.tensors[layer.output].elements for layer in container.layers)
    for limit in (largest // 2, largest - 1, largest, largest + 1):
        monkeypatch.setattr("ai8xtools.software.container.execute._MOST_VALUES", limit)
        if limit >= largest:
            run(container, given)
            continue
        with pytest.raises(ContainerError) as refused:
            run(container, given)
        assert refused.value.name == "memory"


def test_truncated_files_are_refused() -> None:
    blob = made("packed")
    for size in range(len(blob)):
        assert check_of(blob[:size]) in ("truncated", "size")


def test_damage_behind_right_checksums_ends_in_a_refusal_or_a_result() -> None:
    random = np.random.default_rng(2)
    blob = made("convolutions")
    end = unpack(blob).header.data
    for _ in range(1500):
        changed = bytearray(blob)
        for place in random.integers(0, end, 2):
            changed[place] = random.integers(0, 256)
        try:
            container = unpack(seal_checksums(bytes(changed)))
            check_executable(container)
        except ContainerError:
            continue


def test_sizes_beyond_32_bits_are_not_taken_for_small_ones() -> None:
    """Sums of offsets and counts that wrap around in 32 bits."""
    blob = made("pooling")
    for place, value in ((0x18, 0x08000000), (0x1C, 0x04000000), (0x2C, 0xFFFFFFF0),
                         (0x20, 0xFFFFFFC0), (0x08, 0xFFFFFFF0)):  # fmt: skip
        changed = bytearray(blob)
        struct.pack_into("<I", changed, place, value)
        assert check_of(seal_checksums(bytes(changed))) in ("table", "size")


def test_tensors_that_share_memory_are_refused() -> None:
    container = unpack(made("pooling"))
    tensors = [replace(t, arena=0) if not t.data else t for t in container.tensors]
    header = replace(container.header, flags=container.header.flags | Flag.PLAN, arena_bytes=4096)
    shared = unpack(pack(replace(container, header=header, tensors=tuple(tensors))))
    with pytest.raises(ContainerError) as refused:
        check_executable(shared)
    assert refused.value.name == "overlap"


def test_constants_that_share_a_part_are_refused() -> None:
    container = unpack(made("convolutions"))
    first, second = [n for n, t in enumerate(container.tensors) if t.data][:2]
    tensors = list(container.tensors)
    assert tensors[first].size_bytes > 16
    tensors[second] = replace(tensors[second], data=tensors[first].data + 16)
    with pytest.raises(ContainerError) as refused:
        check_executable(unpack(pack(replace(container, tensors=tuple(tensors)))))
    assert refused.value.name == "overlap"


def test_layers_in_a_circle_are_refused() -> None:
    container = unpack(made("pooling"))
    layers = list(container.layers)
    layers[0] = replace(layers[0], first_input=layers[-1].output)
    assert check_of(pack(replace(container, layers=tuple(layers)))) == "layer"


def test_sums_beyond_64_bits_are_refused() -> None:
    container = unpack(made("convolutions", Element.INT16))
    layers = list(container.layers)
    layers[-2] = replace(layers[-2], factor=(1 << 31) - 1)
    with pytest.raises(ContainerError) as refused:
        check_executable(unpack(pack(replace(container, layers=tuple(layers)))))
    assert refused.value.name == "overflow"


def test_packed_weights_are_at_most_128_in_magnitude() -> None:
    container = unpack(made("convolutions", Element.INT16))
    layer = next(one for one in container.layers if one.sums)
    weights = container.tensors[layer.weights]
    taps = weights.rows * weights.columns * weights.channels
    assert sum_limit(layer, container) == taps * 2**7 * 2**15
    tensors = list(container.tensors)
    tensors[layer.weights] = replace(weights, type=Element.PACKED)
    assert sum_limit(layer, replace(container, tensors=tuple(tensors))) == taps * 2**7 * 2**15


def test_layers_without_a_kernel_are_refused() -> None:
    container = unpack(made("pooling"))
    layers = [replace(layer, op=Op.SOFTMAX) for layer in container.layers]
    with pytest.raises(ContainerError) as refused:
        check_executable(unpack(pack(replace(container, layers=tuple(layers)))))
    assert refused.value.name == "unsupported"


def test_input_of_another_shape_or_range_is_refused() -> None:
    container = unpack(made("pooling"))
    shape = container.tensors[0].shape
    for values in (np.zeros(3, np.int64), np.full(shape, 128)):
        with pytest.raises(ContainerError) as refused:
            run(container, values)
        assert refused.value.name == "input"


def test_average_of_a_window_truncates() -> None:
    builder = Builder()
    given = builder.activation(Element.INT8, (2, 2, 1))
    output = builder.activation(Element.INT8, (1, 1, 1))
    builder.layer(Op.AVGPOOL, [given], output, kernel=(2, 2))
    container = unpack(pack(builder.container()))
    assert run(container, np.array([-1, -2, -3, -1]).reshape(2, 2, 1)).tolist() == [[[-1]]]


@pytest.mark.parametrize(
    ("values", "shares"),
    [
        # base 2: 128 + 128 + 1 + 1 = 258, 2^20 / 258 = 4064, shifted by 5, 6, 13 and 31
        ([10, 9, 2, -50], [127, 63, 0, 0]),
        # base 119: the same four times, 2^20 / 512 = 2048, shifted by 5
        ([127, 127, 127, 127], [64, 64, 64, 64]),
        # base -136: 128, 2^20 / 128 = 8192, shifted by 5 and limited
        ([-128], [127]),
    ],
)
def test_softmax_has_shares_of_128(values: list[int], shares: list[int]) -> None:
    builder = Builder()
    given, output = (builder.activation(Element.INT8, (1, 1, len(values))) for _ in range(2))
    builder.layer(Op.SOFTMAX, [given], output)
    found = run(unpack(pack(builder.container())), np.array(values).reshape(1, 1, -1))
    assert found.reshape(-1).tolist() == shares


def test_pooling_leaves_out_what_lies_outside() -> None:
    for op, expected in ((Op.MAXPOOL, [-1, -2]), (Op.AVGPOOL, [-1, -3])):
        builder = Builder()
        given = builder.activation(Element.INT8, (1, 3, 1))
        output = builder.activation(Element.INT8, (1, 2, 1))
        builder.layer(op, [given], output, kernel=(1, 2), stride=(1, 2), pad=(0, 1))
        found = run(unpack(pack(builder.container())), np.array([-1, -2, -4]).reshape(1, 3, 1))
        assert found.reshape(-1).tolist() == expected


def test_windows_beside_the_data_are_refused() -> None:
    builder = Builder()
    given = builder.activation(Element.INT8, (4, 4, 1))
    output = builder.activation(Element.INT8, (7, 7, 1))
    builder.layer(Op.AVGPOOL, [given], output, kernel=(2, 2), pad=(2, 2))
    with pytest.raises(ContainerError) as refused:
        check_executable(unpack(pack(builder.container())))
    assert refused.value.name == "unsupported"


def test_wrong_key_is_seen_by_the_test_vectors() -> None:
    pytest.importorskip("cryptography")
    container = unpack(made("convolutions", seal=SEAL))
    assert verify_vectors(container, SEAL.key) == 2
    with pytest.raises(ContainerError) as refused:
        verify_vectors(container, bytes(32))
    assert refused.value.name == "vectors"
    with pytest.raises(ContainerError) as refused:
        verify_vectors(container)
    assert refused.value.name == "key"


def test_cipher_is_that_of_rfc_8439() -> None:
    pytest.importorskip("cryptography")
    from ai8xtools.software.container.cipher import deciphered

    text = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it.")  # fmt: skip
    found = deciphered(text, bytes(range(32)), bytes.fromhex("000000000000004a00000000"))
    assert found.hex() == (
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab8f593dabcd"
        "62b3571639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818c"
        "e91ab77937365af90bbf74a35be6b40b8eedf2785e42874d"
    )


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from ai8xtools.software.container.cipher import deciphered

    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    with pytest.raises(InputError) as refused:
        deciphered(b"", bytes(32), bytes(12))
    assert refused.value.code == "E624"


def test_known_answers(shared: Path) -> None:
    cases = [*container_cases(shared / "kat-software" / "container")]
    assert len(cases) == 4
    assert not [
        case for case in cases if case[1] and "cryptography is not installed" not in case[1][0]
    ]


def _of_one_layer(**changed: Any) -> tuple[bytes, Network]:
    """Return the container of a network of one convolution."""
    random = np.random.default_rng(5)
    filters = changed.get("out_channels", 3)
    layer = Layer(**{
        "index": 0, "operator": Operator.CONV2D, "in_channels": 2, "out_channels": filters,
        "in_dim": (6, 5), "pooled_dim": (6, 5), "kernel": (1, 1), "out_dim": (6, 5),
        "weight_bits": 8, "weights": random.integers(-128, 128, (filters, 2, 1, 1), np.int8),
    } | changed)  # fmt: skip
    sample = random.integers(-128, 128, (2, *layer.in_dim))
    network = Network(layers=(layer,), order=(0,), simulated=(0,), sample=sample)
    expected = simulate(network, average_rounding=False).outputs[0]
    return container_of(lower(network), sample, expected, None), network


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize("activation", [None, *Activation])
def test_results_of_both_widths_are_stored_with_their_activation(
    activation: Activation | None, width: int
) -> None:
    weights = (np.array([[1, -1], [0, 1], [-1, 0]]) * (1 if width == 32 else 100)).astype(np.int8)
    blob, network = _of_one_layer(
        activation=activation, output_width=width, weights=weights.reshape(3, 2, 1, 1)
    )
    container = unpack(blob)
    assert verify_vectors(container) == 1
    made_ = container.tensors[container.layers[-1].output]
    assert Element(made_.type).bits == width
    found = run(container, network.sample.transpose(1, 2, 0))
    expected = simulate(network, average_rounding=False).outputs[0]
    assert np.array_equal(found.transpose(2, 0, 1), expected)
    assert len(np.unique(expected)) > 5


def test_maps_have_up_to_65535_channels() -> None:
    one = {"in_dim": (1, 1), "pooled_dim": (1, 1), "out_dim": (1, 1)}
    blob, _ = _of_one_layer(out_channels=65535, **one)
    assert verify_vectors(unpack(blob)) == 1
    with pytest.raises(InputError, match="65536") as refused:
        _of_one_layer(out_channels=65536, **one)
    assert refused.value.code == "E924"


def test_few_bits_are_packed_where_that_takes_fewer_bytes() -> None:
    for bits, inputs in product((1, 2, 4), range(1, 70)):
        weights = np.full((2, inputs, 1, 1), -(1 << (bits - 1)), np.int8)
        conv = replace(layer_of((1, 1), weights, np.zeros(2, np.int64)), weight_bits=bits)
        words = -(-inputs * bits // 32)
        assert _bits(conv) == (bits if 4 * words < inputs else 8)


@pytest.mark.parametrize(
    ("bits", "values", "encoding"),
    [(-1, (-1, 1), 10), (1, (-1, 0), 9), (2, (-2, 1), 10), (4, (-8, 7), 12), (4, (0, 1), 10)],
)
def test_weights_take_the_fewest_bits_that_hold_them(
    bits: int, values: tuple[int, int], encoding: int
) -> None:
    random = np.random.default_rng(5)
    layer = Layer(
        index=0, operator=Operator.CONV2D, in_channels=4, out_channels=3, in_dim=(6, 5),
        pooled_dim=(6, 5), kernel=(3, 3), pad=(1, 1), out_dim=(6, 5), weight_bits=bits, shift=2,
        weights=random.choice(values, (3, 4, 3, 3)).astype(np.int8),
        bias=random.integers(-9, 9, 3),
    )  # fmt: skip
    sample = random.integers(-128, 128, (4, 6, 5))
    network = Network(layers=(layer,), order=(0,), simulated=(0,), sample=sample)
    expected = simulate(network, average_rounding=False).outputs[0]
    container = unpack(container_of(lower(network), sample, expected, None))
    assert container.tensors[container.layers[0].weights].encoding == encoding
