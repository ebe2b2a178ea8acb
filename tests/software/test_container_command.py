"""scripts/nnb.py: what it shows, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.container.arguments import parse
from ai8xtools.commands.container.container import handle
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.software.container import unpack, verify_vectors
from ai8xtools.software.container.pack import Seal
from tests.conftest import ROOT
from tests.software.containers import made

KEY = bytes(range(32))


def nnb(*words: object) -> int:
    return handle(parse([*map(str, words)]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.nnb"
    path.write_bytes(made("convolutions"))
    return path


def test_info_lists_tensors_and_layers(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnb("info", file) == 0
    text = capsys.readouterr().out
    assert "Version 1.0" in text and "conv_transposed" in text and "depthwise" in text


def test_verify_runs_the_test_vectors(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nnb("verify", file) == 0
    assert "2 test vectors, all outputs equal" in capsys.readouterr().out


def test_extracted_arrays_are_those_of_the_file(file: Path, tmp_path: Path) -> None:
    assert nnb("extract", file, tmp_path / "out") == 0
    tables = json.loads((tmp_path / "out/container.json").read_text())
    weights = tables["layers"][0]["weights"]
    assert np.load(tmp_path / f"out/tensor_{weights}.npy").shape == (6, 3, 3, 4)
    assert np.load(tmp_path / "out/inputs.npy").shape == (2, 9, 8, 4)
    with pytest.raises(Exception, match="exists"):
        nnb("extract", file, tmp_path / "out")


def test_decrypted_file_needs_no_key(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    sealed, key, clear = tmp_path / "sealed.nnb", tmp_path / "key", tmp_path / "clear.nnb"
    sealed.write_bytes(made("packed", seal=Seal(KEY, bytes(12))))
    key.write_bytes(KEY)
    assert nnb("decrypt", sealed, clear, "--key", key) == 0
    assert clear.read_bytes() == made("packed")
    assert verify_vectors(unpack(clear.read_bytes())) == 2
    key.write_bytes(bytes(32))
    with pytest.raises(InputError, match="vectors"):
        nnb("decrypt", sealed, tmp_path / "wrong.nnb", "--key", key)
    assert not (tmp_path / "wrong.nnb").exists()


@pytest.mark.parametrize(
    ("damage", "name"), [(lambda b: b[:-1], "size"), (lambda b: b[:9], "truncated")]
)
def test_damaged_file_is_refused_by_the_script(
    file: Path,
    damage: object,
    name: str,
) -> None:
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/nnb.py", "verify", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert f"{name}: " in done.stderr and "[E922]" in done.stderr


def test_output_that_is_an_input_is_refused(file: Path) -> None:
    with pytest.raises(InputError) as refused:
        nnb("decrypt", file, file, "--key", file)
    assert refused.value.code == "E704"


def test_wrong_usage_ends_with_status_2(file: Path) -> None:
    for words in (["decrypt", file], ["info", file, "out"], ["show", file], ["decrypt", file, "a"]):
        with pytest.raises(SystemExit) as ended:
            nnb(*words)
        assert ended.value.code == 2
