"""The C of low-bit networks against Python over all test images of MNIST.

`make measure WHAT=lowbit-images` runs it.

For each header: the classes of Python's engine, those of the compiled library, and the accuracy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.lowbit.compare import c_classes, python_classes
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.training.lowbit.pictures import codes, reduced
from datasets.idx import read_collection


def inputs_of(folder: Path) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return codes [10000, 256] and labels of the test images below a folder of data."""
    images, labels = read_collection(folder / "MNIST" / "raw", False, "", {})
    return codes(reduced(images)).numpy().astype(np.int8), labels.numpy()


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
