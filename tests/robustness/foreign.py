"""Every option that reads a file, with files as nobody means them.

`make fuzz` gives each option of each tool each of them. A run must end with status 1, one message
with a code and a place, within five seconds of processor time and 512 MB, and leave all files as
they were.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from ai8xtools.checkpoint import Checkpoint, write_checkpoint
from ai8xtools.diagnostics import run
from tests.conftest import ROOT
from tests.robustness.archives import bomb
from tests.robustness.reads import FILE, NET, TABLE, TRAIN, Reads

SECONDS, PATIENCE = 5.0, 120
MEMORY = 512 << 20
_NAME = "foreign"
_SLOPPY = b"".join(b'- {a: [1, 2, {b: c}], d: "e"}\n' for _ in range(350_000))


def _bytes(content: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(content)

    return make


def _lead_to(place: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.symlink_to(place)

    return make


def _with_hole(path: Path) -> None:
    """A file of a terabyte that takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _array(header: str, content: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


_SEARCH = """
start_epoch: 1
validation_freq: 2
elastic_kernel: {num_epochs: 1}
elastic_depth: {num_epochs: 2}
elastic_width: {num_epochs: 1}
kd_params: {teacher_model: full_model, temperature: 2}
evolution_search: {population_size: 4, prob_mutation: 0.1, ratio_mutation: 0.5,
  ratio_parent: 0.25, num_iter: 1, constraints: {max_cycles: 2500}}
"""

FILES: dict[str, Callable[[Path], None]] = {
    "missing": lambda _path: None,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "empty": _bytes(b""),
    "one byte": _bytes(b"x"),
    "random": _bytes(np.random.default_rng(1).bytes(5000)),
    "/dev/zero": _lead_to("/dev/zero"),
    "/dev/null": _lead_to("/dev/null"),
    "loop": lambda path: path.symlink_to(path.name),
    "UTF-16": _bytes("arch: gr\u00fc\u00dfe\nlayers: []\n".encode("utf-16")),
    "Latin-1": _bytes(b"# gr\xfc\xdfe\nlayers:\n"),
    "10 MB of YAML": _bytes(_SLOPPY),
    "hole": _with_hole,
    "zip bomb": lambda path: _bytes(bomb())(path),
    "gzip bomb": lambda path: _bytes(bomb(gzipped=True))(path),
    "npy of objects": _bytes(_array("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}")),
    "npy of exabytes": _bytes(
        _array(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({1 << 60}, 4)}}\n")
    ),
    "LFS pointer": _bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"
    ),
}


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    case: str
    status: int
    text: str
    seconds: float
    peak_bytes: int
    changed: tuple[str, ...]
    harmless: bool = False
    judged: bool = True

    def failure(self) -> str | None:
        """Return what is wrong with it; None: nothing."""
        said = re.findall(r"^(?:.*?: )?error: .*?\[E\d+\]$", self.text, re.DOTALL | re.MULTILINE)
        if self.status == -signal.SIGALRM:
            return f"no end within {PATIENCE} s"
        if self.status == 0 and self.harmless:
            return None
        if self.status != 1:
            return f"status {self.status}"
        if "[E009]" in self.text or "Traceback" in self.text or "Exception" in self.text:
            return "a defect"
        if not self.judged and self.text.endswith("FAIL\n"):
            return None
        if len(said) != 1:
            return f"{len(said)} messages"
        if _NAME not in said[0]:
            return "the file is not named"
        if self.seconds > SECONDS:
            return f"{self.seconds:.1f} s"
        if self.peak_bytes > MEMORY:
            return f"{self.peak_bytes >> 20} MiB"
        return f"files changed: {self.changed[:3]}" if self.changed else None


def prepare(folder: Path, *, trained: bool) -> None:
    """Put what the command lines name into a folder; what is `trained` takes seconds."""
    here = ROOT / "trained"
    for source, name in (
        (ROOT / "networks/digits-chw-ai85.yaml", "net.yaml"),
        (here / "digits-ai85digitsnet-qat8-q.pth.tar", "net.pth.tar"),
        (here / "digits-ai85digitsnet-qat8.pth.tar", "trained.pth.tar"),
        (ROOT / "tests/sample_digits.npy", "sample.npy"),
        (ROOT / "tests/sample_lowbit.npy", "low.npy"),
        (here / "mnist-ai85net5-qat8.pth.tar", "mnist.pth.tar"),
        (here / "mnist-lowbit-dense.h", "low.h"),
        (here / "mnist-lowbit-dense.pth.tar", "low.pth.tar"),
    ):
        shutil.copy(source, folder / name)
    (folder / "key").write_bytes(bytes(range(32)))
    layers = {"1.weight": np.eye(8, 256, dtype="f4"), "3.weight": np.eye(10, 8, dtype="f4")}
    write_checkpoint(folder / "bitnet.pth", Checkpoint({"state_dict": layers}))
    (folder / "arrays.yaml").write_text(
        "arch: test\ndataset: test\nlayers:\n  - {in_channels: 1, in_dim: [4, 4], processors: 1, "
        "kernel_size: 3x3, pad: 1, activate: ReLU, out_offset: 0x2000, data_format: CHW}\n"
    )
    np.save(folder / "arrays.npy", np.zeros((1, 4, 4), np.int64))
    np.save(folder / "weights.npy", np.ones((1, 1, 1, 3, 3), np.int64))
    shutil.copytree(ROOT / "tests/training/tiny", folder, dirs_exist_ok=True)
    words = f"--device MAX78000 --test-dir . --prefix project {NET}".split()
    outcome = _run("ai8xize", words, folder)
    assert outcome.status == 0, outcome.text
    words = f"--device MCU --mcu stm32l4r5 --test-dir . --prefix mcu --container net.nnb {NET}"
    outcome = _run("ai8xize", words.split(), folder)
    assert outcome.status == 0, outcome.text
    if not trained:
        return
    (folder / "nas.yaml").write_text(_SEARCH)
    words = f"{TRAIN} --model tinyelastic --dataset tinyclasses --nas --nas-policy nas.yaml"
    outcome = _run("train", [*words.split(), "--epochs", "2"], folder, keep=True)
    assert outcome.status == 0, outcome.text
    found = next(folder.glob("logs/*/*checkpoint.pth.tar"))
    shutil.copy(found, folder / "elastic.pth.tar")
    shutil.rmtree(folder / "logs")


