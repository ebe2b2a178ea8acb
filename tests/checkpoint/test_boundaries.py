"""Limits of the readers and writers at the very values where they begin, and small parts alone."""

from __future__ import annotations

import collections
import math
import os
import pickle
import pickletools
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import (
    Checkpoint,
    CheckpointError,
    containers,
    generations,
    known_objects,
    mapped,
    onnx,
    onnx_tensors,
    onnx_wire,
    plain,
    reader,
    safetensors,
    tensors,
    unpickler,
    writer,
)
from ai8xtools.checkpoint.atomic import (
    NEW,
    NOW,
    OLD,
    alone_in,
    link_past,
    make_folders,
    remove_litter,
    settle,
    target_of,
    temporary_prefix,
    write_bytes,
)
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.checkpoint.unpickler import Unpickler
from ai8xtools.reading import system
from tests.checkpoint import onnx_writer
from tests.checkpoint.compare import checkpoint_pickle, tensor, text, zip_container
from tests.conftest import ROOT

ONE = struct.pack("<f", 1.5)


def test_limits_are_those_of_the_documentation() -> None:
    text_of = (ROOT / "docs" / "checkpoints.md").read_text()
    paragraph = next(p for p in text_of.split("\n\n") if p.startswith("Limits prevent"))
    numbers = [int(n.replace(" ", "")) for n in re.findall(r"\d+(?: \d{3})*", paragraph)]
    assert numbers == [
        reader.MAX_FILE_BYTES >> 30, unpickler.MAX_PICKLE_BYTES >> 20, unpickler.MAX_INSTRUCTIONS,
        tensors.MAX_VALUES, tensors.MAX_DEPTH, known_objects.MAX_DIMENSIONS, tensors.MAX_EXPANSION,
        tensors.FREE_BYTES >> 20, containers.MAX_UNPACKED_RATIO,
        containers.FREE_UNPACKED_BYTES >> 20, containers.MAX_ENTRIES,
    ]  # fmt: skip
    for size in (reader.MAX_FILE_BYTES, unpickler.MAX_PICKLE_BYTES, tensors.FREE_BYTES,
                 containers.FREE_UNPACKED_BYTES, safetensors.MAX_HEADER_BYTES):  # fmt: skip
        assert size % (1 << 20) == 0
    assert f"headers above {safetensors.MAX_HEADER_BYTES >> 20} MiB" in text_of
    rows = [line for line in text_of.splitlines() if line.startswith("| E505 ")]
    found = [int(n.replace(" ", "")) for n in re.findall(r"\d+(?: \d{3})*", rows[-1])[1:]]
    assert found == [onnx.MAX_FILE_BYTES >> 20, onnx_wire.MAX_FIELDS, onnx_tensors.MAX_ELEMENTS]


def refused(code: str, read: Any) -> bool:
    """Whether something is refused, and then with this code."""
    try:
        read()
    except CheckpointError as exc:
        assert exc.code == code
        return True
    return False


def unpickled(program: bytes) -> Any:
    return Unpickler(program).run()


