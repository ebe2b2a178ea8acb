"""A fault at every write, rename, fsync, link and removal of each tool: `make faults`.

Each tool runs in a child of its own for each fault: killed, on a disk that is full from then on, or
with one I/O error. Afterwards its output must be the old or the new, whole, and a further run must
leave the new one and no temporary files. The table counts the steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from ai8xtools.checkpoint import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from tests.conftest import ROOT
from tests.writing.faults import KINDS, outcomes, with_fault

TOOLS = (
    "ai8xize", "ai8xize --container", "quantize", "quantize --safetensors", "batchnormfuser",
    "emulate --trace",
)  # fmt: skip
Contents = dict[str, bytes]
SCHEDULE = ROOT / "policies" / "schedule.yaml"
DIGITS = ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar"


def loader(folder: Path, sample: Path) -> list[str]:
    """Return the words with which a project is written again."""
    return [
        "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"), "--sample-input", str(sample),
        "--checkpoint-file", str(DIGITS).replace("qat8", "qat8-q"), "--test-dir", str(folder),
        "--prefix", "net", "--overwrite",
    ]  # fmt: skip


def container(folder: Path) -> list[str]:
    """Return what writes a container, and a project that runs it."""
    words = ["--device", "MCU", "--mcu", "stm32l4r5", "--slot", "64K", "--arena", "16K"]
    return [*words, "--container", str(folder / "net.nnb")]


def work(tool: str, folder: Path, version: int, inputs: Path | None = None) -> Callable[[], object]:
    """Return what a tool does in the folder, in its first or second version.

    What it reads is made in the folder `inputs`, or beside its own.
    """
    inputs = inputs or folder.parent
    if tool in ("ai8xize", "ai8xize --container"):
        import ai8xize

        sample = inputs / f"sample{version}.npy"
        image = np.load(ROOT / "tests" / "sample_digits.npy")
        np.save(sample, image[..., ::-1] if version else image)
        words = ["--device", "MAX78000"] if tool == "ai8xize" else container(folder)
        words = ["ai8xize.py", *words, *loader(folder, sample)]

        def create() -> None:
            with mock.patch.object(sys, "argv", words):
                if ai8xize.main():
                    raise OSError("refused")

        return create
    if tool in ("quantize", "quantize --safetensors"):
        import quantize

        more = [] if tool == "quantize" else ["--safetensors"]
        scale = ["--clip-method", "SCALE", "--scale", f"0.{5 + version}"]
        arguments = [str(DIGITS), str(folder / "q.pth.tar"), "--device", "MAX78000", *scale, *more]
        return lambda: quantize.main(arguments)
    if tool == "batchnormfuser":
        import batchnormfuser

        source = inputs / "bn.pth.tar"
        if not source.exists():
            write_checkpoint(source, Checkpoint({"state_dict": normalized()}))
        arguments = ["-i", str(source), "-o", str(folder / "f.pth.tar"), "-oa", f"net{version}"]
        return lambda: batchnormfuser.main(arguments)
    if tool == "emulate --trace":
        from ai8xtools.commands.emulate.arguments import parse
        from ai8xtools.commands.emulate.emulate import emulate

        words = recording(inputs / f"words{version}.npz", 0x800 << version)
        arguments = ["--words", str(words), "--device", "MAX78000"]
        options = parse([*arguments, "--trace", str(folder / "trace.txt")])
        return lambda: emulate(options)
    raise ValueError(tool)


def recording(path: Path, out_word: int) -> Path:
    """Record the words of a 1x1 convolution that writes to a word of the data memory."""
    from tests.emulator.by_hand import one_by_one

    words = one_by_one(np.array([[[1, 2], [3, -128]]]), np.array([[100]]), out_word=out_word)
    size, address, value = np.array(words.rows).T
    np.savez(path, phase=np.full(len(size), 4), size=size, addr=address, value=value)
    return path


def normalized() -> dict[str, np.ndarray]:
    """Return a layer with batch normalization."""
    state = {"conv1.op.weight": np.ones((8, 3, 3, 3), "f4"), "conv1.op.bias": np.zeros(8, "f4")}
    for name in ("weight", "bias", "running_mean", "running_var"):
        state[f"conv1.bn.{name}"] = np.ones(8, "f4")
    return state


def contents(folder: Path) -> Contents:
    """Files of a folder but temporary ones."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(".writing-" in part for part in path.parts)
    }


def _part(files: Contents, is_container: bool) -> Contents:
    """Return a container, or all but it: what is written beside it is not one with it."""
    return {path: data for path, data in files.items() if path.endswith(".nnb") == is_container}


