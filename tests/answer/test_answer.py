"""The answer file: hashes that tell a wrong word, and files that are not what they should be."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.answer import (
    Answer,
    AnswerError,
    HashedWords,
    LayerAnswer,
    LayerForm,
    Registers,
    StoredBiases,
    read_answer,
    write_answer,
)
from ai8xtools.answer.content import grid_width, hashed_columns, hashed_rows
from ai8xtools.answer.hashes import (
    BLOCK_WORDS,
    block_hashes,
    find_word,
    padded,
    run_hashes,
    weights,
)


def words(*values: int) -> HashedWords:
    array = np.array(values, np.uint32)
    return HashedWords(array, array, run_hashes([array] if len(array) else []))


def answer() -> Answer:
    values = np.arange(-6, 6).reshape(2, 2, 3)
    places = np.array([[0, 0, 5], [0, 1, 5]])
    layers = (
        LayerAnswer(0, "conv", (2, 2, 3), False, False, 1, places, LayerForm.FULL, values),
        LayerAnswer(
            1, "", (2, 2, 3), True, True, 4, places, LayerForm.LINES, None,
            hashed_rows(values, 3), hashed_columns(values, 3),
        ),
    )  # fmt: skip
    registers = Registers(
        np.array([4, 8], np.uint32), np.array([1, 2], np.uint32), np.array([1, 4], np.uint8)
    )
    biases = StoredBiases(np.array([12], np.uint32), np.array([255], np.uint8))
    return Answer(
        "MAX78000", 0x50000000, "net", True, registers, biases, words(1, 2), words(3), words(),
        layers, ("something",),
    )  # fmt: skip


def test_weights_are_the_documented_sequence() -> None:
    assert weights(2).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F5]


@pytest.mark.parametrize("number", range(BLOCK_WORDS))
def test_a_single_wrong_word_is_told_with_its_value(number: int) -> None:
    random = np.random.default_rng(number)
    for _ in range(200):
        block = random.integers(0, 1 << 32, BLOCK_WORDS).astype(np.uint32)
        wanted, right = int(block_hashes(block)[0]), int(block[number])
        block[number] = random.integers(0, 1 << 32)
        if block[number] != right:
            assert find_word(block, wanted) == (number, right)


def test_several_wrong_words_are_noticed_but_not_told() -> None:
    block = np.arange(BLOCK_WORDS, dtype=np.uint32)
    wanted = int(block_hashes(block)[0])
    block[2:5] += np.array([7, 1, 99], np.uint32)
    assert int(block_hashes(block)[0]) != wanted
    assert find_word(block, wanted) is None


def test_hashes_of_runs_are_those_of_their_padded_words() -> None:
    runs = [np.arange(n, dtype=np.uint32) for n in (1, 16, 0, 17)]
    joined = np.concatenate([padded(run) for run in runs])
    assert run_hashes(runs).tolist() == block_hashes(joined).tolist()


def test_width_of_grids() -> None:
    assert [grid_width(s) for s in ((1, 28, 30), (1, 128, 1), (3, 2, 3))] == [30, 12, 3]


def test_file_holds_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "answer.npz"
    path.write_bytes(write_answer(answer()))
    assert write_answer(read_answer(path)) == path.read_bytes()
    with np.load(path) as archive:
        assert archive["register_values"].tolist() == [1, 2]


def changed(**header: object) -> bytes:
    """The file with entries of its header replaced; a name of an array alone removes it."""
    content = io.BytesIO()
    old = zipfile.ZipFile(io.BytesIO(write_answer(answer())))
    with old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "header.json":
                data = json.dumps({**json.loads(data), **header}).encode()
            if name.removesuffix(".npy") not in header:
                new.writestr(name, data)
    return content.getvalue()


def test_newer_version_is_told(tmp_path: Path) -> None:
    path = tmp_path / "answer.npz"
    path.write_bytes(changed(version=2))
    with pytest.raises(AnswerError) as error:
        read_answer(path)
    assert error.value.code == "E851" and "--no-answer" in (error.value.remedy or "")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"PK", write_answer(answer())[:-100], changed(format="other"), changed(version="x"),
        changed(layers=[{}]), changed(layers=3), changed(kernel_hashes=0), changed(layer0_values=0),
        changed(apb_base=None),
    ],
)  # fmt: skip
def test_damaged_file_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "answer.npz"
    path.write_bytes(content)
    with pytest.raises(AnswerError) as error:
        read_answer(path)
    assert error.value.code == "E850"