VALUES = [
    None, True, False, 0, 255, 256, 65535, 65536, -1, 2**31 - 1, -(2**31), 2**100, -(2**100), 1.5,
    -math.inf, "", "text \u20ac", "x" * 300, b"", b"bytes", b"y" * 300, [], [1], [1, [2, "a"]], (),
    (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": 1}, {"a": {"b": [None]}, 3: (1.0,)},
]  # fmt: skip


def test_the_byte_that_a_message_names_counts_from_where_the_pickle_begins() -> None:
    program = pickle.dumps([1, {"a": (2.5, "text")}], 2)
    for end in range(2, len(program)):
        told = []
        for before in (b"", b"sixteen more ..."):
            machine = Unpickler(before + program[:end], len(before))
            with pytest.raises(CheckpointError) as caught:
                machine.run()
            told.append(str(caught.value))
            assert f" {machine.position - len(before)}" in told[-1]
        assert told[0] == told[1]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_are_read_as_python_reads_them(protocol: int) -> None:
    same = ["twice"]
    # Protocol 2 calls a builtin for empty bytes, which torch refuses as well.
    values = [value for value in VALUES if protocol > 2 or value != b""]
    for value in [*values, values, [same, same], {str(n): n for n in range(1500)}]:
        found = unpickled(pickle.dumps(value, protocol))
        assert repr(found) == repr(value)
        machine = Unpickler(b"before" + pickle.dumps(value, protocol) + b"after", 6)
        machine.run()
        assert machine.data[machine.position :] == b"after"
    again = unpickled(pickle.dumps([same, same], protocol))
    assert again[0] is again[1]


def test_counted_bytes_and_texts_are_read_as_python_reads_them() -> None:
    """Python writes the longest counts only for values of 4 GiB and more."""
    widths = {
        pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT4: 4,
        pickletools.TAKEN_FROM_ARGUMENT4U: 4, pickletools.TAKEN_FROM_ARGUMENT8U: 8,
    }  # fmt: skip
    tried = []
    for opcode in pickletools.opcodes:
        width = widths.get(opcode.arg.n if opcode.arg else 0)
        mutable = opcode.name == "BYTEARRAY8"
        if width is None or mutable or opcode.name.startswith("LONG"):
            continue
        tried.append(opcode.name)
        for size in (0, 1, 7, 255, 256, 70_000)[: 4 if width == 1 else 6]:
            program = opcode.code.encode("latin-1") + size.to_bytes(width, "little")
            program += b"a" * size + b"."
            assert unpickled(program) == pickle.loads(program, encoding="latin-1")
    assert len(tried) == 8


@pytest.mark.parametrize("place", [0, 255, 256, 1 << 16, 1 << 24, (1 << 32) - 1])
def test_values_are_remembered_under_any_number(place: int) -> None:
    where = struct.pack("<I", place)
    one, other = unpickled(b"]r" + where + b"j" + where + b"\x86.")
    assert one == [] and one is other


def test_numbers_have_up_to_128_bits() -> None:
    for size in range(1, 20):
        data = bytes([7] * size)
        for head in (b"\x8a" + bytes([size]), b"\x8b" + struct.pack("<I", size)):
            program = head + data + b"."
            if size > 16:
                assert refused("E503", lambda p=program: unpickled(p))
            else:
                assert unpickled(program) == int.from_bytes(data, "little")


def test_instructions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickler, "MAX_INSTRUCTIONS", 9)
    assert unpickled(b"N" * 8 + b".") is None
    assert refused("E505", lambda: unpickled(b"N" * 9 + b"."))


def test_keys_that_are_no_texts_are_few_or_small() -> None:
    def keyed(keys: list[Any]) -> Any:
        return lambda: unpickled(pickle.dumps(dict.fromkeys(keys), 2))

    assert not refused("E505", keyed([*range(500), *range(2**31 - 200, 2**31 + 1), -(2**31)]))
    for odd in ([n + 0.5 for n in range(101)], [2**31 + 1 + n for n in range(101)]):
        assert not refused("E505", keyed([*odd[:100], "text", 5]))
        assert refused("E505", keyed(odd))


def test_work_of_calls_grows_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = b"ccollections\nOrderedDict\n"
    size = b"ctorch\nSize\n((" + b"K\x01" * 8 + b"ttR0"  # costs 1 and 8
    monkeypatch.setattr(unpickler, "FREE_WORK", 0)
    assert unpickled((ordered + b")R0") * 50 + size * 50 + b"N.") is None  # cheaper than its bytes
    monkeypatch.setattr(unpickler, "WORK_PER_BYTE", 0)
    for calls in range(1, 4):
        monkeypatch.setattr(unpickler, "FREE_WORK", 9 * calls)
        assert not refused("E505", lambda n=calls: unpickled(size * n + b"N."))
        monkeypatch.setattr(unpickler, "FREE_WORK", 9 * calls - 1)
        assert refused("E505", lambda n=calls: unpickled(size * n + b"N."))


def resolved(root: Any, file_bytes: int = 0) -> Any:
    return tensors.resolve(root, lambda _: memoryview(bytes(1 << 12)), file_bytes, False)


