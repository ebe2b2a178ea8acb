"""A fault at every write, rename, fsync, link and removal of each tool: `make faults`.

Each tool runs in a child of its own for each fault: killed, on a disk that is full from then on, or
with one I/O error. Afterwards its output must be the old or the new, whole, and a further run must
leave the new one and no temporary files. The table counts the steps.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from checkpoint import Checkpoint, write_checkpoint
from tests.conftest import ROOT
from tests.writing.faults import KINDS, outcomes

Contents = dict[str, bytes]
DIGITS = ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar"


def loader(folder: Path, version: int) -> list[str]:
    """A project, with another name of its arrays in the second version."""
    return [
        "--device", "MAX78000", "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
        "--checkpoint-file", str(DIGITS).replace("qat8", "qat8-q"), "--sample-input",
        str(ROOT / "tests/sample_digits.npy"), "--test-dir", str(folder), "--prefix", "net",
        "--overwrite", *(["--softmax"] if version else []),
    ]  # fmt: skip


def _work(tool: str, folder: Path, version: int) -> Callable[[], object]:
    """Return what a tool does in the folder, in its first or second version."""
    if tool == "ai8xize":
        from commands.loader.arguments import parse
        from commands.loader.create import create_project

        return lambda: create_project(parse(loader(folder, version)))
    if tool in ("quantize", "quantize --safetensors"):
        import quantize

        more = [] if tool == "quantize" else ["--safetensors"]
        scale = ["--clip-method", "SCALE", "--scale", f"0.{5 + version}"]
        arguments = [str(DIGITS), str(folder / "q.pth.tar"), "--device", "MAX78000", *scale, *more]
        return lambda: quantize.main(arguments)
    if tool == "batchnormfuser":
        import batchnormfuser

        source = folder.parent / "bn.pth.tar"
        if not source.exists():
            write_checkpoint(source, Checkpoint({"state_dict": _normalized()}))
        arguments = ["-i", str(source), "-o", str(folder / "f.pth.tar"), "-oa", f"net{version}"]
        return lambda: batchnormfuser.main(arguments)
    raise ValueError(tool)


def _normalized() -> dict[str, np.ndarray]:
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


def measure(tool: str, kind: str, top: Path) -> Iterator[str]:
    """Yield what was found after each fault."""
    folder, start = top / "folder", top / "start"
    for place in (folder, start):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    first, second = (_work(tool, folder, version) for version in range(2))
    first()
    old = contents(folder)
    shutil.copytree(folder, start, dirs_exist_ok=True)
    second()
    new = contents(folder)
    pair = tool == "quantize --safetensors"

    def prepare() -> None:
        shutil.rmtree(folder)
        shutil.copytree(start, folder)

    for _, ended in outcomes(second, kind, prepare):
        found = contents(folder)
        half = (
            pair
            and ended == "killed"
            and any(found.items() < whole.items() for whole in (old, new))
        )
        yield "old" if found == old else "new" if found == new else "half" if half else "MIXED"
        second()
        left = [p.name for p in folder.rglob("*") if ".writing-" in p.name]
        if contents(folder) != new or left:
            yield "LITTER"


def main() -> int:
    """Print a table; 1 if anything was mixed, lost or left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", metavar="TOOL")
    tools = parser.parse_args().tools or [
        "ai8xize", "quantize", "quantize --safetensors", "batchnormfuser",
    ]  # fmt: skip
    print(f"{'tool':24} {'fault':8} {'steps':>5} {'old':>5} {'new':>5} {'half':>5} wrong")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for tool in tools:
            for kind in KINDS:
                sys.stdout.flush()
                keep = os.dup(1), os.dup(2)
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)
                try:
                    found = list(measure(tool, kind, Path(name)))
                finally:
                    sys.stdout.flush()
                    os.dup2(keep[0], 1)
                    os.dup2(keep[1], 2)
                counts = [found.count(word) for word in ("old", "new", "half")]
                bad = len(found) - sum(counts)
                wrong += bad
                columns = " ".join(f"{n:5}" for n in (sum(counts), *counts))
                print(f"{tool:24} {kind:8} {columns} {bad:5}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
