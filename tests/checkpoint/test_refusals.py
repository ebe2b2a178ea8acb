"""Damaged, foreign and hostile files end in a CheckpointError that says what is wrong."""

from __future__ import annotations

import builtins
import io
import lzma
import os
import pickle
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.checkpoint import Checkpoint, CheckpointError, read_checkpoint
from ai8xtools.checkpoint.known_objects import look_up
from ai8xtools.checkpoint.reader import MAX_FILE_BYTES
from tests.checkpoint.compare import checkpoint_pickle, tensor, text, zip_container

ONE = np.ones(1, "<f4").tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def samples(folder: Path) -> list[bytes]:
    """A checkpoint in both layouts."""
    path = folder / "sample.pth"
    contents = []
    for zipped in (True, False):
        entries = {"state_dict": {"w": torch.ones(3), "b": torch.ones(2).bool()}, "epoch": 1}
        torch.save(entries, path, _use_new_zipfile_serialization=zipped)
        contents.append(path.read_bytes())
    return contents


def attempt(folder: Path, content: bytes) -> Checkpoint | CheckpointError:
    """Read a file of this content; anything but a CheckpointError passes through."""
    path = folder / "attempt.pth.tar"
    path.write_bytes(content)
    try:
        return read_checkpoint(path)
    except CheckpointError as exc:
        assert exc.place == str(path)
        return exc


def refusal(folder: Path, content: bytes) -> CheckpointError:
    outcome = attempt(folder, content)
    assert isinstance(outcome, CheckpointError)
    return outcome


class Call:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


HOSTILE = {
    "posix.system": Call(os.system, "touch pwned"),
    "builtin.*eval": Call(builtins.eval, "open('pwned', 'w')"),
    "builtin.*exec": Call(builtins.exec, "open('pwned', 'w')"),
    "io.open": Call(io.open, "pwned", "w"),
    r"\.Popen": Call(subprocess.Popen, ["touch", "pwned"]),
    "builtin.*getattr": Call(getattr, Call(__import__, "os"), "system"),
    "torch.serialization.load": Call(torch.load, "pwned"),
}


@pytest.mark.parametrize("layout", ["zip", "legacy", "plain"])
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", HOSTILE)
def test_calls_are_refused_by_name_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, protocol: int, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    entries = {"state_dict": {"w": torch.ones(1)}, "extras": [HOSTILE[name]]}
    if layout == "plain":
        content = pickle.dumps(entries["extras"], protocol)
    else:
        buffer = io.BytesIO()
        torch.save(
            entries, buffer, pickle_protocol=protocol,
            _use_new_zipfile_serialization=layout == "zip",
        )  # fmt: skip
        content = buffer.getvalue()
    exc = refusal(tmp_path, content)
    assert exc.code == "E504"
    with pytest.raises(CheckpointError, match=name):
        raise exc
    assert "nothing was executed" in exc.message
    assert not (tmp_path / "pwned").exists()


def test_classes_are_not_called_and_foreign_instructions_not_followed(tmp_path: Path) -> None:
    call = b"ctorch.optim.sgd\nSGD\n)R"
    exc = refusal(tmp_path, zip_container(checkpoint_pickle(call), data_0=ONE))
    assert exc.code == "E504" and "torch.optim.sgd.SGD" in exc.message
    instance = b"(ios\nsystem\n"  # protocol 0: make an instance
    exc = refusal(tmp_path, zip_container(checkpoint_pickle(instance), data_0=ONE))
    assert exc.code == "E504" and "0x69" in exc.message


@pytest.mark.parametrize(("module", "is_network"), [("os", 0), ("os.path", 0), ("net", 1)])
def test_whole_networks_are_told_how_to_be_passed(module: str, is_network: int) -> None:
    with pytest.raises(CheckpointError) as caught:
        look_up(module, "Net", {})
    assert ("--model FILE.py:CLASS" in str(caught.value.remedy)) == is_network


def test_foreign_names_cannot_disturb_the_terminal(tmp_path: Path) -> None:
    exc = refusal(tmp_path, b"\x80\x02c\x1b[2Jevil\n" + b"x" * 900 + b"\n.")
    assert "\x1b" not in exc.message and "\\x1b[2Jevil" in exc.message
    assert len(exc.message) < 300


def nested(depth: int) -> bytes:
    return b"]" * depth + b"a" * (depth - 1)