def deep(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = ([value], (value,), {"k": value})[level % 3]
    return value


def test_values_and_depth_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolved(deep(tensors.MAX_DEPTH)) == deep(tensors.MAX_DEPTH)
    assert refused("E505", lambda: resolved(deep(tensors.MAX_DEPTH + 1)))
    monkeypatch.setattr(tensors, "MAX_VALUES", 6)
    five: Any = {"a": [1, 2], "b": (None,)}
    assert resolved(five) == five  # with itself six
    assert refused("E505", lambda: resolved({**five, "c": 0}))
    ordered = resolved(collections.OrderedDict(z=1, a=2))
    assert type(ordered) is collections.OrderedDict
    assert list(ordered.items()) == [("z", 1), ("a", 2)]


def test_tensors_together_claim_a_multiple_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    record = unpickled(b"\x80\x02" + tensor(8, 0, (8,), (1,)) + b".")  # 32 bytes
    monkeypatch.setattr(tensors, "FREE_BYTES", 10)
    for file_bytes in range(20):
        for count in range(1, 6):
            wanted = 32 * count > 10 + tensors.MAX_EXPANSION * file_bytes
            found = refused("E505", lambda n=count, size=file_bytes: resolved([record] * n, size))
            assert found == wanted


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_tensors_end_within_their_storage(count: int) -> None:
    data = np.arange(6, dtype="<f4")
    for offset in range(7):
        for shape, strides in (((2, 2), (2, 1)), ((3,), (2,)), ((2, 0), (1, 1)), ((1, 2), (9, 1))):
            record = unpickled(b"\x80\x02" + tensor(count, offset, shape, strides) + b".")
            places = [offset + sum(i * s for i, s in zip(at, strides, strict=True))
                      for at in np.ndindex(shape)]  # fmt: skip

            def read(one: Any = record) -> Any:
                raw = memoryview(data.tobytes())
                return tensors.resolve(one, lambda _: raw, 1 << 10, False)

            assert refused("E503", read) == any(place >= count for place in places)
            if all(place < count for place in places):
                found = read()
                assert found.shape == shape
                assert found.ravel().tolist() == [float(place) for place in places]
    for held in range(7):  # bytes of the storage
        record = unpickled(b"\x80\x02" + tensor(1, 0, (1,), (1,)) + b".")
        raw = memoryview(bytes(held))
        ends = refused("E503", lambda r=raw: tensors.resolve(record, lambda _: r, 99, False))  # noqa: B023
        assert ends == (held < 4)


def test_compressed_entries_unpack_to_a_multiple_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = zip_container(checkpoint_pickle(), compress=True, data_0=ONE)
    unpacked = len(checkpoint_pickle()) + len(ONE)
    monkeypatch.setattr(containers, "MAX_UNPACKED_RATIO", 0)
    monkeypatch.setattr(containers, "FREE_UNPACKED_BYTES", unpacked)
    root, kind = containers.read_container(data)
    assert kind == "zip"
    assert root["state_dict"]["a.weight"].tolist() == [1.5]
    monkeypatch.setattr(containers, "FREE_UNPACKED_BYTES", unpacked - 1)
    assert refused("E505", lambda: containers.read_container(data))
    monkeypatch.setattr(containers, "MAX_UNPACKED_RATIO", 1)
    assert not refused("E505", lambda: containers.read_container(data))


def test_entries_of_an_archive_and_bytes_of_its_pickle_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = zip_container(checkpoint_pickle(), data_0=ONE)  # three entries
    monkeypatch.setattr(containers, "MAX_ENTRIES", 3)
    monkeypatch.setattr(containers, "MAX_PICKLE_BYTES", len(checkpoint_pickle()))
    assert not refused("E505", lambda: containers.read_container(data))
    monkeypatch.setattr(containers, "MAX_PICKLE_BYTES", len(checkpoint_pickle()) - 1)
    assert refused("E505", lambda: containers.read_container(data))
    monkeypatch.setattr(containers, "MAX_ENTRIES", 2)
    assert refused("E505", lambda: containers.read_container(data))


@pytest.mark.parametrize("value", [*VALUES, 2**127, -(2**127), collections.OrderedDict(b=1, a=2)])
def test_notes_come_back_from_json(value: Any) -> None:
    found = plain.from_plain(plain.to_plain({"note": [value]}))
    assert repr(found) == repr({"note": [value]})
    assert type(found["note"][0]) is type(value)


def test_notes_have_their_limits() -> None:
    assert plain.to_plain(deep(tensors.MAX_DEPTH)) is not None
    assert plain.from_plain(plain.to_plain(deep(tensors.MAX_DEPTH))) == deep(tensors.MAX_DEPTH)
    assert refused("E508", lambda: plain.to_plain(deep(tensors.MAX_DEPTH + 1)))
    pairs: Any = 0
    for _ in range(tensors.MAX_DEPTH):  # as deep as it may be, and each level two of the file
        pairs = {1: pairs}
    assert plain.from_plain(plain.to_plain(pairs)) == pairs
    level: Any = 0
    for _ in range(2 * tensors.MAX_DEPTH + 2):
        level = [level]
    assert plain.from_plain(level) == level
    assert refused("E505", lambda: plain.from_plain([level]))
    most = 2**128 - 1
    for sign in (1, -1):
        assert plain.to_plain(sign * most) == sign * most == plain.from_plain(sign * most)
        assert refused("E508", lambda s=sign: plain.to_plain(s * (most + 1)))
        assert refused("E503", lambda s=sign: plain.from_plain(s * (most + 1)))
    for array in (np.arange(6, dtype=">i2").reshape(2, 3), np.array([True, False]), np.zeros(0)):
        again = plain.from_plain(plain.to_plain(array))
        assert (again.shape, again.tolist()) == (array.shape, array.tolist())


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda value: [value],
        lambda value: (value,),
        lambda value: {"a": value},
        lambda value: {1: value},
        lambda value: collections.OrderedDict(a=value),
    ],
)
def test_depth_of_notes_is_limited_whatever_they_are_made_of(wrapped: Any) -> None:
    value: Any = 0
    for _ in range(tensors.MAX_DEPTH):
        value = wrapped(value)
    assert plain.from_plain(plain.to_plain(value)) == value
    assert refused("E508", lambda: plain.to_plain(wrapped(value)))


