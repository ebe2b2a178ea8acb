"""Safetensors twins hold what the checkpoint holds; damaged and hostile ones are refused."""

from __future__ import annotations

import collections
import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.checkpoint import (
    Array,
    Checkpoint,
    CheckpointError,
    ClassReference,
    read_checkpoint,
    write_safetensors,
)
from ai8xtools.checkpoint.safetensors import LEFT_OUT


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are equal in type, order, dtype and bits."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, np.ndarray):
        equal_kind = (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        return equal_kind and ours.tobytes() == theirs.tobytes()
    return repr(ours) == repr(theirs)


def again(path: Path, checkpoint: Checkpoint) -> Checkpoint:
    write_safetensors(path, checkpoint)
    return read_checkpoint(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("safetensors")


DTYPES = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "?"]


@st.composite
def tensors(draw: st.DrawFn) -> Array:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    array = generator.integers(0, 100, shape).astype(draw(st.sampled_from(DTYPES)))
    return array.T if draw(st.booleans()) else array


keys = st.text(max_size=4) | st.integers(0, 300) | st.just("$tuple") | st.none()
scalars = (
    st.none() | st.booleans() | st.integers(-(2**127), 2**127 - 1) | st.floats()
    | st.text() | st.binary(max_size=6) | st.just(ClassReference("torch.optim.sgd", "SGD"))
)  # fmt: skip
values = st.recursive(
    tensors() | scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3).map(collections.OrderedDict)
    ),
    max_leaves=8,
)
names = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=8)


@pytest.mark.parametrize("key", ["a", "Arch", "arch", "arcz", "z"])
def test_texts_come_back_as_texts(folder: Path, key: str) -> None:
    entries = {key: '{"1": 2}', "state_dict": {}}
    assert again(folder / "texts.safetensors", Checkpoint(entries)).entries[key] == '{"1": 2}'


@given(st.dictionaries(names, tensors(), max_size=5), values, st.integers(0, 500))
@settings(max_examples=200, deadline=None)
def test_random_checkpoint_comes_back_equal(
    folder: Path, state: dict[str, Array], other: Any, epoch: int
) -> None:
    entries = {"epoch": epoch, "arch": "[net]", "other": other, "state_dict": state}
    found = again(folder / "random.safetensors", Checkpoint(entries))
    if other is None:
        del entries["other"]
    assert same(dict(found.entries), entries)
    assert found.container == "safetensors"


def test_published_checkpoints_come_back_equal_without_their_optimizer(
    shared: Path, tmp_path: Path
) -> None:
    files = sorted((shared / "checkpoints").rglob("*.pth.tar"))
    for file in files:
        original = read_checkpoint(file)
        found = again(tmp_path / "twin.safetensors", original)
        expected = {
            k: v for k, v in original.entries.items() if k not in LEFT_OUT and v is not None
        }
        assert found.entries.keys() == expected.keys()
        assert same(list(found.state_dict), list(original.state_dict)), "order numbers the layers"
        for key in expected:
            ours, theirs = found.entries[key], expected[key]
            if key == "state_dict":  # its own kind of dictionary is not kept
                ours, theirs = dict(ours), dict(theirs)
            assert same(ours, theirs), (file.name, key)
    assert len(files) == 47


