"""The tools where modules, calls and rights of Linux are taken away: the same files come out.

`windows/` and `macos/` beside this file hold what Python does there, as a sitecustomize.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

HERE = Path(__file__).resolve().parent
SYSTEMS = ("windows", "macos")
TOOLS = ("train.py", "quantize.py", "ai8xize.py", "emulate.py", "batchnormfuser.py")
TRAINED = ROOT / "trained/digits-ai85digitsnet-qat8.pth.tar"
QUANTIZED = ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"
ANEW = ("--timer", "0", "--overwrite", "--verify")
NARROW = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""A console that shows ASCII only, and a system whose files do as well."""


def run(
    *words: str | Path, cwd: Path, system: str = "", status: int = 0, encoding: str = "ascii"
) -> str:
    """Run Python as on a system in a folder; return what it prints."""
    environment = {**os.environ, **NARROW, "PYTHONIOENCODING": encoding}
    if system:
        environment["PYTHONPATH"] = str(HERE / system)
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    shown = (done.stdout + done.stderr).decode(encoding)
    assert done.returncode == status, shown
    assert "Traceback" not in shown
    return shown


def project(*more: str) -> list[str | Path]:
    return [
        ROOT / "ai8xize.py", "--config-file", ROOT / "networks/digits-chw-ai85.yaml",
        "--checkpoint-file", QUANTIZED, "--sample-input", ROOT / "tests/sample_digits.npy",
        "--device", "MAX78000", "--prefix", "digits", "--test-dir", ".", *more,
    ]  # fmt: skip


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def python(code: str, *words: str | Path, cwd: Path) -> str:
    """Run a few lines that stand in the repository, as on Windows."""
    lines = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    return run("-c", lines, *words, cwd=cwd, system="windows")


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("import fcntl", "fcntl"),
        ("import os; os.symlink('a', 'b')", "1314"),
        ("import os; os.open('.', os.O_RDONLY)", "Permission"),
        ("f = open('a', 'w'); import os; os.replace('a', 'b')", "32"),
        ("f = open('a', 'w'); import os; os.unlink('a')", "32"),
        ("open('aux.txt', 'w')", "123"),
        ("open('/dev/zero', 'rb')", "/dev/zero"),
    ],
)
def test_windows_lacks_what_the_other_tests_rely_on(
    tmp_path: Path, code: str, refused: str
) -> None:
    lines = f"try:\n    exec({code!r})\nexcept Exception as exc:\n    print('refused', exc)"
    said = run("-c", lines, cwd=tmp_path, system="windows")
    assert said.startswith("refused")
    assert refused in said


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_starts_on_windows_and_helps_on_a_narrow_console(
    tmp_path: Path, tool: str
) -> None:
    assert "usage" in run(ROOT / tool, "--help", cwd=tmp_path, system="windows")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a project as this system writes them, and one of the user's."""
    folder = tmp_path_factory.mktemp("usual")
    run(*project(*ANEW), cwd=folder)
    return {**content(folder / "digits"), "mine.txt": b"mine"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_projects_are_written_verified_replaced_and_emulated(
    tmp_path: Path, system: str, usual: dict[str, bytes]
) -> None:
    run(*project(), cwd=tmp_path, system=system)
    assert content(tmp_path / "digits") != usual
    (tmp_path / "digits/mine.txt").write_bytes(b"mine")
    words = project(*ANEW)
    assert "verified" in run(*words, cwd=tmp_path, system=system)
    words = [ROOT / "emulate.py", "digits", "--trace", "trace.csv", "--vcd", "times.vcd", "-v"]
    assert "PASS" in run(*words, cwd=tmp_path, system=system, encoding="cp1252")
    assert {name: content(tmp_path / "digits")[name] for name in usual} == usual
    assert sorted(os.listdir(tmp_path)) == ["digits", "times.vcd", "trace.csv"]


def test_checkpoints_and_twins_are_written_and_replaced(tmp_path: Path) -> None:
    words = (ROOT / "quantize.py", TRAINED, "q.pth.tar", "--device", "MAX78000", "-v")
    for _ in range(2):
        run(*words, "--safetensors", cwd=tmp_path, system="windows")
        assert (tmp_path / "q.pth.tar").read_bytes() == QUANTIZED.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["q.pth.tar", "q.safetensors"]


def test_batch_normalization_is_folded(tmp_path: Path) -> None:
    from ai8xtools.checkpoint import Checkpoint, write_checkpoint
    from tests.writing.all_tools import normalized

    source = Checkpoint({"arch": "net", "state_dict": normalized()})
    write_checkpoint(tmp_path / "in.pth.tar", source)
    for name, system in (("a", ""), ("b", "windows")):
        words = ("-i", "in.pth.tar", "-o", f"{name}.pth.tar", "-oa", "folded")
        run(ROOT / "batchnormfuser.py", *words, cwd=tmp_path, system=system)
    assert (tmp_path / "a.pth.tar").read_bytes() == (tmp_path / "b.pth.tar").read_bytes()


OWN_DATA = """
class Data:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        import torch
        return torch.full((1, 8, 8), index / 16), index % 4

def load(data, load_train=True, load_test=True):
    return Data(), Data()

datasets = [{"name": "own", "input": (1, 8, 8), "output": (0, 1, 2, 3), "loader": load}]
"""


def test_data_of_ones_own_is_loaded_by_processes_that_are_spawned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no links to the last run either."""
    shutil.copytree(ROOT / "tests/training/tiny/models", tmp_path / "models")
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets/own.of-mine.py").write_text(OWN_DATA, encoding="utf-8")
    noted = tmp_path / "spawned"
    monkeypatch.setenv("SPAWNED", str(noted))
    shown = run(
        ROOT / "train.py", "--model", "tinyclassifier", "--dataset", "own", "--epochs", "1",
        "--workers", "1", "--qat-policy", "None", "--out-dir", "logs", "--name", "t",
        "--validation-split", "0", "--no-validation", cwd=tmp_path, system="windows",
    )  # fmt: skip
    assert noted.exists()
    assert not (tmp_path / "latest_log_dir").exists()
    (folder,) = (tmp_path / "logs").iterdir()
    assert "latest_log_dir was not made" in shown
    assert folder.name in shown
    assert (folder / "t_best.pth.tar").is_file()


def test_data_that_cannot_be_sent_to_another_process_is_loaded_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from ai8xtools.training.data import batches

    class Unsent(list[tuple[torch.Tensor, int]]):  # other processes do not find it by its name
        pass

    monkeypatch.setattr(batches, "start_of_workers", lambda: "spawn")
    data = Unsent([(torch.ones(1), 3)])
    loaded = batches.LoaderBatches(data, batches.Order(torch.arange(1), 1), workers=1)
    assert [target.tolist() for _, target in loaded.of_epoch(0)] == [[3]]


def test_classes_have_the_same_numbers_as_on_linux(tmp_path: Path) -> None:
    """Names without case would put `cat` before `Dog`, and take `Cat` for `cat`."""
    for name in ("cat", "Dog", "Cat"):
        for number in range(2):
            (tmp_path / "pets" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "pets" / name / f"{number}.png").write_bytes(b"x")
    code = (
        "import pathlib; from datasets.own import folders as f; p = pathlib.Path('pets');"
        "print(sorted(p.iterdir())[-1].name, *f._classes(p))"
    )
    assert python(code, cwd=tmp_path).split() == ["Dog", "Cat", "Dog", "cat"]


def test_what_killed_runs_left_is_removed_unless_it_is_open(tmp_path: Path) -> None:
    (tmp_path / ".a.writing-12345678").write_bytes(b"left")
    code = """
from ai8xtools.checkpoint.atomic import atomic_file
with atomic_file('a') as outer:
    outer.write(b'outer')
    with atomic_file('a') as inner:
        inner.write(b'inner')
print(open('a', encoding='ascii').read())"""
    assert python(code, cwd=tmp_path).split() == ["outer"]
    assert os.listdir(tmp_path) == ["a"]


def test_lock_of_windows_is_taken_for_what_is_to_be_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from ai8xtools.reading import system

    class Msvcrt:
        LK_LOCK, LK_NBLCK = 1, 2

        @staticmethod
        def locking(_handle: int, mode: int, count: int) -> None:
            assert count == 1
            if mode == Msvcrt.LK_NBLCK:
                raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(system, "_fcntl", None)
    monkeypatch.setattr(system, "_module", lambda _name: Msvcrt)
    system.lock(0)
    system.lock(0, alone=True, wait=True)
    with pytest.raises(BlockingIOError):
        system.lock(0, alone=True)


def test_projects_are_not_named_after_devices_of_windows(tmp_path: Path) -> None:
    words = ["aux" if word == "digits" else word for word in project()]
    shown = run(*words, cwd=tmp_path, status=1)
    assert "E071" in shown
    assert "--prefix" in shown
    assert os.listdir(tmp_path) == []


def test_devices_of_windows_are_known_whatever_follows() -> None:
    from ai8xtools.reading.system import is_reserved

    assert all(map(is_reserved, ("con", "NUL", "aux.txt", "Com1", "lpt9.c", "prn .")))
    names = ("console", "nullable", "auxiliary", "com", "com10", "xcon", "a.con")
    assert not any(map(is_reserved, names))


def test_two_outputs_whose_names_differ_in_case_only_are_refused(tmp_path: Path) -> None:
    from ai8xtools.commands.same_files import refuse_overwriting
    from ai8xtools.diagnostics.errors import InputError

    shown = run(*project("--weight-filename", "CNN.H"), cwd=tmp_path, status=1)
    assert "E072" in shown
    assert os.listdir(tmp_path) == []
    outputs = [("--trace", str(tmp_path / "a")), ("--vcd", str(tmp_path / "A"))]
    with pytest.raises(InputError, match="case"):
        refuse_overwriting(outputs, [])


def test_files_of_the_repository_have_names_that_every_system_takes() -> None:
    from ai8xtools.reading.system import is_reserved

    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    ).stdout.splitlines()
    assert len({name.lower() for name in tracked}) == len(tracked)
    for name in tracked:
        assert not set(name) & set('<>:"|?*\\'), name
        assert not any(is_reserved(part) or part.endswith((".", " ")) for part in name.split("/"))