@pytest.mark.parametrize("key", ["a", "$tuple", "$pairs", "$ordered"])
def test_depth_of_files_is_limited_whatever_holds_the_values(key: str) -> None:
    level: Any = 0
    for _ in range(2 * tensors.MAX_DEPTH + 3):
        inner = [["k", level]] if key in ("$pairs", "$ordered") else level
        level = {key: [inner] if key == "$tuple" else inner}
    assert refused("E505", lambda: plain.from_plain(level))


def test_what_is_written_has_its_limits(tmp_path: Path) -> None:
    def bytes_of(note: Any) -> bytes:
        entries = {"state_dict": {"a": np.ones(1, np.float32)}, "note": note}
        return writer.checkpoint_bytes(tmp_path / "x", Checkpoint(entries))

    for wrapped in (lambda one: [one], lambda one: {"a": one}, lambda one: {(): one}):
        level: Any = 0
        for _ in range(writer._MAX_DEPTH - 1):  # below the dictionary of entries
            level = wrapped(level)
        assert bytes_of(level)
        deeper = wrapped(level)
        assert refused("E508", lambda deeper=deeper: bytes_of(deeper))
    for value in (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**127 - 1, -(2**127) + 1, 255, 128):
        root, _ = containers.read_container(bytes_of(value))
        assert root["note"] == value
    assert refused("E508", lambda: bytes_of(2**128))


def test_strides_are_those_of_numpy() -> None:
    for shape in ((), (1,), (3,), (2, 3), (4, 1, 5), (2, 3, 4, 5)):
        array = np.zeros(shape, np.float32)
        assert writer._row_major_strides(shape) == tuple(n // 4 for n in array.strides)


def test_header_of_safetensors_has_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"b": np.arange(3, dtype=np.uint8), "a": np.ones((2, 2)), "c": np.zeros(5, np.float16)}
    checkpoint = Checkpoint({"state_dict": state, "arch": "net", "note": [1, (2,)]})
    data = safetensors.safetensors_bytes("x", checkpoint)
    (length,) = struct.unpack_from("<Q", data)
    assert length % 8 == 0
    assert len(data) == 8 + length + sum(array.nbytes for array in state.values())
    root = safetensors.read_safetensors(data)
    assert list(root["state_dict"]) == ["b", "a", "c"]
    assert all(np.array_equal(root["state_dict"][name], state[name]) for name in state)
    assert (root["arch"], root["note"]) == ("net", [1, (2,)])
    monkeypatch.setattr(safetensors, "MAX_HEADER_BYTES", length)
    assert not refused("E505", lambda: safetensors.read_safetensors(data))
    monkeypatch.setattr(safetensors, "MAX_HEADER_BYTES", length - 1)
    assert refused("E505", lambda: safetensors.read_safetensors(data))
    text_of = data[8 : 8 + length]
    monkeypatch.setattr(safetensors, "MAX_HEADER_BYTES", length)
    signs = sum(text_of.count(sign) for sign in b",[{")
    monkeypatch.setattr(safetensors, "MAX_VALUES", signs)
    assert not refused("E505", lambda: safetensors.read_safetensors(data))
    monkeypatch.setattr(safetensors, "MAX_VALUES", signs - 1)
    assert refused("E505", lambda: safetensors.read_safetensors(data))