LIMITS = {
    "deep lists": (nested(100_000), "E505"),
    "a list that holds itself": (b"]q\x00h\x00a", "E505"),
    "lists that double": (b"]q\x00" + b"0](h\x00h\x00eq\x00" * 30, "E505"),
    "many instructions": (b"N0" * 600_000 + b"N", "E505"),
    "a text longer than the file": (b"X\xff\xff\xff\xff", "E503"),
    "a number of many digits": (b"\x8b\x00\x01\x00\x00" + b"\x01" * 256, "E503"),
    "a tuple as key": (b"})Ns", "E503"),
    "an empty stack": (b"0000000", "E503"),
    "a name without end": (b"ccollections", "E503"),
    "state for a text": (text("x") + b"Nb", "E503"),
    "a bare class": (b"ctorch\nFloatStorage\n", "E503"),
    "a bare function": (b"ctorch._utils\n_rebuild_tensor_v2\n", "E503"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_pickle_that_exceeds_its_bounds(tmp_path: Path, case: str) -> None:
    extra, code = LIMITS[case]
    assert refusal(tmp_path, zip_container(checkpoint_pickle(extra), data_0=ONE)).code == code


def test_memory_for_a_large_memo_index_is_not_allocated(tmp_path: Path) -> None:
    content = zip_container(checkpoint_pickle(b"Nr\xff\xff\xff\xff"), data_0=ONE)
    assert isinstance(attempt(tmp_path, content), Checkpoint)


TENSORS = {
    "more elements than bytes": (tensor(10**12, 0, (10**12,), (1,)), "E505"),
    "a storage shorter than declared": (tensor(2, 0, (1,), (1,)), "E503"),
    "a shape beyond the storage": (tensor(1, 0, (2,), (1,)), "E503"),
    "an offset beyond the storage": (tensor(1, 1, (1,), (1,)), "E503"),
    "a stride beyond the storage": (tensor(1, 0, (2,), (2**60,)), "E503"),
    "a negative offset": (tensor(1, -1, (1,), (1,)), "E503"),
    "a negative stride": (tensor(1, 0, (1,), (-1,)), "E503"),
    "a negative size": (tensor(1, 0, (-1,), (1,)), "E503"),
    "a negative count": (tensor(-1, 0, (1,), (1,)), "E503"),
    "a size that overflows": (tensor(1, 0, (2**62, 2**62), (0, 0)), "E505"),
    "a size repeated beyond reason": (tensor(1, 0, (10**9,), (0,)), "E505"),
    "too many dimensions": (tensor(1, 0, (1,) * 40, (1,) * 40), "E503"),
    "strides of another rank": (tensor(1, 0, (1,), (1, 1)), "E503"),
    "no tensor at all": (text("weights"), "E506"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensor_that_does_not_fit_its_storage(tmp_path: Path, case: str) -> None:
    weight, code = TENSORS[case]
    assert (
        refusal(tmp_path, zip_container(checkpoint_pickle(weight=weight), data_0=ONE)).code == code
    )


def test_tensors_together_cannot_claim_unlimited_memory(tmp_path: Path) -> None:
    content = np.zeros(1 << 20, "<f4").tobytes()
    one = tensor(1 << 20, 0, (1 << 20,), (1,))
    few, many = b"](" + one * 3 + b"e", b"](" + one * 100 + b"e"
    assert isinstance(
        attempt(tmp_path, zip_container(checkpoint_pickle(few, one), data_0=content)), Checkpoint
    )
    exc = refusal(tmp_path, zip_container(checkpoint_pickle(many, one), data_0=content))
    assert exc.code == "E505" and "claim" in exc.message


def test_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.pth.tar"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # sparse: takes no room
    with pytest.raises(CheckpointError, match="the file is larger than 1 GiB") as caught:
        read_checkpoint(path)
    assert caught.value.code == "E505"


def test_zip_bomb_is_refused(tmp_path: Path) -> None:
    weight = tensor(1 << 23, 0, (1,), (1,))
    content = zip_container(checkpoint_pickle(weight=weight), compress=True, data_0=bytes(4 << 23))
    exc = refusal(tmp_path, content)
    assert exc.code == "E505" and "unpacks" in exc.message


def test_entry_that_unpacks_to_more_than_it_declares(tmp_path: Path) -> None:
    content = zip_container(checkpoint_pickle(), compress=True, data_0=bytes(1000))
    declared = (1000).to_bytes(4, "little")
    assert refusal(tmp_path, content.replace(declared, (4).to_bytes(4, "little"))).code == "E503"


def test_same_entry_twice_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO(zip_container(checkpoint_pickle(), data_0=ONE))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("archive/data.pkl", b"N.")
    assert "twice" in refusal(tmp_path, buffer.getvalue()).message


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "E502", "empty"),
        (b"\xffgarbage" * 100, "E502", "ff 67 61 72"),
        (b"\0" * 257 + b"ustar" + b"\0" * 250, "E502", "tar archive"),
        (pickle.dumps({"state_dict": {}}, 2), "E502", "torch.save"),
        (zip_container(b"N.").replace(b"data.pkl", b"date.pkl"), "E502", "data.pkl"),
        (zip_container(b"\x80\x02N."), "E506", "dictionary"),
        (zip_container(b"\x80\x02}."), "E506", "empty dictionary"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, code: str, words: str) -> None:
    exc = refusal(tmp_path, content)
    assert exc.code == code and words in exc.message


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.pth.tar", tmp_path):
        with pytest.raises(CheckpointError, match="cannot be read") as caught:
            read_checkpoint(path)
        assert caught.value.code == "E501" and caught.value.place == str(path)


def saved(folder: Path, **entries: Any) -> bytes:
    path = folder / "saved.pth"
    torch.save({"state_dict": {"w": torch.ones(1)}, **entries}, path)
    return path.read_bytes()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(tmp_path: Path, value: float) -> None:
    exc = refusal(tmp_path, saved(tmp_path, state_dict={"w": torch.tensor([1, value])}))
    assert exc.code == "E507" and exc.message.startswith("w holds")


@pytest.mark.parametrize(
    "entries",
    [
        {"state_dict": {"w\n*/ evil": torch.ones(1)}},
        {"state_dict": {3: torch.ones(1)}},
        {"state_dict": [torch.ones(1)]},
        {"epoch": "one"},
        {"arch": 5},
        {"extras": []},
    ],
)
def test_entries_of_the_wrong_kind(tmp_path: Path, entries: dict[str, Any]) -> None:
    assert refusal(tmp_path, saved(tmp_path, **entries)).code == "E506"


def test_bare_state_dict_is_explained(tmp_path: Path) -> None:
    torch.save({"conv1.weight": torch.ones(1)}, tmp_path / "bare.pth")
    exc = refusal(tmp_path, (tmp_path / "bare.pth").read_bytes())
    assert exc.code == "E506" and "it is one itself" in exc.message
    assert "with --model FILE:CLASS and --import" in str(exc.remedy)
    taken = read_checkpoint(tmp_path / "bare.pth", bare=True)
    assert taken.state_dict["conv1.weight"].tolist() == [1]
    (tmp_path / "whole.pth").write_bytes(saved(tmp_path))
    whole, same = (read_checkpoint(tmp_path / "whole.pth", bare=bare) for bare in (False, True))
    assert whole.entries.keys() == same.entries.keys(), "a checkpoint is one with bare, too"


def test_state_dict_under_another_name_is_named(tmp_path: Path) -> None:
    torch.save({"epoch": 1, "model": {"conv1.weight": torch.ones(1)}}, tmp_path / "other.pth")
    exc = refusal(tmp_path, (tmp_path / "other.pth").read_bytes())
    assert (exc.code, exc.message) == (
        "E506", "the file holds no state_dict; 'model' seems to be one",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "what"),
    [(b"\x08\x09\x12\x07pytorch", "an ONNX model"), (b"NNB1\x01\x00\x00\x00", "a container")],
)
def test_files_of_other_kinds_are_named(tmp_path: Path, start: bytes, what: str) -> None:
    exc = refusal(tmp_path, start + bytes(64))
    assert (exc.code, exc.message) == ("E502", f"the file is {what}")


def test_truncation_at_every_byte_is_noticed(folder: Path, samples: list[bytes]) -> None:
    for content in samples:
        for length in range(len(content)):
            assert isinstance(attempt(folder, content[:length]), CheckpointError), length


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_changed_bytes_never_cause_another_exception(
    folder: Path, samples: list[bytes], data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from(samples)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    attempt(folder, bytes(content))


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_random_pickles_never_cause_another_exception(folder: Path, program: bytes) -> None:
    attempt(folder, zip_container(checkpoint_pickle(program), data_0=ONE))
    attempt(folder, b"\x80\x02" + program)


def test_hostile_files_of_the_known_answers(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {
        "exec": "__builtin__.exec", "legacy": "posix.system", "open": "io.open",
        "plain": "posix.system", "system": "posix.system",
    }  # fmt: skip
    for name, function in expected.items():
        (packed,) = (shared / "kat/cases" / f"reject-pickle-{name}").glob("net.pth.tar*")
        content = packed.read_bytes()
        exc = refusal(tmp_path, lzma.decompress(content) if packed.suffix == ".xz" else content)
        assert exc.code == "E504" and function in exc.message
    assert not (tmp_path / "pwned").exists()