def measure(tool: str, kind: str, top: Path) -> Iterator[str]:
    """Yield what was found after each fault."""
    folder, start = top / "folder", top / "start"
    for place in (folder, start):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    first, second = (work(tool, folder, version) for version in range(2))
    first()
    old = contents(folder)
    shutil.copytree(folder, start, dirs_exist_ok=True)
    second()
    new = contents(folder)
    assert old != new, f"{tool}: both versions write the same"

    def prepare() -> None:
        shutil.rmtree(folder)
        shutil.copytree(start, folder)

    for _ in outcomes(second, kind, prepare):
        found = contents(folder)
        yield "old" if found == old else "new" if found == new else "half" if all(
            _part(found, which) in (_part(old, which), _part(new, which)) for which in (True, False)
        ) else "MIXED"  # fmt: skip
        second()
        left = [p.name for p in folder.rglob("*") if ".writing-" in p.name]
        if contents(folder) != new or left:
            yield "LITTER"


def train(top: Path, name: str) -> None:
    """Train a small network for an epoch, in a log folder that begins with a name."""
    import ai8xtools.commands.train.train as body
    import train as tool

    words = ["--model", "tinyclassifier", "--dataset", "tinyclasses", "--epochs", "2", "-b", "16"]
    words += ["--deterministic", "-j", "0", "--optimizer", "Adam", "--lr", "0.02", "--name", name]
    os.chdir(top / "folder")
    sys.argv = ["train.py", *words, "--qat-policy", "None", "--compress", str(SCHEDULE)]
    body.print_fits = lambda _options: None  # type: ignore[assignment]
    tool.main()


def measure_training(kind: str, top: Path) -> Iterator[str]:
    """Yield what a training left after each fault: none of its checkpoints, some, or all.

    Results of an earlier run are lost if one of its files changes; all that is there must be
    whole; the links in the working folder lead somewhere.
    """
    import tests.training.imports  # noqa: F401 - once, not in each child

    folder, start = top / "folder", top / "start"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "training" / "tiny", folder)
    # in a child, too: PyTorch's threads, once started, do not live on in a process that is forked
    with_fault(lambda: train(top, "old"), "kill", 1 << 30)
    old = contents(folder)
    shutil.rmtree(start, ignore_errors=True)
    shutil.copytree(folder, start, symlinks=True)

    def prepare() -> None:
        os.chdir(top)
        shutil.rmtree(folder)
        shutil.copytree(start, folder, symlinks=True)

    for _ in outcomes(lambda: train(top, "new"), kind, prepare, apart=True):
        found = contents(folder)
        lost = any(found.get(file) != data for file, data in old.items() if "latest" not in file)
        linked = (folder / "latest_log_dir").exists() and (folder / "latest_log_file").exists()
        made = [p for p in folder.glob("logs/new*/*.pth.tar") if ".writing-" not in p.name]
        if lost or not linked or not all(map(_is_whole, folder.glob("logs/*/[!.]*"))):
            yield "MIXED"
        else:
            yield ("old", "half", "new")[min(len(made), 2)]
        with_fault(lambda: train(top, "next"), "kill", 1 << 30)
        if any(".writing-" in path.name for path in folder.rglob("*")):
            yield "LITTER"


def _is_whole(path: Path) -> bool:
    """Whether a file that a training writes at once can be read."""
    try:
        if path.name.endswith(".pth.tar"):
            read_checkpoint(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.name == "configs":
            return all(x.read_bytes() == SCHEDULE.read_bytes() for x in path.glob("[!.]*"))
    except (CheckpointError, ValueError):
        return False
    return True


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Let what the tools say lead nowhere."""
    sys.stdout.flush()
    keep = os.dup(1), os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(keep[0], 1)
        os.dup2(keep[1], 2)
        for handle in (*keep, nowhere):
            os.close(handle)


def main() -> int:
    """Print a table; 1 if anything was mixed, lost or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", metavar="TOOL")
    tools = parser.parse_args().tools or [*TOOLS, "train"]
    print(f"{'tool':24} {'fault':8} {'steps':>5} {'old':>5} {'new':>5} {'half':>5} wrong")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for tool in tools:
            for kind in KINDS:
                top = Path(name)
                with quietly():
                    found = list(
                        measure_training(kind, top) if tool == "train" else measure(tool, kind, top)
                    )
                counts = [found.count(word) for word in ("old", "new", "half")]
                bad = len(found) - sum(counts)
                wrong += bad
                columns = " ".join(f"{n:5}" for n in (sum(counts), *counts))
                print(f"{tool:24} {kind:8} {columns} {bad:5}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