# -- the wire format of ONNX -------------------------------------------------------------------


def test_fields_are_split_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)]
    message = b"".join(onnx_writer.field(3, n) for n in numbers)
    message += onnx_writer.field(16, b"abc") + onnx_writer.field(2, 0.5)
    message += onnx_writer.varint(9 << 3 | 1) + struct.pack("<d", 1.25) + onnx_writer.field(16, "")
    monkeypatch.setattr(onnx_wire, "MAX_FIELDS", len(numbers) + 4)
    fields = onnx_wire.Decoder().fields(memoryview(message))
    assert onnx_wire.integers(fields, 3, len(numbers)).tolist() == numbers
    assert refused("E503", lambda: onnx_wire.integers(fields, 3, len(numbers) - 1))
    packed = b"".join(map(onnx_writer.varint, numbers))
    other = {3: [memoryview(packed)]}
    assert onnx_wire.integers(other, 3, len(numbers)).tolist() == numbers
    assert refused("E503", lambda: onnx_wire.integers(other, 3, len(numbers) - 1))
    assert [bytes(piece) for piece in onnx_wire.pieces(fields, 16)] == [b"abc", b""]
    assert onnx_wire.texts(fields, 16) == ["abc", ""]
    assert onnx_wire.text({16: [memoryview(b"a"), memoryview(b"b")]}, 16) == "b"
    assert onnx_wire.single(fields, 2, 9.0) == 0.5
    assert onnx_wire.single(fields, 7, 9.0) == 9.0
    assert onnx_wire.integer(fields, 3) == -(2**63)
    assert onnx_wire.integer(fields, 7, 5) == 5
    assert onnx_wire.integer({1: [2**63 - 1]}, 1) == 2**63 - 1
    assert [bytes(piece) for piece in onnx_wire.pieces(fields, 9)] == [struct.pack("<d", 1.25)]
    for end in range(1, len(message)):  # cut anywhere: fewer fields or damage, never others
        try:
            part = onnx_wire.Decoder().fields(memoryview(message)[:end])
        except CheckpointError as exc:
            assert exc.code == "E503"
            continue
        for number, values in part.items():
            assert values == fields[number][: len(values)]
    monkeypatch.setattr(onnx_wire, "MAX_FIELDS", len(numbers) + 3)
    assert refused("E505", lambda: onnx_wire.Decoder().fields(memoryview(message)))


def test_last_floating_point_number_counts_and_has_four_bytes() -> None:
    numbers = [memoryview(struct.pack("<f", n)) for n in (0.5, -1.25)]
    assert onnx_wire.single({2: [*numbers]}, 2, 7.0) == -1.25
    assert onnx_wire.single({2: [*numbers]}, 3, 7.0) == 7.0
    for size in (0, 3, 5, 8):
        wrong = memoryview(bytes(size))
        assert refused("E503", lambda wrong=wrong: onnx_wire.single({2: [wrong]}, 2, 7.0))


def test_numbers_of_more_than_ten_bytes_are_damage() -> None:
    for size in range(1, 13):
        data = b"\x80" * (size - 1) + b"\x01"
        packed = {1: [memoryview(data)]}
        assert refused("E503", lambda p=packed: onnx_wire.integers(p, 1, 5)) == (size > 10)
        message = memoryview(b"\x08" + data)
        assert refused("E503", lambda m=message: onnx_wire.Decoder().fields(m)) == (size > 10)


