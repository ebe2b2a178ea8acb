"""The C reader of containers: the same refusals and the same bytes as in Python."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.software.container import ContainerError, unpack, verify_vectors
from ai8xtools.software.container.cipher import check_tag, tagged
from ai8xtools.software.container.pack import Builder, Seal, pack, seal_checksums
from ai8xtools.software.container.records import HEADER_BYTES, NOT_RESIDENT, Element, Op, Vectors
from ai8xtools.software.container.soundness import intermediates
from tests.software.compiled import compiler
from tests.software.container_answers import variants
from tests.software.container_fields import planned
from tests.software.container_fuzz import damaged
from tests.software.containers import KINDS, RECIPES, made
from tests.software.nnb_in_c import build_driver, opened, statuses

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("nnb"))


def test_outputs_are_those_of_python(program: Path, tmp_path: Path) -> None:
    blobs = [made(recipe, kind, seed) for recipe in RECIPES for kind in KINDS for seed in (1, 2)]
    assert statuses(program, blobs, tmp_path) == ["ok ok"] * len(blobs)


def test_encrypted_files_are_decrypted_layer_by_layer(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    blobs = [made(recipe, kind, 1, Seal(KEY, bytes(range(12)))) for recipe in RECIPES
             for kind in KINDS]  # fmt: skip
    assert statuses(program, blobs, tmp_path, KEY.hex()) == ["ok ok"] * len(blobs)


def test_tags_are_those_of_the_library(tmp_path: Path) -> None:
    poly1305 = pytest.importorskip("cryptography.hazmat.primitives.poly1305")
    program = build_driver(tmp_path, driver=Path(__file__).with_name("poly_driver.c"))
    random = np.random.default_rng(0)
    high, two = b"\xff" * 16, b"\x02" + bytes(15)
    pairs = [  # what carries beyond the modulus, then any
        (two + bytes(16), high), (two + high, two), (b"\x01" + bytes(31), high * 2 + b"\x11"),
        (b"\x01" + bytes(31), high + b"\xfb" + b"\xfe" * 15 + b"\x01" * 16), (high * 2, high * 9),
        *((random.bytes(32), random.bytes(size)) for size in range(1, 130)),
    ]  # fmt: skip
    words = [part.hex() for pair in pairs for part in pair]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    expected = [poly1305.Poly1305.generate_tag(key, text).hex() for key, text in pairs]
    assert done.stdout.split() == expected


def test_tag_of_rfc_8439(tmp_path: Path) -> None:
    program = build_driver(tmp_path, driver=Path(__file__).with_name("poly_driver.c"))
    key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"
    message = b"Cryptographic Forum Research Group".hex()
    done = subprocess.run([program, key, message], capture_output=True, text=True, check=True)
    assert done.stdout == "a8061dc1305136c6c22b8baf0c0127a9\n"


def test_changed_file_or_other_key_is_told_by_the_tag(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    blob = made("convolutions", seal=Seal(KEY, bytes(range(12))))
    whole, data = tagged(blob, KEY), int.from_bytes(blob[0x28:0x2C], "little")
    assert check_tag(whole, KEY) and not check_tag(blob, KEY)
    forged = []
    for place in (0x35, data + 5, len(blob) - 3):  # nonce, data, test vectors
        changed = bytearray(blob)
        changed[place] ^= 1
        forged.append(seal_checksums(bytes(changed)) + whole[len(blob) :])
        with pytest.raises(ContainerError) as refused:
            check_tag(forged[-1], KEY)
        assert refused.value.name == "tag"
    without = [blob, whole[:-1], made("pooling")]
    found = statuses(program, [*forged, *without], tmp_path, "tag", KEY.hex())
    assert found == ["tag"] * len(found)
    assert statuses(program, [whole], tmp_path, "tag", bytes(32).hex()) == ["tag"]
    in_a_slot = whole + b"\xff" * 99
    assert statuses(program, [whole, in_a_slot], tmp_path, "tag", KEY.hex()) == ["ok", "ok"]


def test_every_damaged_byte_is_detected(program: Path, tmp_path: Path) -> None:
    blobs = [made("pooling"), made("packed")]
    found = statuses(program, blobs, tmp_path, "bytes", "8")
    assert [line.split()[0] for line in found] == ["0", "0"]


def test_damaged_files_have_the_same_names_in_c(program: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    blobs = [damaged(random, made(recipe)) for recipe in RECIPES for _ in range(125)]
    found = [line.split()[0] for line in statuses(program, blobs, tmp_path)]
    assert found == [opened(blob) for blob in blobs]
    assert len(set(found)) > 8


def test_known_answers(program: Path, tmp_path: Path, shared: Path) -> None:
    for file in sorted((shared / "kat-software" / "container").glob("*.json")):
        case = json.loads(file.read_text())
        blob = file.with_suffix(".nnb").read_bytes()
        assert statuses(program, [blob], tmp_path, case["key"] or "00") == ["ok ok"]
        changed = [(data, error) for _, data, error in variants(case, blob)]
        found = statuses(program, [data for data, _ in changed], tmp_path, case["key"] or "00")
        assert [line.split()[0] for line in found] == [error or "ok" for _, error in changed]


def test_wrong_key_is_told_by_the_test_vectors(program: Path, tmp_path: Path, shared: Path) -> None:
    blob = (shared / "kat-software" / "container" / "encrypted.nnb").read_bytes()
    assert statuses(program, [blob], tmp_path, KEY.hex()) == ["ok vectors"]


def _spare(kind: int, encoding: int, shape: tuple[int, int, int, int], size: int) -> bytes:
    """Return a copy of 12 values, and a tensor that no layer uses."""
    builder = Builder()
    given, made_ = (builder.activation(Element.INT8, one) for one in ((2, 2, 3), (1, 1, 12)))
    builder.layer(Op.COPY, [given], made_)
    builder.activation(Element.INT8, (1, 1, 1))
    container = builder.container()
    rows, columns, channels, count = shape
    spare = replace(
        container.tensors[-1], type=kind, encoding=encoding, rows=rows, columns=columns,
        channels=channels, count=count, size_bytes=size,
    )  # fmt: skip
    return pack(replace(container, tensors=(*container.tensors[:-1], spare)))


def _connected(pixels: tuple[int, int], vectors: Vectors | None = None) -> bytes:
    """Return a fully connected layer of 4 filters, whose output states so many pixels."""
    builder = Builder()
    given = builder.activation(Element.INT8, (1, 1, 3))
    weights = builder.weights(np.ones((4, 1, 1, 3), np.int64), 8, rows=True)
    result = builder.activation(Element.INT8, (*pixels, 4))
    builder.layer(Op.FC, [given], result, weights=weights)
    return pack(builder.container(vectors))


def _doubled(filters: int) -> bytes:
    """Return a transposed convolution whose output has 4 channels, with so many filters."""
    builder = Builder()
    given = builder.activation(Element.INT8, (2, 2, 3))
    weights = builder.weights(np.ones((filters, 3, 3, 3), np.int64), 8)
    result = builder.activation(Element.INT8, (4, 4, 4))
    builder.layer(Op.CONV_TRANSPOSED, [given], result, weights=weights, kernel=(3, 3))
    return pack(builder.container())


def _grouped(op: Op, groups: int) -> bytes:
    """Return a layer of 4 filters on 4 channels in so many groups."""
    builder = Builder()
    given = builder.activation(Element.INT8, (1, 1, 4))
    inputs = 4 if op == Op.FC else 4 // groups
    weights = builder.weights(np.ones((4, 1, 1, inputs), np.int64), 8, rows=op == Op.FC)
    result = builder.activation(Element.INT8, (1, 1, 4))
    builder.layer(op, [given], result, weights=weights, groups=groups)
    return pack(builder.container())


def _unplaced() -> bytes:
    """Return a planned container of which one tensor has no place after all."""
    container = unpack(planned(made("pooling")))
    tensors = [*container.tensors]
    number = intermediates(container)[0]
    tensors[number] = replace(tensors[number], arena=NOT_RESIDENT)
    return pack(replace(container, tensors=tuple(tensors)))


def _wide() -> bytes:
    """Return three maps of 3.6 GB from one value."""
    builder = Builder()
    last = builder.activation(Element.INT8, (1, 1, 1))
    for shape in (*[(60000, 60000, 1)] * 3, (1, 1, 1)):
        weights = builder.weights(np.ones((1, 1, 1, 1), np.int64), 8)
        result = builder.activation(Element.INT8, shape)
        builder.layer(Op.CONV_TRANSPOSED, [last], result, weights=weights)
        last = result
    return pack(builder.container())


def _joined(count: int) -> bytes:
    """Return the sum of so many operands."""
    builder = Builder()
    given, made_ = (builder.activation(Element.INT8, (1, 1, 2)) for _ in range(2))
    builder.layer(Op.ADD, [given] * count, made_)
    return pack(builder.container())


def _long() -> bytes:
    """Return the sum of more than 2^31 from three pixels of as many channels as there may be."""
    builder = Builder()
    given = builder.activation(Element.INT8, (1, 3, 65535))
    weights = builder.weights(np.full((1, 1, 3, 65535), -128), 8)
    result = builder.activation(Element.INT32, (1, 1, 1))
    builder.layer(Op.CONV, [given], result, weights=weights, kernel=(1, 3), out_shift=8)
    made_ = (3 * 65535 * 64).to_bytes(4, "little")
    return pack(builder.container(Vectors((b"\x80" * 3 * 65535,), (made_,))))


def _without_weights() -> bytes:
    """Return a softmax that says it is a transposed convolution."""
    container = unpack(made("windows"))
    *layers, last = container.layers
    return pack(replace(container, layers=(*layers, replace(last, op=Op.CONV_TRANSPOSED))))


HOSTILE = {
    "as many operands as there may be": (_joined(16), "ok"),
    "an operand more": (_joined(17), "unsupported"),
    "the header alone": (_joined(16)[:HEADER_BYTES], "size"),
    "number of values leaves 64 bits": (_spare(2, 0, (63490, 44606, 60093, 27098),
                                               63490 * 44606 * 60093 * 27098 % (1 << 62) * 4),
                                        "tensor"),
    "ternary weights without a byte": (_spare(3, 64, (65535, 65535, 65535, 65535), 0), "tensor"),
    "ternary weights of 3.4 GB": (_spare(3, 64, (65535, 65535, 4, 1), 3435868980), "ok"),
    "many pixels of one fully connected layer": (_connected((2, 2)), "layer"),
    "maps beyond 32 bits": (_wide(), "memory"),
    "transposed weights of other channels": (_doubled(5), "unsupported"),
    "transposed weights of the channels": (_doubled(4), "ok"),
    "a transposed convolution without weights": (_without_weights(), "unsupported"),
    **{f"{op.name}, {groups} groups of 4 channels": (_grouped(op, groups), told)
       for op, groups, told in ((Op.CONV, 2, "ok"), (Op.CONV, 3, "unsupported"),
                                (Op.FC, 1, "ok"))},
    "a plan without a place for a tensor": (_unplaced(), "ok ok"),
    "only the first output is wrong": (_connected((1, 1), Vectors((bytes(3),) * 2,
                                                                  (b"1234", bytes(4)))),
                                       "ok vectors"),
    "a sum that leaves 32 bits": (_long(), "ok ok"),
    "test vectors of another network": (_connected((1, 1), Vectors((b"12",), (b"1234",))),
                                        "ok vectors"),
}  # fmt: skip


def test_tables_that_keep_to_their_checksums_only(program: Path, tmp_path: Path) -> None:
    found = statuses(program, [blob for blob, _ in HOSTILE.values()], tmp_path)
    for (name, (blob, expected)), told in zip(HOSTILE.items(), found, strict=True):
        assert (name, *told.split())[: 1 + len(expected.split())] == (name, *expected.split())
        assert opened(blob) == expected.split()[0], name
    with pytest.raises(ContainerError, match="vectors"):
        verify_vectors(unpack(HOSTILE["test vectors of another network"][0]))
