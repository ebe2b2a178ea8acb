"""The C reader of containers, compiled for this computer with sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ai8xtools.software.container import ContainerError, check_executable, run, unpack
from ai8xtools.software.container.execute import bytes_of, values_of
from ai8xtools.software.container.soundness import arena_bytes, network_inputs
from tests.conftest import ROOT
from tests.software.compiled import SANITIZED, compiler

READER = ROOT / "ai8xtools" / "software" / "runtime" / "nnb"
_DRIVER = Path(__file__).with_name("nnb_driver.c")
_STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")


def build_driver(folder: Path, flags: Sequence[str] = SANITIZED, driver: Path = _DRIVER) -> Path:
    """Compile reader and driver; return the program."""
    command = compiler()
    assert command is not None
    program = folder / "driver"
    sources = [driver, *sorted(READER.glob("*.c"))]
    built = subprocess.run(
        [*command, *_STRICT, *flags, f"-I{READER}", *sources, "-o", program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not built.returncode, built.stderr
    return program


def bundle(blobs: Iterable[bytes], path: Path) -> Path:
    """Write a bundle of containers."""
    path.write_bytes(b"".join(len(blob).to_bytes(4, "little") + blob for blob in blobs))
    return path


def statuses(program: Path, blobs: Iterable[bytes], folder: Path, *words: str) -> list[str]:
    """Return what the driver prints for each container."""
    file = bundle(blobs, folder / "bundle")
    done = subprocess.run(
        [program, file, *words], capture_output=True, text=True, check=False, timeout=3600
    )
    assert not done.returncode, done.stderr[-3000:]
    return done.stdout.splitlines()


MOST_BYTES = 1 << 20
"""Networks with larger tensors or arenas are opened, and not run."""


def pattern(size: int) -> bytes:
    """Return the bytes of the input of a run."""
    places = np.arange(size)
    return (places * 89 + (places >> 8) * 31 + 7).astype(np.uint8).tobytes()


def computed(blob: bytes) -> str:
    """Return what `driver BUNDLE run` has to print: the status, and the output for the pattern."""
    status = opened(blob)
    if status != "ok":
        return status
    container = unpack(blob)
    given = container.tensors[network_inputs(container)[0]]
    made = container.tensors[container.layers[-1].output]
    if max(given.size_bytes, made.size_bytes, arena_bytes(container)) > MOST_BYTES:
        return "ok large"
    try:
        values = run(container, values_of(given, pattern(given.size_bytes)), bytes(32))
    except ContainerError as exc:
        return f"ok {exc.name}"
    return f"ok {bytes_of(made, values).hex()}"


def opened(blob: bytes) -> str:
    """Return the status with which the C reader has to open a container."""
    try:
        check_executable(unpack(blob))
    except ContainerError as exc:
        return exc.name
    return "ok"