# -- generations -------------------------------------------------------------------------------


def test_exponents_are_whole_numbers_in_range() -> None:
    for what, largest in ((generations.THRESHOLD, 60), (generations.FINAL_SCALE, 15),
                          (generations.RANGE, 15)):  # fmt: skip
        assert generations.exponent({}, "a", what) == 0
        for value in range(-70, 71):
            for number in (np.array(value, np.float32), np.array([value], np.int64)):
                state = {f"a.{what}": number}
                if abs(value) <= largest:
                    assert generations.exponent(state, "a", what) == value
                    generations.refuse_inconsistent(state)
                else:
                    assert refused("E516", lambda s=state, w=what: generations.exponent(s, "a", w))
                    assert refused("E516", lambda s=state: generations.refuse_inconsistent(s))
        for bad in (np.array(0.5), np.zeros(2), np.array([True]), np.zeros(0), np.array(np.nan)):
            state = {f"a.{what}": bad}
            assert refused("E516", lambda s=state, w=what: generations.exponent(s, "a", w))


def test_shifts_are_held_as_narrow_weights_leave_room_for() -> None:
    """The weights are shifted up to 8 bits first, and the sum of both shifts is -15..15."""
    for bits in (1, 2, 4, 8):
        for shift in range(-40, 41):
            possible = [s for s in range(-60, 61) if -15 <= s + 8 - bits <= 15]
            nearest = min(possible, key=lambda s, wanted=shift: abs(s - wanted))
            assert generations.limited_shift(shift, bits) == nearest


# -- graphs of ONNX ----------------------------------------------------------------------------


def value_info(name: str, sizes: list[int]) -> bytes:
    f = onnx_writer.field
    dims = b"".join(f(1, f(1, size)) for size in sizes)
    return f(1, name) + f(2, f(1, f(1, 1) + f(2, dims)))


def test_graph_is_read_with_the_values_of_every_kind(tmp_path: Path) -> None:
    f = onnx_writer.field
    attributes = [
        f(1, "i") + f(3, -7), f(1, "f") + f(2, 0.25), f(1, "s") + f(4, "SAME"),
        f(1, "ints") + f(8, 3) + f(8, -2), f(1, "floats") + f(7, struct.pack("<2f", 1.5, -2)),
        f(1, "t") + f(5, onnx_writer.tensor("", np.arange(3, dtype=np.int8))),
    ]  # fmt: skip
    node = f(1, "x") + f(1, "w") + f(2, "m") + f(3, "first") + f(4, "Conv")
    node += b"".join(f(5, one) for one in attributes)
    second = f(1, "m") + f(1, "") + f(2, "y") + f(4, "Odd") + f(7, "own")
    graph = f(1, node) + f(1, second) + f(5, onnx_writer.tensor("w", np.ones((2, 1, 1))))
    graph += f(11, value_info("x", [1, 3, -1, 5])) + f(11, value_info("w", [2]))
    graph += f(12, value_info("y", []))
    path = tmp_path / "a.onnx"

    def read(version: int = 17, domain: str = "") -> Any:
        path.write_bytes(f(1, 8) + f(8, f(1, domain) + f(2, version)) + f(7, graph))
        return read_graph(path)

    found = read()
    assert (found.input_name, found.input_sizes, found.outputs) == ("x", (1, 3, 0, 5), ("y",))
    assert found.constants["w"].tolist() == np.ones((2, 1, 1)).tolist()
    one, other = found.nodes
    assert (one.name, one.operator, one.inputs, one.outputs) == (
        "first",
        "Conv",
        ("x", "w"),
        ("m",),
    )
    given = dict(one.attributes)
    assert given.pop("t").tolist() == [0, 1, 2]
    assert given == {"i": -7, "f": 0.25, "s": "SAME", "ints": (3, -2), "floats": (1.5, -2.0)}
    assert (other.name, other.operator, other.inputs) == ("y", "own.Odd", ("m", ""))
    for version in range(1, 32):
        assert refused("E518", lambda v=version: read(v)) == (not 7 <= version <= 28)
        assert refused("E518", lambda v=version: read(v, "ai.onnx")) == (not 7 <= version <= 28)
        assert not refused("E518", lambda v=version: read(v, "com.example"))


# -- files -------------------------------------------------------------------------------------


