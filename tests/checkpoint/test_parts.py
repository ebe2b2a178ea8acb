"""Instructions, names, places, notes and files one condition at a time, against plain oracles."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import json
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import (
    Checkpoint,
    CheckpointError,
    atomic,
    containers,
    generations,
    known_objects,
    mapped,
    onnx_graph,
    pairs,
    plain,
    safetensors,
    writer,
)
from ai8xtools.checkpoint.known_objects import KNOWN, StorageRecord, StorageType, TensorRecord
from ai8xtools.checkpoint.unpickler import Unpickler
from tests.checkpoint.compare import checkpoint_pickle, text, zip_container


def refused(code: str, read: Any) -> bool:
    """Whether something is refused, and then with this code."""
    try:
        read()
    except CheckpointError as exc:
        assert exc.code == code
        return True
    return False


# -- instructions ------------------------------------------------------------------------------


def programs(count: int) -> Any:
    """Yield random pickles of plain values, most of them sound."""
    draw = random.Random(4)
    values = [
        b"N", b"\x88", b"\x89", b"J\xff\xff\xff\x7f", b"J\x00\x00\x00\x80", b"K\xff", b"M\x01\xff",
        b"G?\xf8\x00\x00\x00\x00\x00\x00", b"\x8a\x03\x01\x02\x83", b"\x8a\x00",
        b"\x8b\x02\x00\x00\x00\xff\x00", b"U\x02a\xe9", b"T\x01\x00\x00\x00b",
        b"X\x02\x00\x00\x00\xc3\xa9", b"\x8c\x01c", b"\x8d\x01" + bytes(7) + b"d", b"C\x01e",
        b"B\x02\x00\x00\x00fg", b"\x8e\x01" + bytes(7) + b"h", b"]", b"}", b")", b"(t", b"(K\x01t",
    ]  # fmt: skip
    joins = [
        b"\x85", b"\x86", b"\x87", b"a", b"s", b"(e", b"(K\x01K\x02e", b"(u", b"(K\x05Nu", b"2",
        b"0", b"1", b"(", b"t", b"e", b"u", b"q\x03", b"h\x03", b"r\x01\x01\x00\x00", b"\x94",
        b"j\x01\x01\x00\x00", b"h\x00", b"h\x01", b"\x95" + bytes(8), b"\x80\x02", b"]\x94K\x01a",
        b"}\x8c\x01kK\x02s",
    ]  # fmt: skip
    for _ in range(count):
        size = draw.randint(1, 9)
        yield b"".join(draw.choice(values if draw.random() < 0.6 else joins) for _ in range(size))


def test_instructions_do_what_those_of_python_do() -> None:
    """Refused is what Python refuses, and nothing else but keys that occur twice or are odd."""
    sound = odd = 0
    for program in programs(4000):
        whole = program + b"."
        try:
            wanted = repr(pickle.loads(whole, encoding="latin-1"))
        except Exception:
            with contextlib.suppress(CheckpointError):  # of an empty stack below a mark, say
                Unpickler(whole).run()
            continue
        try:
            found = repr(Unpickler(whole).run())
        except CheckpointError as exc:  # Python lets nothing be added to anything, and more
            assert exc.code == "E503"
            odd += 1
            continue
        assert found == wanted
        sound += 1
    assert sound > 8 * odd
    assert sound > 1000


def test_empty_bytes_of_the_second_protocol_are_refused_as_torch_refuses_them() -> None:
    import torch

    file = io.BytesIO()
    torch.save({"a": b""}, file, pickle_protocol=2)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(file, weights_only=True)
    assert refused("E504", lambda: containers.read_container(file.getvalue()))


def test_names_are_called_with_what_they_take() -> None:
    storage = StorageRecord(StorageType("f4"), "0", 4)
    record = TensorRecord(storage, 1, (2,), (1,))
    kind = known_objects.NumberType("f4")
    good: dict[tuple[str, str], list[tuple[tuple[Any, ...], Any]]] = {
        ("collections", "OrderedDict"): [((), {})],
        ("torch._utils", "_rebuild_tensor_v2"): [
            ((storage, 1, (2,), (1,)), record), ((storage, 1, [2], [1], True, {}), record),
        ],
        ("torch._utils", "_rebuild_parameter"): [((record, True, {}), record), ((record,), record)],
        ("torch.nn.parameter", "Parameter"): [((record, False), record)],
        ("torch", "Size"): [((), ()), (((1, 0, 3),), (1, 0, 3)), (([2],), (2,))],
        ("torch", "device"): [(("cpu",), "cpu"), (("cuda", 1), "cuda")],
        ("torch.serialization", "_get_layout"): [(("torch.strided",), "torch.strided")],
        ("_codecs", "encode"): [(("a\xe9", "latin1"), b"a\xe9"), (("", "latin-1"), b"")],
        ("numpy._core.multiarray", "scalar"): [((kind, b"\x00\x00\xc0\x3f"), 1.5)],
    }  # fmt: skip
    bad: dict[tuple[str, str], list[tuple[Any, ...]]] = {
        ("collections", "OrderedDict"): [([],), (1,)],
        ("torch._utils", "_rebuild_tensor_v2"): [
            (), (storage, 1, (2,)), (record, 1, (2,), (1,)), (storage, -1, (2,), (1,)),
            (storage, True, (2,), (1,)), (storage, 1, (2,), (1, 1)), (storage, 1, 2, 1),
            (storage, 1, (-2,), (1,)), (storage, 1, (2,), (-1,)), (storage, 1, (2.0,), (1,)),
        ],
        ("torch._utils", "_rebuild_parameter"): [(), (storage,), (None, record)],
        ("torch", "Size"): [((-1,),), (3,), ((True,),)],
        ("torch", "device"): [(), (0,), (0, "cpu")],
        ("_codecs", "encode"): [
            (), ("a",), ("a", "utf-8"), (b"a", "latin1"), ("a", 5), ("a", "latin1", "b"),
        ],
        ("numpy", "dtype"): [(), (4,), ("f3",), ("O",), ("V8",), ("S1",)],
        ("numpy._core.multiarray", "scalar"): [
            (kind,), (kind, b"abc"), (kind, "abcd"), ("f4", b"abcd"), (kind, b"abcd", 1),
        ],
    }  # fmt: skip
    for name, cases in good.items():
        for arguments, wanted in cases:
            found = KNOWN[name].build(arguments)
            assert found == wanted
            assert type(found) is type(wanted) or name[0] == "collections"
    for name, refusals in bad.items():
        for arguments in refusals:
            assert refused("E503", lambda n=name, a=arguments: KNOWN[n].build(a)), (name, arguments)
    assert KNOWN["numpy", "dtype"].build(("i8", False, True)) == known_objects.NumberType("i8")
    for code in known_objects._NUMBER_CODES:
        assert KNOWN["numpy", "dtype"].build((code,)).code == code


def storage_program(*parts: bytes) -> bytes:
    return b"\x80\x02(" + b"".join(parts) + b"tQ."


def test_storages_are_named_by_five_parts() -> None:
    kind, key, place = b"ctorch\nFloatStorage\n", text("7"), text("cpu")
    whole = [text("storage"), kind, key, place, b"K\x09"]
    machine = Unpickler(storage_program(*whole))
    record = machine.run()
    assert record == StorageRecord(StorageType("f4"), "7", 9)
    assert machine.storages == {"7": record}
    assert Unpickler(storage_program(*whole, b"N")).run() == record
    wrong = {0: [text("module"), b"N"], 1: [text("torch"), b"ctorch\nSize\n"], 2: [b"K\x07", b"N"],
             4: [b"\x88", text("9"), b"N"]}  # fmt: skip
    for position, others in wrong.items():
        for other in others:
            parts = [*whole[:position], other, *whole[position + 1 :]]
            assert refused("E503", lambda p=parts: Unpickler(storage_program(*p)).run())
    for count in range(5):
        assert refused("E503", lambda n=count: Unpickler(storage_program(*whole[:n])).run())
    assert refused("E502", lambda: Unpickler(storage_program(*whole, b"K\x00")).run())
    assert refused("E503", lambda: Unpickler(b"\x80\x02NQ.").run())
    again = b"\x80\x02(" + b"".join(whole) + b"tQ0(" + b"".join(whole[:4])
    assert Unpickler(again + b"K\x09tQ.").run() == record
    assert refused("E503", lambda: Unpickler(again + b"K\x08tQ.").run())


def test_byte_orders_are_attached_to_numbers_alone() -> None:
    dtype = b"cnumpy\ndtype\n(" + text("i2") + b"\x89\x88tR"
    scalar = b"cnumpy.core.multiarray\nscalar\n("
    value = b"C\x02\x01\x02tR."
    for order, wanted in (("<", 0x0201), (">", 0x0102)):
        program = scalar + dtype + b"(K\x03" + text(order) + b"NtbC\x02\x01\x02tR."
        assert Unpickler(program).run() == wanted
    assert Unpickler(scalar + dtype + value).run() == 0x0201
    for state in (b"(K\x03" + text("=") + b"t", b"(K\x03t", b"(K\x03)t", b"N", b"]"):
        assert refused("E503", lambda s=state: Unpickler(scalar + dtype + s + b"b" + value).run())
    ordered = b"ccollections\nOrderedDict\n)R"
    assert Unpickler(ordered + b"}b.").run() == {}
    for target in (b"]", b"}", b"N", b"K\x05"):
        assert refused("E503", lambda t=target: Unpickler(t + b"}b.").run())


# -- archives ----------------------------------------------------------------------------------

ONE = struct.pack("<f", 1.5)


def test_each_entry_of_an_archive_is_checked() -> None:
    good = zip_container(checkpoint_pickle(), data_0=ONE)
    assert containers.read_container(good)[0]["state_dict"]["a.weight"].tolist() == [1.5]
    directory = good.index(b"PK\x01\x02")
    entry = good.index(b"data/0", directory) - 46 - len("archive/")
    local = good.index(b"PK\x03\x04", 4)  # that of data/0
    offsets = {"flags": 8, "method": 10, "crc": 16, "packed": 20, "size": 24, "offset": 42}

    def changed(field: str, value: int) -> bytes:
        where, size = entry + offsets[field], 2 if field in ("flags", "method") else 4
        return good[:where] + value.to_bytes(size, "little") + good[where + size :]

    found = {
        code: [(field, value) for field, value in itertools.product(offsets, range(16))
               if refused_with(changed(field, value)) == code]
        for code in ("E502", "E503", None)
    }  # fmt: skip
    assert set(found["E502"]) == {("flags", n) for n in range(1, 16, 2)} | {
        ("method", n) for n in range(16) if n not in (0, 8)
    }
    fine = {("flags", n) for n in range(0, 16, 2)} | {("method", 0), ("packed", 4), ("size", 4)}
    assert set(found[None]) == fine | {("offset", 0) for _ in [0] if local == 0}
    assert refused_with(good[:local] + b"PK\x03\x05" + good[local + 4 :]) == "E503"
    other = good[: directory - 1] + bytes([good[directory - 1] ^ 1]) + good[directory:]
    assert refused_with(other) in (None, "E503")


def refused_with(data: bytes) -> str | None:
    try:
        containers.read_container(data)
    except CheckpointError as exc:
        return exc.code
    return None


def test_entries_do_not_share_bytes_and_one_root_holds_them() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", checkpoint_pickle())
        archive.writestr("a/data/0", ONE)
        archive.writestr("a/byteorder", "big")
        archive.writestr("b/notes", "x")
    root, _ = containers.read_container(buffer.getvalue())
    assert root["state_dict"]["a.weight"].tolist() == np.frombuffer(ONE, ">f4").tolist()
    infos = containers.entries_of(buffer)
    entries = containers.Entries(buffer.getvalue(), infos)
    assert bytes(entries.content("byteorder")) == b"big"
    assert refused("E503", lambda: entries.content("other"))
    assert refused("E503", lambda: [entries.content("data.pkl") for _ in range(9)])
    for names in (["x"], ["a/data.pkl", "b/data.pkl"], ["data.pkl"], ["a/models/model.json"]):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in names:
                archive.writestr(name, checkpoint_pickle())
        assert refused_with(buffer.getvalue()) == "E502"


def test_files_of_before_2020_are_read_to_their_last_byte() -> None:
    import torch

    given = {"state_dict": {"a": torch.arange(5), "b": torch.ones(3, dtype=torch.float16)}}
    file = io.BytesIO()
    torch.save(given, file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    root, kind = containers.read_container(data)
    assert kind == "legacy"
    for name, tensor in given["state_dict"].items():
        assert np.array_equal(root["state_dict"][name], tensor.numpy())
    count = struct.pack("<q", 5)
    place = data.index(count + given["state_dict"]["a"].numpy().tobytes())
    for other in (-1, 4, 6, 1 << 40, -(1 << 40)):
        wrong = data[:place] + struct.pack("<q", other) + data[place + 8 :]
        assert refused_with(wrong) == "E503"
    assert all(refused_with(data[:end]) == "E503" for end in range(place, len(data)))
    assert refused_with(pickle.dumps(containers.LEGACY_MAGIC + 1, 2) + data[14:]) == "E502"
    parts = [containers.LEGACY_MAGIC, containers.LEGACY_PROTOCOL, {"little_endian": True}, 5, []]

    def legacy(**changes: Any) -> bytes:
        some = [*parts]
        for number, value in changes.items():
            some[int(number[1:])] = value
        return b"".join(pickle.dumps(part, 2) for part in some)

    assert containers.read_container(legacy())[0] == 5
    for changes in ({"_1": 1002}, {"_2": 5}, {"_3": 5, "_4": {}}, {"_4": ["0"]}, {"_4": [0]}):
        assert refused_with(legacy(**changes)) == "E503", changes
    assert refused_with(legacy(_0=1)) == "E502"


# -- safetensors -------------------------------------------------------------------------------


def places_file(places: list[Any], size: int, **record: Any) -> bytes:
    header = {
        str(n): {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end], **record}
        for n, (begin, end) in enumerate(places)
    }
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + bytes(range(size))


def test_every_byte_belongs_to_one_tensor() -> None:
    """All places of two tensors in up to three bytes, and some of three."""
    spans = [(b, e) for b in range(4) for e in range(b, 4)]
    for size in range(4):
        for places in [*itertools.product(spans, spans), ((0, 1), (1, 1), (1, size or 1))]:
            order = sorted(places)
            tiles = order[0][0] == 0 and order[-1][1] == size
            tiles &= all(one[1] == other[0] for one, other in itertools.pairwise(order))
            data = places_file([*places], size)
            found = refused("E503", lambda d=data: safetensors.read_safetensors(d))
            assert found != tiles, (places, size)
            if tiles:
                state = safetensors.read_safetensors(data)["state_dict"]
                for n, (begin, end) in enumerate(places):
                    assert state[str(n)].tolist() == [*range(begin, end)]
                    assert not state[str(n)].flags.writeable


def test_tensors_of_safetensors_have_type_shape_and_place() -> None:
    def bad(**record: Any) -> Any:
        data = places_file([(0, 4)], 4, **record)
        return lambda: safetensors.read_safetensors(data)

    assert not refused("E503", bad())
    assert not refused("E503", bad(shape=[2, 2]))
    assert not refused("E503", bad(shape=[4, *[1] * 15]))
    for shape in ([3], [5], [4, *[1] * 16], [-4], [True, 4], "4", [4.0], None, [0]):
        assert refused("E503", bad(shape=shape))
    for place in ([0], [0, 4, 4], [4, 0], [1, 5], [0, 5], [True, 4], [0, 4.0], None):
        assert refused("E503", bad(data_offsets=place))
    assert refused("E503", bad(more=1))
    for dtype in ("U9", 5, None, ["U8"], "F8_E4M3"):
        assert refused("E506", bad(dtype=dtype))
    wide = {"F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
            "BOOL": 1, "BF16": 2}  # fmt: skip
    for dtype, size in wide.items():
        data = places_file([(0, size)], size, dtype=dtype, shape=[])
        if dtype == "BOOL":
            data = data[:-1] + b"\x01"
        found = safetensors.read_safetensors(data)["state_dict"]["0"]
        raw = data[-size:] if dtype != "BF16" else b"\x00\x00" + data[-2:]
        assert found.tobytes() == raw
        assert found.dtype.kind == {"U": "u", "I": "i", "F": "f"}.get(dtype[0], "f" if size > 1
                                                                      else "b")  # fmt: skip
        assert refused("E503", lambda d=dtype, s=size: safetensors.read_safetensors(
            places_file([(0, s + 1)], s + 1, dtype=d, shape=[])))  # fmt: skip
    odd = places_file([(0, 3)], 3, dtype="BOOL")  # bytes 0, 1, 2
    assert refused("E503", lambda: safetensors.read_safetensors(odd))


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_of_any_rank_are_read_in_every_type(tmp_path: Path, legacy: bool) -> None:
    import torch

    path = tmp_path / "a.pth"
    for shape, dtype in itertools.product(
        ((), (1,), (2, 0), (2, 3)),
        (torch.bfloat16, torch.float16, torch.float64, torch.bool, torch.uint8, torch.int16),
    ):
        given = torch.full(shape, 1.5).to(dtype)
        torch.save({"state_dict": {"a": given}}, path, _use_new_zipfile_serialization=not legacy)
        found = containers.read_container(path.read_bytes())[0]["state_dict"]["a"]
        wanted = (given.float() if dtype == torch.bfloat16 else given).numpy()
        assert (found.dtype, found.shape) == (wanted.dtype, shape)
        assert np.array_equal(found, wanted)
        assert not found.flags.writeable


def test_names_of_twins_and_headers() -> None:
    for name in ("a", "a.pth", "a.pth.tar", "a.tar", "d.pth/a"):
        wanted = name.removesuffix(".tar").removesuffix(".pth") + ".safetensors"
        assert safetensors.twin_of(name) == wanted
    assert safetensors.is_safetensors(b"12345678{")
    assert not safetensors.is_safetensors(b"1234567{")
    assert not safetensors.is_safetensors(b"PK\x03\x045678{")
    for text_of in (b"[]", b"{", b'{"a":NaN}', b"\xff", b'{"a":1,"a":2}', b'{"__metadata__":[]}',
                    b'{"__metadata__":{"a":1}}', b'{"a":5}'):  # fmt: skip
        data = struct.pack("<Q", len(text_of)) + text_of
        assert refused("E503", lambda d=data: safetensors.read_safetensors(d)), text_of
    longer = struct.pack("<Q", 3) + b"{}"
    assert refused("E503", lambda: safetensors.read_safetensors(longer))
    metadata = {"format": "pt", "arch": "7", "epoch": "7", "note": "no json", "list": "[1]"}
    head = json.dumps({"__metadata__": metadata}).encode()
    root = safetensors.read_safetensors(struct.pack("<Q", len(head)) + head)
    assert root == {"arch": "7", "epoch": 7, "note": "no json", "list": [1], "state_dict": {}}


# -- notes -------------------------------------------------------------------------------------


def test_notes_that_nobody_wrote_are_refused() -> None:
    bad = [
        {"$float": "1.5"}, {"$float": 1.5}, {"$float": []}, {"$tuple": 5}, {"$tuple": "ab"},
        {"$bytes": "YWI"}, {"$bytes": "YW!I="}, {"$bytes": 5}, {"$tensor": ["u1", [3], "YWI="]},
        {"$tensor": ["u1", [2], "YW!I="]}, {"$tensor": ["u3", [2], "YWI="]}, {"$tensor": ["u1"]},
        {"$tensor": ["?", [2], "YWI="]}, {"$tensor": ["bfloat16", [1], "YWI="]},
        {"$class": ["os", "system"]}, {"$class": ["torch", "FloatStorage"]}, {"$class": ["x"]},
        {"$pairs": [[[1], 2]]}, {"$pairs": [[1]]}, {"$pairs": [1]}, {"$ordered": {"a": 1}},
    ]  # fmt: skip
    for note in bad:
        assert refused("E503", lambda n=note: plain.from_plain(n)), note
    assert plain.from_plain({"$float": "1.5", "b": 2}) == {"$float": "1.5", "b": 2}
    assert plain.from_plain({"$other": {"c": [None]}}) == {"$other": {"c": [None]}}
    assert plain.from_plain({"$tensor": ["<i2"[1:], [1], "YWI="]}).tolist() == [0x6261]
    for value in (object(), {1, 2}, 1j, np.zeros(2, np.complex64), np.zeros(2, np.uint16)):
        assert refused("E508", lambda v=value: plain.to_plain([v]))
    assert plain.to_plain(np.float32(1.5)) == 1.5
    assert plain.to_plain({"a": True, "b": None}) == {"a": True, "b": None}
    assert plain.to_plain({"$a": 1}) == {"$pairs": [["$a", 1]]}


# -- writing -----------------------------------------------------------------------------------


def test_archive_is_laid_out_as_documented() -> None:
    """Tensors begin at multiples of 64 bytes, whatever is before; times and systems are fixed."""
    for count, size in itertools.product((0, 1, 12), (0, 1, 63, 64, 65)):
        state = {f"{n}.weight": np.full(size, n, np.uint8) for n in range(count)}
        data = writer.checkpoint_bytes("x", Checkpoint({"state_dict": state, "n": "y" * size}))
        infos = zipfile.ZipFile(io.BytesIO(data)).infolist()
        names = ["data.pkl", "byteorder", *(f"data/{n}" for n in range(count)), "version"]
        assert [info.filename for info in infos] == [f"archive/{name}" for name in names]
        for info in infos:
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert (info.create_system, info.compress_type) == (0, 0)
            name_bytes, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            start = info.header_offset + 30 + name_bytes + extra
            assert start % 64 == 0
            assert 4 <= extra < 68
        assert data[start : start + 2] == b"3\n"
        root, _ = containers.read_container(data)
        assert all(np.array_equal(root["state_dict"][n], one) for n, one in state.items())


VALUES: list[Any] = [
    None, True, False, 0, -1, 127, 128, -128, -129, 255, 256, 2**31 - 1, 2**31, -(2**31),
    -(2**31) - 1, 2**63 - 1, 2**63, -(2**63), 2**119, -(2**119), 1.5, -0.0, 1e300, "", "\u20ac",
    "x" * 300, b"a", bytes(range(256)), [], [1], [[]], (), (1,), (1, 2, 3, 4), {}, {"a": {}},
    {1: 2, 2.5: 3, None: 4, (): 5}, {"k": [(), {"l": b"m"}]},
]  # fmt: skip


def test_what_is_written_python_reads_with_its_own_unpickler() -> None:
    for value in VALUES:
        data = writer._Pickler().dump(value)
        assert repr(pickle.loads(data)) == repr(value)


# -- generations -------------------------------------------------------------------------------


def test_generations_are_known_by_the_names_of_their_entries() -> None:
    later = "activation_threshold"
    for name in (later, f"a.{later}", f"a.b.{later}"):
        assert generations.has_thresholds(["a.op.weight", name])
    for name in ("a.aaa", "a.zzz", f"{later}.a", f"a.{later}s", f"a.x{later}", ""):
        assert not generations.has_thresholds([name])
    for layer in ("a.bn", "bn", "a.b.bn"):
        for last in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            assert generations.is_of_normalization(f"{layer}.{last}")
            assert not generations.is_of_normalization(f"{layer}.op.{last}")
            assert not generations.is_of_normalization(f"{layer}x.{last}")
        assert not generations.is_of_normalization(f"{layer}.other")
    known = ["output_shift", "weight_bits", "bias_bits", "quantize_activation", later,
             "adjust_output_shift", "shift_quantile", "final_scale", "clamp_activation",
             "range_exponent", "w_zero_point", "b_zero_point", "base_b_q"]  # fmt: skip
    names = [f"a.b.{one}" for one in known]
    assert generations.unknown_entries(names) == []
    others = ["a.b.new", "a.b.zzz", "a.b.aaa"]
    assert generations.unknown_entries([*names, *others, "a.b.op.new", "a.new", "c.new"]) == others
    assert generations.unknown_entries(others) == []


def test_layers_are_all_of_one_generation() -> None:
    for with_it in itertools.product((False, True), repeat=3):
        state = {f"{n}.output_shift": np.zeros(1) for n in range(3)}
        state |= {f"{n}.activation_threshold": np.zeros(()) for n in range(3) if with_it[n]}
        found = refused("E516", lambda s=state: generations.refuse_inconsistent(s))
        assert found == (len(set(with_it)) > 1)


# -- graphs of ONNX ----------------------------------------------------------------------------


def onnx_node(name: str, inputs: str, outputs: str) -> onnx_graph.OnnxNode:
    return onnx_graph.OnnxNode(name, "Relu", tuple(inputs.split()), tuple(outputs.split()), {})


def test_nodes_come_in_order_and_make_each_value_once() -> None:
    """All graphs of two nodes over three values, the first of which is given."""
    for one, made, other, last in itertools.product("xab", repeat=4):
        nodes = (onnx_node("1", one, made), onnx_node("2", other, last))
        code, wanted = None, nodes
        if len({"x", made, last}) < 3:
            code = "E503"
        elif one != "x" or other not in ("x", made):
            wanted = nodes[::-1]
            if other != "x" or one not in ("x", last):
                code = "E517"
        found = None
        try:
            assert onnx_graph._in_order(nodes, {"x"}) == wanted
        except CheckpointError as exc:
            found = exc.code
            if found == "E517":
                lacks = {one, other} - {"x", made, last}
                assert ("a cycle" in exc.message) == (not lacks)
        assert found == code
    nodes = (onnx_node("1", "x", "a b"),)
    onnx_graph._check_outputs(nodes, ("b", "a"))
    for outputs in ((), ("x",), ("a", "c")):
        assert refused("E503", lambda o=outputs: onnx_graph._check_outputs(nodes, o))


# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINVAL])
def test_disk_that_fails_is_told_and_one_that_cannot_sync_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fails(_handle: int) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(os, "fsync", fails)
    atomic.sync(tmp_path / "absent")
    if code == errno.EINVAL:
        atomic.sync(tmp_path)
    else:
        with pytest.raises(OSError, match="no"):
            atomic.sync(tmp_path)


def test_files_have_the_rights_of_the_process_and_links_stay(tmp_path: Path) -> None:
    links = [tmp_path / f"link{n}" for n in range(3)]
    for one, other in itertools.pairwise([*links, tmp_path / "file"]):
        one.symlink_to(other.name)
    before = os.umask(0o027)
    try:
        atomic.write_bytes(links[0], b"new")
        pairs.write_pair(tmp_path / "a", b"1", tmp_path / "b", b"2")
        (tmp_path / "other").mkdir()
        pairs.write_pair(links[1], b"3", tmp_path / "other" / "c", b"4")
    finally:
        os.umask(before)
    assert (tmp_path / "file").read_bytes() == b"3"
    assert all(link.is_symlink() for link in links)
    files = {path.name: path for path in tmp_path.rglob("*") if path.is_file()}
    assert sorted(files) == ["a", "b", "c", "file", "link0", "link1", "link2"]
    for name, content in (("a", b"1"), ("b", b"2"), ("c", b"4")):
        assert files[name].read_bytes() == content
        assert files[name].stat().st_mode & 0o777 == 0o640
    assert files["file"].stat().st_mode & 0o777 == 0o640
    assert atomic.umask() == before == os.umask(before)


@pytest.mark.parametrize("failing", ["link", "symlink", "replace"])
@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_pair_is_written_without_links_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, code: int
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"old")
    real = getattr(os, failing)

    def fails(*arguments: Any, **more: Any) -> Any:
        if failing == "replace" and ".writing-" not in str(arguments[0]).rpartition("/")[0]:
            return real(*arguments, **more)
        raise OSError(code, "no")

    monkeypatch.setattr(os, failing, fails)
    possible = code != errno.EIO
    with contextlib.nullcontext() if possible else pytest.raises(OSError, match="no") as caught:
        pairs.write_pair(one, b"new", other, b"twin")
    monkeypatch.undo()
    if caught is not None:
        assert caught.value.filename == str(one)
    assert one.read_bytes() == (b"new" if possible else b"old")
    assert other.exists() == possible
    if possible:
        assert other.read_bytes() == b"twin"
    assert not one.is_symlink() and not other.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", *["other"] * possible]


def test_pair_of_two_folders_is_old_again_when_the_first_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for exist in (False, True):
        one, other = tmp_path / f"{exist}" / "one", tmp_path / f"{exist}2" / "other"
        if exist:
            for path in (one, other):
                path.parent.mkdir()
                path.write_bytes(b"old")
        real = os.replace

        def fails(source: Any, target: Any, one: Any = one, real: Any = real) -> None:
            if str(target) == str(one) and Path(source).read_bytes() == b"new":
                raise OSError(errno.EIO, "no")
            real(source, target)

        monkeypatch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="no"):
            pairs.write_pair(one, b"new", other, b"twin")
        monkeypatch.undo()
        for path in (one, other):
            assert [part.name for part in path.parent.iterdir()] == [path.name] * exist
            assert not exist or path.read_bytes() == b"old"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("", "folder", "pipe"):
        path = str(tmp_path / name) if name else ""
        with pytest.raises(OSError, match=r"\w"):
            atomic.write_bytes(path, b"x")
        for arguments in ((path, b"1", tmp_path / "a", b"2"), (tmp_path / "a", b"1", path, b"2")):
            with pytest.raises(OSError, match=r"\w"):
                pairs.write_pair(*arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


def test_directory_of_a_mapped_file_is_read_in_small_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_LONGEST_READ", 10)
    path = tmp_path / "a"
    for size, asked in itertools.product((0, 9, 10, 11, 30), (None, -1, 0, 9, 10, 11, 40)):
        path.write_bytes(bytes(size))
        with mapped._Bounded(path) as file:
            taken = size if asked is None or asked < 0 else min(asked, size)
            if taken > 10:
                with pytest.raises(ValueError, match="too long"):
                    file.read(asked)
            else:
                assert file.read(asked) == bytes(taken)
    path.write_bytes(bytes(30))
    with mapped._Bounded(path) as file:
        file.seek(20)
        assert file.read() == bytes(10)
