"""Compilers of others' projects: limits, one end for all of them, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ai8xtools.emulator.cpu import workshop
from ai8xtools.emulator.cpu.deadline import within
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.reading import MIB
from tests.conftest import ROOT

BOMB = """
#define A(x) x x x x x x x x x x
#define B(x) A(A(A(x)))
#define C(x) B(B(B(x)))
int main(void) { C(C(;)) return 0; }
"""
LINUX = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, of this process and of those it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def naming(text: str) -> list[str]:
    """The command lines of all processes that name something, this one left out."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and int(place.name) != os.getpid():
            found.append(line)
    return found


def eventually(condition: object, seconds: float = 20.0) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def refusal(code: str, place: Path, seconds: float = 60.0) -> str:
    """Run a Python program as compiler; return why it was refused."""
    with pytest.raises(EmulatorError) as caught, within(seconds, place), Workshop(place) as shop:
        shop.run([sys.executable, "-c", code], os.environ)
    assert caught.value.code == "E811"
    return caught.value.message


@LINUX
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"])
def test_compilers_die_with_the_tool_and_their_folder_goes(
    number: str, tmp_path: Path, temporary: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.c").write_text(BOMB)
    tool = subprocess.Popen(
        [sys.executable, "-c",
         "import signal, runpy, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
         "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
         "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
         ROOT / "emulate.py", project, "--device", "MAX78000"],
        cwd=ROOT, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    source = str(project / "main.c")
    try:
        assert eventually(lambda: len([line for line in naming(source) if "zig" in line]) > 1 or
                          any("cc1" in line for line in naming(source)))  # fmt: skip
        assert any(temporary.iterdir())
        tool.send_signal(getattr(signal, number))
        begin = time.monotonic()
        assert tool.wait(20) != 0
        assert time.monotonic() - begin < 10
        # its keeper ends just after the folder is gone
        assert eventually(lambda: not any(temporary.iterdir())
                          and not naming(source) and not naming(str(temporary)), 10)  # fmt: skip
    finally:
        tool.kill()


@LINUX
def test_nothing_stays_of_what_a_compiler_started(tmp_path: Path, temporary: Path) -> None:
    mark = str(tmp_path / "mark")
    code = f"import subprocess, sys; subprocess.Popen(['sh', '-c', 'sleep 60; : {mark}'])"
    with Workshop(tmp_path) as shop:
        assert shop.run([sys.executable, "-c", code], os.environ)[0] == 0
        assert eventually(lambda: bool(naming(mark)), 5)
    assert eventually(lambda: not naming(mark), 5)
    assert not any(temporary.iterdir())


def test_status_and_messages_of_a_compiler(tmp_path: Path, temporary: Path) -> None:
    code = "import sys; print('output'); print('é message', file=sys.stderr); sys.exit(3)"
    with Workshop(tmp_path) as shop:
        status, text = shop.run([sys.executable, "-X", "utf8", "-c", code], os.environ)
        assert (status, text) == (3, "é message\n")
    assert not any(temporary.iterdir())


@pytest.mark.usefixtures("temporary")
def test_time_of_compilers_is_limited(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert "longer than 0.5 s" in refusal("import time; time.sleep(60)", tmp_path, 0.5)
    assert time.monotonic() - begin < 10


def test_size_of_a_file_is_limited(tmp_path: Path, temporary: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(workshop, "FILE_BYTES", MIB)
    monkeypatch.setattr(workshop, "_LOOK_SECONDS", 60.0)  # the system has to notice
    code = "f = open('x', 'wb', 0)\nfor _ in range(100): f.write(bytes(1 << 20))"
    assert "writes more than" in refusal(code, tmp_path)
    assert not any(temporary.iterdir())


def test_size_of_all_files_is_limited(tmp_path: Path, temporary: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(workshop, "FOLDER_BYTES", MIB)
    code = (
        "import time, pathlib\nfor n in range(600):\n"
        "  pathlib.Path(str(n)).write_bytes(bytes(1 << 16)); time.sleep(0.01)\n"
        "time.sleep(60)"
    )
    assert "writes more than" in refusal(code, tmp_path)
    assert not any(temporary.iterdir())


@pytest.mark.skipif(sys.platform == "darwin", reason="the system refuses the limit")
@pytest.mark.usefixtures("temporary")
def test_memory_of_compilers_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop, "MEMORY_BYTES", 1 << 29)
    code = "import sys\ntry: bytes(1 << 30)\nexcept MemoryError: sys.exit('out of memory')"
    assert "memory" in refusal(code, tmp_path)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
@pytest.mark.parametrize("limit", ["-v 3500000", "-f 20000", "-t 50", "-v unlimited"])
def test_lower_limits_of_the_user_stay(limit: str, tmp_path: Path) -> None:
    code = (
        "import os, resource as r, pathlib\n"
        "from ai8xtools.emulator.cpu.workshop import Workshop\n"
        "before = [r.getrlimit(k)[1] for k in (r.RLIMIT_AS, r.RLIMIT_FSIZE, r.RLIMIT_CPU)]\n"
        "show = 'import resource as r, sys; print(*(r.getrlimit(k)[1] for k in (r.RLIMIT_AS, "
        "r.RLIMIT_FSIZE, r.RLIMIT_CPU)), file=sys.stderr)'\n"
        "with Workshop(pathlib.Path()) as shop:\n"
        "    status, text = shop.run([os.sys.executable, '-c', show], os.environ)\n"
        "for old, new in zip(before, map(int, text.split())):\n"
        "    assert 0 < new and (old == -1 or new <= old), (old, new)\n"
    )
    command = f'ulimit {limit}; exec "$0" -c "$1"'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, code],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("shell", [None, "/bin/sh"])
@pytest.mark.parametrize("groups", [False, True])
def test_without_shell_or_groups_compilers_run_all_the_same(
    shell: str | None, groups: bool, tmp_path: Path, temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(workshop, "SHELL", shell)
    if not groups:
        monkeypatch.delattr(os, "setpgid")
    with Workshop(tmp_path) as shop:
        assert shop.run([sys.executable, "-c", "open('x', 'w')"], os.environ) == (0, "")
        assert (shop.folder / "x").exists()
    assert not any(temporary.iterdir())
    assert "longer than 0.5 s" in refusal("import time; time.sleep(60)", tmp_path, 0.5)
    assert not any(temporary.iterdir())


def test_readers_are_interrupted_when_time_is_up(tmp_path: Path) -> None:
    begin = time.monotonic()
    with pytest.raises(EmulatorError, match="longer than 0.2 s"), within(0.2, tmp_path):
        while time.monotonic() - begin < 20:
            pass
    assert time.monotonic() - begin < 10
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_inner_limit_adds_no_time(tmp_path: Path) -> None:
    with (
        pytest.raises(EmulatorError, match="longer than 0.2 s"),
        within(0.2, tmp_path),
        within(60, tmp_path),
    ):
        time.sleep(20)