def run_case(reads: Reads, file: str, folder: Path) -> Outcome:
    """Run a tool in a prepared folder with a file in place of what it should read."""
    path = folder / f"{_NAME}{'' if reads.inside else reads.suffix or '.tmp'}"
    _remove(path)
    place = path
    if reads.inside is not None:
        if (folder / "project").is_dir() and not reads.inside.startswith(("a/", "MNIST", "cifar")):
            shutil.copytree(folder / "project", path)
        place = path / reads.inside
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove(place)
    FILES[file](place)
    try:
        words = reads.words.replace(FILE, path.name).split()
        ended = _run(reads.tool, words, folder, str(reads))
        harmless = re.search(reads.harmless, file) is not None
        return replace(ended, harmless=harmless, judged=reads.judged)
    finally:
        _remove(path)
        _remove(folder / "out")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _names(folder: Path) -> dict[str, int]:
    """Return every file of a folder with the time of its last change."""
    return {
        str(path.relative_to(folder)): path.lstat().st_mtime_ns
        for path in folder.rglob("*")
        if not path.is_dir() and "__pycache__" not in path.parts
    }


def _held_bytes() -> int:
    """Return how much memory this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _run(
    tool: str, words: list[str], folder: Path, case: str = "", *, keep: bool = False
) -> Outcome:
    before = _names(folder)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as begun:
        child = os.fork()
        if child == 0:
            os.write(begun.fileno(), str(_held_bytes()).encode())
            _be(tool, words, folder, output.fileno())
        _, waited, usage = os.wait4(child, 0)
        begun.seek(0)
        held = int(begun.read())
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    after = _names(folder)
    if waited == 0:
        changed: tuple[str, ...] = ()
    else:
        kept = ("logs/", "latest_log")  # a training begins its log before it reads
        names = before.keys() | after.keys()
        changed = tuple(
            n for n in names if before.get(n) != after.get(n) and not n.startswith(kept)
        )
    if not keep:
        shutil.rmtree(folder / "logs", ignore_errors=True)
    seconds = usage.ru_utime + usage.ru_stime
    status = os.waitstatus_to_exitcode(waited)
    grown = (usage.ru_maxrss << 10) - held  # a fork begins with the memory of its parent
    return Outcome(case, status, text, seconds, grown, changed)


def _be(tool: str, words: list[str], folder: Path, output: int) -> NoReturn:
    """Be a tool, whose modules are imported already, and end the process."""
    status = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(output, number)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        sys.argv = [f"{tool.rpartition('.')[2]}.py", *words]
        module = importlib.import_module(tool)
        status = run(module.main)
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 2
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def outcomes(names: str, files: str, folder: Path) -> Iterator[tuple[Reads, str, Outcome]]:
    """Yield how each case ended whose names match patterns."""
    for reads in TABLE:
        if re.search(names, str(reads)):
            for file in FILES:
                if re.search(files, file):
                    yield reads, file, run_case(reads, file, folder)


def main() -> int:
    """Print a table; 1 if any run ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--option", default=".", help="pattern of tools and options")
    parser.add_argument("--file", default=".", help="pattern of files")
    parser.add_argument("--show", action="store_true", help="print what each run says")
    given = parser.parse_args()
    import tests.training.imports  # noqa: F401 - once, not in each run

    rows: dict[str, list[Outcome]] = collections.defaultdict(list)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), trained="nas-kd" in given.option or given.option == ".")
        for reads, file, outcome in outcomes(given.option, given.file, Path(name)):
            rows[str(reads)].append(outcome)
            failure = outcome.failure()
            failed += failure is not None
            if failure or given.show:
                print(f"{'FAILED ' if failure else ''}{reads} / {file}: {failure or ''}")
                print("   ", outcome.text.strip()[:1500].replace("\n", "\n    "), flush=True)
    print(f"{'option':64} {'files':>5} {'wrong':>5} {'slowest':>8} {'peak':>8}")
    for option, found in rows.items():
        wrong = sum(outcome.failure() is not None for outcome in found)
        slowest = max(outcome.seconds for outcome in found)
        peak = max(outcome.peak_bytes for outcome in found) >> 20
        print(f"{option:64} {len(found):5} {wrong:5} {slowest:6.1f} s {peak:4} MiB")
    print(f"{sum(map(len, rows.values()))} runs, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