def test_other_programs_read_the_file(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    state = {
        "b.flag": np.array([True]), "a.op.weight": np.ones((2, 3), np.float32),
        "a.weight_bits": np.array([8]), "c": np.array(2.5, np.float16),
    }  # fmt: skip
    path = tmp_path / "a.safetensors"
    write_safetensors(path, Checkpoint({"state_dict": state, "epoch": 3, "arch": "net"}))
    found = safetensors.load_file(path)
    assert same({name: found[name] for name in state}, state)
    with pytest.importorskip("safetensors").safe_open(path, "numpy") as file:
        assert file.metadata() == {"format": "pt", "epoch": "3", "arch": "net"}
    safetensors.save_file(state, path, {"note": "free text"})
    theirs = read_checkpoint(path)
    assert {name: theirs.state_dict[name].tolist() for name in state} == {
        name: tensor.tolist() for name, tensor in state.items()
    }
    assert theirs.entries["note"] == "free text"


def test_bytes_are_aligned_and_equal_for_equal_content(tmp_path: Path) -> None:
    state = {"flag": np.array([True]), "weight": np.ones(3, np.float32), "n": np.array([1])}
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path in paths:
        write_safetensors(path, Checkpoint({"state_dict": state}))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert all(tensor.flags.aligned for tensor in read_checkpoint(paths[0]).state_dict.values())


def file_of(header: Any, content: bytes = b"", length: int | None = None) -> bytes:
    """Return a file; `header` is JSON text, or a value to make it of."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + content


def record(dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4), **more: Any) -> Any:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


FOUR = bytes(4)
REFUSED: dict[str, tuple[bytes, str, str]] = {
    "header of exabytes": (file_of({}, length=2**63), "E505", "header claims 9223372036854775808"),
    "header beyond the limit": (file_of({}, length=(16 << 20) + 1), "E505", "the limit is 16777"),
    "header beyond the file": (file_of({}, length=900), "E503", "ends within its header of 900"),
    "many values": (file_of(b"{" + b"[" * 1_000_001), "E505", "more than 1000000 values"),
    "deep nesting": (file_of(b'{"a":' + b"[" * 100_000), "E503", "nested too deep"),
    "no JSON": (file_of(b"{torch}"), "E503", "its header is not JSON"),
    "not UTF-8": (file_of(b'{"\xff": 1}'), "E503", "its header is not JSON"),
    "not a number": (file_of(b'{"a": NaN}'), "E503", "NaN is no number"),
    "long integer": (file_of(b'{"a": ' + b"9" * 9000 + b"}"), "E503", "is not JSON"),
    "same name twice": (file_of(b'{"w\x5cn": 1, "w\x5cn": 2}'), "E503", r"w\n exists twice"),
    "metadata twice": (file_of(b'{"__metadata__": {"a": "1", "a": "2"}}'), "E503", "a exists twi"),
    "metadata is a list": (file_of({"__metadata__": ["a"]}), "E503", "not a dictionary of texts"),
    "metadata of numbers": (file_of({"__metadata__": {"a": 1}}), "E503", "dictionary of texts"),
    "tensor is a text": (file_of({"w": "x"}), "E503", "w lacks its type, shape or place"),
    "key missing": (file_of({"w": {"dtype": "F32", "shape": []}}), "E503", "w lacks its type"),
    "key too many": (file_of({"w": record(more=1)}, FOUR), "E503", "or has more than these"),
    "unknown type": (file_of({"w": record("F8_E4M3")}, FOUR), "E506", "of type F8_E4M3; known are"),
    "type is a list": (file_of({"w": record(["F32"])}, FOUR), "E506", "w is of type"),
    "negative size": (file_of({"w": record(shape=[-1])}, FOUR), "E503", "not a list of sizes"),
    "size is true": (file_of({"w": record(shape=[True])}, FOUR), "E503", "not a list of sizes"),
    "many dimensions": (file_of({"w": record(shape=[1] * 17)}, FOUR), "E503", "not a list of siz"),
    "huge size": (file_of({"w": record(shape=[2**62, 4])}, FOUR), "E503", f"needs {2**66} bytes"),
    "wrong size": (file_of({"w": record(shape=[2])}, FOUR), "E503", "needs 8 bytes but has 4"),
    "beyond the end": (file_of({"w": record(offsets=[4, 8])}, FOUR), "E503", "beyond the 4 bytes"),
    "backwards": (file_of({"w": record(offsets=[4, 0])}, FOUR), "E503", "w lies beyond"),
    "three offsets": (file_of({"w": record(offsets=[0, 2, 4])}, FOUR), "E503", "w lies beyond"),
    "overlap": (file_of({"w": record(), "v": record()}, FOUR), "E503", "w overlaps its neighbour"),
    "hole": (file_of({"w": record(offsets=[4, 8])}, 2 * FOUR), "E503", "w comes after unused"),
    "bytes left": (file_of({"w": record()}, 2 * FOUR), "E503", "4 bytes after the last tensor"),
    "neither true nor false": (
        file_of({"w": record("BOOL", [4])}, b"\0\1\2\0"), "E503", "neither true nor false",
    ),
    "name disturbs the terminal": (file_of({"\x1b[2J": record()}, FOUR), "E506", r"\\x1b[2J"),
    "not a number in a tensor": (
        file_of({"w": record()}, struct.pack("<f", np.nan)), "E507", "w holds values",
    ),
    "epoch is a text": (file_of({"__metadata__": {"epoch": "last"}}), "E506", "epoch is of type"),
    "tagged value": (
        file_of({"__metadata__": {"extras": '{"a": {"$tensor": ["f4", [9], ""]}}'}}), "E503",
        "$tensor with a value that does not fit",
    ),
    "class": (
        file_of({"__metadata__": {"a": '{"$class": ["os", "system"]}'}}), "E503", "$class with",
    ),
    "keys that are lists": (
        file_of({"__metadata__": {"a": '{"$pairs": [[[1], 2]]}'}}), "E503", "$pairs with",
    ),
    "notes nested deep": (
        file_of({"__metadata__": {"a": "[" * 200 + "]" * 200}}), "E505", "more than 32 deep",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_damaged_and_hostile_files_are_refused(tmp_path: Path, case: str) -> None:
    content, code, words = REFUSED[case]
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert caught.value.code == code and words in caught.value.message
    assert caught.value.place == str(path)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_changed_bytes_end_in_a_checkpoint_or_a_refusal(folder: Path, data: st.DataObject) -> None:
    path = folder / "changed.safetensors"
    state = {"a.op.weight": np.ones((2, 2), np.float32), "flag": np.array([True])}
    masks = {"masks_dict": collections.OrderedDict(a=np.array([1.0]))}
    write_safetensors(path, Checkpoint({"state_dict": state, "compression_sched": masks}))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        read_checkpoint(path)
    except CheckpointError as exc:
        assert exc.place == str(path)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"state_dict": {"w": np.ones(1, np.complex64)}}, "complex64"),
        ({"state_dict": {"w": np.ones(1, np.uint16)}}, "uint16"),
        ({"state_dict": {"__metadata__": np.ones(1)}}, "__metadata__"),
        ({"state_dict": {}, "format": 1}, "format"),
        ({"state_dict": {}, "x": {1, 2}}, "type set"),
        ({"state_dict": {}, "x": 2**200}, "128 bits"),
    ],
)
def test_what_the_format_lacks_is_refused_and_nothing_written(
    tmp_path: Path, entries: dict[str, Any], words: str
) -> None:
    with pytest.raises(CheckpointError, match=words) as caught:
        write_safetensors(tmp_path / "a.safetensors", Checkpoint(entries))
    assert caught.value.code == "E508"
    assert not list(tmp_path.iterdir())