def test_large_tensors_are_mapped_with_their_values(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "a.pt"
    given = (torch.arange(600_000).reshape(3, -1), torch.ones(2, dtype=torch.uint8))
    torch.save(given, path)
    found = mapped.map_tensors(path)
    assert [array.shape for array in found] == [(3, 200_000), (2,)]
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(found, given, strict=True))
    torch.save([given[0], 5], path)
    assert refused("E503", lambda: mapped.map_tensors(path))
    torch.save({"a": given[0]}, path)
    assert refused("E503", lambda: mapped.map_tensors(path))
    path.write_bytes(b"")
    assert refused("E502", lambda: mapped.map_tensors(path))


def test_litter_of_one_name_or_of_all_is_removed(tmp_path: Path) -> None:
    def litter() -> None:
        for name in ("one", "other"):
            (tmp_path / f"{temporary_prefix(name)}abcdefgh").write_bytes(b"x")
            folder = tmp_path / f"{temporary_prefix(name)}12345678"
            (folder / "inside").mkdir(parents=True)
        (tmp_path / "one").write_bytes(b"keep")

    def left() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    litter()
    remove_litter(tmp_path, "one")
    prefix = temporary_prefix("other")
    assert left() == sorted([f"{prefix}abcdefgh", f"{prefix}12345678", "one"])
    remove_litter(tmp_path, staging=f"{prefix}12345678")
    assert left() == sorted([f"{prefix}abcdefgh", "one"])
    litter()
    remove_litter(tmp_path)
    assert left() == ["one"]
    assert len(temporary_prefix("n" * 250)) < 130  # with the rest a name that every disk has


@pytest.mark.parametrize("holds", [OLD, NEW])
def test_pair_that_a_killed_run_left_becomes_files(tmp_path: Path, holds: str) -> None:
    """Of a name that was not there before, nothing is left where the old files hold."""
    staging = tmp_path / f"{temporary_prefix('net')}abcdefgh"
    for part, names in ((OLD, ["net"]), (NEW, ["net", "twin"])):
        (staging / part).mkdir(parents=True)
        for name in names:
            (staging / part / name).write_text(f"{part} {name}")
    (staging / NOW).symlink_to(holds)
    for name in ("net", "twin"):
        (tmp_path / name).symlink_to(link_past(staging, name))
    (tmp_path / "third").symlink_to("net")
    (tmp_path / "plain").write_text("plain")
    if holds == NEW:
        settle(staging)
    else:
        assert target_of(tmp_path / "third") == (tmp_path / "net").resolve()
    assert not (tmp_path / "net").is_symlink()
    assert (tmp_path / "net").read_text() == f"{holds} net"
    twin = tmp_path / "twin"
    assert not twin.is_symlink()
    assert twin.exists() == (holds == NEW)
    if holds == NEW:
        assert twin.read_text() == "new twin"
    assert (tmp_path / "plain").read_text() == "plain"


def test_links_of_others_at_a_pair_s_names_stay(tmp_path: Path) -> None:
    """They lead elsewhere, to names before and after those past which a pair's lead."""
    staging = tmp_path / f"{temporary_prefix('net')}abcdefgh"
    (staging / OLD).mkdir(parents=True)
    (staging / NOW).symlink_to(OLD)
    own = link_past(staging, "net")
    for lead in (own[:-1], own + "s", own[:-1] + "a", own[:-1] + "u"):
        (staging / OLD / "net").write_text("old")
        (tmp_path / "net").symlink_to(lead)
        settle(staging)
        assert target_of(tmp_path / "net") == staging / OLD / lead.rpartition("/")[2]
        assert (tmp_path / "net").readlink() == Path(lead)
        assert (staging / OLD / "net").read_text() == "old"
        (tmp_path / "net").unlink()


