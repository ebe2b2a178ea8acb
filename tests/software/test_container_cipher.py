"""Encrypted containers: stream and tag are those of RFC 8439, without any library."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.software.container import ContainerError, unpack, verify_vectors
from ai8xtools.software.container.cipher import TAG_BYTES, check_tag, has_tag, tagged
from ai8xtools.software.container.from_graph import planned
from ai8xtools.software.container.pack import Seal, pack, seal_checksums
from ai8xtools.software.container.records import Element
from ai8xtools.software.container.soundness import arena_bytes, intermediates
from tests.software.compiled import compiler
from tests.software.containers import made
from tests.software.nnb_in_c import build_driver, opened, statuses
from tests.software.plain_cipher import ChaCha20Poly1305, poly1305, stream, take_its_place

KEY, NONCE = bytes(range(100, 132)), bytes(range(12))
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


@pytest.fixture
def cipher(monkeypatch: pytest.MonkeyPatch) -> None:
    take_its_place(monkeypatch)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("nnb"), ("-O0",))


def test_the_plain_cipher_is_that_of_the_document() -> None:
    """Sections 2.5.2 and 2.8.2 of RFC 8439."""
    key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"
    found = poly1305(bytes.fromhex(key), b"Cryptographic Forum Research Group")
    assert found.hex() == "a8061dc1305136c6c22b8baf0c0127a9"
    text = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it.")  # fmt: skip
    sealed = ChaCha20Poly1305(bytes(range(0x80, 0xA0))).encrypt(
        bytes.fromhex("070000004041424344454647"), text,
        bytes.fromhex("50515253c0c1c2c3c4c5c6c7"),
    )  # fmt: skip
    assert sealed[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"


@needs_compiler
def test_tags_in_c_are_those_of_the_definition(tmp_path: Path) -> None:
    program = build_driver(tmp_path, ("-O0",), Path(__file__).with_name("poly_driver.c"))
    random = np.random.default_rng(4)
    pairs = [((1 << bit).to_bytes(32, "little"), b"\1" + bytes(15) + b"\2") for bit in range(256)]
    pairs += [(b"\xff" * 32, b"\xff" * size) for size in range(1, 49)]
    pairs += [(random.bytes(32), random.bytes(size)) for size in range(1, 80)]
    words = [part.hex() for pair in pairs for part in pair]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [poly1305(key, text).hex() for key, text in pairs]


@pytest.mark.usefixtures("cipher")
def test_data_are_encrypted_and_the_rest_is_authenticated_as_it_stands() -> None:
    plain, blob = made("convolutions"), made("convolutions", seal=Seal(KEY, NONCE))
    header = unpack(blob).header
    start, end = header.data, header.data + header.data_bytes
    data = unpack(plain).data
    assert blob[start:end][: len(data)] == stream(KEY, NONCE, data, 1)
    whole = tagged(blob, KEY)
    hidden = stream(KEY, NONCE, blob[start:end], 1)
    sealed = ChaCha20Poly1305(KEY).encrypt(NONCE, hidden, blob[:start] + blob[end:])
    assert whole[len(blob) :] == b"NNB1-Poly1305\0\0\0" + sealed[-16:]
    assert len(whole) - len(blob) == TAG_BYTES
    assert has_tag(whole) and not has_tag(whole[:-1]) and not has_tag(blob)
    assert check_tag(whole + b"more", KEY) and not check_tag(blob, KEY)
    for place in (0x35, start + 5, len(blob) - 3, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises(ContainerError):
            check_tag(bytes(changed), KEY)


@needs_compiler
@pytest.mark.usefixtures("cipher")
def test_encrypted_files_are_computed_and_checked_in_c(program: Path, tmp_path: Path) -> None:
    blobs = [made(recipe, kind, 1, Seal(KEY, NONCE)) for recipe in ("convolutions", "packed")
             for kind in (Element.INT8, Element.INT16)]  # fmt: skip
    assert [verify_vectors(unpack(blob), KEY) for blob in blobs] == [2] * len(blobs)
    assert statuses(program, blobs, tmp_path, KEY.hex()) == ["ok ok"] * len(blobs)
    whole = [tagged(blob, KEY) for blob in blobs]
    assert statuses(program, whole, tmp_path, "tag", KEY.hex()) == ["ok"] * len(blobs)
    wrong = [*blobs, made("pooling"), whole[0][:-1]]
    for place in (0x35, unpack(blobs[0]).header.data + 5, len(blobs[0]) - 3):
        changed = bytearray(blobs[0])
        changed[place] ^= 1
        wrong.append(seal_checksums(bytes(changed)) + whole[0][len(blobs[0]) :])
    wrong += [whole[0][: len(blobs[0]) + n] + bytes([whole[0][len(blobs[0]) + n] ^ 128])
              + whole[0][len(blobs[0]) + n + 1 :] for n in range(TAG_BYTES)]  # fmt: skip
    assert statuses(program, wrong, tmp_path, "tag", KEY.hex()) == ["tag"] * len(wrong)


@pytest.mark.usefixtures("cipher")
def test_weights_are_not_decrypted_over_what_their_layer_reads_or_makes() -> None:
    container = planned(unpack(made("convolutions", seal=Seal(KEY, NONCE))))
    told = []
    for number, layer in enumerate(container.layers):
        for used in {*container.inputs_of(layer), layer.output} & {*intermediates(container)}:
            place = container.tensors[used].arena
            layers = [*container.layers]
            layers[number] = replace(layer, staging=place)
            if place + layer.staging_bytes <= container.header.arena_bytes:
                told.append(opened(pack(replace(container, layers=tuple(layers)))))
    assert {*told} == {"overlap"} and len(told) > 2


@needs_compiler
@pytest.mark.usefixtures("cipher")
def test_weights_for_which_a_plan_has_no_room_are_decrypted_behind_it(
    program: Path, tmp_path: Path
) -> None:
    container = planned(unpack(made("convolutions", seal=Seal(KEY, NONCE))))
    blobs, memory = [pack(container)], [container.header.arena_bytes]
    for number, layer in enumerate(container.layers):
        for bytes_ in (layer.staging_bytes + 16, layer.staging_bytes - 1, 0):
            layers = [*container.layers]
            layers[number] = replace(layer, staging_bytes=bytes_)
            blobs.append(pack(replace(container, layers=tuple(layers))))
            behind = layer.staging_bytes if bytes_ < layer.staging_bytes else 0
            memory.append(container.header.arena_bytes + behind)
    bare = [replace(layer, staging=0, staging_bytes=0) for layer in container.layers]
    blobs.append(pack(replace(container, layers=tuple(bare))))
    most = max(layer.staging_bytes for layer in container.layers)
    memory.append(container.header.arena_bytes + most)
    assert len({*memory}) > 2
    assert [opened(blob) for blob in blobs] == ["ok"] * len(blobs)
    assert [arena_bytes(unpack(blob)) for blob in blobs] == memory
    assert statuses(program, blobs, tmp_path, KEY.hex()) == ["ok ok"] * len(blobs)
