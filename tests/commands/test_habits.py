"""Habits of every tool: inputs stay, terminals are safe, an early end leaves no mess."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import quantize
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import run
from tests.conftest import ROOT

TRAINED = ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar"
ROOMS = ("ai8xtools", "device", "templates")
QUANTIZED = ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the description, checkpoint and sample of a network."""
    shutil.copy(ROOT / "networks" / "digits-chw-ai85.yaml", tmp_path / "net.yaml")
    shutil.copy(QUANTIZED, tmp_path / "net.pth.tar")
    shutil.copy(ROOT / "tests" / "sample_digits.npy", tmp_path / "sample.npy")
    return tmp_path


def words(folder: Path, *options: object) -> list[str]:
    """The command line of the network loader."""
    return [
        "--device", "MAX78000", "--config-file", str(folder / "net.yaml"), "--checkpoint-file",
        str(folder / "net.pth.tar"), "--sample-input", str(folder / "sample.npy"), "--test-dir",
        str(folder / "out"), "--prefix", "net", *map(str, options),
    ]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def start(
    folder: Path, *options: object, tool: str = "ai8xize.py", **settings: Any
) -> subprocess.Popen[bytes]:
    arguments = words(folder, *options) if tool == "ai8xize.py" else [*map(str, options)]
    command = [sys.executable, str(ROOT / tool), *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": -1, "stderr": -1, "cwd": folder, **settings}
    return subprocess.Popen(command, **streams)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def load(folder: Path, *options: object) -> int:
    return run(lambda: create_project(parse(words(folder, *options))))


@pytest.mark.parametrize("option", ["--report", "--write-config"])
@pytest.mark.parametrize("name", ["net.yaml", "net.pth.tar", "sample.npy", "link", "hard"])
def test_loader_never_writes_over_its_inputs(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    (folder / "link").symlink_to(folder / "net.yaml")
    (folder / "hard").hardlink_to(folder / "net.yaml")
    before = contents(folder)
    assert load(folder, option, folder / name) == 1
    assert f"option {option}: error: input and output are the same file" in capsys.readouterr().err
    assert contents(folder) == before


def test_project_never_replaces_its_description(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out" / "net").mkdir(parents=True)
    (folder / "net.yaml").rename(folder / "out" / "net" / "main.c")
    (folder / "net.yaml").symlink_to(folder / "out" / "net" / "main.c")
    before = contents(folder)
    assert load(folder, "--overwrite") == 1
    assert "input and output are the same file" in capsys.readouterr().err
    assert contents(folder) == before


def test_report_is_no_file_of_the_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = folder / "out" / "net" / "main.c"
    assert load(folder, "--report", report) == 1
    assert f"{report} is what --report writes, too [E704]" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_quantizer_never_replaces_its_description(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(folder)
    net = str(folder / "net.yaml")
    arguments = [str(TRAINED), net, "-c", net, "--device", "MAX78000"]
    assert run(lambda: quantize.main(arguments)) == 1
    assert "input and output are the same file" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.fixture
def project(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert load(folder) == 0
    capsys.readouterr()
    return folder / "out" / "net"


@pytest.mark.parametrize("name", ["main.c", "Makefile", "weights.h", "own.c"])
def test_trace_is_no_file_of_the_project(
    project: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from ai8xtools.commands.emulate.arguments import parse as parse_emulation
    from ai8xtools.commands.emulate.emulate import emulate

    (project / "own.c").write_text("int x;\n")
    before = contents(project)
    options = parse_emulation([str(project), "--trace", str(project / name)])
    assert run(lambda: emulate(options)) == 1
    assert f"{name} is a file of the project; it would be lost [E704]" in capsys.readouterr().err
    assert contents(project) == before


def test_terminal_gets_no_escapes_of_a_description(folder: Path) -> None:
    text = (folder / "net.yaml").read_text()
    (folder / "net.yaml").write_text(text.replace("arch: ", 'arch: "\\e[2J\\e]0;x\\a" # ', 1))
    shown = on_terminal(folder, words(folder))
    assert "control characters" in shown and r"\x1b[2J" in shown
    assert "\x1b[2J" not in shown and "\x1b]0" not in shown and "\x07" not in shown


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nforged: line", "\u202ereversed", "\x9b1m"])
def test_options_are_plain_text(folder: Path, text: str) -> None:
    ended = finish(start(folder, "--prefix", text))
    assert ended[0] == 2 and not (folder / "out").exists()
    assert "control characters are not possible in an option" in ended[2]
    assert all(character.isprintable() for character in ended[2].replace("\n", ""))


def on_terminal(folder: Path, arguments: list[str]) -> str:
    """Run the loader on a pseudo terminal; return what it shows."""
    leader, follower = pty.openpty()
    command = [sys.executable, str(ROOT / "ai8xize.py"), *arguments]
    streams = {"stdin": follower, "stdout": follower, "stderr": follower}
    process = subprocess.Popen(command, cwd=folder, **streams)
    os.close(follower)
    shown = b"".join(_chunks(leader))
    process.wait(timeout=60)
    os.close(leader)
    return shown.decode("utf-8", "replace")


def _chunks(handle: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(handle, 65536)
        except OSError:  # the other end is closed
            return
        if not data:
            return
        yield data


@pytest.mark.parametrize(
    ("redirection", "status"),
    [
        ("2>&-", 0),
        (">&-", 0),
        ("<&-", 0),
        (">&- 2>&- <&-", 0),
        ("2>/dev/full", 0),
        (">/dev/full", 1),
    ],
)
def test_closed_or_full_streams(folder: Path, redirection: str, status: int) -> None:
    arguments = " ".join(f"'{word}'" for word in words(folder))
    command = f"'{sys.executable}' '{ROOT / 'ai8xize.py'}' {arguments} {redirection}"
    ended = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == status
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert (folder / "out" / "net" / "main.c").is_file()


def test_reader_that_leaves_early_sees_no_traceback(folder: Path) -> None:
    for arguments in (words(folder, "--verbose", "--no-log"), ["--help"]):
        quoted = " ".join(f"'{word}'" for word in arguments)
        command = f"'{sys.executable}' '{ROOT / 'ai8xize.py'}' {quoted} | head -n 1"
        ended = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr.count("\n")) == (0, 0), ended.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        {"HOME": None},
        {"HOME": "/nonexistent"},
        {"TMPDIR": "/nonexistent"},
        {"TMPDIR": "/proc"},
    ],
    ids=str,
)
def test_unusual_surroundings(folder: Path, environment: dict[str, str | None]) -> None:
    inner = folder / "größe"
    inner.mkdir()
    folder = shutil.copytree(folder, inner / "x", ignore=shutil.ignore_patterns("größe"))
    variables = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    status, out, err = finish(start(folder, env=variables))
    assert (status, err) == (0, "") and "Wrote " in out


def test_checkout_that_cannot_be_written(folder: Path) -> None:
    """A copy of the tools without the right to write; root may write anyway."""
    copy = folder / "tools"
    for name in ("ai8xize.py",):
        copy.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy)
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    for part in (copy, *copy.rglob("*")):
        part.chmod(0o555 if part.is_dir() else 0o444)
    before = contents(copy)
    command = [sys.executable, str(copy / "ai8xize.py"), *words(folder)]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert contents(copy) == before
    for part in (copy, *copy.rglob("*")):
        part.chmod(0o755)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_a_run_with_a_message_and_no_litter(folder: Path, number: int) -> None:
    program = (
        "import time, signal, sys; from ai8xtools.diagnostics import run\n"
        "from ai8xtools.checkpoint.atomic import atomic_file\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it in children, too\n"
        "def main():\n"
        "    with atomic_file('result') as file:\n"
        "        file.write(b'x'); print('here', flush=True); time.sleep(30)\n"
        "sys.exit(run(main))"
    )
    streams = {"stdout": -1, "stderr": -1, "cwd": folder}
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", program], env=variables, **streams)
    assert process.stdout is not None
    before = contents(folder)
    process.stdout.readline()
    process.send_signal(number)
    status, _, err = finish(process)
    assert status == 1 and "[E001]" in err and "Traceback" not in err
    assert contents(folder).keys() == before.keys() - {p for p in before if p.startswith(".")}


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.2])
def test_interrupt_at_the_start_shows_no_traceback(folder: Path, delay: float) -> None:
    process = start(folder)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    assert status in (0, 1, -signal.SIGINT)
    # Python itself is still starting, or the import that asks for silence has not ended.
    text = (ROOT / "ai8xize.py").read_text()
    asking = text[: text.index("import ai8xtools.interrupts")].count("\n") + 1
    reached = [int(line) for line in re.findall(r'ai8xize\.py", line (\d+)', err)]
    starting = any(
        place in err for place in ("Fatal Python error: init", "site.py", "to set __main__")
    )
    assert "Traceback" not in err or starting or (reached and max(reached) <= asking)


@pytest.mark.defect
def test_defect_asks_for_a_report_without_data_of_the_user(folder: Path) -> None:
    program = (
        "import sys; from ai8xtools.diagnostics import run\n"
        "def main():\n"
        "    secret = {'layer': 1}\n"
        "    return secret['my-secret-network']\n"
        "sys.exit(run(main))"
    )
    command = [sys.executable, "-c", program, "--config-file", "my-secret.yaml", "--debug-report=r"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "[E009]\n  Run it again with --debug-report FILE and report the defect" in ended.stderr
    text = (folder / "r").read_text()
    report = json.loads(text)
    assert (report["version"], report["status"]) == (1, 1)
    assert report["options"] == ["--config-file", "--debug-report"]
    assert report["diagnostics"][0]["code"] == "E009"
    assert report["exceptions"][0]["type"] == "KeyError"
    assert "secret" not in text and str(folder) not in text


def test_report_of_a_refusal_has_its_code_and_line(folder: Path) -> None:
    (folder / "net.yaml").write_text("arch: my-secret\nlayers: 3\n")
    status, _, _ = finish(start(folder, "--debug-report", folder / "r.json"))
    text = (folder / "r.json").read_text()
    assert status == 1 and "secret" not in text
    assert json.loads(text)["diagnostics"][0]["line"] == 1


def test_option_with_a_slip_is_recognized(folder: Path) -> None:
    status, _, err = finish(start(folder, "--sofmax"))
    assert status == 2
    assert "unrecognized arguments: --sofmax; did you mean --softmax?" in err


def test_a_hundred_messages_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    from ai8xtools.diagnostics import Diagnostic, print_diagnostics

    print_diagnostics([Diagnostic("E101", f"number {n}") for n in range(873)])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 101
    assert lines[-1] == "... and 773 more, which may follow from these"


def test_rtl_test_never_replaces_its_description(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load(folder, "--rtl", "--overwrite") == 0
    (written,) = [path for path in (folder / "out").iterdir() if path.is_dir()]
    target = sorted(path for path in written.iterdir() if path.suffix in (".sv", ".v"))[0]
    target.unlink()
    (folder / "net.yaml").rename(target)
    (folder / "net.yaml").symlink_to(target)
    before = contents(folder)
    capsys.readouterr()
    assert load(folder, "--rtl", "--overwrite") == 1
    assert "input and output are the same file" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "options",
    [
        ("--qat-policy", "p.yaml", "--yaml-template", "p.yaml"),
        ("--compress", "p.yaml", "--yaml-template", "link.yaml"),
        ("--exp-load-weights-from", "net.onnx", "--summary", "onnx", "--summary-filename", "net"),
    ],
)
def test_training_never_replaces_its_inputs(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    import train

    (folder / "p.yaml").write_text("start_epoch: 0\nweight_bits: 8\n")
    (folder / "link.yaml").symlink_to(folder / "p.yaml")
    (folder / "net.onnx").write_bytes(b"weights")
    before = contents(folder)
    monkeypatch.chdir(folder)
    words = ["train.py", "--model", "ai85digitsnet", "--dataset", "digits", *options]
    monkeypatch.setattr(sys, "argv", words)
    assert run(train.main) == 1
    assert "input and output are the same file" in capsys.readouterr().err
    assert contents(folder) == before