def test_folders_are_made_from_the_outermost(tmp_path: Path) -> None:
    created: list[Path] = []
    make_folders(tmp_path / "a" / "b" / "c", created)
    assert created == [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    make_folders(tmp_path / "a" / "b" / "c", created)
    assert len(created) == 3


def test_another_run_may_make_the_folders_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def late(path: Path, *words: Any, **more: Any) -> None:
        make(path)
        make(path, *words, **more)

    monkeypatch.setattr(Path, "mkdir", late)
    make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_thread_may_be_alone_in_a_folder_again(tmp_path: Path) -> None:
    open_before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    with alone_in(tmp_path):
        with alone_in(tmp_path):
            (tmp_path / "x").write_text("x")
        with alone_in(tmp_path):
            pass
    with alone_in(tmp_path):
        pass
    if open_before:
        assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize("unix", [True, False])
def test_folder_that_may_be_written_but_not_read_gets_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unix: bool
) -> None:
    """As Windows has them, which closes a file before it is renamed."""
    opened, closed = os.open, []

    def refusing(path: Any, *rest: Any, **more: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError
        return opened(path, *rest, **more)

    def renamed(source: str, target: Path, real: Any = os.replace) -> None:
        closed.append(Path(source).name not in {p.name for p in held_open()})
        real(source, target)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(system, "UNIX", unix)
    write_bytes(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert closed == [not unix] or not Path("/proc/self/fd").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def held_open() -> list[Path]:
    """Return the files that this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    every = folder.iterdir() if folder.exists() else ()
    return [one.readlink() for one in every if one.is_symlink()]


def test_checkpoint_gives_its_entries_and_takes_new_ones() -> None:
    state = {"a": np.ones(1)}
    bare = Checkpoint({"state_dict": state})
    assert (bare.epoch, bare.arch, bare.extras, bare.masks, bare.network) == (
        None, None, {}, None, None,
    )  # fmt: skip
    full = bare.with_entries(epoch=3, arch="net", extras={"x": 1},
                             compression_sched={"masks_dict": {"a": None}})  # fmt: skip
    assert (full.epoch, full.arch, full.extras, full.masks) == (3, "net", {"x": 1}, {"a": None})
    assert next(iter(full.entries)) == "state_dict"
    assert list(full.with_entries(epoch=4).entries) == list(full.entries)
    assert bare.entries == {"state_dict": state}


def test_name_of_an_architecture_is_short(tmp_path: Path) -> None:
    for length in (reader.MAX_NAME, reader.MAX_NAME + 1):
        extra = b"N" + text("arch") + text("n" * length)
        data = zip_container(checkpoint_pickle(extra), data_0=ONE)
        found = refused("E506", lambda d=data: reader.parse_checkpoint(d, "x"))
        assert found == (length > reader.MAX_NAME)


@pytest.mark.parametrize("order", ["<", ">"])
def test_numbers_of_numpy_become_those_of_python(order: str) -> None:
    for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"):
        value = np.array(1, np.dtype(code).newbyteorder(order))[()]
        scalar = np.array([value], np.dtype(code).newbyteorder(order))
        kind = known_objects.NumberType(code, order)
        found = known_objects._number((kind, scalar.tobytes()))
        assert found == 1
        assert isinstance(found, {"f": float, "b": bool}.get(code[0], int))
        assert refused(
            "E503", lambda k=kind, s=scalar: known_objects._number((k, s.tobytes() + b"x"))
        )
        assert refused("E503", lambda k=kind, s=scalar: known_objects._number((k, s.tobytes()[1:])))


def test_storages_have_the_bytes_of_their_types() -> None:
    sizes = {"Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2,
             "Char": 1, "Byte": 1, "Bool": 1}  # fmt: skip
    for name, code in known_objects.STORAGE_DTYPES.items():
        wanted = sizes[name.removesuffix("Storage")]
        assert known_objects.StorageType(code).item_bytes == wanted
    for text_of, shown in (("a\nb", "a\\nb"), ("x" * 80, "x" * 80), ("x" * 81, "x" * 80 + "...")):
        assert known_objects.printable(text_of) == shown
    for size in (known_objects.MAX_ELEMENTS, known_objects.MAX_ELEMENTS + 1):
        for shape in ((size, 0), (0, size), (size,)):
            found = refused("E503", lambda s=shape: known_objects.checked_shape(s, "it"))
            assert found == (size > known_objects.MAX_ELEMENTS)
    for axes in (known_objects.MAX_DIMENSIONS, known_objects.MAX_DIMENSIONS + 1):
        found = refused("E503", lambda n=axes: known_objects._sizes((1,) * n))
        assert found == (axes > known_objects.MAX_DIMENSIONS)
