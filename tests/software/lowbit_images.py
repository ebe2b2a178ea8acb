"""The C of low-bit networks against Python over all test images of MNIST: `make lowbit-images`.

For each header: the classes of Python's engine, those of the compiled library, and the accuracy.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datasets.idx import read_collection
from software.lowbit.emit import Samples, emit
from software.lowbit.engine import run
from software.lowbit.header import read_header
from software.lowbit.network import LowBitNetwork
from training.lowbit.pictures import codes, reduced

_PART = 500


def inputs_of(folder: Path) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return codes [10000, 256] and labels of the test images below a folder of data."""
    images, labels = read_collection(folder / "MNIST" / "raw", False, "", {})
    return codes(reduced(images)).numpy().astype(np.int8), labels.numpy()


def python_classes(network: LowBitNetwork, inputs: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the classes of Python's engine."""
    parts = range(0, len(inputs), _PART)
    return np.concatenate([run(network, inputs[i : i + _PART]).classes for i in parts])


def c_classes(network: LowBitNetwork, inputs: NDArray[np.int8], folder: Path) -> NDArray[np.int64]:
    """Compile the engine in `folder`, and return its classes."""
    for name, text in emit(network, Samples(inputs[:1]), "test").items():
        (folder / name).write_text(text)
    library = folder / "libinference.so"
    sources = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(folder / "lowbit.c")]
    subprocess.run(sources, check=True)
    function = ctypes.CDLL(str(library)).Inference
    function.restype = ctypes.c_uint32
    data = np.ascontiguousarray(inputs)
    return np.array([function(row.ctypes.data_as(ctypes.c_void_p)) for row in data], np.int64)


def main() -> int:
    """Print a line for each header; return 1 if C and Python differ anywhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("headers", nargs="+", metavar="MODEL.h")
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with MNIST/raw")
    args = parser.parse_args()
    inputs, labels = inputs_of(Path(args.data))
    different = 0
    for header in args.headers:
        network = read_header(header)
        python = python_classes(network, inputs)
        with tempfile.TemporaryDirectory() as folder:
            c = c_classes(network, inputs, Path(folder))
        equal, right = int((python == c).sum()), int((c == labels).sum())
        different += len(labels) - equal
        print(f"{header}: C = Python for {equal:,} of {len(labels):,} images, {right:,} right")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
